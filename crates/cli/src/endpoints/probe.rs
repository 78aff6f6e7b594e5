//! Finds out whether an endpoints controller runs: it writes Endpoints for every new Service with a
//! selector, also if no pod matches.

use std::time::{Duration, Instant};

use endpointd_client::{Client, Preconditions, ReadError};
use serde_json::json;

use super::survey::text;
use crate::cli_error::CliError;
use crate::cluster::{ENDPOINTS, SERVICES};

const POLL: Duration = Duration::from_millis(250);
/// No pod has this label.
const LABEL: &str = "endpointd/probe";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    Controller,
    Nobody,
}

/// Creates a headless Service, which needs no address, and deletes it again in any case.
pub async fn finds_controller(
    client: &Client,
    namespace: &str,
    time: Duration,
) -> Result<Found, CliError> {
    let services = SERVICES.path(Some(namespace));
    let service = json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {"generateName": "endpointd-probe-", "labels": {LABEL: ""}},
        "spec": {"clusterIP": "None", "selector": {LABEL: "none"}},
    });
    let created = client.post_value(&services, &service).await.map_err(|error| {
        CliError::new(
            format!("cannot find out whether an endpoints controller runs: {error}"),
            format!("`kubectl auth can-i create services -n {namespace}`; `-n` chooses another"),
        )
    })?;
    let name = text(&created, "/metadata/name").to_owned();
    let found = wait(client, &format!("{}/{name}", ENDPOINTS.path(Some(namespace))), time).await;
    let preconditions = Preconditions {
        uid: text(&created, "/metadata/uid").to_owned(),
        resource_version: String::new(),
    };
    let deleted = client.delete_value(&format!("{services}/{name}"), &preconditions).await;
    deleted.map_err(|error| {
        CliError::new(
            format!("cannot delete the Service {namespace}/{name} again: {error}"),
            format!("`kubectl -n {namespace} delete service {name}`"),
        )
    })?;
    found.map_err(|error| {
        CliError::new(
            format!("cannot find out whether an endpoints controller runs: {error}"),
            format!("`kubectl auth can-i get endpoints -n {namespace}`"),
        )
    })
}

async fn wait(client: &Client, path: &str, time: Duration) -> Result<Found, ReadError> {
    let started = Instant::now();
    loop {
        match client.get_value(path).await {
            Ok(_) => return Ok(Found::Controller),
            Err(error) if error.is_not_found() => {}
            Err(error) => return Err(error),
        }
        if started.elapsed() >= time {
            return Ok(Found::Nobody);
        }
        tokio::time::sleep(POLL).await;
    }
}
