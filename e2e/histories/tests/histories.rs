//! Every history settles on the same Endpoints and EndpointSlices under kube-controller-manager and
//! under endpointd.

use std::sync::Arc;
use std::thread;

use endpointd_control_plane::{Binaries, Options};
use endpointd_histories::cluster::ours;
use endpointd_histories::{
    ClusterUnderTest, Controllers, HISTORIES, History, difference, play, recorded,
};
use libtest_mimic::{Arguments, Failed, Trial};

/// Histories wait most of the time.
const AT_ONCE: usize = 12;

fn main() {
    let mut arguments = Arguments::from_args();
    let wanted = |history: &&History| {
        let chosen = arguments.filter.as_deref().is_none_or(|part| history.name.contains(part));
        chosen && !arguments.list
    };
    let n_wanted = HISTORIES.iter().filter(wanted).count();
    arguments.test_threads = arguments.test_threads.or(Some(AT_ONCE));
    let clusters = Binaries::for_test().filter(|_| n_wanted > 0).map(|it| Arc::new(start(&it)));
    let trials = HISTORIES.iter().map(|history| {
        let clusters = clusters.clone();
        Trial::test(history.name, move || match &clusters {
            Some(clusters) => compare(history, clusters),
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

/// First kube-controller-manager's, then ours.
type Pair = (ClusterUnderTest, ClusterUnderTest);

fn start(binaries: &Binaries) -> Pair {
    let start = |controllers| ClusterUnderTest::start(binaries, controllers, Options::default());
    thread::scope(|scope| {
        let upstream = scope.spawn(|| start(Controllers::ControllerManager));
        (upstream.join().expect("a cluster starts"), start(ours()))
    })
}

fn compare(history: &'static History, (upstream, ours): &Pair) -> Result<(), Failed> {
    let (theirs, ours) = thread::scope(|scope| {
        let theirs = scope.spawn(|| play(history, &upstream.api));
        let ours = scope.spawn(|| play(history, &ours.api));
        (theirs.join(), ours.join())
    });
    let theirs = theirs.map_err(|panic| told("kube-controller-manager", &*panic))?;
    let ours = ours.map_err(|panic| told("endpointd", &*panic))?;
    recorded::keep(history, &theirs)?;
    match difference(("kube-controller-manager", &theirs), ("endpointd", &ours)) {
        Some(difference) => Err(difference.into()),
        None => Ok(()),
    }
}

/// What a panic said, and under whom.
fn told(who: &str, panic: &(dyn std::any::Any + Send)) -> Failed {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    format!("under {who}: {}", text.unwrap_or("a panic without words")).into()
}
