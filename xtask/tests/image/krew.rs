//! The kubectl plugin, installed by krew itself: the template for every platform with a stand-in for the
//! program, and what `cargo xtask release` has written.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use endpointd_control_plane::go_tool::KREW;

use crate::{are_installed, succeed};

const TEMPLATE: &str = include_str!("../../../deploy/krew/endpointd.yaml");
const PLATFORMS: [(&str, &str); 4] =
    [("linux", "amd64"), ("linux", "arm64"), ("darwin", "arm64"), ("windows", "amd64")];
const DESCRIPTION_COLUMNS_MAX: usize = 80;

/// krew demands valid fields of all platforms, then installs one.
#[test]
fn krew_takes_every_platform_of_the_template() {
    let Some(krew) = KREW.for_test() else { return };
    let folder = tempfile::tempdir().expect("a temporary directory");
    let archive = folder.path().join("plugin.tar.gz");
    for name in ["kubectl-endpointd", "kubectl-endpointd.exe", "LICENSE"] {
        fs::write(folder.path().join(name), name).expect("the folder is ours");
    }
    let mut tar = Command::new("tar");
    tar.arg("--create").arg("--gzip").arg("--file").arg(&archive).arg("--directory");
    tar.arg(folder.path()).args(["kubectl-endpointd", "kubectl-endpointd.exe", "LICENSE"]);
    succeed(&mut tar);
    let sum = succeed(Command::new("sha256sum").arg(&archive));
    let sum = sum.split(' ').next().expect("a checksum");
    let mut manifest = TEMPLATE.replace("URL", "https://example.com").replace("VERSION", "v1.2.3");
    for (system, architecture) in PLATFORMS {
        let placeholder = format!("SHA256_{system}_{architecture}").to_uppercase();
        assert!(manifest.contains(&placeholder), "{placeholder}");
        manifest = manifest.replace(&placeholder, sum);
    }
    let path = folder.path().join("endpointd.yaml");
    fs::write(&path, manifest).expect("the folder is ours");
    for (system, architecture) in PLATFORMS {
        let root = folder.path().join(format!("{system}-{architecture}"));
        let mut install = Command::new(&krew);
        install.arg("install").arg("--manifest").arg(&path).arg("--archive").arg(&archive);
        install.env("KREW_OS", system).env("KREW_ARCH", architecture).env("KREW_ROOT", &root);
        succeed(&mut install);
        let suffix = if system == "windows" { ".exe" } else { "" };
        let installed =
            root.join("store/endpointd/v1.2.3").join(format!("kubectl-endpointd{suffix}"));
        assert!(installed.is_file(), "{}", installed.display());
    }
}

/// krew's own check warns of it.
#[test]
fn the_description_fits_a_terminal() {
    let (_, rest) = TEMPLATE.split_once("description: |\n").expect("a description");
    let lines = rest.lines().take_while(|line| line.is_empty() || line.starts_with("    "));
    let long: Vec<&str> =
        lines.map(str::trim_start).filter(|line| line.len() > DESCRIPTION_COLUMNS_MAX).collect();
    assert_eq!(long, [""; 0]);
}

/// Downloads the archive that the manifest names, and runs it as kubectl runs plugins.
pub fn installs(manifest: &Path) {
    let Some(krew) = KREW.for_test() else { return };
    if !are_installed(&["kubectl"]) {
        return;
    }
    let root = tempfile::tempdir().expect("a temporary directory");
    let mut install = Command::new(krew);
    install.arg("install").arg("--manifest").arg(manifest).env("KREW_ROOT", root.path());
    succeed(&mut install);
    let path = std::env::var("PATH").expect("a PATH");
    let mut kubectl = Command::new("kubectl");
    kubectl.args(["endpointd", "explain", "--help"]);
    kubectl.env("PATH", format!("{}:{path}", root.path().join("bin").display()));
    let help = succeed(&mut kubectl);
    assert!(help.contains("Usage: kubectl endpointd explain "), "{help}");
}

/// Serves the files of a release as a forge would, until the process ends.
pub struct DownloadServer {
    port: u16,
}

impl DownloadServer {
    pub fn start(folder: &Path) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = listener.local_addr().expect("it is bound").port();
        let folder = folder.to_owned();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                serve(&stream, &folder);
            }
        });
        Self { port }
    }

    pub fn homepage(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }
}

/// The client sees an error as a response that ends early.
fn serve(mut stream: &TcpStream, folder: &Path) {
    let mut line = String::new();
    let _ = BufReader::new(stream).read_line(&mut line);
    let path = line.split(' ').nth(1).unwrap_or_default();
    let name = PathBuf::from(path);
    let is_download = path.starts_with("/releases/download/v");
    let file = name.file_name().filter(|_| is_download).map(|name| fs::read(folder.join(name)));
    let (status, body) = match file {
        Some(Ok(bytes)) => ("200 OK", bytes),
        Some(Err(_)) | None => ("404 Not Found", Vec::new()),
    };
    let length = body.len();
    let head =
        format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n");
    let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&body));
}
