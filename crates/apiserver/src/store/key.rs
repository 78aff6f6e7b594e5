//! Where an object is on its shelf: `namespace/name`, ordered by bytes as etcd orders it.

use std::fmt;

/// The key of an object. Of cluster-wide kinds it is the name alone.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    path: String,
}

impl Key {
    /// `namespace` is empty for cluster-wide kinds.
    pub fn new(namespace: &str, name: &str) -> Self {
        let path = match namespace {
            "" => name.to_owned(),
            namespace => format!("{namespace}/{name}"),
        };
        Self { path }
    }

    /// Smaller than every key of the namespace; of the empty one, smaller than every key.
    pub(crate) fn first_in(namespace: &str) -> Self {
        match namespace {
            "" => Self { path: String::new() },
            namespace => Self { path: format!("{namespace}/") },
        }
    }

    pub fn namespace(&self) -> &str {
        self.path.split_once('/').map_or("", |(namespace, _)| namespace)
    }

    pub fn name(&self) -> &str {
        self.path.split_once('/').map_or(&self.path, |(_, name)| name)
    }

    pub(crate) fn path(&self) -> &str {
        &self.path
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.path)
    }
}
