//! The client: writes, live reads, watches, and what it has found out about the server.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use endpointd_model::{
    LiveRead, LiveReadResult, Object, PodUids, Scope, Timestamp, WatchSignal, WatchedResource,
    Write, WriteResult,
};
use endpointd_wire::{Encoding, SentObject};
use tokio::sync::{Semaphore, SemaphorePermit, mpsc, watch};
use tokio::time::Instant;

use crate::connect::{ConnectError, ConnectOptions};
use crate::election::WritePermit;
use crate::rate_limiter::RateLimiter;
use crate::request::{Accept, ApiRequest};
use crate::response;
use crate::rollback::RollbackReporter;
use crate::sent_objects::SentObjects;
use crate::stats::RequestStats;
use crate::transport::{ApiResponse, Transport, TransportError};
use crate::watcher;

/// After this time a write or a live read counts as not answered.
const TIMEOUT: Duration = Duration::from_secs(30);
/// After a failed streaming list, lists are requested in pages for this long.
const PAGES_TIME: Duration = Duration::from_secs(600);
/// Ten times the size limit of an object in the API server.
const RESPONSE_BYTES_MAX: usize = 16 << 20;
/// Writes and live reads that use a connection at the same time, so that descriptors remain for
/// the lease and the watches; more of them wait. Twice the writes that the engine sends at once.
const REQUESTS_MAX: usize = 128;
/// The default of kube-controller-manager's `--kube-api-burst`.
const BURST: u32 = 30;

/// A connection to one cluster; clones share it.
#[derive(Clone)]
pub struct Client {
    pub(crate) transport: Arc<Transport>,
    rate_limiter: Option<Arc<RateLimiter>>,
    capabilities: Arc<ServerCapabilities>,
    slots: Arc<Semaphore>,
    rollbacks: Arc<RollbackReporter>,
    pub(crate) sent_objects: Arc<SentObjects>,
    pub(crate) scope: Arc<Scope>,
    pub(crate) controller_name: Option<Arc<str>>,
}

/// What the server supports; assumed until it refuses.
#[derive(Debug)]
struct ServerCapabilities {
    supports_protobuf: AtomicBool,
    /// Lists are requested in pages until then.
    streaming_lists_after: Mutex<Instant>,
}

impl Client {
    /// Reads the configuration and prepares connections. Sends nothing: the first request finds out
    /// whether the server is reachable.
    pub async fn connect(options: ConnectOptions) -> Result<Self, ConnectError> {
        let rate_limiter = options
            .qps
            .filter(|&qps| qps > 0.0)
            .map(|qps| Arc::new(RateLimiter::new(qps, options.burst.unwrap_or(BURST))));
        let capabilities = Arc::new(ServerCapabilities {
            supports_protobuf: AtomicBool::new(true),
            streaming_lists_after: Mutex::new(Instant::now()),
        });
        let scope = Arc::new(options.scope.clone());
        let controller_name = options.controller_name.as_deref().map(Arc::from);
        let transport = Arc::new(Transport::connect(options).await?);
        let slots = Arc::new(Semaphore::new(REQUESTS_MAX));
        let (rollbacks, sent_objects) = (Arc::default(), Arc::default());
        Ok(Self {
            transport,
            rate_limiter,
            capabilities,
            slots,
            rollbacks,
            sent_objects,
            scope,
            controller_name,
        })
    }

    /// Uses JSON for all further requests, for servers whose protobuf is broken.
    pub fn disable_protobuf(&self) {
        self.capabilities.supports_protobuf.store(false, Ordering::Relaxed);
    }

    /// Lists in pages for some time, for servers whose streaming lists are broken. One slow list is
    /// no proof of that, and servers are updated.
    pub fn disable_streaming_lists(&self) {
        *self.streaming_lists_after() = Instant::now() + PAGES_TIME;
    }

    /// The URL of the server, for logs.
    pub fn server(&self) -> String {
        self.transport.url.clone()
    }

    /// The namespace of the context or of this pod; `default` without one.
    pub fn default_namespace(&self) -> &str {
        &self.transport.default_namespace
    }

    pub fn stats(&self) -> &Arc<RequestStats> {
        &self.transport.stats
    }

    /// Sends a write once. It is not sent again when the response is lost: see
    /// [`WriteResult::NoResponse`]. No byte leaves after the permit has ended, and nothing waits for
    /// a response any longer: another process could lead by the time it arrives.
    pub async fn send(&self, write: &Write, permit: &WritePermit) -> WriteResult {
        let mut is_begun = false;
        let sent = permit.while_valid(async {
            let _slot = self.wait_for_slot().await;
            is_begun = true;
            self.send_now(write).await
        });
        match sent.await {
            Some(result) => result,
            None if is_begun => response::lease_lost(write),
            None => WriteResult::NotLeader,
        }
    }

    async fn send_now(&self, write: &Write) -> WriteResult {
        let stamped = stamped(write);
        let write = stamped.as_ref().unwrap_or(write);
        let mut request = self.with_accept(ApiRequest::of_write(write, self.encoding()));
        if let (Some(object), Some(body)) = (write.object(), &request.body) {
            self.sent_objects.add(SentObject { object, body: &body.bytes });
        }
        let mut response = self.request(&request).await;
        let is_unsupported = matches!(&response, Ok(ApiResponse { code: 415, .. }));
        if is_unsupported && self.encoding() == Encoding::Protobuf {
            tracing::info!("the server rejects protobuf: using JSON from now on");
            self.disable_protobuf();
            request = self.with_accept(ApiRequest::of_write(write, Encoding::Json));
            response = self.request(&request).await;
        }
        let result = response::write_result(&request, write, response);
        if let Some(object) = write.object()
            && !matches!(result, WriteResult::Stored(_))
        {
            self.sent_objects.forget(object);
        }
        result
    }

    /// Reads one object from the API server, bypassing all caches.
    pub async fn live_read(&self, read: &LiveRead) -> LiveReadResult {
        let _slot = self.wait_for_slot().await;
        if let LiveRead::Pods(namespace) = read {
            return self.live_pods(namespace).await;
        }
        let request = self.with_accept(ApiRequest::of_live_read(read));
        let response = self.request(&request).await;
        self.scope.filter_read(response::live_read_result(&request, read, response))
    }

    /// All pages of a consistent list.
    async fn live_pods(&self, namespace: &str) -> LiveReadResult {
        let (mut pods, mut token) = (PodUids::new(), None);
        loop {
            let request = ApiRequest::of_pods(namespace, token.as_deref());
            let response = self.request(&request).await;
            match response::pods_page(&request, response) {
                Ok(page) => {
                    pods.extend(page.pods);
                    token = page.continue_token;
                }
                Err(failure) => return LiveReadResult::Failed(failure),
            }
            if token.is_none() {
                return LiveReadResult::Pods(pods);
            }
        }
    }

    /// Lists and watches a resource until the receiver is gone; failures are signals as well. A
    /// full channel slows the watch down and loses nothing.
    pub async fn watch(
        self,
        resource: WatchedResource,
        sender: mpsc::Sender<(WatchedResource, WatchSignal)>,
    ) {
        watcher::run(self, resource, sender).await;
    }

    /// Changes when resourceVersions went backwards: what was received before is void.
    pub fn rollbacks(&self) -> watch::Receiver<u64> {
        self.rollbacks.subscribe()
    }

    pub(crate) fn report_rollback(&self, evidence: &str) {
        self.rollbacks.report(evidence);
    }

    pub(crate) async fn request(
        &self,
        request: &ApiRequest,
    ) -> Result<ApiResponse, TransportError> {
        self.transport.request(request, TIMEOUT, RESPONSE_BYTES_MAX).await
    }

    /// JSON where any encoding would do, if the server's protobuf is broken.
    pub(crate) fn with_accept(&self, mut request: ApiRequest) -> ApiRequest {
        request.accept = match (request.accept, self.encoding()) {
            (Accept::Any | Accept::Json, Encoding::Json) => Accept::Json,
            (Accept::Any | Accept::Json, Encoding::Protobuf) => Accept::Any,
            (metadata @ (Accept::JsonMetadata | Accept::JsonObjectMetadata), _) => metadata,
        };
        request
    }

    pub(crate) fn supports_streaming_lists(&self) -> bool {
        *self.streaming_lists_after() <= Instant::now()
    }

    fn streaming_lists_after(&self) -> MutexGuard<'_, Instant> {
        let after = &self.capabilities.streaming_lists_after;
        after.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn encoding(&self) -> Encoding {
        if self.capabilities.supports_protobuf.load(Ordering::Relaxed) {
            Encoding::Protobuf
        } else {
            Encoding::Json
        }
    }

    /// Waits for the rate limit and for one of [`REQUESTS_MAX`] places.
    async fn wait_for_slot(&self) -> SemaphorePermit<'_> {
        if let Some(rate_limiter) = &self.rate_limiter {
            rate_limiter.acquire().await;
        }
        self.slots.acquire().await.expect("the semaphore is never closed")
    }
}

/// A condition whose status changes has the time of its write. The engine has no clock.
fn stamped(write: &Write) -> Option<Write> {
    let Write::Update(Object::ServiceStatus(status)) = write else { return None };
    let mut status = status.clone();
    status.condition.as_mut()?.last_transition.get_or_insert_with(Timestamp::now);
    Some(Write::Update(Object::ServiceStatus(status)))
}
