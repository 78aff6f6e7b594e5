//! A running program: its process and its log.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};

use crate::process_reaper::ProcessReaper;
use crate::program::Program;

const POLL: Duration = Duration::from_millis(25);
/// Number of lines at the end of a log that an error message contains.
const LOG_LINES_MAX: usize = 15;

#[derive(Debug)]
pub struct Running {
    child: Child,
    log: PathBuf,
}

impl Running {
    /// Starts `path` with an empty environment, because etcd, for example, also reads its flags
    /// from environment variables.
    pub fn start(
        reaper: &ProcessReaper,
        directory: &Path,
        path: &Path,
        program: Program,
        flags: &[String],
    ) -> io::Result<Self> {
        let log = directory.join(format!("{program}.log"));
        let output = File::options().create(true).append(true).open(&log)?;
        let mut command = Command::new(path);
        command.args(flags).env_clear().current_dir(directory).stdin(Stdio::null());
        command.stdout(output.try_clone()?).stderr(output);
        Ok(Self { child: reaper.adopt(&mut command).spawn()?, log })
    }

    /// `Some` if the program has ended.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        // `try_wait` fails only for a process that is not our child.
        self.child.try_wait().ok().flatten()
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn signal(&mut self, signal: Signal) -> io::Result<()> {
        if self.ended().is_some() {
            return Ok(());
        }
        Ok(kill_process(Pid::from_child(&self.child), signal)?)
    }

    /// Sends SIGSTOP and waits until the process is stopped: before that its threads can still
    /// answer requests.
    pub fn pause(&mut self) -> io::Result<()> {
        self.signal(Signal::STOP)?;
        if self.ended().is_some() {
            return Ok(());
        }
        let state = WaitIdOptions::STOPPED | WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        waitid(WaitId::Pid(Pid::from_child(&self.child)), state)?;
        Ok(())
    }

    /// Waits for its end; false if it still runs after `limit`.
    pub fn wait(&mut self, limit: Duration) -> bool {
        let started = Instant::now();
        while self.ended().is_none() {
            if started.elapsed() > limit {
                return false;
            }
            thread::sleep(POLL);
        }
        true
    }

    pub fn log_end(&self) -> String {
        let log = fs::read(&self.log).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(LOG_LINES_MAX)..].join("\n")
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Both fail only if the process has already ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
