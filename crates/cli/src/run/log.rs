//! The log of `run`, whose level can be changed while it runs.

use std::io::{self, IsTerminal};

use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Registry, fmt, reload};

use super::flags::{LogFormat, LogLevel};

/// Reads and changes the level; clones share it.
#[derive(Clone)]
pub struct LogLevelHandle(reload::Handle<LevelFilter, Registry>);

pub fn start(format: LogFormat, level: LogLevel) -> LogLevelHandle {
    let level = match level {
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Trace => LevelFilter::TRACE,
    };
    let (filter, handle) = reload::Layer::new(level);
    let filtered = tracing_subscriber::registry().with(filter);
    let lines = fmt::layer().with_writer(io::stderr);
    match format {
        LogFormat::Json => {
            filtered.with(lines.json().flatten_event(true).with_span_list(false)).init();
        }
        LogFormat::Text => {
            let has_colours = io::stderr().is_terminal();
            filtered.with(lines.with_target(false).with_ansi(has_colours)).init();
        }
    }
    LogLevelHandle(handle)
}

impl LogLevelHandle {
    /// Fails only if the subscriber is gone, which lives as long as the process.
    pub fn set(&self, level: LevelFilter) {
        let _ = self.0.modify(|filter| *filter = level);
    }

    pub fn get(&self) -> LevelFilter {
        self.0.clone_current().unwrap_or(LevelFilter::OFF)
    }
}
