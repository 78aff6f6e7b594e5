//! The cargo that started us, for more of its work.

use std::env;
use std::process::Command;

pub fn command() -> Command {
    Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}
