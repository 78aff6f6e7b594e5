//! `cargo xtask release`: everything that a release has, in one directory, with checksums. It uploads
//! nothing and needs no container engine.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use clap::ValueEnum;

use crate::archive::{self, Archive};
use crate::dist;
use crate::image::{self, Documents, Flavour};

const VERSION: &str = env!("CARGO_PKG_VERSION");
const SHELLS: [&str; 3] = ["bash", "fish", "zsh"];
/// What replaces the placeholders of the krew manifest if nothing else is named.
const HOMEPAGE: &str = "https://example.com/endpointd";
const CHECKSUMS: &str = "SHA256SUMS";

#[derive(clap::Args)]
pub struct Args {
    /// Without this flavour's program and image; repeat for more. `dist` takes half an hour
    #[arg(long, value_enum, value_name = "FLAVOUR")]
    without: Vec<Flavour>,

    /// Where the files are written
    #[arg(long, value_name = "DIRECTORY", default_value = "target/release-artifacts")]
    output: PathBuf,

    /// Pack this program instead of building one, as in `dist=target/debug/endpointd`
    #[arg(long, value_name = "FLAVOUR=FILE", value_parser = flavour_and_file)]
    program: Vec<(Flavour, PathBuf)>,

    /// Where people find the project and its releases, for the manifest of the kubectl plugin
    #[arg(long, value_name = "URL", default_value = HOMEPAGE)]
    homepage: String,
}

pub fn run(args: &Args) -> Result<()> {
    let root = dist::root();
    let release =
        Release { folder: root.join(&args.output), time: image::source_time(&root)?, root };
    release.create_folder()?;
    release.write_chart()?;
    let is_wanted = |flavour: &Flavour| !args.without.contains(flavour);
    let flavours = [Flavour::Static, Flavour::Dist].into_iter().filter(is_wanted);
    // The first one needs the least of the machine where the plugin runs.
    for (n, flavour) in flavours.enumerate() {
        let given = args.program.iter().find(|(of, _)| *of == flavour);
        let program =
            given.map_or_else(|| flavour.build_program(), |(_, path)| Ok(path.clone()))?;
        release.write_program(flavour, &program)?;
        release.write_image(flavour, &program)?;
        if n == 0 {
            release.write_plugin(flavour, &program, &args.homepage)?;
        }
    }
    release.write_checksums()?;
    println!("{}", release.folder.display());
    Ok(())
}

fn flavour_and_file(text: &str) -> Result<(Flavour, PathBuf), String> {
    let (flavour, file) = text.split_once('=').ok_or("expected FLAVOUR=FILE")?;
    Ok((Flavour::from_str(flavour, false)?, file.into()))
}

struct Release {
    root: PathBuf,
    folder: PathBuf,
    /// Of every file in every archive.
    time: u64,
}

impl Release {
    fn create_folder(&self) -> Result<()> {
        let cannot = || format!("cannot empty `{}`", self.folder.display());
        if self.folder.exists() {
            fs::remove_dir_all(&self.folder).with_context(cannot)?;
        }
        fs::create_dir_all(&self.folder).with_context(cannot)
    }

    /// As `helm package` would, but with fixed times.
    fn write_chart(&self) -> Result<()> {
        let chart = self.root.join("charts/endpointd");
        let archive = Archive::default()
            .folder("endpointd", &chart)?
            .without("endpointd/ci/")
            .file("endpointd/LICENSE", &self.root.join("LICENSE"));
        self.write(&format!("endpointd-chart-{VERSION}.tgz"), &archive)
    }

    /// The program with manual pages, completions, manifests, and licenses.
    fn write_program(&self, flavour: Flavour, program: &Path) -> Result<()> {
        let name =
            format!("endpointd-{VERSION}-linux-{}-{}", image::architecture()?, flavour.name());
        let Documents { notices, bill_of_materials } = image::documents(flavour, &[])?;
        let man = tempfile::tempdir().context("no temporary directory")?;
        output_of(program, &["man-pages".into(), man.path().into()])?;
        let mut archive = Archive::default()
            .program(&format!("{name}/endpointd"), program)
            .folder(&format!("{name}/man/man1"), man.path())?
            .folder(&format!("{name}/deploy"), &self.root.join("deploy"))?
            .file(&format!("{name}/LICENSE"), &self.root.join("LICENSE"))
            .file(&format!("{name}/CHANGELOG.md"), &self.root.join("CHANGELOG.md"))
            .text(&format!("{name}/THIRD-PARTY-NOTICES"), &notices);
        for shell in SHELLS {
            let script = output_of(program, &["completion".into(), shell.into()])?;
            archive = archive.text(&format!("{name}/completions/endpointd.{shell}"), &script);
        }
        archive::write(
            &self.folder.join(format!("{name}.cdx.json")),
            bill_of_materials.as_bytes(),
        )?;
        self.write(&format!("{name}.tar.gz"), &archive)
    }

    /// An OCI archive, which `skopeo copy oci-archive:…` pushes.
    fn write_image(&self, flavour: Flavour, program: &Path) -> Result<()> {
        let layout = tempfile::tempdir().context("no temporary directory")?;
        let digest = image::build(flavour, program, layout.path())?;
        let name = format!(
            "endpointd-{VERSION}-linux-{}-{}-image",
            image::architecture()?,
            flavour.name()
        );
        let archive = Archive::default().folder("", layout.path())?;
        archive::write(&self.folder.join(format!("{name}.tar")), &archive.tar(self.time)?)?;
        archive::write(
            &self.folder.join(format!("{name}.digest")),
            format!("{digest}\n").as_bytes(),
        )
    }

    /// The archive of the plugin, and the manifest of krew for this platform. Others are built
    /// elsewhere, and krew rejects a manifest in which one of them has no checksum.
    fn write_plugin(&self, flavour: Flavour, program: &Path, homepage: &str) -> Result<()> {
        let architecture = image::architecture()?;
        let Documents { notices, .. } = image::documents(flavour, &[])?;
        let archive = Archive::default()
            .program("kubectl-endpointd", program)
            .file("LICENSE", &self.root.join("LICENSE"))
            .text("THIRD-PARTY-NOTICES", &notices);
        let name = format!("kubectl-endpointd-linux-{architecture}.tar.gz");
        let bytes = archive.tar_gz(self.time)?;
        archive::write(&self.folder.join(name), &bytes)?;
        let template = self.root.join("deploy/krew/endpointd.yaml");
        let template = fs::read_to_string(template).context("there is no krew manifest")?;
        let placeholder = format!("SHA256_LINUX_{}", architecture.to_uppercase());
        let manifest = filled(&template, homepage, &placeholder, &archive::sha256(&bytes));
        archive::write(&self.folder.join("krew-endpointd.yaml"), manifest.as_bytes())
    }

    fn write(&self, name: &str, archive: &Archive) -> Result<()> {
        archive::write(&self.folder.join(name), &archive.tar_gz(self.time)?)
    }

    /// In the format of `sha256sum --check`.
    fn write_checksums(&self) -> Result<()> {
        let entries = fs::read_dir(&self.folder).context("the folder is ours")?;
        let mut lines = Vec::new();
        for entry in entries {
            let path = entry?.path();
            let bytes =
                fs::read(&path).with_context(|| format!("cannot read `{}`", path.display()))?;
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            lines.push((name, archive::sha256(&bytes)));
        }
        lines.sort();
        let text: String = lines.iter().map(|(name, sum)| format!("{sum}  {name}\n")).collect();
        archive::write(&self.folder.join(CHECKSUMS), text.as_bytes())
    }
}

/// The krew manifest without its first comment, which is about the template, and without platforms that
/// have no checksum.
fn filled(template: &str, homepage: &str, placeholder: &str, sum: &str) -> String {
    const PLATFORM: &str = "    - selector:\n";
    let lines = template.lines().skip_while(|line| line.starts_with('#'));
    let text: String = lines.map(|line| format!("{line}\n")).collect();
    let text = text.replace(placeholder, sum).replace("URL", homepage);
    let text = text.replace("VERSION", &format!("v{VERSION}"));
    let mut parts = text.split(PLATFORM);
    let head = parts.next().unwrap_or_default();
    let platforms = parts.filter(|platform| !platform.contains("SHA256_"));
    head.chars().chain(platforms.flat_map(|one| PLATFORM.chars().chain(one.chars()))).collect()
}

/// The standard output of a command of the program.
fn output_of(program: &Path, args: &[OsString]) -> Result<String> {
    let output = Command::new(program).args(args).output();
    let output = output.with_context(|| format!("cannot start `{}`", program.display()))?;
    let error = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "`{} {args:?}`: {error}", program.display());
    String::from_utf8(output.stdout).context("the program prints no UTF-8")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_of_the_krew_manifest_are_filled() {
        let template = "# A template\n# of VERSION\nversion: VERSION\nplatforms:\n    - selector:\n        \
                        uri: URL/VERSION\n        sha256: SHA256_A\n    - selector:\n        sha256: SHA256_B\n";
        let text = filled(template, "https://x", "SHA256_A", "ab");
        let platform =
            format!("    - selector:\n        uri: https://x/v{VERSION}\n        sha256: ab\n");
        assert_eq!(text, format!("version: v{VERSION}\nplatforms:\n{platform}"));
    }
}
