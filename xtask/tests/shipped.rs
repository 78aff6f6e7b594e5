//! The image and the dist build contain neither the playground nor its API server.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Crates that only the playground needs.
const PLAYGROUND_ONLY: [&str; 3] = ["endpointd-apiserver", "endpointd-playground", "json-patch"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask is in the root").to_owned()
}

/// One line per package that `endpointd` links: its name, version, and features.
fn linked(flags: &[&str]) -> BTreeSet<String> {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--package", "endpointd", "--edges", "normal", "--prefix", "none"])
        .args(["--offline", "--format", "{p} {f}"])
        .args(flags)
        .current_dir(root())
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    text.lines().map(|line| line.trim_end_matches(" (*)").to_owned()).collect()
}

fn has(packages: &BTreeSet<String>, name: &str) -> bool {
    packages.iter().any(|line| line.split(' ').next() == Some(name))
}

#[test]
fn the_shipped_build_links_no_playground_and_no_api_server() {
    let (shipped, with_playground) = (linked(&["--no-default-features"]), linked(&[]));
    assert!(has(&shipped, "endpointd-runtime"), "not a dependency tree: {shipped:?}");
    for name in PLAYGROUND_ONLY {
        assert!(!has(&shipped, name), "the shipped build links `{name}`");
        assert!(has(&with_playground, name), "`{name}` is not part of the playground any more");
    }
}

/// `status` hands axum its connections itself; only the API server has axum listen.
#[test]
fn the_shipped_build_has_no_server_features_of_axum() {
    let shipped = linked(&["--no-default-features"]);
    let axum = shipped.iter().find(|line| line.starts_with("axum v")).expect("status needs axum");
    for feature in ["http1", "tokio"] {
        let is_on = axum.split([' ', ',']).any(|word| word == feature);
        assert!(!is_on, "the shipped build has axum's `{feature}`: {axum}");
    }
}

#[test]
fn image_and_dist_build_leave_the_default_features_out() {
    for file in ["deploy/Dockerfile", "xtask/src/dist.rs", "xtask/src/image.rs"] {
        let text = fs::read_to_string(root().join(file)).expect("the file exists");
        assert!(text.contains("--no-default-features"), "{file} builds the playground");
    }
}

/// The Dockerfile cannot be built here, so its lines are compared with what `cargo xtask image` writes.
#[test]
fn the_dockerfile_has_the_content_of_the_image() {
    let read = |path: &str| fs::read_to_string(root().join(path)).expect("the file exists");
    let (dockerfile, image) = (read("deploy/Dockerfile"), read("xtask/src/image.rs"));
    let layout = read("xtask/src/image/layout.rs");
    for (line, code) in [
        ("COPY --from=build /endpointd /endpointd", "program(\"endpointd\", program)"),
        ("COPY --from=build /documents /usr/share/doc/endpointd", "\"usr/share/doc/endpointd\""),
    ] {
        assert!(dockerfile.contains(line) && image.contains(code), "{line}");
    }
    for (line, code) in [
        ("USER 65532:65532", "\"User\": \"65532:65532\""),
        ("ENTRYPOINT [\"/endpointd\"]", "\"Entrypoint\": [\"/endpointd\"]"),
        ("CMD [\"run\"]", "\"Cmd\": [\"run\"]"),
        ("EXPOSE 10270", "\"ExposedPorts\": {\"10270/tcp\": {}}"),
    ] {
        assert!(dockerfile.contains(line) && layout.contains(code), "{line}");
    }
}

/// Every place that names the version of a release.
#[test]
fn the_version_is_the_same_everywhere() {
    let version = env!("CARGO_PKG_VERSION");
    for (file, text) in [
        ("CHANGELOG.md", format!("## {version} (")),
        ("deploy/Dockerfile", format!("image.version=\"{version}\"")),
        ("deploy/kustomization.yaml", format!("newTag: {version}")),
        ("deploy/base/kustomization.yaml", format!("app.kubernetes.io/version: {version}")),
        ("deploy/static-pod/endpointd.yaml", format!("image: endpointd:{version}")),
        ("Cargo.toml", format!("path = \"crates/plan\", version = \"{version}\"")),
    ] {
        let found = fs::read_to_string(root().join(file)).expect("the file exists");
        assert!(found.contains(&text), "{file} does not have `{text}`");
    }
}

/// The oldest supported release of Rust is the one that CI uses.
#[test]
fn the_toolchain_is_the_oldest_supported_one() {
    let read = |path: &str| fs::read_to_string(root().join(path)).expect("the file exists");
    let toolchain = read("rust-toolchain.toml");
    let line = toolchain.lines().find_map(|line| line.strip_prefix("channel = \""));
    let pinned = line.and_then(|rest| rest.strip_suffix('"')).expect("a channel");
    let minor = pinned.rsplit_once('.').map_or(pinned, |(minor, _)| minor);
    assert!(read("Cargo.toml").contains(&format!("rust-version = \"{minor}\"")), "{pinned}");
    for file in ["deploy/Dockerfile", ".github/workflows/ci.yml"] {
        assert!(read(file).contains(&format!("rust:{minor}-")), "{file} does not use {minor}");
    }
}
