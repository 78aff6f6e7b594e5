//! The harness on a real control plane, at the smallest size. Numbers are not judged here: a machine
//! that runs tests measures nothing. What must hold is that it measures at all, and the same work.

use endpointd_bench::bench::Bench;
use endpointd_bench::contender::{CONTENDERS, Contender};
use endpointd_bench::progress::Progress;
use endpointd_bench::record::{Row, Scenario, rows};
use endpointd_bench::scale::Scale;
use endpointd_control_plane::Binaries;

#[test]
fn everybody_publishes_a_small_world_and_is_measured() {
    let Some(binaries) = Binaries::for_test() else { return };
    let scale = Scale::tiny();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let progress = Progress::new(0);
    let mut bench = Bench::new(&scale, &[Scenario::Floor], &binaries, &runtime, &progress);
    // Takes the cold starts along.
    bench.run(Scenario::Floor).unwrap();

    let floor = &rows(&bench.records, Scenario::Floor)[0];
    assert!(floor.median(Contender::Floor) > Some(0.0), "{floor:?}");
    assert!(CONTENDERS.iter().all(|who| floor.of(*who).is_some()), "{floor:?}");

    let rows = rows(&bench.records, Scenario::ColdStart);
    let row = |name: &str| -> &Row {
        rows.iter().find(|row| row.name == name).unwrap_or_else(|| panic!("no `{name}`"))
    };
    let value = |name: &str, who| row(name).median(who).unwrap_or_else(|| panic!("no {who}"));
    for who in CONTENDERS {
        assert!(value("time until complete", who) > 0.0, "{who}");
        assert!(value("CPU until complete", who) > 0.0, "{who}");
        assert!(value("memory, peak", who) >= value("memory, settled", who), "{who}");
        // A slice and Endpoints for each Service; on a slow machine the API server may still be writing
        // its own two. The peer may try again after a conflict.
        let n_stored = value("writes", who) - value("writes refused", who);
        assert!((10.0..=12.0).contains(&n_stored), "{who}: {n_stored}");
    }
    // Far from what is promised, and further from what chance can do.
    let ratio = row("memory, settled").ratio_to_ours(Contender::Peer).unwrap();
    assert!(ratio > 1.0, "the peer needs {ratio} times our memory");
}
