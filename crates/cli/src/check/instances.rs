//! Whether instances beside each other look at the same objects, by the annotations of their Leases.

use std::fmt;

use endpointd_client::Client;
use endpointd_explain::LEASE_PREFIX;
use endpointd_model::{Scope, Timestamp, names};
use serde_json::Value;

use super::{Content, Outcome, list, text};

const NAME: &str = "instances";
const ENDPOINTD: &str = "endpointd";

pub async fn check(client: &Client, namespace: &str) -> Outcome {
    let path = format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases");
    match list(client, &path, Content::Complete).await {
        Ok(leases) => overlaps(&leases, Timestamp::now()),
        Err(error) => Outcome::skipped(NAME, "the Leases of instances", &error),
    }
}

/// What the annotations of a Lease say about its holder.
struct Instance<'a> {
    lease: &'a str,
    scope: Option<&'a str>,
    controller_name: Option<&'a str>,
}

impl<'a> Instance<'a> {
    fn of(lease: &'a Value) -> Self {
        let annotation = |key: &str| lease.pointer("/metadata/annotations")?.get(key)?.as_str();
        Self {
            lease: text(lease, "/metadata/name"),
            scope: annotation(names::SCOPE),
            controller_name: annotation(names::CONTROLLER_NAME),
        }
    }

    /// Those without annotations can be for different controllers.
    fn is_annotated(&self) -> bool {
        self.scope.is_some() || self.controller_name.is_some()
    }

    fn overlaps(&self, other: &Self) -> bool {
        let scope = |one: &Self| Scope::parse(one.scope.unwrap_or_default());
        let scopes = scope(self).zip(scope(other));
        (self.is_annotated() || other.is_annotated())
            && scopes.is_some_and(|(one, other)| one.overlaps(&other))
    }
}

impl fmt::Display for Instance<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` ({}", self.lease, self.scope.unwrap_or("everything"))?;
        if let Some(name) = self.controller_name {
            write!(f, ", named {name}")?;
        }
        f.write_str(")")
    }
}

/// Instances with different names overlap, too: each would publish all endpoints.
fn overlaps(leases: &[Value], now: Timestamp) -> Outcome {
    // The Lease of another cluster says when that was in contact.
    let is_of_instance =
        |name: &str| name.starts_with(ENDPOINTD) && !name.starts_with(LEASE_PREFIX);
    let instances: Vec<Instance> = leases
        .iter()
        .filter(|lease| is_of_instance(text(lease, "/metadata/name")) && is_held(lease, now))
        .map(Instance::of)
        .collect();
    for (n, one) in instances.iter().enumerate() {
        if let Some(other) = instances[n + 1..].iter().find(|other| one.overlaps(other)) {
            return Outcome::failed(
                NAME,
                format!("the holders of the Leases {one} and {other} look at the same objects"),
                "`--namespaces`, `--service-selector`, or `--shard` must keep them apart",
            );
        }
    }
    Outcome::ok(NAME, format!("{} with a Lease, none of which overlap", instances.len()))
}

fn is_held(lease: &Value, now: Timestamp) -> bool {
    let renewed: Option<Timestamp> = text(lease, "/spec/renewTime").parse().ok();
    let duration =
        lease.pointer("/spec/leaseDurationSeconds").and_then(Value::as_i64).unwrap_or(15);
    let is_current =
        renewed.is_some_and(|renewed| renewed.as_second() + duration >= now.as_second());
    is_current && !text(lease, "/spec/holderIdentity").is_empty()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::check::CheckResult;

    fn result(scopes: &[Option<&str>], renewed: &str) -> CheckResult {
        let instances: Vec<_> = scopes.iter().map(|scope| (*scope, None)).collect();
        outcome(&instances, renewed).result
    }

    /// Scope and name of each.
    fn outcome(instances: &[(Option<&str>, Option<&str>)], renewed: &str) -> Outcome {
        let now: Timestamp = "2026-01-01T12:00:10Z".parse().expect("a time");
        let lease = |(n, (scope, name)): (usize, &(Option<&str>, Option<&str>))| {
            json!({
                "metadata": {
                    "name": format!("endpointd-{n}"),
                    "annotations": {names::SCOPE: scope, names::CONTROLLER_NAME: name},
                },
                "spec": {"holderIdentity": "x", "renewTime": renewed, "leaseDurationSeconds": 15},
            })
        };
        let leases: Vec<Value> = instances.iter().enumerate().map(lease).collect();
        overlaps(&leases, now)
    }

    #[test]
    fn instances_with_names_overlap_unless_their_scopes_keep_them_apart() {
        let now = "2026-01-01T12:00:00Z";
        let apart = [(Some("namespaces:a"), Some("blue")), (Some("namespaces:b"), Some("green"))];
        assert_eq!(outcome(&apart, now).result, CheckResult::Ok);
        let both = outcome(&[(None, Some("blue")), (None, None)], now);
        assert_eq!(both.result, CheckResult::Failed);
        let named = "`endpointd-0` (everything, named blue) and `endpointd-1` (everything)";
        assert!(both.message.contains(named), "{}", both.message);
    }

    #[test]
    fn the_lease_of_another_cluster_is_none_of_an_instance() {
        let lease = |name: &str, scope: Option<&str>| {
            json!({
                "metadata": {"name": name, "annotations": {names::SCOPE: scope}},
                "spec": {"holderIdentity": "x", "renewTime": "2026-01-01T12:00:00Z"},
            })
        };
        let leases =
            [lease("endpointd", Some("namespaces:a")), lease("endpointd-source-eu1", None)];
        let outcome = overlaps(&leases, "2026-01-01T12:00:10Z".parse().expect("a time"));
        assert_eq!(outcome.result, CheckResult::Ok, "{}", outcome.message);
    }

    #[test]
    fn overlapping_scopes_are_a_failure() {
        let now = "2026-01-01T12:00:00Z";
        for (scopes, want) in [
            (&[Some("namespaces:a"), Some("namespaces:b")][..], CheckResult::Ok),
            (&[Some("namespaces:a"), Some("namespaces:a,b")], CheckResult::Failed),
            (&[Some("namespaces:a"), None], CheckResult::Failed),
            (&[Some("shard:1-of-2"), Some("shard:2-of-2")], CheckResult::Ok),
            (&[None, None], CheckResult::Ok),
            (&[], CheckResult::Ok),
        ] {
            assert_eq!(result(scopes, now), want, "{scopes:?}");
        }
        let expired = "2026-01-01T11:59:00Z";
        assert_eq!(result(&[Some("namespaces:a"), None], expired), CheckResult::Ok);
    }
}
