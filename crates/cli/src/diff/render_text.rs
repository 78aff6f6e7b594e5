//! The differences in words.

use std::collections::BTreeSet;

use endpointd_model::{Key, PublishedResource, Write, names};

use super::compared::{Compared, ComparedWrite};
use crate::changes::ChangeKind;
use crate::terminal::{Style, Terminal};

/// Changes of one object; `-o unified` and the JSON have all.
const CHANGES_MAX: usize = 20;

const METADATA: [&str; 3] = ["label ", "annotation ", "owner "];

pub fn render(terminal: &Terminal, compared: &Compared) -> String {
    let mut out = String::new();
    let mut last: Option<&Key> = None;
    for one in &compared.differences {
        if last != Some(&one.key) {
            out.push_str(&format!("{}\n", terminal.paint(Style::Bold, &one.key.to_string())));
        }
        last = Some(&one.key);
        one.writes.iter().for_each(|write| object(terminal, &mut out, write));
    }
    if !compared.left_behind.is_empty() {
        out.push_str(&left_behind(terminal, compared));
    }
    let separator = if out.is_empty() { "" } else { "\n" };
    out.push_str(&format!("{separator}{}\n", terminal.paint(Style::Bold, &verdict(compared))));
    out
}

/// What is kept although nobody updates it.
fn left_behind(terminal: &Terminal, compared: &Compared) -> String {
    let head = "left behind by Services that had a selector before:";
    let mut out = format!("{}\n", terminal.paint(Style::Bold, head));
    for target in &compared.left_behind {
        out.push_str(&format!("    {} {}\n", kind(target.resource), target.key));
    }
    out.push_str("    `endpointd run --orphan-policy=delete` deletes them\n");
    out
}

fn kind(resource: PublishedResource) -> &'static str {
    match resource {
        PublishedResource::Slices => "slice",
        PublishedResource::Endpoints => "endpoints",
        PublishedResource::ServiceStatus => "status of Service",
        PublishedResource::MultiCluster(_) => "import",
    }
}

/// The answer in one sentence.
pub fn verdict(compared: &Compared) -> String {
    let Compared { n_keys, differences, .. } = compared;
    let keys: BTreeSet<&Key> = differences.iter().map(|one| &one.key).collect();
    let count = |verb: &str| {
        let writes = differences.iter().flat_map(|one| &one.writes);
        writes.filter(|one| one.write.verb() == verb).count()
    };
    match (keys.len(), n_keys) {
        (0, 0) => "There are no Services and no Endpoints.".to_owned(),
        (0, 1) => "No difference: what is published is what endpointd would publish.".to_owned(),
        (0, n) => format!("No differences in {n} Services and Endpoints."),
        (n, _) => format!(
            "{n} of {n_keys} {}: {} to create, {} to update, {} to delete.",
            if n == 1 { "differs" } else { "differ" },
            count("create"),
            count("update"),
            count("delete"),
        ),
    }
}

/// `~ slice web-d569jkw2fh`, and a line for each change.
fn object(terminal: &Terminal, out: &mut String, compared: &ComparedWrite) {
    let ComparedWrite { write, before: _, changes } = compared;
    let kind = kind(write.resource());
    let change_kind = match write {
        Write::Create(_) => ChangeKind::Added,
        Write::Update(_) => ChangeKind::Changed,
        Write::Delete(_) => ChangeKind::Removed,
    };
    let head = format!("{} {kind} {}", change_kind.sign(), write.key().name);
    out.push_str(&format!("  {}\n", terminal.paint(style(change_kind), &head)));
    // Of an object that appears or goes, the endpoints and ports matter.
    let is_whole = change_kind != ChangeKind::Changed;
    let is_shown = |text: &str| {
        !text.contains(names::TRIGGER_TIME)
            && (!is_whole || !METADATA.iter().any(|start| text.starts_with(start)))
    };
    let shown: Vec<_> = changes.iter().filter(|change| is_shown(&change.text)).collect();
    for change in shown.iter().take(CHANGES_MAX) {
        let lines = terminal.wrap(&change.text, 8);
        let mut lines = lines.iter();
        let first = format!("{} {}", change.kind.sign(), lines.next().map_or("", |line| line));
        out.push_str(&format!("      {}\n", terminal.paint(style(change.kind), &first)));
        for line in lines {
            out.push_str(&format!("        {}\n", terminal.paint(style(change.kind), line)));
        }
    }
    if shown.len() > CHANGES_MAX {
        let more = format!("and {} more, see `-o unified`", shown.len() - CHANGES_MAX);
        out.push_str(&format!("      {}\n", terminal.paint(Style::Dim, &more)));
    }
    if shown.is_empty() && !is_whole {
        out.push_str("      only the trigger time or the order differs\n");
    }
}

pub fn style(kind: ChangeKind) -> Style {
    match kind {
        ChangeKind::Added => Style::Good,
        ChangeKind::Changed => Style::Warning,
        ChangeKind::Removed => Style::Bad,
    }
}
