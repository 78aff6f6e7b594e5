//! `endpointd run`: the controllers against a cluster, until a signal says stop.

mod flags;
mod resolve;

use std::hash::{BuildHasher, RandomState};
use std::io::{self, IsTerminal};

use endpointd_runtime::RunError;
use tracing_subscriber::filter::LevelFilter;

pub use self::flags::Flags;
use self::flags::{LogFormat, LogLevel};
use crate::refusal::Refusal;
use crate::shell;

pub fn run(flags: &Flags) -> Result<(), Refusal> {
    // The only chance in the whole process: jitter, and a name of our own in the election.
    let seed = RandomState::new().hash_one(std::process::id());
    let options = resolve::resolve(flags, seed)?;
    start_log(flags.log_format, flags.log_level);
    let pace = options.pace.clone();
    shell::on_one_thread(move || pace.nap(), async {
        let stopped = shell::stop_signal()?;
        endpointd_runtime::run(options, |_| (), stopped).await.map_err(refusal)
    })?
}

fn start_log(format: LogFormat, level: LogLevel) {
    let level = match level {
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Trace => LevelFilter::TRACE,
    };
    let log = tracing_subscriber::fmt().with_writer(io::stderr).with_max_level(level);
    match format {
        LogFormat::Json => log.json().flatten_event(true).with_current_span(false).init(),
        LogFormat::Text => {
            log.with_target(false).with_ansi(io::stderr().is_terminal()).init();
        }
    }
}

fn refusal(error: RunError) -> Refusal {
    let hint = match &error {
        RunError::Connect(_) => "",
        RunError::Bind { .. } => "choose another with `--metrics-bind-address`, or `0` for none",
        RunError::Election(_) => "see `--leader-elect-lease-duration` and its neighbours",
    };
    let message = error.to_string();
    // A connection error brings its own hint.
    match message.split_once("\nhint: ") {
        Some((message, hint)) => Refusal::new(message, hint),
        None => Refusal::new(message, hint),
    }
}
