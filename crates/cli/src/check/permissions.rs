//! What the user may do, by a SelfSubjectAccessReview for each verb of each rule in `deploy/`.

use std::collections::BTreeMap;

use endpointd_client::Client;
use serde_json::json;

use super::Outcome;
use super::outcome::Result as CheckResult;
use crate::access_review::is_allowed;

/// A rule of the ClusterRole: API group, resource, subresource, and verbs.
type Rule = (&'static str, &'static str, &'static str, &'static [&'static str]);

const READ: &[&str] = &["get", "list", "watch"];
const WRITE: &[&str] = &["get", "list", "watch", "create", "update", "delete"];
const EVENTS: &[&str] = &["create", "update", "patch"];
const RULES: &[Rule] = &[
    ("", "services", "", READ),
    ("", "pods", "", READ),
    ("", "nodes", "", READ),
    ("", "services", "finalizers", &["update"]),
    ("", "endpoints", "finalizers", &["update"]),
    ("", "endpoints", "", WRITE),
    ("", "endpoints", "restricted", &["create"]),
    ("discovery.k8s.io", "endpointslices", "", WRITE),
    ("", "events", "", EVENTS),
    ("events.k8s.io", "events", "", EVENTS),
];

pub async fn check(client: &Client, namespace: &str, lease: &str) -> Vec<Outcome> {
    let mut denied: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    let mut n_allowed = 0;
    for (group, resource, subresource, verbs) in RULES {
        for verb in *verbs {
            let attributes = json!({
                "group": group, "resource": resource, "subresource": subresource, "verb": verb,
            });
            match is_allowed(client, attributes).await {
                Ok(true) => n_allowed += 1,
                Ok(false) => {
                    denied.entry(full_name(group, resource, subresource)).or_default().push(verb)
                }
                Err(error) => return vec![Outcome::skipped("permissions", "permissions", &error)],
            }
        }
    }
    for verb in ["create", "get", "update"] {
        let name = if verb == "create" { "" } else { lease };
        let attributes = json!({
            "group": "coordination.k8s.io", "resource": "leases", "verb": verb,
            "namespace": namespace, "name": name,
        });
        match is_allowed(client, attributes).await {
            Ok(true) => n_allowed += 1,
            Ok(false) => {
                let lease = format!("leases.coordination.k8s.io in namespace `{namespace}`");
                denied.entry(lease).or_default().push(verb);
            }
            Err(error) => return vec![Outcome::skipped("permissions", "permissions", &error)],
        }
    }
    outcomes(n_allowed, &denied)
}

fn outcomes(n_allowed: usize, denied: &BTreeMap<String, Vec<&str>>) -> Vec<Outcome> {
    if denied.is_empty() {
        let message = format!("the user has all {n_allowed} permissions of endpointd");
        return vec![Outcome::ok("permissions", message)];
    }
    let hint = "`--as system:serviceaccount:endpointd:endpointd` checks the account of endpointd; \
                `deploy/base/rbac.yaml` has its permissions";
    let outcome = |(resource, verbs): (&String, &Vec<&str>)| {
        Outcome::failed("permissions", format!("may not {} {resource}", verbs.join(", ")), hint)
    };
    let mut outcomes: Vec<Outcome> = denied.iter().map(outcome).collect();
    // One hint for all.
    let last = outcomes.len() - 1;
    outcomes[..last].iter_mut().for_each(|one| one.hint = None);
    debug_assert!(outcomes.iter().all(|one| one.result == CheckResult::Failed));
    outcomes
}

fn full_name(group: &str, resource: &str, subresource: &str) -> String {
    let mut name = resource.to_owned();
    if !subresource.is_empty() {
        name.push_str(&format!("/{subresource}"));
    }
    if !group.is_empty() {
        name.push_str(&format!(".{group}"));
    }
    name
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::Value;

    use super::*;
    use crate::check::items;
    use crate::input::{self, Source};

    /// Group, resource with subresource, and verb.
    type Permission = (String, String, String);

    fn in_manifests() -> BTreeSet<Permission> {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/base/rbac.yaml");
        let sources = Source::find(&[path.into()]).map_err(|error| error.message).expect("a file");
        let objects: Vec<Value> =
            input::read_objects(&sources).map_err(|error| error.message).expect("YAML");
        let role = objects.iter().find(|one| one["kind"] == "ClusterRole").expect("a ClusterRole");
        let mut permissions = BTreeSet::new();
        let texts = |value: &Value, pointer: &str| -> Vec<String> {
            items(value, pointer).iter().filter_map(|one| one.as_str().map(str::to_owned)).collect()
        };
        for rule in items(role, "/rules") {
            for group in texts(rule, "/apiGroups") {
                for resource in texts(rule, "/resources") {
                    let verbs = texts(rule, "/verbs").into_iter();
                    permissions.extend(verbs.map(|verb| (group.clone(), resource.clone(), verb)));
                }
            }
        }
        permissions
    }

    #[test]
    fn the_permissions_are_those_of_the_manifests() {
        let mut checked = BTreeSet::new();
        for (group, resource, subresource, verbs) in RULES {
            let resource = match *subresource {
                "" => (*resource).to_owned(),
                sub => format!("{resource}/{sub}"),
            };
            for verb in *verbs {
                checked.insert(((*group).to_owned(), resource.clone(), (*verb).to_owned()));
            }
        }
        assert_eq!(checked, in_manifests());
    }

    #[test]
    fn what_is_denied_is_named_with_one_hint() {
        let denied = [("pods".to_owned(), vec!["list"]), ("nodes".to_owned(), vec!["get", "list"])];
        let outcomes = outcomes(3, &denied.into());
        let messages: Vec<&str> = outcomes.iter().map(|one| one.message.as_str()).collect();
        assert_eq!(messages, ["may not get, list nodes", "may not list pods"]);
        assert_eq!(outcomes.iter().filter(|one| one.hint.is_some()).count(), 1);
    }
}
