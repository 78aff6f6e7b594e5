//! Fuzz targets as tests. A target is a `#[test]` beside its decoder that calls [`fuzz`] with
//! recorded inputs and a check. `cargo test` runs a thousand inputs from a fixed seed;
//! `cargo xtask fuzz` runs the same tests for minutes with new seeds.
//!
//! Inputs are recorded ones with mutations that know their format. There is no instrumentation on
//! stable Rust; instead the check returns an outcome, such as the text of an error, and an input
//! with a new outcome is mutated further.

mod mutate;
mod options;
mod run;
mod shrink;

pub use mutate::Format;

/// A decoder under test.
#[derive(Clone, Debug)]
pub struct Target<'a> {
    /// As in `cargo xtask fuzz NAME`; the folder of its kept inputs.
    pub name: &'a str,
    pub format: Format,
    /// Recorded inputs, at least one.
    pub recorded: Vec<Vec<u8>>,
}

/// Runs `check` for recorded, kept, and mutated inputs.
///
/// `check` returns the outcome in a few words without details of the input, such as the kind of an
/// error.
///
/// # Panics
///
/// If `check` panics, takes too long, or uses too much memory. The message names the file with the
/// shortest input found.
pub fn fuzz(target: &Target, check: impl Fn(&[u8]) -> String) {
    run::run(target, &options::Options::of_environment(), &check);
}

/// An error text without what depends on the input: text between quotes, and digits.
pub fn outcome_of(text: &str) -> String {
    let outside = text.split(['`', '"', '\'']).step_by(2);
    let words =
        outside.flat_map(|part| part.chars().filter(|c| c.is_ascii_alphabetic() || *c == ' '));
    words.take(120).collect()
}
