//! For tests of this crate that start programs, and for those to which it matters that a file is
//! closed: they take turns.
//!
//! A program that is being started has all files open for a moment that this process has. A lock
//! that was let go is then still held, and a script that was just written cannot be executed.

use std::sync::{Mutex, MutexGuard, PoisonError};

static TURN: Mutex<()> = Mutex::new(());

/// Keep it until the end of the test. One that failed does not stop the others.
pub fn take() -> MutexGuard<'static, ()> {
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}
