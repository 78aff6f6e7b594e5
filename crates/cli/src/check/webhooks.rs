//! Webhooks that can stop what endpointd writes, or the pods of endpointd: if the pods of the webhook
//! need endpoints first, neither can start.

use endpointd_client::{Client, Content, ReadError};
use serde_json::Value;

use super::{Outcome, items, list, text};

const NAME: &str = "webhooks";
const CONFIGURATIONS: [&str; 2] =
    ["validatingwebhookconfigurations", "mutatingwebhookconfigurations"];

pub async fn check(client: &Client, namespace: &str) -> Outcome {
    let mut found = Vec::new();
    for plural in CONFIGURATIONS {
        match webhooks(client, plural).await {
            Ok(webhooks) => {
                found.extend(webhooks.iter().filter_map(|one| dangerous(one, namespace)))
            }
            Err(error) => return Outcome::skipped(NAME, plural, &error),
        }
    }
    if found.is_empty() {
        let message =
            "no fail-closed webhook selects EndpointSlices, Endpoints, or endpointd's pods";
        return Outcome::ok(NAME, message);
    }
    Outcome::warning(
        NAME,
        format!("fail-closed webhooks can stop endpointd: {}", found.join(", ")),
        format!(
            "if their pods are down, so is their Service: exclude namespace `{namespace}` and the \
             resource with a `namespaceSelector` or `matchConditions`, or use `failurePolicy: Ignore`"
        ),
    )
}

async fn webhooks(client: &Client, plural: &str) -> Result<Vec<Value>, ReadError> {
    let path = format!("/apis/admissionregistration.k8s.io/v1/{plural}");
    let configurations = list(client, &path, Content::Complete).await?;
    Ok(configurations.iter().flat_map(|one| items(one, "/webhooks").to_vec()).collect())
}

/// `name (endpointslices)`, if the webhook refuses when it does not answer.
fn dangerous(webhook: &Value, namespace: &str) -> Option<String> {
    if text(webhook, "/failurePolicy") == "Ignore" {
        return None;
    }
    let mut selected: Vec<&str> = Vec::new();
    for (group, resource) in
        [("discovery.k8s.io", "endpointslices"), ("", "endpoints"), ("", "pods")]
    {
        let is_excluded = resource == "pods" && excludes(webhook, namespace);
        if !is_excluded
            && items(webhook, "/rules").iter().any(|rule| matches(rule, group, resource))
        {
            selected.push(resource);
        }
    }
    (!selected.is_empty())
        .then(|| format!("`{}` ({})", text(webhook, "/name"), selected.join(", ")))
}

fn matches(rule: &Value, group: &str, resource: &str) -> bool {
    let has = |pointer: &str, wanted: &[&str]| {
        items(rule, pointer).iter().filter_map(Value::as_str).any(|one| wanted.contains(&one))
    };
    let whole = format!("{resource}/*");
    has("/apiGroups", &["*", group])
        && has("/resources", &["*", "*/*", resource, &whole])
        && has("/operations", &["*", "CREATE", "UPDATE", "DELETE"])
}

/// Whether the namespace selector leaves out this namespace by its name.
fn excludes(webhook: &Value, namespace: &str) -> bool {
    let has = |one: &Value| items(one, "/values").iter().any(|value| value == namespace);
    items(webhook, "/namespaceSelector/matchExpressions").iter().any(|one| {
        let is_name = text(one, "/key") == "kubernetes.io/metadata.name";
        is_name
            && match text(one, "/operator") {
                "NotIn" => has(one),
                "In" => !has(one),
                _ => false,
            }
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fail_closed_webhooks_on_our_objects_are_dangerous() {
        let webhook = |policy: &str, group: &str, resource: &str| {
            json!({
                "name": "policy.example.com", "failurePolicy": policy,
                "rules": [{"apiGroups": [group], "resources": [resource], "operations": ["*"]}],
            })
        };
        let found = |webhook: &Value| dangerous(webhook, "endpointd");
        assert_eq!(
            found(&webhook("Fail", "*", "*")).as_deref(),
            Some("`policy.example.com` (endpointslices, endpoints, pods)")
        );
        assert_eq!(found(&webhook("Ignore", "*", "*")), None);
        assert_eq!(found(&webhook("Fail", "apps", "*")), None);
        assert_eq!(
            found(&webhook("", "", "pods")).as_deref(),
            Some("`policy.example.com` (pods)"),
            "the default is to fail"
        );
        let mut excluding = webhook("Fail", "", "pods");
        excluding["namespaceSelector"] = json!({"matchExpressions": [
            {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["endpointd"]},
        ]});
        assert_eq!(found(&excluding), None);
    }
}
