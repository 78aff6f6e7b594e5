//! `endpointd endpoints prune`: deletes what an endpoints controller wrote, once none runs.

use std::collections::{BTreeMap, BTreeSet};

use endpointd_client::{Client, Preconditions};
use endpointd_model::Timestamp;

use super::flags::PruneFlags;
use super::probe::{self, Place};
use super::survey::{self, Entry, Purpose};
use crate::cli_error::CliError;
use crate::cluster::{ENDPOINTS, connect};
use crate::duration::parse_duration;

/// A write within this time means that a controller runs.
const RECENT_SECS: i64 = 30;
const DISABLE: &str = "disable the endpoints controller first: `--controllers=*,-endpoints-controller` of \
     kube-controller-manager and of endpointd";

pub async fn prune(flags: &PruneFlags) -> Result<String, CliError> {
    let probe_time = parse_duration(&flags.probe_time).ok_or_else(|| {
        CliError::new(
            format!("`--probe-time` must be a duration: `{}`", flags.probe_time),
            "a number with `ms`, `s`, `m`, or `h`, as in `10s` or `1m30s`",
        )
    })?;
    let client = connect(&flags.connect).await?;
    let scope = flags.namespace.scope(Some(&client));
    let entries = prunable(survey::read(&client, &scope).await?);
    if !flags.confirm {
        return Ok(preview(&entries));
    }
    if entries.is_empty() {
        return Ok("There is nothing to delete.\n".to_owned());
    }
    if let Some((key, manager)) = recent_write(&entries, Timestamp::now()) {
        return Err(CliError::new(
            format!(
                "`{manager}` wrote Endpoints {key} in the last {RECENT_SECS} s: nothing was deleted"
            ),
            DISABLE,
        ));
    }
    match probe::find_controller(&client, &places(&entries), probe_time).await? {
        probe::Found::Controller(namespace) => Err(CliError::new(
            format!(
                "an endpoints controller is running: it wrote Endpoints for a new Service in \
                 `{namespace}`; nothing was deleted"
            ),
            DISABLE,
        )),
        probe::Found::Nobody => delete_all(&client, &entries).await,
    }
}

/// What `--confirm` deletes.
fn prunable(mut entries: Vec<Entry>) -> Vec<Entry> {
    entries.retain(|one| one.purpose == Purpose::Published);
    entries
}

/// Where a controller could run that writes some of them.
fn places(entries: &[Entry]) -> BTreeSet<Place> {
    let place = |one: &Entry| Place {
        namespace: one.namespace.clone(),
        labels: one.service_labels.clone(),
    };
    entries.iter().map(place).collect()
}

fn preview(entries: &[Entry]) -> String {
    let mut out = String::new();
    entries.iter().for_each(|one| out.push_str(&format!("{}\n", one.key())));
    let n_bytes: usize = entries.iter().map(|one| one.n_bytes).sum();
    let n = entries.len();
    out.push_str(&match n {
        0 => "There is nothing to delete.\n".to_owned(),
        n => format!(
            "\nWould delete {n} Endpoints with {n_bytes} bytes as JSON; `--confirm` deletes them.\n"
        ),
    });
    out
}

/// An object that somebody wrote a moment ago, and who.
fn recent_write(entries: &[Entry], now: Timestamp) -> Option<(String, String)> {
    entries.iter().find_map(|entry| {
        let is_recent = |time: &Option<Timestamp>| {
            time.is_some_and(|time| now.as_second() - time.as_second() <= RECENT_SECS)
        };
        let (manager, _) = entry.writers.iter().find(|(_, time)| is_recent(time))?;
        Some((entry.key(), manager.clone()))
    })
}

async fn delete_all(client: &Client, entries: &[Entry]) -> Result<String, CliError> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let mut out = String::new();
    for entry in entries {
        let path = format!("{}/{}", ENDPOINTS.path(Some(&entry.namespace)), entry.name);
        let preconditions = Preconditions {
            uid: entry.uid.clone(),
            resource_version: entry.resource_version.clone(),
        };
        let outcome = match client.delete_value(&path, &preconditions).await {
            Ok(()) => "deleted",
            Err(error) if error.is_not_found() => "already gone",
            Err(error) if error.code == Some(409) => "changed meanwhile, kept",
            Err(error) => {
                return Err(CliError::new(
                    format!("cannot delete Endpoints {}: {error}{}", entry.key(), so_far(&counts)),
                    format!("`kubectl auth can-i delete endpoints -n {}`", entry.namespace),
                ));
            }
        };
        *counts.entry(outcome).or_default() += 1;
        out.push_str(&format!("{} {outcome}\n", entry.key()));
    }
    let counts: Vec<String> = counts.iter().map(|(what, n)| format!("{n} {what}")).collect();
    out.push_str(&format!("\n{} Endpoints: {}.\n", entries.len(), counts.join(", ")));
    Ok(out)
}

fn so_far(counts: &BTreeMap<&str, usize>) -> String {
    match counts.get("deleted") {
        None => String::new(),
        Some(n) => format!(" ({n} were deleted before)"),
    }
}

#[cfg(test)]
mod tests {
    use endpointd_model::names;
    use serde_json::{Value, json};

    use super::*;

    /// The Service of some Endpoints.
    #[derive(Clone, Copy)]
    enum Of {
        Nothing,
        OtherNamespace,
        Service { kind: Option<&'static str>, selector: Selector },
    }

    #[derive(Clone, Copy, PartialEq)]
    enum Selector {
        Absent,
        Null,
        Empty,
        App,
    }

    fn all_services() -> Vec<Of> {
        let mut all = vec![Of::Nothing, Of::OtherNamespace];
        for kind in [None, Some("ClusterIP"), Some("ExternalName")] {
            for selector in [Selector::Absent, Selector::Null, Selector::Empty, Selector::App] {
                all.push(Of::Service { kind, selector });
            }
        }
        all
    }

    fn service(name: &str, of: Of) -> Option<Value> {
        let mut service = json!({"metadata": {"namespace": "shop", "name": name}, "spec": {}});
        match of {
            Of::Nothing => return None,
            Of::OtherNamespace => {
                service["metadata"]["namespace"] = json!("web");
                service["spec"]["selector"] = json!({"app": "web"});
            }
            Of::Service { kind, selector } => {
                if let Some(kind) = kind {
                    service["spec"]["type"] = json!(kind);
                }
                match selector {
                    Selector::Absent => {}
                    Selector::Null => service["spec"]["selector"] = Value::Null,
                    Selector::Empty => service["spec"]["selector"] = json!({}),
                    Selector::App => service["spec"]["selector"] = json!({"app": "web"}),
                }
            }
        }
        Some(service)
    }

    /// All combinations of what decides, in one cluster, listed in any order.
    #[test]
    fn only_what_a_controller_publishes_for_a_service_with_selector_is_deleted() {
        let (mut endpoints, mut services, mut expected) = (Vec::new(), Vec::new(), Vec::new());
        let managers = [None, Some("endpoint-controller"), Some("a-user"), Some("")];
        let locks = managers.iter().flat_map(|manager| [(*manager, false), (*manager, true)]);
        let locks: Vec<(Option<&str>, bool)> = locks.collect();
        let all = all_services().into_iter().flat_map(|of| locks.iter().map(move |one| (of, one)));
        for (of, &(manager, is_lock)) in all {
            let name = format!("web-{:03}", endpoints.len());
            let labels = manager.map(|one| json!({names::ENDPOINTS_MANAGED_BY: one}));
            let annotations = is_lock.then(|| json!({names::LEADER: "{}"}));
            services.extend(service(&name, of));
            endpoints.push(json!({"metadata": {
                "namespace": "shop", "name": name, "uid": format!("uid-{name}"),
                "resourceVersion": "7", "labels": labels, "annotations": annotations,
            }}));
            let publishes = matches!(
                of,
                Of::Service { kind: None | Some("ClusterIP"), selector: Selector::App }
            );
            if publishes && manager == Some("endpoint-controller") && !is_lock {
                expected.push(format!("shop/{name}"));
            }
        }
        assert_eq!((endpoints.len(), expected.len()), (14 * 4 * 2, 2));
        for turn in 0..endpoints.len() {
            endpoints.rotate_left(turn);
            services.reverse();
            let found = prunable(survey::survey(&endpoints, &services));
            let keys: Vec<String> = found.iter().map(Entry::key).collect();
            assert_eq!(keys, expected);
            let are_named =
                |one: &Entry| one.uid == format!("uid-{}", one.name) && one.resource_version == "7";
            assert!(found.iter().all(are_named), "a delete names what was read: {found:?}");
        }
    }

    #[test]
    fn a_write_in_the_last_seconds_is_recent() {
        let now: Timestamp = "2026-01-01T12:00:00Z".parse().expect("a time");
        let found = |time: Option<&str>| {
            let time = time.and_then(|text| text.parse().ok());
            let entry = Entry {
                namespace: "shop".into(),
                name: "web".into(),
                uid: String::new(),
                resource_version: String::new(),
                purpose: Purpose::Published,
                is_truncated: false,
                n_bytes: 0,
                service_labels: BTreeMap::new(),
                writers: [("kube-controller-manager".to_owned(), time)].into(),
            };
            recent_write(&[entry], now)
        };
        let written = ("shop/web".to_owned(), "kube-controller-manager".to_owned());
        assert_eq!(found(Some("2026-01-01T11:59:30Z")), Some(written));
        assert_eq!(found(Some("2026-01-01T11:58:59Z")), None);
        assert_eq!(found(None), None);
    }
}
