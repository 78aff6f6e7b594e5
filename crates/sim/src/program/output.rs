//! Output: violations with a shortened script and its trace, counts, and missing faults.

use endpointd_sim::{Coverage, RunOptions, run_with, shrink};

use super::jobs::{Job, Results};

/// Shrinking takes minutes; further violations are only named.
const SHRUNK_MAX: usize = 3;

pub fn print_violations(jobs: &[Job], results: &Results) {
    for (nth, (number, violation)) in results.failed.iter().enumerate() {
        let job = &jobs[*number];
        println!("{}: {}: {}", job.name(), violation.rule.name(), violation.text);
        if nth < SHRUNK_MAX {
            print_shortest(job);
        }
    }
}

fn print_shortest(job: &Job) {
    let (script, options) = job.script();
    let short = shrink(&script, options);
    println!("shortest script found, {} actions, {:?}:", short.steps.len(), short.setup);
    for step in &short.steps {
        println!("  {:?}, pause {:?}", step.action, step.pause);
    }
    println!("trace:");
    for line in run_with(&short, RunOptions { with_trace: true, ..options }).trace {
        println!("  {line}");
    }
}

/// Prints the counts; returns faults and rules that never occurred.
pub fn print_coverage(coverage: &Coverage) -> Vec<&'static str> {
    for (fault, n) in &coverage.faults {
        println!("{n:>10}  {fault}");
    }
    for (rule, n) in &coverage.rules {
        println!("{n:>10}  {}", rule.name());
    }
    println!(
        "{} events, {} writes, {:.1} days of virtual time",
        coverage.n_events,
        coverage.n_writes,
        coverage.n_seconds as f64 / 86_400.0
    );
    let missing = coverage.missing();
    for name in &missing {
        println!("never occurred: {name}; run more seeds or correct the generator");
    }
    missing
}
