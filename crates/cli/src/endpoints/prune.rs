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
    let mut entries = survey::read(&client, &scope).await?;
    entries.retain(|one| one.purpose == Purpose::Published);
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
    use super::*;

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
