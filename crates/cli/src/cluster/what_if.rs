//! The cluster as it would be if files were applied.

use std::collections::BTreeSet;

use endpointd_explain::Objects;
use serde_json::{Map, Value};

use super::live::{Scope, read_live};
use super::{ConnectFlags, FileFlags, Loaded, NamespaceFlags, connect, values};
use crate::cli_error::CliError;

/// Fields that the server sets, and that an applied object keeps.
const KEPT_OF_METADATA: [&str; 3] = ["uid", "resourceVersion", "creationTimestamp"];
const KEPT_OF_SPEC: [&str; 5] =
    ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "nodeName"];

/// Reads the namespace of the files from the cluster, and puts the files over it.
pub async fn load_what_if(
    connect_flags: &ConnectFlags,
    namespace: &NamespaceFlags,
    files: &FileFlags,
) -> Result<Loaded, CliError> {
    if namespace.all_namespaces {
        return Err(CliError::new(
            "`--live` explains one namespace",
            "choose it with `-n`, or leave it out if the files have one",
        ));
    }
    let applied = values(files)?;
    let client = connect(connect_flags).await?;
    let scope = match &namespace.namespace {
        Some(_) => namespace.scope(Some(&client)),
        None => namespace_of(&applied, client.default_namespace())?,
    };
    let mut objects = read_live(&client, &scope).await?;
    for object in applied {
        check(&object)?;
        apply(&mut objects, object, scope.namespace().unwrap_or_default());
    }
    objects.assume_nodes();
    Ok(Loaded { objects, client: Some(client), scope })
}

fn namespace_of(applied: &[Value], default: &str) -> Result<Scope, CliError> {
    let is_namespaced = |object: &&Value| object["kind"].as_str() != Some("Node");
    let of =
        |object: &Value| object["metadata"]["namespace"].as_str().unwrap_or(default).to_owned();
    let namespaces: BTreeSet<String> = applied.iter().filter(is_namespaced).map(of).collect();
    let mut namespaces = namespaces.into_iter();
    match (namespaces.next(), namespaces.next()) {
        (None, _) => Ok(Scope::Namespace(default.to_owned())),
        (Some(one), None) => Ok(Scope::Namespace(one)),
        (Some(one), Some(other)) => Err(CliError::new(
            format!("the files have objects of several namespaces: `{one}`, `{other}`"),
            "choose the one to explain with `-n`",
        )),
    }
}

fn check(object: &Value) -> Result<(), CliError> {
    let has_name = object.pointer("/metadata/name").is_some_and(Value::is_string);
    let has_spec = object.get("spec").is_none_or(|spec| spec.is_object() || spec.is_null());
    if has_name && has_spec {
        return Ok(());
    }
    let kind = object["kind"].as_str().unwrap_or("object");
    Err(CliError::new(
        format!("an object of the files cannot be applied: a {kind} without a valid name or spec"),
        "`kubectl apply --dry-run=server -f FILE` checks the file",
    ))
}

/// Replaces an object as `kubectl apply` would: labels and spec are those of the file.
fn apply(objects: &mut Objects, mut object: Value, namespace: &str) {
    let kind = object["kind"].as_str().unwrap_or_default().to_owned();
    let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let namespace = match (kind.as_str(), object["metadata"]["namespace"].as_str()) {
        ("Node", _) => String::new(),
        (_, Some(own)) => own.to_owned(),
        (_, None) => {
            object["metadata"]["namespace"] = namespace.into();
            namespace.to_owned()
        }
    };
    match objects.get(&kind, &namespace, &name) {
        Some(before) => keep(&mut object, before),
        None if kind == "Service" => choose_family(&mut object, objects, &namespace),
        None => {}
    }
    objects.add(object);
}

fn keep(object: &mut Value, before: &Value) {
    keep_fields(&mut object["metadata"], &before["metadata"], &KEPT_OF_METADATA);
    keep_fields(&mut object["spec"], &before["spec"], &KEPT_OF_SPEC);
    if object["status"].is_null() && before.get("status").is_some() {
        object["status"] = before["status"].clone();
    }
}

fn keep_fields(object: &mut Value, before: &Value, fields: &[&str]) {
    if object.is_null() && before.is_object() {
        *object = Value::Object(Map::new());
    }
    for field in fields {
        let is_set = object.get(*field).is_some_and(|value| !value.is_null());
        if let (false, Some(value)) = (is_set, before.get(*field)) {
            object[*field] = value.clone();
        }
    }
}

/// The server gives a new Service the first family of the cluster: that of the pods' first address.
fn choose_family(service: &mut Value, objects: &Objects, namespace: &str) {
    let has_families = service.pointer("/spec/ipFamilies").is_some();
    let first_ip = objects
        .of_kind("Pod", namespace)
        .find_map(|pod| pod.pointer("/status/podIP").and_then(Value::as_str));
    if let (false, Some(ip)) = (has_families, first_ip) {
        let family = if ip.contains(':') { "IPv6" } else { "IPv4" };
        service["spec"]["ipFamilies"] = Value::Array(vec![family.into()]);
    }
}
