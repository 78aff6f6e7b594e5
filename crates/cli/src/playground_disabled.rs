//! `endpointd playground` in a build without the `playground` feature: an error that says how to
//! get the command.

use std::ffi::OsString;

use clap::Args;

use crate::cli_error::CliError;

/// Not part of this build
#[derive(Args)]
#[command(hide = true, disable_help_flag = true)]
pub struct Flags {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    _args: Vec<OsString>,
}

pub fn run(_: &Flags) -> Result<(), CliError> {
    Err(CliError::new(
        "this build of endpointd does not include the playground",
        "build it with its default features, as `cargo build --release -p endpointd` does",
    ))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        flags: Flags,
    }

    #[test]
    fn any_arguments_give_one_sentence_that_names_the_feature() {
        for args in [&["playground"][..], &["playground", "--help"], &["playground", "--pods=3"]] {
            let flags = Command::try_parse_from(args).expect("any arguments").flags;
            let error = run(&flags).expect_err("there is no playground");
            assert!(error.message.contains("does not include the playground"), "{args:?}");
        }
    }
}
