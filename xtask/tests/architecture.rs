//! Rules of the architecture that the compiler does not check: the dependencies of each crate, and
//! the names in `docs/parity.md`. Rules about the text of files are in `rules`.

mod rules;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::Command;

use rules::root;
use serde_json::Value;

/// The packages that each crate may depend on. A new dependency is a decision: write the reason
/// into `docs/decisions/`, then add it here.
const ALLOWED_DEPENDENCIES: &[(&str, &[&str])] = &[
    ("endpointd-model", &["jiff", "sha2", "thiserror"]),
    ("endpointd-rng", &[]),
    ("endpointd-fuzz", &["endpointd-rng", "serde_json"]),
    ("endpointd-memory-api", &["endpointd-model"]),
    ("endpointd-plan", &["endpointd-model"]),
    (
        "endpointd-explain",
        &["endpointd-model", "endpointd-plan", "endpointd-wire", "serde", "serde_json", "strsim"],
    ),
    (
        "endpointd-engine",
        &["endpointd-model", "endpointd-plan", "endpointd-rng", "hashbrown", "slab"],
    ),
    (
        "endpointd-sim",
        &[
            "endpointd-engine",
            "endpointd-memory-api",
            "endpointd-model",
            "endpointd-rng",
            "clap",
            "indicatif",
        ],
    ),
    (
        "endpointd-wire",
        &["endpointd-model", "prost", "serde", "serde_json", "serde_path_to_error", "thiserror"],
    ),
    (
        "endpointd-secure-serving",
        &[
            "axum",
            "rcgen",
            "rustls",
            "rustls-webpki",
            "serde_json",
            "thiserror",
            "tokio",
            "tokio-rustls",
            "tracing",
        ],
    ),
    (
        "endpointd-status",
        &[
            "endpointd-engine",
            "endpointd-model",
            "endpointd-plan",
            "endpointd-secure-serving",
            "axum",
            "hyper",
            "hyper-util",
            "prometheus",
            "serde_json",
            "tokio",
        ],
    ),
    (
        "endpointd-client",
        &[
            "endpointd-model",
            "endpointd-wire",
            "fastrand",
            "http",
            "http-body-util",
            "hyper",
            "hyper-util",
            "k8s-openapi",
            "kube",
            "percent-encoding",
            "serde",
            "serde_json",
            "thiserror",
            "tokio",
            "tower",
            "tracing",
        ],
    ),
    (
        "endpointd-apiserver",
        &[
            "axum",
            "base64",
            "bytes",
            "form_urlencoded",
            "futures-util",
            "getrandom",
            "jiff",
            "json-patch",
            "serde",
            "serde_json",
            "thiserror",
            "tokio",
        ],
    ),
    (
        "endpointd-runtime",
        &[
            "endpointd-client",
            "endpointd-engine",
            "endpointd-model",
            "endpointd-secure-serving",
            "endpointd-status",
            "serde_json",
            "thiserror",
            "tokio",
            "tracing",
        ],
    ),
    (
        "endpointd-page",
        &[
            "endpointd-client",
            "endpointd-engine",
            "endpointd-explain",
            "endpointd-model",
            "endpointd-plan",
            "endpointd-status",
            "endpointd-wire",
            "axum",
            "bytes",
            "futures-util",
            "serde_json",
            "tokio",
        ],
    ),
    (
        "endpointd-playground",
        &[
            "endpointd-apiserver",
            "endpointd-client",
            "endpointd-engine",
            "endpointd-model",
            "endpointd-page",
            "endpointd-rng",
            "endpointd-runtime",
            "endpointd-status",
            "crossterm",
            "jiff",
            "serde",
            "serde_json",
            "thiserror",
            "tokio",
        ],
    ),
    (
        "endpointd",
        &[
            "endpointd-client",
            "endpointd-engine",
            "endpointd-explain",
            "endpointd-model",
            "endpointd-page",
            "endpointd-plan",
            "endpointd-playground",
            "endpointd-runtime",
            "endpointd-status",
            "endpointd-wire",
            "axum",
            "clap",
            "clap_complete",
            "clap_mangen",
            "comfy-table",
            "rustix",
            "saphyr-parser",
            "serde",
            "serde_json",
            "similar",
            "thiserror",
            "tikv-jemallocator",
            "tokio",
            "tracing",
            "tracing-subscriber",
        ],
    ),
    (
        "endpointd-bench",
        &[
            "endpointd-client",
            "endpointd-control-plane",
            "endpointd-engine",
            "endpointd-scenarios",
            "endpointd-model",
            "endpointd-wire",
            "anyhow",
            "clap",
            "comfy-table",
            "http",
            "http-body-util",
            "indicatif",
            "kube",
            "prost",
            "serde_json",
            "tikv-jemallocator",
            "tokio",
        ],
    ),
];

/// Normal dependencies by package, of the packages in this workspace.
fn dependencies() -> BTreeMap<String, BTreeSet<String>> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--format-version", "1"])
        .current_dir(root())
        .output()
        .expect("cargo runs");
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("cargo prints JSON");
    let packages = metadata["packages"].as_array().expect("a list of packages");
    let name = |value: &Value| value["name"].as_str().expect("packages have names").to_owned();
    packages
        .iter()
        .map(|package| {
            let all = package["dependencies"].as_array().expect("a list of dependencies");
            let normal = all.iter().filter(|one| one["kind"].is_null());
            (name(package), normal.map(name).collect())
        })
        .collect()
}

#[test]
fn crates_have_only_allowed_dependencies() {
    let dependencies = dependencies();
    for (package, allowed) in ALLOWED_DEPENDENCIES {
        let allowed: BTreeSet<String> = allowed.iter().map(|one| (*one).to_owned()).collect();
        let used = dependencies.get(*package).expect("the list has packages of this workspace");
        let others: Vec<&String> = used.difference(&allowed).collect();
        assert!(
            others.is_empty(),
            "`{package}` must not depend on {others:?}: see ALLOWED_DEPENDENCIES in xtask/tests/architecture.rs"
        );
    }
}

#[test]
fn every_product_crate_is_listed() {
    let listed: BTreeSet<&str> = ALLOWED_DEPENDENCIES.iter().map(|(package, _)| *package).collect();
    let crates = fs::read_dir(root().join("crates")).expect("crates/ is there");
    for folder in crates {
        let manifest = folder.expect("readable").path().join("Cargo.toml");
        let text = fs::read_to_string(&manifest).expect("every crate has a manifest");
        let name = text.lines().find_map(|line| line.strip_prefix("name = \"")).expect("a name");
        let name = name.trim_end_matches('"');
        assert!(listed.contains(name), "add `{name}` to ALLOWED_DEPENDENCIES");
        assert!(
            text.contains("[lints]\nworkspace = true"),
            "`{name}` does not use the lints of the workspace"
        );
    }
}

/// The names in code style that some cells of the tables of a page contain.
fn names_in_cells<'a>(page: &'a str, columns: &[usize]) -> Vec<&'a str> {
    let rows = page.lines().filter(|line| line.starts_with("| "));
    let cells = rows.flat_map(|row| {
        let cells = row.split('|').skip(1).enumerate();
        cells.filter(|(column, _)| columns.contains(column)).map(|(_, cell)| cell)
    });
    cells.flat_map(|cell| cell.split('`').skip(1).step_by(2)).collect()
}

fn assert_names_exist(path: &str, names: &[&str]) {
    let code: String = rules::files(&[".rs"]).into_iter().map(|source| source.text).collect();
    for name in names {
        if name.ends_with(".rs") || name.contains('/') && !name.contains('.') {
            assert!(root().join(name).exists(), "{path} names `{name}`, which does not exist");
            continue;
        }
        let last = name.rsplit("::").next().expect("a split gives one part at least");
        let forms = ["fn NAME(", "fn NAME<", "struct NAME", "enum NAME"];
        let is_there = forms.iter().any(|form| code.contains(&form.replace("NAME", last)));
        // Words of Kubernetes, and flags.
        let is_kubernetes = ["Ready", "status.podIPs"].contains(&last) || last.starts_with("--");
        assert!(is_there || is_kubernetes, "{path} names `{name}`, which does not exist");
    }
}

/// The tables of `docs/parity.md` name a function and tests for each rule, and files.
#[test]
fn names_in_the_parity_tables_exist() {
    let page = fs::read_to_string(root().join("docs/parity.md")).expect("the page is there");
    let names = names_in_cells(&page, &[0, 1, 2, 3, 4]);
    assert_names_exist("docs/parity.md", &names);
    assert!(names.len() > 100, "only {} names found", names.len());
}

/// So does `docs/origins.md`, whose second column has names of older releases of Kubernetes. A row
/// without a test says why.
#[test]
fn each_row_of_the_origins_leads_to_code_and_a_test_or_to_a_reason() {
    let page = fs::read_to_string(root().join("docs/origins.md")).expect("the page is there");
    let names = names_in_cells(&page, &[2, 3]);
    assert_names_exist("docs/origins.md", &names);
    assert!(names.len() > 150, "only {} names found", names.len());
    let tables = page.split("| document | described | here | test |").skip(1);
    for row in tables.flat_map(str::lines).filter(|line| line.starts_with("| ")) {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let [_, _, _, here, test, _] = cells.as_slice() else { panic!("not four cells: {row}") };
        let has_test = test.contains('`');
        assert!(has_test || here.starts_with("not here: "), "no test and no reason: {row}");
    }
}
