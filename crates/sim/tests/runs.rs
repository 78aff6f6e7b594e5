//! Runs are deterministic, and a few seeds hold all rules.

use endpointd_sim::{RunOptions, run_script, run_with, script_of};

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
fn forty_seeds_break_no_rule() {
    for seed in 0..40 {
        let result = run_script(&script_of(seed, 1000));
        assert_eq!(result.violation, None, "seed {seed}");
    }
}
