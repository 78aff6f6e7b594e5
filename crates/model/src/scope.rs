//! Which objects one process looks at: instances with disjoint scopes run side by side.
//!
//! The client asks the API server to filter what it can, and drops the rest before it is stored.

use std::collections::BTreeSet;
use std::fmt;

use crate::{LabelSelector, LiveReadResult, WatchedResource};

/// The namespaces, and the Services in them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scope {
    pub namespaces: NamespaceScope,
    /// Only Services with these labels.
    pub service_selector: Option<LabelSelector>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum NamespaceScope {
    #[default]
    All,
    Named(BTreeSet<String>),
    Shard(Shard),
}

/// Those of `count` parts of all namespaces, by the hash of the name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    /// From 1 to `count`.
    index: u64,
    count: u64,
}

/// Shards of one cluster.
pub const SHARDS_MAX: u64 = 1024;

impl Shard {
    /// `None` unless `1 <= index <= count <= SHARDS_MAX`.
    pub fn new(index: u64, count: u64) -> Option<Self> {
        let is_valid = index >= 1 && index <= count && count <= SHARDS_MAX;
        is_valid.then_some(Self { index, count })
    }

    /// The first hash of this shard, and the first one after it.
    fn range(self) -> (u128, u128) {
        let bound = |index: u64| (1u128 << 64) * u128::from(index) / u128::from(self.count);
        (bound(self.index - 1), bound(self.index))
    }

    fn contains(self, namespace: &str) -> bool {
        let (start, end) = self.range();
        (start..end).contains(&u128::from(hash(namespace)))
    }

    fn overlaps(self, other: Self) -> bool {
        let ((a, b), (c, d)) = (self.range(), other.range());
        a < d && c < b
    }
}

/// As `1-of-4`.
impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-of-{}", self.index, self.count)
    }
}

/// FNV-1a. Upstream: `HashField` in k8s.io/apimachinery/pkg/sharding.
fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

impl NamespaceScope {
    pub fn contains(&self, namespace: &str) -> bool {
        match self {
            Self::All => true,
            Self::Named(names) => names.contains(namespace),
            Self::Shard(shard) => shard.contains(namespace),
        }
    }

    fn overlaps(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::All, _) | (_, Self::All) => true,
            (Self::Named(names), other) | (other, Self::Named(names)) => {
                names.iter().any(|name| other.contains(name))
            }
            (Self::Shard(one), Self::Shard(other)) => one.overlaps(*other),
        }
    }

    /// The hashes of the names, as ranges that do not include their end; empty for all names.
    pub fn hash_ranges(&self) -> Vec<(u128, u128)> {
        match self {
            Self::All => Vec::new(),
            Self::Named(names) => {
                let hashes: BTreeSet<u128> =
                    names.iter().map(|name| u128::from(hash(name))).collect();
                hashes.into_iter().map(|hash| (hash, hash + 1)).collect()
            }
            Self::Shard(shard) => vec![shard.range()],
        }
    }
}

impl Scope {
    pub fn is_everything(&self) -> bool {
        *self == Self::default()
    }

    /// Whether some object could be in both. Label selectors that only data keeps apart count as
    /// overlapping.
    pub fn overlaps(&self, other: &Self) -> bool {
        let are_excluded = match (&self.service_selector, &other.service_selector) {
            (Some(one), Some(other)) => one.excludes(other),
            (None, _) | (_, None) => false,
        };
        !are_excluded && self.namespaces.overlaps(&other.namespaces)
    }

    /// For objects of a watched resource; nodes have no namespace and belong to every scope.
    pub fn contains(&self, resource: WatchedResource, namespace: &str) -> bool {
        resource == WatchedResource::Nodes || self.namespaces.contains(namespace)
    }

    /// A Service that exists and is not in the scope is not there for the engine.
    pub fn filter_read(&self, result: LiveReadResult) -> LiveReadResult {
        match (&self.service_selector, &result) {
            (Some(selector), LiveReadResult::Service(service))
                if !selector.matches(|key| service.labels.get(key).map(AsRef::as_ref)) =>
            {
                LiveReadResult::Absent
            }
            (Some(_) | None, _) => result,
        }
    }

    /// Reads what [`fmt::Display`] has written.
    pub fn parse(text: &str) -> Option<Self> {
        let mut scope = Self::default();
        for part in text.split(';').filter(|part| !part.is_empty()) {
            match part.split_once(':')? {
                ("namespaces", names) => {
                    let names = names.split(',').map(str::to_owned).collect();
                    scope.namespaces = NamespaceScope::Named(names);
                }
                ("shard", shard) => {
                    let (index, count) = shard.split_once("-of-")?;
                    let shard = Shard::new(index.parse().ok()?, count.parse().ok()?)?;
                    scope.namespaces = NamespaceScope::Shard(shard);
                }
                ("services", selector) => {
                    scope.service_selector = Some(LabelSelector::parse(selector).ok()?);
                }
                _ => return None,
            }
        }
        Some(scope)
    }

    /// The end of the default name of the Lease: another one for each scope.
    pub fn lease_suffix(&self) -> String {
        match (&self.namespaces, &self.service_selector) {
            (NamespaceScope::All, None) => String::new(),
            (NamespaceScope::Shard(shard), None) => format!("-shard-{shard}"),
            (NamespaceScope::All | NamespaceScope::Named(_) | NamespaceScope::Shard(_), _) => {
                format!("-{:016x}", hash(&self.to_string()))
            }
        }
    }
}

/// As in the annotation of the Lease: `namespaces:shop,test;services:team=a`; empty for everything.
impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let namespaces = match &self.namespaces {
            NamespaceScope::All => None,
            NamespaceScope::Named(names) => {
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                Some(format!("namespaces:{}", names.join(",")))
            }
            NamespaceScope::Shard(shard) => Some(format!("shard:{shard}")),
        };
        let services = self.service_selector.as_ref().map(|one| format!("services:{one}"));
        let parts: Vec<String> = namespaces.into_iter().chain(services).collect();
        f.write_str(&parts.join(";"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Service;

    fn scope(text: &str) -> Scope {
        Scope::parse(text).expect("a scope")
    }

    #[test]
    fn each_namespace_is_in_exactly_one_shard() {
        for count in [1, 2, 3, 7, 1024] {
            for n in 0..500 {
                let namespace = format!("ns-{n}");
                let shards = (1..=count).filter_map(|index| Shard::new(index, count));
                assert_eq!(shards.filter(|shard| shard.contains(&namespace)).count(), 1);
            }
        }
        for (index, count) in [(0, 1), (2, 1), (1, 1025)] {
            assert_eq!(Shard::new(index, count), None);
        }
    }

    /// The values of Go's `fnv.New64a`.
    #[test]
    fn the_hash_is_that_of_the_api_server() {
        assert_eq!(hash(""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(hash("a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(hash("foobar"), 0x8594_4171_f739_67e8);
    }

    #[test]
    fn scopes_overlap_unless_no_object_can_be_in_both() {
        for (one, other, want) in [
            ("", "", true),
            ("", "namespaces:a", true),
            ("namespaces:a", "namespaces:b", false),
            ("namespaces:a,b", "namespaces:b", true),
            ("shard:1-of-2", "shard:2-of-2", false),
            ("shard:1-of-2", "shard:2-of-4", true),
            ("shard:1-of-2", "shard:3-of-4", false),
            ("services:team=a", "services:team=b", false),
            ("services:team=a", "services:tier=b", true),
            ("services:team=a", "", true),
        ] {
            assert_eq!(scope(one).overlaps(&scope(other)), want, "{one} {other}");
            assert_eq!(scope(other).overlaps(&scope(one)), want, "{other} {one}");
        }
    }

    #[test]
    fn a_scope_is_printed_as_it_is_read_and_names_its_lease() {
        let texts = ["", "namespaces:a,b", "shard:2-of-3", "namespaces:a;services:team=a,!old"];
        let suffixes: BTreeSet<String> =
            texts.iter().map(|text| scope(text).lease_suffix()).collect();
        assert_eq!(suffixes.len(), texts.len());
        for text in texts {
            assert_eq!(scope(text).to_string(), text);
        }
        assert_eq!(scope("shard:2-of-3").lease_suffix(), "-shard-2-of-3");
        assert_eq!(Scope::parse("shard:3-of-2"), None);
    }

    #[test]
    fn a_service_out_of_the_scope_is_absent() {
        let service = |team| {
            let labels = [("team", team)].into_iter().collect();
            LiveReadResult::Service(Box::new(Service { labels, ..Service::default() }))
        };
        let team_a = scope("services:team=a");
        assert_eq!(team_a.filter_read(service("a")), service("a"));
        assert_eq!(team_a.filter_read(service("b")), LiveReadResult::Absent);
        assert_eq!(Scope::default().filter_read(service("b")), service("b"));
    }
}
