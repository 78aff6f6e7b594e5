//! Runs all tests of a binary at once, because they wait most of the time.

use libtest_mimic::{Arguments, Trial};

/// The name of a test, and the test.
pub type Test = (&'static str, fn());

/// Accepts the arguments of `cargo test`. Does not return.
pub fn run(tests: &[Test]) -> ! {
    let mut arguments = Arguments::from_args();
    arguments.test_threads = arguments.test_threads.or(Some(tests.len()));
    let trial = |&(name, test): &Test| {
        Trial::test(name, move || {
            test();
            Ok(())
        })
    };
    libtest_mimic::run(&arguments, tests.iter().map(trial).collect()).exit()
}
