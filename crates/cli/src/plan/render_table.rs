//! The plan as tables. On a terminal they fit its width and have colours; otherwise every row is
//! one line.

use std::io;

use comfy_table::{Attribute, Cell, Color, ColumnConstraint, ContentArrangement, Table, presets};
use endpointd_model::Write;
use endpointd_plan::{ClusterState, Retry};

use super::KeyPlan;
use super::render_json::controller_label;
use super::write_summary::WriteSummary;
use crate::terminal::wants_colours;

/// In a narrower terminal, columns would be a few letters wide.
const WIDTH_MIN: u16 = 72;
/// Columns with short words, which are not wrapped.
const WHOLE: [&str; 4] = ["CONTROLLER", "VERB", "RESOURCE", "TYPE"];

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Colours {
    On,
    Off,
}

impl Colours {
    /// Whether the output is a terminal is checked by the table.
    pub fn wanted() -> Self {
        if wants_colours() { Self::On } else { Self::Off }
    }
}

pub fn render(
    out: &mut impl io::Write,
    cluster: &ClusterState,
    planned: &[KeyPlan],
) -> io::Result<()> {
    let colours = Colours::wanted();
    let sections = [
        (None, writes(cluster, planned, colours)),
        (Some("events"), events(planned)),
        (Some("excluded pods"), excluded_pods(planned)),
        (Some("retries"), retries(planned)),
    ];
    for (title, section) in sections {
        let n_rows = section.rows.len();
        match title {
            None if n_rows == 0 => writeln!(out, "nothing to write")?,
            None => print(out, section, colours)?,
            Some(_) if n_rows == 0 => {}
            Some(title) => {
                writeln!(out, "\n{title}:")?;
                print(out, section, colours)?;
            }
        }
    }
    Ok(())
}

pub struct Section {
    pub header: &'static [&'static str],
    pub rows: Vec<Vec<Cell>>,
}

fn writes(cluster: &ClusterState, planned: &[KeyPlan], colours: Colours) -> Section {
    let mut rows = Vec::new();
    for KeyPlan { key, controller, plan } in planned {
        for write in &plan.writes {
            rows.push(vec![
                Cell::new(controller_label(*controller)),
                Cell::new(key),
                verb(write, colours),
                Cell::new(write.resource().as_str()),
                Cell::new(write.key().name),
                Cell::new(summary(cluster, write)),
            ]);
        }
    }
    Section { header: &["CONTROLLER", "KEY", "VERB", "RESOURCE", "NAME", "SUMMARY"], rows }
}

fn verb(write: &Write, colours: Colours) -> Cell {
    let colour = match write {
        Write::Create(_) => Color::Green,
        Write::Update(_) => Color::Yellow,
        Write::Delete(_) => Color::Red,
    };
    let cell = Cell::new(write.verb());
    match colours {
        Colours::On => cell.fg(colour),
        Colours::Off => cell,
    }
}

/// The object after the write; for a delete, the object before it.
fn summary(cluster: &ClusterState, write: &Write) -> String {
    match (WriteSummary::after(write), WriteSummary::before(cluster, write)) {
        (Some(after), Some(before)) if after.counts != before.counts => {
            format!("{after} (was {})", before.counts)
        }
        (Some(what), _) | (None, Some(what)) => what.to_string(),
        (None, None) => String::new(),
    }
}

fn events(planned: &[KeyPlan]) -> Section {
    let mut rows = Vec::new();
    for KeyPlan { key, controller, plan } in planned {
        for record in &plan.event_records {
            rows.push(vec![
                Cell::new(controller_label(*controller)),
                Cell::new(key),
                Cell::new(record.event_type().as_str()),
                Cell::new(record.reason.as_str()),
                Cell::new(&record.message),
            ]);
        }
    }
    Section { header: &["CONTROLLER", "KEY", "TYPE", "REASON", "MESSAGE"], rows }
}

fn excluded_pods(planned: &[KeyPlan]) -> Section {
    let mut rows = Vec::new();
    for KeyPlan { key, controller, plan } in planned {
        for one in &plan.excluded_pods {
            rows.push(vec![
                Cell::new(controller_label(*controller)),
                Cell::new(key),
                Cell::new(&one.pod),
                Cell::new(one.reason),
            ]);
        }
    }
    Section { header: &["CONTROLLER", "KEY", "POD", "REASON"], rows }
}

fn retries(planned: &[KeyPlan]) -> Section {
    let mut rows = Vec::new();
    for KeyPlan { key, controller, plan } in planned {
        if let Some(retry) = &plan.retry {
            let cells = [controller_label(*controller).to_owned(), key.to_string(), why(retry)];
            rows.push(cells.map(Cell::new).into());
        }
    }
    Section { header: &["CONTROLLER", "KEY", "REASON"], rows }
}

/// Thousands of pods can wait for one node; the JSON lists all of them.
fn why(retry: &Retry) -> String {
    let Retry::MissingNodes(messages) = retry;
    match messages.as_slice() {
        [] => String::new(),
        [message] => message.clone(),
        [first, rest @ ..] => format!("{first}, and {} more", rest.len()),
    }
}

pub fn print(
    out: &mut (impl io::Write + ?Sized),
    section: Section,
    colours: Colours,
) -> io::Result<()> {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(section.header.iter().map(|title| match colours {
        Colours::On => Cell::new(title).add_attribute(Attribute::Bold),
        Colours::Off => Cell::new(title),
    }));
    table.add_rows(section.rows);
    if table.is_tty() && table.width().is_some_and(|width| width >= WIDTH_MIN) {
        table.set_content_arrangement(ContentArrangement::Dynamic);
    } else {
        table.set_content_arrangement(ContentArrangement::Disabled);
    }
    let n_columns = section.header.len();
    for (at, (column, title)) in table.column_iter_mut().zip(section.header).enumerate() {
        column.set_padding((0, if at + 1 < n_columns { 2 } else { 0 }));
        if WHOLE.contains(title) {
            column.set_constraint(ColumnConstraint::ContentWidth);
        }
    }
    for line in table.lines() {
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}
