//! Serialises tests of this crate that start programs with tests that depend on a file being
//! closed.
//!
//! Between `fork` and `exec` a new process holds copies of all our file descriptors. During that
//! time a released lock is still held, and a script that was just written is still open for writing
//! and cannot be executed.

use std::sync::{Mutex, MutexGuard, PoisonError};

static LOCK: Mutex<()> = Mutex::new(());

/// Hold the guard until the end of the test. A test that failed does not stop the others.
pub fn acquire() -> MutexGuard<'static, ()> {
    LOCK.lock().unwrap_or_else(PoisonError::into_inner)
}
