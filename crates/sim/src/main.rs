//! The simulator as a program; `cargo xtask sim` runs it.
use endpointd_sim::{Census, Manner, play, play_with, script_of};
fn main() {
    #[cfg(feature = "mutants")]
    if std::env::args().nth(1).as_deref() == Some("mutants") {
        std::panic::set_hook(Box::new(|_| {}));
        let plans = endpointd_sim::plans();
        for mutant in endpointd_mutants::Mutant::ALL {
            let started = std::time::Instant::now();
            println!(
                "{mutant:?}: {:?} {:?}",
                endpointd_sim::hunt(mutant, &plans),
                started.elapsed()
            );
        }
        return;
    }
    if std::env::args().nth(1).as_deref() == Some("plans") {
        let started = std::time::Instant::now();
        let all = endpointd_sim::plans();
        let mut bad = 0;
        let mut census = Census::default();
        for plan in &all {
            let v = play_with(&plan.script, plan.manner);
            census.add(&v.census);
            if let Some(v) = v.violation {
                bad += 1;
                if bad < 12 {
                    println!(
                        "{}: {}: {}",
                        plan.name,
                        v.rule.name(),
                        v.text.chars().take(300).collect::<String>()
                    );
                    if bad == 1 {
                        let told =
                            play_with(&plan.script, Manner { tells_story: true, ..plan.manner });
                        for l in told.story.iter().rev().take(60).rev() {
                            println!("{l}");
                        }
                    }
                }
            }
        }
        println!("{bad} of {} plans in {:?}", all.len(), started.elapsed());
        let mut n = 0;
        for search in endpointd_sim::searches() {
            let mut bad = 0;
            for i in 0..search.len() {
                n += 1;
                let plan = search.plan(i);
                let v = play_with(&plan.script, plan.manner);
                if let Some(v) = v.violation {
                    bad += 1;
                    if bad < 3 {
                        println!(
                            "{}: {}: {}",
                            plan.name,
                            v.rule.name(),
                            v.text.chars().take(300).collect::<String>()
                        );
                        if bad == 1 {
                            let told = play_with(
                                &plan.script,
                                Manner { tells_story: true, ..plan.manner },
                            );
                            for l in told.story.iter().rev().take(60).rev() {
                                println!("{l}");
                            }
                        }
                    }
                }
            }
            println!("{} {bad} of {} {:?}", search.name, search.len(), started.elapsed());
        }
        return;
    }
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
