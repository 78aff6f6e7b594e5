//! Progress of a run: a bar on a terminal, otherwise occasional lines.

use std::cell::Cell;
use std::io::{IsTerminal, stderr};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Minimum interval of lines within a step.
const LINE_EVERY: Duration = Duration::from_secs(20);
const TICK: Duration = Duration::from_millis(200);

pub struct Progress {
    bar: ProgressBar,
    is_terminal: bool,
    last_line: Cell<Instant>,
}

impl Progress {
    pub fn new(n_steps: usize) -> Self {
        let is_terminal = stderr().is_terminal();
        let target = match is_terminal {
            true => ProgressDrawTarget::stderr(),
            false => ProgressDrawTarget::hidden(),
        };
        let template = "{spinner} {elapsed_precise} [{bar:30}] {pos}/{len} {prefix}  {wide_msg}";
        let style = ProgressStyle::with_template(template).expect("the template is a constant");
        let bar = ProgressBar::with_draw_target(Some(n_steps as u64), target)
            .with_style(style.progress_chars("=> "));
        bar.enable_steady_tick(TICK);
        Self { bar, is_terminal, last_line: Cell::new(Instant::now()) }
    }

    /// Starts the next run.
    pub fn step(&self, what: &str) {
        self.bar.inc(1);
        self.bar.set_prefix(what.to_owned());
        self.bar.set_message("");
        self.print_without_terminal(what);
    }

    /// Shows the current phase of the run.
    pub fn detail(&self, what: &str) {
        self.bar.set_message(what.to_owned());
        self.line_if_due(|| what.to_owned());
    }

    pub fn count(&self, what: &str, n_done: usize, n: usize) {
        if self.is_terminal {
            self.bar.set_message(format!("{n_done}/{n} {what}"));
        }
        self.line_if_due(|| format!("{n_done}/{n} {what}"));
    }

    /// Prints a line that stays.
    pub fn note(&self, what: &str) {
        self.bar.println(what);
        self.print_without_terminal(what);
    }

    /// Waits and shows the remaining time.
    pub fn wait(&self, time: Duration, what: &str) {
        let began = Instant::now();
        while let Some(left) = time.checked_sub(began.elapsed()).filter(|left| !left.is_zero()) {
            self.bar.set_message(format!("{what}, {} s left", left.as_secs()));
            std::thread::sleep(left.min(TICK));
        }
    }

    pub fn end(&self) {
        self.bar.finish_and_clear();
    }

    fn print_without_terminal(&self, what: &str) {
        if !self.is_terminal {
            eprintln!("{what}");
            self.last_line.set(Instant::now());
        }
    }

    fn line_if_due(&self, line: impl FnOnce() -> String) {
        if !self.is_terminal && self.last_line.get().elapsed() >= LINE_EVERY {
            self.print_without_terminal(&line());
        }
    }
}
