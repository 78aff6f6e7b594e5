//! Instances beside each other, each with a scope and a Lease of its own.

use endpointd_model::{NamespaceScope, Scope, Shard};

use crate::workload::NAMESPACES;

/// Which instances a run has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Instances {
    /// One that looks at everything.
    #[default]
    One,
    /// One for each namespace.
    Namespaces,
    /// Those of five shards that have a namespace.
    Shards,
    /// First one that looks at everything, then those of the shards.
    HandOver,
}

/// The first shard has `east`, the second one `west`, the others have nothing.
const SHARDS: u64 = 5;

impl Instances {
    pub fn scopes(self) -> Vec<Scope> {
        match self {
            Self::One => vec![Scope::default()],
            Self::Namespaces => {
                let named = |name: &str| NamespaceScope::Named([name.to_owned()].into());
                NAMESPACES.map(|name| scope(named(name))).to_vec()
            }
            Self::Shards => shards().to_vec(),
            Self::HandOver => [Scope::default()].into_iter().chain(shards()).collect(),
        }
    }

    /// The instances that run from the beginning.
    pub fn first(self) -> Vec<usize> {
        match self {
            Self::One | Self::HandOver => vec![0],
            Self::Namespaces | Self::Shards => vec![0, 1],
        }
    }

    /// The instances that may write objects of a namespace: what `scopes` must amount to, written down
    /// a second time.
    pub fn writers(self, namespace: &str) -> &'static [usize] {
        match (self, namespace) {
            (Self::One, _) | (Self::Namespaces | Self::Shards, "east") => &[0],
            (Self::Namespaces | Self::Shards, _) => &[1],
            (Self::HandOver, "east") => &[0, 1],
            (Self::HandOver, _) => &[0, 2],
        }
    }
}

fn scope(namespaces: NamespaceScope) -> Scope {
    Scope { namespaces, service_selector: None }
}

fn shards() -> [Scope; 2] {
    let shard = |index| Shard::new(index, SHARDS).expect("the index is at most the number");
    [1, 2].map(|index| scope(NamespaceScope::Shard(shard(index))))
}
