//! Reads what the controllers read. All namespaces are listed as the daemon lists them, in protobuf
//! and compact; one namespace needs no permissions outside of it, apart from nodes.

use std::collections::{BTreeMap, BTreeSet};

use endpointd_client::{Client, ListOptions};
use endpointd_engine::{ControllerSettings, Settings};
use endpointd_model::{Controller, ObjectEvent, ResourceEvent, WatchSignal, WatchedResource};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::cli_error::CliError;
use crate::cluster::{ENDPOINT_SLICES, ENDPOINTS, PODS, Resource, SERVICES, Scope};
use crate::input::{DecodedObject, FromObject};
use crate::plan::LoadedObjects;

/// Signals that wait while objects are stored.
const SIGNALS_MAX: usize = 1024;

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
    let mut loaded = LoadedObjects::default();
    match scope {
        Scope::AllNamespaces => list(client, &resources, &mut loaded).await?,
        Scope::Namespace(namespace) => {
            let (nodes, others): (Vec<_>, Vec<_>) =
                resources.into_iter().partition(|one| *one == WatchedResource::Nodes);
            for resource in others {
                read_namespace(client, resource, namespace, &mut loaded).await?;
            }
            list(client, &nodes, &mut loaded).await?;
        }
    }
    Ok(loaded)
}

/// The lists with which watches begin; each is consistent.
async fn list(
    client: &Client,
    resources: &[WatchedResource],
    loaded: &mut LoadedObjects,
) -> Result<(), CliError> {
    let (sender, mut receiver) = mpsc::channel(SIGNALS_MAX);
    let mut watches = JoinSet::new();
    for resource in resources {
        watches.spawn(client.clone().watch(*resource, sender.clone()));
    }
    let mut missing: BTreeSet<WatchedResource> = resources.iter().copied().collect();
    while !missing.is_empty() {
        // The channel stays open: `sender` is not dropped.
        let Some((resource, signal)) = receiver.recv().await else { break };
        match signal {
            WatchSignal::InitDone(_) => drop(missing.remove(&resource)),
            WatchSignal::Event(event) => apply(loaded, *event),
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
    Ok(())
}

fn apply(loaded: &mut LoadedObjects, event: ResourceEvent) {
    let cluster = &mut loaded.cluster;
    match event {
        ResourceEvent::Service(event) => put(&mut cluster.services, event, |one| one.key()),
        ResourceEvent::Pod(event) => put(&mut cluster.pods, event, |one| one.key()),
        ResourceEvent::Node(event) => put(&mut cluster.nodes, event, |one| one.name.clone()),
        ResourceEvent::Endpoints(event) => {
            put(&mut cluster.endpoints, event, |one| one.meta.key());
        }
        ResourceEvent::Slice(event) => put(&mut cluster.slices, event, |one| one.meta.key()),
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
        WatchedResource::Nodes => return Ok(()),
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
