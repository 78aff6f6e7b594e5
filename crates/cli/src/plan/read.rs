//! From files to documents: finds the files, reads them, tells JSON from YAML.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::document::{Document, Failure};
use super::json::{self, NotJson};
use super::yaml;
use crate::refusal::Refusal;

const STDIN: &str = "-";
/// What counts in a directory, as for kubectl.
const EXTENSIONS: [&str; 3] = ["json", "yaml", "yml"];
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Something to read, with the name people know it by.
pub struct Source {
    path: PathBuf,
}

impl Source {
    /// What the paths stand for, in order; a directory for the files in it, by name.
    pub fn find(paths: &[PathBuf]) -> Result<Vec<Self>, Refusal> {
        let mut sources = Vec::new();
        for path in paths {
            if path.is_dir() {
                let files = files_in(path)?;
                if files.is_empty() {
                    return Err(no_files_in(path));
                }
                sources.extend(files.into_iter().map(|path| Self { path }));
            } else {
                sources.push(Self { path: path.clone() });
            }
        }
        Ok(sources)
    }

    pub fn name(&self) -> String {
        if self.is_stdin() {
            "standard input".to_owned()
        } else {
            format!("`{}`", self.path.display())
        }
    }

    fn is_stdin(&self) -> bool {
        self.path == Path::new(STDIN)
    }

    /// The documents in it, in order.
    pub fn documents(&self) -> Result<Vec<Document>, Refusal> {
        let bytes = self.bytes()?;
        let bytes = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&bytes);
        let text = str::from_utf8(bytes).map_err(|error| {
            Refusal::new(
                format!("{} is not UTF-8: wrong from byte {}", self.name(), error.valid_up_to()),
                "expected is YAML or JSON in UTF-8, as kubectl writes it with `-o yaml`",
            )
        })?;
        parse(text).map_err(|failure| {
            Refusal::new(
                format!("cannot parse {}, {failure}", self.name()),
                "expected is YAML or JSON, as kubectl writes it with `-o yaml` or `-o json`",
            )
        })
    }

    fn bytes(&self) -> Result<Vec<u8>, Refusal> {
        let read = if self.is_stdin() {
            let mut bytes = Vec::new();
            io::stdin().lock().read_to_end(&mut bytes).map(|_| bytes)
        } else {
            fs::read(&self.path)
        };
        read.map_err(|error| unreadable(&self.name(), &error))
    }
}

fn files_in(directory: &Path) -> Result<Vec<PathBuf>, Refusal> {
    let name = format!("`{}`", directory.display());
    let entries = fs::read_dir(directory)
        .and_then(Iterator::collect::<io::Result<Vec<_>>>)
        .map_err(|error| unreadable(&name, &error))?;
    let is_ours = |path: &PathBuf| {
        let extension = path.extension().and_then(|extension| extension.to_str());
        extension.is_some_and(|extension| EXTENSIONS.contains(&extension)) && path.is_file()
    };
    let mut paths: Vec<PathBuf> =
        entries.into_iter().map(|entry| entry.path()).filter(is_ours).collect();
    paths.sort();
    Ok(paths)
}

fn no_files_in(directory: &Path) -> Refusal {
    Refusal::new(
        format!("there is no file to read in a directory: `{}`", directory.display()),
        format!("what counts are names that end in one of: {}", EXTENSIONS.join(", ")),
    )
}

fn unreadable(name: &str, error: &io::Error) -> Refusal {
    let reason = match error.kind() {
        io::ErrorKind::NotFound => "no such file or directory".to_owned(),
        io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        _ => error.to_string(),
    };
    Refusal::new(
        format!("cannot read {name}: {reason}"),
        "`-f` takes files, directories, and `-` for standard input",
    )
}

/// What begins like JSON is read as JSON, ten times faster than as YAML. If it was YAML all the
/// same, as `{a: b}` or JSON between `---` lines is, YAML has the last word.
fn parse(text: &str) -> Result<Vec<Document>, Failure> {
    if !text.trim_start().starts_with(['{', '[']) {
        return yaml::documents(text);
    }
    match json::documents(text.as_bytes()) {
        Ok(documents) => Ok(documents),
        Err(NotJson::CutOff(failure)) => Err(failure),
        Err(NotJson::Wrong(failure)) => yaml::documents(text).map_err(|_| failure),
    }
}
