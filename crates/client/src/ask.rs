//! Requests as values: where they go and what they carry. Making one sends nothing.

use std::borrow::Cow;

use endpointd_model::{Key, LiveRead, PublishedResource, ResourceVersion, WatchedResource, Write};
use endpointd_wire::{Bytes, Encoding, encode, encode_delete};
use http::Method;

/// One request, without what every request has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ApiRequest {
    pub(crate) method: Method,
    /// Kubernetes' word for what is asked: it is what a role must allow.
    pub(crate) verb: &'static str,
    pub(crate) resource: &'static str,
    /// For people; empty when it is about all objects.
    pub(crate) name: String,
    /// Path and query.
    pub(crate) path: String,
    pub(crate) body: Option<Body>,
    pub(crate) accept: Accept,
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
}

impl Accept {
    pub(crate) fn header(self) -> &'static str {
        match self {
            Self::Any => "application/vnd.kubernetes.protobuf, application/json",
            Self::Json => "application/json",
        }
    }
}

/// Of every resource we touch, the part of the path before the namespace.
pub(crate) fn group_path(resource: &str) -> &'static str {
    match resource {
        "endpointslices" => "/apis/discovery.k8s.io/v1",
        "leases" => "/apis/coordination.k8s.io/v1",
        _ => "/api/v1",
    }
}

pub(crate) fn objects_path(resource: &str, namespace: &str) -> String {
    [group_path(resource), "/namespaces/", &escaped(namespace), "/", resource].concat()
}

pub(crate) fn object_path(resource: &str, key: &Key) -> String {
    [&*objects_path(resource, &key.namespace), "/", &escaped(&key.name)].concat()
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
        }
    }

    pub(crate) fn of_write(write: &Write, encoding: Encoding) -> Self {
        let resource = write.resource().as_str();
        let key = write.key();
        let (method, path, bytes) = match write {
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
        let body = Body { content_type: encoding.media_type(), bytes: bytes.into() };
        let name = key.to_string();
        Self { name, path, body: Some(body), ..Self::new(method, write.verb(), resource) }
    }

    /// Without a resourceVersion the answer is as new as the request: a consistent read.
    pub(crate) fn of_lookup(read: &LiveRead) -> Self {
        let (resource, path, name) = match read {
            LiveRead::Service(key) => ("services", object_path("services", key), key.to_string()),
            LiveRead::Node(name) => {
                ("nodes", format!("/api/v1/nodes/{}", escaped(name)), name.to_string())
            }
            LiveRead::Object(PublishedResource::Endpoints, key) => {
                ("endpoints", object_path("endpoints", key), key.to_string())
            }
            LiveRead::Object(PublishedResource::Slices, key) => {
                ("endpointslices", object_path("endpointslices", key), key.to_string())
            }
        };
        Self { name, path, ..Self::new(Method::GET, "get", resource) }
    }

    /// One page of everything of a kind, consistent as well.
    pub(crate) fn of_page(kind: WatchedResource, token: Option<&str>, n_objects_max: u32) -> Self {
        let mut path = format!(
            "{}/{kind}?limit={n_objects_max}",
            group_path(kind.as_str()),
            kind = kind.as_str()
        );
        if let Some(token) = token {
            path.push_str("&continue=");
            path.push_str(&escaped(token));
        }
        Self { path, ..Self::new(Method::GET, "list", kind.as_str()) }
    }

    pub(crate) fn of_watch(kind: WatchedResource, from: Start, timeout_secs: u64) -> Self {
        let mut path = format!(
            "{}/{}?watch=1&allowWatchBookmarks=true&timeoutSeconds={timeout_secs}",
            group_path(kind.as_str()),
            kind.as_str(),
        );
        match from {
            Start::Everything => {
                path.push_str("&sendInitialEvents=true&resourceVersionMatch=NotOlderThan");
            }
            Start::After(version) => {
                path.push_str("&resourceVersion=");
                path.push_str(&version.to_string());
            }
        }
        Self { path, ..Self::new(Method::GET, "watch", kind.as_str()) }
    }

    /// `update endpointslices shop/web-abc`.
    pub(crate) fn words(&self) -> String {
        let Self { verb, resource, name, .. } = self;
        if name.is_empty() {
            format!("{verb} {resource}")
        } else {
            format!("{verb} {resource} {name}")
        }
    }
}

/// Where a watch begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Start {
    /// With all objects as they are now, then a bookmark that says so.
    Everything,
    After(ResourceVersion),
}

/// For one part of a path or query. Names of objects need it hardly ever, continue tokens do.
fn escaped(text: &str) -> Cow<'_, str> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    if text.bytes().all(is_plain) {
        return text.into();
    }
    let escape = |byte: u8| {
        if is_plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }
    };
    text.bytes().map(escape).collect::<String>().into()
}

#[cfg(test)]
mod tests {
    use endpointd_model::{DeleteTarget, Uid};

    use super::*;

    #[test]
    fn writes_go_where_their_object_lives() {
        let target = DeleteTarget {
            resource: PublishedResource::Slices,
            key: Key::new("shop", "web-1"),
            uid: Uid::from("u"),
            resource_version: 7.into(),
        };
        let ask = ApiRequest::of_write(&Write::Delete(target), Encoding::Json);
        assert_eq!(ask.path, "/apis/discovery.k8s.io/v1/namespaces/shop/endpointslices/web-1");
        assert_eq!(ask.words(), "delete endpointslices shop/web-1");
        let body = String::from_utf8(ask.body.unwrap().bytes.to_vec()).unwrap();
        assert!(body.contains(r#""preconditions":{"uid":"u","resourceVersion":"7"}"#), "{body}");
    }

    #[test]
    fn the_first_picture_never_asks_for_any_old_version() {
        let path = ApiRequest::of_watch(WatchedResource::Pods, Start::Everything, 300).path;
        assert!(path.contains("sendInitialEvents=true&resourceVersionMatch=NotOlderThan"));
        assert!(!path.contains("resourceVersion="), "{path}");
        let page = ApiRequest::of_page(WatchedResource::Slices, Some("a/b=="), 500).path;
        assert_eq!(page, "/apis/discovery.k8s.io/v1/endpointslices?limit=500&continue=a%2Fb%3D%3D");
    }

    #[test]
    fn nodes_have_no_namespace() {
        assert_eq!(ApiRequest::of_lookup(&LiveRead::Node("a".into())).path, "/api/v1/nodes/a");
        let read = LiveRead::Object(PublishedResource::Endpoints, Key::new("shop", "web"));
        assert_eq!(ApiRequest::of_lookup(&read).path, "/api/v1/namespaces/shop/endpoints/web");
    }
}
