//! The connection to one cluster: whether it is the one that its name says, its watches, and whether it
//! answers while they are silent. Nothing is written there.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use endpointd_client::{Client, ConnectOptions, ReadError};
use endpointd_engine::{Input, SOURCE_RESOURCES, SourceInput};
use endpointd_model::{ClusterId, WatchSignal, WatchedResource};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout};

use super::identity::{Claim, claim};
use super::{Message, Shared};

/// A cluster whose watches are silent for so long is asked whether it is there.
const SILENCE_MAX: Duration = Duration::from_secs(10);
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
/// Between two attempts to find out which cluster it is.
const RETRY_MIN: Duration = Duration::from_secs(1);
const RETRY_MAX: Duration = Duration::from_secs(30);
const SIGNALS_MAX: usize = 256;
/// For the clusters that came together with this one, to say which they are.
const RIVALS_TIMEOUT: Duration = Duration::from_secs(6);
const RIVALS_INTERVAL: Duration = Duration::from_millis(50);

/// Its uid is that of the cluster.
const IDENTITY: &str = "/api/v1/namespaces/kube-system";
/// The name of the cluster, if somebody has given it one.
const PROPERTY: &str = "/apis/about.k8s.io/v1beta1/clusterproperties/cluster.clusterset.k8s.io";
/// Everybody who is authenticated may read it.
const VERSION: &str = "/version";

struct Connection {
    shared: Arc<Shared>,
    id: ClusterId,
    n_task: u64,
    /// The last reason why the cluster is not watched, so that each is logged once.
    told: Option<String>,
}

/// Why a cluster is not watched now.
enum Obstacle {
    /// It may answer later.
    NoAnswer(String),
    /// 401 or 403.
    Denied(String),
    /// It is not the cluster that its name says.
    Refused(String),
}

pub async fn run(shared: Arc<Shared>, id: ClusterId, n_task: u64, kubeconfig: PathBuf) {
    let mut connection = Connection { shared, id, n_task, told: None };
    let client = connection.connect(kubeconfig).await;
    connection.watch(client).await;
}

impl Connection {
    /// Until the cluster is connected and the right one.
    async fn connect(&mut self, kubeconfig: PathBuf) -> Client {
        let mut delay = RETRY_MIN;
        loop {
            let obstacle = match self.try_connect(kubeconfig.clone()).await {
                Ok(client) => return client,
                Err(obstacle) => obstacle,
            };
            if let Some(own) = self.shared.clusters().get_mut(&self.id) {
                own.identity.has_tried = true;
            }
            let text = match obstacle {
                Obstacle::NoAnswer(text) => text,
                Obstacle::Denied(text) => {
                    self.tell(SourceInput::Denied).await;
                    text
                }
                Obstacle::Refused(text) => {
                    delay = RETRY_MAX;
                    text
                }
            };
            if self.told.as_ref() != Some(&text) {
                tracing::warn!(cluster = %self.id, reason = text, "a cluster is not watched");
                self.told = Some(text);
            }
            sleep(delay).await;
            delay = (delay * 2).min(RETRY_MAX);
        }
    }

    async fn try_connect(&self, kubeconfig: PathBuf) -> Result<Client, Obstacle> {
        let options = ConnectOptions {
            kubeconfig: Some(kubeconfig),
            user_agent: self.shared.options.user_agent.clone(),
            ..ConnectOptions::default()
        };
        let client = Client::connect(options).await;
        let client = client.map_err(|error| Obstacle::NoAnswer(error.to_string()))?;
        let uid = uid(&client).await?;
        let home = uid_of_home(&self.shared.home).await?;
        self.check_name(&client).await?;
        self.take_identity(uid, &home, client.clone()).await?;
        Ok(client)
    }

    /// A cluster that has a name of its own must be configured under it.
    async fn check_name(&self, client: &Client) -> Result<(), Obstacle> {
        // Not every cluster serves it, and not everybody may read it.
        let Ok(property) = client.get_value(PROPERTY).await else { return Ok(()) };
        match property.value["spec"]["value"].as_str() {
            Some(name) if name != self.id.as_str() => Err(Obstacle::Refused(format!(
                "its kubeconfig is called `{}`, but the cluster calls itself `{name}`",
                self.id
            ))),
            Some(_) | None => Ok(()),
        }
    }

    async fn take_identity(&self, uid: String, home: &str, client: Client) -> Result<(), Obstacle> {
        if uid == home {
            return Err(Obstacle::Refused(format!("`{}` is this cluster", self.id)));
        }
        let started = Instant::now();
        let is_replaced = loop {
            let may_wait = started.elapsed() < RIVALS_TIMEOUT;
            let claimed = claim(&mut self.shared.clusters(), &self.id, &uid, may_wait);
            match claimed {
                Claim::Wait => sleep(RIVALS_INTERVAL).await,
                Claim::SameAs(other) => {
                    let text = format!("`{}` is the same cluster as `{other}`", self.id);
                    return Err(Obstacle::Refused(text));
                }
                Claim::Gone => {
                    return Err(Obstacle::NoAnswer("its kubeconfig is gone".to_owned()));
                }
                Claim::Taken { is_replaced } => break is_replaced,
            }
        };
        if let Some(own) = self.shared.clusters().get_mut(&self.id) {
            own.client = Some(client);
        }
        if is_replaced {
            tracing::warn!(cluster = %self.id, "another cluster has this name now: listing it again");
            self.tell(SourceInput::Replaced).await;
        }
        Ok(())
    }

    /// Until it is aborted.
    async fn watch(&self, client: Client) {
        tracing::info!(cluster = %self.id, server = client.server(), "watching a cluster");
        let (sender, mut receiver) = mpsc::channel::<(WatchedResource, WatchSignal)>(SIGNALS_MAX);
        let heard = Mutex::new(Instant::now());
        let forward = async {
            while let Some((resource, signal)) = receiver.recv().await {
                if !matches!(signal, WatchSignal::Disconnected(_)) {
                    *heard.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
                }
                self.tell(SourceInput::Watch(resource, signal)).await;
            }
        };
        let ask = async {
            loop {
                let last = *heard.lock().unwrap_or_else(PoisonError::into_inner);
                tokio::time::sleep_until(last + SILENCE_MAX).await;
                if last.elapsed() < SILENCE_MAX {
                    continue;
                }
                match timeout(ANSWER_TIMEOUT, client.get_value(VERSION)).await {
                    Ok(Ok(_)) => self.tell(SourceInput::Answered).await,
                    Ok(Err(error)) if is_denied(&error) => self.tell(SourceInput::Denied).await,
                    Ok(Err(_)) | Err(_) => {}
                }
                sleep(SILENCE_MAX).await;
            }
        };
        let [services, slices, exports] =
            SOURCE_RESOURCES.map(|resource| client.clone().watch(resource, sender.clone()));
        tokio::join!(forward, ask, services, slices, exports);
    }

    async fn tell(&self, input: SourceInput) {
        let from = Some((self.id.clone(), self.n_task));
        let input = Input::Source(self.id.clone(), input);
        // The event loop has ended if nobody receives it.
        let _ = self.shared.sender.send(Message { from, input }).await;
    }
}

async fn uid(client: &Client) -> Result<String, Obstacle> {
    let read = timeout(ANSWER_TIMEOUT, client.get_value(IDENTITY)).await;
    let read = read.map_err(|_| Obstacle::NoAnswer("it does not answer".to_owned()))?;
    let namespace = read.map_err(|error| match is_denied(&error) {
        true => Obstacle::Denied(error.message),
        false => Obstacle::NoAnswer(error.message),
    })?;
    let uid = namespace.value["metadata"]["uid"].as_str().map(str::to_owned);
    uid.ok_or_else(|| Obstacle::NoAnswer("its namespace kube-system has no uid".to_owned()))
}

async fn uid_of_home(home: &Client) -> Result<String, Obstacle> {
    uid(home).await.map_err(|obstacle| match obstacle {
        Obstacle::NoAnswer(text) | Obstacle::Denied(text) | Obstacle::Refused(text) => {
            Obstacle::NoAnswer(format!("the uid of this cluster is not known: {text}"))
        }
    })
}

fn is_denied(error: &ReadError) -> bool {
    matches!(error.code, Some(401 | 403))
}
