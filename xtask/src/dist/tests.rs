//! PGO and BOLT builds of a program of a few lines, because a build of the daemon takes minutes.

use std::process::Command;

use endpointd_control_plane::binaries::is_ci;

use super::*;

const MANIFEST: &str = "[package]\nname = \"small\"\nedition = \"2024\"\n[workspace]\n\
                        [profile.dist]\ninherits = \"release\"\n";
/// Calls one function often, and catches a panic, which must unwind through moved code.
const MAIN: &str = "#[inline(never)]
fn often(n: u32) -> u32 { std::hint::black_box(n) }
fn main() {
    let largest = (0..4711).map(often).max().unwrap();
    let caught = std::panic::catch_unwind(|| assert_eq!(often(1), 2)).is_err();
    println!(\"{largest} {caught}\")
}
";
/// Calls of `often`.
const N_CALLS: u32 = 4712;

/// A temporary workspace with the small program.
struct SmallWorkspace {
    directory: tempfile::TempDir,
    toolchain: Toolchain,
}

impl SmallWorkspace {
    fn new(toolchain: Toolchain) -> Self {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join("src")).unwrap();
        fs::write(directory.path().join("Cargo.toml"), MANIFEST).unwrap();
        fs::write(directory.path().join("src/main.rs"), MAIN).unwrap();
        Self { directory, toolchain }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn compile(&self, name: &str, flag: String) -> PathBuf {
        let (workspace, target_directory) = (self.path(""), self.path(name));
        Compilation { package: "small", workspace, target_directory, flags: vec![flag] }
            .run(&self.toolchain)
            .unwrap()
    }
}

/// Skips the test if tools are missing. In CI that is a failure: `.ci/run` installs them first.
fn tools_for_test(toolchain: &Toolchain) -> Option<(Profdata, Bolt)> {
    match find_tools(toolchain) {
        Ok(tools) => Some(tools),
        Err(error) if is_ci() => panic!("{error}"),
        Err(error) => {
            eprintln!("skipped: {error}");
            None
        }
    }
}

fn run(program: &Path) {
    let output = Command::new(program).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "4710 true\n");
}

#[test]
fn pgo_profile_counts_calls_and_changes_the_program() {
    let toolchain = Toolchain::query().unwrap();
    let Some((profdata, _)) = tools_for_test(&toolchain) else { return };
    let small = SmallWorkspace::new(toolchain);
    let counts = small.path("counts");

    let flag = format!("-Cprofile-generate={}", counts.display());
    let instrumented = small.compile("instrumented", flag);
    assert!(profdata.merge(&counts, &small.path("too-early")).is_err());
    run(&instrumented);
    let profile = small.path(&fingerprint(&instrumented).unwrap());
    profdata.merge(&counts, &profile).unwrap();
    let hottest = profdata.hottest(&profile);
    let expected = format!("max count = {N_CALLS}");
    assert!(hottest.contains("often") && hottest.contains(&expected), "{hottest}");

    let optimized = small.compile("optimized", format!("-Cprofile-use={}", profile.display()));
    assert_ne!(fingerprint(&optimized).unwrap(), fingerprint(&instrumented).unwrap());
    fs::remove_dir_all(&counts).unwrap();
    run(&optimized);
    assert!(!counts.exists(), "the optimized program is not instrumented");
}

#[test]
fn bolt_profile_counts_calls_of_all_processes_and_changes_the_program() {
    let toolchain = Toolchain::query().unwrap();
    let Some((_, bolt)) = tools_for_test(&toolchain) else { return };
    let small = SmallWorkspace::new(toolchain);
    let (counts, profile) = (small.path("counts"), small.path("merged.fdata"));
    let program = small.compile("with-relocations", bolt::EMIT_RELOCS.to_owned());

    let instrumented = small.path("instrumented");
    create_empty(&counts).unwrap();
    bolt.instrument(&program, &counts, &instrumented).unwrap();
    assert!(bolt.merge(&counts, &profile).is_err());
    run(&instrumented);
    run(&instrumented);
    assert_eq!(fs::read_dir(&counts).unwrap().count(), 2, "one file per process");
    bolt.merge(&counts, &profile).unwrap();
    let text = fs::read_to_string(&profile).unwrap();
    let calls = text.lines().filter(|line| line.contains("often"));
    let counts_of_calls = calls.map(|line| line.rsplit(' ').next().unwrap());
    let n_calls: u32 = counts_of_calls.map(|count| count.parse::<u32>().unwrap()).sum();
    assert_eq!(n_calls, 2 * N_CALLS, "calls of both runs: {text}");

    let optimized = small.path("optimized");
    bolt.optimize(&program, &profile, &optimized).unwrap();
    assert_ne!(fingerprint(&optimized).unwrap(), fingerprint(&program).unwrap());
    create_empty(&counts).unwrap();
    run(&optimized);
    assert_eq!(fs::read_dir(&counts).unwrap().count(), 0, "the optimized program counts nothing");
}
