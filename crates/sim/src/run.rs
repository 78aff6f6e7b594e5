//! Runs a script from beginning to end.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::client_bug::ClientBug;
use crate::clock::Time;
use crate::clusters;
use crate::coverage::{Coverage, Rule, Violation};
use crate::script::Script;
use crate::simulation::{FaultPoint, Simulation};

#[derive(Debug)]
pub struct RunResult {
    pub violation: Option<Violation>,
    pub coverage: Coverage,
    /// Writes sent before the final quiescent phase.
    pub n_sent: u64,
    pub trace: Vec<String>,
}

#[derive(Clone, Copy, Debug, Default)]
pub struct RunOptions {
    pub fault_point: Option<FaultPoint>,
    pub client_bug: Option<ClientBug>,
    pub with_trace: bool,
}

pub fn run_script(script: &Script) -> RunResult {
    run_with(script, RunOptions::default())
}

pub fn run_with(script: &Script, options: RunOptions) -> RunResult {
    let run = AssertUnwindSafe(|| run_to_end(script, options));
    catch_unwind(run).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|&text| text.to_owned()));
        let text = format!("panic: {}", text.unwrap_or_default());
        let violation = Some(Violation { rule: Rule::NoLeftovers, text });
        RunResult { violation, coverage: Coverage::default(), n_sent: 0, trace: Vec::new() }
    })
}

fn run_to_end(script: &Script, options: RunOptions) -> RunResult {
    if script.setup.n_other_clusters > 0 {
        return clusters::run(script, options);
    }
    let mut sim = Simulation::new(script);
    sim.fault_point = options.fault_point;
    sim.client_bug = options.client_bug;
    sim.trace = options.with_trace.then(Vec::new);
    for step in &script.steps {
        sim.perform_action(&step.action, step.pause);
        if sim.violation.is_some() {
            break;
        }
    }
    let n_sent = sim.n_sent;
    sim.finish();
    sim.coverage.n_seconds = sim.now.since(Time::START).as_secs();
    let Simulation { violation, coverage, trace, .. } = sim;
    RunResult { violation, coverage, n_sent, trace: trace.unwrap_or_default() }
}
