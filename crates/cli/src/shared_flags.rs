//! Flags that several commands share.

use std::collections::BTreeSet;

use endpointd_model::Controller;

use crate::cli_error::CliError;

pub const ENDPOINTS_MAX: usize = 1000; // The API server refuses larger slices.

/// A number from 1 to `most`, or an error that names the flag.
pub fn number(flag: &str, text: &str, most: usize, default: usize) -> Result<usize, CliError> {
    match text.parse() {
        Ok(number) if (1..=most).contains(&number) => Ok(number),
        Ok(_) | Err(_) => Err(CliError::new(
            format!("`--{flag}` must be a number from 1 to {most}: `{text}`"),
            format!("without the flag it is {default}"),
        )),
    }
}

/// The first entry that names a controller decides; `*` stands for controllers without an entry.
/// Upstream: `IsControllerEnabled` in k8s.io/controller-manager.
pub fn controllers(list: &[String]) -> Result<BTreeSet<Controller>, CliError> {
    let mut has_star = false;
    let mut entries: Vec<(Controller, Switch)> = Vec::new();
    for entry in list.iter().map(|entry| entry.trim()).filter(|entry| !entry.is_empty()) {
        if entry == "*" {
            has_star = true;
            continue;
        }
        let (name, switch) = match entry.strip_prefix('-') {
            Some(name) => (name, Switch::Off),
            None => (entry, Switch::On),
        };
        entries.push((controller_named(name)?, switch));
    }
    let is_on = |controller: &Controller| {
        let switch = entries.iter().find(|(one, _)| one == controller);
        switch.map_or(has_star, |(_, switch)| *switch == Switch::On)
    };
    Ok(Controller::ALL.into_iter().filter(is_on).collect())
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Switch {
    On,
    Off,
}

fn controller_named(name: &str) -> Result<Controller, CliError> {
    let is_named = |one: &Controller| one.name() == name || one.alias() == name;
    Controller::ALL.into_iter().find(is_named).ok_or_else(|| {
        let names = Controller::ALL.map(|one| format!("`{}` (`{}`)", one.name(), one.alias()));
        CliError::new(
            format!("`--controllers` names an unknown controller: `{name}`"),
            format!("known are `*`, {}; a `-` before a name excludes it", names.join(", ")),
        )
    })
}
