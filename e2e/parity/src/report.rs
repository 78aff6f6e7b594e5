//! A run as people read it: tables, the worlds that differ, and one last line.

use endpointd_model::Controller;
use serde_json::Value;

use crate::campaign::Tally;
use crate::case::Case;
use crate::coverage;
use crate::generate::Scope;
use crate::judge::Difference;

/// Prints a world that differs, at its smallest, ready to become a regression.
pub fn print_world(index: u64, case: &Case, differences: &[Difference]) {
    println!("\nworld {index} differs; a line for `regressions/{}.jsonl`:", case.controller);
    println!("{}", line(case));
    differences.iter().for_each(|difference| println!("{difference}"));
}

/// Prints the rest; false when something is wrong.
pub fn print(tally: &Tally, scope: Scope) -> bool {
    let missed = print_coverage(tally, scope);
    println!("\nworlds that differ by choice");
    tally.n_by_id.iter().for_each(|(id, n)| println!("{n:>9}  {id}"));
    println!("\nupstream acted by chance in {} worlds", tally.n_by_chance);
    for (fault, n) in &tally.n_by_fault {
        println!("the oracle could not answer {n} worlds: {fault}");
    }
    let is_large = tally.n_worlds >= coverage::WORLDS_MIN;
    if !missed.is_empty() {
        let gravity = if is_large { "error" } else { "note" };
        println!("{gravity}: no world touched: {}", missed.join(", "));
    }
    let Tally { n_worlds, n_different, n_by_choice, .. } = tally;
    println!("parity: {n_worlds} worlds, {n_different} differences, {n_by_choice} by choice");
    *n_different == 0 && tally.n_by_fault.is_empty() && (missed.is_empty() || !is_large)
}

/// The table of rules; returns those no world touched.
fn print_coverage(tally: &Tally, scope: Scope) -> Vec<&'static str> {
    let controllers = match scope {
        Scope::All => vec![Controller::Endpoints, Controller::Slices, Controller::Mirror],
        Scope::One(controller) => vec![controller],
    };
    println!("\nsyncs that touched a rule");
    let table = tally.coverage.table(&controllers);
    table.iter().for_each(|(name, n)| println!("{n:>9}  {name}"));
    table.into_iter().filter(|(_, n)| *n == 0).map(|(name, _)| name).collect()
}

/// A case in one line, without what says nothing.
pub fn line(case: &Case) -> String {
    let mut value = serde_json::to_value(case).expect("a case is JSON");
    prune(&mut value);
    value.to_string()
}

fn prune(value: &mut Value) {
    let says_nothing =
        |value: &Value| value.is_null() || value.as_array().is_some_and(Vec::is_empty);
    match value {
        Value::Object(fields) => {
            fields.retain(|_, value| !says_nothing(value));
            fields.values_mut().for_each(prune);
        }
        Value::Array(items) => items.iter_mut().for_each(prune),
        _ => {}
    }
}
