//! The annotations by which Services share endpoints between namespaces.

use std::fmt;

use crate::{Annotations, Key, SharedStr, names};

/// What a Service says about endpoints of other namespaces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CrossNamespace {
    /// Whose endpoints this Service publishes.
    pub from: Option<SharedStr>,
    /// The namespaces that may publish the endpoints of this Service.
    pub to: Option<SharedStr>,
}

/// The text is not `NAMESPACE/NAME`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidReference(pub SharedStr);

impl CrossNamespace {
    /// None if neither annotation is set.
    pub fn of(annotations: &Annotations) -> Option<Self> {
        let get = |name| annotations.get(name).cloned();
        let (from, to) = (get(names::ENDPOINTS_FROM), get(names::ENDPOINTS_TO));
        (from.is_some() || to.is_some()).then_some(Self { from, to })
    }

    /// The Service whose endpoints this one publishes.
    pub fn source(&self) -> Option<Result<Key, InvalidReference>> {
        let text = self.from.as_ref()?;
        let parts = text.trim().split_once('/');
        let valid = parts.filter(|(namespace, name)| is_dns_label(namespace) && is_dns_label(name));
        Some(match valid {
            Some((namespace, name)) => Ok(Key::new(namespace, name)),
            None => Err(InvalidReference(text.clone())),
        })
    }

    /// Whether the owner lets this namespace publish the endpoints of the Service.
    pub fn permits(&self, namespace: &str) -> bool {
        let mut listed = self.to.iter().flat_map(|list| list.split(',').map(str::trim));
        listed.any(|one| one == "*" || one == namespace)
    }
}

/// A DNS label (RFC 1123), as names of namespaces and Services are.
pub(crate) fn is_dns_label(text: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=63).contains(&text.len())
        && text.bytes().all(is_inner)
        && !text.starts_with('-')
        && !text.ends_with('-')
}

impl fmt::Display for InvalidReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is not of the form NAMESPACE/NAME", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from(text: &str) -> Option<Key> {
        let cross = CrossNamespace { from: Some(text.into()), to: None };
        cross.source().and_then(Result::ok)
    }

    #[test]
    fn a_source_is_a_namespace_and_a_name() {
        assert_eq!(from("data/postgres"), Some(Key::new("data", "postgres")));
        assert_eq!(from(" data/postgres "), Some(Key::new("data", "postgres")));
        for text in ["", "postgres", "data/", "/postgres", "a/b/c", "Data/x", "a/-x", "a/../b"] {
            assert_eq!(from(text), None, "{text}");
        }
        assert_eq!(from(&format!("data/{}", "a".repeat(64))), None);
    }

    #[test]
    fn consent_names_namespaces_or_all() {
        let to = |text: &str| CrossNamespace { from: None, to: Some(text.into()) };
        assert!(to("shop, web").permits("web") && to("shop,web").permits("shop"));
        assert!(to("*").permits("any") && to("shop, *").permits("any"));
        assert!(!to("shop").permits("sho") && !to("").permits("shop") && !to(",").permits("x"));
        assert!(!CrossNamespace::default().permits("shop"));
    }

    #[test]
    fn services_without_the_annotations_have_none() {
        let annotations = |name: &str| [(name, "x")].into_iter().collect();
        assert_eq!(CrossNamespace::of(&annotations("other")), None);
        assert!(CrossNamespace::of(&annotations(names::ENDPOINTS_TO)).is_some());
        assert!(CrossNamespace::of(&annotations(names::ENDPOINTS_FROM)).is_some());
    }
}
