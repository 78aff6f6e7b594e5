//! Every scenario converges to the same Endpoints and EndpointSlices under kube-controller-manager
//! and under endpointd.

use std::sync::Arc;
use std::thread;

use endpointd_control_plane::{Binaries, Options, Release};
use endpointd_scenarios::cluster::controllers_under_test;
use endpointd_scenarios::{
    ClusterUnderTest, Controllers, SCENARIOS, Scenario, difference, recorded, run_scenario,
};
use libtest_mimic::{Arguments, Failed, Trial};

/// More than there are cores, because scenarios wait most of the time.
const CONCURRENCY: usize = 12;

fn main() {
    let mut arguments = Arguments::from_args();
    let expected = |scenario: &&Scenario| {
        let chosen = arguments.filter.as_deref().is_none_or(|part| scenario.name.contains(part));
        chosen && !arguments.list
    };
    let n_wanted = SCENARIOS.iter().filter(expected).count();
    arguments.test_threads = arguments.test_threads.or(Some(CONCURRENCY));
    let clusters = Binaries::for_test().filter(|_| n_wanted > 0).map(|it| Arc::new(start(&it)));
    let served = SCENARIOS.iter().filter(|scenario| scenario.runs_on(Release::under_test()));
    let trials = served.map(|scenario| {
        let clusters = clusters.clone();
        Trial::test(scenario.name, move || match &clusters {
            Some(clusters) => compare(scenario, clusters),
            None => Ok(()),
        })
    });
    let conclusion = libtest_mimic::run(&arguments, trials.collect());
    if conclusion.has_failed()
        && let Some(clusters) = &clusters
    {
        eprintln!("{}", clusters.1.daemon_log());
    }
    drop(clusters);
    conclusion.exit();
}

/// A cluster with kube-controller-manager, and one with endpointd.
type Pair = (ClusterUnderTest, ClusterUnderTest);

fn start(binaries: &Binaries) -> Pair {
    let start = |controllers| ClusterUnderTest::start(binaries, controllers, Options::default());
    thread::scope(|scope| {
        let upstream = scope.spawn(|| start(Controllers::ControllerManager));
        (upstream.join().expect("a cluster starts"), start(controllers_under_test()))
    })
}

fn compare(scenario: &'static Scenario, (upstream, ours): &Pair) -> Result<(), Failed> {
    let (theirs, ours) = thread::scope(|scope| {
        let theirs = scope.spawn(|| run_scenario(scenario, &upstream.api));
        let ours = scope.spawn(|| run_scenario(scenario, &ours.api));
        (theirs.join(), ours.join())
    });
    let theirs = theirs.map_err(|panic| panic_message("kube-controller-manager", &*panic))?;
    let ours = ours.map_err(|panic| panic_message("endpointd", &*panic))?;
    // The recordings are those of the reference release.
    if Release::under_test() == Release::default() {
        recorded::compare_or_update(scenario, &theirs)?;
    }
    match difference(("kube-controller-manager", &theirs), ("endpointd", &ours)) {
        Some(difference) => Err(difference.into()),
        None => Ok(()),
    }
}

/// The message of a panic, and the controllers it occurred under.
fn panic_message(who: &str, panic: &(dyn std::any::Any + Send)) -> Failed {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    format!("under {who}: {}", text.unwrap_or("a panic without a message")).into()
}
