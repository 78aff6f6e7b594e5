//! Serves the pages on a thread of its own, so that neither rendering nor connections take time from
//! the event loop, and so that probes are answered while the event loop is busy.

use std::any::Any;
use std::future::Future;
use std::io;
use std::net::TcpListener;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::thread;

use endpointd_status::{Site, serve};
use tokio::sync::oneshot;
use tokio::task::AbortHandle;

use crate::supervisor::Supervisor;

const NAME: &str = "status server";

pub(crate) struct StatusServer {
    task: AbortHandle,
    /// Dropping it asks the server to stop.
    stop: oneshot::Sender<()>,
}

impl StatusServer {
    /// `listener` must not block. The pages are made on the new thread.
    pub fn start(
        listener: TcpListener,
        site: impl FnOnce() -> Site + Send + 'static,
        supervisor: &mut Supervisor,
    ) -> io::Result<Self> {
        let (stop, stopped) = oneshot::channel::<()>();
        let ended = run_on_thread(move || async move {
            let listener = tokio::net::TcpListener::from_std(listener)?;
            serve(listener, site(), stopped).await;
            Ok(())
        })?;
        let task = supervisor.spawn(NAME, async move {
            // The thread ends without a result only if the process ends.
            if let Ok(Err(panic)) = ended.await {
                resume_unwind(panic);
            }
        });
        Ok(Self { task, stop })
    }

    pub async fn stop(self, supervisor: &mut Supervisor) {
        drop(self.stop);
        supervisor.wait_for(&self.task).await;
    }
}

/// Completes when the work has ended, with its panic if it panicked.
fn run_on_thread<F>(
    work: impl FnOnce() -> F + Send + 'static,
) -> io::Result<oneshot::Receiver<Result<(), Box<dyn Any + Send>>>>
where
    F: Future<Output = io::Result<()>>,
{
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (end, ended) = oneshot::channel();
    let body = move || {
        let result = catch_unwind(AssertUnwindSafe(|| {
            if let Err(error) = runtime.block_on(async { work().await }) {
                panic!("cannot listen: {error}");
            }
        }));
        // Nobody waits for it when the daemon stops early.
        let _ = end.send(result);
    };
    thread::Builder::new().name(NAME.to_owned()).spawn(body)?;
    Ok(ended)
}
