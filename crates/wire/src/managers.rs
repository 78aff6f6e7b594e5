//! Who wrote an object: the names in `managedFields`. Nothing else of them is decoded, and only for an
//! object that somebody asks about.

use endpointd_model::SharedStr;
use prost::bytes::Bytes;
use serde::Deserialize;

use crate::malformed::{Identity, Malformed};

#[derive(Default, Deserialize)]
#[serde(default)]
struct Object {
    metadata: Option<Metadata>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Metadata {
    managed_fields: Option<Vec<ManagedFields>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ManagedFields {
    manager: Option<String>,
    /// RFC 3339 in UTC: the order of the text is that of the time.
    time: Option<String>,
}

/// The field manager of the latest change of an object, of those other than `ours`. The body is JSON.
///
/// ```
/// use endpointd_wire::{Bytes, decode_field_manager};
///
/// let body = br#"{"metadata": {"managedFields": [
///     {"manager": "kubectl-label", "time": "2026-01-01T10:00:00Z"}, {"manager": "endpointd"}
/// ]}}"#;
/// let manager = decode_field_manager(&Bytes::from_static(body), "endpointd")?;
/// assert_eq!(manager.as_deref(), Some("kubectl-label"));
/// # Ok::<(), endpointd_wire::Malformed>(())
/// ```
pub fn decode_field_manager(body: &Bytes, ours: &str) -> Result<Option<SharedStr>, Malformed> {
    let object: Object = serde_json::from_slice(body).map_err(|error| Malformed {
        identity: Box::new(Identity::default()),
        path: String::new(),
        reason: error.to_string(),
    })?;
    let managed = object.metadata.and_then(|metadata| metadata.managed_fields).unwrap_or_default();
    let others = managed.into_iter().filter_map(|one| {
        let manager = one.manager.filter(|manager| !manager.is_empty() && manager != ours)?;
        Some((one.time, manager))
    });
    let latest = others.max_by(|(a, _), (b, _)| a.cmp(b));
    Ok(latest.map(|(_, manager)| manager.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(text: &'static str) -> Option<SharedStr> {
        decode_field_manager(&Bytes::from_static(text.as_bytes()), "endpointd").expect("valid")
    }

    #[test]
    fn latest_other_manager_counts() {
        let managers = r#"{"metadata": {"managedFields": [
            {"manager": "late", "time": "2026-01-01T10:00:01Z"},
            {"manager": "early", "time": "2026-01-01T10:00:00Z"},
            {"manager": "endpointd", "time": "2026-01-01T10:00:09Z"},
            {"manager": ""}
        ]}}"#;
        assert_eq!(decoded(managers).as_deref(), Some("late"));
    }

    #[test]
    fn without_another_manager_there_is_none() {
        let texts = [
            "{}",
            r#"{"metadata": null}"#,
            r#"{"metadata": {"managedFields": null}}"#,
            r#"{"metadata": {"managedFields": [{"manager": "endpointd"}]}}"#,
        ];
        assert_eq!(texts.map(decoded), [const { None }; 4]);
        assert!(decode_field_manager(&Bytes::from_static(b"[]x"), "endpointd").is_err());
    }
}
