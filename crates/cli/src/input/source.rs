//! Finds and reads the input files, and chooses between JSON and YAML.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::document::{Document, FromObject, ParseError};
use super::json::{self, JsonError};
use super::yaml;
use crate::cli_error::CliError;

const STDIN: &str = "-";
/// The files of a directory that are read, as in kubectl.
const EXTENSIONS: [&str; 3] = ["json", "yaml", "yml"];
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// An input file or standard input.
pub struct Source {
    path: PathBuf,
}

impl Source {
    /// The input files in order; a directory stands for its files, sorted by name.
    pub fn find(paths: &[PathBuf]) -> Result<Vec<Self>, CliError> {
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

    /// The documents in order.
    pub fn documents<T: FromObject>(&self) -> Result<Vec<Document<T>>, CliError> {
        let bytes = self.bytes()?;
        let bytes = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&bytes);
        let text = str::from_utf8(bytes).map_err(|error| {
            CliError::new(
                format!("{} is not UTF-8: invalid from byte {}", self.name(), error.valid_up_to()),
                "expected is YAML or JSON in UTF-8, as kubectl writes it with `-o yaml`",
            )
        })?;
        parse(text).map_err(|error| {
            CliError::new(
                format!("cannot parse {}, {error}", self.name()),
                "expected is YAML or JSON, as kubectl writes it with `-o yaml` or `-o json`",
            )
        })
    }

    fn bytes(&self) -> Result<Vec<u8>, CliError> {
        let read = if self.is_stdin() {
            let mut bytes = Vec::new();
            io::stdin().lock().read_to_end(&mut bytes).map(|_| bytes)
        } else {
            fs::read(&self.path)
        };
        read.map_err(|error| unreadable(&self.name(), &error))
    }
}

fn files_in(directory: &Path) -> Result<Vec<PathBuf>, CliError> {
    let name = format!("`{}`", directory.display());
    let entries = fs::read_dir(directory)
        .and_then(Iterator::collect::<io::Result<Vec<_>>>)
        .map_err(|error| unreadable(&name, &error))?;
    let is_input = |path: &PathBuf| {
        let extension = path.extension().and_then(|extension| extension.to_str());
        extension.is_some_and(|extension| EXTENSIONS.contains(&extension)) && path.is_file()
    };
    let mut paths: Vec<PathBuf> =
        entries.into_iter().map(|entry| entry.path()).filter(is_input).collect();
    paths.sort();
    Ok(paths)
}

fn no_files_in(directory: &Path) -> CliError {
    CliError::new(
        format!("the directory has no file to read: `{}`", directory.display()),
        format!("files in a directory need one of these extensions: {}", EXTENSIONS.join(", ")),
    )
}

fn unreadable(name: &str, error: &io::Error) -> CliError {
    let reason = match error.kind() {
        io::ErrorKind::NotFound => "no such file or directory".to_owned(),
        io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        _ => error.to_string(),
    };
    CliError::new(
        format!("cannot read {name}: {reason}"),
        "`-f` takes files, directories, and `-` for standard input",
    )
}

/// Text that begins like JSON is parsed as JSON, which is faster. If that fails, it may
/// still be YAML, such as `{a: b}` or JSON documents between `---` lines.
fn parse<T: FromObject>(text: &str) -> Result<Vec<Document<T>>, ParseError> {
    if !text.trim_start().starts_with(['{', '[']) {
        return yaml::documents(text);
    }
    match json::documents(text.as_bytes()) {
        Ok(documents) => Ok(documents),
        Err(JsonError::Truncated(parse_error)) => Err(parse_error),
        Err(JsonError::Invalid(parse_error)) => yaml::documents(text).map_err(|_| parse_error),
    }
}
