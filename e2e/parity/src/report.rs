//! Prints a run: tables, differing cases, and a summary line.

use endpointd_model::Controller;
use serde_json::Value;

use crate::case::Case;
use crate::coverage;
use crate::fuzz_run::RunSummary;
use crate::generate::Scope;
use crate::judge::Difference;

/// Prints the smallest form of a differing case, ready to become a regression.
pub fn print_case(index: u64, case: &Case, differences: &[Difference]) {
    println!("\ncase {index} differs; a line for `regressions/{}.jsonl`:", case.controller);
    println!("{}", line(case));
    differences.iter().for_each(|difference| println!("{difference}"));
}

/// Prints the summary; false if the run failed.
pub fn print(summary: &RunSummary, scope: Scope) -> bool {
    let missed = print_coverage(summary, scope);
    println!("\ncases with deliberate differences");
    summary.n_by_id.iter().for_each(|(id, n)| println!("{n:>9}  {id}"));
    println!("\nupstream's result varied between runs in {} cases", summary.n_nondeterministic);
    for (fault, n) in &summary.n_by_fault {
        println!("the oracle could not answer {n} cases: {fault}");
    }
    let is_large = summary.n_cases >= coverage::CASES_MIN;
    if !missed.is_empty() {
        let severity = if is_large { "error" } else { "note" };
        println!("{severity}: no case covers: {}", missed.join(", "));
    }
    let RunSummary { n_cases, n_different, n_deliberate, .. } = summary;
    println!("parity: {n_cases} cases, {n_different} differences, {n_deliberate} deliberate");
    *n_different == 0 && summary.n_by_fault.is_empty() && (missed.is_empty() || !is_large)
}

/// Prints the table of rules; returns those that no case covered.
fn print_coverage(summary: &RunSummary, scope: Scope) -> Vec<&'static str> {
    let controllers = match scope {
        Scope::All => vec![Controller::Endpoints, Controller::Slices, Controller::Mirror],
        Scope::One(controller) => vec![controller],
    };
    println!("\nsyncs that covered a rule");
    let table = summary.coverage.table(&controllers);
    table.iter().for_each(|(name, n)| println!("{n:>9}  {name}"));
    table.into_iter().filter(|(_, n)| *n == 0).map(|(name, _)| name).collect()
}

/// A case in one line, without null and empty fields.
pub fn line(case: &Case) -> String {
    let mut value = serde_json::to_value(case).expect("a case is JSON");
    prune(&mut value);
    value.to_string()
}

fn prune(value: &mut Value) {
    let is_empty = |value: &Value| value.is_null() || value.as_array().is_some_and(Vec::is_empty);
    match value {
        Value::Object(fields) => {
            fields.retain(|_, value| !is_empty(value));
            fields.values_mut().for_each(prune);
        }
        Value::Array(items) => items.iter_mut().for_each(prune),
        _ => {}
    }
}
