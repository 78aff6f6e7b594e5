//! At most 1000 addresses per object (docs/spec.md, 3.7). Upstream: `truncateEndpoints`.

use endpointd_model::{EndpointAddress, Subset, names};

const ADDRESSES_MAX: usize = 1000;

/// Whether all addresses fit into the object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capacity {
    Under,
    Over,
}

impl Capacity {
    /// The value of the over-capacity annotation.
    pub fn annotation(self) -> Option<&'static str> {
        match self {
            Self::Under => None,
            Self::Over => Some(names::TRUNCATED),
        }
    }
}

pub fn n_ready(subsets: &[Subset]) -> usize {
    subsets.iter().map(|subset| subset.addresses.len()).sum()
}

pub fn n_addresses(subsets: &[Subset]) -> usize {
    subsets.iter().map(|subset| subset.addresses.len() + subset.not_ready_addresses.len()).sum()
}

/// Keeps ready addresses before not-ready ones. Of the list that is cut, each subset keeps the same
/// share, rounded up, until no room is left.
pub fn truncate(mut subsets: Vec<Subset>) -> (Vec<Subset>, Capacity) {
    if n_addresses(&subsets) <= ADDRESSES_MAX {
        return (subsets, Capacity::Under);
    }
    let n_ready = n_ready(&subsets);
    if n_ready > ADDRESSES_MAX {
        subsets.iter_mut().for_each(|subset| subset.not_ready_addresses.clear());
        cut(subsets.iter_mut().map(|subset| &mut subset.addresses).collect(), ADDRESSES_MAX);
    } else {
        let not_ready = subsets.iter_mut().map(|subset| &mut subset.not_ready_addresses);
        cut(not_ready.collect(), ADDRESSES_MAX - n_ready);
    }
    (subsets, Capacity::Over)
}

fn cut(lists: Vec<&mut Vec<EndpointAddress>>, room: usize) {
    let total: usize = lists.iter().map(|list| list.len()).sum();
    let mut left = room;
    for list in lists {
        let share = (list.len() as f64 / total as f64 * room as f64).ceil() as usize;
        list.truncate(share.min(left));
        left -= list.len();
    }
}
