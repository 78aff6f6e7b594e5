//! The page on a terminal: totals, a row for each Service, the log, and commands to try.

use std::collections::BTreeMap;
use std::time::Duration;

use super::span::{Colour, Line};
use super::{SessionInfo, clock, short, suggestions};
use crate::view_state::{Conditions, NO_ZONE, ServiceView, SliceView, ViewState};

/// The default of `--max-endpoints-per-slice`.
const SLICE_MAX: usize = 100;
const BAR_WIDTH: usize = 5;
/// Up to this number, the slices of a Service are shown individually.
const SLICES_MAX: usize = 3;
const LOG_ROWS: usize = 4;
/// Narrower pages omit the column KIND.
const KIND_FROM_WIDTH: usize = 76;

/// At most `width` × `height`.
pub fn page(
    session: &SessionInfo,
    view_state: &ViewState,
    width: usize,
    height: usize,
) -> Vec<Line> {
    let mut head = head(session, view_state);
    head.push(Line::default());
    let foot = foot(session, view_state, height.saturating_sub(head.len() + 4));
    let n_rows = height.saturating_sub(head.len() + foot.len());
    let mut lines = head;
    lines.extend(services(view_state, width, n_rows));
    lines.extend(foot);
    lines.truncate(height);
    lines.into_iter().map(|line| line.cut(width)).collect()
}

fn head(session: &SessionInfo, view_state: &ViewState) -> Vec<Line> {
    let ViewState { elapsed, zones, pods, slices, writes, latency, work, .. } = view_state;
    let title = Line::default().with(Colour::Strong, "endpointd playground").with(
        Colour::Faint,
        format!(
            "  {}  seed {}  {}  {}",
            session.scenario,
            session.seed,
            clock(*elapsed),
            session.url
        ),
    );
    let mut nodes = Line::plain("nodes  ");
    for (zone, counts) in zones {
        let is_whole = counts.n_ready == counts.n_nodes;
        let colour = if is_whole { Colour::Good } else { Colour::Bad };
        nodes.push(Colour::Plain, format!("{zone} "));
        nodes.push(colour, format!("{}/{}  ", counts.n_ready, counts.n_nodes));
    }
    let n_coming = pods.n_pods.saturating_sub(pods.n_ready + pods.n_terminating);
    let pods = Line::plain(format!("pods   {}  ", pods.n_pods))
        .with(if_any(pods.n_ready, Colour::Good), format!("{} ready  ", pods.n_ready))
        .with(if_any(n_coming, Colour::Wait), format!("{n_coming} not ready  "))
        .with(
            if_any(pods.n_terminating, Colour::Bad),
            format!("{} terminating", pods.n_terminating),
        );
    let slices = Line::plain(format!(
        "slices {}  endpoints {}  writes {:.1}/s  pod to slice p50 {} p99 {}",
        slices.n_slices,
        slices.n_endpoints,
        writes.per_second,
        short(latency.median),
        short(latency.p99),
    ));
    let mut lines = vec![title, nodes, pods, slices];
    if let Some(page) = &session.page {
        lines.insert(1, Line::plain(format!("page   {page}  shows all of this in a browser")));
    }
    if !work.is_ready {
        lines.push(Line::default().with(Colour::Wait, "controllers are starting"));
    }
    if let Some(error) = &work.error {
        lines.push(Line::default().with(Colour::Bad, format!("failing: {error}")));
    }
    lines
}

fn if_any(n: usize, colour: Colour) -> Colour {
    if n > 0 { colour } else { Colour::Faint }
}

/// A row for each Service; the last line counts those that do not fit.
fn services(view_state: &ViewState, width: usize, n_rows: usize) -> Vec<Line> {
    if n_rows < 2 {
        return Vec::new();
    }
    let columns = Columns::of(view_state, width);
    let mut lines = vec![columns.head()];
    let n_all = view_state.services.len();
    let n_shown = if n_all < n_rows { n_all } else { n_rows - 2 };
    lines.extend(view_state.services.iter().take(n_shown).map(|service| columns.row(service)));
    if n_shown < n_all {
        let more = format!("… and {} more", n_all - n_shown);
        lines.push(Line::default().with(Colour::Faint, more));
    }
    lines
}

/// Column widths for the terminal.
struct Columns {
    name: usize,
    /// Zero: omitted.
    kind: usize,
    zone: usize,
    zones: Vec<String>,
}

impl Columns {
    fn of(view_state: &ViewState, width: usize) -> Self {
        let longest = view_state.services.iter().map(|service| service.name.chars().count()).max();
        let mut zones: BTreeMap<&String, ()> =
            view_state.zones.keys().map(|zone| (zone, ())).collect();
        let used = view_state.services.iter().flat_map(|service| service.by_zone.keys());
        zones.extend(used.map(|zone| (zone, ())));
        let cells = view_state.services.iter().flat_map(|service| service.by_zone.values());
        let widest = cells.map(|one| cell(*one).width()).max().unwrap_or(0);
        let zones: Vec<String> = zones.into_keys().cloned().collect();
        let widest_zone = zones.iter().map(|zone| title(zone).chars().count()).max().unwrap_or(0);
        Self {
            name: longest.unwrap_or(0).clamp(7, (width / 3).max(7)) + 2,
            kind: if width >= KIND_FROM_WIDTH { 13 } else { 0 },
            zone: widest.max(widest_zone) + 2,
            zones,
        }
    }

    fn head(&self) -> Line {
        let mut line = Line::default().with(Colour::Faint, "SERVICE");
        line.pad_to(self.name);
        if self.kind > 0 {
            line.push(Colour::Faint, "KIND");
            line.pad_to(self.name + self.kind);
        }
        for zone in &self.zones {
            let mut cell = Line::default().with(Colour::Faint, title(zone));
            cell.pad_to(self.zone);
            line.append(cell);
        }
        line.with(Colour::Faint, "SLICES")
    }

    fn row(&self, service: &ServiceView) -> Line {
        let mut line = Line::plain(service.name.clone()).cut(self.name - 1);
        line.pad_to(self.name);
        if self.kind > 0 {
            line.push(Colour::Faint, service.kind.clone());
            line.pad_to(self.name + self.kind);
        }
        for zone in &self.zones {
            let mut cell = cell(service.by_zone.get(zone).copied().unwrap_or_default());
            cell.pad_to(self.zone);
            line.append(cell);
        }
        line.append(fill(&service.slices));
        line
    }
}

fn title(zone: &str) -> String {
    if zone == NO_ZONE { "NO ZONE".to_owned() } else { zone.to_uppercase() }
}

/// `4 +1 -2`: ready, not ready, terminating.
fn cell(conditions: Conditions) -> Line {
    let Conditions { n_ready, n_unready, n_terminating } = conditions;
    let mut line = Line::default();
    if n_ready > 0 {
        line.push(Colour::Good, n_ready.to_string());
    } else {
        line.push(Colour::Faint, if n_unready + n_terminating > 0 { "0" } else { "·" });
    }
    if n_unready > 0 {
        line.push(Colour::Wait, format!(" +{n_unready}"));
    }
    if n_terminating > 0 {
        line.push(Colour::Bad, format!(" -{n_terminating}"));
    }
    line
}

/// A bar for each slice, or one bar for all.
fn fill(slices: &[SliceView]) -> Line {
    if slices.is_empty() {
        return Line::default().with(Colour::Faint, "none");
    }
    let n_endpoints: usize = slices.iter().map(|slice| slice.n_endpoints).sum();
    if slices.len() > SLICES_MAX {
        let n_room = slices.len() * SLICE_MAX;
        let text = format!(" {} slices, {n_endpoints} of {n_room}", slices.len());
        return bar(n_endpoints, n_room).with(Colour::Plain, text);
    }
    let mut line = Line::default();
    for (n, slice) in slices.iter().enumerate() {
        let gap = if n == 0 { "" } else { "  " };
        line.push(Colour::Plain, gap);
        line.append(bar(slice.n_endpoints, SLICE_MAX));
        let family = slice.address_type.trim_start_matches("IP");
        line.push(Colour::Plain, format!(" {family} {}", slice.n_endpoints));
    }
    line
}

fn bar(n: usize, n_max: usize) -> Line {
    let n_full = (n * BAR_WIDTH).div_ceil(n_max.max(1)).min(BAR_WIDTH);
    Line::default()
        .with(Colour::Good, "█".repeat(n_full))
        .with(Colour::Faint, "░".repeat(BAR_WIDTH - n_full))
}

/// The log and commands to try, in at most `n_rows` rows.
fn foot(session: &SessionInfo, view_state: &ViewState, n_rows: usize) -> Vec<Line> {
    let mut lines = vec![Line::default(), legend()];
    let n_log_lines = view_state.log.len().min(LOG_ROWS);
    if n_log_lines > 0 {
        lines.push(Line::default());
        let log = view_state.log.iter().skip(view_state.log.len() - n_log_lines);
        lines.extend(log.map(|(at, text)| log_line(*at, text)));
    }
    lines.push(Line::default());
    lines.push(Line::default().with(Colour::Strong, "Try in another terminal (Ctrl-C ends this):"));
    lines.extend(suggestions(session).into_iter().map(|line| Line::plain(format!("  {line}"))));
    // At least half of the rows stay for the Services.
    let n_kept = n_rows.saturating_sub(view_state.services.len().min(n_rows / 2));
    lines.truncate(n_kept);
    lines
}

fn log_line(at: Duration, text: &str) -> Line {
    Line::default().with(Colour::Faint, format!("{:>5}  ", clock(at))).with(Colour::Plain, text)
}

fn legend() -> Line {
    Line::default()
        .with(Colour::Faint, "endpoints: ")
        .with(Colour::Good, "4")
        .with(Colour::Faint, " ready  ")
        .with(Colour::Wait, "+1")
        .with(Colour::Faint, " not ready  ")
        .with(Colour::Bad, "-2")
        .with(Colour::Faint, " terminating;  slices: filled of 100")
}

#[cfg(test)]
mod tests;
