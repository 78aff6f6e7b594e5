//! Kills programs and removes their directory as soon as their owner is gone, whether the owner
//! dropped the reaper, panicked, or was killed with SIGKILL. All three take the same path: a drop
//! does what the owner's death does, and waits for the result.
//!
//! How: the owner holds the only write ends of two pipes, so the kernel closes them when it dies.
//! The *anchor* is a process whose only purpose is its process group, which the programs join. The
//! *watcher* is a shell that reads its pipe to the end, kills that group, and removes the files.
//! Both have process groups of their own, so Ctrl-C in a terminal reaches neither.
//!
//! The parent-death signal of Linux is not enough: it fires when the *thread* that started the
//! program ends, and a shared cluster outlives the test that started it.

use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A killed program may still finish a system call that creates a file: hence the repeated `rm`.
const WATCH: &str = r#"
cat >/dev/null
kill -s KILL -- "-$1"
for i in 1 2 3 4 5 6 7 8 9 10; do rm -rf -- "$2" && break; sleep 0.1; done
"#;

#[derive(Debug)]
pub struct ProcessReaper {
    anchor: Child,
    watcher: Child,
}

impl ProcessReaper {
    pub fn start(directory: &Path) -> io::Result<Self> {
        let anchor = spawn_until_eof(Command::new("cat").stdout(Stdio::null()))?;
        let group = anchor.id().to_string();
        let mut watch = Command::new("sh");
        watch.args(["-c", WATCH, "endpointd-reaper", &group]).arg(directory).current_dir("/");
        let watcher = spawn_until_eof(watch.stdout(Stdio::null()).stderr(Stdio::null()))?;
        Ok(Self { anchor, watcher })
    }

    /// Puts `program` into the process group that is killed with the owner.
    pub fn adopt<'a>(&self, program: &'a mut Command) -> &'a mut Command {
        let group = i32::try_from(self.anchor.id()).expect("process ids are positive `i32`s");
        program.process_group(group)
    }
}

/// Starts `command` in a process group of its own; it ends when its standard input is closed.
fn spawn_until_eof(command: &mut Command) -> io::Result<Child> {
    command.stdin(Stdio::piped()).process_group(0).spawn()
}

impl Drop for ProcessReaper {
    fn drop(&mut self) {
        // The watcher first: the group must still exist when the watcher kills it.
        for child in [&mut self.watcher, &mut self.anchor] {
            child.stdin.take();
            // An error means that it was already waited for.
            let _ = child.wait();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::thread;
    use std::time::{Duration, Instant};

    use super::*;
    use crate::test_lock;

    #[test]
    fn drop_kills_the_programs_and_removes_the_directory() {
        let _guard = test_lock::acquire();
        let directory = tempfile::tempdir().unwrap().keep();
        std::fs::write(directory.join("file"), "").unwrap();
        let reaper = ProcessReaper::start(&directory).unwrap();
        let mut program = Command::new("sleep");
        let mut program = reaper.adopt(program.arg("600")).spawn().unwrap();

        assert_eq!(program.try_wait().unwrap(), None);
        drop(reaper);
        assert!(!directory.exists());
        let started = Instant::now();
        while program.try_wait().unwrap().is_none() {
            assert!(started.elapsed() < Duration::from_secs(10), "the program still runs");
            thread::sleep(Duration::from_millis(10));
        }
    }
}
