//! `endpointd run`: runs the controllers against a cluster until a signal.

mod clusters;
mod descriptor_limit;
mod flags;
mod log;
mod pages;
mod resolve;
mod scope;
mod serving;

use std::hash::{BuildHasher, RandomState};

use endpointd_page::PageOptions;
use endpointd_runtime::{Options, RunError};

pub use self::flags::Flags;
pub use self::pages::FlagValues;
use crate::cli_error::CliError;
use crate::tokio_runtime;

pub fn run(flags: &Flags, flag_values: FlagValues) -> Result<(), CliError> {
    // The only random number of the process: seeds jitter and makes the election identity unique.
    let seed = RandomState::new().hash_one(std::process::id());
    let options = resolve::resolve(flags, seed)?;
    let log_level = log::start(flags.log_format, flags.log_level);
    let page = PageOptions {
        connect: options.connect.clone(),
        settings: options.settings.plan.clone(),
        playground: None,
    };
    let options = Options {
        // For the loopback interface: others must neither see the flags nor change the log level.
        added_pages: Some(Box::new(move |status, _| {
            let live_page = endpointd_page::router(page, status);
            pages::router(status, flag_values, log_level).merge(live_page)
        })),
        ..options
    };
    descriptor_limit::raise();
    tokio_runtime::run_on_current_thread(async {
        let stopped = tokio_runtime::stop_signal()?;
        endpointd_runtime::run(options, |_| (), stopped).await.map_err(cli_error)
    })?
}

fn cli_error(error: RunError) -> CliError {
    let hint = match &error {
        RunError::Connect(_) => "",
        RunError::Bind { .. } => {
            "choose another with `--secure-port` or `--metrics-bind-address`, or `0` for none"
        }
        RunError::Tls(_) => "",
        RunError::Election(_) => "see `--leader-elect-lease-duration` and related flags",
        RunError::Thread(_) => "check the limit of threads (`ulimit -u`)",
        RunError::TaskEnd(_) => "this is a bug: please report it with the log",
    };
    let message = error.to_string();
    // Errors of connecting and of TLS contain their own hint.
    match message.split_once("\nhint: ") {
        Some((message, hint)) => CliError::new(message, hint),
        None => CliError::new(message, hint),
    }
}
