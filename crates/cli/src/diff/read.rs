//! Reads what the controllers read. All namespaces are listed as the daemon lists them, in protobuf
//! and compact; one namespace needs no permissions outside of it, apart from nodes.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::hash::Hash;
use std::sync::Arc;

use endpointd_client::{Client, ListOptions};
use endpointd_engine::{ControllerSettings, Settings};
use endpointd_model::{
    Controller, Labels, NamedPort, ObjectEvent, Pod, ResourceEvent, SharedStr, WatchSignal,
    WatchedResource,
};
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
            let is_global = |one: &WatchedResource| is_read_everywhere(*one, controllers);
            let (global, others): (Vec<_>, Vec<_>) = resources.into_iter().partition(is_global);
            for resource in others {
                read_namespace(client, resource, namespace, &mut loaded).await?;
            }
            list(client, &global, &mut loaded).await?;
        }
    }
    Ok(loaded)
}

/// Nodes have no namespace. The sources of imported endpoints, and the grants, are in any.
fn is_read_everywhere(resource: WatchedResource, controllers: &BTreeSet<Controller>) -> bool {
    let imports = controllers.contains(&Controller::Import);
    match resource {
        WatchedResource::Nodes | WatchedResource::ReferenceGrants => true,
        WatchedResource::Services | WatchedResource::Slices => imports,
        WatchedResource::Pods | WatchedResource::Endpoints => false,
    }
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
    let mut shared = SharedParts::default();
    let mut missing: BTreeSet<WatchedResource> = resources.iter().copied().collect();
    while !missing.is_empty() {
        // The channel stays open: `sender` is not dropped.
        let Some((resource, signal)) = receiver.recv().await else { break };
        match signal {
            WatchSignal::InitDone(_) => drop(missing.remove(&resource)),
            WatchSignal::Event(event) => apply(loaded, &mut shared, *event),
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

/// Pods of one workload have the same labels and ports, which are kept once.
#[derive(Default)]
struct SharedParts {
    labels: HashSet<Labels>,
    ports: HashSet<Arc<[NamedPort]>>,
    names: HashSet<SharedStr>,
}

impl SharedParts {
    fn share(&mut self, pod: &mut Pod) {
        pod.labels = shared(&mut self.labels, &pod.labels);
        pod.named_ports = shared(&mut self.ports, &pod.named_ports);
        pod.namespace = shared(&mut self.names, &pod.namespace);
        pod.node_name = pod.node_name.as_ref().map(|name| shared(&mut self.names, name));
    }
}

fn shared<T: Clone + Eq + Hash>(known: &mut HashSet<T>, one: &T) -> T {
    match known.get(one) {
        Some(known) => known.clone(),
        None => {
            known.insert(one.clone());
            one.clone()
        }
    }
}

fn apply(loaded: &mut LoadedObjects, shared: &mut SharedParts, event: ResourceEvent) {
    let cluster = &mut loaded.cluster;
    match event {
        ResourceEvent::Service(event) => put(&mut cluster.services, event, |one| one.key()),
        ResourceEvent::Pod(mut event) => {
            if let ObjectEvent::Applied(pod) = &mut event {
                shared.share(pod);
            }
            put(&mut cluster.pods, event, |one| one.key());
        }
        ResourceEvent::Node(event) => put(&mut cluster.nodes, event, |one| one.name.clone()),
        ResourceEvent::Endpoints(event) => {
            put(&mut cluster.endpoints, event, |one| one.meta.key());
        }
        ResourceEvent::Slice(event) => put(&mut cluster.slices, event, |one| one.meta.key()),
        ResourceEvent::ReferenceGrant(event) => put(&mut cluster.grants, event, |one| one.key()),
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
        WatchedResource::Nodes | WatchedResource::ReferenceGrants => return Ok(()),
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
