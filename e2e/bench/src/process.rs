//! CPU and memory of a process, from `/proc`.

use std::fs;
use std::ops::Sub;
use std::time::Duration;

use anyhow::{Context, Result};

/// `/proc/*/stat` has CPU time in hundredths of a second (`USER_HZ`).
const TICK: Duration = Duration::from_millis(10);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// All threads, in user and in kernel mode.
    pub cpu: Duration,
    pub resident_bytes: u64,
    /// The maximum of resident memory.
    pub peak_bytes: u64,
}

impl Usage {
    pub fn of(pid: u32) -> Result<Self> {
        let read = |file: &str| {
            let path = format!("/proc/{pid}/{file}");
            fs::read_to_string(&path).with_context(|| format!("cannot read `{path}`"))
        };
        let cpu = cpu_of(&read("stat")?).context("unexpected form of /proc/*/stat")?;
        // The values per thread are exact but do not include threads that have ended.
        let cpu = cpu.max(cpu_of_threads(pid));
        let status = read("status")?;
        let bytes = |name: &str| {
            bytes_of(&status, name).with_context(|| format!("/proc/*/status has no `{name}`"))
        };
        Ok(Self { cpu, resident_bytes: bytes("VmRSS")?, peak_bytes: bytes("VmHWM")? })
    }

    /// Usage of this process.
    pub fn own() -> Result<Self> {
        Self::of(std::process::id())
    }
}

/// CPU time between two samples of the same process.
impl Sub for Usage {
    type Output = Duration;

    fn sub(self, before: Self) -> Duration {
        self.cpu.saturating_sub(before.cpu)
    }
}

fn cpu_of(stat: &str) -> Option<Duration> {
    // The program name is in parentheses and can contain any character.
    let mut numbers = stat.rsplit_once(')')?.1.split_whitespace();
    let user: u32 = numbers.nth(11)?.parse().ok()?;
    let system: u32 = numbers.next()?.parse().ok()?;
    Some(TICK * (user + system))
}

/// CPU time of the current threads; zero if the kernel does not report it.
fn cpu_of_threads(pid: u32) -> Duration {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let nanos = |thread: fs::DirEntry| {
        let stat = fs::read_to_string(thread.path().join("schedstat")).ok()?;
        stat.split_whitespace().next()?.parse::<u64>().ok()
    };
    Duration::from_nanos(threads.filter_map(nanos).sum())
}

fn bytes_of(status: &str, name: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    let kilobytes: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kilobytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_is_user_plus_system_time_for_any_program_name() {
        let stat = "7 (a) b) S 1 1 1 0 -1 4 9 9 9 9 120 30 5 5 20 0 4 0 77 1 1 1";
        assert_eq!(cpu_of(stat), Some(Duration::from_millis(1500)));
    }

    #[test]
    fn memory_is_reported_in_kilobytes() {
        let status = "VmPeak:\t 9 kB\nVmHWM:\t  20 kB\nVmRSS:\t  12 kB\n";
        assert_eq!(bytes_of(status, "VmRSS"), Some(12 * 1024));
        assert_eq!(bytes_of(status, "VmHWM"), Some(20 * 1024));
        assert_eq!(bytes_of(status, "VmSwap"), None);
    }

    #[test]
    fn usage_of_this_process_has_memory() {
        let usage = Usage::own().unwrap();
        assert!(usage.peak_bytes >= usage.resident_bytes && usage.resident_bytes > 0);
    }
}
