//! Reads more if an explanation found nothing in its namespace: the same Service or the same labels
//! in other namespaces. Both are near misses; that they may not be read is not worth a note.

use endpointd_client::{Client, Content, ListOptions};
use endpointd_explain::{Code, Findings, Objects};
use endpointd_model::Key;
use serde_json::Value;

use super::live::{complete, list};
use super::resource::{PODS, SERVICES};

/// Enough to name the namespace.
const FOUND_MAX: usize = 100;

/// Whether something was added, so that the explanation can say more.
pub async fn follow_up(client: &Client, objects: &mut Objects, explained: &Findings) -> bool {
    let mut n_added = 0;
    for finding in &explained.findings {
        let key = Key::new(finding.object.namespace.as_str(), finding.object.name.as_str());
        match finding.code {
            Code::NoSuchService => n_added += same_services(client, objects, &key).await,
            Code::NothingMatches => n_added += same_pods(client, objects, &key).await,
            _ => {}
        }
    }
    n_added > 0
}

async fn same_services(client: &Client, objects: &mut Objects, key: &Key) -> usize {
    let options = ListOptions {
        field_selector: Some(format!("metadata.name={}", key.name)),
        n_objects_max: Some(FOUND_MAX),
        ..ListOptions::default()
    };
    let Ok(found) = list(client, SERVICES, None, options).await else { return 0 };
    let n_found = found.items.len();
    found.items.into_iter().for_each(|one| objects.add(complete(one, SERVICES)));
    n_found
}

async fn same_pods(client: &Client, objects: &mut Objects, key: &Key) -> usize {
    let selector = objects
        .get(SERVICES.kind, &key.namespace, &key.name)
        .and_then(|service| service.pointer("/spec/selector")?.as_object());
    let Some(selector) = selector else { return 0 };
    let pairs: Vec<String> = selector
        .iter()
        .filter_map(|(key, value)| Some(format!("{key}={}", value.as_str()?)))
        .collect();
    let options = ListOptions {
        label_selector: Some(pairs.join(",")),
        n_objects_max: Some(FOUND_MAX),
        // The labels are enough.
        content: Content::Metadata,
        ..ListOptions::default()
    };
    let Ok(found) = list(client, PODS, None, options).await else { return 0 };
    let is_elsewhere = |pod: &Value| {
        pod.pointer("/metadata/namespace").and_then(Value::as_str) != Some(&*key.namespace)
    };
    let pods: Vec<Value> = found.items.into_iter().filter(is_elsewhere).collect();
    let n_found = pods.len();
    if found.has_more {
        objects.more_elsewhere(PODS.kind);
    }
    pods.into_iter().for_each(|one| objects.add(complete(one, PODS)));
    n_found
}
