//! The engine without API server and sockets: decoded objects in, writes out, acknowledged
//! immediately.
//!
//! It runs in a process of its own, because resident memory of the bench process includes memory of
//! earlier scenarios.

use std::io::{self, BufReader, BufWriter};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use endpointd_engine::{ControllerSettings, InPlaceSettings, Settings};
use endpointd_model::Controller;
use serde_json::{Value, json};

use crate::bench::Bench;
use crate::in_memory_driver::InMemoryDriver;
use crate::load::{Layout, grouped};
use crate::object_dump::{ObjectDump, write_dump};
use crate::process::Usage;
use crate::record::{Measure, Scenario, Unit};
use crate::subject::Subject;

const SCENARIO: Scenario = Scenario::Engine;
/// Hidden argument: measure the engine and print JSON.
pub const ARGUMENT: &str = "engine-process";
/// The allocator returns unused memory within this time.
const DECAY: Duration = Duration::from_secs(3);
const PODS_PER_SERVICE_SPREAD: usize = 15;
const N_TOGGLES: usize = 20_000;
const SERVICE_COUNTS: [usize; 5] = [100, 500, 1000, 2000, 5000];
const PODS_PER_SERVICE: usize = 2;
const ONE_SERVICE_PODS: [usize; 4] = [10, 500, 5_000, 50_000];
const N_SLOW_TOGGLES: usize = 100;
/// Longer than every cooldown.
const IDLE: Duration = Duration::from_secs(2);

/// Each part runs in a process of its own, so that memory freed by one part does not reduce the
/// growth that the next one measures.
const PARTS: [(&str, Part); 4] = [
    ("published", published),
    ("restarted", restarted),
    ("services-per-namespace", services_per_namespace),
    ("one-service", one_service),
];

/// The part that publishes everything and prints a dump, from which [`restarted`] starts.
const EARLIER: &str = "earlier";

/// Measures with the given number of pods.
type Part = fn(usize) -> Result<Value>;

pub fn run(bench: &mut Bench<'_>) -> Result<()> {
    let n_pods = bench.scale.engine_pods;
    for round in 0..bench.scale.n_rounds {
        bench.step(SCENARIO, &format!("{} pods", grouped(n_pods)), round, Subject::Endpointd);
        for (part, _) in PARTS {
            bench.progress.detail(part);
            for one in measure(part, n_pods)?.as_array().context("not a list")? {
                let case = one["case"].as_str().context("no case")?;
                let measures = measures(&one["measures"])?;
                bench.keep(SCENARIO, case, Subject::Endpointd, measures);
            }
        }
    }
    Ok(())
}

fn measure(part: &str, n_pods: usize) -> Result<Value> {
    let output = engine_process(part, n_pods)?.output()?;
    let problem = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "the engine process failed: {problem}");
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

fn engine_process(part: &str, n_pods: usize) -> Result<Command> {
    let mut program = Command::new(std::env::current_exe()?);
    program.args([ARGUMENT, part, &n_pods.to_string()]);
    Ok(program)
}

/// The entry point of the engine process.
pub fn run_process(part: &str, n_pods: usize) -> Result<()> {
    if part == EARLIER {
        let mut driver = InMemoryDriver::with_store(layout(n_pods));
        driver.start();
        return Ok(write_dump(&driver.into_stored(), &mut BufWriter::new(io::stdout()))?);
    }
    let (_, measure) = PARTS.iter().find(|(name, _)| *name == part).context("no such part")?;
    println!("{}", measure(n_pods)?);
    Ok(())
}

fn layout(n_pods: usize) -> Layout {
    Layout::spread(n_pods.div_ceil(PODS_PER_SERVICE_SPREAD), n_pods)
}

/// Starts without published objects.
fn published(n_pods: usize) -> Result<Value> {
    let before = Usage::own()?.resident_bytes;
    let mut driver = InMemoryDriver::new(layout(n_pods));
    driver.start();
    let started = driver.take_busy();
    std::thread::sleep(DECAY);
    let settled = Usage::own()?;
    let resident = settled.resident_bytes.saturating_sub(before);
    (0..N_TOGGLES).for_each(|number| driver.toggle(number * STRIDE % n_pods));
    let toggled = driver.take_busy();
    let toggled_cpu = Usage::own()? - settled;
    (0..N_TOGGLES).for_each(|number| driver.touch(number * STRIDE % n_pods));
    let touched = driver.take_busy();
    let measures = json!([
        bytes_per_pod("resident, all published", resident, n_pods),
        micros("time per pod, cold start", started, n_pods),
        micros(TOGGLE, toggled, N_TOGGLES),
        rate("toggles per second", toggled, N_TOGGLES),
        // Also on a machine that does other work.
        micros("CPU per toggle, with the driver", toggled_cpu, N_TOGGLES),
        micros("time per unpublished change", touched, N_TOGGLES),
        rate("unpublished changes per second", touched, N_TOGGLES),
    ]);
    Ok(json!([{"case": layout(n_pods).describe(), "measures": measures}]))
}

/// Starts from objects that another process published: an earlier engine in this process would
/// leave fragmented memory.
fn restarted(n_pods: usize) -> Result<Value> {
    let before = Usage::own()?.resident_bytes;
    let mut earlier = engine_process(EARLIER, n_pods)?.stdout(Stdio::piped()).spawn()?;
    let dump =
        ObjectDump(BufReader::new(earlier.stdout.take().context("standard output is not piped")?));
    let mut driver = InMemoryDriver::restarted(layout(n_pods), dump);
    driver.start();
    let restarted = driver.take_busy();
    ensure!(earlier.wait()?.success(), "the earlier engine failed");
    ensure!(driver.n_writes() == 0, "a restart wrote {} objects", driver.n_writes());
    std::thread::sleep(DECAY);
    let resident = Usage::own()?.resident_bytes.saturating_sub(before);
    let measures = json!([
        bytes_per_pod("resident, after a restart", resident, n_pods),
        micros("time per pod, restart", restarted, n_pods),
    ]);
    Ok(json!([{"case": layout(n_pods).describe(), "measures": measures}]))
}

/// One namespace with an increasing number of Services. The minimum of some tries, because other
/// processes can only make a try slower.
fn services_per_namespace(_: usize) -> Result<Value> {
    let measure = |n_services: usize| {
        let layout = Layout::in_one_namespace(n_services, n_services * PODS_PER_SERVICE);
        let mut driver = InMemoryDriver::new(layout);
        driver.start();
        driver.take_busy();
        let tries = (0..TRIES).map(|_| {
            (0..N_TOGGLES).for_each(|number| driver.toggle(number * STRIDE % layout.n_pods));
            driver.take_busy()
        });
        let best = tries.min().unwrap_or_default();
        let case = format!("{} Services in one namespace", grouped(n_services));
        json!({"case": case, "measures": [micros(TOGGLE, best, N_TOGGLES)]})
    };
    Ok(SERVICE_COUNTS.map(measure).to_vec().into())
}

/// One Service with an increasing number of pods, and only the controller of slices: Endpoints are
/// one object, so a change of it always costs time in proportion to the pods.
fn one_service(_: usize) -> Result<Value> {
    let measure = |n_pods: &usize| {
        let drivers = [InPlaceSettings::default().slices_min, usize::MAX].map(|slices_min| {
            let mut slices = ControllerSettings::new(Controller::Slices);
            slices.in_place.slices_min = slices_min;
            let settings = Settings { controllers: vec![slices], ..Settings::default() };
            let mut driver = InMemoryDriver::with_settings(Layout::spread(1, *n_pods), settings);
            driver.start();
            toggle_slowly(&mut driver, *n_pods, 2);
            driver
        });
        let [in_place, whole] = drivers.map(|mut driver| {
            let tries = (0..TRIES).map(|_| toggle_slowly(&mut driver, *n_pods, N_SLOW_TOGGLES));
            tries.min().unwrap_or_default()
        });
        let measures = [
            micros("time per toggle, slices only", in_place, N_SLOW_TOGGLES),
            micros("time per toggle, the whole Service planned", whole, N_SLOW_TOGGLES),
        ];
        json!({"case": format!("one Service, {} pods", grouped(*n_pods)), "measures": measures})
    };
    Ok(ONE_SERVICE_PODS.iter().map(measure).collect())
}

/// Each toggle comes when no cooldown delays it.
fn toggle_slowly(driver: &mut InMemoryDriver, n_pods: usize, n_toggles: usize) -> Duration {
    driver.take_busy();
    for number in 0..n_toggles {
        driver.pass(IDLE);
        driver.toggle(number * STRIDE % n_pods);
    }
    driver.take_busy()
}

/// Prefix of memory measurements.
pub const BYTES: &str = "bytes per pod";
const TOGGLE: &str = "time per toggle, planned and written";
const TRIES: usize = 3;
/// Successive toggles concern pods that are not adjacent in memory.
const STRIDE: usize = 7919;

fn bytes_per_pod(name: &str, bytes: u64, n_pods: usize) -> Value {
    let name = format!("{BYTES} {name}");
    json!({"name": name, "unit": "bytes", "value": bytes / n_pods as u64})
}

fn micros(name: &str, time: Duration, n: usize) -> Value {
    json!({"name": name, "unit": "us", "value": time.as_secs_f64() * 1e6 / n as f64})
}

fn rate(name: &str, time: Duration, n: usize) -> Value {
    json!({"name": name, "unit": "count", "value": n as f64 / time.as_secs_f64()})
}
