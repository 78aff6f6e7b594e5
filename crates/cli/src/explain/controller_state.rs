//! What a running endpointd reports about a key, on its page `/report`, and what it finds itself, if
//! the cluster cannot be read from here.

use endpointd_client::{Client, ConnectOptions, ReadError};
use endpointd_explain::{ControllerState, Findings, SourceReport};
use endpointd_model::Key;
use serde_json::Value;

use crate::cli_error::CliError;

pub struct Reporter {
    client: Client,
    url: String,
    is_deletion_limiter_active: bool,
    clusters: Vec<SourceReport>,
}

impl Reporter {
    pub async fn connect(url: &str) -> Result<Self, CliError> {
        let options = ConnectOptions {
            server: Some(url.trim_end_matches('/').to_owned()),
            user_agent: format!("endpointd/{}", env!("CARGO_PKG_VERSION")),
            ..ConnectOptions::default()
        };
        let client = Client::connect(options).await.map_err(|error| {
            CliError::new(
                format!("cannot use `--endpointd`: {}", first_line(&error.to_string())),
                HINT,
            )
        })?;
        let report = client.get_value("/report").await.map_err(|error| no_report(url, &error))?;
        let is_active = report.value.pointer("/deletionLimiter/active").and_then(Value::as_bool);
        Ok(Self {
            client,
            url: url.to_owned(),
            is_deletion_limiter_active: is_active.unwrap_or(false),
            clusters: clusters(&report.value),
        })
    }

    /// Of the rows of a key, the one with an error counts, else the first that is not idle.
    pub async fn state(&self, key: &Key) -> Result<ControllerState, CliError> {
        let path = format!("/report?key={key}");
        let report =
            self.client.get_value(&path).await.map_err(|error| no_report(&self.url, &error))?;
        let rows = report.value["keys"].as_array().map_or(&[][..], Vec::as_slice);
        let error_of = |row: &&Value| row["lastError"].is_string();
        let is_busy = |row: &&Value| row["state"].as_str() != Some("idle");
        let row = rows.iter().find(error_of).or_else(|| rows.iter().find(is_busy));
        let text = |field: &str| Some(row?.get(field)?.as_str()?.to_owned());
        Ok(ControllerState {
            key_state: text("state").unwrap_or_default(),
            last_error: text("lastError"),
            is_deletion_limiter_active: self.is_deletion_limiter_active,
            clusters: self.clusters.clone(),
        })
    }

    /// What endpointd says about a Service; `why` the cluster was not read from here is part of it.
    pub async fn findings(&self, key: &Key, why: &CliError) -> Result<Findings, CliError> {
        let path = format!("/api/v1/services/{}/{}/findings", key.namespace, key.name);
        let found =
            self.client.get_value(&path).await.map_err(|error| no_report(&self.url, &error))?;
        let mut findings = serde_json::from_value::<Findings>(found.value).map_err(|error| {
            CliError::new(
                format!("endpointd at {} answers in another form: {error}", self.url),
                "use the `endpointd explain` of its version: `curl URL/api/v1` shows it",
            )
        })?;
        let whose = format!("explained by endpointd at {}, because {}", self.url, why.message);
        findings.not_read.insert(0, whose);
        Ok(findings)
    }
}

/// Of the field `clusters`.
fn clusters(report: &Value) -> Vec<SourceReport> {
    let source = |row: &Value| {
        let text = |field: &str| row[field].as_str().unwrap_or_default();
        SourceReport {
            cluster: text("cluster").to_owned(),
            state: text("state").to_owned(),
            last_contact: text("lastContact").parse().ok(),
            is_denied: row["denied"].as_bool().unwrap_or(false),
        }
    };
    report["clusters"].as_array().into_iter().flatten().map(source).collect()
}

const HINT: &str = "`kubectl -n endpointd port-forward deploy/endpointd 10271` makes it reachable \
                    as `--endpointd http://127.0.0.1:10271`";

fn no_report(url: &str, error: &ReadError) -> CliError {
    CliError::new(format!("no report from endpointd at {url}: {error}"), HINT)
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}
