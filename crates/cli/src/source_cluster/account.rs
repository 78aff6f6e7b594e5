//! The account in another cluster: the objects of `deploy/multicluster/source`, and what its
//! ClusterRole permits.

use endpointd_client::{Client, Preconditions, ReadError};
use serde_json::{Value, json};

use crate::access_review::is_allowed;
use crate::cli_error::CliError;
use crate::cluster::Resource;
use crate::input;

pub const NAMESPACE: &str = "endpointd";
pub const ACCOUNT: &str = "endpointd-source";
/// The same bytes that `kubectl apply -k deploy/multicluster/source` applies.
const MANIFESTS: [&str; 2] = [
    include_str!("../../../../deploy/namespace/namespace.yaml"),
    include_str!("../../../../deploy/multicluster/source/rbac.yaml"),
];
const RBAC: &str = "rbac.authorization.k8s.io/v1";
const RESOURCES: [Resource; 5] = [
    Resource { kind: "Namespace", api_version: "v1", plural: "namespaces" },
    Resource { kind: "ServiceAccount", api_version: "v1", plural: "serviceaccounts" },
    Resource { kind: "ClusterRole", api_version: RBAC, plural: "clusterroles" },
    Resource { kind: "ClusterRoleBinding", api_version: RBAC, plural: "clusterrolebindings" },
    SECRETS,
];
pub const SECRETS: Resource = Resource { kind: "Secret", api_version: "v1", plural: "secrets" };
/// What may differ in an object that is there already. The other fields are of no importance here,
/// or cannot be changed.
const FIELDS: [&str; 2] = ["rules", "subjects"];

/// The objects in the order in which they are created.
pub fn objects() -> Vec<Value> {
    let parse = |text| input::parse_objects(text).expect("a test parses the manifests");
    MANIFESTS.into_iter().flat_map(parse).collect()
}

/// What happened to one object, such as `created`, and which: `clusterroles/endpointd-source`.
pub struct Applied {
    pub outcome: &'static str,
    pub object: String,
}

/// Creates an object, or changes it to what the manifest says.
pub async fn apply(client: &Client, object: &Value) -> Result<Applied, CliError> {
    let (collection, name, short) = location(object);
    let path = format!("{collection}/{name}");
    let applied = |outcome| Applied { outcome, object: short.clone() };
    let failed = |error: ReadError| cannot(client, "write", &short, &error);
    let mut found = match client.get_value(&path).await {
        Ok(found) => found.value,
        Err(error) if error.is_not_found() => {
            return match client.post_value(&collection, object).await {
                Ok(_) => Ok(applied("created")),
                Err(error) if error.code == Some(409) => Ok(applied("unchanged")),
                Err(error) => Err(failed(error)),
            };
        }
        Err(error) => return Err(cannot(client, "read", &short, &error)),
    };
    let differ =
        |field: &&&str| object.get(**field).is_some_and(|own| found.get(**field) != Some(own));
    let changed: Vec<&str> = FIELDS.iter().filter(differ).copied().collect();
    if changed.is_empty() {
        return Ok(applied("unchanged"));
    }
    changed.into_iter().for_each(|field| found[field] = object[field].clone());
    client.put_value(&path, &found).await.map_err(failed)?;
    Ok(applied("changed"))
}

/// Deletes the account and its permissions, which ends every token of it. The namespace stays: an
/// endpointd of that cluster may run there.
pub async fn delete(client: &Client) -> Result<Vec<Applied>, CliError> {
    let mut objects = objects();
    objects.retain(|object| object["kind"] != "Namespace");
    objects.push(super::token::secret());
    let mut deleted = Vec::new();
    for object in objects.iter().rev() {
        let (collection, name, short) = location(object);
        let any = Preconditions { uid: String::new(), resource_version: String::new() };
        let outcome = match client.delete_value(&format!("{collection}/{name}"), &any).await {
            Ok(()) => "deleted",
            Err(error) if error.is_not_found() => "not there",
            Err(error) => return Err(cannot(client, "delete", &short, &error)),
        };
        deleted.push(Applied { outcome, object: short });
    }
    Ok(deleted)
}

/// The path of its collection, its name, and both for people.
fn location(object: &Value) -> (String, String, String) {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let (kind, name) = (text("/kind"), text("/metadata/name"));
    let namespace = object.pointer("/metadata/namespace").and_then(Value::as_str);
    let resource = RESOURCES.iter().find(|one| one.kind == kind);
    let resource = resource.expect("a test looks up the kinds of the manifests");
    let short = match namespace {
        Some(namespace) => format!("{}/{name} in {namespace}", resource.plural),
        None => format!("{}/{name}", resource.plural),
    };
    (resource.path(namespace), name.to_owned(), short)
}

fn cannot(client: &Client, verb: &str, object: &str, error: &ReadError) -> CliError {
    let resource = object.split('/').next().unwrap_or_default();
    let hint = match (error.is_forbidden(), verb) {
        (true, "write") => format!(
            "it needs the permissions of an administrator of that cluster: `kubectl auth can-i create \
             {resource}`"
        ),
        (true, _) => format!("`kubectl auth can-i {verb} {resource}` with that context"),
        (false, _) => "`kubectl cluster-info` with that context".to_owned(),
    };
    CliError::new(format!("cannot {verb} {object} at {}: {error}", client.server()), hint)
}

/// `list services`: what the ClusterRole permits and the user of the client may not do.
pub async fn missing_permissions(client: &Client) -> Result<Vec<String>, ReadError> {
    let mut missing = Vec::new();
    for permission in permissions() {
        let Permission { group, resource, name, verb } = &permission;
        let attributes = json!({"group": group, "resource": resource, "name": name, "verb": verb});
        if !is_allowed(client, attributes).await? {
            let name = if name.is_empty() { String::new() } else { format!("/{name}") };
            missing.push(format!("{verb} {resource}{name}"));
        }
    }
    Ok(missing)
}

struct Permission {
    group: String,
    resource: String,
    name: String,
    verb: String,
}

/// Every verb of every rule.
fn permissions() -> Vec<Permission> {
    let objects = objects();
    let role = objects.iter().find(|object| object["kind"] == "ClusterRole");
    let rules = role.and_then(|role| role["rules"].as_array()).cloned().unwrap_or_default();
    let mut permissions = Vec::new();
    for rule in rules {
        let names = match texts(&rule["resourceNames"]) {
            none if none.is_empty() => vec![String::new()],
            names => names,
        };
        for group in texts(&rule["apiGroups"]) {
            for resource in texts(&rule["resources"]) {
                let verbs = texts(&rule["verbs"]);
                permissions.extend(names.iter().flat_map(|name| {
                    verbs.iter().map(|verb| Permission {
                        group: group.clone(),
                        resource: resource.clone(),
                        name: name.clone(),
                        verb: verb.clone(),
                    })
                }));
            }
        }
    }
    permissions
}

fn texts(value: &Value) -> Vec<String> {
    let all = value.as_array().into_iter().flatten();
    all.filter_map(|one| one.as_str().map(str::to_owned)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manifests_are_complete_and_permit_reading_only() {
        let objects = objects();
        let short: Vec<String> = objects.iter().map(|one| location(one).2).collect();
        let want = [
            "namespaces/endpointd",
            "serviceaccounts/endpointd-source in endpointd",
            "clusterroles/endpointd-source",
            "clusterrolebindings/endpointd-source",
        ];
        assert_eq!(short, want);
        assert_eq!(location(&objects[1]).0, "/api/v1/namespaces/endpointd/serviceaccounts");
        let all = permissions();
        assert!(all.iter().all(|one| ["get", "list", "watch"].contains(&one.verb.as_str())));
        let has = |verb: &str, resource: &str, name: &str| {
            all.iter().any(|one| one.verb == verb && one.resource == resource && one.name == name)
        };
        assert!(has("watch", "serviceexports", "") && has("get", "namespaces", "kube-system"));
        assert!(!has("get", "namespaces", "") && !has("get", "secrets", ""));
    }
}
