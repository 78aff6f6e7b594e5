//! `cargo xtask install-tools`: programs that tests and images need besides Rust and Go. Nothing else here
//! installs anything.

use std::io;
use std::process::Command;

use anyhow::{Result, bail};
use endpointd_control_plane::go_tool::{HELM, KREW};

use crate::{browser, control_plane, dist, image};

/// Programs of Debian packages that tests run; outside CI these tests are skipped without them.
const PROGRAMS: &[DebianProgram] = &[
    DebianProgram { name: "promtool", package: "prometheus" },
    DebianProgram { name: "chromium", package: "chromium" },
    DebianProgram { name: "kubectl", package: "kubernetes-client" },
    DebianProgram { name: "umoci", package: "umoci" },
    DebianProgram { name: "runc", package: "runc" },
    DebianProgram { name: "musl-gcc", package: "musl-tools" },
];

struct DebianProgram {
    name: &'static str,
    package: &'static str,
}

pub fn run() -> Result<()> {
    dist::install_llvm_tools()?;
    PROGRAMS
        .iter()
        .filter(|program| !program.is_installed())
        .try_for_each(DebianProgram::install)?;
    image::install_target()?;
    for tool in [HELM, KREW] {
        tool.find_or_build().map_err(control_plane::with_hint)?;
    }
    browser::install_packages()
}

impl DebianProgram {
    fn is_installed(&self) -> bool {
        Command::new(self.name).arg("--version").output().is_ok()
    }

    fn install(&self) -> Result<()> {
        let Self { name, package } = self;
        let command =
            format!("apt-get update && apt-get install --yes --no-install-recommends {package}");
        eprintln!("installing {name}: {command}");
        let status = Command::new("sh").args(["-c", &command]).stdout(io::stderr()).status();
        if !status.is_ok_and(|status| status.success()) || !self.is_installed() {
            bail!("cannot install {name}\nhint: run as root: `{command}`");
        }
        Ok(())
    }
}
