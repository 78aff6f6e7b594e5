//! Reads what the controllers read. All namespaces are listed as the daemon lists them, in protobuf
//! and compact; one namespace needs no permissions outside of it, apart from nodes.

use std::collections::{BTreeMap, BTreeSet};

use endpointd_client::{Client, ListOptions};
use endpointd_engine::{ControllerSettings, Settings};
use endpointd_model::{
    Controller, Key, ObjectEvent, Pod, ResourceEvent, WatchSignal, WatchedResource,
};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::shared_parts::SharedParts;
use crate::cli_error::CliError;
use crate::cluster::{ENDPOINT_SLICES, ENDPOINTS, PODS, Resource, SERVICES, Scope};
use crate::input::{DecodedObject, FromObject};
use crate::plan::LoadedObjects;

/// Signals that wait while objects are stored.
const SIGNALS_MAX: usize = 64;

pub async fn read(
    client: &Client,
    scope: &Scope,
    controllers: &BTreeSet<Controller>,
) -> Result<LoadedObjects, CliError> {
    let settings = Settings {
        controllers: controllers.iter().copied().map(ControllerSettings::new).collect(),
        ..Settings::default()
    };
    let resources = settings.watched_resources();
    let (mut loaded, mut shared) = (LoadedObjects::default(), SharedParts::default());
    match scope.namespace() {
        None => {
            // Pods take the most memory, and are in their place before the others arrive.
            let (pods, others): (Vec<_>, Vec<_>) =
                resources.into_iter().partition(|one| *one == WatchedResource::Pods);
            list(client, &pods, &mut loaded, &mut shared).await?;
            list(client, &others, &mut loaded, &mut shared).await?;
        }
        Some(namespace) => {
            let is_global = |one: &WatchedResource| is_read_everywhere(*one, controllers);
            let (global, others): (Vec<_>, Vec<_>) = resources.into_iter().partition(is_global);
            for resource in others {
                read_namespace(client, resource, namespace, &mut loaded).await?;
            }
            list(client, &global, &mut loaded, &mut shared).await?;
        }
    }
    Ok(loaded)
}

/// Nodes have no namespace. The sources of imported endpoints, and the grants, are in any.
fn is_read_everywhere(resource: WatchedResource, controllers: &BTreeSet<Controller>) -> bool {
    let imports = controllers.contains(&Controller::Import);
    match resource {
        WatchedResource::Nodes
        | WatchedResource::ReferenceGrants
        | WatchedResource::Namespaces
        | WatchedResource::ServiceExports
        | WatchedResource::ServiceImports
        | WatchedResource::DerivedServices => true,
        WatchedResource::Services | WatchedResource::Slices => imports,
        WatchedResource::Pods | WatchedResource::Endpoints => false,
    }
}

/// The lists with which watches begin; each is consistent.
async fn list(
    client: &Client,
    resources: &[WatchedResource],
    loaded: &mut LoadedObjects,
    shared: &mut SharedParts,
) -> Result<(), CliError> {
    let (sender, mut receiver) = mpsc::channel(SIGNALS_MAX);
    let mut watches = JoinSet::new();
    for resource in resources {
        watches.spawn(client.clone().watch(*resource, sender.clone()));
    }
    let mut missing: BTreeSet<WatchedResource> = resources.iter().copied().collect();
    // Inserting pods in their order would leave the nodes of the map half empty; made at once, they
    // are full.
    let mut pods: Vec<(Key, Pod)> = Vec::new();
    while !missing.is_empty() {
        // The channel stays open: `sender` is not dropped.
        let Some((resource, signal)) = receiver.recv().await else { break };
        match signal {
            WatchSignal::InitDone(_) => drop(missing.remove(&resource)),
            WatchSignal::Event(event) => match *event {
                ResourceEvent::Pod(ObjectEvent::Applied(mut pod)) => {
                    shared.share_pod(&mut pod);
                    pods.push((pod.key(), pod));
                }
                event => apply(loaded, shared, event),
            },
            WatchSignal::DecodeError { key, reason } => {
                let is_planned =
                    [WatchedResource::Services, WatchedResource::Endpoints].contains(&resource);
                loaded.warnings.push(format!("excluded: {reason}"));
                if is_planned {
                    loaded.malformed.insert(key);
                }
            }
            WatchSignal::Disconnected(reason) if missing.contains(&resource) => {
                return Err(cannot_list(client, resource.as_str(), &reason));
            }
            WatchSignal::InitStarted
            | WatchSignal::Bookmark(_)
            | WatchSignal::Disconnected(_)
            | WatchSignal::Reconnected => {}
        }
    }
    if !pods.is_empty() {
        loaded.cluster.pods = pods.into_iter().collect();
    }
    Ok(())
}

fn apply(loaded: &mut LoadedObjects, shared: &mut SharedParts, event: ResourceEvent) {
    let cluster = &mut loaded.cluster;
    match event {
        ResourceEvent::Service(event) => put(&mut cluster.services, event, |one| one.key()),
        ResourceEvent::Pod(event) => put(&mut cluster.pods, event, |one| one.key()),
        ResourceEvent::Node(event) => put(&mut cluster.nodes, event, |one| one.name.clone()),
        ResourceEvent::Endpoints(mut event) => {
            if let ObjectEvent::Applied(endpoints) = &mut event {
                shared.share_endpoints(endpoints);
            }
            put(&mut cluster.endpoints, event, |one| one.meta.key());
        }
        // The controller that reads them is refused here.
        ResourceEvent::Namespace(_)
        | ResourceEvent::ServiceExport(_)
        | ResourceEvent::ServiceImport(_)
        | ResourceEvent::DerivedService(_) => {}
        ResourceEvent::ReferenceGrant(event) => put(&mut cluster.grants, event, |one| one.key()),
        ResourceEvent::Slice(mut event) => {
            if let ObjectEvent::Applied(slice) = &mut event {
                shared.share_slice(slice);
            }
            put(&mut cluster.slices, event, |one| one.meta.key());
        }
    }
}

fn put<K: Ord, T>(objects: &mut BTreeMap<K, T>, event: ObjectEvent<T>, key: impl Fn(&T) -> K) {
    match event {
        ObjectEvent::Applied(object) => drop(objects.insert(key(&object), object)),
        ObjectEvent::Deleted(object) => drop(objects.remove(&key(&object))),
    }
}

async fn read_namespace(
    client: &Client,
    resource: WatchedResource,
    namespace: &str,
    loaded: &mut LoadedObjects,
) -> Result<(), CliError> {
    let resource = match resource {
        WatchedResource::Services => SERVICES,
        WatchedResource::Pods => PODS,
        WatchedResource::Endpoints => ENDPOINTS,
        WatchedResource::Slices => ENDPOINT_SLICES,
        WatchedResource::Nodes
        | WatchedResource::ReferenceGrants
        | WatchedResource::Namespaces
        | WatchedResource::ServiceExports
        | WatchedResource::ServiceImports
        | WatchedResource::DerivedServices => return Ok(()),
    };
    let path = resource.path(Some(namespace));
    let list = client.list_values(&path, &ListOptions::default()).await;
    let list = list.map_err(|error| cannot_list(client, resource.plural, &error.message))?;
    let Resource { kind, api_version, .. } = resource;
    for mut item in list.items {
        item["apiVersion"] = api_version.into();
        item["kind"] = kind.into();
        loaded.add(DecodedObject::from_object(item));
    }
    Ok(())
}

fn cannot_list(client: &Client, resource: &str, reason: &str) -> CliError {
    CliError::new(
        format!("cannot list {resource} of {}: {reason}", client.server()),
        format!(
            "`kubectl auth can-i list {resource}`; `-n NAMESPACE` needs one namespace and nodes, \
             `-f FILE` no cluster"
        ),
    )
}
