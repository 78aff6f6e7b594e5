//! Scripts have one exchange in each line: `METHOD[:variant] PATH [BODY]`.
//!
//! `> NAME /json/pointer` after an exchange captures a value of its response, used as `$NAME`
//! later. `! why` before an exchange compares only status code and reason. `#` begins a comment.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// The exchanges of one script, in a namespace of their own.
pub struct Script {
    pub name: String,
    pub exchanges: Vec<Exchange>,
}

pub struct Exchange {
    /// The line of the script.
    pub line: String,
    pub method: String,
    pub path: String,
    pub body: String,
    pub comparison: Comparison,
    /// Variable names and JSON pointers into the response.
    pub captures: Vec<(String, String)>,
}

/// How much of a response is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    Whole,
    /// Status code and `reason` only.
    Reason,
}

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

impl Script {
    /// All scripts, ordered by name.
    pub fn all() -> io::Result<Vec<Self>> {
        let mut paths = Vec::new();
        for entry in fs::read_dir(folder("scripts"))? {
            paths.push(entry?.path());
        }
        paths.sort();
        paths.iter().map(|path| Self::read(path)).collect()
    }

    fn read(path: &Path) -> io::Result<Self> {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let exchanges = parse(&fs::read_to_string(path)?).map_err(|line| {
            io::Error::other(format!("{}: cannot read `{line}`", path.display()))
        })?;
        Ok(Self { name, exchanges })
    }

    pub fn namespace(&self) -> String {
        format!("conformance-{}", self.name)
    }

    /// Variables for the paths that every script uses.
    pub(crate) fn variables(&self) -> BTreeMap<String, String> {
        let namespace = self.namespace();
        let within = |root: &str| format!("{root}/namespaces/{namespace}");
        BTreeMap::from([
            ("CORE".to_owned(), within("/api/v1")),
            ("APPS".to_owned(), within("/apis/apps/v1")),
            ("DISCOVERY".to_owned(), within("/apis/discovery.k8s.io/v1")),
            ("EVENTS".to_owned(), within("/apis/events.k8s.io/v1")),
            ("LEASES".to_owned(), within("/apis/coordination.k8s.io/v1")),
            ("NS".to_owned(), namespace.clone()),
        ])
    }

    pub fn recording(&self) -> PathBuf {
        folder("recorded").join(format!("{}.json", self.name))
    }

    pub fn recorded(&self) -> io::Result<Vec<Value>> {
        Ok(serde_json::from_str(&fs::read_to_string(self.recording())?)?)
    }

    /// One response per line, for readable diffs.
    pub fn record(&self, answers: &[Value]) -> io::Result<()> {
        let lines: Vec<String> = answers.iter().map(Value::to_string).collect();
        fs::create_dir_all(folder("recorded"))?;
        fs::write(self.recording(), format!("[\n{}\n]\n", lines.join(",\n")))
    }
}

fn parse(text: &str) -> Result<Vec<Exchange>, String> {
    let mut exchanges: Vec<Exchange> = Vec::new();
    let mut comparison = Comparison::Whole;
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        match line.split_at(1) {
            ("#", _) => {}
            ("!", _) => comparison = Comparison::Reason,
            (">", rest) => {
                let (name, pointer) = rest.trim().split_once(' ').ok_or(line)?;
                let last = exchanges.last_mut().ok_or(line)?;
                last.captures.push((name.to_owned(), pointer.trim().to_owned()));
            }
            _ => {
                let (method, rest) = line.split_once(' ').ok_or(line)?;
                let (path, body) = rest.split_once(' ').unwrap_or((rest, ""));
                exchanges.push(Exchange {
                    line: line.to_owned(),
                    method: method.to_owned(),
                    path: path.to_owned(),
                    body: body.trim().to_owned(),
                    comparison: std::mem::replace(&mut comparison, Comparison::Whole),
                    captures: Vec::new(),
                });
            }
        }
    }
    Ok(exchanges)
}

/// Longer names first, because `$RV` is a prefix of `$RV2`.
pub(crate) fn substitute(text: &str, variables: &BTreeMap<String, String>) -> String {
    let mut text = text.to_owned();
    let mut names: Vec<&String> = variables.keys().collect();
    names.sort_by_key(|name| std::cmp::Reverse(name.len()));
    for name in names {
        text = text.replace(&format!("${name}"), &variables[name]);
    }
    text
}
