//! Instances beside each other, each with a scope and a Lease of its own.

use endpointd_model::{LabelSelector, Labels, NamespaceScope, Scope, Shard};

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
    /// One for the Services of a team, and one for the others.
    Selectors,
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
            Self::Selectors => SELECTORS.map(selected).to_vec(),
        }
    }

    /// The instances that run from the beginning.
    pub fn first(self) -> Vec<usize> {
        match self {
            Self::One | Self::HandOver => vec![0],
            Self::Namespaces | Self::Shards | Self::Selectors => vec![0, 1],
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
            (Self::Selectors, _) => &[0, 1],
        }
    }

    /// Likewise, those that may write what a Service with these labels publishes.
    pub fn writers_for(self, labels: &Labels) -> &'static [usize] {
        match self {
            Self::Selectors if labels.has("team", "a") => &[0],
            Self::Selectors => &[1],
            Self::One | Self::Namespaces | Self::Shards | Self::HandOver => &[0, 1, 2],
        }
    }
}

const SELECTORS: [&str; 2] = ["team=a", "team!=a"];

fn selected(selector: &str) -> Scope {
    let selector = LabelSelector::parse(selector).expect("a valid selector");
    Scope { service_selector: Some(selector), ..Scope::default() }
}

fn scope(namespaces: NamespaceScope) -> Scope {
    Scope { namespaces, service_selector: None }
}

fn shards() -> [Scope; 2] {
    let shard = |index| Shard::new(index, SHARDS).expect("the index is at most the number");
    [1, 2].map(|index| scope(NamespaceScope::Shard(shard(index))))
}
