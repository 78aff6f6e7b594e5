//! Readiness toggles while nobody looks at the live page, and while a hundred readers follow it. One
//! daemon runs both, one after the other, because rounds differ more than the readers cost.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use endpointd_control_plane::Audit;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::bench::Bench;
use crate::published::ExpectedState;
use crate::record::{Measure, Scenario};
use crate::scenarios::churn::{IDLE_WAIT_MAX, Run};
use crate::subject::{RunningSubject, Subject};
use crate::test_bed::Publication;
use crate::toggles::ToggleSequence;

const SCENARIO: Scenario = Scenario::Readers;
/// Below the maximum of the daemon.
const N_READERS: usize = 100;
/// Toggles per second.
const RATE: u32 = 50;
/// Until every reader has its first message.
const CONNECTED: Duration = Duration::from_secs(2);

pub const WITHOUT: &str = "no reader";
pub const WITH: &str = "100 readers";

pub fn run(bench: &mut Bench<'_>) -> Result<()> {
    for round in 0..bench.scale.n_rounds {
        bench.step(SCENARIO, &bench.scale.settled.describe(), round, Subject::Endpointd);
        measure_round(bench, round)?;
    }
    Ok(())
}

fn measure_round(bench: &mut Bench<'_>, round: usize) -> Result<()> {
    let layout = bench.scale.settled;
    let saved = bench.clusters.get(layout, Publication::Complete)?;
    let test_bed = bench.clusters.start(&saved, Audit::Off, ExpectedState::all(layout))?;
    let running = RunningSubject::start(Subject::Endpointd, &test_bed)?;
    running.wait_until_idle(IDLE_WAIT_MAX)?;
    let page = running.status_address().context("endpointd has a page")?;
    let run = Run { rate: RATE, time: bench.scale.churn };
    let mut sequence = ToggleSequence::default();
    let mut cases = [(WITHOUT, 0), (WITH, N_READERS)];
    cases.rotate_left(round % 2);
    for (case, n_readers) in cases {
        let readers = bench.runtime.block_on(Readers::connect(page, n_readers))?;
        let mut measures = run.measure(bench, &test_bed, &running, &mut sequence)?;
        measures.push(Measure::bytes("bytes to one reader", readers.end()?));
        bench.keep(SCENARIO, case, Subject::Endpointd, measures);
    }
    running.stop()
}

/// Open streams of the page, each read by a task.
struct Readers {
    tasks: JoinSet<()>,
    n_bytes: Arc<AtomicU64>,
    n_readers: usize,
}

impl Readers {
    async fn connect(page: SocketAddr, n_readers: usize) -> Result<Self> {
        let n_bytes = Arc::new(AtomicU64::new(0));
        let mut tasks = JoinSet::new();
        for _ in 0..n_readers {
            let mut stream =
                TcpStream::connect(page).await.context("cannot connect to the page")?;
            let request = format!("GET /api/v1/stream HTTP/1.1\r\nhost: {page}\r\n\r\n");
            stream.write_all(request.as_bytes()).await?;
            let n_bytes = n_bytes.clone();
            tasks.spawn(async move {
                let mut buffer = vec![0; 64 * 1024];
                while let Ok(n @ 1..) = stream.read(&mut buffer).await {
                    n_bytes.fetch_add(n as u64, Ordering::Relaxed);
                }
            });
        }
        tokio::time::sleep(CONNECTED).await;
        Ok(Self { tasks, n_bytes, n_readers })
    }

    /// The bytes that each has received. All must have been connected until now.
    fn end(mut self) -> Result<u64> {
        ensure!(self.tasks.try_join_next().is_none(), "a reader lost its connection");
        let Some(n_readers) = u64::try_from(self.n_readers).ok().filter(|n| *n > 0) else {
            return Ok(0);
        };
        let n_bytes = self.n_bytes.load(Ordering::Relaxed) / n_readers;
        ensure!(n_bytes > 0, "the readers received nothing");
        Ok(n_bytes)
    }
}
