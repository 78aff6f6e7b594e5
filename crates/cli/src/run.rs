//! `endpointd run`: runs the controllers against a cluster until a signal.

mod descriptor_limit;
mod flags;
mod resolve;

use std::hash::{BuildHasher, RandomState};
use std::io::{self, IsTerminal};

use endpointd_runtime::RunError;
use tracing_subscriber::filter::LevelFilter;

pub use self::flags::Flags;
use self::flags::{LogFormat, LogLevel};
use crate::cli_error::CliError;
use crate::tokio_runtime;

pub fn run(flags: &Flags) -> Result<(), CliError> {
    // The only random number of the process: seeds jitter and makes the election identity unique.
    let seed = RandomState::new().hash_one(std::process::id());
    let options = resolve::resolve(flags, seed)?;
    start_log(flags.log_format, flags.log_level);
    descriptor_limit::raise();
    tokio_runtime::run_on_current_thread(async {
        let stopped = tokio_runtime::stop_signal()?;
        endpointd_runtime::run(options, |_| (), stopped).await.map_err(cli_error)
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
        LogFormat::Json => log.json().flatten_event(true).with_span_list(false).init(),
        LogFormat::Text => {
            log.with_target(false).with_ansi(io::stderr().is_terminal()).init();
        }
    }
}

fn cli_error(error: RunError) -> CliError {
    let hint = match &error {
        RunError::Connect(_) => "",
        RunError::Bind { .. } => "choose another with `--metrics-bind-address`, or `0` for none",
        RunError::Election(_) => "see `--leader-elect-lease-duration` and related flags",
        RunError::Thread(_) => "check the limit of threads (`ulimit -u`)",
        RunError::TaskEnd(_) => "this is a bug: please report it with the log",
    };
    let message = error.to_string();
    // A connection error contains its own hint.
    match message.split_once("\nhint: ") {
        Some((message, hint)) => CliError::new(message, hint),
        None => CliError::new(message, hint),
    }
}
