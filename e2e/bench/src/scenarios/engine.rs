//! The engine alone: no server, no sockets, decoded changes in, writes out and acknowledged at once.
//!
//! It runs in a process of its own, because memory is what the kernel says is resident, and the
//! process that runs the other scenarios has a past.

use std::io::{self, BufReader, BufWriter};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::bench::Bench;
use crate::contender::Contender;
use crate::load::{Layout, grouped};
use crate::past::{Past, leave};
use crate::process::Usage;
use crate::puppet::Puppet;
use crate::record::{Measure, Scenario, Unit};

const SCENARIO: Scenario = Scenario::Engine;
/// The hidden argument that makes this program measure an engine and print JSON.
pub const ARGUMENT: &str = "engine-alone";
/// The allocator gives memory back within this.
const DECAY: Duration = Duration::from_secs(3);
const PODS_A_SERVICE: usize = 15;
const N_FLIPS: usize = 20_000;
const CROWDS: [usize; 5] = [100, 500, 1000, 2000, 5000];
const CROWD_PODS: usize = 2;

/// What is measured in a process of its own: memory that one part gave back would look like memory
/// that the next one does not need.
const PARTS: [(&str, Part); 3] =
    [("published", published), ("restarted", restarted), ("crowded", crowded)];

/// Publishes everything and prints it: what [`restarted`] starts on.
const EARLIER: &str = "earlier";

/// Given a number of pods, what was measured.
type Part = fn(usize) -> Result<Value>;

pub fn run(bench: &mut Bench<'_>) -> Result<()> {
    let n_pods = bench.scale.engine_pods;
    for round in 0..bench.scale.n_rounds {
        bench.step(SCENARIO, &format!("{} pods", grouped(n_pods)), round, Contender::Ours);
        for (part, _) in PARTS {
            bench.progress.detail(part);
            for one in measure(part, n_pods)?.as_array().context("not a list")? {
                let case = one["case"].as_str().context("no case")?;
                let measures = measures(&one["measures"])?;
                bench.keep(SCENARIO, case, Contender::Ours, measures);
            }
        }
    }
    Ok(())
}

fn measure(part: &str, n_pods: usize) -> Result<Value> {
    let output = another_process(part, n_pods)?.output()?;
    let problem = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "the engine alone failed: {problem}");
    Ok(serde_json::from_slice(&output.stdout)?)
}

fn measures(values: &Value) -> Result<Vec<Measure>> {
    let values = values.as_array().context("not a list")?;
    let measure = |value: &Value| {
        let name = value["name"].as_str().context("no name")?;
        let unit = match value["unit"].as_str() {
            Some("us") => Unit::Microseconds,
            Some("bytes") => Unit::Bytes,
            _ => Unit::Count,
        };
        Ok(Measure::new(name, unit, value["value"].as_f64().context("no value")?))
    };
    values.iter().map(measure).collect()
}

fn another_process(part: &str, n_pods: usize) -> Result<Command> {
    let mut program = Command::new(std::env::current_exe()?);
    program.args([ARGUMENT, part, &n_pods.to_string()]);
    Ok(program)
}

/// The other side: what the process of its own prints.
pub fn alone(part: &str, n_pods: usize) -> Result<()> {
    if part == EARLIER {
        let mut puppet = Puppet::with_store(layout(n_pods));
        puppet.start();
        return Ok(leave(&puppet.into_stored(), &mut BufWriter::new(io::stdout()))?);
    }
    let (_, measure) = PARTS.iter().find(|(name, _)| *name == part).context("no such part")?;
    println!("{}", measure(n_pods)?);
    Ok(())
}

fn layout(n_pods: usize) -> Layout {
    Layout::spread(n_pods.div_ceil(PODS_A_SERVICE), n_pods)
}

/// Nothing is published at first.
fn published(n_pods: usize) -> Result<Value> {
    let before = Usage::own()?.resident_bytes;
    let mut puppet = Puppet::new(layout(n_pods));
    puppet.start();
    let started = puppet.take_busy();
    std::thread::sleep(DECAY);
    let resident = Usage::own()?.resident_bytes.saturating_sub(before);
    (0..N_FLIPS).for_each(|number| puppet.flip(number * STRIDE % n_pods));
    let flipped = puppet.take_busy();
    (0..N_FLIPS).for_each(|number| puppet.touch(number * STRIDE % n_pods));
    let touched = puppet.take_busy();
    let measures = json!([
        bytes_a_pod("resident, all published", resident, n_pods),
        micros("a pod of a cold start", started, n_pods),
        micros(FLIP, flipped, N_FLIPS),
        rate("flips a second", flipped, N_FLIPS),
        micros("a change that does not show", touched, N_FLIPS),
        rate("changes that do not show a second", touched, N_FLIPS),
    ]);
    Ok(json!([{"case": layout(n_pods).describe(), "measures": measures}]))
}

/// Everything is published already, by another process: an engine that had been in this one would
/// leave gaps in its memory.
fn restarted(n_pods: usize) -> Result<Value> {
    let before = Usage::own()?.resident_bytes;
    let mut earlier = another_process(EARLIER, n_pods)?.stdout(Stdio::piped()).spawn()?;
    let past = Past(BufReader::new(earlier.stdout.take().context("it prints nothing")?));
    let mut puppet = Puppet::after(layout(n_pods), past);
    puppet.start();
    let restarted = puppet.take_busy();
    ensure!(earlier.wait()?.success(), "the engine before this one failed");
    ensure!(puppet.n_writes() == 0, "a restart wrote {} objects", puppet.n_writes());
    std::thread::sleep(DECAY);
    let resident = Usage::own()?.resident_bytes.saturating_sub(before);
    let measures = json!([
        bytes_a_pod("resident, after a restart", resident, n_pods),
        micros("a pod of a restart", restarted, n_pods),
    ]);
    Ok(json!([{"case": layout(n_pods).describe(), "measures": measures}]))
}

/// One namespace with more and more Services. The best of some tries: others only slow it down.
fn crowded(_: usize) -> Result<Value> {
    let of_crowd = |n_services: usize| {
        let layout = Layout::crowded(n_services, n_services * CROWD_PODS);
        let mut puppet = Puppet::new(layout);
        puppet.start();
        puppet.take_busy();
        let tries = (0..TRIES).map(|_| {
            (0..N_FLIPS).for_each(|number| puppet.flip(number * STRIDE % layout.n_pods));
            puppet.take_busy()
        });
        let best = tries.min().unwrap_or_default();
        let case = format!("{} Services in one namespace", grouped(n_services));
        json!({"case": case, "measures": [micros(FLIP, best, N_FLIPS)]})
    };
    Ok(CROWDS.map(of_crowd).to_vec().into())
}

/// How measures of memory begin.
pub const BYTES: &str = "bytes a pod";
const FLIP: &str = "a flip, planned and written";
const TRIES: usize = 3;
/// Neighbours in a list are not neighbours in memory.
const STRIDE: usize = 7919;

fn bytes_a_pod(name: &str, bytes: u64, n_pods: usize) -> Value {
    let name = format!("{BYTES} {name}");
    json!({"name": name, "unit": "bytes", "value": bytes / n_pods as u64})
}

fn micros(name: &str, time: Duration, n: usize) -> Value {
    json!({"name": name, "unit": "us", "value": time.as_secs_f64() * 1e6 / n as f64})
}

fn rate(name: &str, time: Duration, n: usize) -> Value {
    json!({"name": name, "unit": "count", "value": n as f64 / time.as_secs_f64()})
}
