//! Serves the pages, over HTTPS and on the loopback interface, on a thread of its own, so that neither rendering nor connections take time from
//! the event loop, and so that probes are answered while the event loop is busy.

use std::any::Any;
use std::future::Future;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::thread;

use endpointd_status::{AddedPages, Metrics, Site, StatusHandle, serve};
use tokio::net::TcpListener;
use tokio::sync::{oneshot, watch};
use tokio::task::AbortHandle;

use crate::client_authorities;
use crate::listeners::{Listeners, SecureListener};
use crate::supervisor::Supervisor;

const NAME: &str = "status server";

pub(crate) struct StatusServer {
    task: AbortHandle,
    /// Dropping it asks the server to stop.
    stop: watch::Sender<()>,
}

/// What the servers show.
pub(crate) struct Pages {
    pub status: StatusHandle,
    pub metrics: Metrics,
    /// Further pages for the plain HTTP server.
    pub added_pages: Option<AddedPages>,
}

impl StatusServer {
    /// Both servers run on one new thread. `None` if there is no listener.
    pub fn start(
        listeners: Listeners,
        pages: Pages,
        supervisor: &mut Supervisor,
    ) -> io::Result<Option<Self>> {
        if listeners.is_empty() {
            return Ok(None);
        }
        let (stop, stopped) = watch::channel(());
        let ended = run_on_thread(move || serve_all(listeners, pages, stopped))?;
        let task = supervisor.spawn(NAME, async move {
            // The thread ends without a result only if the process ends.
            if let Ok(Err(panic)) = ended.await {
                resume_unwind(panic);
            }
        });
        Ok(Some(Self { task, stop }))
    }

    pub async fn stop(self, supervisor: &mut Supervisor) {
        drop(self.stop);
        supervisor.wait_for(&self.task).await;
    }
}

async fn serve_all(
    listeners: Listeners,
    pages: Pages,
    stopped: watch::Receiver<()>,
) -> io::Result<()> {
    let stopped = || {
        let mut stopped = stopped.clone();
        async move { stopped.changed().await }
    };
    let Pages { status, metrics, added_pages } = pages;
    let Listeners { plain, secure } = listeners;
    let plain = async {
        let Some(listener) = plain else { return Ok(()) };
        let site = Site::new(&status, &metrics);
        let site = match added_pages {
            Some(pages) => site.with_added(pages(&status, &metrics)),
            None => site,
        };
        serve(TcpListener::from_std(listener)?, None, site, stopped()).await;
        Ok(())
    };
    let secure = async {
        let Some(SecureListener { listener, tls, guard, client }) = secure else { return Ok(()) };
        let site = Site::new(&status, &metrics).guarded_by(guard);
        let listener = TcpListener::from_std(listener)?;
        tokio::select! {
            () = serve(listener, Some(tls.clone()), site, stopped()) => Ok(()),
            never = client_authorities::follow(&client, &tls) => match never {},
        }
    };
    let (plain, secure) = tokio::join!(plain, secure);
    plain.and(secure)
}

/// Completes when the work has ended, with its panic if it panicked.
fn run_on_thread<F>(
    work: impl FnOnce() -> F + Send + 'static,
) -> io::Result<oneshot::Receiver<Result<(), Box<dyn Any + Send>>>>
where
    F: Future<Output = io::Result<()>>,
{
    let (end, ended) = oneshot::channel();
    let body = move || {
        let result = catch_unwind(AssertUnwindSafe(|| {
            // Built here: if the thread cannot be started, a runtime must not be dropped inside of another.
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let runtime = runtime.unwrap_or_else(|error| panic!("cannot start: {error}"));
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
