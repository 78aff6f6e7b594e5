//! Parses request paths.

use crate::kinds::{self, KINDS, Kind, Subresource};
use crate::verbs::Target;

/// What a path names.
pub(super) enum Route {
    Resource {
        target: Target,
        subresource: Option<Subresource>,
    },
    /// Health, version, discovery, OpenAPI: not about an object.
    Document(Vec<String>),
    /// A known group without this resource.
    Unknown,
    UnknownGroup,
}

pub(super) fn route(path: &str) -> Route {
    let parts: Vec<String> = path.split('/').filter(|part| !part.is_empty()).map(decoded).collect();
    let words: Vec<&str> = parts.iter().map(String::as_str).collect();
    let (group, rest) = match words.as_slice() {
        ["api", "v1", rest @ ..] if !rest.is_empty() => ("", rest),
        ["apis", group, version, rest @ ..]
            if !rest.is_empty() && *version == kinds::version_of(group) =>
        {
            (*group, rest)
        }
        _ => return Route::Document(parts),
    };
    if !KINDS.iter().any(|kind| kind.group == group) {
        return Route::UnknownGroup;
    }
    resource(group, rest).unwrap_or(Route::Unknown)
}

fn resource(group: &str, rest: &[&str]) -> Option<Route> {
    let (namespace, rest) = match rest {
        // `namespaces/NAME` is an object itself and a prefix of other paths.
        ["namespaces", namespace, rest @ ..]
            if rest.first().is_some_and(|one| !is_subresource_of_namespaces(group, one)) =>
        {
            (*namespace, rest)
        }
        rest => ("", rest),
    };
    let (resource, name, sub) = match rest {
        [resource] => (*resource, "", None),
        [resource, name] => (*resource, *name, None),
        [resource, name, sub] => (*resource, *name, Some(*sub)),
        _ => return None,
    };
    let kind: &'static Kind = kinds::find(group, resource)?;
    let one_needs_namespace = kind.is_namespaced() && !name.is_empty() && namespace.is_empty();
    if one_needs_namespace || (!kind.is_namespaced() && !namespace.is_empty()) {
        return None;
    }
    let subresource = match sub {
        None => None,
        Some(word) => Some(*kind.subresources.iter().find(|one| one.as_str() == word)?),
    };
    Some(Route::Resource { target: Target::object(kind, namespace, name), subresource })
}

fn is_subresource_of_namespaces(group: &str, word: &str) -> bool {
    group.is_empty() && ["status", "finalize"].contains(&word)
}

/// Percent-decoding.
fn decoded(part: &str) -> String {
    let mut bytes = Vec::with_capacity(part.len());
    let mut rest = part.as_bytes();
    while let [first, tail @ ..] = rest {
        let hex = |byte: u8| char::from(byte).to_digit(16).and_then(|it| u8::try_from(it).ok());
        match (first, tail) {
            (b'%', [high, low, after @ ..]) if hex(*high).is_some() && hex(*low).is_some() => {
                let value = hex(*high).unwrap_or(0) * 16 + hex(*low).unwrap_or(0);
                bytes.push(value);
                rest = after;
            }
            _ => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
