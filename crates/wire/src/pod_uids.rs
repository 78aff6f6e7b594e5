//! Names and uids of the pods in a list, for confirming which of them exist. Nothing else is decoded.

use endpointd_model::{PodUids, Uid};
use prost::bytes::Bytes;
use serde::Deserialize;

use crate::malformed::{Identity, Malformed};

/// One page of a list.
#[derive(Debug, Default, PartialEq)]
pub struct PodUidPage {
    pub pods: PodUids,
    /// None on the last page.
    pub continue_token: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct List {
    kind: Option<String>,
    metadata: Option<ListMetadata>,
    items: Option<Vec<Item>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ListMetadata {
    #[serde(rename = "continue")]
    token: Option<String>,
}

#[derive(Deserialize)]
struct Item {
    metadata: Metadata,
}

#[derive(Deserialize)]
struct Metadata {
    name: String,
    uid: String,
}

/// The body is JSON: a list of pods, or of their metadata.
///
/// ```
/// use endpointd_wire::{Bytes, decode_pod_uids};
///
/// let body = br#"{"kind": "PodList", "items": [{"metadata": {"name": "web-1", "uid": "u"}}]}"#;
/// let page = decode_pod_uids(&Bytes::from_static(body))?;
/// assert!(page.pods.contains_key("web-1") && page.continue_token.is_none());
/// # Ok::<(), endpointd_wire::Malformed>(())
/// ```
pub fn decode_pod_uids(body: &Bytes) -> Result<PodUidPage, Malformed> {
    let malformed = |path: &str, reason: String| Malformed {
        identity: Box::new(Identity::default()),
        path: path.to_owned(),
        reason,
    };
    let list: List = serde_json::from_slice(body).map_err(|e| malformed("", e.to_string()))?;
    // Without this check an error page would be an empty list.
    let kind = list.kind.unwrap_or_default();
    if !["PodList", "PartialObjectMetadataList"].contains(&kind.as_str()) {
        return Err(malformed("kind", format!("`{kind}` is no list of pods")));
    }
    let items = list.items.unwrap_or_default().into_iter();
    let pods =
        items.map(|Item { metadata }| (metadata.name.into(), Uid::from(metadata.uid.as_str())));
    let token = list.metadata.and_then(|metadata| metadata.token);
    Ok(PodUidPage { pods: pods.collect(), continue_token: token.filter(|one| !one.is_empty()) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(text: &'static str) -> Result<PodUidPage, Malformed> {
        decode_pod_uids(&Bytes::from_static(text.as_bytes()))
    }

    #[test]
    fn page_has_uids_and_the_continue_token() {
        let page = decoded(
            r#"{"kind": "PartialObjectMetadataList", "metadata": {"continue": "more"},
                "items": [{"metadata": {"name": "a", "uid": "1", "labels": {"x": "y"}}}]}"#,
        );
        let page = page.expect("valid");
        assert_eq!(page.pods, [("a".into(), Uid::from("1"))].into());
        assert_eq!(page.continue_token.as_deref(), Some("more"));
    }

    #[test]
    fn what_is_no_complete_list_of_pods_is_an_error() {
        assert_eq!(decoded(r#"{"kind": "PodList", "items": null}"#), Ok(PodUidPage::default()));
        for text in [
            "{}",
            r#"{"kind": "Status"}"#,
            r#"{"kind": "PodList", "items": [{"metadata": {"name": "a"}}]}"#,
            r#"{"kind": "PodList", "items": [{}]}"#,
        ] {
            assert!(decoded(text).is_err(), "{text}");
        }
    }
}
