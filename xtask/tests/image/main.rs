//! `cargo xtask image` and `cargo xtask release`, with the program that tests use instead of the one
//! that is shipped: the same program gives the same image, which has no shell, runs without root, and
//! is ready on a real control plane. krew installs the plugin of the release.

mod krew;
mod release;

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};

use endpointd_control_plane::binaries::is_ci;
use endpointd_control_plane::{Binaries, Cluster, Options};
use endpointd_scenarios::cluster::create_admin_account;
use endpointd_scenarios::daemon;
use serde_json::{Value, json};

const READY_MAX: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(200);
const DOCUMENTS: &str = "usr/share/doc/endpointd";

#[test]
fn two_builds_have_the_same_digest_and_only_what_is_needed() {
    if !is_debian() {
        return;
    }
    let folder = tempfile::tempdir().expect("a temporary directory");
    let (first, second) = (folder.path().join("first"), folder.path().join("second"));
    let digest = build_image(&first);
    assert_eq!(build_image(&second), digest);

    let manifest = blob(&first, &digest);
    let config = blob(&first, manifest["config"]["digest"].as_str().expect("a digest"));
    assert_eq!(config["config"]["User"], "65532:65532");
    assert_eq!(config["config"]["Entrypoint"], json!(["/endpointd"]));
    for label in ["title", "description", "licenses", "version", "created"] {
        let value = &config["config"]["Labels"][format!("org.opencontainers.image.{label}")];
        assert!(value.is_string(), "no label {label}: {config}");
    }
    let layers = manifest["layers"].as_array().expect("a list");
    assert_eq!(layers.len(), 1);
    let layer = layers[0]["digest"].as_str().expect("a digest");
    let all = paths(&blob_path(&first, layer));
    let programs: Vec<&String> =
        all.iter().filter(|(_, mode)| mode & 0o111 != 0).map(|(path, _)| path).collect();
    let is_library = |path: &str| path.contains("/ld-linux") || path.contains("/libc.so");
    for program in programs {
        assert!(program == "endpointd" || is_library(program), "`{program}` can be executed");
    }
    for needed in ["LICENSE", "THIRD-PARTY-NOTICES", "endpointd.cdx.json"] {
        let path = format!("{DOCUMENTS}/{needed}");
        assert!(all.iter().any(|(one, _)| *one == path), "no {path} in {all:?}");
    }
    let copyright = "usr/share/doc/libc6/copyright";
    assert!(all.iter().any(|(path, _)| path == copyright), "no {copyright}");
}

#[test]
fn the_image_runs_without_root_until_it_is_ready() {
    if !is_debian() || !are_installed(&["umoci", "runc"]) || !is_root() {
        return;
    }
    let Some(binaries) = Binaries::for_test() else { return };
    let cluster = Cluster::start(&binaries, Options::default()).expect("a cluster starts");
    let kubeconfig = create_admin_account(&cluster);
    let folder = tempfile::tempdir().expect("a temporary directory");
    let image = folder.path().join("image");
    build_image(&image);
    let bundle = folder.path().join("bundle");
    let mut umoci = Command::new("umoci");
    umoci.arg("unpack").arg("--image").arg(format!("{}:{}", image.display(), VERSION));
    succeed(umoci.arg(&bundle));
    let config = folder.path().join("kubeconfig");
    write_readable_kubeconfig(&kubeconfig, &config);
    configure(&bundle, &config);

    let container = Container::start(&bundle);
    let started = Instant::now();
    while !is_ready(&container) {
        assert!(started.elapsed() < READY_MAX, "not ready: {}", container.log());
        thread::sleep(POLL);
    }
}

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Without symbols, which are more than half of its size.
fn program() -> &'static Path {
    static STRIPPED: OnceLock<PathBuf> = OnceLock::new();
    STRIPPED.get_or_init(|| {
        let program = PathBuf::from(daemon::command().get_program());
        let stripped = program.with_file_name("endpointd-stripped");
        succeed(Command::new("strip").arg("-o").arg(&stripped).arg(program));
        stripped
    })
}

/// The digest of the image.
fn build_image(folder: &Path) -> String {
    let mut xtask = Command::new(env!("CARGO_BIN_EXE_xtask"));
    xtask.args(["image", "--flavour", "dist", "--program"]).arg(program());
    let printed = succeed(xtask.arg("--output").arg(folder));
    printed.split_whitespace().last().expect("a digest").to_owned()
}

fn blob_path(image: &Path, digest: &str) -> PathBuf {
    image.join("blobs/sha256").join(digest.strip_prefix("sha256:").expect("a digest of SHA-256"))
}

fn blob(image: &Path, digest: &str) -> Value {
    let bytes = fs::read(blob_path(image, digest)).expect("the blob is there");
    serde_json::from_slice(&bytes).expect("JSON")
}

/// The files in a compressed tar, with their modes.
fn paths(archive: &Path) -> Vec<(String, u32)> {
    let file = fs::File::open(archive).expect("the archive is there");
    let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(file));
    let entries = archive.entries().expect("a tar");
    let entries = entries.map(|entry| entry.expect("an entry"));
    let files = entries.filter(|entry| entry.header().entry_type().is_file());
    files
        .map(|entry| {
            let path = entry.path().expect("a path").display().to_string();
            (path, entry.header().mode().expect("a mode"))
        })
        .collect()
}

/// The user of the container may not read the files of the cluster.
fn write_readable_kubeconfig(from: &Path, to: &Path) {
    let mut kubectl = Command::new("kubectl");
    kubectl.args(["config", "view", "--raw", "--flatten", "--kubeconfig"]).arg(from);
    fs::write(to, succeed(&mut kubectl)).expect("the directory is ours");
    succeed(Command::new("chmod").arg("644").arg(to));
}

/// On the network of this machine, where the control plane is, with the kubeconfig.
fn configure(bundle: &Path, kubeconfig: &Path) {
    let path = bundle.join("config.json");
    let mut config: Value =
        serde_json::from_slice(&fs::read(&path).expect("umoci wrote it")).expect("JSON");
    assert_eq!(config["process"]["user"], json!({"uid": 65532, "gid": 65532}));
    config["process"]["terminal"] = json!(false);
    config["process"]["args"] = json!([
        "/endpointd",
        "run",
        "--kubeconfig=/kubeconfig",
        "--secure-port=0",
        "--metrics-bind-address=127.0.0.1:0",
        "--leader-elect-resource-namespace=kube-system",
    ]);
    config["root"]["readonly"] = json!(true);
    let namespaces = config["linux"]["namespaces"].as_array_mut().expect("a list");
    namespaces.retain(|namespace| namespace["type"] != "network");
    let mount = json!({
        "destination": "/kubeconfig", "type": "bind", "source": kubeconfig,
        "options": ["rbind", "ro"],
    });
    config["mounts"].as_array_mut().expect("a list").push(mount);
    fs::write(path, config.to_string()).expect("the bundle is ours");
}

/// Killed when dropped.
struct Container {
    child: Child,
    id: String,
    log: PathBuf,
}

impl Container {
    fn start(bundle: &Path) -> Self {
        let log = bundle.join("log");
        let file = fs::File::create(&log).expect("the bundle is ours");
        let id = format!("endpointd-test-{}", std::process::id());
        let mut runc = Command::new("runc");
        runc.args(["run", "--bundle"]).arg(bundle).arg(&id).stdin(Stdio::null());
        runc.stdout(file.try_clone().expect("it is open")).stderr(file);
        Self { child: runc.spawn().expect("runc starts"), id, log }
    }

    fn log(&self) -> String {
        let mut text = String::new();
        let read = fs::File::open(&self.log).and_then(|mut file| file.read_to_string(&mut text));
        read.map_or_else(|error| error.to_string(), |_| text)
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        // Both fail only if the container has already ended.
        let _ = Command::new("runc").args(["delete", "--force", &self.id]).output();
        let _ = self.child.wait();
    }
}

/// Asks the health check at the address in the log.
fn is_ready(container: &Container) -> bool {
    let log = container.log();
    let address =
        log.split_once("status_address=").and_then(|(_, rest)| rest.split_whitespace().next());
    let Some(address) = address else { return false };
    let url = format!("http://{address}");
    endpointd_control_plane::Api::plain(&url).text("/readyz").is_ok()
}

/// The C library of the image comes from Debian packages. Elsewhere the tests are skipped.
fn is_debian() -> bool {
    are_installed(&["apt-get", "dpkg-deb"])
}

/// To unpack files of other owners, and to start a container.
fn is_root() -> bool {
    let is_root = rustix::process::geteuid().is_root();
    assert!(is_root || !is_ci(), "runc needs root");
    if !is_root {
        eprintln!("skipped: runc needs root");
    }
    is_root
}

/// Without these programs a test is skipped, except in CI, where it fails.
fn are_installed(programs: &[&str]) -> bool {
    programs.iter().all(|program| {
        let is_installed = Command::new(program).arg("--version").output().is_ok();
        assert!(is_installed || !is_ci(), "`{program}` is not installed");
        if !is_installed {
            eprintln!("skipped: `{program}` is not installed: `cargo xtask install-tools`");
        }
        is_installed
    })
}

/// The standard output.
fn succeed(command: &mut Command) -> String {
    let output = command.output().expect("the program starts");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {error}");
    String::from_utf8(output.stdout).expect("UTF-8")
}
