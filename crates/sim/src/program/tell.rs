//! What people read: how it failed, as short a history as was found, and what never happened.

use endpointd_sim::{Census, Manner, play_with, shrink};

use super::work::{Job, Tally};

/// Shrinking takes a while; the rest is only named.
const TOLD_MAX: usize = 3;

pub fn failures(jobs: &[Job], tally: &Tally) {
    for (nth, (number, violation)) in tally.failed.iter().enumerate() {
        let job = &jobs[*number];
        println!("{}: {}: {}", job.name(), violation.rule.name(), violation.text);
        if nth < TOLD_MAX {
            story(job);
        }
    }
}

fn story(job: &Job) {
    let (script, manner) = job.script();
    let short = shrink(&script, manner);
    println!("the shortest history found, of {} acts, {:?}:", short.steps.len(), short.setup);
    for step in &short.steps {
        println!("  {:?}, then {:?}", step.act, step.pause);
    }
    println!("and its story:");
    for line in play_with(&short, Manner { tells_story: true, ..manner }).story {
        println!("  {line}");
    }
}

/// The counts; returns what never came up, which proves nothing then.
pub fn census(census: &Census) -> Vec<&'static str> {
    for (fault, n) in &census.faults {
        println!("{n:>10}  {fault}");
    }
    for (rule, n) in &census.rules {
        println!("{n:>10}  {}", rule.name());
    }
    println!(
        "{} events, {} writes, {:.1} days of virtual time",
        census.n_events,
        census.n_writes,
        census.n_seconds as f64 / 86_400.0
    );
    let never = census.never();
    for name in &never {
        println!("never happened: {name}; run more seeds, or mend the generator");
    }
    never
}
