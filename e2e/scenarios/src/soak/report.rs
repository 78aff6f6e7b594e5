//! Progress lines, and the verdict.

use std::collections::BTreeMap;
use std::time::Duration;

use super::SoakOptions;
use super::fault::SoakFault;
use super::memory::Samples;

/// Of all violations; the first ones say most.
const VIOLATIONS_SHOWN_MAX: usize = 10;

/// What happened in one round.
pub struct Round {
    pub fault: SoakFault,
    pub n_fired: usize,
    pub n_changes: usize,
    /// Until everything was published.
    pub recovery: Duration,
    /// What was not published in time.
    pub lost: Vec<String>,
    pub n_writes_at_rest: usize,
}

pub struct Report {
    options: SoakOptions,
    n_rounds: usize,
    n_changes: usize,
    n_writes_at_rest: usize,
    recovery_max: Duration,
    n_fired: BTreeMap<String, usize>,
    violations: Vec<String>,
    memory: Vec<String>,
    elapsed: Duration,
}

impl Report {
    pub(super) fn new(options: SoakOptions) -> Self {
        Self {
            options,
            n_rounds: 0,
            n_changes: 0,
            n_writes_at_rest: 0,
            recovery_max: Duration::ZERO,
            n_fired: BTreeMap::new(),
            violations: Vec::new(),
            memory: Vec::new(),
            elapsed: Duration::ZERO,
        }
    }

    pub fn has_passed(&self) -> bool {
        self.violations.is_empty()
    }

    pub(super) fn violation(&mut self, text: String) {
        eprintln!("VIOLATION {text}");
        self.violations.push(text);
    }

    pub(super) fn add(&mut self, elapsed: Duration, round: Round, samples: &[Samples]) {
        let Round { fault, n_fired, n_changes, recovery, lost, n_writes_at_rest } = round;
        self.n_rounds += 1;
        self.n_changes += n_changes;
        self.n_writes_at_rest += n_writes_at_rest;
        self.recovery_max = self.recovery_max.max(recovery);
        *self.n_fired.entry(fault.to_string()).or_default() += n_fired;
        let memory: Vec<String> =
            samples.iter().map(|one| format!("{:.2}", one.last_bytes() / 1e6)).collect();
        eprintln!(
            "{:>7.1} min  {:<28} fired {n_fired:>4}, {n_changes:>4} changes, published after {:>5.1} s, \
             {n_writes_at_rest} writes at rest, {} MB",
            elapsed.as_secs_f64() / 60.0,
            fault.to_string(),
            recovery.as_secs_f64(),
            memory.join(" and "),
        );
        if n_writes_at_rest > 0 {
            self.violation(format!("{n_writes_at_rest} writes at rest after {fault}"));
        }
        for lost in lost {
            self.violation(format!("after {fault}: {lost}"));
        }
    }

    pub(super) fn finish(
        &mut self,
        elapsed: Duration,
        samples: &[Samples],
        steady_missing: Vec<String>,
    ) {
        self.elapsed = elapsed;
        for missing in steady_missing {
            self.violation(format!("a Service that did not change: {missing}"));
        }
        for samples in samples {
            let Some(trend) = samples.trend() else {
                self.memory.push("too few quiet points for a trend".to_owned());
                continue;
            };
            let text = format!(
                "{:+.3} MB an hour, {:+.3} MB over the run (bound {:.2} MB), mean {:.2} MB, {} points",
                trend.bytes_per_hour / 1e6,
                trend.growth_bytes / 1e6,
                trend.growth_bytes_max / 1e6,
                trend.mean_bytes / 1e6,
                trend.n_samples,
            );
            if !trend.is_flat() {
                self.violation(format!("memory grows: {text}"));
            }
            self.memory.push(text);
        }
    }

    /// The verdict first.
    pub fn text(&self) -> String {
        let verdict = if self.has_passed() { "passed" } else { "FAILED" };
        let mut lines = vec![format!(
            "soak {verdict}: {:.1} min, {} rounds, {} changes, {} violations, {} writes at rest, \
             everything published within {:.1} s after each fault; seed {}",
            self.elapsed.as_secs_f64() / 60.0,
            self.n_rounds,
            self.n_changes,
            self.violations.len(),
            self.n_writes_at_rest,
            self.recovery_max.as_secs_f64(),
            self.options.seed,
        )];
        lines.extend(self.memory.iter().map(|memory| format!("memory: {memory}")));
        lines.extend(self.n_fired.iter().map(|(fault, n)| format!("fault: {fault}, {n} times")));
        let not_run = SoakFault::ROTATION.len().saturating_sub(self.n_fired.len());
        if not_run > 0 {
            lines.push(format!("{not_run} faults were not reached: the run was too short"));
        }
        let shown = self.violations.iter().take(VIOLATIONS_SHOWN_MAX);
        lines.extend(shown.map(|violation| format!("violation: {violation}")));
        lines.join("\n")
    }
}
