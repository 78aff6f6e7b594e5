//! Versions of objects that the engine has from the answers to its writes. The watch tells them
//! again, and what is known already need not be read a second time.

use std::collections::VecDeque;
use std::sync::Mutex;

use endpointd_model::{Resource, Version};

/// An echo comes within moments of its answer; of more writes than this, the oldest are read again.
const VERSIONS_MAX: usize = 256;

#[derive(Debug, Default)]
pub(crate) struct Known(Mutex<VecDeque<(Resource, Version)>>);

impl Known {
    pub(crate) fn add(&self, resource: Resource, version: Version) {
        if version == Version::OLDEST {
            return;
        }
        let mut versions = self.lock();
        if versions.len() == VERSIONS_MAX {
            versions.pop_front();
        }
        versions.push_back((resource, version));
    }

    /// Each echo comes once.
    pub(crate) fn take(&self, resource: Resource, version: Version) -> bool {
        let mut versions = self.lock();
        let at = versions.iter().position(|one| *one == (resource, version));
        at.and_then(|at| versions.remove(at)).is_some()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, VecDeque<(Resource, Version)>> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_known_once_and_of_its_own_kind() {
        let known = Known::default();
        known.add(Resource::Slices, 7.into());
        assert!(!known.take(Resource::Endpoints, 7.into()));
        assert!(known.take(Resource::Slices, 7.into()));
        assert!(!known.take(Resource::Slices, 7.into()));
    }

    #[test]
    fn only_the_latest_are_remembered_and_never_what_has_no_number() {
        let known = Known::default();
        known.add(Resource::Slices, Version::OLDEST);
        assert!(!known.take(Resource::Slices, Version::OLDEST));
        (0..1000).for_each(|n| known.add(Resource::Slices, (n + 1).into()));
        assert!(!known.take(Resource::Slices, 744.into()));
        assert!(known.take(Resource::Slices, 745.into()));
    }
}
