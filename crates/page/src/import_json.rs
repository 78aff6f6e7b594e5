//! Services that ask for the endpoints of others, as JSON.

use endpointd_engine::{Consumer, RequestedImport};
use serde_json::{Value, json};

use crate::API_VERSION;

/// What a Service asks for; `null` if it asks for nothing.
pub fn import(import: Option<&RequestedImport>) -> Value {
    let Some(RequestedImport { from, condition }) = import else { return Value::Null };
    json!({
        "from": &**from,
        "status": condition.as_ref().map(|one| one.status.as_str()),
        "reason": condition.as_ref().map(|one| &*one.reason),
        "message": condition.as_ref().map(|one| &*one.message),
    })
}

pub fn consumer(consumer: &Consumer) -> Value {
    let Consumer { key, import: requested, n_endpoints, n_ready } = consumer;
    json!({
        "namespace": &*key.namespace,
        "name": &*key.name,
        "import": import(Some(requested)),
        "endpoints": n_endpoints,
        "ready": n_ready,
    })
}

/// All of them; `n_more` are left out.
pub fn consumers(all: &[Consumer], n_more: usize) -> Value {
    json!({
        "apiVersion": API_VERSION,
        "consumers": all.iter().map(consumer).collect::<Vec<_>>(),
        "consumersNotShown": n_more,
    })
}
