//! Runs the binary in a temporary directory.

pub mod objects;

use std::fs;
use std::io::{ErrorKind, Write};
use std::process::{Command, Stdio};

use serde_json::Value;

/// Exit code and output of a run.
#[derive(Debug)]
pub struct CommandOutput {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl CommandOutput {
    #[track_caller]
    pub fn succeeded(self) -> Self {
        assert_eq!(self.code, Some(0), "{self:?}");
        self
    }

    /// Exit code 2, no standard output, one error line, and one hint line.
    #[track_caller]
    pub fn fails_with(&self, error: &str, hint: &str) {
        assert_eq!((self.code, self.out.as_str()), (Some(2), ""), "{self:?}");
        let lines: Vec<&str> =
            self.err.lines().filter(|line| !line.starts_with("warning: ")).collect();
        let [error_line, hint_line] = lines[..] else { panic!("not two lines: {self:?}") };
        assert!(error_line.starts_with("error: ") && error_line.contains(error), "{self:?}");
        assert!(hint_line.starts_with("hint: ") && hint_line.contains(hint), "{self:?}");
    }

    #[track_caller]
    pub fn logs(&self, text: &str) {
        assert!(self.err.contains(text), "{text:?} is not said: {self:?}");
    }

    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// `endpointd plan` in a directory with these files.
pub fn plan(files: &[(&str, &str)], args: &[&str]) -> CommandOutput {
    run(files, &[&["plan"], args].concat(), b"")
}

pub fn plan_stdin(stdin: impl AsRef<[u8]>, args: &[&str]) -> CommandOutput {
    run(&[], &[&["plan"], args].concat(), stdin.as_ref())
}

pub fn run(files: &[(&str, &str)], args: &[&str], stdin: &[u8]) -> CommandOutput {
    let directory = tempfile::tempdir().expect("a directory");
    for (name, text) in files {
        fs::write(directory.path().join(name), text).expect("a file");
    }
    let mut child = Command::new(env!("CARGO_BIN_EXE_endpointd"))
        .args(args)
        .current_dir(&directory)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    let written = child.stdin.take().expect("piped").write_all(stdin);
    if let Err(error) = written {
        assert_eq!(error.kind(), ErrorKind::BrokenPipe, "it may end without reading");
    }
    let output = child.wait_with_output().expect("the binary ends");
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    CommandOutput { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
}
