//! The list of clusters for people and for programs.

use endpointd_client::Credentials;
use serde_json::{Value, json};

use super::add::lifetime_text;
use super::flags::Format;
use super::list::{Row, State};
use crate::terminal::{Style, Terminal};

/// The version of this form; a field never changes its meaning.
const FORMAT_VERSION: &str = "1.0";

pub fn text_or_json(rows: &[Row], format: Format) -> String {
    match format {
        Format::Text if rows.is_empty() => "no other cluster is known\n".to_owned(),
        Format::Text => text(&Terminal::of_stdout(), rows),
        Format::Json => format!("{:#}\n", json(rows)),
    }
}

fn text(terminal: &Terminal, rows: &[Row]) -> String {
    let cells = |row: &Row| {
        [
            row.name.clone(),
            row.state.as_str().to_owned(),
            or_dash(&row.server),
            or_dash(row.uid.as_deref().unwrap_or_default()),
            lifetime_text(row.credentials),
        ]
    };
    let header = ["NAME", "STATE", "SERVER", "IDENTITY", "TOKEN"].map(str::to_owned);
    let lines: Vec<[String; 5]> = std::iter::once(header).chain(rows.iter().map(cells)).collect();
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max();
    let widths: Vec<usize> = (0..5).map(|column| width(column).unwrap_or(0)).collect();
    let mut out = String::new();
    for (at, line) in lines.iter().enumerate() {
        let style = match at.checked_sub(1).map(|row| rows[row].state) {
            None => Style::Bold,
            Some(State::Reachable) => Style::Good,
            Some(State::Limited | State::Unreachable) => Style::Warning,
            Some(State::Denied | State::Refused) => Style::Bad,
        };
        let mut padded: Vec<String> =
            line.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}")).collect();
        padded[1] = terminal.paint(style, &padded[1]);
        out.push_str(padded.join("  ").trim_end());
        out.push('\n');
    }
    for row in rows {
        for remark in &row.remarks {
            out.push_str(&format!("{}: {remark}\n", row.name));
        }
    }
    out
}

fn or_dash(text: &str) -> String {
    if text.is_empty() { "-".to_owned() } else { text.to_owned() }
}

fn json(rows: &[Row]) -> Value {
    let cluster = |row: &Row| {
        let expires = match row.credentials {
            Credentials::TokenUntil(end) => Some(end.to_string()),
            Credentials::TokenWithoutEnd | Credentials::Other => None,
        };
        let token = match row.credentials {
            Credentials::TokenUntil(_) => "limited",
            Credentials::TokenWithoutEnd => "withoutEnd",
            Credentials::Other => "unknown",
        };
        json!({
            "name": row.name, "state": row.state.as_str(), "server": row.server, "uid": row.uid,
            "token": token, "tokenExpires": expires, "remarks": row.remarks,
            "missingPermissions": row.missing_permissions,
        })
    };
    json!({
        "formatVersion": FORMAT_VERSION,
        "clusters": rows.iter().map(cluster).collect::<Vec<_>>(),
    })
}
