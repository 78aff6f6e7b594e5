//! Pods that a ReplicaSet creates or deletes. Upstream: `manageReplicas` and `ActivePodsWithRanks`.

use endpointd_apiserver::store::Key;

/// A pod that is neither in deletion nor finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ActivePod<'a> {
    pub key: &'a Key,
    pub is_assigned: bool,
    pub is_ready: bool,
    /// Higher for younger pods.
    pub ordinal: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    Enough,
    Create(usize),
    Delete(Vec<Key>),
}

/// If there are too many, deletes unassigned pods first, then unready ones, then the youngest.
pub fn change(n_wanted: usize, mut members: Vec<ActivePod<'_>>) -> Change {
    let n_members = members.len();
    if n_members < n_wanted {
        return Change::Create(n_wanted - n_members);
    }
    if n_members == n_wanted {
        return Change::Enough;
    }
    members.sort_by_key(|one| (one.is_assigned, one.is_ready, u64::MAX - one.ordinal));
    members.truncate(n_members - n_wanted);
    Change::Delete(members.into_iter().map(|one| one.key.clone()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unassigned_pods_are_deleted_first_then_unready_ones_then_the_youngest() {
        let keys = ["a", "b", "c", "d"].map(|name| Key::new("shop", name));
        let [a, b, c, d] = &keys;
        let member =
            |key, is_assigned, is_ready, ordinal| ActivePod { key, is_assigned, is_ready, ordinal };
        let members = vec![
            member(a, true, true, 1),
            member(b, true, true, 2),
            member(c, true, false, 3),
            member(d, false, false, 4),
        ];
        let delete = |keys: &[&Key]| Change::Delete(keys.iter().copied().cloned().collect());
        assert_eq!(change(4, members.clone()), Change::Enough);
        assert_eq!(change(6, members.clone()), Change::Create(2));
        assert_eq!(change(2, members.clone()), delete(&[d, c]));
        assert_eq!(
            change(1, members.clone()),
            delete(&[d, c, b]),
            "the youngest of the ready ones"
        );
        assert_eq!(change(0, members), delete(&[d, c, b, a]));
    }
}
