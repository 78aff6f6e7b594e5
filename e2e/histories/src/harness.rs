//! Runs tests that wait most of the time: all at once, however few cores there are.

use libtest_mimic::{Arguments, Trial};

/// A test, and the sentence that is its name.
pub type Test = (&'static str, fn());

/// With the arguments that `cargo test` passes on; does not return.
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
