//! Standard output.

use std::io::{self, Write};

use crate::cli_error::CliError;

pub fn print(text: &str) -> Result<(), CliError> {
    let mut out = io::stdout().lock();
    checked(out.write_all(text.as_bytes()).and_then(|()| out.flush()))
}

/// The error of writing to standard output, if it is one.
pub fn checked(written: io::Result<()>) -> Result<(), CliError> {
    match written {
        Ok(()) => Ok(()),
        // The reader, for example `head`, needs no more output.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        Err(error) => Err(CliError::new(
            format!("cannot write the output: {error}"),
            "standard output must be writable",
        )),
    }
}
