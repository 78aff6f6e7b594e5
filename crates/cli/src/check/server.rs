//! The API server: version, API, clock, and how it ranks requests of endpointd.

use std::collections::BTreeSet;

use endpointd_client::{Client, Content, ReadError};
use endpointd_model::Timestamp;
use serde_json::Value;

use super::{Outcome, items, list, text};

/// The first minor version with `discovery.k8s.io/v1`.
const MINOR_MIN: u32 = 21;
/// The minor versions that CI tests.
const MINORS_TESTED: std::ops::RangeInclusive<u32> = 33..=37;
/// A Lease expires after 15 s.
const SKEW_MAX_SECS: i64 = 5;

pub async fn version(client: &Client) -> Result<Vec<Outcome>, ReadError> {
    let response = client.get_value("/version").await?;
    let version = text(&response.value, "/gitVersion");
    let digits: String =
        text(&response.value, "/minor").chars().take_while(char::is_ascii_digit).collect();
    let minor: Option<u32> = digits.parse().ok();
    let message = format!("API server {version} at {}", client.server());
    let range = format!("v1.{} to v1.{}", MINORS_TESTED.start(), MINORS_TESTED.end());
    let server = match minor {
        Some(minor) if minor < MINOR_MIN => {
            Outcome::failed("server", message, format!("endpointd needs v1.{MINOR_MIN} or later"))
        }
        Some(minor) if MINORS_TESTED.contains(&minor) => Outcome::ok("server", message),
        Some(_) | None => Outcome::warning("server", message, format!("tested are {range}")),
    };
    let skew = response.date.and_then(|date| skew_secs(&date, Timestamp::now()));
    let clock = skew.map(|secs| match secs.abs() <= SKEW_MAX_SECS {
        true => Outcome::ok("clock", "the clocks of this machine and the API server agree"),
        false => Outcome::warning(
            "clock",
            format!("the clock of this machine differs by {secs} s from the API server's"),
            "ages in `explain` are wrong by that much; on the nodes of endpointd, run NTP",
        ),
    });
    Ok(std::iter::once(server).chain(clock).collect())
}

/// From an HTTP date, such as `Thu, 19 Nov 2026 03:23:36 GMT`.
fn skew_secs(date: &str, now: Timestamp) -> Option<i64> {
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let words: Vec<&str> = date.split(' ').collect();
    let [_, day, month, year, time, _] = words[..] else { return None };
    let month = MONTHS.iter().position(|one| *one == month)? + 1;
    let server: Timestamp = format!("{year}-{month:02}-{day}T{time}Z").parse().ok()?;
    Some(now.as_second() - server.as_second())
}

pub async fn discovery(client: &Client) -> Outcome {
    let name = "discovery";
    match client.get_value("/apis/discovery.k8s.io/v1").await {
        Ok(response) => {
            let resources = items(&response.value, "/resources");
            match resources.iter().any(|one| text(one, "/name") == "endpointslices") {
                true => Outcome::ok(name, "discovery.k8s.io/v1 serves EndpointSlices"),
                false => no_slices(),
            }
        }
        Err(error) if error.is_not_found() => no_slices(),
        Err(error) => Outcome::skipped(name, "the API group discovery.k8s.io/v1", &error),
    }
}

fn no_slices() -> Outcome {
    let message = "the API server does not serve EndpointSlices of discovery.k8s.io/v1";
    Outcome::failed("discovery", message, "it was possibly disabled with `--runtime-config`")
}

pub async fn priority_level(client: &Client, namespace: &str) -> Outcome {
    let name = "priority";
    let path = "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas";
    let schemas = match list(client, path, Content::Complete).await {
        Ok(schemas) => schemas,
        Err(error) => return Outcome::skipped(name, "FlowSchemas", &error),
    };
    let is_of_endpointd = |schema: &&Value| {
        let subjects =
            items(schema, "/spec/rules").iter().flat_map(|rule| items(rule, "/subjects"));
        subjects.into_iter().any(|subject| {
            text(subject, "/serviceAccount/namespace") == namespace
                && text(subject, "/serviceAccount/name").starts_with("endpointd")
        })
    };
    let own: Vec<&Value> = schemas.iter().filter(is_of_endpointd).collect();
    let level_of =
        |schema: &Value| text(schema, "/spec/priorityLevelConfiguration/name").to_owned();
    if let Some(schema) = own.iter().find(|schema| is_dangling(schema)) {
        return Outcome::failed(
            name,
            format!(
                "the FlowSchema {} has no effect: there is no priority level `{}`",
                text(schema, "/metadata/name"),
                level_of(schema)
            ),
            "`kubectl get prioritylevelconfigurations`; without one, the API server gives requests of \
             endpointd the priority level of all accounts",
        );
    }
    let levels: BTreeSet<String> =
        own.iter().map(|schema| format!("`{}`", level_of(schema))).collect();
    if levels.is_empty() {
        return Outcome::warning(
            name,
            "no FlowSchema is for endpointd: its requests share the priority level of all accounts",
            "apply the FlowSchemas in `deploy/`",
        );
    }
    let levels = levels.into_iter().collect::<Vec<_>>().join(" and ");
    Outcome::ok(name, format!("requests of endpointd have the priority level {levels}"))
}

/// The API server says so of a schema whose priority level does not exist.
fn is_dangling(schema: &Value) -> bool {
    let mut conditions = items(schema, "/status/conditions").iter();
    conditions.any(|one| text(one, "/type") == "Dangling" && text(one, "/status") == "True")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_of_the_server_is_read_from_its_date() {
        let now: Timestamp = "2026-11-19T03:23:40Z".parse().expect("a time");
        assert_eq!(skew_secs("Thu, 19 Nov 2026 03:23:36 GMT", now), Some(4));
        assert_eq!(skew_secs("yesterday", now), None);
    }
}
