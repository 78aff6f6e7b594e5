//! Runs are deterministic, and a few seeds hold all rules.

use endpointd_sim::{
    ClientBug, RunOptions, Schedule, fault_schedules, run_script, run_with, script_of,
};

#[test]
fn equal_seeds_give_equal_traces() {
    for seed in [3, 26, 154] {
        let script = script_of(seed, 600);
        let options = RunOptions { with_trace: true, ..RunOptions::default() };
        let (one, two) = (run_with(&script, options), run_with(&script, options));
        assert!(one.trace.len() > 600, "at least one line per action");
        assert_eq!(one.trace, two.trace, "seed {seed}");
    }
}

#[test]
fn runs_with_several_clusters_are_deterministic_and_break_no_rule() {
    let all = fault_schedules();
    let of_clusters = all.iter().filter(|one| one.name.starts_with("clusters, seed "));
    for schedule in of_clusters.take(10) {
        let options = RunOptions { with_trace: true, ..schedule.options };
        let one = run_with(&schedule.script, options);
        assert_eq!(one.violation, None, "{}", schedule.name);
        assert_eq!(one.trace, run_with(&schedule.script, options).trace, "{}", schedule.name);
    }
}

#[test]
fn forty_seeds_break_no_rule() {
    for seed in 0..40 {
        let result = run_script(&script_of(seed, 1000));
        assert_eq!(result.violation, None, "seed {seed}");
    }
}

#[test]
fn a_lease_checked_before_the_wait_is_detected_by_its_schedule() {
    let all = fault_schedules();
    let is_it = |one: &&Schedule| one.name == "lease lost while writes wait";
    let schedule = all.iter().find(is_it).expect("the schedule exists");
    let client_bug = Some(ClientBug::LeaseCheckedEarly);
    let options = RunOptions { client_bug, ..schedule.options };
    assert!(run_with(&schedule.script, options).violation.is_some());
}
