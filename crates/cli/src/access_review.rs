//! Whether the user of a connection may do something, as the API server says it.

use endpointd_client::{Client, ReadError};
use serde_json::{Value, json};

const PATH: &str = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";

/// By a SelfSubjectAccessReview, which every user may create.
pub async fn is_allowed(client: &Client, attributes: Value) -> Result<bool, ReadError> {
    let review = json!({
        "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": attributes},
    });
    let answer = client.post_value(PATH, &review).await?;
    Ok(answer.pointer("/status/allowed").and_then(Value::as_bool).unwrap_or(false))
}
