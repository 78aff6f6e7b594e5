//! Who is measured, and how they are started.

use std::fmt;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use endpointd_control_plane::{Cluster, Program, Stop};
use endpointd_histories::cluster::REPLACED;
use endpointd_histories::{Daemon, DaemonFlags};

use crate::process::Usage;
use crate::stage::Stage;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, clap::ValueEnum)]
pub enum Contender {
    /// kube-controller-manager as it comes.
    #[value(name = "kcm")]
    Peer,
    /// The same with its client's limits out of the way, and as many syncs at once as it takes.
    #[value(name = "kcm-raised")]
    PeerRaised,
    /// endpointd as it comes.
    #[value(name = "endpointd")]
    Ours,
    /// No controller at all: the writes alone.
    #[value(skip)]
    Floor,
}

/// Those that are controllers.
pub const CONTENDERS: [Contender; 3] = [Contender::Peer, Contender::PeerRaised, Contender::Ours];

const RAISED: [&str; 5] = [
    "--kube-api-qps=10000",
    "--kube-api-burst=10000",
    "--concurrent-endpoint-syncs=50",
    "--concurrent-service-endpoint-syncs=50",
    "--mirroring-concurrent-service-endpoint-syncs=50",
];

impl Contender {
    /// A word for JSON and files.
    pub fn key(self) -> &'static str {
        match self {
            Self::Peer => "kcm",
            Self::PeerRaised => "kcm-raised",
            Self::Ours => "endpointd",
            Self::Floor => "floor",
        }
    }
}

impl fmt::Display for Contender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Peer => "kube-controller-manager",
            Self::PeerRaised => "kube-controller-manager, limits raised",
            Self::Ours => "endpointd",
            Self::Floor => "the writes alone",
        })
    }
}

/// A contender at work on a stage.
pub struct AtWork<'a> {
    cluster: &'a Cluster,
    daemon: Option<Daemon>,
    pid: u32,
    pub started: Instant,
}

impl<'a> AtWork<'a> {
    pub fn start(contender: Contender, stage: &'a Stage) -> Result<Self> {
        let cluster = &stage.cluster;
        let started = Instant::now();
        let more: &[&str] = match contender {
            Contender::PeerRaised => &RAISED,
            Contender::Peer | Contender::Ours | Contender::Floor => &[],
        };
        let (daemon, pid) = match contender {
            Contender::Peer | Contender::PeerRaised => {
                cluster.launch_controller_manager(&REPLACED, more)?;
                (None, cluster.pid(Program::ControllerManager))
            }
            Contender::Ours => {
                let flags = DaemonFlags::new(&stage.account);
                let daemon = Daemon::start(cluster, "endpointd", &flags);
                let pid = daemon.pid();
                (Some(daemon), Some(pid))
            }
            Contender::Floor => (None, None),
        };
        let pid = pid.context("it has no process")?;
        Ok(Self { cluster, daemon, pid, started })
    }

    pub fn usage(&self) -> Result<Usage> {
        Usage::of(self.pid).context("the contender has ended")
    }

    /// Uses nothing, or next to nothing, any more: a start-up is over.
    pub fn wait_until_quiet(&self, limit: Duration) -> Result<()> {
        const LOOK: Duration = Duration::from_secs(2);
        const QUIET: Duration = Duration::from_millis(100);
        let began = Instant::now();
        while began.elapsed() < limit {
            let before = self.usage()?;
            std::thread::sleep(LOOK);
            if self.usage()? - before <= QUIET {
                break;
            }
        }
        Ok(())
    }

    pub fn stop(self) -> Result<()> {
        match self.daemon {
            Some(daemon) => daemon.stop(),
            None => self.cluster.stop(Program::ControllerManager, Stop::Gracefully)?,
        }
        Ok(())
    }
}
