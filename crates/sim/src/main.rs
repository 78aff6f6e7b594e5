//! The simulator as a program; `cargo xtask sim` runs it.
use endpointd_sim::{Census, Manner, play, play_with, script_of};
fn main() {
    let args: Vec<u64> = std::env::args().skip(1).map(|a| a.parse().unwrap_or(0)).collect();
    let (from, to, steps) = (args[0], args[1], args[2] as usize);
    let started = std::time::Instant::now();
    let mut census = Census::default();
    let mut bad = 0;
    for seed in from..to {
        let script = script_of(seed, steps);
        let verdict = play(&script);
        census.add(&verdict.census);
        if let Some(v) = verdict.violation {
            bad += 1;
            println!(
                "seed {seed}: {}: {}",
                v.rule.name(),
                &v.text.chars().take(600).collect::<String>()
            );
            if to - from == 1 {
                let script = endpointd_sim::shrink(&script, Manner::default());
                println!("{:?} {:?} steps {}", script.setup, script.seed, script.steps.len());
                let told = play_with(&script, Manner { tells_story: true, snare: None });
                let n = told.story.len();
                for line in told.story.iter().skip(n.saturating_sub(300)) {
                    println!("{line}");
                }
            }
        }
    }
    println!(
        "{bad} bad, {} steps, {} events, {} writes, {} virtual s in {:?}",
        census.n_steps,
        census.n_events,
        census.n_writes,
        census.n_seconds,
        started.elapsed()
    );
    if to - from > 1 {
        println!("never {:?}", census.never());
        println!("{:?}", census.faults);
        println!("{:?}", census.rules);
    }
}
