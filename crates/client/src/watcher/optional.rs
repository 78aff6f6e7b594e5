//! Custom resources, which not every cluster serves, in one of two versions. They may be installed and
//! removed at any time.

use std::time::Duration;

use endpointd_model::{Failure, FailureKind, ResourceVersion, WatchSignal, WatchedResource};
use http::Method;
use serde::Deserialize;

use super::backoff::Backoff;
use super::watched::Watched;
use super::{ReceiverGone, SignalSender, Stop, Watcher};
use crate::client::Client;
use crate::request::{Accept, ApiRequest, Location};
use crate::response::failure;
use crate::transport::TransportError;

/// The newest first; none for a resource that every cluster serves.
fn versions(resource: WatchedResource) -> &'static [&'static str] {
    match resource {
        WatchedResource::ReferenceGrants => {
            &["/apis/gateway.networking.k8s.io/v1", "/apis/gateway.networking.k8s.io/v1beta1"]
        }
        WatchedResource::ServiceExports | WatchedResource::ServiceImports => {
            &["/apis/multicluster.x-k8s.io/v1beta1", "/apis/multicluster.x-k8s.io/v1alpha1"]
        }
        WatchedResource::Services
        | WatchedResource::Pods
        | WatchedResource::Nodes
        | WatchedResource::Endpoints
        | WatchedResource::Slices
        | WatchedResource::Namespaces
        | WatchedResource::DerivedServices => &[],
    }
}

/// By the plural name.
pub(super) fn is_optional(resource: &str) -> bool {
    let optional = |one: &WatchedResource| !versions(*one).is_empty();
    WatchedResource::ALL.iter().filter(|one| optional(one)).any(|one| one.as_str() == resource)
}

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

pub(super) async fn run<T: Watched>(client: Client, sender: SignalSender) -> Stop {
    match Discovery::new(client, sender, T::RESOURCE).run::<T>().await {
        Ok(()) => Stop::NotServed,
        Err(gone) => gone.into(),
    }
}

struct Discovery {
    client: Client,
    sender: SignalSender,
    resource: WatchedResource,
    /// The last signal of a list was that there are no objects because nothing serves them.
    has_no_objects: bool,
    reported: Option<FailureKind>,
}

impl Discovery {
    fn new(client: Client, sender: SignalSender, resource: WatchedResource) -> Self {
        Self { client, sender, resource, has_no_objects: false, reported: None }
    }

    async fn run<T: Watched>(mut self) -> Result<(), ReceiverGone> {
        let mut backoff = Backoff::default();
        loop {
            let delay = match self.location().await {
                Ok(Some(location)) => {
                    backoff.reset();
                    self.watch::<T>(location).await?;
                    Duration::ZERO
                }
                Ok(None) => {
                    backoff.reset();
                    self.tell_absence().await?;
                    DISCOVERY_INTERVAL
                }
                Err(failure) => {
                    self.report(failure).await?;
                    backoff.next()
                }
            };
            tokio::time::sleep(delay).await;
        }
    }

    /// Where the resource is served; none if it is not.
    async fn location(&self) -> Result<Option<Location>, Failure> {
        for group in versions(self.resource) {
            if self.serves(group).await? {
                return Ok(Some(Location { group, ..Location::from(self.resource) }));
            }
        }
        Ok(None)
    }

    async fn serves(&self, group: &'static str) -> Result<bool, Failure> {
        let request = ApiRequest {
            path: group.to_owned(),
            accept: Accept::Json,
            ..ApiRequest::new(Method::GET, "discover", self.resource.as_str())
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
                Ok(resources.iter().any(|resource| resource.name == self.resource.as_str()))
            }
            _ => Err(failure(&request, &response)),
        }
    }

    /// Until the resource is not served any more.
    async fn watch<T: Watched>(&mut self, location: Location) -> Result<(), ReceiverGone> {
        tracing::info!(resource = self.resource.as_str(), path = location.group, "watching");
        (self.has_no_objects, self.reported) = (false, None);
        let watcher = Watcher::new(self.client.clone(), self.sender.clone(), location);
        match watcher.run::<T>().await {
            Stop::NotServed => {
                tracing::info!(resource = self.resource.as_str(), "not served any more");
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
        tracing::info!(resource = self.resource.as_str(), "not served by this cluster");
        self.emit(WatchSignal::InitStarted).await?;
        self.emit(WatchSignal::InitDone(ResourceVersion::NONE)).await
    }

    async fn report(&mut self, failure: Failure) -> Result<(), ReceiverGone> {
        if self.reported.replace(failure.kind) == Some(failure.kind) {
            return Ok(());
        }
        tracing::warn!(resource = self.resource.as_str(), reason = %failure, "discovery failed");
        self.emit(WatchSignal::Disconnected(failure.message)).await
    }

    async fn emit(&self, signal: WatchSignal) -> Result<(), ReceiverGone> {
        self.sender.send((self.resource, signal)).await.map_err(|_| ReceiverGone)
    }
}
