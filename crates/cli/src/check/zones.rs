//! Zones of nodes: topology hints need one on each node.

use endpointd_client::{Client, Content};
use serde_json::Value;

use super::{Outcome, list, text};

const NAME: &str = "zones";
const NAMES_MAX: usize = 3;

pub async fn check(client: &Client) -> Outcome {
    match list(client, "/api/v1/nodes", Content::Metadata).await {
        Ok(nodes) => outcome(&nodes),
        Err(error) => Outcome::skipped(NAME, "nodes", &error),
    }
}

fn outcome(nodes: &[Value]) -> Outcome {
    let has_zone =
        |node: &&Value| node["metadata"]["labels"]["topology.kubernetes.io/zone"].is_string();
    let without: Vec<&str> = nodes
        .iter()
        .filter(|node| !has_zone(node))
        .map(|node| text(node, "/metadata/name"))
        .collect();
    let n = nodes.len();
    match without.as_slice() {
        [] if n == 0 => Outcome::ok(NAME, "there are no nodes"),
        [] => Outcome::ok(NAME, format!("all {n} nodes have a zone")),
        all if all.len() == n => {
            Outcome::ok(NAME, "no node has a zone: topology hints are not used")
        }
        some => {
            let shown = some.iter().take(NAMES_MAX).copied().collect::<Vec<_>>().join(", ");
            let more = some.len().saturating_sub(NAMES_MAX);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            Outcome::warning(
                NAME,
                format!("{} of {n} nodes have no zone: {shown}{more}", some.len()),
                "one node without `topology.kubernetes.io/zone` prevents topology hints",
            )
        }
    }
}
