//! Measurements of single runs, and their aggregation over rounds.

use std::fmt;

use serde_json::{Value, json};

use crate::statistics::{Samples, ratio};
use crate::subject::Subject;

/// The unit of a measurement. Less is always better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    Seconds,
    Milliseconds,
    Microseconds,
    Bytes,
    Count,
}

/// One measurement of one run.
#[derive(Clone, Debug, PartialEq)]
pub struct Measure {
    pub name: String,
    pub unit: Unit,
    pub value: f64,
}

/// The measurements of one run.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    pub scenario: Scenario,
    /// The parameter of the scenario: size or rate.
    pub case: String,
    pub who: Subject,
    pub measures: Vec<Measure>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, clap::ValueEnum)]
pub enum Scenario {
    ColdStart,
    Restart,
    Churn,
    Rollout,
    ServicesPerNamespace,
    Idle,
    Readers,
    Commands,
    WriteOnly,
    Imports,
    Scopes,
    Engine,
}

impl Scenario {
    pub const ALL: [Self; 12] = [
        Self::ColdStart,
        Self::Restart,
        Self::Churn,
        Self::Rollout,
        Self::ServicesPerNamespace,
        Self::Idle,
        Self::Readers,
        Self::Commands,
        Self::WriteOnly,
        Self::Imports,
        Self::Scopes,
        Self::Engine,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::ColdStart => "cold-start",
            Self::Restart => "restart",
            Self::Churn => "churn",
            Self::Rollout => "rollout",
            Self::ServicesPerNamespace => "services-per-namespace",
            Self::Idle => "idle",
            Self::Readers => "readers",
            Self::Commands => "commands",
            Self::WriteOnly => "write-only",
            Self::Imports => "imports",
            Self::Scopes => "scopes",
            Self::Engine => "engine",
        }
    }

    /// The heading of the table.
    pub fn title(self) -> &'static str {
        match self {
            Self::ColdStart => "cold start: nothing is published when the controller starts",
            Self::Restart => "restart: everything but one pod's change is already published",
            Self::Churn => "churn: readiness toggles at a fixed rate",
            Self::Rollout => "rollout: all pods of one Service are replaced",
            Self::ServicesPerNamespace => {
                "services per namespace: readiness toggles with an increasing number of Services"
            }
            Self::Idle => "idle: nothing changes",
            Self::Readers => "readers: churn while people look at the live page",
            Self::Commands => "commands: explain one Service, and diff all",
            Self::WriteOnly => "write-only: the writes of a cold start without a controller",
            Self::Imports => "imports: changes of a Service that other namespaces publish, too",
            Self::Scopes => "scopes: instances that look at a part of the namespaces",
            Self::Engine => "engine: without API server and sockets",
        }
    }
}

impl Measure {
    pub fn new(name: impl Into<String>, unit: Unit, value: f64) -> Self {
        Self { name: name.into(), unit, value }
    }

    pub fn seconds(name: impl Into<String>, time: std::time::Duration) -> Self {
        Self::new(name, Unit::Seconds, time.as_secs_f64())
    }

    pub fn bytes(name: impl Into<String>, n_bytes: u64) -> Self {
        Self::new(name, Unit::Bytes, n_bytes as f64)
    }

    pub fn count(name: impl Into<String>, n: u64) -> Self {
        Self::new(name, Unit::Count, n as f64)
    }
}

impl Unit {
    /// The number with its unit.
    pub fn show(self, value: f64) -> String {
        match self {
            Self::Seconds => format!("{} s", short(value)),
            Self::Milliseconds if value >= 10_000.0 => Self::Seconds.show(value / 1000.0),
            Self::Milliseconds => format!("{} ms", short(value)),
            Self::Microseconds => format!("{} µs", short(value)),
            Self::Bytes if value < 10_000.0 => format!("{value:.0} B"),
            Self::Bytes => format!("{} MB", short(value / 1e6)),
            Self::Count => short(value),
        }
    }

    fn key(self) -> &'static str {
        match self {
            Self::Seconds => "s",
            Self::Milliseconds => "ms",
            Self::Microseconds => "us",
            Self::Bytes => "bytes",
            Self::Count => "count",
        }
    }
}

/// At least three significant digits.
fn short(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 || value.fract() == 0.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        size if size >= 1.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

/// One measurement of all subjects, over all rounds.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    pub case: String,
    pub name: String,
    pub unit: Unit,
    pub samples: Vec<(Subject, Samples)>,
}

impl Row {
    pub fn of(&self, who: Subject) -> Option<&Samples> {
        self.samples.iter().find(|(one, _)| *one == who).map(|(_, samples)| samples)
    }

    pub fn median(&self, who: Subject) -> Option<f64> {
        self.of(who)?.median()
    }

    /// The value of `other` relative to endpointd.
    pub fn ratio_to_endpointd(&self, other: Subject) -> Option<f64> {
        ratio(self.median(other)?, self.median(Subject::Endpointd)?)
    }
}

/// The rows of one scenario, in the order of their first measurement.
pub fn rows(records: &[Record], scenario: Scenario) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    for record in records.iter().filter(|record| record.scenario == scenario) {
        for Measure { name, unit, value } in &record.measures {
            let at = rows.iter().position(|row| row.case == record.case && row.name == *name);
            let at = at.unwrap_or_else(|| {
                rows.push(Row {
                    case: record.case.clone(),
                    name: name.clone(),
                    unit: *unit,
                    samples: Vec::new(),
                });
                rows.len() - 1
            });
            add(&mut rows[at].samples, record.who, *value);
        }
    }
    // Rows of one case are adjacent, whatever the order of rounds.
    let cases: Vec<String> = rows.iter().map(|row| row.case.clone()).collect();
    rows.sort_by_key(|row| cases.iter().position(|case| *case == row.case));
    rows
}

fn add(samples: &mut Vec<(Subject, Samples)>, who: Subject, value: f64) {
    match samples.iter_mut().find(|(one, _)| *one == who) {
        Some((_, samples)) => samples.push(value),
        None => {
            samples.push((who, std::iter::once(value).collect()));
            samples.sort_by_key(|(who, _)| *who);
        }
    }
}

/// JSON with medians, ranges, and the values of all rounds.
pub fn to_json(records: &[Record]) -> Value {
    let mut scenarios = serde_json::Map::new();
    for scenario in Scenario::ALL {
        let rows: Vec<Value> = rows(records, scenario).iter().map(row_json).collect();
        if !rows.is_empty() {
            scenarios.insert(scenario.name().to_owned(), rows.into());
        }
    }
    scenarios.into()
}

fn row_json(row: &Row) -> Value {
    let Row { case, name, unit, samples } = row;
    let mut subjects = serde_json::Map::new();
    for (who, samples) in samples {
        let (min, max) = samples.range().unwrap_or_default();
        let median = samples.median();
        let value = json!({"median": median, "min": min, "max": max, "all": samples.all()});
        subjects.insert(who.key().to_owned(), value);
    }
    json!({
        "case": case,
        "measure": name,
        "unit": unit.key(),
        "subjects": subjects,
        "ratio": row.ratio_to_endpointd(Subject::Kcm),
        "ratio_unthrottled": row.ratio_to_endpointd(Subject::KcmUnthrottled),
    })
}

impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(case: &str, who: Subject, value: f64) -> Record {
        let measures = vec![Measure::new("time", Unit::Seconds, value)];
        Record { scenario: Scenario::ColdStart, case: case.into(), who, measures }
    }

    #[test]
    fn rows_aggregate_rounds() {
        let records = [
            record("small", Subject::Endpointd, 2.0),
            record("large", Subject::Endpointd, 9.0),
            record("small", Subject::Kcm, 30.0),
            record("small", Subject::Endpointd, 4.0),
        ];
        let rows = rows(&records, Scenario::ColdStart);
        assert_eq!(rows.iter().map(|row| &*row.case).collect::<Vec<_>>(), ["small", "large"]);
        assert_eq!(rows[0].median(Subject::Endpointd), Some(3.0));
        assert_eq!(rows[0].ratio_to_endpointd(Subject::Kcm), Some(10.0));
        assert_eq!(rows[1].ratio_to_endpointd(Subject::Kcm), None);
    }

    #[test]
    fn show_prints_three_significant_digits() {
        let shown = [0.01234, 1.2345, 12.345, 123.45, 7.0].map(short);
        assert_eq!(shown, ["0.012", "1.23", "12.3", "123", "7"].map(String::from));
        assert_eq!(Unit::Milliseconds.show(9876.5), "9876 ms");
        assert_eq!(Unit::Milliseconds.show(15_014.0), "15.0 s");
        assert_eq!(Unit::Bytes.show(480.0), "480 B");
        assert_eq!(Unit::Bytes.show(560e6), "560 MB");
    }

    #[test]
    fn to_json_has_all_rounds_and_the_ratio() {
        let records = [record("a", Subject::Endpointd, 2.0), record("a", Subject::Kcm, 5.0)];
        let json = to_json(&records);
        assert_eq!(json["cold-start"][0]["ratio"], 2.5);
        assert_eq!(json["cold-start"][0]["subjects"]["kcm"]["all"][0], 5.0);
    }
}
