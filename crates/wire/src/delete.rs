//! The body of a delete, with uid and resourceVersion as preconditions.

use endpointd_model::DeleteTarget;
use serde::Serialize;

use crate::encode::Typed;
use crate::envelope::{Encoding, seal};
use crate::lenient::is_default;

/// `metav1.DeleteOptions`.
#[derive(Clone, PartialEq, prost::Message, Serialize)]
#[serde(rename_all = "camelCase")]
struct DeleteOptions {
    #[prost(message, optional, tag = "2")]
    #[serde(skip_serializing_if = "is_default")]
    preconditions: Option<Preconditions>,
}

/// `metav1.Preconditions`.
#[derive(Clone, PartialEq, prost::Message, Serialize)]
#[serde(rename_all = "camelCase")]
struct Preconditions {
    #[prost(string, optional, tag = "1")]
    #[serde(skip_serializing_if = "is_default")]
    uid: Option<String>,
    #[prost(string, optional, tag = "2")]
    #[serde(skip_serializing_if = "is_default")]
    resource_version: Option<String>,
}

/// The API server takes these for every resource.
const API_VERSION: &str = "v1";
const KIND: &str = "DeleteOptions";

pub fn encode_delete(encoding: Encoding, target: &DeleteTarget) -> Vec<u8> {
    let DeleteTarget { resource: _, key: _, uid, resource_version } = target;
    let preconditions = Preconditions {
        uid: (!uid.is_empty()).then(|| uid.to_string()),
        resource_version: (!resource_version.is_none()).then(|| resource_version.to_string()),
    };
    let options = DeleteOptions { preconditions: Some(preconditions) };
    match encoding {
        Encoding::Json => {
            let typed = Typed { api_version: API_VERSION, kind: KIND, object: &options };
            serde_json::to_vec(&typed).expect("two texts are always JSON")
        }
        Encoding::Protobuf => seal(API_VERSION, KIND, &options),
    }
}
