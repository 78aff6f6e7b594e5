//! `cargo xtask control-plane`: the programs of the control plane, found or built, with progress
//! for people on stderr and the directory alone on stdout.

use std::io::{self, IsTerminal};
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use endpointd_control_plane::source::{self, BuildError, Progress};
use endpointd_control_plane::{Binaries, Places, Program};
use indicatif::{ProgressBar, ProgressStyle};

/// How often a log, which has no moving bar, says how far the build is.
const LINE_EVERY: Duration = Duration::from_secs(30);

pub fn run() -> Result<()> {
    let binaries = find_or_build()?;
    println!("{}", binaries.directory().display());
    Ok(())
}

/// The programs, built if need be: the first time this takes some minutes.
pub fn find_or_build() -> Result<Binaries> {
    let places = Places::from_environment();
    let search = places.search();
    if let Some(binaries) = search.found {
        for passed_over in &search.passed_over {
            eprintln!("note: passed over {passed_over}");
        }
        return Ok(binaries);
    }
    for passed_over in &search.passed_over {
        eprintln!("note: {passed_over}");
    }
    source::require_go().map_err(with_hint)?;
    eprintln!("building the control plane: once, about seven minutes on two cores");
    let built = if io::stderr().is_terminal() {
        let mut bar = Bar::default();
        source::build(&places, &mut |progress| bar.show(&progress))
    } else {
        let mut lines = Lines { last: Instant::now() };
        source::build(&places, &mut |progress| lines.show(&progress))
    };
    built.map_err(with_hint)
}

fn with_hint(error: BuildError) -> anyhow::Error {
    match error.hint() {
        Some(hint) => anyhow!("{error}\n{hint}"),
        None => anyhow!(error),
    }
}

/// For a terminal: one moving bar for the program that is being built.
#[derive(Default)]
struct Bar {
    bar: Option<(Program, ProgressBar)>,
}

impl Bar {
    fn show(&mut self, progress: &Progress<'_>) {
        match *progress {
            Progress::Waiting => eprintln!("waiting for another run that is building"),
            Progress::Fetching { program, module } => {
                self.of(program).set_message(format!("fetching {}", module.unwrap_or("modules")));
            }
            Progress::Building { program, n_done, n_packages, package } => {
                let bar = self.of(program);
                bar.set_length(n_packages as u64);
                bar.set_position(n_done as u64);
                bar.set_message(package.to_owned());
            }
            Progress::Built { program, elapsed } => {
                self.of(program).finish_and_clear();
                say_built(program, elapsed);
            }
        }
    }

    fn of(&mut self, program: Program) -> &ProgressBar {
        if self.bar.as_ref().is_none_or(|(shown, _)| *shown != program) {
            self.bar = Some((program, new_bar(program)));
        }
        let (_, bar) = self.bar.as_ref().expect("it was set just above");
        bar
    }
}

fn new_bar(program: Program) -> ProgressBar {
    let template = "{spinner} {prefix} {elapsed} [{bar:30}] {pos}/{len} packages  {wide_msg}";
    let style = ProgressStyle::with_template(template).expect("the template is a constant");
    let bar = ProgressBar::new(0).with_style(style.progress_chars("=> "));
    bar.set_prefix(format!("{program} {}", program.version()));
    bar.enable_steady_tick(Duration::from_millis(200)); // Linking is long and says nothing.
    bar
}

/// For a log: a line at each start and end, and one now and then.
struct Lines {
    last: Instant,
}

impl Lines {
    fn show(&mut self, progress: &Progress<'_>) {
        match *progress {
            Progress::Waiting => eprintln!("waiting for another run that is building"),
            Progress::Fetching { program, module: None } => {
                eprintln!("{program} {}: building", program.version());
                self.last = Instant::now();
            }
            Progress::Fetching { program, module: Some(module) } => {
                self.now_and_then(|| format!("{program}: fetching {module}"));
            }
            Progress::Building { program, n_done, n_packages, package: _ } => {
                self.now_and_then(|| format!("{program}: {n_done} of {n_packages} packages"));
            }
            Progress::Built { program, elapsed } => say_built(program, elapsed),
        }
    }

    fn now_and_then(&mut self, line: impl FnOnce() -> String) {
        if self.last.elapsed() >= LINE_EVERY {
            eprintln!("{}", line());
            self.last = Instant::now();
        }
    }
}

fn say_built(program: Program, elapsed: Duration) {
    eprintln!("{program} {}: built in {} s", program.version(), elapsed.as_secs());
}
