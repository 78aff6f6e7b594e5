//! The programs under measurement, and how they are started.

use std::fmt;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use endpointd_control_plane::{Cluster, Program, Stop};
use endpointd_scenarios::cluster::REPLACED_CONTROLLERS;
use endpointd_scenarios::{Daemon, DaemonFlags};

use crate::process::Usage;
use crate::test_bed::TestBed;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, clap::ValueEnum)]
pub enum Subject {
    /// kube-controller-manager with default flags.
    #[value(name = "kcm")]
    Kcm,
    /// kube-controller-manager without client rate limits and with 50 concurrent syncs per
    /// controller.
    #[value(name = "kcm-unthrottled")]
    KcmUnthrottled,
    /// endpointd with default flags, without leader election.
    #[value(name = "endpointd")]
    Endpointd,
    /// The writes of a cold start without a controller.
    #[value(skip)]
    WriteOnly,
}

/// The subjects that are controllers.
pub const CONTROLLERS: [Subject; 3] = [Subject::Kcm, Subject::KcmUnthrottled, Subject::Endpointd];

const UNTHROTTLED: [&str; 5] = [
    "--kube-api-qps=10000",
    "--kube-api-burst=10000",
    "--concurrent-endpoint-syncs=50",
    "--concurrent-service-endpoint-syncs=50",
    "--mirroring-concurrent-service-endpoint-syncs=50",
];

impl Subject {
    /// The name in JSON, tables, and charts.
    pub fn key(self) -> &'static str {
        match self {
            Self::Kcm => "kcm",
            Self::KcmUnthrottled => "kcm-unthrottled",
            Self::Endpointd => "endpointd",
            Self::WriteOnly => "write-only",
        }
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Kcm => "kube-controller-manager",
            Self::KcmUnthrottled => "kube-controller-manager, no client limits",
            Self::Endpointd => "endpointd",
            Self::WriteOnly => "write-only lower bound",
        })
    }
}

/// A started subject.
pub struct RunningSubject<'a> {
    cluster: &'a Cluster,
    daemon: Option<Daemon>,
    pid: u32,
    pub started: Instant,
}

impl<'a> RunningSubject<'a> {
    /// With flags of its own.
    pub fn start_endpointd(test_bed: &'a TestBed, more: &[&str]) -> Result<Self> {
        let (cluster, started) = (&test_bed.cluster, Instant::now());
        let flags = DaemonFlags::new(&test_bed.account);
        let flags = more.iter().fold(flags, |flags, flag| flags.with(flag));
        let daemon = Daemon::start(cluster, "endpointd", &flags);
        let pid = daemon.pid();
        Ok(Self { cluster, daemon: Some(daemon), pid, started })
    }

    pub fn start(subject: Subject, test_bed: &'a TestBed) -> Result<Self> {
        let cluster = &test_bed.cluster;
        let started = Instant::now();
        let more: &[&str] = match subject {
            Subject::KcmUnthrottled => &UNTHROTTLED,
            Subject::Kcm | Subject::Endpointd | Subject::WriteOnly => &[],
        };
        let pid = match subject {
            Subject::Kcm | Subject::KcmUnthrottled => {
                cluster.launch_controller_manager(&REPLACED_CONTROLLERS, more)?;
                cluster.pid(Program::ControllerManager)
            }
            Subject::Endpointd => return Self::start_endpointd(test_bed, &[]),
            Subject::WriteOnly => None,
        };
        let pid = pid.context("the subject has no process")?;
        Ok(Self { cluster, daemon: None, pid, started })
    }

    /// Of endpointd.
    pub fn metric(&self, name: &str) -> Option<f64> {
        self.daemon.as_ref()?.metric(name)
    }

    pub fn usage(&self) -> Result<Usage> {
        Usage::of(self.pid).context("the subject has ended")
    }

    /// Where endpointd serves its status and its page.
    pub fn status_address(&self) -> Option<SocketAddr> {
        self.daemon.as_ref().map(Daemon::status_address)
    }

    /// Waits until the subject uses almost no CPU, at the end of its initial sync.
    pub fn wait_until_idle(&self, limit: Duration) -> Result<()> {
        const INTERVAL: Duration = Duration::from_secs(2);
        const IDLE_CPU_MAX: Duration = Duration::from_millis(100);
        let began = Instant::now();
        while began.elapsed() < limit {
            let before = self.usage()?;
            std::thread::sleep(INTERVAL);
            if self.usage()? - before <= IDLE_CPU_MAX {
                break;
            }
        }
        Ok(())
    }

    pub fn stop(self) -> Result<()> {
        match self.daemon {
            Some(daemon) => daemon.stop(),
            None => self.cluster.stop(Program::ControllerManager, Stop::Terminate)?,
        }
        Ok(())
    }
}
