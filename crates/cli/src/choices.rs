//! What several commands let people choose in the same words.

use std::collections::BTreeSet;

use endpointd_model::Controller;

use crate::refusal::Refusal;

pub const ENDPOINTS_MAX: usize = 1000; // The API server refuses larger slices.

/// A number within bounds, or a sentence about it.
pub fn number(flag: &str, text: &str, most: usize, default: usize) -> Result<usize, Refusal> {
    match text.parse() {
        Ok(number) if (1..=most).contains(&number) => Ok(number),
        Ok(_) | Err(_) => Err(Refusal::new(
            format!("`--{flag}` must be a number from 1 to {most}: `{text}`"),
            format!("without the flag it is {default}"),
        )),
    }
}

/// The first word about a controller counts, and `*` speaks for those not mentioned.
/// Upstream: `IsControllerEnabled` in k8s.io/controller-manager.
pub fn controllers(words: &[String]) -> Result<BTreeSet<Controller>, Refusal> {
    let mut has_star = false;
    let mut said: Vec<(Controller, Verdict)> = Vec::new();
    for word in words.iter().map(|word| word.trim()).filter(|word| !word.is_empty()) {
        if word == "*" {
            has_star = true;
            continue;
        }
        let (name, verdict) = match word.strip_prefix('-') {
            Some(name) => (name, Verdict::Off),
            None => (word, Verdict::On),
        };
        said.push((known(name)?, verdict));
    }
    let is_on = |controller: &Controller| {
        let verdict = said.iter().find(|(one, _)| one == controller);
        verdict.map_or(has_star, |(_, verdict)| *verdict == Verdict::On)
    };
    Ok(Controller::ALL.into_iter().filter(is_on).collect())
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Verdict {
    On,
    Off,
}

fn known(name: &str) -> Result<Controller, Refusal> {
    let is_named = |one: &Controller| one.name() == name || one.alias() == name;
    Controller::ALL.into_iter().find(is_named).ok_or_else(|| {
        let names = Controller::ALL.map(|one| format!("`{}` (`{}`)", one.name(), one.alias()));
        Refusal::new(
            format!("`--controllers` names an unknown controller: `{name}`"),
            format!("known are `*`, {}; a `-` before a name leaves it out", names.join(", ")),
        )
    })
}
