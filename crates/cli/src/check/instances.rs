//! Whether instances beside each other look at the same objects, by the annotation of their Leases.

use endpointd_client::{Client, Scope};
use endpointd_model::{Timestamp, names};
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

/// Leases without the annotation are compared with those that have it, and not with each other: they
/// can be for different controllers.
fn overlaps(leases: &[Value], now: Timestamp) -> Outcome {
    let instances: Vec<(&str, Option<&str>)> = leases
        .iter()
        .filter(|lease| text(lease, "/metadata/name").starts_with(ENDPOINTD) && is_held(lease, now))
        .map(|lease| {
            let annotations = lease.pointer("/metadata/annotations");
            let scope = annotations.and_then(|all| all.get(names::SCOPE)).and_then(Value::as_str);
            (text(lease, "/metadata/name"), scope)
        })
        .collect();
    for (n, (name, scope)) in instances.iter().enumerate() {
        for (other_name, other) in &instances[n + 1..] {
            let parse = |scope: Option<&str>| Scope::parse(scope.unwrap_or_default());
            let are_scoped = scope.is_some() || other.is_some();
            if let (true, Some(one), Some(two)) = (are_scoped, parse(*scope), parse(*other))
                && one.overlaps(&two)
            {
                let shown = |scope: &Option<&str>| scope.unwrap_or("everything").to_owned();
                let (a, b) = (shown(scope), shown(other));
                return Outcome::failed(
                    NAME,
                    format!(
                        "the holders of the Leases `{name}` ({a}) and `{other_name}` ({b}) look at \
                         the same objects"
                    ),
                    "`--namespaces`, `--service-selector`, or `--shard` must keep them apart",
                );
            }
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
        let now: Timestamp = "2026-01-01T12:00:10Z".parse().expect("a time");
        let lease = |(n, scope): (usize, &Option<&str>)| {
            json!({
                "metadata": {
                    "name": format!("endpointd-{n}"),
                    "annotations": scope.map(|scope| json!({names::SCOPE: scope})),
                },
                "spec": {"holderIdentity": "x", "renewTime": renewed, "leaseDurationSeconds": 15},
            })
        };
        let leases: Vec<Value> = scopes.iter().enumerate().map(lease).collect();
        overlaps(&leases, now).result
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
