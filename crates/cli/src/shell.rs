//! What commands that run for a while have in common: threads, and an end by signal.

use std::panic::resume_unwind;

use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;

use crate::refusal::Refusal;

/// One for an API server, one for its clients.
#[cfg(feature = "playground")]
const WORKERS: usize = 2;

#[cfg(feature = "playground")]
pub fn workers() -> Result<Runtime, Refusal> {
    build(Builder::new_multi_thread().worker_threads(WORKERS))
}

/// For the controllers alone. A change wakes us several times, each time for a moment: handing
/// it from thread to thread costs more than it saves.
pub fn on_one_thread<T: Send + 'static>(
    before_waiting: impl Fn() + Send + Sync + 'static,
    work: impl Future<Output = T> + Send + 'static,
) -> Result<T, Refusal> {
    let runtime = build(Builder::new_current_thread().on_thread_park(before_waiting))?;
    // As a task: what the runtime itself waits for is woken by way of the kernel.
    runtime.block_on(async {
        let done = tokio::spawn(work).await;
        Ok(done.unwrap_or_else(|error| resume_unwind(error.into_panic())))
    })
}

fn build(builder: &mut Builder) -> Result<Runtime, Refusal> {
    let built = builder.enable_all().build();
    built.map_err(|reason| Refusal::new(reason.to_string(), "are there threads left?"))
}

/// The first signal asks to stop; a second one does not wait.
pub fn stop_signal() -> Result<impl Future<Output = ()>, Refusal> {
    let listen = |kind| {
        signal(kind).map_err(|reason| {
            Refusal::new(format!("cannot listen for signals: {reason}"), "is this a Unix system?")
        })
    };
    let (mut terminate, mut interrupt) =
        (listen(SignalKind::terminate())?, listen(SignalKind::interrupt())?);
    Ok(async move {
        let (stop, stopped) = oneshot::channel();
        // In a task of its own: who waits for the end asks at every turn, and two signals take much
        // longer to ask than a channel.
        tokio::spawn(async move {
            either(&mut terminate, &mut interrupt).await;
            // Nobody waits any more when all is over anyway.
            let _ = stop.send(());
            either(&mut terminate, &mut interrupt).await;
            tracing::warn!("stopped at once, by a second signal");
            std::process::exit(1);
        });
        let _ = stopped.await;
    })
}

async fn either(one: &mut Signal, other: &mut Signal) {
    tokio::select! {
        _ = one.recv() => {}
        _ = other.recv() => {}
    }
}
