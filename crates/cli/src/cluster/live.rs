//! Reads a namespace from a cluster. What may not be read is noted, and the rest is explained; only
//! an unreachable server is an error.

use std::collections::{BTreeMap, BTreeSet};

use endpointd_client::{Client, Content, ListOptions, ReadError, ValueList};
use endpointd_explain::{LEASE_PREFIX, Objects};
use endpointd_model::{Key, names};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::connect::unreachable;
use super::resource::{
    ENDPOINT_SLICES, LEASES, NODES, OF_NAMESPACE, PODS, Resource, SERVICE_EXPORTS, SERVICE_IMPORTS,
    SERVICES,
};
use crate::cli_error::CliError;

/// Of a namespace with more pods, only those of the Service in question are read completely.
const PODS_COMPLETE_MAX: usize = 200;
/// The nodes of more pods are listed, fewer are read one by one: a node has some ten kilobytes.
const NODES_READ_MAX: usize = 50;
const TOPOLOGY_ANNOTATIONS: [&str; 2] =
    ["service.kubernetes.io/topology-mode", "service.kubernetes.io/topology-aware-hints"];
/// Leases of the controllers, by namespace; `None` for any namespace.
const CONTROLLER_LEASES: [(&str, Option<&str>); 2] =
    [("kube-controller-manager", Some("kube-system")), ("endpointd", None)];

/// Which namespaces to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// For one Service: of a large namespace, other pods are read without their status.
    Service(Key),
    Namespace(String),
    AllNamespaces,
}

/// The labels that pods must have.
type Selector = BTreeMap<String, String>;

impl Scope {
    /// Of the one Service, if it chooses pods.
    fn selector(&self, objects: &Objects) -> Option<Selector> {
        let Self::Service(key) = self else { return None };
        let service = objects.get(SERVICES.kind, &key.namespace, &key.name)?;
        let selector = service.pointer("/spec/selector")?.as_object()?;
        let pair =
            |(key, value): (&String, &Value)| Some((key.clone(), value.as_str()?.to_owned()));
        Some(selector.iter().filter_map(pair).collect()).filter(|all: &Selector| !all.is_empty())
    }

    /// Whether this object of a namespace is what was asked for.
    fn is_about(&self, service: &Value) -> bool {
        match self {
            Self::Service(key) => service["metadata"]["name"].as_str() == Some(&key.name),
            Self::Namespace(_) | Self::AllNamespaces => true,
        }
    }

    pub fn namespace(&self) -> Option<&str> {
        match self {
            Self::Service(key) => Some(&key.namespace),
            Self::Namespace(namespace) => Some(namespace),
            Self::AllNamespaces => None,
        }
    }
}

/// The objects of one namespace or all, the nodes of the pods, and the leases of the controllers.
pub async fn read_live(client: &Client, scope: &Scope) -> Result<Objects, CliError> {
    let mut objects = Objects::default();
    read_into(client, scope, &mut objects).await?;
    Ok(objects)
}

/// Adds the objects of a namespace. Nodes and Leases that are complete are not read again.
pub async fn read_into(
    client: &Client,
    scope: &Scope,
    objects: &mut Objects,
) -> Result<(), CliError> {
    // The first read finds out whether the server answers, before ten others fail the same way.
    let services = list(client, SERVICES, scope.namespace(), ListOptions::default()).await;
    add(client, objects, SERVICES, services)?;
    let mut reads = JoinSet::new();
    for resource in OF_NAMESPACE.into_iter().filter(|one| *one != SERVICES) {
        let (client, namespace) = (client.clone(), scope.namespace().map(ToOwned::to_owned));
        let selector = scope.selector(objects).filter(|_| resource == PODS);
        reads.spawn(async move {
            let namespace = namespace.as_deref();
            let read = match selector {
                Some(selector) => list_pods(&client, namespace, &selector).await,
                None => list(&client, resource, namespace, ListOptions::default()).await,
            };
            (resource, read)
        });
    }
    while let Some(read) = reads.join_next().await {
        // A panic of a read is one of this command.
        let (resource, read) =
            read.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()));
        add(client, objects, resource, read)?;
    }
    if !objects.is_complete(NODES.kind) {
        read_nodes(client, scope, objects).await?;
    }
    if !objects.is_complete(LEASES.kind) {
        read_leases(client, objects).await?;
    }
    read_cluster_set(client, scope, objects).await?;
    objects.assume_nodes();
    Ok(())
}

/// What clusters export and import. Most clusters do not have the kinds, and most users may not read
/// them: that is noted only where something is imported.
async fn read_cluster_set(
    client: &Client,
    scope: &Scope,
    objects: &mut Objects,
) -> Result<(), CliError> {
    let labelled = [SERVICES, ENDPOINT_SLICES];
    let is_importing = labelled.into_iter().any(|resource| {
        of_scope(objects, resource.kind, scope)
            .any(|one| one["metadata"]["labels"][names::IMPORT_NAME].is_string())
    });
    let mut has_some = is_importing;
    for resource in [SERVICE_EXPORTS, SERVICE_IMPORTS] {
        let read = list(client, resource, scope.namespace(), ListOptions::default()).await;
        has_some |= read.as_ref().is_ok_and(|list| !list.items.is_empty());
        match read {
            Err(error) if error.is_forbidden() && !is_importing => {}
            read => add(client, objects, resource, read)?,
        }
    }
    let is_known = objects
        .of_kind_anywhere(LEASES.kind)
        .any(|(lease, _)| lease.name.starts_with(LEASE_PREFIX));
    if !has_some || is_known {
        return Ok(());
    }
    let label_selector = Some(names::SOURCE_CLUSTER.to_owned());
    let options = ListOptions { label_selector, ..ListOptions::default() };
    match list(client, LEASES, None, options).await {
        Ok(list) => list.items.into_iter().for_each(|one| objects.add(complete(one, LEASES))),
        Err(error) => note(client, objects, LEASES.plural, &error)?,
    }
    Ok(())
}

/// The pods of a namespace. If they are many, those that the Service does not choose have their labels
/// and owners only, which is enough for near misses, and those that have ended are left out.
async fn list_pods(
    client: &Client,
    namespace: Option<&str>,
    selector: &Selector,
) -> Result<ValueList, ReadError> {
    let first = ListOptions { n_objects_max: Some(PODS_COMPLETE_MAX), ..ListOptions::default() };
    let first = list(client, PODS, namespace, first).await?;
    if !first.has_more {
        return Ok(first);
    }
    let pairs: Vec<String> = selector.iter().map(|(key, value)| format!("{key}={value}")).collect();
    let chosen = ListOptions { label_selector: Some(pairs.join(",")), ..ListOptions::default() };
    let others = ListOptions {
        field_selector: Some("status.phase!=Succeeded,status.phase!=Failed".to_owned()),
        content: Content::Metadata,
        ..ListOptions::default()
    };
    let (chosen, others) =
        tokio::join!(list(client, PODS, namespace, chosen), list(client, PODS, namespace, others));
    let is_chosen = |pod: &Value| {
        let labels = &pod["metadata"]["labels"];
        selector.iter().all(|(key, value)| labels[key].as_str() == Some(value))
    };
    let mut pods = chosen?;
    pods.items.extend(others?.items.into_iter().filter(|pod| !is_chosen(pod)));
    Ok(pods)
}

/// The namespaces that have Services, by name.
pub async fn namespaces(client: &Client) -> Result<BTreeSet<String>, CliError> {
    let options = ListOptions { content: Content::Metadata, ..ListOptions::default() };
    let services = list(client, SERVICES, None, options).await.map_err(|error| {
        if error.is_about_connection() {
            return unreachable(client, &error);
        }
        CliError::new(
            format!("cannot list the Services of all namespaces: {error}"),
            "choose a namespace with `-n`",
        )
    })?;
    let namespace = |one: &Value| one.pointer("/metadata/namespace")?.as_str().map(str::to_owned);
    Ok(services.items.iter().filter_map(namespace).collect())
}

/// All nodes, for commands that read several namespaces.
pub async fn read_all_nodes(client: &Client, objects: &mut Objects) -> Result<(), CliError> {
    let nodes = list(client, NODES, None, ListOptions::default()).await;
    add(client, objects, NODES, nodes)
}

pub(super) async fn list(
    client: &Client,
    resource: Resource,
    namespace: Option<&str>,
    options: ListOptions,
) -> Result<ValueList, ReadError> {
    client.list_values(&resource.path(namespace), &options).await
}

fn add(
    client: &Client,
    objects: &mut Objects,
    resource: Resource,
    read: Result<ValueList, ReadError>,
) -> Result<(), CliError> {
    match read {
        Ok(list) => {
            objects.complete(resource.kind);
            list.items.into_iter().for_each(|item| objects.add(complete(item, resource)));
            Ok(())
        }
        // The server does not have this kind, so there are no objects of it.
        Err(error) if error.is_not_found() => {
            objects.complete(resource.kind);
            Ok(())
        }
        Err(error) => {
            note(client, objects, resource.plural, &error)?;
            objects.unreadable(resource.kind, not_read(resource.plural, &error));
            Ok(())
        }
    }
}

/// The items of a list have no `kind`.
pub(super) fn complete(mut item: Value, resource: Resource) -> Value {
    item["apiVersion"] = resource.api_version.into();
    item["kind"] = resource.kind.into();
    item
}

/// Notes what was not read; without a connection, nothing else will be read either.
fn note(
    client: &Client,
    objects: &mut Objects,
    what: &str,
    error: &ReadError,
) -> Result<(), CliError> {
    if error.is_about_connection() {
        return Err(unreachable(client, error));
    }
    objects.not_read(not_read(what, error));
    Ok(())
}

fn not_read(what: &str, error: &ReadError) -> String {
    let why = if error.is_forbidden() { "not allowed" } else { &error.message };
    format!("{what}: {why}")
}

/// All nodes if a Service needs them for hints or a Local policy, else those of the pods.
async fn read_nodes(client: &Client, scope: &Scope, objects: &mut Objects) -> Result<(), CliError> {
    let names: BTreeSet<String> = of_scope(objects, PODS.kind, scope)
        .filter_map(|pod| pod.pointer("/spec/nodeName")?.as_str().map(ToOwned::to_owned))
        .collect();
    let needs_all = of_scope(objects, SERVICES.kind, scope)
        .any(|service| scope.is_about(service) && needs_all_nodes(service));
    if needs_all || names.len() > NODES_READ_MAX {
        return read_all_nodes(client, objects).await;
    }
    let mut reads = JoinSet::new();
    for name in names {
        let client = client.clone();
        reads.spawn(async move {
            let path = format!("{}/{name}", NODES.path(None));
            (name, client.get_value(&path).await)
        });
    }
    let mut first_error = None;
    while let Some(read) = reads.join_next().await {
        let (name, read) =
            read.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()));
        match read {
            Ok(node) => objects.add(node.value),
            Err(error) if error.is_not_found() => {}
            Err(error) => {
                // Assumed to exist: what cannot be read must not become a finding.
                objects.add(unread_node(&name));
                first_error.get_or_insert(error);
            }
        }
    }
    match first_error {
        Some(error) => note(client, objects, NODES.plural, &error),
        None => {
            objects.complete(NODES.kind);
            Ok(())
        }
    }
}

fn unread_node(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": name},
        "status": {"conditions": [{"type": "Ready", "status": "True"}]},
    })
}

fn of_scope<'a>(
    objects: &'a Objects,
    kind: &'static str,
    scope: &'a Scope,
) -> impl Iterator<Item = &'a Value> {
    let all = objects.of_kind_anywhere(kind);
    let is_in = |namespace: &str| scope.namespace().is_none_or(|wanted| wanted == namespace);
    all.filter(move |(name, _)| is_in(&name.namespace)).map(|(_, object)| object)
}

fn needs_all_nodes(service: &Value) -> bool {
    let spec = &service["spec"];
    let is_local = |field: &str| spec[field].as_str() == Some("Local");
    spec["trafficDistribution"].is_string()
        || is_local("internalTrafficPolicy")
        || is_local("externalTrafficPolicy")
        || TOPOLOGY_ANNOTATIONS
            .iter()
            .any(|key| service["metadata"]["annotations"][key].is_string())
}

async fn read_leases(client: &Client, objects: &mut Objects) -> Result<(), CliError> {
    let mut is_complete = true;
    for (name, namespace) in CONTROLLER_LEASES {
        let options = ListOptions {
            field_selector: Some(format!("metadata.name={name}")),
            content: Content::Complete,
            ..ListOptions::default()
        };
        match list(client, LEASES, namespace, options).await {
            Ok(list) => list.items.into_iter().for_each(|one| objects.add(complete(one, LEASES))),
            Err(error) => {
                is_complete = false;
                note(client, objects, LEASES.plural, &error)?;
            }
        }
    }
    if is_complete {
        objects.complete(LEASES.kind);
    }
    Ok(())
}
