//! Encodes objects as upstream does: zero and absent fields are omitted, but an EndpointSlice
//! always has `endpoints` and `ports`.

mod protobuf;
mod reverse_encoder;

use endpointd_model::{EndpointSlice, Endpoints, MultiClusterObject, MultiClusterVersion, Object};
use serde::Serialize;
use serde_json::Value;

use crate::decode::Decoded;
use crate::envelope::Encoding;
use crate::{
    derived_service_to_json, endpoints, export_to_json, import_to_json, service_status, slice,
};

/// The type of the body of a [`ServiceStatus`](endpointd_model::ServiceStatus).
pub const PATCH_MEDIA_TYPE: &str = "application/strategic-merge-patch+json";

/// Encodes the body of a create or an update. For the status of a Service it is a patch, in JSON, and
/// objects of several clusters are always JSON.
pub fn encode(encoding: Encoding, object: &Object) -> Vec<u8> {
    match (encoding, object) {
        (Encoding::Protobuf, Object::Slice(slice)) => protobuf::slice_body(slice),
        (Encoding::Protobuf, Object::Endpoints(endpoints)) => protobuf::endpoints_body(endpoints),
        (Encoding::Json, Object::Slice(slice)) => {
            to_json::<EndpointSlice>(&slice::EndpointSlice::from(slice))
        }
        (Encoding::Json, Object::Endpoints(endpoints)) => {
            to_json::<Endpoints>(&endpoints::Endpoints::from(endpoints))
        }
        (Encoding::Json | Encoding::Protobuf, Object::ServiceStatus(status)) => {
            serde_json::to_vec(&service_status::patch(status)).expect(ALWAYS_JSON)
        }
        (Encoding::Json | Encoding::Protobuf, Object::MultiCluster(object)) => {
            serde_json::to_vec(&multicluster(object)).expect(ALWAYS_JSON)
        }
    }
}

/// The object as a JSON value, for output and comparison.
pub fn to_json_value(object: &Object) -> Value {
    let value = match object {
        Object::Slice(slice) => {
            serde_json::to_value(Typed::of::<EndpointSlice>(&slice::EndpointSlice::from(slice)))
        }
        Object::Endpoints(endpoints) => {
            serde_json::to_value(Typed::of::<Endpoints>(&endpoints::Endpoints::from(endpoints)))
        }
        Object::ServiceStatus(status) => Ok(service_status::to_json(status)),
        Object::MultiCluster(object) => Ok(multicluster(object)),
    };
    value.expect(ALWAYS_JSON)
}

/// The version that is stored; both have the same fields.
fn multicluster(object: &MultiClusterObject) -> Value {
    let version = MultiClusterVersion::default();
    match object {
        MultiClusterObject::Import(import) | MultiClusterObject::ImportStatus(import) => {
            import_to_json(version, import)
        }
        MultiClusterObject::ExportStatus(export) => export_to_json(version, export),
        MultiClusterObject::Derived(service) => derived_service_to_json(service),
    }
}

pub(crate) const ALWAYS_JSON: &str =
    "wire structs have string keys and their fields always serialize";

fn to_json<T: Decoded>(message: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(&Typed::of::<T>(message)).expect(ALWAYS_JSON)
}

/// An object with its apiVersion and kind.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Typed<'a, W> {
    pub(crate) api_version: &'static str,
    pub(crate) kind: &'static str,
    #[serde(flatten)]
    pub(crate) object: &'a W,
}

impl<'a, W> Typed<'a, W> {
    fn of<T: Decoded>(object: &'a W) -> Self {
        Self { api_version: T::API_VERSION, kind: T::KIND, object }
    }
}
