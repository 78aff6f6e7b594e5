//! One core/v1 Event and its requests.

use endpointd_model::{EventRecord, Key, Timestamp};
use http::Method;
use serde_json::{Value, json};

use super::EventRequest;
use crate::client::Client;
use crate::request::{Accept, ApiRequest, Body, object_path, objects_path};
use crate::response::failure;
use crate::transport::TransportError;

const RESOURCE: &str = "events";

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Event {
    pub(super) name: String,
    /// `false`: the Event exists, and its count is patched.
    pub(super) is_new: bool,
    pub(super) count: u32,
    pub(super) first: Timestamp,
    pub(super) last: Timestamp,
    pub(super) message: String,
    pub(super) request: EventRequest,
}

/// The result of one attempt.
pub(super) enum EventWrite {
    Stored,
    /// The Event to patch does not exist any more.
    Expired,
    Rejected(String),
    /// May succeed with another attempt.
    Failed(String),
}

impl Event {
    pub(super) async fn write(&self, client: &Client) -> EventWrite {
        let request = self.request();
        match client.request(&request).await {
            Ok(response) => match response.code {
                200..=299 => EventWrite::Stored,
                // The response to an earlier attempt was lost.
                409 if self.is_new => EventWrite::Stored,
                404 if !self.is_new => EventWrite::Expired,
                429 | 500..=599 => EventWrite::Failed(response.message()),
                _ => EventWrite::Rejected(failure(&request, &response).message.to_string()),
            },
            Err(TransportError { failure, .. }) => EventWrite::Failed(failure.message.to_string()),
        }
    }

    fn request(&self) -> ApiRequest {
        let key = Key::new(self.request.key.namespace.clone(), &*self.name);
        let name = key.to_string();
        let (request, path, content_type, body) = if self.is_new {
            let request = ApiRequest::new(Method::POST, "create", RESOURCE);
            (request, objects_path(RESOURCE, &key.namespace), "application/json", self.body())
        } else {
            let request = ApiRequest::new(Method::PATCH, "patch", RESOURCE);
            (request, object_path(RESOURCE, &key), "application/merge-patch+json", self.patch())
        };
        let body = Body { content_type, bytes: body.to_string().into() };
        ApiRequest { name, path, body: Some(body), accept: Accept::Json, ..request }
    }

    fn body(&self) -> Value {
        let EventRequest { controller, key, uid, record } = &self.request;
        let EventRecord { reason, message: _, involved_kind } = record;
        json!({
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": self.name, "namespace": &*key.namespace},
            "involvedObject": {
                "apiVersion": "v1",
                "kind": involved_kind.as_str(),
                "namespace": &*key.namespace,
                "name": &*key.name,
                "uid": uid.to_string(),
            },
            "type": record.event_type().as_str(),
            "reason": reason.as_str(),
            "message": self.message,
            "count": self.count,
            "firstTimestamp": seconds(self.first),
            "lastTimestamp": seconds(self.last),
            "source": {"component": controller.event_source()},
            "reportingComponent": controller.event_source(),
            "reportingInstance": "",
        })
    }

    fn patch(&self) -> Value {
        json!({"count": self.count, "lastTimestamp": seconds(self.last), "message": self.message})
    }
}

/// `metav1.Time`.
fn seconds(time: Timestamp) -> String {
    format!("{time:.0}")
}
