//! Writing objects, as upstream writes them: what is zero or absent is left out, but a slice
//! always says `endpoints` and `ports`.

mod backwards;
mod protobuf;

use endpointd_model::{EndpointSlice, Endpoints, Object};
use serde::Serialize;
use serde_json::Value;

use crate::decode::Decoded;
use crate::envelope::Encoding;
use crate::{endpoints, slice};

/// The body of a create or an update.
pub fn encode(encoding: Encoding, object: &Object) -> Vec<u8> {
    match (encoding, object) {
        (Encoding::Protobuf, object) => protobuf::body(object),
        (Encoding::Json, Object::Slice(slice)) => {
            to_json::<EndpointSlice>(&slice::EndpointSlice::from(slice))
        }
        (Encoding::Json, Object::Endpoints(endpoints)) => {
            to_json::<Endpoints>(&endpoints::Endpoints::from(endpoints))
        }
    }
}

/// The same as a JSON value, for people and for comparison.
pub fn to_json_value(object: &Object) -> Value {
    let value = match object {
        Object::Slice(slice) => {
            serde_json::to_value(Typed::of::<EndpointSlice>(&slice::EndpointSlice::from(slice)))
        }
        Object::Endpoints(endpoints) => {
            serde_json::to_value(Typed::of::<Endpoints>(&endpoints::Endpoints::from(endpoints)))
        }
    };
    value.expect(ALWAYS_JSON)
}

const ALWAYS_JSON: &str = "wire structs have text keys and no failing fields";

fn to_json<T: Decoded>(message: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(&Typed::of::<T>(message)).expect(ALWAYS_JSON)
}

/// An object that says what it is.
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
