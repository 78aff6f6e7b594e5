//! `cargo xtask control-plane`: finds or builds the programs of the control plane. Progress goes to
//! stderr, the directory to stdout.

use std::io::{self, IsTerminal};
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use endpointd_control_plane::source::{self, BuildError, Progress};
use endpointd_control_plane::{Binaries, Program, Release, SearchPaths};
use indicatif::{ProgressBar, ProgressStyle};

/// Interval of progress lines if stderr is not a terminal.
const LINE_INTERVAL: Duration = Duration::from_secs(30);

#[derive(clap::Args)]
pub struct ReleaseFlag {
    /// A minor release other than that of CI, as in `1.33`
    #[arg(long, value_name = "RELEASE")]
    kubernetes: Option<Release>,
}

impl ReleaseFlag {
    pub fn chosen(&self) -> Option<Release> {
        self.kubernetes
    }
}

pub fn run(flag: &ReleaseFlag) -> Result<()> {
    let binaries = find_or_build_release(flag.kubernetes)?;
    println!("{}", binaries.directory().display());
    Ok(())
}

/// Finds the programs, or builds them, which takes some minutes.
pub fn find_or_build() -> Result<Binaries> {
    find_or_build_in(&SearchPaths::from_environment())
}

/// As [`find_or_build`]. A directory that the environment names may have another release, so it is
/// not used for a chosen one.
pub fn find_or_build_release(release: Option<Release>) -> Result<Binaries> {
    let paths = SearchPaths::from_environment();
    match release {
        None => find_or_build_in(&paths),
        Some(release) => find_or_build_in(&SearchPaths { release, chosen: None, ..paths }),
    }
}

fn find_or_build_in(paths: &SearchPaths) -> Result<Binaries> {
    let search = paths.search();
    if let Some(binaries) = search.found {
        for ignored in &search.ignored {
            eprintln!("note: ignored {ignored}");
        }
        return Ok(binaries);
    }
    for ignored in &search.ignored {
        eprintln!("note: {ignored}");
    }
    source::require_go().map_err(with_hint)?;
    eprintln!("building the control plane: once, about seven minutes on two cores");
    let built = if io::stderr().is_terminal() {
        let mut bar = Bar { release: paths.release, bar: None };
        source::build(paths, &mut |progress| bar.show(&progress))
    } else {
        let mut lines = Lines { release: paths.release, last: Instant::now() };
        source::build(paths, &mut |progress| lines.show(&progress))
    };
    built.map_err(with_hint)
}

pub fn with_hint(error: BuildError) -> anyhow::Error {
    match error.hint() {
        Some(hint) => anyhow!("{error}\n{hint}"),
        None => anyhow!(error),
    }
}

/// A progress bar on a terminal.
struct Bar {
    release: Release,
    bar: Option<(Program, ProgressBar)>,
}

impl Bar {
    fn show(&mut self, progress: &Progress<'_>) {
        match *progress {
            Progress::Waiting => eprintln!("waiting for another run that is building"),
            Progress::Fetching { program, module } => {
                self.bar_of(program)
                    .set_message(format!("fetching {}", module.unwrap_or("modules")));
            }
            Progress::Building { program, n_done, n_packages, package } => {
                let bar = self.bar_of(program);
                bar.set_length(n_packages as u64);
                bar.set_position(n_done as u64);
                bar.set_message(package.to_owned());
            }
            Progress::Built { program, elapsed } => {
                self.bar_of(program).finish_and_clear();
                print_built(program, self.release, elapsed);
            }
        }
    }

    fn bar_of(&mut self, program: Program) -> &ProgressBar {
        if self.bar.as_ref().is_none_or(|(shown, _)| *shown != program) {
            self.bar = Some((program, new_bar(program, self.release)));
        }
        let (_, bar) = self.bar.as_ref().expect("set above");
        bar
    }
}

fn new_bar(program: Program, release: Release) -> ProgressBar {
    let template = "{spinner} {prefix} {elapsed} [{bar:30}] {pos}/{len} packages  {wide_msg}";
    let style = ProgressStyle::with_template(template).expect("the template is a constant");
    let bar = ProgressBar::new(0).with_style(style.progress_chars("=> "));
    bar.set_prefix(format!("{program} {}", program.version(release)));
    bar.enable_steady_tick(Duration::from_millis(200)); // Linking prints nothing for a long time.
    bar
}

/// Progress lines for a log.
struct Lines {
    release: Release,
    last: Instant,
}

impl Lines {
    fn show(&mut self, progress: &Progress<'_>) {
        match *progress {
            Progress::Waiting => eprintln!("waiting for another run that is building"),
            Progress::Fetching { program, module: None } => {
                eprintln!("{program} {}: building", program.version(self.release));
                self.last = Instant::now();
            }
            Progress::Fetching { program, module: Some(module) } => {
                self.line_if_due(|| format!("{program}: fetching {module}"));
            }
            Progress::Building { program, n_done, n_packages, package: _ } => {
                self.line_if_due(|| format!("{program}: {n_done} of {n_packages} packages"));
            }
            Progress::Built { program, elapsed } => print_built(program, self.release, elapsed),
        }
    }

    fn line_if_due(&mut self, line: impl FnOnce() -> String) {
        if self.last.elapsed() >= LINE_INTERVAL {
            eprintln!("{}", line());
            self.last = Instant::now();
        }
    }
}

fn print_built(program: Program, release: Release, elapsed: Duration) {
    eprintln!("{program} {}: built in {} s", program.version(release), elapsed.as_secs());
}
