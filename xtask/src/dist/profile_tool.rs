//! LLVM's `llvm-profdata`, which puts counts together. It comes with the compiler as a component that
//! not everybody has, and from the distribution.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use super::toolchain::Toolchain;

const NAME: &str = "llvm-profdata";

pub struct ProfileTool {
    path: PathBuf,
}

impl ProfileTool {
    /// Looks for it, and gets it if it is not there.
    pub fn find_or_install(toolchain: &Toolchain) -> Result<Self> {
        if let Some(found) = Self::find(toolchain) {
            return Ok(found);
        }
        let major = toolchain.llvm_major;
        let package = format!("llvm-{major}");
        let ways: [&[&str]; 2] = [
            &["rustup", "component", "add", "llvm-tools"],
            &["sh", "-c", "apt-get update && exec apt-get install --yes \"$0\"", &package],
        ];
        for way in ways {
            eprintln!("{NAME} is missing: {}", way.join(" "));
            let status = Command::new(way[0]).args(&way[1..]).status();
            let is_done = status.is_ok_and(|status| status.success());
            if let Some(found) = Self::find(toolchain).filter(|_| is_done) {
                return Ok(found);
            }
        }
        bail!(
            "there is no {NAME} of LLVM {major} here\n\
             hint: `rustup component add llvm-tools`, or `apt-get install {package}` as root"
        )
    }

    pub fn find(toolchain: &Toolchain) -> Option<Self> {
        let Toolchain { host, llvm_major, sysroot } = toolchain;
        let component = sysroot.join("lib/rustlib").join(host).join("bin").join(NAME);
        let places = [component, format!("{NAME}-{llvm_major}").into(), NAME.into()];
        let is_usable = |path: &PathBuf| {
            let output = Command::new(path).arg("--version").output();
            output.is_ok_and(|output| {
                major_in(&String::from_utf8_lossy(&output.stdout)) == Some(*llvm_major)
            })
        };
        places.into_iter().find(is_usable).map(|path| Self { path })
    }

    /// All counts of a directory as one profile.
    pub fn merge(&self, counts: &Path, profile: &Path) -> Result<()> {
        let files = fs::read_dir(counts).context("nothing was counted")?;
        let files: Vec<PathBuf> = files.flatten().map(|file| file.path()).collect();
        ensure!(!files.is_empty(), "nothing was counted: `{}` is empty", counts.display());
        // Whole or not at all: what is there under its own name is taken for complete.
        let unfinished = profile.with_extension("unfinished");
        let status = Command::new(&self.path)
            .args(["merge", "--output"])
            .arg(&unfinished)
            .args(&files)
            .status()
            .with_context(|| format!("cannot start `{}`", self.path.display()))?;
        ensure!(status.success(), "{NAME} cannot merge the counts: {status}");
        fs::rename(&unfinished, profile).context("cannot keep the profile")
    }
}

#[cfg(test)]
impl ProfileTool {
    /// The function with the highest count, in words.
    pub fn hottest(&self, profile: &Path) -> String {
        let shown = Command::new(&self.path).args(["show", "--topn=1"]).arg(profile).output();
        String::from_utf8_lossy(&shown.expect("it was just found").stdout).into_owned()
    }
}

/// Distributions put their own name before "LLVM version 22.1.8".
fn major_in(said: &str) -> Option<u32> {
    let version = said.split_once("LLVM version ")?.1;
    version.split('.').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_release_is_found_behind_any_name() {
        assert_eq!(major_in("Debian LLVM version 22.1.8\n  Optimized build.\n"), Some(22));
        assert_eq!(major_in("LLVM (http://llvm.org/):\n  LLVM version 14.0.6\n"), Some(14));
        assert_eq!(major_in("llvm-profdata: Unknown command!"), None);
    }
}
