//! Who writes EndpointSlices: the Leases of the controllers, and the fields that they manage.

use std::collections::BTreeMap;

use endpointd_client::{Client, Content, ListOptions};
use endpointd_model::Timestamp;
use serde_json::Value;

use super::{Outcome, Stage, items, text};

const KCM: &str = "kube-controller-manager";
const ENDPOINTD: &str = "endpointd";
/// Two writers within this time run at the same time.
const SIMULTANEOUS_SECS: i64 = 60;
/// Slices whose writers are looked at.
const SLICES_MAX: usize = 2000;

pub async fn check(
    client: &Client,
    stage: Stage,
    (namespace, lease_name): (&str, &str),
) -> Vec<Outcome> {
    let now = Timestamp::now();
    let mut outcomes = Vec::new();
    if stage == Stage::Installed {
        outcomes.push(lease(client, namespace, lease_name, now).await);
    }
    let options = ListOptions {
        n_objects_max: Some(SLICES_MAX),
        content: Content::Metadata,
        ..ListOptions::default()
    };
    outcomes.push(
        match client.list_values("/apis/discovery.k8s.io/v1/endpointslices", &options).await {
            Ok(slices) => writers(stage, &last_writes(&slices.items), now),
            Err(error) => Outcome::skipped("writers", "EndpointSlices", &error),
        },
    );
    outcomes
}

async fn lease(client: &Client, namespace: &str, name: &str, now: Timestamp) -> Outcome {
    let path = format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{name}");
    let lease = match client.get_value(&path).await {
        Ok(response) => response.value,
        Err(error) if error.is_not_found() => {
            return Outcome::failed(
                "lease",
                format!("there is no Lease {namespace}/{name}: endpointd has never led"),
                format!(
                    "`kubectl -n {namespace} get pods` shows whether it runs; `-n` names its namespace, `--lease` its Lease"
                ),
            );
        }
        Err(error) => return Outcome::skipped("lease", "the Lease of endpointd", &error),
    };
    let holder = text(&lease, "/spec/holderIdentity");
    let renewed: Option<Timestamp> = text(&lease, "/spec/renewTime").parse().ok();
    let duration =
        lease.pointer("/spec/leaseDurationSeconds").and_then(Value::as_i64).unwrap_or(15);
    let is_current =
        renewed.is_some_and(|renewed| renewed.as_second() + duration >= now.as_second());
    match is_current && !holder.is_empty() {
        true => Outcome::ok("lease", format!("`{holder}` leads")),
        false => Outcome::failed(
            "lease",
            format!("nobody holds the Lease {namespace}/{name}: nothing is published"),
            format!("`kubectl -n {namespace} logs deploy/endpointd` shows why"),
        ),
    }
}

/// When each controller last wrote a slice.
fn last_writes(slices: &[Value]) -> BTreeMap<&str, Timestamp> {
    let mut last: BTreeMap<&str, Timestamp> = BTreeMap::new();
    for entry in slices.iter().flat_map(|slice| items(slice, "/metadata/managedFields")) {
        let manager = text(entry, "/manager");
        let Ok(time) = text(entry, "/time").parse::<Timestamp>() else { continue };
        if [KCM, ENDPOINTD].contains(&manager) {
            let newest = last.entry(manager).or_insert(time);
            *newest = time.max(*newest);
        }
    }
    last
}

fn writers(stage: Stage, last: &BTreeMap<&str, Timestamp>, now: Timestamp) -> Outcome {
    let age = |manager: &str| last.get(manager).map(|time| now.as_second() - time.as_second());
    let is_recent = |manager: &str| age(manager).is_some_and(|age| age <= SIMULTANEOUS_SECS);
    let ago = |manager: &str| match age(manager) {
        Some(secs) => format!("{secs} s ago"),
        None => "never".to_owned(),
    };
    let disable = "disable its three controllers: \
                   `--controllers=*,-endpoints-controller,-endpointslice-controller,\
                   -endpointslice-mirroring-controller`";
    let name = "writers";
    if is_recent(KCM) && is_recent(ENDPOINTD) {
        let message = "both endpointd and kube-controller-manager have written EndpointSlices in \
                       the last minute";
        return Outcome::failed(name, message, disable);
    }
    match stage {
        Stage::Before => Outcome::ok(
            name,
            format!(
                "EndpointSlices were last written by {KCM}: {}; by endpointd: {}",
                ago(KCM),
                ago(ENDPOINTD)
            ),
        ),
        Stage::Installed if is_recent(KCM) => {
            Outcome::failed(name, format!("{KCM} has written EndpointSlices {}", ago(KCM)), disable)
        }
        Stage::Installed => Outcome::ok(
            name,
            format!("only endpointd writes EndpointSlices, the last one {}", ago(ENDPOINTD)),
        ),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::check::CheckResult;

    #[test]
    fn two_writers_within_a_minute_are_a_failure() {
        let now: Timestamp = "2026-01-01T12:00:00Z".parse().expect("a time");
        let result = |stage, endpointd: &str, kcm: &str| {
            let entry = |manager, time| json!({"manager": manager, "time": time});
            let fields = [entry(ENDPOINTD, endpointd), entry(KCM, kcm)];
            let slices = [json!({"metadata": {"managedFields": fields}})];
            writers(stage, &last_writes(&slices), now).result
        };
        let (recent, old) = ("2026-01-01T11:59:30Z", "2026-01-01T11:00:00Z");
        assert_eq!(result(Stage::Installed, recent, recent), CheckResult::Failed);
        assert_eq!(result(Stage::Before, recent, recent), CheckResult::Failed);
        assert_eq!(result(Stage::Installed, old, recent), CheckResult::Failed);
        assert_eq!(result(Stage::Before, old, recent), CheckResult::Ok);
        assert_eq!(result(Stage::Installed, recent, old), CheckResult::Ok);
    }
}
