//! One core/v1 Event and how it is written.

use endpointd_model::{EventRecord, Key, Timestamp};
use http::Method;
use serde_json::{Value, json};

use super::EventRequest;
use crate::answer::failure;
use crate::ask::{Accept, ApiRequest, Body, object_path, objects_path};
use crate::client::Client;
use crate::transport::TransportError;

const RESOURCE: &str = "events";

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Event {
    pub(super) name: String,
    /// Otherwise it is there, and counts on.
    pub(super) is_new: bool,
    pub(super) count: u32,
    pub(super) first: Timestamp,
    pub(super) last: Timestamp,
    pub(super) message: String,
    pub(super) remark: EventRequest,
}

pub(super) enum Written {
    Stored,
    /// The one to count on is not there any more.
    Expired,
    Refused(String),
    /// Worth another try.
    Unanswered(String),
}

impl Event {
    pub(super) async fn write(&self, client: &Client) -> Written {
        match client.ask(&self.ask()).await {
            Ok(answer) => match answer.code {
                200..=299 => Written::Stored,
                // The answer to a try before this one was lost.
                409 if self.is_new => Written::Stored,
                404 if !self.is_new => Written::Expired,
                429 | 500..=599 => Written::Unanswered(answer.message()),
                _ => Written::Refused(failure(&self.ask(), &answer).message.to_string()),
            },
            Err(TransportError { failure, .. }) => Written::Unanswered(failure.message.to_string()),
        }
    }

    fn ask(&self) -> ApiRequest {
        let key = Key::new(self.remark.key.namespace.clone(), &*self.name);
        let name = key.to_string();
        let (ask, path, content_type, body) = if self.is_new {
            let ask = ApiRequest::new(Method::POST, "create", RESOURCE);
            (ask, objects_path(RESOURCE, &key.namespace), "application/json", self.body())
        } else {
            let ask = ApiRequest::new(Method::PATCH, "patch", RESOURCE);
            (ask, object_path(RESOURCE, &key), "application/merge-patch+json", self.patch())
        };
        let body = Body { content_type, bytes: body.to_string().into() };
        ApiRequest { name, path, body: Some(body), accept: Accept::Json, ..ask }
    }

    fn body(&self) -> Value {
        let EventRequest { controller, key, uid, record } = &self.remark;
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
