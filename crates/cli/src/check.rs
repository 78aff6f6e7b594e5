//! `endpointd check`: whether a cluster is ready for endpointd (`--pre`), and whether an installed
//! endpointd can work.

mod flags;
mod instances;
mod outcome;
mod permissions;
mod render;
mod server;
mod webhooks;
mod writers;
mod zones;

use std::process::ExitCode;

use endpointd_client::{Client, Content, ListOptions, ReadError};
use serde_json::Value;

pub use self::flags::Flags;
use self::flags::Format;
use self::outcome::{Outcome, Result as CheckResult};
use crate::cli_error::CliError;
use crate::cluster::{connect, run_async, unreachable};
use crate::terminal::Terminal;
use crate::{EXIT_FINDINGS, output};

/// What is checked: a cluster before the installation, or after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Before,
    Installed,
}

pub fn run(flags: &Flags) -> Result<ExitCode, CliError> {
    let outcomes = run_async(check(flags))?;
    let text = match flags.output {
        Format::Text => render::text(&Terminal::of_stdout(), &outcomes),
        Format::Json => format!("{:#}\n", render::json(&outcomes)),
    };
    output::print(&text)?;
    Ok(match outcomes.iter().any(|one| one.result == CheckResult::Failed) {
        true => ExitCode::from(EXIT_FINDINGS),
        false => ExitCode::SUCCESS,
    })
}

async fn check(flags: &Flags) -> Result<Vec<Outcome>, CliError> {
    let client = connect(&flags.connect).await?;
    let stage = if flags.pre { Stage::Before } else { Stage::Installed };
    let namespace = flags.namespace.as_str();
    // The first request finds out whether the server answers at all.
    let mut outcomes = match server::version(&client).await {
        Ok(outcomes) => outcomes,
        Err(error) if error.is_about_connection() => return Err(unreachable(&client, &error)),
        Err(error) => vec![Outcome::skipped("server", "the version", &error)],
    };
    outcomes.push(server::discovery(&client).await);
    outcomes.extend(permissions::check(&client, namespace, &flags.lease).await);
    outcomes.extend(writers::check(&client, stage, (namespace, &flags.lease)).await);
    outcomes.push(instances::check(&client, namespace).await);
    outcomes.push(webhooks::check(&client, namespace).await);
    if stage == Stage::Installed {
        outcomes.push(server::priority_level(&client, namespace).await);
    }
    outcomes.push(zones::check(&client).await);
    Ok(outcomes)
}

/// The metadata of all objects below a path, or complete objects.
async fn list(client: &Client, path: &str, content: Content) -> Result<Vec<Value>, ReadError> {
    let options = ListOptions { content, ..ListOptions::default() };
    client.list_values(path, &options).await.map(|list| list.items)
}

fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn items<'a>(value: &'a Value, pointer: &str) -> &'a [Value] {
    value.pointer(pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}
