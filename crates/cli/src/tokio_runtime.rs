//! Tokio runtimes and signals of the commands that run until stopped.

use std::panic::resume_unwind;

use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;

use crate::cli_error::CliError;

/// One for an API server, one for its clients.
#[cfg(feature = "playground")]
const WORKER_THREADS: usize = 2;

#[cfg(feature = "playground")]
pub fn workers() -> Result<Runtime, CliError> {
    build(Builder::new_multi_thread().worker_threads(WORKER_THREADS))
}

/// For the controllers alone. Every change wakes several tasks for a short time, and moving them
/// between threads costs more than it saves.
pub fn run_on_current_thread<T: Send + 'static>(
    work: impl Future<Output = T> + Send + 'static,
) -> Result<T, CliError> {
    let runtime = build(&mut Builder::new_current_thread())?;
    // Spawned, because wake-ups of the future in `block_on` go through the kernel.
    runtime.block_on(async {
        let done = tokio::spawn(work).await;
        Ok(done.unwrap_or_else(|error| resume_unwind(error.into_panic())))
    })
}

fn build(builder: &mut Builder) -> Result<Runtime, CliError> {
    let built = builder.enable_all().build();
    built.map_err(|reason| {
        CliError::new(reason.to_string(), "check the limit of threads (`ulimit -u`)")
    })
}

/// The first signal completes the future; the second one ends the process.
pub fn stop_signal() -> Result<impl Future<Output = ()>, CliError> {
    let listen = |kind| {
        signal(kind).map_err(|reason| {
            CliError::new(
                format!("cannot listen for signals: {reason}"),
                "endpointd needs a Unix system",
            )
        })
    };
    let (mut terminate, mut interrupt) =
        (listen(SignalKind::terminate())?, listen(SignalKind::interrupt())?);
    Ok(async move {
        let (stop, stopped) = oneshot::channel();
        // In a task of its own: the caller polls the future in every iteration of its loop, and
        // polling two `Signal`s is expensive compared with a oneshot channel.
        tokio::spawn(async move {
            any_signal(&mut terminate, &mut interrupt).await;
            // Fails only if the command has ended.
            let _ = stop.send(());
            any_signal(&mut terminate, &mut interrupt).await;
            tracing::warn!("stopped by a second signal");
            std::process::exit(1);
        });
        let _ = stopped.await;
    })
}

async fn any_signal(one: &mut Signal, other: &mut Signal) {
    tokio::select! {
        _ = one.recv() => {}
        _ = other.recv() => {}
    }
}
