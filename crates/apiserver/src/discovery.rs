//! Discovery: the legacy documents, one for each group, and the aggregated documents.

use serde_json::{Value, json};

use crate::kinds::{KINDS, Kind, Subresource, version_of};

/// The release whose behaviour this server follows.
pub(crate) const RELEASE: &str = "v1.36.4";

const VERBS: [&str; 8] =
    ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];

/// Groups in the order upstream lists them.
pub(crate) fn groups() -> Vec<&'static str> {
    let mut groups: Vec<&str> = Vec::new();
    for kind in KINDS {
        if !kind.group.is_empty() && !groups.contains(&kind.group) {
            groups.push(kind.group);
        }
    }
    groups
}

pub(crate) fn version() -> Value {
    json!({
        "major": "1",
        "minor": "36",
        "emulationMajor": "1",
        "emulationMinor": "36",
        "minCompatibilityMajor": "1",
        "minCompatibilityMinor": "35",
        "gitVersion": RELEASE,
        "gitCommit": "",
        "gitTreeState": "",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": "rustc",
        "platform": "embedded/endpointd",
    })
}

/// `/api`.
pub(crate) fn core_versions(address: &str) -> Value {
    json!({
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}],
    })
}

/// `/apis`.
pub(crate) fn group_list() -> Value {
    let groups: Vec<Value> = groups().into_iter().map(group_versions).collect();
    json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
}

/// `/apis/apps`.
pub(crate) fn group(name: &str) -> Option<Value> {
    groups().contains(&name).then(|| {
        let mut group = group_versions(name);
        group["kind"] = json!("APIGroup");
        group["apiVersion"] = json!("v1");
        group
    })
}

fn group_versions(name: &str) -> Value {
    let version = version_of(name);
    let version = json!({"groupVersion": format!("{name}/{version}"), "version": version});
    json!({"name": name, "versions": [version], "preferredVersion": version})
}

fn kinds_of(group: &str) -> impl Iterator<Item = &'static Kind> {
    let mut kinds: Vec<&'static Kind> =
        KINDS.iter().copied().filter(|kind| kind.group == group).collect();
    kinds.sort_by_key(|kind| kind.resource);
    kinds.into_iter()
}

/// `/api/v1` and `/apis/apps/v1`.
pub(crate) fn resource_list(group: &str) -> Option<Value> {
    if !group.is_empty() && !groups().contains(&group) {
        return None;
    }
    let mut resources = Vec::new();
    for kind in kinds_of(group) {
        resources.push(resource(kind));
        resources.extend(sorted(kind).into_iter().map(|one| subresource(kind, one)));
    }
    let version = match group {
        "" => "v1".to_owned(),
        group => format!("{group}/{}", version_of(group)),
    };
    Some(json!({
        "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": version,
        "resources": resources,
    }))
}

fn sorted(kind: &Kind) -> Vec<Subresource> {
    let mut all = kind.subresources.to_vec();
    all.sort_by_key(|one| one.as_str());
    all
}

fn verbs(kind: &Kind) -> Vec<&'static str> {
    // Namespaces are deleted one by one.
    let has = |verb: &&str| kind.resource != "namespaces" || *verb != "deletecollection";
    VERBS.into_iter().filter(has).collect()
}

fn resource(kind: &Kind) -> Value {
    let mut shown = json!({
        "name": kind.resource, "singularName": kind.singular, "namespaced": kind.is_namespaced(),
        "kind": kind.kind, "verbs": verbs(kind),
    });
    if !kind.short_names.is_empty() {
        shown["shortNames"] = json!(kind.short_names);
    }
    if !kind.categories.is_empty() {
        shown["categories"] = json!(kind.categories);
    }
    shown
}

fn subresource_verbs(one: Subresource) -> &'static [&'static str] {
    match one {
        Subresource::Status | Subresource::Scale => &["get", "patch", "update"],
        Subresource::Binding => &["create"],
        Subresource::Finalize => &["update"],
    }
}

/// Group, version, and kind of the objects of a subresource.
pub(crate) fn subresource_kind(kind: &Kind, one: Subresource) -> (&str, &str, &str) {
    match one {
        Subresource::Scale => ("autoscaling", "v1", "Scale"),
        Subresource::Binding => ("", "v1", "Binding"),
        Subresource::Status | Subresource::Finalize => (kind.group, kind.version(), kind.kind),
    }
}

fn subresource(kind: &Kind, one: Subresource) -> Value {
    let (group, version, name) = subresource_kind(kind, one);
    let mut shown = json!({
        "name": format!("{}/{}", kind.resource, one.as_str()), "singularName": "",
        "namespaced": kind.is_namespaced(), "kind": name, "verbs": subresource_verbs(one),
    });
    if one == Subresource::Scale {
        shown["group"] = json!(group);
        shown["version"] = json!(version);
    }
    shown
}

/// `/api` and `/apis` in aggregated form.
pub(crate) fn aggregated(groups: &[&str]) -> Value {
    let items: Vec<Value> = groups
        .iter()
        .map(|group| {
            let resources: Vec<Value> = kinds_of(group).map(aggregated_resource).collect();
            let version = version_of(group);
            let version =
                json!({"version": version, "resources": resources, "freshness": "Current"});
            let meta = if group.is_empty() { json!({}) } else { json!({"name": group}) };
            json!({"metadata": meta, "versions": [version]})
        })
        .collect();
    json!({
        "kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {},
        "items": items,
    })
}

fn aggregated_resource(kind: &Kind) -> Value {
    let of = |(group, version, kind): (&str, &str, &str)| json!({"group": group, "version": version, "kind": kind});
    let subresources: Vec<Value> = sorted(kind)
        .into_iter()
        .map(|one| {
            json!({
                "subresource": one.as_str(),
                "responseKind": of(subresource_kind(kind, one)),
                "verbs": subresource_verbs(one),
            })
        })
        .collect();
    let mut shown = json!({
        "resource": kind.resource,
        "responseKind": of((kind.group, kind.version(), kind.kind)),
        "scope": if kind.is_namespaced() { "Namespaced" } else { "Cluster" },
        "singularResource": kind.singular,
        "verbs": verbs(kind),
    });
    for (field, names) in [("shortNames", kind.short_names), ("categories", kind.categories)] {
        if !names.is_empty() {
            shown[field] = json!(names);
        }
    }
    if !subresources.is_empty() {
        shown["subresources"] = Value::Array(subresources);
    }
    shown
}
