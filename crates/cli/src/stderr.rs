//! What is said to people beside the answer itself.

use std::fmt;
use std::io::{self, Write};

/// Writes one line. That nobody listens is no reason to stop, so a failure is ignored; `eprintln!`
/// would panic.
pub fn line(text: fmt::Arguments<'_>) {
    let _ = writeln!(io::stderr(), "{text}");
}
