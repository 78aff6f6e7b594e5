//! The whole way with a program of five lines: a fat one takes minutes.

use std::process::Command;

use endpointd_control_plane::binaries::is_ci;

use super::*;

const MANIFEST: &str = "[package]\nname = \"small\"\nedition = \"2024\"\n[workspace]\n";
const MAIN: &str = "#[inline(never)]
fn often(n: u32) -> u32 { std::hint::black_box(n) }
fn main() { println!(\"{}\", (0..4711).map(often).max().unwrap()) }
";

#[test]
fn a_program_is_compiled_by_what_it_was_seen_to_do() {
    let toolchain = Toolchain::ask().unwrap();
    let tool = match ProfileTool::find(&toolchain) {
        Some(tool) => tool,
        None if is_ci() => ProfileTool::find_or_install(&toolchain).unwrap(),
        None => return eprintln!("skipped: there is no llvm-profdata here"),
    };
    let home = tempfile::tempdir().unwrap();
    let (workspace, counts) = (home.path().to_owned(), home.path().join("counts"));
    fs::create_dir(workspace.join("src")).unwrap();
    fs::write(workspace.join("Cargo.toml"), MANIFEST).unwrap();
    fs::write(workspace.join("src/main.rs"), MAIN).unwrap();
    let compile = |name: &str, flag: String| {
        let target_directory = home.path().join(name);
        let workspace = workspace.clone();
        Compilation { package: "small", workspace, target_directory, flag }.run(&toolchain)
    };

    let counting = compile("counting", format!("-Cprofile-generate={}", counts.display())).unwrap();
    assert!(tool.merge(&counts, &home.path().join("too-early")).is_err());
    run(&counting);
    let profile = home.path().join(fingerprint(&counting).unwrap());
    tool.merge(&counts, &profile).unwrap();
    let hottest = tool.hottest(&profile);
    assert!(hottest.contains("often") && hottest.contains("max count = 4711"), "{hottest}");

    let shipped = compile("trained", format!("-Cprofile-use={}", profile.display())).unwrap();
    assert_ne!(fingerprint(&shipped).unwrap(), fingerprint(&counting).unwrap());
    fs::remove_dir_all(fresh(&counts).unwrap()).unwrap();
    run(&shipped);
    assert!(!counts.exists(), "what is shipped counts nothing");
}

fn run(program: &Path) {
    let output = Command::new(program).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "4710\n");
}
