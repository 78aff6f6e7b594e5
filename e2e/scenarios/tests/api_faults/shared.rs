//! Clusters that several tests share.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use endpointd_control_plane::Options;
use endpointd_scenarios::{Daemon, ProxiedCluster};

/// A cluster for tests that run one at a time, each with a daemon of its own.
pub struct Group {
    cluster: OnceLock<Option<ProxiedCluster>>,
    turn: Mutex<()>,
}

/// The cluster of a group while one test uses it alone.
pub struct Turn {
    pub cluster: &'static ProxiedCluster,
    _turn: MutexGuard<'static, ()>,
}

impl Group {
    pub const fn new() -> Self {
        Self { cluster: OnceLock::new(), turn: Mutex::new(()) }
    }

    /// Waits for the other tests of the group. `None` means skip.
    pub fn turn(&'static self) -> Option<Turn> {
        let turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let cluster = self.cluster.get_or_init(|| ProxiedCluster::start(Options::default()));
        cluster.as_ref().map(|cluster| Turn { cluster, _turn: turn })
    }
}

/// Ends the other threads of a test when it is dropped, also when the test fails.
pub struct Over<'a>(pub &'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// A cluster and a daemon for tests that run at the same time, each in namespaces of its own.
pub struct Common(OnceLock<Option<(ProxiedCluster, Daemon)>>);

impl Common {
    pub const fn new() -> Self {
        Self(OnceLock::new())
    }

    /// `None` means skip.
    pub fn get(&'static self) -> Option<&'static (ProxiedCluster, Daemon)> {
        let start = || {
            let cluster = ProxiedCluster::start(Options::default())?;
            let daemon = cluster.daemon("endpointd", &cluster.flags());
            Some((cluster, daemon))
        };
        self.0.get_or_init(start).as_ref()
    }
}

/// For faults that concern single namespaces.
pub static COMMON: Common = Common::new();
