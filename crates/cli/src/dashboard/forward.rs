//! Forwards connections to the chosen pod. If it is gone, or if another pod leads, that one is chosen.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use endpointd_client::{PodConnection, PortForwarder};
use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use super::pod::{ChosenPod, PodChoice};
use crate::cli_error::CliError;
use crate::stderr;

/// What the page answers with if it is there.
const QUESTION: &[u8] = b"GET /api/v1 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
const ANSWER_MAX: Duration = Duration::from_secs(10);
const ANSWER_BYTES_MAX: usize = 16 << 10;
/// How often it is asked which pod leads.
const FOLLOW: Duration = Duration::from_secs(3);
/// A connection that cannot be accepted, for example because there are too many open files.
const ACCEPT_RETRY: Duration = Duration::from_millis(100);

pub struct Forward {
    choice: PodChoice,
    forwarder: PortForwarder,
    port: u16,
    pod: Mutex<ChosenPod>,
    /// Changes when another pod leads: connections to the one before end, and pages connect again.
    n_leaders: watch::Sender<u64>,
    /// The last problem: the same one is said once.
    last_problem: Mutex<String>,
}

impl Forward {
    /// Chooses a pod, and asks it whether it serves the page.
    pub async fn start(
        choice: PodChoice,
        forwarder: PortForwarder,
        port: u16,
    ) -> Result<Self, CliError> {
        let pod = Mutex::new(choice.choose().await?);
        let (n_leaders, last_problem) = (watch::Sender::new(0), Mutex::default());
        let forward = Self { choice, forwarder, port, pod, n_leaders, last_problem };
        forward.ask().await?;
        Ok(forward)
    }

    /// `endpointd/endpointd-5d8f, which leads`.
    pub fn whose(&self) -> String {
        let ChosenPod { name, leads } = self.pod();
        let leads = if leads { ", which leads" } else { "" };
        format!("{}/{name}{leads}", self.choice.namespace)
    }

    async fn ask(&self) -> Result<(), CliError> {
        let (port, pod) = (self.port, self.pod().name);
        let connection = self.open().await?;
        let (mut near, far) = duplex(ANSWER_BYTES_MAX);
        let copied = tokio::spawn(connection.copy(far));
        let asked = async {
            near.write_all(QUESTION).await?;
            let mut answer = Vec::new();
            (&mut near).take(ANSWER_BYTES_MAX as u64).read_to_end(&mut answer).await?;
            Ok::<_, std::io::Error>(answer)
        };
        let answer = timeout(ANSWER_MAX, asked).await.ok().and_then(Result::ok);
        drop(near);
        let is_page = answer.is_some_and(|answer| answer.starts_with(b"HTTP/1.1 200 "));
        if is_page {
            return Ok(());
        }
        let why = match copied.await {
            Ok(Err(reported)) => format!(": {reported}"),
            Ok(Ok(())) | Err(_) => String::new(),
        };
        Err(CliError::new(
            format!("pod {pod} does not serve the live page on port {port}{why}"),
            "its `--metrics-bind-address` has the port, `0` for no page; `--pod-port` names another",
        ))
    }

    /// To the chosen pod; if that fails, to one that is chosen now.
    async fn open(&self) -> Result<PodConnection, CliError> {
        let namespace = &self.choice.namespace;
        let pod = self.pod().name;
        if let Ok(connection) = self.forwarder.open(namespace, &pod, self.port).await {
            return Ok(connection);
        }
        let chosen = self.choice.choose().await?;
        let name = chosen.name.clone();
        *self.pod.lock().unwrap_or_else(PoisonError::into_inner) = chosen;
        self.forwarder.open(namespace, &name, self.port).await.map_err(|error| {
            CliError::new(
                format!("cannot forward a port to pod {namespace}/{name}: {error}"),
                format!("`kubectl auth can-i create pods/portforward -n {namespace}`"),
            )
        })
    }

    fn pod(&self) -> ChosenPod {
        self.pod.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Goes to the pod that leads when it is another one. Does not complete.
    pub async fn follow(&self) {
        loop {
            sleep(FOLLOW).await;
            // The next connection says what does not work.
            let Ok(chosen) = self.choice.choose().await else { continue };
            if !chosen.leads || chosen.name == self.pod().name {
                continue;
            }
            stderr::line(format_args!("{}/{} leads now", self.choice.namespace, chosen.name));
            *self.pod.lock().unwrap_or_else(PoisonError::into_inner) = chosen;
            self.n_leaders.send_modify(|n| *n += 1);
        }
    }

    async fn serve(&self, local: TcpStream) {
        let mut leader = self.n_leaders.subscribe();
        let copied = async {
            match self.open().await {
                Ok(connection) => connection.copy(local).await.err().unwrap_or_default(),
                Err(error) => error.message,
            }
        };
        let problem = tokio::select! {
            problem = copied => problem,
            _ = leader.changed() => return,
        };
        let mut last = self.last_problem.lock().unwrap_or_else(PoisonError::into_inner);
        if !problem.is_empty() && *last != problem {
            stderr::line(format_args!("warning: {problem}"));
        }
        *last = problem;
    }
}

/// Forwards each connection, until the caller stops waiting.
pub async fn accept(listener: &TcpListener, forward: &Arc<Forward>) {
    loop {
        match listener.accept().await {
            Ok((local, _)) => {
                let forward = Arc::clone(forward);
                tokio::spawn(async move { forward.serve(local).await });
            }
            Err(_) => sleep(ACCEPT_RETRY).await,
        }
    }
}
