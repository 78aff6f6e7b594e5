//! Host, LLVM version, and sysroot of the Rust toolchain.

use std::env;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};

#[derive(Debug, PartialEq, Eq)]
pub struct Toolchain {
    /// The default target.
    pub host: String,
    /// LLVM tools read profiles of their own major version only.
    pub llvm_major: u32,
    pub sysroot: PathBuf,
}

impl Toolchain {
    pub fn query() -> Result<Self> {
        let version = rustc(&["--version", "--verbose"])?;
        let sysroot = rustc(&["--print", "sysroot"])?;
        Self::parse(&version, sysroot.trim())
            .with_context(|| format!("rustc names no host or no LLVM version:\n{version}"))
    }

    fn parse(version: &str, sysroot: &str) -> Option<Self> {
        let value = |name: &str| version.lines().find_map(|line| line.strip_prefix(name));
        let llvm_major = value("LLVM version: ")?.split('.').next()?.parse().ok()?;
        Some(Self { host: value("host: ")?.to_owned(), llvm_major, sysroot: sysroot.into() })
    }
}

fn rustc(args: &[&str]) -> Result<String> {
    let program = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(program).args(args).output().context("cannot start rustc")?;
    ensure!(output.status.success(), "rustc {} failed: {}", args.join(" "), output.status);
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_and_llvm_version_are_parsed_from_the_version_text() {
        let text =
            "rustc 1.95.0\nbinary: rustc\nhost: x86_64-unknown-linux-gnu\nLLVM version: 22.1.2\n";
        let expected = Toolchain {
            host: "x86_64-unknown-linux-gnu".to_owned(),
            llvm_major: 22,
            sysroot: "/usr".into(),
        };
        assert_eq!(Toolchain::parse(text, "/usr"), Some(expected));
        assert_eq!(Toolchain::parse("rustc 1.95.0\nhost: x", "/usr"), None);
    }
}
