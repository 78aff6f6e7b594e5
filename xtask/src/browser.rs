//! `cargo xtask browser`: tests the live page in Chromium, driven by Node. The packages of the tests
//! are installed below `target`, from the lock file in `e2e/browser`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use endpointd_control_plane::binaries::is_ci;

use crate::cargo;

const CHROMIUM: &str = "/usr/bin/chromium";
const PACKAGE_FILES: [&str; 2] = ["package.json", "package-lock.json"];

/// The screenshots in docs/images; the others are for looking at a change.
const DOCUMENTED: [&str; 6] = [
    "overview-phone-dark.png",
    "overview-wide-light.png",
    "service-phone-light.png",
    "service-wide-light.png",
    "stream-wide-dark.png",
    "waiting-wide-light.png",
];

#[derive(clap::Args)]
pub struct Args {
    /// Copy the screenshots of the documents to docs/images; all of them are in target/browser-images
    #[arg(long)]
    screenshots: bool,

    /// Run only these tests
    #[arg(value_name = "NAME")]
    tests: Vec<String>,
}

pub fn run(args: &Args) -> Result<()> {
    if let Some(missing) = missing() {
        bail!("{missing}\nhint: `cargo xtask install-tools` installs what is missing");
    }
    let images = root().join("target/browser-images");
    let build = cargo::command().args(["build", "--package", "endpointd"]).status();
    ensure!(build.context("cannot start cargo")?.success(), "endpointd cannot be built");
    let folder = root().join("e2e/browser");
    let mut node = Command::new("node");
    node.current_dir(folder).arg("test.mjs");
    node.arg("--program").arg(root().join("target/debug/endpointd"));
    node.arg("--tools").arg(tools()).arg("--chromium").arg(CHROMIUM).arg("--images").arg(&images);
    node.args(args.screenshots.then_some("screenshots")).args(&args.tests);
    let status = node.status().context("cannot start node")?;
    ensure!(status.success(), "tests of the live page failed");
    if args.screenshots {
        let documented = root().join("docs/images");
        fs::create_dir_all(&documented)?;
        for name in DOCUMENTED {
            fs::copy(images.join(name), documented.join(name)).with_context(|| name.to_owned())?;
        }
    }
    Ok(())
}

/// Part of `cargo xtask test`. False: skipped, which happens only outside CI.
pub fn check() -> Result<bool> {
    eprintln!("== browser");
    if missing().is_some() && !is_ci() {
        return Ok(false);
    }
    run(&Args { screenshots: false, tests: Vec::new() })?;
    Ok(true)
}

/// For `cargo xtask install-tools`. Runs no script of a package and downloads no browser.
pub fn install_packages() -> Result<()> {
    let tools = tools();
    fs::create_dir_all(&tools)?;
    for file in PACKAGE_FILES {
        fs::copy(root().join("e2e/browser").join(file), tools.join(file))?;
    }
    let mut npm = Command::new("npm");
    let status = npm.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"]).current_dir(tools);
    let status = status.status().context("cannot start npm: install Node 20 or newer")?;
    ensure!(status.success(), "npm cannot install the packages of the browser tests");
    Ok(())
}

/// What the tests need and is not there.
fn missing() -> Option<String> {
    if !PathBuf::from(CHROMIUM).is_file() {
        return Some(format!("there is no `{CHROMIUM}`"));
    }
    if Command::new("node").arg("--version").output().is_err() {
        return Some("there is no `node`".to_owned());
    }
    let package = tools().join("node_modules/playwright-core");
    (!package.is_dir()).then(|| format!("there is no `{}`", package.display()))
}

fn root() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent();
    root.expect("xtask is below the root").to_owned()
}

fn tools() -> PathBuf {
    root().join("target/browser-tools")
}
