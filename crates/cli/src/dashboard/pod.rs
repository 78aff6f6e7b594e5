//! Which pod serves the page: the one that leads, because a standby knows no queue and no changes.

use endpointd_client::{Client, ListOptions, ReadError};
use serde_json::Value;

use crate::cli_error::CliError;
use crate::cluster::{LEASES, PODS, unreachable};

/// How to choose a pod.
pub struct PodChoice {
    pub namespace: String,
    pub selector: String,
    /// Only this one.
    pub name: Option<String>,
    pub client: Client,
}

/// A pod that runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChosenPod {
    pub name: String,
    pub leads: bool,
}

impl PodChoice {
    pub async fn choose(&self) -> Result<ChosenPod, CliError> {
        let Self { namespace, selector, name, client } = self;
        let options = match name {
            Some(name) => ListOptions {
                field_selector: Some(format!("metadata.name={name}")),
                ..ListOptions::default()
            },
            None => {
                ListOptions { label_selector: Some(selector.clone()), ..ListOptions::default() }
            }
        };
        let pods = client.list_values(&PODS.path(Some(namespace)), &options).await;
        let pods = pods.map_err(|error| self.cannot_list(&error))?.items;
        // Without Leases any pod will do: each shows the same Services.
        let leases =
            client.list_values(&LEASES.path(Some(namespace)), &ListOptions::default()).await;
        let holders: Vec<String> = leases
            .map(|list| list.items)
            .unwrap_or_default()
            .iter()
            .filter_map(|lease| Some(lease.pointer("/spec/holderIdentity")?.as_str()?.to_owned()))
            .collect();
        choose(&pods, &holders).ok_or_else(|| self.none(pods.len()))
    }

    fn cannot_list(&self, error: &ReadError) -> CliError {
        let Self { namespace, client, .. } = self;
        if error.is_about_connection() {
            return unreachable(client, error);
        }
        CliError::new(
            format!("cannot list the pods of namespace `{namespace}`: {error}"),
            format!("`kubectl auth can-i list pods -n {namespace}`, or `--as` another user"),
        )
    }

    fn none(&self, n_pods: usize) -> CliError {
        let Self { namespace, selector, name, .. } = self;
        match (name, n_pods) {
            (Some(name), 0) => CliError::new(
                format!("there is no pod `{name}` in namespace `{namespace}`"),
                format!("`kubectl -n {namespace} get pods` lists what there is"),
            ),
            (None, 0) => CliError::new(
                format!("no pod in namespace `{namespace}` has {selector}"),
                "`-n` and `-l` say where endpointd runs; `endpointd playground` needs no cluster",
            ),
            (_, n) => CliError::new(
                format!("none of the {n} pods of endpointd in namespace `{namespace}` runs"),
                format!("`kubectl -n {namespace} get pods` shows why"),
            ),
        }
    }
}

/// The leader, else the first that is ready, else the first that runs.
fn choose(pods: &[Value], holders: &[String]) -> Option<ChosenPod> {
    let mut running: Vec<(u8, &str)> =
        pods.iter().filter_map(|pod| candidate(pod, holders)).collect();
    running.sort_unstable();
    let (rank, name) = running.first()?;
    Some(ChosenPod { name: (*name).to_owned(), leads: *rank == 0 })
}

/// The lower the first, the better. `None`: it does not run.
fn candidate<'p>(pod: &'p Value, holders: &[String]) -> Option<(u8, &'p str)> {
    let text = |pointer| pod.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let is_running = text("/status/phase") == "Running";
    if !is_running || pod.pointer("/metadata/deletionTimestamp").is_some_and(Value::is_string) {
        return None;
    }
    // The holder is the name of the host and a random number; with the host's network it is the node.
    let is_host_network = pod.pointer("/spec/hostNetwork").and_then(Value::as_bool) == Some(true);
    let host = if is_host_network { text("/spec/nodeName") } else { text("/metadata/name") };
    let leads = holders
        .iter()
        .filter_map(|holder| holder.rsplit_once('_'))
        .any(|(holder, _)| !host.is_empty() && holder == host);
    let conditions = pod.pointer("/status/conditions").and_then(Value::as_array);
    let is_ready = conditions
        .into_iter()
        .flatten()
        .any(|one| one["type"] == "Ready" && one["status"] == "True");
    let rank = match (leads, is_ready) {
        (true, _) => 0,
        (false, true) => 1,
        (false, false) => 2,
    };
    Some((rank, text("/metadata/name")))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(name: &str, phase: &str, ready: &str) -> Value {
        json!({
            "metadata": {"name": name}, "spec": {"nodeName": format!("node-of-{name}")},
            "status": {"phase": phase, "conditions": [{"type": "Ready", "status": ready}]},
        })
    }

    fn chosen(pods: &[Value], holder: &str) -> Option<(String, bool)> {
        choose(pods, &[holder.to_owned()]).map(|one| (one.name, one.leads))
    }

    #[test]
    fn the_pod_that_leads_is_chosen_else_one_that_is_ready() {
        let pods = [
            pod("a", "Pending", "False"),
            pod("b", "Running", "False"),
            pod("c", "Running", "True"),
        ];
        assert_eq!(chosen(&pods, "b_01"), Some(("b".to_owned(), true)));
        assert_eq!(chosen(&pods, "other_01"), Some(("c".to_owned(), false)));
        assert_eq!(chosen(&pods[..2], ""), Some(("b".to_owned(), false)));
        assert_eq!(chosen(&pods[..1], "a_01"), None, "it does not run");
        let mut deleted = pod("b", "Running", "True");
        deleted["metadata"]["deletionTimestamp"] = "2026-01-01T12:00:00Z".into();
        assert_eq!(chosen(&[deleted], "b_01"), None);
    }

    #[test]
    fn with_the_network_of_the_host_the_holder_is_a_node() {
        let mut host = pod("b", "Running", "True");
        assert_eq!(chosen(&[host.clone()], "node-of-b_01"), Some(("b".to_owned(), false)));
        host["spec"]["hostNetwork"] = true.into();
        assert_eq!(chosen(&[host], "node-of-b_01"), Some(("b".to_owned(), true)));
    }
}
