//! One run of a target.

use std::collections::HashSet;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use endpointd_rng::SplitMix64;

use crate::Target;
use crate::mutate::mutate;
use crate::options::{Limit, Options};
use crate::shrink::shrink;

/// Longer inputs only take time.
pub const INPUT_BYTES_MAX: usize = 64 << 10;
/// Inputs with outcomes of their own; further ones are not mutated.
const CORPUS_MAX: usize = 4000;
/// A thousand times what the slowest input of the recorded ones takes.
const CHECK_MAX: Duration = Duration::from_secs(5);
/// What a run may add to the peak memory of its process: inputs have at most 64 KiB.
const MEMORY_KIB_MAX: u64 = 1 << 20;
/// Reading the peak memory takes as long as some checks.
const MEMORY_CHECK_EVERY: u64 = 1024;

type CheckFn<'a> = &'a dyn Fn(&[u8]) -> String;

/// What the run has found so far.
struct Corpus {
    inputs: Vec<Vec<u8>>,
    outcomes: HashSet<u64>,
}

pub fn run(target: &Target, options: &Options, check: CheckFn) {
    assert!(!target.recorded.is_empty(), "{} has no recorded input", target.name);
    if let Some(path) = &options.input {
        let input = fs::read(path).expect("the input of ENDPOINTD_FUZZ_INPUT is readable");
        println!("fuzz {}: {}", target.name, check(&input));
        return;
    }
    let memory_before = peak_memory_kib();
    let mut corpus = Corpus { inputs: Vec::new(), outcomes: HashSet::new() };
    for input in target.recorded.iter().cloned().chain(kept(target.name)) {
        let outcome = checked(target, options, check, &input);
        corpus.outcomes.insert(hash(&outcome));
        corpus.inputs.push(input);
    }
    let (begun, mut n_inputs) = (Instant::now(), 0);
    while !is_over(options.limit, n_inputs, begun) {
        let mut rng = SplitMix64::of_case(options.seed, n_inputs);
        n_inputs += 1;
        let input = next_input(target, &corpus, &mut rng);
        let outcome = checked(target, options, check, &input);
        if corpus.inputs.len() < CORPUS_MAX && corpus.outcomes.insert(hash(&outcome)) {
            corpus.inputs.push(input);
        }
        if n_inputs % MEMORY_CHECK_EVERY == 0 {
            let n_kib = peak_memory_kib().saturating_sub(memory_before);
            assert!(n_kib < MEMORY_KIB_MAX, "{}: memory grew by {n_kib} KiB", target.name);
        }
    }
    println!(
        "fuzz {}: seed {}, {n_inputs} inputs, {} outcomes, {} s",
        target.name,
        options.seed,
        corpus.outcomes.len(),
        begun.elapsed().as_secs()
    );
}

fn is_over(limit: Limit, n_inputs: u64, begun: Instant) -> bool {
    match limit {
        Limit::Inputs(most) => n_inputs >= most,
        Limit::Time(most) => begun.elapsed() >= most,
    }
}

/// One to four mutations of an input, more often of a recent one.
fn next_input(target: &Target, corpus: &Corpus, rng: &mut SplitMix64) -> Vec<u8> {
    let n = corpus.inputs.len();
    let at = if rng.percent(30) { n - 1 - rng.index(n.div_ceil(8)) } else { rng.index(n) };
    let mut input = corpus.inputs[at].clone();
    for _ in 0..rng.between(1, 4) {
        let other = &corpus.inputs[rng.index(n)];
        input = mutate(target.format, &input, other, rng);
        input.truncate(INPUT_BYTES_MAX);
    }
    input
}

/// The outcome; a failure is shortened, written to a file, and reported.
fn checked(target: &Target, options: &Options, check: CheckFn, input: &[u8]) -> String {
    let failure = match judge(check, input) {
        Ok(outcome) => return outcome,
        Err(failure) => failure,
    };
    std::panic::set_hook(Box::new(|_| {}));
    let short = shrink(input, |shorter| judge(check, shorter).is_err());
    drop(std::panic::take_hook());
    let path = write_found(target, options, &short);
    panic!(
        "{}: {failure}\n{} bytes in {}: {}",
        target.name,
        short.len(),
        path.display(),
        short.escape_ascii()
    );
}

fn judge(check: CheckFn, input: &[u8]) -> Result<String, String> {
    let begun = Instant::now();
    let outcome = catch_unwind(AssertUnwindSafe(|| check(input))).map_err(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|&text| text.to_owned()));
        format!("panic: {}", text.unwrap_or_default())
    })?;
    let time = begun.elapsed();
    if time > CHECK_MAX { Err(format!("took {} s", time.as_secs())) } else { Ok(outcome) }
}

fn write_found(target: &Target, options: &Options, input: &[u8]) -> PathBuf {
    fs::create_dir_all(&options.found).expect("the folder of findings can be created");
    let name = format!("{}-{:016x}", target.name, hash(input));
    let path = options.found.join(name);
    fs::write(&path, input).expect("the input can be written");
    path
}

/// Inputs that once failed.
fn kept(name: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("kept").join(name);
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut paths: Vec<PathBuf> =
        entries.map(|entry| entry.expect("a readable folder").path()).collect();
    paths.sort();
    paths.iter().map(|path| fs::read(path).expect("a readable input")).collect()
}

fn hash(of: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    of.hash(&mut hasher);
    hasher.finish()
}

/// The peak of the resident memory; zero where `/proc` does not say.
fn peak_memory_kib() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let number = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    number.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mutate::Format;

    fn target(format: Format, recorded: &[u8]) -> Target<'static> {
        Target { name: "test", format, recorded: vec![recorded.to_vec()] }
    }

    fn options(folder: &str) -> Options {
        let found = std::env::temp_dir().join(folder);
        Options { limit: Limit::Inputs(20_000), seed: 1, input: None, found }
    }

    fn failure(target: &Target, options: &Options, check: CheckFn) -> Option<String> {
        let run = AssertUnwindSafe(|| run(target, options, check));
        let panic = catch_unwind(run).err()?;
        panic.downcast_ref::<String>().cloned()
    }

    /// Needs three mutations that only the outcomes lead to.
    #[test]
    fn outcomes_lead_to_a_nested_failure_that_is_shortened_and_kept() {
        let check = |input: &[u8]| {
            let value: serde_json::Value = serde_json::from_slice(input).unwrap_or_default();
            let depth = ["/a", "/a/b", "/a/b/c"].iter().filter(|at| value.pointer(at).is_none());
            let is_last = value.pointer("/a/b").is_some_and(serde_json::Value::is_null)
                && value.pointer("/a/d") == Some(&serde_json::json!([]));
            assert!(!is_last, "found");
            let d = value.pointer("/a/d").map(serde_json::Value::is_array);
            format!("{} {d:?}", depth.count())
        };
        let recorded = br#"{"a": {"b": {"c": 1}, "d": "text"}, "e": [1, 2, 3]}"#;
        let options = options("endpointd-fuzz-nested");
        let text = failure(&target(Format::Json, recorded), &options, &check);
        let text = text.expect("the failure is found");
        assert!(text.starts_with("test: panic: found\n"), "{text}");
        let file = fs::read_dir(&options.found).expect("a finding").next().expect("one file");
        let input = fs::read(file.expect("readable").path()).expect("the input");
        assert!(input.len() < recorded.len(), "{}", input.escape_ascii());
        fs::remove_dir_all(&options.found).expect("the folder is ours");
    }

    #[test]
    fn equal_seeds_check_equal_inputs() {
        let inputs_of = |seed| {
            let inputs = std::cell::RefCell::new(Vec::new());
            let check = |input: &[u8]| {
                inputs.borrow_mut().push(input.to_vec());
                (input.len() % 7).to_string()
            };
            let limit = Limit::Inputs(500);
            let options = Options { limit, seed, ..options("endpointd-fuzz-seeds") };
            run(&target(Format::Text, b"some: text\nand: more\n"), &options, &check);
            inputs.into_inner()
        };
        assert_eq!(inputs_of(3), inputs_of(3));
        assert_ne!(inputs_of(3), inputs_of(4));
    }
}
