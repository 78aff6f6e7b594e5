//! Which cluster it is: the uid of its namespace kube-system, as a running endpointd asks for it.

use std::time::Duration;

use endpointd_client::{Client, ConnectOptions, ReadError, kubeconfig_summary};
use endpointd_model::ClusterId;
use tokio::time::timeout;

use super::Entry;
use crate::cli_error::CliError;
use crate::cluster::{cannot_connect, unreachable};

const IDENTITY: &str = "/api/v1/namespaces/kube-system";
/// The name that a cluster gives itself, where it is served.
const PROPERTY: &str = "/apis/about.k8s.io/v1beta1/clusterproperties/cluster.clusterset.k8s.io";
/// A cluster that does not answer delays the others by this.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);

pub async fn connect(options: ConnectOptions) -> Result<Client, CliError> {
    Client::connect(options).await.map_err(|error| cannot_connect(&error))
}

/// The error does not say which cluster it is about.
pub async fn uid(client: &Client) -> Result<String, ReadError> {
    let answer = timeout(ANSWER_TIMEOUT, client.get_value(IDENTITY)).await.map_err(|_| {
        let secs = ANSWER_TIMEOUT.as_secs();
        ReadError { code: None, message: format!("no answer within {secs} s") }
    })??;
    let uid = answer.value.pointer("/metadata/uid").and_then(|uid| uid.as_str());
    uid.map(str::to_owned).ok_or_else(|| ReadError {
        code: Some(200),
        message: "the namespace kube-system has no uid".to_owned(),
    })
}

/// With the permissions of the user, who must be able to read it.
pub async fn uid_for_user(client: &Client) -> Result<String, CliError> {
    uid(client).await.map_err(|error| match error.is_about_connection() {
        true => unreachable(client, &error),
        false => CliError::new(
            format!("cannot read the namespace kube-system at {}: {error}", client.server()),
            "its uid is the identity of a cluster: `kubectl auth can-i get namespace/kube-system`",
        ),
    })
}

/// A running endpointd would refuse a cluster under another name than its own.
pub async fn check_name(client: &Client, id: &ClusterId) -> Result<(), CliError> {
    let Ok(property) = client.get_value(PROPERTY).await else { return Ok(()) };
    match property.value.pointer("/spec/value").and_then(|name| name.as_str()) {
        Some(name) if name != id.as_str() => Err(CliError::new(
            format!("the cluster at {} calls itself `{name}`, not `{id}`", client.server()),
            "its ClusterProperty `cluster.clusterset.k8s.io` has its name: use that one",
        )),
        Some(_) | None => Ok(()),
    }
}

/// The name of another entry that is the same cluster. Of a file that says which cluster it is for,
/// nobody is asked.
pub async fn same_cluster(entries: &[Entry], name: &str, uid: &str) -> Option<String> {
    for entry in entries.iter().filter(|entry| entry.name != name) {
        if known_uid(entry).await.as_deref() == Some(uid) {
            return Some(entry.name.clone());
        }
    }
    None
}

pub async fn known_uid(entry: &Entry) -> Option<String> {
    if let Ok(summary) = kubeconfig_summary(&entry.options)
        && summary.uid.is_some()
    {
        return summary.uid;
    }
    let client = Client::connect(entry.options.clone()).await.ok()?;
    uid(&client).await.ok()
}
