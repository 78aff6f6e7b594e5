//! An event with its time, for the queue of a simulation: of events at the same time, the one that was
//! scheduled first happens first.

use std::cmp::Ordering;

use crate::clock::Time;

#[derive(Debug)]
pub(crate) struct Scheduled<E> {
    pub at: Time,
    pub number: u64,
    pub event: E,
}

impl<E> PartialEq for Scheduled<E> {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

impl<E> Eq for Scheduled<E> {}

impl<E> PartialOrd for Scheduled<E> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> Ord for Scheduled<E> {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.at, self.number).cmp(&(other.at, other.number))
    }
}
