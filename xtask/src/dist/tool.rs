//! Programs of LLVM that not everybody who has the compiler has.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result, bail, ensure};

use super::toolchain::Toolchain;

/// One of LLVM's programs, and where it comes from.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    pub name: &'static str,
    /// The component of `rustup` that has it, if one has.
    pub component: Option<&'static str>,
    /// The distribution's package, without the release.
    pub package: &'static str,
}

/// Distributions install one thing at a time.
static INSTALLING: Mutex<()> = Mutex::new(());

pub struct Tool {
    name: &'static str,
    path: PathBuf,
}

impl Wanted {
    /// Looks for it, and gets it if it is not there.
    pub fn find_or_install(&self, toolchain: &Toolchain) -> Result<Tool> {
        let _turn = INSTALLING.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = self.find(toolchain) {
            return Ok(found);
        }
        let Self { name, component, package } = self;
        let package = format!("{package}-{}", toolchain.llvm_major);
        let component = component.map(|component| format!("rustup component add {component}"));
        let distribution = format!("apt-get install --yes {package}");
        let ways = component.iter().cloned().chain([format!("apt-get update && {distribution}")]);
        for way in ways {
            eprintln!("{name} is missing: {way}");
            // What it prints is not our answer.
            let status = Command::new("sh").args(["-c", &way]).stdout(io::stderr()).status();
            let is_done = status.is_ok_and(|status| status.success());
            if let Some(found) = self.find(toolchain).filter(|_| is_done) {
                return Ok(found);
            }
        }
        let hints: Vec<String> = component.into_iter().chain([distribution]).collect();
        bail!(
            "there is no {name} of LLVM {} here\nhint: `{}` as root",
            toolchain.llvm_major,
            hints.join("`, or `")
        )
    }

    pub fn find(&self, toolchain: &Toolchain) -> Option<Tool> {
        let Toolchain { host, llvm_major, sysroot } = toolchain;
        let name = self.name;
        let component = sysroot.join("lib/rustlib").join(host).join("bin").join(name);
        let places = [component, format!("{name}-{llvm_major}").into(), name.into()];
        let is_usable = |path: &PathBuf| {
            let output = Command::new(path).arg("--version").output();
            output.is_ok_and(|output| {
                major_in(&String::from_utf8_lossy(&output.stdout)) == Some(*llvm_major)
            })
        };
        places.into_iter().find(is_usable).map(|path| Tool { name, path })
    }
}

impl Tool {
    pub fn command(&self) -> Command {
        Command::new(&self.path)
    }

    /// Runs it to the end; `what` it cannot do if it fails.
    pub fn run(&self, command: &mut Command, what: &str) -> Result<()> {
        let cannot_start = || format!("cannot start `{}`", self.path.display());
        let output = command.output().with_context(cannot_start)?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{} cannot {what}: {}\n{said}", self.name, output.status);
        Ok(())
    }
}

/// Distributions put their own name before "LLVM version 22.1.8".
fn major_in(said: &str) -> Option<u32> {
    let version = said.split_once("LLVM version ")?.1;
    version.split('.').next()?.parse().ok()
}

/// The files of a directory, of which there must be one.
pub fn counted(counts: &Path) -> Result<Vec<PathBuf>> {
    let files = std::fs::read_dir(counts).context("nothing was counted")?;
    let files: Vec<PathBuf> = files.flatten().map(|file| file.path()).collect();
    ensure!(!files.is_empty(), "nothing was counted: `{}` is empty", counts.display());
    Ok(files)
}

/// Whole or not at all: what is there under its own name is taken for complete.
pub fn whole(path: &Path, make: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
    let unfinished = path.with_extension("unfinished");
    make(&unfinished)?;
    let cannot = || format!("cannot keep `{}`", path.display());
    std::fs::rename(&unfinished, path).with_context(cannot)
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
