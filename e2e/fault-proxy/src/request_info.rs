//! What a request asks of an API server. Upstream: `RequestInfoFactory` in
//! k8s.io/apiserver/pkg/endpoints/request.

use http::{Method, Uri};

/// The verbs of requests to an API server, as audit logs name them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verb {
    Get,
    List,
    Watch,
    Create,
    Update,
    Patch,
    Delete,
}

impl Verb {
    pub const WRITES: [Self; 4] = [Self::Create, Self::Update, Self::Patch, Self::Delete];

    pub fn is_write(self) -> bool {
        Self::WRITES.contains(&self)
    }
}

/// The target of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestInfo {
    pub verb: Verb,
    /// Empty for paths like `/readyz`.
    pub resource: String,
    pub namespace: Option<String>,
    pub name: Option<String>,
    /// Path and query.
    pub target: String,
}

impl RequestInfo {
    pub(crate) fn new(method: &Method, uri: &Uri) -> Self {
        let target = uri.path_and_query().map_or("/", |target| target.as_str()).to_owned();
        let mut parts = uri.path().split('/').filter(|part| !part.is_empty());
        match parts.next() {
            Some("api") => drop(parts.next()),
            Some("apis") => drop((parts.next(), parts.next())),
            _ => return Self { target, ..Self::of_path(method) },
        }
        let (mut resource, mut name) = (parts.next(), parts.next());
        let mut namespace = None;
        // Below `namespaces/NAME` are resources of the namespace, and subresources of its own.
        if resource == Some("namespaces")
            && let Some(below) = parts.next()
            && !["status", "finalize"].contains(&below)
        {
            (namespace, resource, name) = (name, Some(below), parts.next());
        }
        let is_watch = uri.query().unwrap_or_default().split('&').any(|one| {
            matches!(one.split_once('='), Some(("watch", value)) if value != "false" && value != "0")
        });
        let verb = match (method, name) {
            (&Method::POST, _) => Verb::Create,
            (&Method::PUT, _) => Verb::Update,
            (&Method::PATCH, _) => Verb::Patch,
            (&Method::DELETE, _) => Verb::Delete,
            _ if is_watch => Verb::Watch,
            (_, Some(_)) => Verb::Get,
            (_, None) => Verb::List,
        };
        let text = |part: Option<&str>| part.map(str::to_owned);
        Self {
            verb,
            resource: text(resource).unwrap_or_default(),
            namespace: text(namespace),
            name: text(name),
            target,
        }
    }

    fn of_path(method: &Method) -> Self {
        let verb = if method == Method::GET { Verb::Get } else { Verb::Create };
        Self { verb, resource: String::new(), namespace: None, name: None, target: String::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(method: &str, target: &str) -> (Verb, String, Option<String>, Option<String>) {
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        let info = RequestInfo::new(&method, &target.parse().unwrap());
        (info.verb, info.resource, info.namespace, info.name)
    }

    #[test]
    fn requests_for_namespaced_objects() {
        let slices = "/apis/discovery.k8s.io/v1/namespaces/shop/endpointslices";
        let shop = Some("shop".to_owned());
        let of = |verb, name: Option<&str>| {
            (verb, "endpointslices".to_owned(), shop.clone(), name.map(str::to_owned))
        };
        assert_eq!(info("GET", slices), of(Verb::List, None));
        assert_eq!(info("POST", slices), of(Verb::Create, None));
        let web = format!("{slices}/web-1");
        assert_eq!(info("GET", &web), of(Verb::Get, Some("web-1")));
        assert_eq!(info("PUT", &format!("{web}?a=b")), of(Verb::Update, Some("web-1")));
        assert_eq!(info("DELETE", &web), of(Verb::Delete, Some("web-1")));
    }

    #[test]
    fn requests_for_all_namespaces() {
        let pods = |verb| (verb, "pods".to_owned(), None, None);
        assert_eq!(info("GET", "/api/v1/pods?limit=500&watch=false"), pods(Verb::List));
        assert_eq!(info("GET", "/api/v1/pods?watch=true&resourceVersion=7"), pods(Verb::Watch));
    }

    #[test]
    fn requests_for_namespaces_themselves() {
        let namespace = |verb| (verb, "namespaces".to_owned(), None, Some("shop".to_owned()));
        assert_eq!(info("GET", "/api/v1/namespaces/shop"), namespace(Verb::Get));
        assert_eq!(info("PUT", "/api/v1/namespaces/shop/finalize"), namespace(Verb::Update));
    }

    #[test]
    fn other_paths_have_no_resource() {
        assert_eq!(info("GET", "/readyz"), (Verb::Get, String::new(), None, None));
    }
}
