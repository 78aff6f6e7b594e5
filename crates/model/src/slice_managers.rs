//! The label values by which an instance knows its own slices.

use crate::{Controller, Labels, SharedStr, names};

/// The value of [`names::MANAGED_BY`] on the slices of each controller. Slices with other values are
/// those of another instance, or of another program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SliceManagers {
    pub slices: SharedStr,
    pub mirror: SharedStr,
    pub import: SharedStr,
}

/// A text that cannot be the name of an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidControllerName;

const SLICES_PREFIX: &str = "endpointslice-controller.";
const MIRROR_PREFIX: &str = "endpointslicemirroring-controller.";
const IMPORT_PREFIX: &str = "endpointsliceimport-controller.";
/// Of a label value.
const LABEL_VALUE_BYTES_MAX: usize = 63;

impl SliceManagers {
    /// Of the name of an instance.
    pub const NAME_BYTES_MAX: usize = LABEL_VALUE_BYTES_MAX - MIRROR_PREFIX.len();

    /// The values of an instance with a name of its own, as in `endpointslice-controller.blue`. The
    /// name is a part of label values and of the name of a Lease, so it has no capitals and no dots;
    /// upstream's values are those of no name.
    pub fn named(name: &str) -> Result<Self, InvalidControllerName> {
        let is_valid = (1..=Self::NAME_BYTES_MAX).contains(&name.len())
            && !name.starts_with('-')
            && !name.ends_with('-')
            && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
        let value = |prefix: &str| format!("{prefix}{name}").into();
        is_valid
            .then(|| Self {
                slices: value(SLICES_PREFIX),
                mirror: value(MIRROR_PREFIX),
                import: value(IMPORT_PREFIX),
            })
            .ok_or(InvalidControllerName)
    }

    /// The controller of this instance that manages a slice with these labels.
    pub fn controller(&self, labels: &Labels) -> Option<Controller> {
        let manager = labels.get(names::MANAGED_BY)?;
        let Self { slices, mirror, import } = self;
        let known = [
            (slices, Controller::Slices),
            (mirror, Controller::Mirror),
            (import, Controller::Import),
        ];
        known.into_iter().find(|(value, _)| *value == manager).map(|(_, controller)| controller)
    }
}

/// Upstream's values, and ours for the controller that upstream does not have.
impl Default for SliceManagers {
    fn default() -> Self {
        Self {
            slices: names::MANAGED_BY_SLICES.into(),
            mirror: names::MANAGED_BY_MIRROR.into(),
            import: names::MANAGED_BY_IMPORT.into(),
        }
    }
}

/// Whether a slice has endpoints of another namespace, whichever instance has copied them.
pub fn is_imported_copy(labels: &Labels) -> bool {
    labels.get(names::MANAGED_BY).is_some_and(|manager| {
        **manager == *names::MANAGED_BY_IMPORT || manager.starts_with(IMPORT_PREFIX)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(manager: &str) -> Labels {
        [(names::MANAGED_BY, manager)].into_iter().collect()
    }

    #[test]
    fn a_name_gives_each_controller_a_value_of_its_own() {
        let blue = SliceManagers::named("blue").expect("a name");
        assert_eq!(&*blue.slices, "endpointslice-controller.blue");
        for (manager, controller) in [
            ("endpointslice-controller.blue", Some(Controller::Slices)),
            ("endpointslicemirroring-controller.blue", Some(Controller::Mirror)),
            ("endpointsliceimport-controller.blue", Some(Controller::Import)),
            ("endpointslice-controller.k8s.io", None),
            ("endpointslice-controller.green", None),
            ("blue", None),
        ] {
            assert_eq!(blue.controller(&labels(manager)), controller, "{manager}");
        }
        let upstream = SliceManagers::default();
        assert_eq!(upstream.controller(&labels("endpointslice-controller.blue")), None);
        let of_upstream = labels("endpointslice-controller.k8s.io");
        assert_eq!(upstream.controller(&of_upstream), Some(Controller::Slices));
    }

    #[test]
    fn names_must_give_label_values() {
        let longest = "x".repeat(SliceManagers::NAME_BYTES_MAX);
        assert_eq!(SliceManagers::named(&longest).expect("a name").mirror.len(), 63);
        for name in ["", "-a", "a-", "a/b", "a b", "ä", "Blue", "k8s.io", &format!("{longest}x")] {
            assert_eq!(SliceManagers::named(name), Err(InvalidControllerName), "{name}");
        }
        for name in ["a", "7", "team-b-1"] {
            assert!(SliceManagers::named(name).is_ok(), "{name}");
        }
    }

    #[test]
    fn copies_of_every_instance_are_copies() {
        let blue = SliceManagers::named("blue").expect("a name");
        assert!(is_imported_copy(&labels(&blue.import)));
        assert!(is_imported_copy(&labels(names::MANAGED_BY_IMPORT)));
        assert!(!is_imported_copy(&labels(&blue.slices)));
        assert!(!is_imported_copy(&Labels::default()));
    }
}
