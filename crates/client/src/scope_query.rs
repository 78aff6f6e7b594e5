//! What of a scope the API server can filter: one namespace by its path, several namespaces and shards
//! by a shard selector if it has the feature `ShardedListAndWatch`, Services by labels.

use endpointd_model::{NamespaceScope, Scope, WatchedResource};

use crate::request::escape;

/// The only namespace, whose path lists and watches use.
pub fn only_namespace(scope: &Scope, resource: WatchedResource) -> Option<&str> {
    match &scope.namespaces {
        NamespaceScope::Named(names) if resource != WatchedResource::Nodes => {
            names.iter().next().filter(|_| names.len() == 1).map(String::as_str)
        }
        NamespaceScope::All | NamespaceScope::Named(_) | NamespaceScope::Shard(_) => None,
    }
}

/// What the API server can filter by, as the end of a query.
pub fn query(scope: &Scope, resource: WatchedResource) -> String {
    let mut query = String::new();
    if let Some(selector) = &scope.service_selector
        && resource == WatchedResource::Services
    {
        query.push_str(&format!("&labelSelector={}", escape(&selector.to_string())));
    }
    let ranges = scope.namespaces.hash_ranges();
    let is_filtered = resource != WatchedResource::Nodes
        && !ranges.is_empty()
        && only_namespace(scope, resource).is_none();
    if is_filtered {
        let range = |(start, end): &(u128, u128)| {
            format!("shardRange(object.metadata.namespace, '0x{start:016x}', '0x{end:016x}')")
        };
        let selector = ranges.iter().map(range).collect::<Vec<_>>().join(" || ");
        query.push_str(&format!("&shardSelector={}", escape(&selector)));
    }
    query
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scope(text: &str) -> Scope {
        Scope::parse(text).expect("a scope")
    }

    #[test]
    fn the_api_server_is_asked_to_filter() {
        let (services, pods, nodes) =
            (WatchedResource::Services, WatchedResource::Pods, WatchedResource::Nodes);
        let one = scope("namespaces:shop;services:team=a");
        assert_eq!(only_namespace(&one, pods), Some("shop"));
        assert_eq!(only_namespace(&one, nodes), None);
        assert_eq!(query(&one, services), "&labelSelector=team%3Da");
        assert_eq!((query(&one, pods), query(&one, nodes)), (String::new(), String::new()));
        let half = query(&scope("shard:2-of-2"), pods);
        assert!(half.contains("%270x8000000000000000%27%2C%20%270x10000000000000000%27"), "{half}");
        let two = query(&scope("namespaces:a,b"), pods);
        assert_eq!(two.matches("shardRange").count(), 2, "{two}");
        assert_eq!(query(&scope("shard:1-of-2"), nodes), "");
    }
}
