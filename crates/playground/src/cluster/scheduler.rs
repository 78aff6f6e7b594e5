//! Chooses a node for a pod: the zone with the fewest pods of the same owner, there the node with
//! the fewest pods. Filters: readiness, cordon, node selector, and the number of pods.

/// A node as a candidate for one pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeCandidate<'a> {
    pub name: &'a str,
    /// Whether the filters accept the node.
    pub is_fit: bool,
    pub n_pods: usize,
    pub n_pods_max: usize,
    /// Pods of the same owner in the node's zone.
    pub n_siblings_in_zone: usize,
}

/// Ties are broken by name.
pub fn choose<'a>(candidates: impl IntoIterator<Item = NodeCandidate<'a>>) -> Option<&'a str> {
    let has_room = |one: &NodeCandidate<'_>| one.is_fit && one.n_pods < one.n_pods_max;
    let fit = candidates.into_iter().filter(has_room);
    fit.min_by_key(|one| (one.n_siblings_in_zone, one.n_pods, one.name)).map(|one| one.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate(name: &str, n_siblings_in_zone: usize, n_pods: usize) -> NodeCandidate<'_> {
        NodeCandidate { name, is_fit: true, n_pods, n_pods_max: 10, n_siblings_in_zone }
    }

    #[test]
    fn the_zone_with_the_fewest_siblings_wins_then_the_emptiest_node() {
        let nodes = [candidate("a", 2, 0), candidate("b", 1, 5), candidate("c", 1, 4)];
        assert_eq!(choose(nodes), Some("c"));
        assert_eq!(choose([candidate("b", 0, 0), candidate("a", 0, 0)]), Some("a"), "by name");
    }

    #[test]
    fn full_and_filtered_nodes_are_not_chosen() {
        let unfit = NodeCandidate { is_fit: false, ..candidate("a", 0, 0) };
        assert_eq!(choose([unfit, candidate("b", 0, 10)]), None);
        assert_eq!(choose([unfit, candidate("b", 9, 9)]), Some("b"));
    }
}
