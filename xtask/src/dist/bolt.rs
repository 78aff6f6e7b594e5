//! LLVM's BOLT: reorders the code of a linked program by a profile, so that hot blocks and
//! functions are adjacent and cold code is elsewhere.

use std::path::Path;

use anyhow::Result;

use super::llvm_tool::{self, LlvmTool, Tool};
use super::toolchain::Toolchain;

pub const BOLT_TOOL: LlvmTool = LlvmTool { name: "llvm-bolt", component: None, package: "bolt" };
pub const MERGE_TOOL: LlvmTool = LlvmTool { name: "merge-fdata", component: None, package: "bolt" };

/// BOLT can move functions only if the linker keeps relocations.
pub const EMIT_RELOCS: &str = "-Clink-arg=-Wl,--emit-relocs";

const BOLT_FLAGS: [&str; 6] = [
    "--reorder-blocks=ext-tsp",
    "--reorder-functions=cdsort",
    "--split-functions",
    "--split-all-cold",
    "--icf=safe",
    "--plt=hot",
];

pub struct Bolt {
    bolt: Tool,
    merge: Tool,
}

impl Bolt {
    pub fn find(toolchain: &Toolchain) -> Result<Self> {
        Ok(Self { bolt: BOLT_TOOL.find(toolchain)?, merge: MERGE_TOOL.find(toolchain)? })
    }

    /// Writes an instrumented copy of the program. Each of its processes writes a file into
    /// `counts`.
    pub fn instrument(&self, program: &Path, counts: &Path, instrumented: &Path) -> Result<()> {
        let mut command = self.bolt.command();
        command.arg(program).args(["--instrument", "--instrumentation-file-append-pid"]);
        command.arg("--instrumentation-file").arg(counts.join("process"));
        self.bolt.run(command.arg("-o").arg(instrumented), "instrument the program")
    }

    /// Merges all profile files of a directory.
    pub fn merge(&self, counts: &Path, profile: &Path) -> Result<()> {
        let files = llvm_tool::profile_files(counts)?;
        llvm_tool::write_atomically(profile, |path| {
            let mut command = self.merge.command();
            self.merge.run(command.args(&files).arg("-o").arg(path), "merge the profiles")
        })
    }

    pub fn optimize(&self, program: &Path, profile: &Path, optimized: &Path) -> Result<()> {
        llvm_tool::write_atomically(optimized, |path| {
            let mut command = self.bolt.command();
            command.arg(program).arg("--data").arg(profile).args(BOLT_FLAGS);
            self.bolt.run(command.arg("-o").arg(path), "optimize the program")
        })
    }
}
