//! LLVM programs that are not part of every Rust installation: where they are, and the commands
//! that install them.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use super::toolchain::Toolchain;

/// A program of LLVM and the packages that contain it.
#[derive(Debug)]
pub struct LlvmTool {
    pub name: &'static str,
    /// The component of `rustup`, if one contains it.
    pub component: Option<&'static str>,
    /// The Debian package without the LLVM version.
    pub package: &'static str,
}

pub struct Tool {
    name: &'static str,
    path: PathBuf,
}

/// A tool that was not found, and the commands that install it, the preferred one first.
#[derive(Debug, PartialEq, Eq)]
pub struct Missing {
    name: &'static str,
    llvm_major: u32,
    commands: Vec<String>,
}

impl LlvmTool {
    pub fn find(&self, toolchain: &Toolchain) -> Result<Tool, Missing> {
        let Toolchain { host, llvm_major, sysroot } = toolchain;
        let name = self.name;
        let component = sysroot.join("lib/rustlib").join(host).join("bin").join(name);
        let paths = [component, format!("{name}-{llvm_major}").into(), name.into()];
        let is_usable = |path: &PathBuf| {
            let output = Command::new(path).arg("--version").output();
            output.is_ok_and(|output| {
                llvm_major_in(&String::from_utf8_lossy(&output.stdout)) == Some(*llvm_major)
            })
        };
        let found = paths.into_iter().find(is_usable).map(|path| Tool { name, path });
        found.ok_or_else(|| self.missing(*llvm_major))
    }

    fn missing(&self, llvm_major: u32) -> Missing {
        let Self { name, component, package } = self;
        let rustup = component.map(|component| format!("rustup component add {component}"));
        let apt = format!("apt-get update && apt-get install --yes {package}-{llvm_major}");
        Missing { name, llvm_major, commands: rustup.into_iter().chain([apt]).collect() }
    }
}

impl Missing {
    /// Runs the commands until the tool is there. Only `cargo xtask install-tools` calls this.
    pub fn install(&self, toolchain: &Toolchain) -> Result<()> {
        for command in &self.commands {
            eprintln!("installing {}: {command}", self.name);
            let status = Command::new("sh").args(["-c", command]).stdout(io::stderr()).status();
            if status.is_ok_and(|status| status.success()) && self.is_installed(toolchain) {
                return Ok(());
            }
        }
        bail!("cannot install {}\nhint: run one of these as root: {self}", self.name)
    }

    fn is_installed(&self, toolchain: &Toolchain) -> bool {
        super::missing_tools(toolchain).iter().all(|missing| missing.name != self.name)
    }
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, llvm_major, commands } = self;
        write!(f, "{name} of LLVM {llvm_major}: `{}`", commands.join("`, or `"))
    }
}

impl std::error::Error for Missing {}

impl Tool {
    pub fn command(&self) -> Command {
        Command::new(&self.path)
    }

    /// Runs a command to its end. `action` describes it in the error message.
    pub fn run(&self, command: &mut Command, action: &str) -> Result<()> {
        let cannot_start = || format!("cannot start `{}`", self.path.display());
        let output = command.output().with_context(cannot_start)?;
        let (name, status) = (self.name, output.status);
        let stderr = String::from_utf8_lossy(&output.stderr);
        ensure!(status.success(), "{name} cannot {action}: {status}\n{stderr}");
        Ok(())
    }
}

/// Distributions print their own name before "LLVM version 22.1.8".
fn llvm_major_in(version: &str) -> Option<u32> {
    let version = version.split_once("LLVM version ")?.1;
    version.split('.').next()?.parse().ok()
}

/// The profile files in a directory. None is an error: the training run did not write any.
pub fn profile_files(counts: &Path) -> Result<Vec<PathBuf>> {
    let files = std::fs::read_dir(counts).context("the training run wrote no profile")?;
    let files: Vec<PathBuf> = files.flatten().map(|file| file.path()).collect();
    ensure!(!files.is_empty(), "the training run wrote no profile into `{}`", counts.display());
    Ok(files)
}

/// Writes to a temporary name and renames, because an existing file is assumed to be complete.
pub fn write_atomically(path: &Path, write: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
    let temporary = path.with_extension("tmp");
    write(&temporary)?;
    let cannot = || format!("cannot rename `{}`", temporary.display());
    std::fs::rename(&temporary, path).with_context(cannot)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ABSENT: LlvmTool =
        LlvmTool { name: "no-such-tool", component: Some("llvm-tools"), package: "llvm" };

    #[test]
    fn llvm_version_is_parsed_from_different_outputs() {
        assert_eq!(llvm_major_in("Debian LLVM version 22.1.8\n  Optimized build.\n"), Some(22));
        assert_eq!(llvm_major_in("LLVM (http://llvm.org/):\n  LLVM version 14.0.6\n"), Some(14));
        assert_eq!(llvm_major_in("llvm-profdata: Unknown command!"), None);
    }

    #[test]
    fn missing_tool_names_the_commands_that_install_it() {
        let toolchain = Toolchain { host: "x".into(), llvm_major: 22, sysroot: "/nowhere".into() };
        let missing = ABSENT.find(&toolchain).err().unwrap();
        assert_eq!(
            missing.to_string(),
            "no-such-tool of LLVM 22: `rustup component add llvm-tools`, or \
             `apt-get update && apt-get install --yes llvm-22`"
        );
    }
}
