//! `endpointd endpoints report`.

use std::collections::BTreeMap;

use endpointd_model::Timestamp;
use serde_json::{Value, json};

use super::audit::{self, Readers};
use super::flags::{Format, ReportFlags};
use super::survey::{self, Entry, Purpose};
use crate::cli_error::CliError;
use crate::cluster::connect;
use crate::terminal::{Style, Terminal};

/// The version of this form; a field never changes its meaning.
const FORMAT_VERSION: &str = "1.0";
/// Names that a line for people lists; the JSON has all.
const NAMES_MAX: usize = 10;

pub async fn report(flags: &ReportFlags) -> Result<String, CliError> {
    let readers = flags.audit_log.as_deref().map(audit::read).transpose()?;
    let client = connect(&flags.connect).await?;
    let scope = flags.namespace.scope(Some(&client));
    let entries = survey::read(&client, &scope).await?;
    Ok(match flags.output {
        Format::Text => lines(&Terminal::of_stdout(), &entries, readers.as_ref(), Timestamp::now()),
        Format::Json => format!("{:#}\n", value(&entries, readers.as_ref())),
    })
}

/// Number of objects and last write, by client.
fn writers(entries: &[Entry]) -> BTreeMap<&str, (usize, Option<Timestamp>)> {
    let mut writers: BTreeMap<&str, (usize, Option<Timestamp>)> = BTreeMap::new();
    for (manager, time) in entries.iter().flat_map(|one| &one.writers) {
        let (n, newest) = writers.entry(manager).or_default();
        *n += 1;
        *newest = (*time).max(*newest);
    }
    writers
}

fn of(entries: &[Entry], purpose: Purpose) -> impl Iterator<Item = &Entry> {
    entries.iter().filter(move |one| one.purpose == purpose)
}

fn lines(
    terminal: &Terminal,
    entries: &[Entry],
    readers: Option<&Readers>,
    now: Timestamp,
) -> String {
    let bold = |text: &str| format!("{}\n", terminal.paint(Style::Bold, text));
    let n_bytes: usize = entries.iter().map(|one| one.n_bytes).sum();
    let mut out = bold(&format!("{} Endpoints, {n_bytes} bytes as JSON", entries.len()));
    for purpose in Purpose::ALL {
        let n = of(entries, purpose).count();
        if n > 0 {
            out.push_str(&format!("  {n:>6}  {}\n", purpose.describe()));
        }
    }
    let n_prunable: usize = of(entries, Purpose::Published).map(|one| one.n_bytes).sum();
    out.push_str(&format!(
        "`endpointd endpoints prune` would delete {} with {n_prunable} bytes, once no endpoints \
         controller runs.\n",
        of(entries, Purpose::Published).count(),
    ));
    let stale = entries.iter().filter(|one| one.purpose.is_stale());
    out.push_str(&names("stale", stale));
    out.push_str(&names(
        "truncated to 1000 addresses",
        entries.iter().filter(|one| one.is_truncated),
    ));
    out.push_str(&bold("written by"));
    for (manager, (n, newest)) in writers(entries) {
        let when = newest.map_or_else(
            || "at an unknown time".to_owned(),
            |time| format!("{} s ago", now.as_second() - time.as_second()),
        );
        let manager = if manager.is_empty() { "unknown" } else { manager };
        out.push_str(&format!("  {manager}: {n} objects, last {when}\n"));
    }
    out.push_str(&bold("read by"));
    match readers {
        None => out.push_str("  not known: `--audit-log FILE` reads it from an audit log\n"),
        Some(readers) if readers.is_empty() => out.push_str("  nobody, in this audit log\n"),
        Some(readers) => readers.iter().for_each(|((user, agent), verbs)| {
            let verbs: Vec<String> = verbs.iter().map(|(verb, n)| format!("{verb} {n}")).collect();
            out.push_str(&format!("  {user} ({agent}): {}\n", verbs.join(", ")));
        }),
    }
    out
}

fn names<'a>(title: &str, entries: impl Iterator<Item = &'a Entry>) -> String {
    let keys: Vec<String> = entries.map(Entry::key).collect();
    if keys.is_empty() {
        return String::new();
    }
    let shown = keys.iter().take(NAMES_MAX).cloned().collect::<Vec<_>>().join(", ");
    let more = keys.len().saturating_sub(NAMES_MAX);
    let more = if more == 0 { String::new() } else { format!(", and {more} more") };
    format!("{title}: {shown}{more}\n")
}

fn value(entries: &[Entry], readers: Option<&Readers>) -> Value {
    let purposes = Purpose::ALL.map(|purpose| {
        let n_bytes: usize = of(entries, purpose).map(|one| one.n_bytes).sum();
        (purpose.as_str(), json!({"objects": of(entries, purpose).count(), "bytes": n_bytes}))
    });
    let object = |one: &Entry| {
        json!({
            "namespace": one.namespace, "name": one.name, "purpose": one.purpose.as_str(),
            "stale": one.purpose.is_stale(), "truncated": one.is_truncated, "bytes": one.n_bytes,
            "writers": one.writers.keys().collect::<Vec<_>>(),
        })
    };
    let writer = |(manager, (n, newest)): (&str, (usize, Option<Timestamp>))| json!({"manager": manager, "objects": n, "last": newest.map(|time| time.to_string())});
    let reader = |((user, agent), verbs): (&(String, String), &BTreeMap<String, usize>)| json!({"user": user, "userAgent": agent, "requests": verbs});
    json!({
        "formatVersion": FORMAT_VERSION,
        "purposes": BTreeMap::from(purposes),
        "writers": writers(entries).into_iter().map(writer).collect::<Vec<_>>(),
        "readers": readers.map(|all| all.iter().map(reader).collect::<Vec<_>>()),
        "endpoints": entries.iter().map(object).collect::<Vec<_>>(),
    })
}
