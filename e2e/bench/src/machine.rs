//! Machine, versions, and commit of a measurement.

use std::fs;

use endpointd_control_plane::Release;
use endpointd_control_plane::program::ETCD_VERSION;

use crate::scale::Scale;

/// One line per property.
pub fn describe(command: &str, scale: &Scale) -> String {
    let lines = [
        ("command", command.to_owned()),
        ("rounds", scale.n_rounds.to_string()),
        ("endpointd", format!("{}, {}", env!("CARGO_PKG_VERSION"), commit())),
        ("kube-controller-manager, kube-apiserver", Release::under_test().version().to_owned()),
        ("etcd", format!("{ETCD_VERSION}, without fsync")),
        ("processor", processor()),
        ("memory", memory()),
        ("kernel", first_line("/proc/sys/kernel/osrelease")),
    ];
    lines.map(|(name, value)| format!("{name}: {value}\n")).concat()
}

/// The line below the title of a chart.
pub fn caption(scale: &Scale) -> String {
    format!(
        "median of {} rounds, whiskers from smallest to largest; {}; Kubernetes {}",
        scale.n_rounds,
        processor(),
        Release::under_test().version()
    )
}

fn processor() -> String {
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let model = model.map_or("unknown", |(_, model)| model);
    let n_cores = std::thread::available_parallelism().map_or(1, usize::from);
    format!("{n_cores} × {model}")
}

fn memory() -> String {
    let info = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let total = info.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kilobytes = total.and_then(|total| total.trim().strip_suffix(" kB")?.parse::<f64>().ok());
    kilobytes.map_or_else(|| "unknown".to_owned(), |kb| format!("{:.1} GiB", kb / 1_048_576.0))
}

fn first_line(path: &str) -> String {
    let text = fs::read_to_string(path).unwrap_or_default();
    text.lines().next().unwrap_or("unknown").to_owned()
}

/// The commit of this working copy, with `-dirty` if it has changes.
fn commit() -> String {
    let describe = ["describe", "--always", "--dirty", "--abbrev=12"];
    let output = std::process::Command::new("git")
        .args(describe)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output();
    let text = output.ok().and_then(|output| String::from_utf8(output.stdout).ok());
    text.map(|text| text.trim().to_owned())
        .filter(|text| !text.is_empty())
        .unwrap_or_else(|| "unknown commit".to_owned())
}
