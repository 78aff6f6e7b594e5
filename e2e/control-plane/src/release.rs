//! The minor releases of Kubernetes that the tests can run on, each with its pinned patch release.

use std::env;
use std::fmt;
use std::str::FromStr;

/// Names the release to test, as in `1.35`; `cargo xtask scenarios` sets it for its tests.
pub const RELEASE_VARIABLE: &str = "ENDPOINTD_KUBERNETES";

/// A minor release of Kubernetes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Release {
    V1_33,
    V1_34,
    V1_35,
    /// The release whose controllers are the reference, and the one that CI runs.
    #[default]
    V1_36,
    V1_37,
}

impl Release {
    pub const ALL: [Self; 5] = [Self::V1_33, Self::V1_34, Self::V1_35, Self::V1_36, Self::V1_37];

    /// The release in the environment, else the reference.
    ///
    /// # Panics
    ///
    /// If the variable names a release that is not known.
    pub fn under_test() -> Self {
        match env::var(RELEASE_VARIABLE) {
            Ok(text) if !text.is_empty() => {
                text.parse().unwrap_or_else(|error| panic!("{RELEASE_VARIABLE}: {error}"))
            }
            _ => Self::default(),
        }
    }

    /// The pinned patch release.
    pub fn version(self) -> &'static str {
        match self {
            Self::V1_33 => "v1.33.13",
            Self::V1_34 => "v1.34.4",
            Self::V1_35 => "v1.35.8",
            Self::V1_36 => "v1.36.4",
            Self::V1_37 => "v1.37.1",
        }
    }

    pub fn minor(self) -> &'static str {
        match self {
            Self::V1_33 => "1.33",
            Self::V1_34 => "1.34",
            Self::V1_35 => "1.35",
            Self::V1_36 => "1.36",
            Self::V1_37 => "1.37",
        }
    }

    /// The directory below `go/` with the Go module that pins it.
    pub(crate) fn module(self) -> String {
        format!("kubernetes-{}", self.minor())
    }
}

impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.minor())
    }
}

/// The text names no known release.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a known release of Kubernetes: `{text}`; known: {}", known())]
pub struct UnknownRelease {
    text: String,
}

fn known() -> String {
    Release::ALL.map(Release::minor).join(", ")
}

impl FromStr for Release {
    type Err = UnknownRelease;

    fn from_str(text: &str) -> Result<Self, UnknownRelease> {
        let found = Self::ALL.into_iter().find(|release| release.minor() == text);
        found.ok_or_else(|| UnknownRelease { text: text.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    #[test]
    fn release_is_named_by_its_minor_version() {
        assert_eq!("1.33".parse(), Ok(Release::V1_33));
        let error = "1.32".parse::<Release>().unwrap_err().to_string();
        assert!(error.ends_with("`1.32`; known: 1.33, 1.34, 1.35, 1.36, 1.37"), "{error}");
    }

    #[test]
    fn each_release_has_a_go_module_with_the_same_version_and_its_staging_modules() {
        for release in Release::ALL {
            let go = Path::new(env!("CARGO_MANIFEST_DIR")).join("go").join(release.module());
            let text = fs::read_to_string(go.join("go.mod")).unwrap();
            let version = release.version();
            assert!(version.starts_with(&format!("v{release}.")));
            assert!(text.contains(&format!("require k8s.io/kubernetes {version}\n")), "{release}");
            let published = version.replace("v1.", "v0.");
            let replaced: Vec<&str> = text.lines().filter(|line| line.contains(" => ")).collect();
            assert!(replaced.len() > 25, "{release}: {replaced:?}");
            let others: Vec<_> = replaced.iter().filter(|one| !one.ends_with(&published)).collect();
            assert!(others.is_empty(), "{release}: not {published}: {others:?}");
        }
    }
}
