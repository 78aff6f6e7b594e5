//! The whole way with a program of five lines: a fat one takes minutes.

use std::process::Command;

use endpointd_control_plane::binaries::is_ci;

use super::*;

const MANIFEST: &str = "[package]\nname = \"small\"\nedition = \"2024\"\n[workspace]\n";
/// Does something often, and survives a panic, which has to find its way through moved code.
const MAIN: &str = "#[inline(never)]
fn often(n: u32) -> u32 { std::hint::black_box(n) }
fn main() {
    let most = (0..4711).map(often).max().unwrap();
    let survived = std::panic::catch_unwind(|| assert_eq!(often(1), 2)).is_err();
    println!(\"{most} {survived}\")
}
";
/// How often that is.
const N_CALLS: u32 = 4712;

/// A workspace with the small program, gone when it is dropped.
struct Small {
    home: tempfile::TempDir,
    toolchain: Toolchain,
}

impl Small {
    fn new(toolchain: Toolchain) -> Self {
        let home = tempfile::tempdir().unwrap();
        fs::create_dir(home.path().join("src")).unwrap();
        fs::write(home.path().join("Cargo.toml"), MANIFEST).unwrap();
        fs::write(home.path().join("src/main.rs"), MAIN).unwrap();
        Self { home, toolchain }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    fn compile(&self, name: &str, flag: String) -> PathBuf {
        let (workspace, target_directory) = (self.path(""), self.path(name));
        Compilation { package: "small", workspace, target_directory, flags: vec![flag] }
            .run(&self.toolchain)
            .unwrap()
    }
}

/// A tool that is not here is a reason to skip for a person, and for CI one to get it.
fn found<T>(
    toolchain: &Toolchain,
    find: impl Fn(&Toolchain) -> Option<T>,
    install: impl Fn(&Toolchain) -> Result<T>,
) -> Option<T> {
    let tool = find(toolchain).or_else(|| is_ci().then(|| install(toolchain).unwrap()));
    if tool.is_none() {
        eprintln!("skipped: one of LLVM's tools is not here");
    }
    tool
}

fn run(program: &Path) {
    let output = Command::new(program).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "4710 true\n");
}

#[test]
fn a_program_is_compiled_by_what_it_was_seen_to_do() {
    let toolchain = Toolchain::ask().unwrap();
    let tool = found(&toolchain, ProfileTool::find, ProfileTool::find_or_install);
    let Some(tool) = tool else { return };
    let small = Small::new(toolchain);
    let counts = small.path("counts");

    let counting = small.compile("counting", format!("-Cprofile-generate={}", counts.display()));
    assert!(tool.merge(&counts, &small.path("too-early")).is_err());
    run(&counting);
    let profile = small.path(&fingerprint(&counting).unwrap());
    tool.merge(&counts, &profile).unwrap();
    let hottest = tool.hottest(&profile);
    let wanted = format!("max count = {N_CALLS}");
    assert!(hottest.contains("often") && hottest.contains(&wanted), "{hottest}");

    let trained = small.compile("trained", format!("-Cprofile-use={}", profile.display()));
    assert_ne!(fingerprint(&trained).unwrap(), fingerprint(&counting).unwrap());
    fs::remove_dir_all(&counts).unwrap();
    run(&trained);
    assert!(!counts.exists(), "what is shipped counts nothing");
}

#[test]
fn a_program_is_arranged_by_where_it_was_seen() {
    let toolchain = Toolchain::ask().unwrap();
    let tool = found(&toolchain, LayoutTool::find, LayoutTool::find_or_install);
    let Some(tool) = tool else { return };
    let small = Small::new(toolchain);
    let (counts, merged) = (small.path("counts"), small.path("merged.fdata"));
    let program = small.compile("movable", layout::MOVABLE.to_owned());

    let counting = small.path("counting");
    empty(&counts).unwrap();
    tool.count(&program, &counts, &counting).unwrap();
    assert!(tool.merge(&counts, &merged).is_err());
    run(&counting);
    run(&counting);
    assert_eq!(fs::read_dir(&counts).unwrap().count(), 2, "one file for each process");
    tool.merge(&counts, &merged).unwrap();
    let told = fs::read_to_string(&merged).unwrap();
    let calls = told.lines().filter(|line| line.contains("often"));
    let counts_of_calls = calls.map(|line| line.rsplit(' ').next().unwrap());
    let n_calls: u32 = counts_of_calls.map(|count| count.parse::<u32>().unwrap()).sum();
    assert_eq!(n_calls, 2 * N_CALLS, "both runs together: {told}");

    let arranged = small.path("arranged");
    tool.arrange(&program, &merged, &arranged).unwrap();
    assert_ne!(fingerprint(&arranged).unwrap(), fingerprint(&program).unwrap());
    empty(&counts).unwrap();
    run(&arranged);
    assert_eq!(fs::read_dir(&counts).unwrap().count(), 0, "what is shipped counts nothing");
}
