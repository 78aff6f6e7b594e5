//! Finds out whether an endpoints controller runs: it writes Endpoints for every new Service with a
//! selector, also if no pod matches. One that is limited to namespaces or labels writes them only there.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use endpointd_client::{Client, Preconditions, ReadError};
use serde_json::{Value, json};

use super::survey::text;
use crate::cli_error::CliError;
use crate::cluster::{ENDPOINTS, SERVICES};

const POLL: Duration = Duration::from_millis(250);
/// No pod has this label.
const LABEL: &str = "endpointd/probe";
/// Services at the same time.
const PROBES_MAX: usize = 50;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// In this namespace.
    Controller(String),
    Nobody,
}

/// What decides whether a controller looks at a Service.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    pub namespace: String,
    pub labels: BTreeMap<String, String>,
}

/// A Service that was created.
struct Probe {
    namespace: String,
    name: String,
    uid: String,
}

/// Looks in all places, some at a time, until a controller is found.
pub async fn find_controller(
    client: &Client,
    places: &BTreeSet<Place>,
    time: Duration,
) -> Result<Found, CliError> {
    let places: Vec<&Place> = places.iter().collect();
    for places in places.chunks(PROBES_MAX) {
        match find_in(client, places, time).await? {
            Found::Nobody => {}
            found @ Found::Controller(_) => return Ok(found),
        }
    }
    Ok(Found::Nobody)
}

/// Creates headless Services, which need no address, and deletes them again in any case.
async fn find_in(client: &Client, places: &[&Place], time: Duration) -> Result<Found, CliError> {
    let mut probes = Vec::new();
    let mut created = Ok(());
    for place in places {
        match create(client, place).await {
            Ok(probe) => probes.push(probe),
            Err(error) => {
                created = Err(error);
                break;
            }
        }
    }
    let found = match created {
        Ok(()) => wait(client, &probes, time).await.map_err(|error| {
            CliError::new(
                format!("cannot find out whether an endpoints controller runs: {error}"),
                "`kubectl auth can-i get endpoints`",
            )
        }),
        Err(error) => Err(error),
    };
    let mut deleted = Ok(());
    for probe in &probes {
        deleted = deleted.and(delete(client, probe).await);
    }
    deleted.and(found)
}

async fn create(client: &Client, place: &Place) -> Result<Probe, CliError> {
    let Place { namespace, labels } = place;
    let mut labels = labels.clone();
    labels.insert(LABEL.to_owned(), String::new());
    let service = json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {"generateName": "endpointd-probe-", "labels": labels},
        "spec": {"clusterIP": "None", "selector": {LABEL: "none"}},
    });
    let created = client.post_value(&SERVICES.path(Some(namespace)), &service).await;
    let created: Value = created.map_err(|error| {
        CliError::new(
            format!("cannot find out whether an endpoints controller runs: {error}"),
            format!("`kubectl auth can-i create services -n {namespace}`; `-n` chooses another"),
        )
    })?;
    Ok(Probe {
        namespace: namespace.clone(),
        name: text(&created, "/metadata/name").to_owned(),
        uid: text(&created, "/metadata/uid").to_owned(),
    })
}

async fn delete(client: &Client, probe: &Probe) -> Result<(), CliError> {
    let Probe { namespace, name, uid } = probe;
    let preconditions = Preconditions { uid: uid.clone(), resource_version: String::new() };
    let path = format!("{}/{name}", SERVICES.path(Some(namespace)));
    client.delete_value(&path, &preconditions).await.map_err(|error| {
        CliError::new(
            format!("cannot delete the Service {namespace}/{name} again: {error}"),
            format!("`kubectl delete services -A -l {LABEL}`"),
        )
    })
}

async fn wait(client: &Client, probes: &[Probe], time: Duration) -> Result<Found, ReadError> {
    let started = Instant::now();
    loop {
        for Probe { namespace, name, .. } in probes {
            let path = format!("{}/{name}", ENDPOINTS.path(Some(namespace)));
            match client.get_value(&path).await {
                Ok(_) => return Ok(Found::Controller(namespace.clone())),
                Err(error) if error.is_not_found() => {}
                Err(error) => return Err(error),
            }
        }
        if started.elapsed() >= time {
            return Ok(Found::Nobody);
        }
        tokio::time::sleep(POLL).await;
    }
}
