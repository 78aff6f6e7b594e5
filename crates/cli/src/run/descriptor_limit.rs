//! The limit of open files. Distributions set the soft limit to 1,024 for programs that use
//! `select`; this one does not. Upstream: the Go runtime raises it as well.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the soft limit to the hard limit.
pub fn raise() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current == maximum {
        return;
    }
    // The old limit remains if the system does not allow it; requests are bounded below it.
    match setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }) {
        Ok(()) => tracing::debug!(?current, ?maximum, "raised the limit of open files"),
        Err(reason) => tracing::warn!(?current, %reason, "cannot raise the limit of open files"),
    }
}
