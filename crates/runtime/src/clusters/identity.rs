//! Which cluster a kubeconfig leads to: the uid of its namespace kube-system. Two kubeconfigs of one
//! cluster would import its endpoints twice, so only one is used: the one that was there first, and of
//! those that came together the one whose name sorts first.

use std::collections::BTreeMap;

use endpointd_model::ClusterId;

use super::Connected;

/// What is known of the identity of one cluster.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Identity {
    /// The look at the directory that found the kubeconfig.
    found_in_look: u64,
    /// Its task has tried to read the uid.
    pub has_tried: bool,
    /// What its task has read last.
    claimed: Option<String>,
    /// The uid under which it is watched.
    uid: Option<String>,
}

impl Identity {
    pub fn found_in(look: u64) -> Self {
        Self { found_in_look: look, ..Self::default() }
    }
}

/// What follows from a uid that was read.
#[derive(Debug, PartialEq)]
pub(super) enum Claim {
    /// Kubeconfigs that came together with this one, and whose names sort before, may lead to the same
    /// cluster: they have not been tried.
    Wait,
    SameAs(ClusterId),
    Taken {
        /// Under this name there was another cluster.
        is_replaced: bool,
    },
    /// The kubeconfig is gone.
    Gone,
}

/// Claims a uid for a cluster. `may_wait`: it has not waited for long.
pub(super) fn claim(
    clusters: &mut BTreeMap<ClusterId, Connected>,
    id: &ClusterId,
    uid: &str,
    may_wait: bool,
) -> Claim {
    let Some(own) = clusters.get_mut(id) else { return Claim::Gone };
    own.identity.has_tried = true;
    own.identity.claimed = Some(uid.to_owned());
    let own = own.identity.clone();
    let others = || clusters.iter().filter(|(other, _)| *other != id);
    let is_before =
        |other: &ClusterId, one: &Identity| (one.found_in_look, other) < (own.found_in_look, id);
    let has_same = |other: &ClusterId, one: &Identity| {
        one.uid.as_deref() == Some(uid)
            || (one.claimed.as_deref() == Some(uid) && is_before(other, one))
    };
    if let Some((other, _)) = others().find(|(other, one)| has_same(other, &one.identity)) {
        return Claim::SameAs(other.clone());
    }
    let is_open = |other: &ClusterId, one: &Identity| {
        one.found_in_look == own.found_in_look && is_before(other, one) && !one.has_tried
    };
    if may_wait && own.uid.is_none() && others().any(|(other, one)| is_open(other, &one.identity)) {
        return Claim::Wait;
    }
    let before = own.uid;
    if let Some(own) = clusters.get_mut(id) {
        own.identity.uid = Some(uid.to_owned());
    }
    Claim::Taken { is_replaced: before.is_some_and(|before| before != uid) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(name: &str) -> ClusterId {
        ClusterId::parse(name).expect("a label")
    }

    /// Kubeconfigs, each with the look that found it.
    fn clusters(found: &[(&str, u64)]) -> BTreeMap<ClusterId, Connected> {
        let connected = |&(name, found_in_look): &(&str, u64)| {
            let identity = Identity::found_in(found_in_look);
            (id(name), Connected { identity, ..Connected::default() })
        };
        found.iter().map(connected).collect()
    }

    const TAKEN: Claim = Claim::Taken { is_replaced: false };

    #[test]
    fn the_first_name_wins_if_two_come_together() {
        let mut all = clusters(&[("eu1", 1), ("eu2", 1)]);
        assert_eq!(claim(&mut all, &id("eu2"), "u", true), Claim::Wait);
        assert_eq!(claim(&mut all, &id("eu1"), "u", true), TAKEN);
        assert_eq!(claim(&mut all, &id("eu2"), "u", true), Claim::SameAs(id("eu1")));
        let mut all = clusters(&[("eu1", 1), ("eu2", 1)]);
        assert_eq!(claim(&mut all, &id("eu1"), "u", true), TAKEN);
        assert_eq!(claim(&mut all, &id("eu2"), "u", true), Claim::SameAs(id("eu1")));
    }

    #[test]
    fn the_one_that_was_there_before_wins() {
        let mut all = clusters(&[("eu1", 2), ("eu2", 1)]);
        assert_eq!(claim(&mut all, &id("eu2"), "u", true), TAKEN);
        assert_eq!(claim(&mut all, &id("eu1"), "u", true), Claim::SameAs(id("eu2")));
    }

    #[test]
    fn one_that_does_not_answer_is_not_waited_for_without_end() {
        let mut all = clusters(&[("eu1", 1), ("eu2", 1)]);
        assert_eq!(claim(&mut all, &id("eu2"), "u", true), Claim::Wait);
        assert_eq!(claim(&mut all, &id("eu2"), "u", false), TAKEN);
        assert_eq!(claim(&mut all, &id("eu1"), "u", true), Claim::SameAs(id("eu2")));
    }

    #[test]
    fn another_uid_under_the_same_name_is_another_cluster() {
        let mut all = clusters(&[("eu1", 1)]);
        assert_eq!(claim(&mut all, &id("eu1"), "u", true), TAKEN);
        assert_eq!(claim(&mut all, &id("eu1"), "u", true), TAKEN);
        assert_eq!(claim(&mut all, &id("eu1"), "v", true), Claim::Taken { is_replaced: true });
        assert_eq!(claim(&mut all, &id("us1"), "v", true), Claim::Gone);
    }
}
