//! Messages for people on standard error.

use std::fmt;
use std::io::{self, Write};

/// Writes one line. Ignores errors: a closed standard error must not stop the command, and
/// `eprintln!` would panic.
pub fn line(text: fmt::Arguments<'_>) {
    let _ = writeln!(io::stderr(), "{text}");
}
