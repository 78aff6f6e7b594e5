//! Which requests a fault hits.

use std::ops::Range;

use crate::request_info::{RequestInfo, Verb};

/// A choice of requests. It starts with all of them; each method narrows it.
#[derive(Clone, Debug, Default)]
pub struct Requests {
    verbs: Vec<Verb>,
    resources: Vec<String>,
    namespace: Option<String>,
    name: Option<String>,
    occurrences: Occurrences,
}

/// Which of the requests that match the rest.
#[derive(Clone, Debug, Default)]
enum Occurrences {
    #[default]
    All,
    /// Counted from 0.
    Range(Range<usize>),
    /// Each `n`th, the first included.
    Every(usize),
}

impl Requests {
    pub fn all() -> Self {
        Self::default()
    }

    /// Creates, updates, patches, and deletes of Endpoints and EndpointSlices.
    pub fn writes_of_endpoints() -> Self {
        Self::all().verbs(&Verb::WRITES).resources(&["endpoints", "endpointslices"])
    }

    pub fn verbs(self, verbs: &[Verb]) -> Self {
        Self { verbs: verbs.to_vec(), ..self }
    }

    pub fn resources(self, resources: &[&str]) -> Self {
        let resources = resources.iter().map(|&resource| resource.to_owned()).collect();
        Self { resources, ..self }
    }

    /// Requests that name this namespace in their path; a list of all namespaces does not.
    pub fn namespace(self, namespace: &str) -> Self {
        Self { namespace: Some(namespace.to_owned()), ..self }
    }

    pub fn name(self, name: &str) -> Self {
        Self { name: Some(name.to_owned()), ..self }
    }

    /// Only these of the matching requests, counted from 0.
    pub fn occurrences(self, range: Range<usize>) -> Self {
        Self { occurrences: Occurrences::Range(range), ..self }
    }

    /// Only each `n`th of the matching requests, the first included.
    pub fn every(self, n: usize) -> Self {
        Self { occurrences: Occurrences::Every(n), ..self }
    }

    pub fn contains(&self, request: &RequestInfo) -> bool {
        let Self { verbs, resources, namespace, name, occurrences: _ } = self;
        (verbs.is_empty() || verbs.contains(&request.verb))
            && (resources.is_empty() || resources.contains(&request.resource))
            && (namespace.is_none() || *namespace == request.namespace)
            && (name.is_none() || *name == request.name)
    }

    /// Whether the `n`th of the requests that this contains is hit.
    pub(crate) fn hits(&self, n: usize) -> bool {
        match &self.occurrences {
            Occurrences::All => true,
            Occurrences::Range(range) => range.contains(&n),
            Occurrences::Every(step) => n.is_multiple_of(*step),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(method: &str, target: &str) -> RequestInfo {
        let method = http::Method::from_bytes(method.as_bytes()).unwrap();
        RequestInfo::new(&method, &target.parse().unwrap())
    }

    #[test]
    fn each_condition_narrows_the_choice() {
        let create = request("POST", "/api/v1/namespaces/shop/endpoints");
        assert!(Requests::all().contains(&create));
        assert!(Requests::writes_of_endpoints().contains(&create));
        assert!(Requests::all().namespace("shop").contains(&create));
        assert!(!Requests::all().namespace("other").contains(&create));
        assert!(!Requests::all().verbs(&[Verb::Delete]).contains(&create));
        assert!(!Requests::all().resources(&["pods"]).contains(&create));
        assert!(!Requests::all().name("web").contains(&create));
        let list = request("GET", "/api/v1/endpoints");
        assert!(!Requests::writes_of_endpoints().contains(&list));
        assert!(!Requests::all().namespace("shop").contains(&list));
    }

    #[test]
    fn occurrences_are_counted_from_zero() {
        let hit = |requests: Requests| (0..6).filter(|&n| requests.hits(n)).collect::<Vec<_>>();
        assert_eq!(hit(Requests::all()), [0, 1, 2, 3, 4, 5]);
        assert_eq!(hit(Requests::all().occurrences(1..3)), [1, 2]);
        assert_eq!(hit(Requests::all().every(4)), [0, 4]);
    }
}
