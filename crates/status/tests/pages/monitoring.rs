//! `deploy/monitoring`: rules and dashboard name metrics and labels that exist, each alert has tests
//! and a section in `docs/operating.md`. The table there and the PrometheusRule are generated here.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::process::Command;

use endpointd_status::Metrics;
use expect_test::expect_file;
use serde::Deserialize;
use serde_json::Value;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/monitoring");
const RULES: &str = include_str!("../../../../deploy/monitoring/rules.yaml");
const RULES_TEST: &str = include_str!("../../../../deploy/monitoring/rules_test.yaml");
const DASHBOARD: &str = include_str!("../../../../deploy/monitoring/dashboard.json");
const OPERATING: &str = include_str!("../../../../docs/operating.md");
/// Prometheus adds the first two to what it scrapes; a bucket has the last one.
const ADDED_LABELS: &[&str] = &["instance", "job", "le"];

#[derive(Deserialize)]
struct RuleFile {
    groups: Vec<Group>,
}

#[derive(Deserialize)]
struct Group {
    rules: Vec<Alert>,
}

#[derive(Deserialize)]
struct Alert {
    alert: String,
    expr: String,
    r#for: Option<String>,
    labels: BTreeMap<String, String>,
    annotations: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct TestFile {
    tests: Vec<AlertTests>,
}

#[derive(Deserialize)]
struct AlertTests {
    alert_rule_test: Vec<AlertTest>,
}

#[derive(Deserialize)]
struct AlertTest {
    alertname: String,
    exp_alerts: Vec<Value>,
}

/// Once without and once with the alert, so that a rule that never fires is noticed.
#[test]
fn each_alert_is_tested_silent_and_firing() {
    let file: TestFile = serde_saphyr::from_str(RULES_TEST).unwrap();
    let tested: BTreeSet<(String, bool)> = file
        .tests
        .into_iter()
        .flat_map(|test| test.alert_rule_test)
        .map(|test| (test.alertname, test.exp_alerts.is_empty()))
        .collect();
    let expected: BTreeSet<(String, bool)> = alerts()
        .into_iter()
        .flat_map(|alert| [(alert.alert.clone(), false), (alert.alert, true)])
        .collect();
    assert_eq!(tested, expected);
}

#[test]
fn promtool_accepts_the_rules_and_passes_their_tests() {
    for arguments in [["check", "rules", "rules.yaml"], ["test", "rules", "rules_test.yaml"]] {
        let Ok(output) = Command::new("promtool").args(arguments).current_dir(FOLDER).output()
        else {
            assert!(env::var_os("CI").is_none(), "`promtool` is missing: apt install prometheus");
            eprintln!("skipped: `promtool` is missing (Debian package `prometheus`)");
            return;
        };
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn each_alert_says_how_bad_it_is_and_what_to_do() {
    for Alert { alert, labels, annotations, .. } in alerts() {
        assert!(["critical", "warning", "info"].contains(&&*labels["severity"]), "{alert}");
        assert!(annotations["summary"].ends_with('.'), "{alert}");
        let section = format!("docs/operating.md#{}", alert.to_lowercase());
        assert_eq!(annotations["runbook_url"], section);
        assert!(OPERATING.contains(&format!("\n### {alert}\n\n")), "{alert} has no section");
    }
}

/// The table between its head and the next empty line.
#[test]
fn operating_guide_has_the_table_of_alerts() {
    let head = "| alert | severity | when | for |\n|---|---|---|---|\n";
    let (before, rest) = OPERATING.split_once(head).expect("the head of the table");
    let (_, after) = rest.split_once("\n\n").expect("an empty line after the table");
    let rows: Vec<String> = alerts().iter().map(row).collect();
    let page = format!("{before}{head}{}\n\n{after}", rows.join("\n"));
    expect_file!["../../../../docs/operating.md"].assert_eq(&page);
}

fn row(Alert { alert, expr, r#for, labels, .. }: &Alert) -> String {
    let expr = expr.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', r"\|");
    let duration = r#for.as_deref().unwrap_or("0m");
    format!(
        "| [{alert}](#{}) | {} | `{expr}` | {duration} |",
        alert.to_lowercase(),
        labels["severity"]
    )
}

#[test]
fn prometheus_rule_has_the_same_rules() {
    let (_, groups) = RULES.split_once("\ngroups:\n").expect("the groups");
    let spec: String = groups.lines().map(|line| format!("  {line}\n")).collect();
    let manifest = format!("{PROMETHEUS_RULE}spec:\n  groups:\n{spec}");
    expect_file!["../../../../deploy/components/monitoring/prometheus-rule.yaml"]
        .assert_eq(&manifest);
}

const PROMETHEUS_RULE: &str = "\
# Generated from deploy/monitoring/rules.yaml: UPDATE_EXPECT=1 cargo test -p endpointd-status monitoring
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: endpointd
  namespace: endpointd
  labels:
    app.kubernetes.io/name: endpointd
    app.kubernetes.io/part-of: endpointd
";

#[test]
fn rules_name_existing_metrics_and_labels() {
    for Alert { alert, expr, .. } in alerts() {
        check_names(&alert, &expr);
    }
}

#[test]
fn dashboard_names_existing_metrics_and_labels() {
    let dashboard: Value = serde_json::from_str(DASHBOARD).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let targets = panels.iter().filter_map(|panel| panel["targets"].as_array()).flatten();
    let expressions: Vec<&str> = targets.map(|target| target["expr"].as_str().unwrap()).collect();
    assert!(expressions.len() > 20, "{}", expressions.len());
    for expr in expressions {
        check_names("dashboard", &expr.replace("[$__rate_interval]", "[5m]"));
    }
}

/// Metrics by their prefixes, and labels by where they stand: in braces or after `by` and `on`.
fn check_names(place: &str, expr: &str) {
    let metrics = Metrics::new();
    let mut labels: BTreeSet<&str> = ADDED_LABELS.iter().copied().collect();
    let mut n_metrics = 0;
    for word in expr.split(|letter: char| !is_of_name(letter)) {
        let name = word.trim_end_matches("_bucket");
        if let Some(family) = metrics.families().iter().find(|family| family.name == name) {
            labels.extend(family.labels.iter().map(String::as_str));
            n_metrics += 1;
        } else {
            let is_metric = PREFIXES.iter().any(|prefix| word.starts_with(prefix));
            assert!(!is_metric, "{place}: no such metric: `{word}`");
        }
    }
    assert!(n_metrics > 0, "{place}: {expr}");
    for label in labels_of(expr) {
        assert!(labels.contains(label), "{place}: no metric of it has a label `{label}`: {expr}");
    }
}

const PREFIXES: &[&str] =
    &["endpointd_", "endpoint_slice_", "leader_", "process_", "rest_client_", "workqueue_"];

fn labels_of(expr: &str) -> Vec<&str> {
    let mut labels = Vec::new();
    for (start, end) in [("{", "}"), ("by (", ")"), ("on (", ")")] {
        for part in expr.split(start).skip(1) {
            let (list, _) = part.split_once(end).expect("a list of labels ends");
            let names = list.split(", ").flat_map(|list| list.split(','));
            labels.extend(names.map(|name| name.split(['=', '!']).next().unwrap_or(name).trim()));
        }
    }
    labels
}

fn is_of_name(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || letter == '_'
}

/// A value of the label `result` that no write has would never match.
#[test]
fn results_in_rules_exist() {
    let words = include_str!("../../../model/src/write_result.rs");
    let alerts = alerts();
    let expressions = alerts.iter().flat_map(|alert| alert.expr.split("result").skip(1));
    let values =
        expressions.filter_map(|rest| rest.strip_prefix("=~\"").or(rest.strip_prefix("=\"")));
    let values: Vec<&str> =
        values.flat_map(|rest| rest.split('"').next().unwrap_or(rest).split('|')).collect();
    assert!(values.len() > 4, "{values:?}");
    for value in values {
        assert!(words.contains(&format!("\"{value}\"")), "no write ends as `{value}`");
    }
}

fn alerts() -> Vec<Alert> {
    let file: RuleFile = serde_saphyr::from_str(RULES).expect("valid rules");
    file.groups.into_iter().flat_map(|group| group.rules).collect()
}
