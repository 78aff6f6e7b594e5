//! Where in the program each piece of code stands, by LLVM's BOLT.
//!
//! The compiler decides that function by function. Here the finished program is taken apart once
//! more: blocks that run stand one after the other, functions beside those that call them, and all
//! of it together, apart from what a practice run never came to.

use std::path::Path;

use anyhow::Result;

use super::tool::{self, Tool, Wanted};
use super::toolchain::Toolchain;

const BOLT: Wanted = Wanted { name: "llvm-bolt", component: None, package: "bolt" };
const MERGE: Wanted = Wanted { name: "merge-fdata", component: None, package: "bolt" };

/// Keeps in the program what it takes to move its parts.
pub const MOVABLE: &str = "-Clink-arg=-Wl,--emit-relocs";

const ARRANGEMENT: [&str; 6] = [
    "--reorder-blocks=ext-tsp",
    "--reorder-functions=cdsort",
    "--split-functions",
    "--split-all-cold",
    "--icf=safe",
    "--plt=hot",
];

pub struct LayoutTool {
    bolt: Tool,
    merge: Tool,
}

impl LayoutTool {
    pub fn find_or_install(toolchain: &Toolchain) -> Result<Self> {
        let bolt = BOLT.find_or_install(toolchain)?;
        Ok(Self { bolt, merge: MERGE.find_or_install(toolchain)? })
    }

    /// A copy of the program that counts where it comes along, for each process a file in `counts`.
    pub fn count(&self, program: &Path, counts: &Path, counting: &Path) -> Result<()> {
        let mut command = self.bolt.command();
        command.arg(program).args(["--instrument", "--instrumentation-file-append-pid"]);
        command.arg("--instrumentation-file").arg(counts.join("process"));
        self.bolt.run(command.arg("-o").arg(counting), "make a program that counts")
    }

    /// All counts of a directory in one file.
    pub fn merge(&self, counts: &Path, merged: &Path) -> Result<()> {
        let files = tool::counted(counts)?;
        tool::whole(merged, |path| {
            let mut command = self.merge.command();
            self.merge.run(command.args(&files).arg("-o").arg(path), "merge the counts")
        })
    }

    /// The program by these counts.
    pub fn arrange(&self, program: &Path, merged: &Path, arranged: &Path) -> Result<()> {
        tool::whole(arranged, |path| {
            let mut command = self.bolt.command();
            command.arg(program).arg("--data").arg(merged).args(ARRANGEMENT);
            self.bolt.run(command.arg("-o").arg(path), "arrange the program")
        })
    }
}

#[cfg(test)]
impl LayoutTool {
    pub fn find(toolchain: &Toolchain) -> Option<Self> {
        Some(Self { bolt: BOLT.find(toolchain)?, merge: MERGE.find(toolchain)? })
    }
}
