//! The client: writes, live reads, and what it has found out about the server.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use endpointd_model::{
    LiveRead, LiveReadResult, PublishedResource, ResourceVersion, WatchSignal, WatchedResource,
    Write, WriteResult,
};
use endpointd_wire::Encoding;
use tokio::sync::mpsc;

use crate::answer;
use crate::ask::{Accept, ApiRequest};
use crate::budget::RateLimiter;
use crate::connect::{ConnectError, ConnectOptions};
use crate::feed;
use crate::known::{EchoFilter, InFlightWrite};
use crate::stats::RequestStats;
use crate::transport::{ApiResponse, Transport, TransportError};

/// After this a write or a live read counts as unanswered.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Ten times what the API server stores of one object.
const ANSWER_BYTES_MAX: usize = 16 << 20;
/// As kube-controller-manager's `--kube-api-burst`.
const BURST: u32 = 30;

/// A connection to one cluster; clones share it.
#[derive(Clone)]
pub struct Client {
    pub(crate) transport: Arc<Transport>,
    budget: Option<Arc<RateLimiter>>,
    abilities: Arc<ServerCapabilities>,
    pub(crate) known: Arc<EchoFilter>,
}

/// What the server was found to do; assumed until it refuses.
#[derive(Debug)]
struct ServerCapabilities {
    speaks_protobuf: AtomicBool,
    streams_lists: AtomicBool,
}

impl Client {
    /// Reads the configuration and prepares connections. Nothing is sent: a server that is down
    /// is found out by the first request.
    pub async fn connect(options: ConnectOptions) -> Result<Self, ConnectError> {
        let budget = options
            .qps
            .filter(|&qps| qps > 0.0)
            .map(|qps| Arc::new(RateLimiter::new(qps, options.burst.unwrap_or(BURST))));
        let abilities = ServerCapabilities {
            speaks_protobuf: AtomicBool::new(true),
            streams_lists: AtomicBool::new(true),
        };
        let transport = Arc::new(Transport::connect(options).await?);
        Ok(Self { transport, budget, abilities: Arc::new(abilities), known: Arc::default() })
    }

    /// For servers that promise protobuf and break it: everything in JSON from now on.
    pub fn disable_protobuf(&self) {
        self.abilities.speaks_protobuf.store(false, Ordering::Relaxed);
    }

    /// For servers whose streamed lists cannot be trusted: page by page from now on.
    pub fn disable_streaming_lists(&self) {
        self.abilities.streams_lists.store(false, Ordering::Relaxed);
    }

    /// Its URL, for logs.
    pub fn server(&self) -> String {
        self.transport.url.clone()
    }

    pub fn stats(&self) -> &Arc<RequestStats> {
        &self.transport.stats
    }

    /// Writes once. An answer that is lost is never asked for again: see [`WriteResult::NoResponse`].
    pub async fn send(&self, write: &Write) -> WriteResult {
        self.spend().await;
        let mut ask = self.accepting(ApiRequest::of_write(write, self.encoding()));
        let mut answer = self.ask(&ask).await;
        let is_refused = matches!(&answer, Ok(ApiResponse { code: 415, .. }));
        if is_refused && self.encoding() == Encoding::Protobuf {
            tracing::info!("the server takes no protobuf: writing JSON from now on");
            self.disable_protobuf();
            ask = self.accepting(ApiRequest::of_write(write, Encoding::Json));
            answer = self.ask(&ask).await;
        }
        answer::outcome(&ask, write, answer)
    }

    /// To be kept until the caller has taken in the answer to this write: till then the watch does
    /// not tell of its object.
    pub fn begin(&self, write: &Write) -> InFlightWrite {
        InFlightWrite::new(self.known.clone(), write.resource(), write.key())
    }

    /// The caller has taken in this answer to a write: the watch need not tell it again.
    pub fn write_applied(&self, resource: PublishedResource, version: ResourceVersion) {
        self.known.add(resource, version);
    }

    /// Reads one object as it is now, not as some cache had it.
    pub async fn look(&self, read: &LiveRead) -> LiveReadResult {
        self.spend().await;
        let ask = self.accepting(ApiRequest::of_lookup(read));
        let answer = self.ask(&ask).await;
        answer::found(&ask, read, answer)
    }

    /// Tells what there is of a kind, and then what changes, for ever: trouble is news as well. Ends
    /// only when the receiver is gone. A full channel slows the watch down and loses nothing.
    pub async fn feed(
        self,
        kind: WatchedResource,
        sender: mpsc::Sender<(WatchedResource, WatchSignal)>,
    ) {
        feed::run(self, kind, sender).await;
    }

    pub(crate) async fn ask(&self, ask: &ApiRequest) -> Result<ApiResponse, TransportError> {
        self.transport.ask(ask, TIMEOUT, ANSWER_BYTES_MAX).await
    }

    pub(crate) fn accepting(&self, mut ask: ApiRequest) -> ApiRequest {
        ask.accept = match self.encoding() {
            Encoding::Json => Accept::Json,
            Encoding::Protobuf => Accept::Any,
        };
        ask
    }

    pub(crate) fn streams_lists(&self) -> bool {
        self.abilities.streams_lists.load(Ordering::Relaxed)
    }

    fn encoding(&self) -> Encoding {
        if self.abilities.speaks_protobuf.load(Ordering::Relaxed) {
            Encoding::Protobuf
        } else {
            Encoding::Json
        }
    }

    async fn spend(&self) {
        if let Some(budget) = &self.budget {
            budget.spend().await;
        }
    }
}
