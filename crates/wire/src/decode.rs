//! Decodes one object from bytes into wire structs. Only a malformed object is decoded a second
//! time, to find its name and the wrong field.

use endpointd_model::InvalidResourceVersion;
use prost::Message;
use prost::bytes::Bytes;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::envelope::{Encoding, TypeMeta, Unknown};
use crate::lenient::Lenient;
use crate::malformed::{Identity, Malformed};
use crate::{endpoints, namespace, node, pod, service, slice};

/// A model object that can be decoded.
pub trait Decoded: FromWire {
    const API_VERSION: &'static str;
    const KIND: &'static str;

    /// Whether an object with this apiVersion can be decoded.
    fn has_api_version(found: &str) -> bool {
        found == Self::API_VERSION
    }
}

/// The wire struct of a model object; an implementation detail.
pub trait FromWire: Sized + TryFrom<Self::Wire, Error = InvalidResourceVersion> {
    type Wire: Message + Default + DeserializeOwned;
}

macro_rules! decoded {
    ($($api_version:literal $kind:literal: $model:ident from $wire:ty;)*) => {$(
        impl FromWire for endpointd_model::$model {
            type Wire = $wire;
        }

        impl Decoded for endpointd_model::$model {
            const API_VERSION: &'static str = $api_version;
            const KIND: &'static str = $kind;
        }
    )*};
}

decoded! {
    "v1" "Service": Service from service::Service;
    "v1" "Pod": Pod from pod::Pod;
    "v1" "Node": Node from node::Node;
    "v1" "Namespace": Namespace from namespace::Namespace;
    "v1" "Endpoints": Endpoints from endpoints::Endpoints;
    "discovery.k8s.io/v1" "EndpointSlice": EndpointSlice from slice::EndpointSlice;
}

/// Decodes the body of a response that is one object.
///
/// ```
/// use endpointd_model::Node;
/// use endpointd_wire::{Bytes, Encoding, decode};
///
/// let node: Node = decode(
///     Encoding::Json,
///     &Bytes::from_static(br#"{"metadata": {"name": "node-1"}, "status": null}"#),
/// )?;
/// assert_eq!(&*node.name, "node-1");
/// # Ok::<(), endpointd_wire::Malformed>(())
/// ```
pub fn decode<T: Decoded>(encoding: Encoding, body: &Bytes) -> Result<T, Malformed> {
    match encoding {
        Encoding::Json => {
            let type_meta: TypeMeta = read_json(body).map_err(malformed_without_identity::<T>)?;
            check_type::<T>(&type_meta)?;
            from_json(body)
        }
        Encoding::Protobuf => from_envelope(body),
    }
}

/// Decodes an object that is a JSON value already.
pub fn decode_value<T: Decoded>(value: &Value) -> Result<T, Malformed> {
    let Identity { api_version, kind, .. } = Identity::of(value);
    check_type::<T>(&TypeMeta { api_version, kind })?;
    from_json_value(value)
}

/// Decodes a value whose kind the caller has checked.
pub(crate) fn from_json_value<T: Decoded>(value: &Value) -> Result<T, Malformed> {
    let mut track = serde_path_to_error::Track::new();
    let tracked = serde_path_to_error::Deserializer::new(value, &mut track);
    let identity = || Identity::of(value).or_of::<T>().into();
    let wire = T::Wire::deserialize(Lenient(tracked)).map_err(|error| Malformed {
        identity: identity(),
        path: track.path().to_string(),
        reason: error.to_string(),
    })?;
    T::try_from(wire).map_err(|error| invalid_version(identity(), &error))
}

pub(crate) fn from_json<T: Decoded>(bytes: &[u8]) -> Result<T, Malformed> {
    let wire = read_json::<T::Wire>(bytes).map_err(|reason| explain_json::<T>(bytes, reason))?;
    T::try_from(wire).map_err(|error| invalid_version(identity_of_json::<T>(bytes), &error))
}

/// Decodes the body of a response, or the object of a watch event.
pub(crate) fn from_envelope<T: Decoded>(body: &Bytes) -> Result<T, Malformed> {
    let unknown = Unknown::open(body).map_err(malformed_without_identity::<T>)?;
    check_type::<T>(&unknown.type_meta)?;
    from_protobuf(&unknown.raw)
}

/// Decodes a message without envelope, as in lists.
pub(crate) fn from_protobuf<T: Decoded>(raw: &[u8]) -> Result<T, Malformed> {
    let identity = || identity_of_protobuf(raw).or_of::<T>().into();
    let wire = T::Wire::decode(raw).map_err(|error| Malformed {
        identity: identity(),
        path: String::new(),
        reason: error.to_string(),
    })?;
    T::try_from(wire).map_err(|error| invalid_version(identity(), &error))
}

pub(crate) fn read_json<W: DeserializeOwned>(bytes: &[u8]) -> Result<W, String> {
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    W::deserialize(Lenient(&mut deserializer))
        .and_then(|object| deserializer.end().map(|()| object))
        .map_err(|error| error.to_string())
}

/// Decodes a malformed object again, slower, to find the wrong field.
fn explain_json<T: Decoded>(bytes: &[u8], reason: String) -> Malformed {
    let mut track = serde_path_to_error::Track::new();
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let tracked = serde_path_to_error::Deserializer::new(&mut deserializer, &mut track);
    let path = match T::Wire::deserialize(Lenient(tracked)) {
        Ok(_) => String::new(),
        Err(_) => track.path().to_string(),
    };
    Malformed { identity: identity_of_json::<T>(bytes), path, reason }
}

fn identity_of_json<T: Decoded>(bytes: &[u8]) -> Box<Identity> {
    let identity = serde_json::from_slice(bytes).map(|value| Identity::of(&value));
    identity.unwrap_or_default().or_of::<T>().into()
}

/// resourceVersion is the only field of all objects that must be a number in a string.
fn invalid_version(identity: Box<Identity>, error: &InvalidResourceVersion) -> Malformed {
    Malformed { identity, path: "metadata.resourceVersion".to_owned(), reason: error.to_string() }
}

/// The kind distinguishes a `Status` from an object; items of typed lists have no kind.
fn check_type<T: Decoded>(found: &TypeMeta) -> Result<(), Malformed> {
    check_kind::<T>(found, &found.kind)
}

/// `kind` is the found kind without the suffix `List`.
pub(crate) fn check_kind<T: Decoded>(found: &TypeMeta, kind: &str) -> Result<(), Malformed> {
    if found.kind.is_empty() || (kind == T::KIND && T::has_api_version(&found.api_version)) {
        return Ok(());
    }
    let TypeMeta { api_version, kind } = found;
    Err(malformed_without_identity::<T>(format!(
        "the object is of another kind: `{api_version}` `{kind}`"
    )))
}

pub(crate) fn malformed_without_identity<T: Decoded>(reason: String) -> Malformed {
    Malformed { identity: Identity::default().or_of::<T>().into(), path: String::new(), reason }
}

impl Identity {
    /// Uses the requested kind if the object has none.
    fn or_of<T: Decoded>(mut self) -> Self {
        if self.kind.is_empty() {
            self.kind = T::KIND.to_owned();
            self.api_version = T::API_VERSION.to_owned();
        }
        self
    }
}

#[derive(Clone, PartialEq, prost::Message)]
struct NamedMessage {
    #[prost(message, required, tag = "1")]
    metadata: NameOnly,
}

#[derive(Clone, PartialEq, prost::Message)]
struct NameOnly {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "3")]
    namespace: String,
}

/// Metadata is the first field, so it is usually decoded even if a later field is malformed.
fn identity_of_protobuf(raw: &[u8]) -> Identity {
    let mut message = NamedMessage::default();
    // The fields before the error stay decoded.
    let _ = message.merge(raw);
    let NameOnly { name, namespace } = message.metadata;
    Identity { name, namespace, ..Default::default() }
}
