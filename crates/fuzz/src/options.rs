//! How long to run, and with which seed: variables that `cargo xtask fuzz` sets.

use std::path::PathBuf;
use std::time::Duration;

/// Without variables, as in `cargo test`.
const SHORT_RUN_INPUTS: u64 = 1000;

#[derive(Clone, Debug)]
pub struct Options {
    pub limit: Limit,
    pub seed: u64,
    /// Only this input.
    pub input: Option<PathBuf>,
    /// Where the shortest input of a failure is written.
    pub found: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    Inputs(u64),
    Time(Duration),
}

impl Options {
    pub fn of_environment() -> Self {
        let number = |name| std::env::var(name).ok().map(|text| number_of(name, &text));
        let limit = match number("ENDPOINTD_FUZZ_SECS") {
            Some(secs) => Limit::Time(Duration::from_secs(secs)),
            None => Limit::Inputs(SHORT_RUN_INPUTS),
        };
        let manifest = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
        Self {
            limit,
            seed: number("ENDPOINTD_FUZZ_SEED").unwrap_or_default(),
            input: std::env::var_os("ENDPOINTD_FUZZ_INPUT").map(PathBuf::from),
            found: manifest.join("../../target/fuzz"),
        }
    }
}

fn number_of(name: &str, text: &str) -> u64 {
    text.parse().unwrap_or_else(|_| panic!("{name} is not a number: {text:?}"))
}
