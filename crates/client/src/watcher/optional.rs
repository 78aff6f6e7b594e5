//! ReferenceGrants: a resource that not every cluster serves, in one of two versions. It may be
//! installed and removed at any time.

use std::time::Duration;

use endpointd_model::{
    Failure, FailureKind, ReferenceGrant, ResourceVersion, WatchSignal, WatchedResource,
};
use http::Method;
use serde::Deserialize;

use super::backoff::Backoff;
use super::{ReceiverGone, SignalSender, Stop, Watcher};
use crate::client::Client;
use crate::request::{Accept, ApiRequest, Location};
use crate::response::failure;
use crate::transport::TransportError;

const RESOURCE: WatchedResource = WatchedResource::ReferenceGrants;
/// The newest first.
const VERSIONS: [&str; 2] =
    ["/apis/gateway.networking.k8s.io/v1", "/apis/gateway.networking.k8s.io/v1beta1"];
/// Between two questions whether the resource is served now.
const DISCOVERY_INTERVAL: Duration = Duration::from_secs(30);

/// A list of the resources of one API group and version (`metav1.APIResourceList`).
#[derive(Deserialize)]
struct ApiResourceList {
    resources: Vec<ApiResource>,
}

#[derive(Deserialize)]
struct ApiResource {
    name: String,
}

pub(super) async fn run(client: Client, sender: SignalSender) -> Result<(), ReceiverGone> {
    let mut discovery = Discovery { client, sender, has_no_objects: false, reported: None };
    let mut backoff = Backoff::default();
    loop {
        let delay = match discovery.location().await {
            Ok(Some(location)) => {
                backoff.reset();
                discovery.watch(location).await?;
                Duration::ZERO
            }
            Ok(None) => {
                backoff.reset();
                discovery.tell_absence().await?;
                DISCOVERY_INTERVAL
            }
            Err(failure) => {
                discovery.report(failure).await?;
                backoff.next()
            }
        };
        tokio::time::sleep(delay).await;
    }
}

struct Discovery {
    client: Client,
    sender: SignalSender,
    /// The last signal of a list was that there are no objects because nothing serves them.
    has_no_objects: bool,
    reported: Option<FailureKind>,
}

impl Discovery {
    /// Where the resource is served; none if it is not.
    async fn location(&self) -> Result<Option<Location>, Failure> {
        for group in VERSIONS {
            if self.serves(group).await? {
                return Ok(Some(Location { group, ..Location::from(RESOURCE) }));
            }
        }
        Ok(None)
    }

    async fn serves(&self, group: &'static str) -> Result<bool, Failure> {
        let request = ApiRequest {
            path: group.to_owned(),
            accept: Accept::Json,
            ..ApiRequest::new(Method::GET, "discover", RESOURCE.as_str())
        };
        let response = match self.client.request(&request).await {
            Ok(response) => response,
            Err(TransportError { failure, .. }) => return Err(failure),
        };
        match response.code {
            404 => Ok(false),
            200 => {
                let list = serde_json::from_slice(&response.body);
                let ApiResourceList { resources } = list.map_err(|error| Failure {
                    kind: FailureKind::Unreadable,
                    message: format!("{}: {error}", request.describe()).into(),
                })?;
                Ok(resources.iter().any(|resource| resource.name == RESOURCE.as_str()))
            }
            _ => Err(failure(&request, &response)),
        }
    }

    /// Until the resource is not served any more.
    async fn watch(&mut self, location: Location) -> Result<(), ReceiverGone> {
        tracing::info!(resource = RESOURCE.as_str(), path = location.group, "watching");
        (self.has_no_objects, self.reported) = (false, None);
        let watcher = Watcher::new(self.client.clone(), self.sender.clone(), location);
        match watcher.run::<ReferenceGrant>().await {
            Stop::NotServed => {
                tracing::info!(resource = RESOURCE.as_str(), "not served any more");
                Ok(())
            }
            Stop::ReceiverGone => Err(ReceiverGone),
        }
    }

    /// There are no objects. The bookmark shows that the server still answers.
    async fn tell_absence(&mut self) -> Result<(), ReceiverGone> {
        self.reported = None;
        if std::mem::replace(&mut self.has_no_objects, true) {
            return self.emit(WatchSignal::Bookmark(ResourceVersion::NONE)).await;
        }
        tracing::info!(resource = RESOURCE.as_str(), "not served by this cluster");
        self.emit(WatchSignal::InitStarted).await?;
        self.emit(WatchSignal::InitDone(ResourceVersion::NONE)).await
    }

    async fn report(&mut self, failure: Failure) -> Result<(), ReceiverGone> {
        if self.reported.replace(failure.kind) == Some(failure.kind) {
            return Ok(());
        }
        tracing::warn!(resource = RESOURCE.as_str(), reason = %failure, "discovery failed");
        self.emit(WatchSignal::Disconnected(failure.message)).await
    }

    async fn emit(&self, signal: WatchSignal) -> Result<(), ReceiverGone> {
        self.sender.send((RESOURCE, signal)).await.map_err(|_| ReceiverGone)
    }
}
