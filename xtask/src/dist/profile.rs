//! Which branches are taken how often, for the compiler.

use std::path::Path;

use anyhow::Result;

use super::tool::{self, Tool, Wanted};
use super::toolchain::Toolchain;

const TOOL: Wanted =
    Wanted { name: "llvm-profdata", component: Some("llvm-tools"), package: "llvm" };

/// Puts counts together.
pub struct ProfileTool(Tool);

impl ProfileTool {
    pub fn find_or_install(toolchain: &Toolchain) -> Result<Self> {
        TOOL.find_or_install(toolchain).map(Self)
    }

    /// All counts of a directory as one profile.
    pub fn merge(&self, counts: &Path, profile: &Path) -> Result<()> {
        let files = tool::counted(counts)?;
        tool::whole(profile, |path| {
            let mut command = self.0.command();
            command.args(["merge", "--output"]).arg(path).args(&files);
            self.0.run(&mut command, "merge the counts")
        })
    }
}

#[cfg(test)]
impl ProfileTool {
    pub fn find(toolchain: &Toolchain) -> Option<Self> {
        TOOL.find(toolchain).map(Self)
    }

    /// The function with the highest count, in words.
    pub fn hottest(&self, profile: &Path) -> String {
        let shown = self.0.command().args(["show", "--topn=1"]).arg(profile).output();
        String::from_utf8_lossy(&shown.expect("it was just found").stdout).into_owned()
    }
}
