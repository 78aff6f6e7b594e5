//! What code without I/O and clock must not use, so that the same inputs give the same outputs.

use super::{Source, assert_none, files, without_tests};

/// A crate that must be pure.
struct Pure {
    folder: &'static str,
    /// Paths below `folder` that perform I/O: the program of a simulator, an HTTP server.
    except: &'static [&'static str],
    /// Further words that are banned here.
    also: &'static [(&'static str, &'static str)],
}

const NO_TIME_TYPES: &[(&str, &str)] = &[("std::time", "times are values of the model")];

const PURE: &[Pure] = &[
    Pure { folder: "crates/model/src/", except: &[], also: NO_TIME_TYPES },
    Pure { folder: "crates/plan/src/", except: &[], also: NO_TIME_TYPES },
    Pure { folder: "crates/explain/src/", except: &[], also: NO_TIME_TYPES },
    Pure { folder: "crates/rng/src/", except: &[], also: &[] },
    Pure { folder: "crates/engine/src/", except: &[], also: &[] },
    Pure { folder: "crates/memory-api/src/", except: &[], also: &[] },
    Pure { folder: "crates/sim/src/", except: &["main.rs", "program.rs", "program/"], also: &[] },
    // `clock_and_ids.rs` is the source of time and uids for the server.
    Pure {
        folder: "crates/apiserver/src/",
        except: &["http.rs", "http/", "clock_and_ids.rs"],
        also: &[],
    },
];

/// What pure code must not contain, and why.
const IMPURE: &[(&str, &str)] = &[
    ("tokio", "pure code does not wait"),
    ("Timestamp::now", "time is an argument"),
    ("Instant", "time is an argument"),
    ("SystemTime", "time is an argument"),
    ("std::env", "settings are arguments"),
    ("env!", "settings are arguments"),
    ("std::fs", "pure code has no I/O"),
    ("std::net::Tcp", "pure code has no I/O"),
    ("std::net::Udp", "pure code has no I/O"),
    ("std::process", "pure code has no I/O"),
    ("std::thread", "the caller decides what runs concurrently"),
    ("println!", "the caller prints"),
    ("rand::", "random numbers come from a seeded generator that is an argument"),
    ("getrandom", "random numbers come from a seeded generator that is an argument"),
    ("RandomState", "its order is random"),
];

const HASH_TYPES: &[&str] = &["HashMap", "HashSet", "HashTable"];

/// Files that use hash maps, and how many lines in them may iterate over one. The order of such an
/// iteration is random, so nothing outside of the engine may depend on it.
const HASH_MAPS: &[(&str, usize)] = &[
    ("crates/engine/src/cache.rs", 0),
    ("crates/engine/src/cache/freshness.rs", 1),
    ("crates/engine/src/cache/nodes.rs", 0),
    ("crates/engine/src/cache/published.rs", 4),
    ("crates/engine/src/cache/resources.rs", 0),
    ("crates/engine/src/cache/selector_index.rs", 0),
    ("crates/engine/src/interner.rs", 1),
    ("crates/engine/src/key_table.rs", 3),
    ("crates/engine/src/queue.rs", 6),
    ("crates/engine/src/requests.rs", 1),
    ("crates/engine/src/syncs.rs", 0),
];

const ITERATIONS: &[&str] = &[
    "iter",
    "iter_mut",
    "keys",
    "values",
    "values_mut",
    "into_iter",
    "into_keys",
    "into_values",
    "drain",
    "retain",
    "extract_if",
];

/// The pure code of the repository: line numbers and code without comments and unit tests.
fn pure_files() -> Vec<(&'static Pure, Source)> {
    let sources = files(&[".rs"]).into_iter().filter_map(|source| {
        let pure = PURE.iter().find(|pure| source.path.starts_with(pure.folder))?;
        let below = &source.path[pure.folder.len()..];
        let is_impure = pure.except.iter().any(|except| match except.ends_with('/') {
            true => below.starts_with(except),
            false => below == *except,
        });
        (!is_impure).then_some((pure, source))
    });
    sources.collect()
}

fn code_lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let code = |line| str::split(line, "//").next().unwrap_or_default();
    (1..).zip(without_tests(text).lines().map(code))
}

#[test]
fn pure_code_has_no_io_clock_or_random_order() {
    let mut violations = Vec::new();
    for (pure, Source { path, text }) in pure_files() {
        for (number, code) in code_lines(&text) {
            for (word, why) in IMPURE.iter().chain(pure.also) {
                if code.contains(word) {
                    violations.push(format!("{path}:{number}: `{word}` in pure code: {why}"));
                }
            }
            let is_listed = HASH_MAPS.iter().any(|(file, _)| *file == path);
            if !is_listed && HASH_TYPES.iter().any(|name| code.contains(name)) {
                violations.push(format!("{path}:{number}: hash map in a file not in HASH_MAPS"));
            }
        }
    }
    assert_none(&violations);
}

#[test]
fn hash_maps_in_pure_code_are_for_lookups() {
    let mut violations = Vec::new();
    for (_, Source { path, text }) in pure_files() {
        let Some((_, max)) = HASH_MAPS.iter().find(|(file, _)| *file == path) else { continue };
        let found = iterations(&text);
        if found.len() > *max {
            let lines = found.iter().map(|number| format!("{path}:{number}"));
            let lines: Vec<String> = lines.collect();
            violations.push(format!("{max} iterations over hash maps allowed: {lines:?}"));
        }
    }
    assert_none(&violations);
}

/// Numbers of the lines that iterate over a hash map declared in the same file.
fn iterations(text: &str) -> Vec<usize> {
    let declares = |line: &str| {
        let (name, rest) = line.trim().rsplit_once(": Hash")?;
        rest.contains('<').then(|| name.rsplit(' ').next().unwrap_or_default().to_owned())
    };
    let maps: Vec<String> = code_lines(text).filter_map(|(_, line)| declares(line)).collect();
    let iterates = |line: &str| {
        maps.iter().any(|map| {
            let is_looped =
                line.contains(&format!("in &self.{map} ")) || line.contains(&format!("in &{map} "));
            is_looped || ITERATIONS.iter().any(|method| line.contains(&format!(".{map}.{method}(")))
        })
    };
    code_lines(text).filter(|(_, line)| iterates(line)).map(|(number, _)| number).collect()
}

#[test]
fn iterations_over_declared_hash_maps_are_found() {
    let text = "struct A {\n    by_key: HashMap<Key, B>,\n    ordered: BTreeMap<Key, B>,\n}\n\
                self.by_key.get(key);\nself.by_key.values();\nfor one in &self.by_key {\n\
                self.ordered.values();\n";
    assert_eq!(iterations(text), [6, 7]);
}
