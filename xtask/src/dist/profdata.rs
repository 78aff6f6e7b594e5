//! `llvm-profdata`: merges the raw profiles of PGO training runs.

use std::path::Path;

use anyhow::Result;

use super::llvm_tool::{self, LlvmTool, Tool};
use super::toolchain::Toolchain;

pub const TOOL: LlvmTool =
    LlvmTool { name: "llvm-profdata", component: Some("llvm-tools"), package: "llvm" };

pub struct Profdata(Tool);

impl Profdata {
    pub fn find(toolchain: &Toolchain) -> Result<Self> {
        Ok(Self(TOOL.find(toolchain)?))
    }

    /// Merges all profile files of a directory.
    pub fn merge(&self, counts: &Path, profile: &Path) -> Result<()> {
        let files = llvm_tool::profile_files(counts)?;
        llvm_tool::write_atomically(profile, |path| {
            let mut command = self.0.command();
            command.args(["merge", "--output"]).arg(path).args(&files);
            self.0.run(&mut command, "merge the profiles")
        })
    }

    /// The output of `llvm-profdata show` for the function with the highest count.
    #[cfg(test)]
    pub fn hottest(&self, profile: &Path) -> String {
        let shown = self.0.command().args(["show", "--topn=1"]).arg(profile).output();
        String::from_utf8_lossy(&shown.expect("the tool was found").stdout).into_owned()
    }
}
