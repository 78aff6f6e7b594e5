//! The `cargo` executable that runs this command.

use std::env;
use std::process::Command;

pub fn command() -> Command {
    Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}
