//! resourceVersions, parsed once where objects are decoded.

use std::fmt;

/// A resourceVersion as a number. All objects of a cluster draw from one counter, and since
/// Kubernetes 1.35 the API promises that resourceVersions of one resource compare as integers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ResourceVersion(u64);

/// The text of a resourceVersion is not a decimal number.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("resourceVersion `{0}` is not a number")]
pub struct InvalidResourceVersion(String);

impl ResourceVersion {
    /// The version of an object that does not exist yet; lower than every version an API server
    /// assigns. Its text is empty.
    pub const NONE: Self = Self(0);

    /// Absent and empty mean [`Self::NONE`]. Anything else must be a number: an update sent with
    /// a version we made up would overwrite what it must not.
    pub fn parse(text: &str) -> Result<Self, InvalidResourceVersion> {
        if text.is_empty() {
            return Ok(Self::NONE);
        }
        text.parse().map(Self).map_err(|_| InvalidResourceVersion(text.to_owned()))
    }

    pub fn is_none(self) -> bool {
        self == Self::NONE
    }

    pub fn number(self) -> u64 {
        self.0
    }
}

impl From<u64> for ResourceVersion {
    fn from(number: u64) -> Self {
        Self(number)
    }
}

impl fmt::Display for ResourceVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_none() { Ok(()) } else { self.0.fmt(f) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absent_version_has_empty_text() {
        assert_eq!(ResourceVersion::parse("").expect("absent"), ResourceVersion::NONE);
        assert_eq!(ResourceVersion::NONE.to_string(), "");
    }

    #[test]
    fn version_that_is_no_number_is_rejected() {
        for text in ["abc", "-1", "1.0", " 1", "99999999999999999999"] {
            ResourceVersion::parse(text).expect_err(text);
        }
    }

    #[test]
    fn versions_compare_as_numbers() {
        let parse = |text| ResourceVersion::parse(text).expect("a number");
        assert!(parse("9") < parse("10"));
    }
}
