//! The key of an object, `namespace/name`, ordered by bytes as in etcd.

use std::fmt;

/// The key of an object; for cluster-scoped kinds only the name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    path: String,
}

impl Key {
    /// `namespace` is empty for cluster-scoped kinds.
    pub fn new(namespace: &str, name: &str) -> Self {
        let path = match namespace {
            "" => name.to_owned(),
            namespace => format!("{namespace}/{name}"),
        };
        Self { path }
    }

    /// A lower bound of the keys in a namespace; for the empty namespace, of all keys.
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
