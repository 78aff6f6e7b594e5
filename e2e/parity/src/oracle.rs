//! Upstream's own code in a subprocess: one case per line in, one answer per line out.

use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread;

use anyhow::{Context, Result, bail, ensure};
use serde::{Deserialize, Serialize};

use crate::case::{Case, Expected};

/// A running oracle. Dropping it closes its input, which ends the process.
pub struct Oracle {
    child: Child,
    questions: Option<BufWriter<ChildStdin>>,
    answers: BufReader<ChildStdout>,
}

#[derive(Serialize)]
struct Question<'a> {
    #[serde(flatten)]
    case: &'a Case,
    runs: usize,
}

#[derive(Deserialize)]
struct Answered {
    id: String,
    fault: Option<String>,
    #[serde(default)]
    expect: Expected,
    then: Option<ThenAnswered>,
}

#[derive(Deserialize)]
struct ThenAnswered {
    expect: Expected,
}

impl Oracle {
    pub fn start(program: &Path) -> Result<Self> {
        let mut child = Command::new(program)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start the oracle `{}`", program.display()))?;
        let questions = child.stdin.take().context("the oracle has no input")?;
        let answers = child.stdout.take().context("the oracle has no output")?;
        Ok(Self {
            child,
            questions: Some(BufWriter::new(questions)),
            answers: BufReader::new(answers),
        })
    }

    /// Fills in upstream's answers. With more than one run they state what varied. A case that the
    /// oracle rejects keeps its old answer, and its error is returned.
    pub fn ask(&mut self, cases: &mut [Case], runs: usize) -> Result<Vec<Option<String>>> {
        let Self { questions, answers, .. } = self;
        let questions = questions.as_mut().context("the oracle is closed")?;
        let lines: Vec<Vec<u8>> = cases
            .iter()
            .map(|case| serde_json::to_vec(&Question { case, runs }).context("cannot write a case"))
            .collect::<Result<_>>()?;
        // Write and read at the same time: a pipe buffers little, and the oracle answers while it
        // still receives.
        let answered = thread::scope(|scope| {
            let asking = scope.spawn(move || send(questions, &lines));
            let answered = (0..cases.len()).map(|_| receive(answers)).collect::<Result<Vec<_>>>();
            asking.join().expect("sending does not panic")?;
            answered
        })?;
        let pairs = cases.iter_mut().zip(answered);
        pairs.map(|(case, answered)| fill_in(case, answered)).collect()
    }
}

fn send(questions: &mut BufWriter<ChildStdin>, lines: &[Vec<u8>]) -> Result<()> {
    for line in lines {
        questions.write_all(line).context("the oracle stopped reading")?;
        questions.write_all(b"\n").context("the oracle stopped reading")?;
    }
    questions.flush().context("the oracle stopped reading")
}

fn receive(answers: &mut BufReader<ChildStdout>) -> Result<Answered> {
    let mut line = String::new();
    let n = answers.read_line(&mut line).context("cannot read the oracle's answer")?;
    ensure!(n > 0, "the oracle ended before it answered");
    serde_json::from_str(&line).context("the oracle's answer cannot be decoded")
}

fn fill_in(case: &mut Case, answered: Answered) -> Result<Option<String>> {
    let Answered { id, fault, expect, then } = answered;
    if id != case.id {
        bail!("the oracle answered `{id}` when asked for `{}`", case.id);
    }
    if fault.is_some() {
        return Ok(fault);
    }
    case.expect = expect;
    if let (Some(asked), Some(then)) = (&mut case.then, then) {
        asked.expect = then.expect;
    }
    Ok(None)
}

impl Drop for Oracle {
    fn drop(&mut self) {
        self.questions = None;
        drop(self.child.wait());
    }
}
