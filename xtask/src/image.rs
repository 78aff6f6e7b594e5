//! `cargo xtask image`: an OCI image without a container engine. Start at [`build`].
//!
//! The image has the program, what it is linked against, licenses, and a bill of materials: no shell,
//! no package manager, no user but a number. The same program gives the same digest.

mod debian;
mod layout;

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use clap::ValueEnum;

use crate::archive::{self, Archive};
use crate::{bill_of_materials, cargo, dependencies, dist, notices};

pub use debian::DebianPackage;
use layout::ImageConfig;

const DOCUMENTS: &str = "usr/share/doc/endpointd";
/// Seconds since 1970, as in other tools for reproducible builds.
const TIME_VARIABLE: &str = "SOURCE_DATE_EPOCH";

#[derive(clap::Args)]
pub struct Args {
    /// What the program is linked against
    #[arg(long, value_enum, default_value_t)]
    flavour: Flavour,

    /// Pack this program instead of building one
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,

    /// Where the image is written, as an OCI layout; by default target/image/FLAVOUR
    #[arg(long, value_name = "DIRECTORY")]
    output: Option<PathBuf>,
}

#[derive(clap::Args)]
pub struct NoticesArgs {
    #[arg(value_name = "DIRECTORY")]
    directory: PathBuf,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Flavour {
    /// Statically with musl, without profile-guided optimization; builds in minutes
    #[default]
    Static,
    /// With the C library of Debian, after `cargo xtask dist` (PGO and BOLT): what is measured
    Dist,
}

impl Flavour {
    pub fn name(self) -> &'static str {
        match self {
            Self::Static => "static",
            Self::Dist => "dist",
        }
    }

    pub fn target(self) -> String {
        let library = match self {
            Self::Static => "musl",
            Self::Dist => "gnu",
        };
        format!("{}-unknown-linux-{library}", env::consts::ARCH)
    }

    /// The path of the program. Takes minutes after a change of the sources.
    pub fn build_program(self) -> Result<PathBuf> {
        match self {
            Self::Static => build_static(&self.target()),
            Self::Dist => dist::build(),
        }
    }
}

/// What accompanies a program in an image or an archive.
pub struct Documents {
    pub notices: String,
    pub bill_of_materials: String,
}

pub fn run(args: &Args) -> Result<()> {
    let program = match &args.program {
        Some(program) => program.clone(),
        None => args.flavour.build_program()?,
    };
    let chosen = args.output.clone();
    let folder =
        chosen.unwrap_or_else(|| dist::target_directory().join("image").join(args.flavour.name()));
    let digest = build(args.flavour, &program, &folder)?;
    println!("{} {digest}", folder.display());
    Ok(())
}

/// What an image of this flavour has beside the program and its libraries.
pub fn write_notices(args: &NoticesArgs) -> Result<()> {
    for (name, text) in document_files(Flavour::Static, &[])? {
        archive::write(&args.directory.join(name), text.as_bytes())?;
    }
    println!("{}", args.directory.display());
    Ok(())
}

fn document_files(
    flavour: Flavour,
    packages: &[DebianPackage],
) -> Result<[(&'static str, String); 3]> {
    let license = dist::root().join("LICENSE");
    let license = fs::read_to_string(license).context("cannot read LICENSE")?;
    let Documents { notices, bill_of_materials } = documents(flavour, packages)?;
    Ok([
        ("LICENSE", license),
        ("THIRD-PARTY-NOTICES", notices),
        ("endpointd.cdx.json", bill_of_materials),
    ])
}

/// Writes the image into the folder and returns its digest.
pub fn build(flavour: Flavour, program: &Path, folder: &Path) -> Result<String> {
    let root = dist::root();
    ensure!(program.is_file(), "there is no program `{}`", program.display());
    let layer = Archive::default().program("endpointd", program);
    let (mut layer, packages) = match flavour {
        Flavour::Static => {
            require_static(program)?;
            (layer, Vec::new())
        }
        Flavour::Dist => debian::add_libraries(layer, program)?,
    };
    for (name, text) in document_files(flavour, &packages)? {
        layer = layer.text(&format!("{DOCUMENTS}/{name}"), &text);
    }
    let version = env!("CARGO_PKG_VERSION").to_owned();
    let created = source_time(&root)?;
    let label = |name: &str| format!("org.opencontainers.image.{name}");
    let mut labels = vec![
        (label("title"), "endpointd".to_owned()),
        (label("description"), "Endpoints and EndpointSlices for Services".to_owned()),
        (label("licenses"), "Apache-2.0".to_owned()),
        (label("version"), version.clone()),
        (label("created"), layout::timestamp(created)),
    ];
    labels.extend(revision(&root).map(|revision| (label("revision"), revision)));
    let config = ImageConfig { architecture: architecture()?, tag: version, created, labels };
    layout::write(folder, &layer, &config)
}

/// Of the program that this flavour ships.
pub fn documents(flavour: Flavour, packages: &[DebianPackage]) -> Result<Documents> {
    let crates = dependencies::linked(&dist::root(), &flavour.target())?;
    let version = env!("CARGO_PKG_VERSION");
    Ok(Documents {
        notices: notices::render(&crates, flavour == Flavour::Static)?,
        bill_of_materials: bill_of_materials::render(version, &crates, packages),
    })
}

/// The time of the sources: of the last commit, unless the environment says otherwise.
pub fn source_time(root: &Path) -> Result<u64> {
    if let Some(chosen) = env::var_os(TIME_VARIABLE) {
        let chosen = chosen.to_string_lossy().into_owned();
        return chosen
            .parse()
            .with_context(|| format!("{TIME_VARIABLE} is not a number of seconds: `{chosen}`"));
    }
    let committed = git(root, &["log", "-1", "--format=%ct"]);
    Ok(committed.and_then(|text| text.parse().ok()).unwrap_or_default())
}

/// The commit, if the sources are as committed.
fn revision(root: &Path) -> Option<String> {
    let is_clean = git(root, &["status", "--porcelain", "--untracked-files=no"])?.is_empty();
    is_clean.then(|| git(root, &["rev-parse", "HEAD"]))?
}

fn git(root: &Path, args: &[&str]) -> Option<String> {
    let output = Command::new("git").args(args).current_dir(root).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}

/// As Go names it.
pub fn architecture() -> Result<&'static str> {
    match env::consts::ARCH {
        "x86_64" => Ok("amd64"),
        "aarch64" => Ok("arm64"),
        other => bail!("images are built on x86_64 and aarch64, not on {other}"),
    }
}

fn build_static(target: &str) -> Result<PathBuf> {
    let root = dist::root();
    let home = env::var("CARGO_HOME").or_else(|_| env::var("HOME").map(|home| home + "/.cargo"));
    // Paths of this machine are not part of the program: another checkout gives the same bytes.
    let mut flags = vec![format!("--remap-path-prefix={}=/endpointd", root.display())];
    flags.extend(home.map(|home| format!("--remap-path-prefix={home}=/cargo")));
    let status = cargo::command()
        .args(["build", "--profile", dist::PROFILE, "--package", "endpointd", "--locked"])
        .args(["--no-default-features", "--target", target])
        .current_dir(root)
        .env("CARGO_ENCODED_RUSTFLAGS", flags.join(dist::SEPARATOR))
        .status()
        .context("cannot start cargo")?;
    ensure!(
        status.success(),
        "the build for {target} failed: {status}\nhint: `cargo xtask install-tools` installs the \
         target and a C compiler for it"
    );
    Ok(dist::target_directory().join(target).join(dist::PROFILE).join("endpointd"))
}

/// For `cargo xtask install-tools`: the standard library for the static flavour.
pub fn install_target() -> Result<()> {
    let target = Flavour::Static.target();
    let mut rustup = Command::new("rustup");
    let status = rustup.args(["target", "add", &target]).current_dir(dist::root()).status();
    ensure!(
        status.is_ok_and(|status| status.success()),
        "cannot install the target {target}\nhint: `rustup target add {target}`"
    );
    Ok(())
}

/// An image without a C library can only run a program that needs none.
fn require_static(program: &Path) -> Result<()> {
    let output = Command::new("ldd").arg(program).output().context("cannot start ldd")?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    ensure!(
        !text.contains("libc.so"),
        "`{}` is linked against a shared C library\nhint: `--flavour dist` brings one",
        program.display()
    );
    Ok(())
}
