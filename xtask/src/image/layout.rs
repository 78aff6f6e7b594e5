//! An OCI image layout (image-spec 1.1) with one layer: four JSON documents and a compressed tar.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::archive::{self, Archive};

/// What a runtime needs to know besides the files.
pub struct ImageConfig {
    /// As in Go: `amd64`, `arm64`.
    pub architecture: &'static str,
    pub tag: String,
    /// Seconds since 1970.
    pub created: u64,
    pub labels: Vec<(String, String)>,
}

/// Writes the layout and returns the digest of the manifest, by which the image is known.
pub fn write(folder: &Path, layer: &Archive, config: &ImageConfig) -> Result<String> {
    if folder.exists() {
        fs::remove_dir_all(folder)
            .with_context(|| format!("cannot empty `{}`", folder.display()))?;
    }
    let ImageConfig { architecture, tag, created, labels } = config;
    let time = timestamp(*created);
    let labels: Value = labels.iter().map(|(key, value)| (key.clone(), json!(value))).collect();
    let tar = layer.tar(*created)?;
    let layer = blob(folder, &archive::gzip(&tar)?, "application/vnd.oci.image.layer.v1.tar+gzip")?;
    let image = json!({
        "architecture": architecture,
        "os": "linux",
        "created": time,
        "config": {
            "User": "65532:65532",
            "Entrypoint": ["/endpointd"],
            "Cmd": ["run"],
            "ExposedPorts": {"10270/tcp": {}},
            "WorkingDir": "/",
            "Labels": labels,
        },
        "rootfs": {"type": "layers", "diff_ids": [format!("sha256:{}", archive::sha256(&tar))]},
        "history": [{"created": time, "created_by": "cargo xtask image"}],
    });
    let image = blob(folder, &text(&image), "application/vnd.oci.image.config.v1+json")?;
    let media_type = "application/vnd.oci.image.manifest.v1+json";
    let manifest = json!({
        "schemaVersion": 2,
        "mediaType": media_type,
        "config": image,
        "layers": [layer],
        "annotations": labels,
    });
    let mut manifest = blob(folder, &text(&manifest), media_type)?;
    let digest = manifest["digest"].as_str().unwrap_or_default().to_owned();
    manifest["annotations"] = json!({"org.opencontainers.image.ref.name": tag});
    manifest["platform"] = json!({"architecture": architecture, "os": "linux"});
    let index = json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.index.v1+json",
        "manifests": [manifest],
    });
    archive::write(&folder.join("index.json"), &text(&index))?;
    archive::write(&folder.join("oci-layout"), br#"{"imageLayoutVersion":"1.0.0"}"#)?;
    Ok(digest)
}

/// Stores a blob and returns its descriptor.
fn blob(folder: &Path, bytes: &[u8], media_type: &str) -> Result<Value> {
    let digest = archive::sha256(bytes);
    archive::write(&folder.join("blobs/sha256").join(&digest), bytes)?;
    Ok(json!({
        "mediaType": media_type,
        "digest": format!("sha256:{digest}"),
        "size": bytes.len(),
    }))
}

/// serde_json sorts keys, so the same document has the same bytes.
fn text(document: &Value) -> Vec<u8> {
    document.to_string().into_bytes()
}

/// RFC 3339 in UTC. The days are counted as in "days from civil" of Howard Hinnant, backwards.
pub fn timestamp(seconds: u64) -> String {
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    let shifted = days + 719_468;
    let era = shifted / 146_097;
    let day_of_era = shifted % 146_097;
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config() -> ImageConfig {
        ImageConfig {
            architecture: "amd64",
            tag: "1".to_owned(),
            created: 951_782_400,
            labels: vec![("a".to_owned(), "b".to_owned())],
        }
    }

    #[test]
    fn times_are_written_as_in_rfc_3339() {
        assert_eq!(timestamp(0), "1970-01-01T00:00:00Z");
        assert_eq!(timestamp(951_782_399), "2000-02-28T23:59:59Z");
        assert_eq!(timestamp(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(timestamp(1_795_098_967), "2026-11-19T14:36:07Z");
    }

    #[test]
    fn the_same_files_have_the_same_digest_and_others_another() {
        let folder = tempfile::tempdir().unwrap();
        let digest = |name: &str, text: &str| {
            write(&folder.path().join(name), &Archive::default().text("x", text), &config())
                .unwrap()
        };
        let first = digest("first", "1");
        assert_eq!(digest("second", "1"), first);
        assert_ne!(digest("third", "2"), first);
        assert!(first.starts_with("sha256:"), "{first}");
        let manifest = folder.path().join("first/blobs/sha256").join(&first["sha256:".len()..]);
        let manifest = fs::read(manifest).unwrap();
        assert_eq!(format!("sha256:{}", archive::sha256(&manifest)), first);
    }
}
