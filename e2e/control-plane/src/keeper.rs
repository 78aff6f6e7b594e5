//! Ends programs and removes their directory as soon as their owner is gone, whether it dropped the
//! keeper, panicked, or was killed with SIGKILL. There is one way out, not two: a
//! normal stop is the same as the owner's death, only waited for.
//!
//! How: the owner holds the write ends of two pipes and nobody else does, so the kernel closes them
//! when it dies. The *anchor* is a process that only lends its process group to the programs. The
//! *watcher* is a shell that reads its pipe to the end, kills that group and removes the directory.
//! Both are in groups of their own, so Ctrl-C in a terminal reaches neither.
//!
//! The parent-death signal of Linux would not do: it fires when the *thread* that started the
//! program ends, and a shared cluster outlives the test that started it.

use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A killed program may be inside its last system call, creating a file: hence the second tries.
const WATCH: &str = r#"
cat >/dev/null
kill -s KILL -- "-$1"
for i in 1 2 3 4 5 6 7 8 9 10; do rm -rf -- "$2" && break; sleep 0.1; done
"#;

#[derive(Debug)]
pub struct Keeper {
    anchor: Child,
    watcher: Child,
}

impl Keeper {
    pub fn start(directory: &Path) -> io::Result<Self> {
        let anchor = held(Command::new("cat").stdout(Stdio::null()))?;
        let group = anchor.id().to_string();
        let mut watch = Command::new("sh");
        watch.args(["-c", WATCH, "endpointd-keeper", &group]).arg(directory).current_dir("/");
        let watcher = held(watch.stdout(Stdio::null()).stderr(Stdio::null()))?;
        Ok(Self { anchor, watcher })
    }

    /// Makes `program` one of those that end with the owner.
    pub fn adopt<'a>(&self, program: &'a mut Command) -> &'a mut Command {
        let group = i32::try_from(self.anchor.id()).expect("process ids are positive `i32`s");
        program.process_group(group)
    }
}

/// Starts `command` in a group of its own, to live until our end of its standard input closes.
fn held(command: &mut Command) -> io::Result<Child> {
    command.stdin(Stdio::piped()).process_group(0).spawn()
}

impl Drop for Keeper {
    fn drop(&mut self) {
        // The watcher first: the group must still be there when it kills it.
        for child in [&mut self.watcher, &mut self.anchor] {
            child.stdin.take();
            // It cannot be waited for only if somebody else did: then it is gone as well.
            let _ = child.wait();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::thread;
    use std::time::{Duration, Instant};

    use super::*;
    use crate::turns;

    #[test]
    fn dropping_the_keeper_ends_the_programs_and_removes_the_directory() {
        let _turn = turns::take();
        let directory = tempfile::tempdir().unwrap().keep();
        std::fs::write(directory.join("file"), "").unwrap();
        let keeper = Keeper::start(&directory).unwrap();
        let mut program = Command::new("sleep");
        let mut program = keeper.adopt(program.arg("600")).spawn().unwrap();

        assert_eq!(program.try_wait().unwrap(), None);
        drop(keeper);
        assert!(!directory.exists());
        let started = Instant::now();
        while program.try_wait().unwrap().is_none() {
            assert!(started.elapsed() < Duration::from_secs(10), "the program runs on");
            thread::sleep(Duration::from_millis(10));
        }
    }
}
