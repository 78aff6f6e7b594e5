//! Reads a namespace from a cluster. What may not be read is noted, and the rest is explained; only
//! an unreachable server is an error.

use std::collections::BTreeSet;

use endpointd_client::{Client, Content, ListOptions, ReadError, ValueList};
use endpointd_explain::Objects;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::connect::unreachable;
use super::resource::{LEASES, NODES, OF_NAMESPACE, PODS, Resource, SERVICES};
use crate::cli_error::CliError;

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
    Namespace(String),
    AllNamespaces,
}

impl Scope {
    pub fn namespace(&self) -> Option<&str> {
        match self {
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
        reads.spawn(async move {
            let options = ListOptions::default();
            (resource, list(&client, resource, namespace.as_deref(), options).await)
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
    objects.assume_nodes();
    Ok(())
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
    let needs_all = of_scope(objects, SERVICES.kind, scope).any(needs_all_nodes);
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
