//! Requests as values: method, path, body. Building one sends nothing.

use endpointd_model::{
    Key, LiveRead, Object, PublishedResource, ResourceVersion, Scope, WatchedResource, Write,
};
use endpointd_wire::{Bytes, Encoding, PATCH_MEDIA_TYPE, encode, encode_delete};
use http::Method;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, PercentEncode, utf8_percent_encode};

use crate::http_service::Pool;
use crate::scope_query;

/// Metadata with `managedFields` can have several kilobytes.
const NAMESPACE_PAGE_PODS: u32 = 500;

/// One request, without the headers that all requests have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ApiRequest {
    pub(crate) method: Method,
    /// The verb that a role must allow.
    pub(crate) verb: &'static str,
    pub(crate) resource: &'static str,
    /// For messages; empty for lists and watches.
    pub(crate) name: String,
    /// Path and query.
    pub(crate) path: String,
    pub(crate) body: Option<Body>,
    pub(crate) accept: Accept,
    pub(crate) pool: Pool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Body {
    pub(crate) content_type: &'static str,
    pub(crate) bytes: Bytes,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Accept {
    Any,
    Json,
    /// A list with only the metadata of its objects.
    JsonMetadata,
    /// Only the metadata of an object.
    JsonObjectMetadata,
}

impl Accept {
    pub(crate) fn header(self) -> &'static str {
        match self {
            Self::Any => "application/vnd.kubernetes.protobuf, application/json",
            Self::Json => "application/json",
            Self::JsonMetadata => {
                "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1, application/json"
            }
            Self::JsonObjectMetadata => {
                "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1, application/json"
            }
        }
    }
}

/// The part of the path before the namespace, for every resource we use.
pub(crate) fn group_path(resource: &str) -> &'static str {
    match resource {
        "endpointslices" => "/apis/discovery.k8s.io/v1",
        "leases" => "/apis/coordination.k8s.io/v1",
        "referencegrants" => "/apis/gateway.networking.k8s.io/v1",
        "serviceexports" | "serviceimports" => "/apis/multicluster.x-k8s.io/v1beta1",
        _ => "/api/v1",
    }
}

/// Services with the label of an import.
const DERIVED_FILTER: &str = "&labelSelector=multicluster.kubernetes.io%2Fservice-name";

/// Where the objects of a watched resource are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Location {
    /// The part of the path before the namespace.
    pub(crate) group: &'static str,
    pub(crate) resource: &'static str,
    /// The end of the query of lists and watches.
    pub(crate) filter: &'static str,
}

impl From<WatchedResource> for Location {
    fn from(resource: WatchedResource) -> Self {
        let (resource, filter) = match resource {
            WatchedResource::DerivedServices => ("services", DERIVED_FILTER),
            other => (other.as_str(), ""),
        };
        Self { group: group_path(resource), resource, filter }
    }
}

pub(crate) fn objects_path(resource: &str, namespace: &str) -> String {
    format!("{}/namespaces/{}/{resource}", group_path(resource), escape(namespace))
}

pub(crate) fn object_path(resource: &str, key: &Key) -> String {
    format!("{}/{}", objects_path(resource, &key.namespace), escape(&key.name))
}

impl ApiRequest {
    pub(crate) fn new(method: Method, verb: &'static str, resource: &'static str) -> Self {
        Self {
            method,
            verb,
            resource,
            name: String::new(),
            path: String::new(),
            body: None,
            accept: Accept::Any,
            pool: Pool::Shared,
        }
    }

    pub(crate) fn of_write(write: &Write, encoding: Encoding) -> Self {
        let resource = write.resource().as_str();
        let key = write.key();
        let mut content_type = encoding.media_type();
        let (method, path, bytes) = match write {
            Write::Update(object @ Object::ServiceStatus(_)) => {
                content_type = PATCH_MEDIA_TYPE;
                let path = format!("{}/status", object_path("services", &key));
                (Method::PATCH, path, encode(Encoding::Json, object))
            }
            Write::Create(object @ Object::MultiCluster(_)) => {
                content_type = Encoding::Json.media_type();
                (Method::POST, objects_path(resource, &key.namespace), encode(encoding, object))
            }
            Write::Update(object @ Object::MultiCluster(_)) => {
                content_type = Encoding::Json.media_type();
                let (resource, subresource) = match resource.strip_suffix("/status") {
                    Some(resource) => (resource, "/status"),
                    None => (resource, ""),
                };
                let path = format!("{}{subresource}", object_path(resource, &key));
                (Method::PUT, path, encode(encoding, object))
            }
            Write::Create(object) => {
                (Method::POST, objects_path(resource, &key.namespace), encode(encoding, object))
            }
            Write::Update(object) => {
                (Method::PUT, object_path(resource, &key), encode(encoding, object))
            }
            Write::Delete(target) => {
                (Method::DELETE, object_path(resource, &key), encode_delete(encoding, target))
            }
        };
        let body = Body { content_type, bytes: bytes.into() };
        let name = key.to_string();
        let verb = if method == Method::PATCH { "patch" } else { write.verb() };
        Self { name, path, body: Some(body), ..Self::new(method, verb, resource) }
    }

    /// Without a resourceVersion the response is at least as new as the request: a consistent read.
    pub(crate) fn of_live_read(read: &LiveRead) -> Self {
        let (resource, path, name) = match read {
            LiveRead::Service(key) => ("services", object_path("services", key), key.to_string()),
            LiveRead::Node(name) => {
                ("nodes", format!("/api/v1/nodes/{}", escape(name)), name.to_string())
            }
            LiveRead::Object(PublishedResource::ServiceStatus, key) => {
                ("services/status", object_path("services", key), key.to_string())
            }
            LiveRead::Object(resource, key) | LiveRead::FieldManager(resource, key) => {
                // The object has its status.
                let name = resource.as_str();
                let name = name.strip_suffix("/status").unwrap_or(name);
                (name, object_path(name, key), key.to_string())
            }
            LiveRead::Pods(namespace) => return Self::of_pods(namespace, None),
            // The caller sends it to that cluster.
            LiveRead::Source(_, read) => return Self::of_live_read(read),
        };
        let accept = match read {
            LiveRead::FieldManager(..) => Accept::JsonObjectMetadata,
            LiveRead::Service(_)
            | LiveRead::Node(_)
            | LiveRead::Object(..)
            | LiveRead::Pods(_)
            | LiveRead::Source(..) => Accept::Any,
        };
        Self { name, path, accept, ..Self::new(Method::GET, "get", resource) }
    }

    /// One page of a consistent list of the metadata of the pods of a namespace.
    pub(crate) fn of_pods(namespace: &str, token: Option<&str>) -> Self {
        let mut path = format!("{}?limit={NAMESPACE_PAGE_PODS}", objects_path("pods", namespace));
        if let Some(token) = token {
            path.push_str("&continue=");
            path.extend(escape(token));
        }
        let (name, accept) = (format!("of {namespace}"), Accept::JsonMetadata);
        Self { name, path, accept, ..Self::new(Method::GET, "list", "pods") }
    }

    /// One page of a consistent list.
    pub(crate) fn of_page(
        location: impl Into<Location>,
        token: Option<&str>,
        n_objects_max: u32,
    ) -> Self {
        let Location { group, resource, filter } = location.into();
        let mut path = format!("{group}/{resource}?limit={n_objects_max}{filter}");
        if let Some(token) = token {
            path.push_str("&continue=");
            path.extend(escape(token));
        }
        Self { path, ..Self::new(Method::GET, "list", resource) }
    }

    /// A consistent list of at most one object: the named one, if there is one.
    pub(crate) fn of_check(location: impl Into<Location>, key: Option<&Key>) -> Self {
        let Location { group, resource, filter: _ } = location.into();
        let path = match key {
            None => format!("{group}/{resource}?limit=1"),
            Some(Key { namespace, name }) => {
                let objects = match namespace.is_empty() {
                    true => format!("{group}/{resource}"),
                    false => format!("{group}/namespaces/{}/{resource}", escape(namespace)),
                };
                format!("{objects}?fieldSelector=metadata.name%3D{}", escape(name))
            }
        };
        Self { path, ..Self::new(Method::GET, "list", resource) }
    }

    pub(crate) fn of_watch(location: impl Into<Location>, start: Start, timeout_secs: u64) -> Self {
        let Location { group, resource, filter } = location.into();
        let mut path = format!(
            "{group}/{resource}?watch=1&allowWatchBookmarks=true&timeoutSeconds={timeout_secs}\
             {filter}"
        );
        match start {
            Start::Everything => {
                path.push_str("&sendInitialEvents=true&resourceVersionMatch=NotOlderThan");
            }
            Start::After(version) => {
                path.push_str("&resourceVersion=");
                path.push_str(&version.to_string());
            }
        }
        Self { path, ..Self::new(Method::GET, "watch", resource) }
    }

    /// The list or watch of a scope.
    pub(crate) fn in_scope(mut self, resource: WatchedResource, scope: &Scope) -> Self {
        let name = resource.as_str();
        let everywhere = format!("{}/{name}?", group_path(name));
        if let Some(namespace) = scope_query::only_namespace(scope, resource)
            && let Some(query) = self.path.strip_prefix(&everywhere)
        {
            self.path = format!("{}?{query}", objects_path(name, namespace));
        }
        self.path.push_str(&scope_query::query(scope, resource));
        self
    }

    /// For messages: `update endpointslices shop/web-abc`.
    pub(crate) fn describe(&self) -> String {
        let Self { verb, resource, name, .. } = self;
        if name.is_empty() {
            format!("{verb} {resource}")
        } else {
            format!("{verb} {resource} {name}")
        }
    }
}

/// Where a watch starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Start {
    /// With all current objects, then a bookmark that ends the list.
    Everything,
    After(ResourceVersion),
}

/// The unreserved characters of RFC 3986 stay as they are.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// For one segment of a path or one value of a query. Continue tokens need it; names hardly ever.
pub(crate) fn escape(text: &str) -> PercentEncode<'_> {
    utf8_percent_encode(text, ESCAPED)
}

#[cfg(test)]
mod tests {
    use endpointd_model::{Condition, ConditionStatus, DeleteTarget, Meta, ServiceStatus, Uid};

    use super::*;

    #[test]
    fn write_path_and_body_name_the_object() {
        let target = DeleteTarget {
            resource: PublishedResource::Slices,
            key: Key::new("shop", "web-1"),
            uid: Uid::from("u"),
            resource_version: 7.into(),
        };
        let request = ApiRequest::of_write(&Write::Delete(target), Encoding::Json);
        assert_eq!(request.path, "/apis/discovery.k8s.io/v1/namespaces/shop/endpointslices/web-1");
        assert_eq!(request.describe(), "delete endpointslices shop/web-1");
        let body = String::from_utf8(request.body.unwrap().bytes.to_vec()).unwrap();
        assert!(body.contains(r#""preconditions":{"uid":"u","resourceVersion":"7"}"#), "{body}");
    }

    #[test]
    fn condition_is_a_patch_of_the_status_with_preconditions() {
        let meta = Meta {
            namespace: "shop".into(),
            name: "db".into(),
            uid: "u".into(),
            resource_version: 7.into(),
            ..Meta::default()
        };
        let condition = Condition {
            condition_type: "endpointd/EndpointsFrom".into(),
            status: ConditionStatus::True,
            reason: "Mirrored".into(),
            message: "has the endpoints of data/postgres".into(),
            last_transition: "2026-01-01T00:00:00Z".parse().ok(),
            ..Condition::default()
        };
        let body = |condition: Option<Condition>| {
            let status = ServiceStatus { meta: meta.clone(), condition };
            let write = Write::Update(Object::ServiceStatus(status));
            let request = ApiRequest::of_write(&write, Encoding::Protobuf);
            assert_eq!(request.path, "/api/v1/namespaces/shop/services/db/status");
            assert_eq!((request.method.as_str(), request.verb), ("PATCH", "patch"));
            let body = request.body.expect("a patch");
            assert_eq!(body.content_type, "application/strategic-merge-patch+json");
            String::from_utf8(body.bytes.to_vec()).expect("JSON")
        };
        assert_eq!(
            body(Some(condition)),
            concat!(
                r#"{"metadata":{"resourceVersion":"7","uid":"u"},"status":{"conditions":[{"#,
                r#""lastTransitionTime":"2026-01-01T00:00:00Z","#,
                r#""message":"has the endpoints of data/postgres","reason":"Mirrored","#,
                r#""status":"True","type":"endpointd/EndpointsFrom"}]}}"#
            )
        );
        assert_eq!(
            body(None),
            concat!(
                r#"{"metadata":{"resourceVersion":"7","uid":"u"},"#,
                r#""status":{"conditions":[{"$patch":"delete","type":"endpointd/EndpointsFrom"}]}}"#
            )
        );
    }

    #[test]
    fn lists_are_consistent_reads() {
        let path = ApiRequest::of_watch(WatchedResource::Pods, Start::Everything, 300).path;
        assert!(path.contains("sendInitialEvents=true&resourceVersionMatch=NotOlderThan"));
        assert!(!path.contains("resourceVersion="), "{path}");
        let page = ApiRequest::of_page(WatchedResource::Slices, Some("a/b=="), 500).path;
        assert_eq!(page, "/apis/discovery.k8s.io/v1/endpointslices?limit=500&continue=a%2Fb%3D%3D");
    }

    #[test]
    fn live_read_path_names_the_object() {
        assert_eq!(ApiRequest::of_live_read(&LiveRead::Node("a".into())).path, "/api/v1/nodes/a");
        let read = LiveRead::Object(PublishedResource::Endpoints, Key::new("shop", "web"));
        assert_eq!(ApiRequest::of_live_read(&read).path, "/api/v1/namespaces/shop/endpoints/web");
    }
}
