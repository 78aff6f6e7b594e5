//! Two replicas of the daemon for hours on a real control plane, with changes and faults. Start at
//! [`run`].
//!
//! Time is divided into rounds: one fault while pods and Services change, then a quiet point
//! without changes and faults. At a quiet point the published state must be the expected one, and
//! nothing may be written any more; then the memory of both replicas is measured.

mod changes;
mod fault;
mod memory;
mod monitor;
mod report;

use std::panic::resume_unwind;
use std::thread;
use std::time::{Duration, Instant};

use endpointd_control_plane::Options;
use endpointd_fault_proxy::Requests;

use crate::convergence::{Expected, converge_within};
use crate::daemon::Daemon;
use crate::proxied_cluster::ProxiedCluster;
use changes::Changes;
use fault::SoakFault;
use memory::Samples;
use monitor::SteadyService;
use report::{Report, Round};

/// A round without fault, which finds what remains of the fault before.
const WITHOUT_FAULT: Duration = Duration::from_secs(5);
const AT_REST: Duration = Duration::from_secs(8);

/// How long, and with which random numbers.
#[derive(Clone, Copy, Debug)]
pub struct SoakOptions {
    pub duration: Duration,
    pub seed: u64,
}

/// `None`: there is no control plane. The report says whether the soak passed.
pub fn run(options: SoakOptions) -> Option<Report> {
    let cluster = ProxiedCluster::start(Options::default())?;
    let replica = |name: &str| Daemon::start(&cluster.under_test.cluster, name, &cluster.elected());
    let mut replicas = [replica("first"), replica("second")];
    cluster.under_test.wait_until_synced();
    let steady = SteadyService::start(&cluster);
    let mut changes = Changes::set_up(&cluster, options.seed);
    let mut report = Report::new(options);
    let mut samples = [Samples::default(), Samples::default()];
    let started = Instant::now();
    for fault in SoakFault::ROTATION.into_iter().cycle() {
        if started.elapsed() >= options.duration {
            break;
        }
        let round = round(&cluster, &mut changes, fault);
        for (replica, samples) in replicas.iter_mut().zip(&mut samples) {
            match replica.is_running() {
                true => samples.add(started.elapsed(), memory::resident_bytes(replica.pid())),
                false => report.violation(format!("a replica ended:\n{}", replica.log_end())),
            }
        }
        report.add(started.elapsed(), round, &samples);
        if replicas.iter_mut().any(|replica| !replica.is_running()) {
            break;
        }
    }
    report.finish(started.elapsed(), &samples, steady.stop());
    Some(report)
}

fn round(cluster: &ProxiedCluster, changes: &mut Changes<'_>, fault: SoakFault) -> Round {
    let before = changes.n_made();
    let n_fired = fault.run(cluster, changes);
    changes.make_for(WITHOUT_FAULT);
    let settled = Instant::now();
    let lost = lost(cluster, &changes.expected(), fault.recovery_max());
    let recovery = settled.elapsed();
    let at_rest = Instant::now();
    thread::sleep(AT_REST);
    let writes = cluster.proxy.exchanges_of(&Requests::writes_of_endpoints());
    let n_writes_at_rest = writes.iter().filter(|write| write.started >= at_rest).count();
    let n_changes = changes.n_made() - before;
    Round { fault, n_fired, n_changes, recovery, lost, n_writes_at_rest }
}

/// What is not published in time, by namespace.
fn lost(
    cluster: &ProxiedCluster,
    expected: &[(String, Vec<Expected>)],
    limit: Duration,
) -> Vec<String> {
    let api = cluster.under_test.cluster.api();
    thread::scope(|scope| {
        let observe = |(namespace, expected): &'_ (String, Vec<Expected>)| {
            let converged = converge_within(limit, api, namespace, expected);
            converged.err().map(|error| format!("{namespace}: {error}"))
        };
        let observed: Vec<_> =
            expected.iter().map(|one| scope.spawn(move || observe(one))).collect();
        let observed = observed.into_iter().map(|one| one.join());
        observed.filter_map(|one| one.unwrap_or_else(|panic| resume_unwind(panic))).collect()
    })
}
