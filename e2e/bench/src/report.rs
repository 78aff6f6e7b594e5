//! The output of a run: tables, JSON, and charts for the documentation.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::chart::chart;
use crate::machine;
use crate::record::{Record, Scenario, to_json};
use crate::scale::Scale;
use crate::table::table;
use crate::targets::{Target, show, targets};

/// The records of a run and their origin.
pub struct Report<'a> {
    pub records: &'a [Record],
    pub scale: &'a Scale,
    /// The command line, as a user types it.
    pub command: &'a str,
    /// Machine, versions, commit; collected before the run writes files.
    pub origin: &'a str,
}

impl Report<'_> {
    /// Tables and targets.
    pub fn text(&self) -> String {
        let tables = Scenario::ALL.iter().filter_map(|scenario| table(self.records, *scenario));
        let mut text: String = tables.map(|table| format!("{table}\n\n")).collect();
        let targets = targets(self.records);
        if !targets.is_empty() {
            text += &format!("targets\n{}", show(&targets));
        }
        text
    }

    pub fn json(&self) -> Value {
        let target = |target: &Target| {
            let Target { name, limit, measured, is_met } = target;
            json!({"name": name, "limit": limit, "measured": measured, "met": is_met})
        };
        let targets: Vec<Value> = targets(self.records).iter().map(target).collect();
        json!({
            "command": self.command,
            "rounds": self.scale.n_rounds,
            "scenarios": to_json(self.records),
            "targets": targets,
        })
    }

    /// Writes the chart and the table of one scenario. Returns the paths.
    pub fn write(&self, scenario: Scenario, directory: &Path) -> Result<Vec<PathBuf>> {
        fs::create_dir_all(directory)
            .with_context(|| format!("cannot create `{}`", directory.display()))?;
        let caption = machine::caption(self.scale);
        let (Some(svg), Some(table)) =
            (chart(self.records, scenario, &caption), table(self.records, scenario))
        else {
            return Ok(Vec::new());
        };
        let of_scenario: Vec<Record> =
            self.records.iter().filter(|one| one.scenario == scenario).cloned().collect();
        let targets = show(&targets(&of_scenario));
        let text = format!("{}\n{table}\n\n{targets}", self.origin);
        let mut written = Vec::new();
        for (ending, content) in [("svg", svg), ("txt", text)] {
            let path = directory.join(format!("{scenario}.{ending}"));
            fs::write(&path, content)
                .with_context(|| format!("cannot write `{}`", path.display()))?;
            written.push(path);
        }
        Ok(written)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Measure, Unit};
    use crate::subject::Subject;

    #[test]
    fn report_writes_chart_and_table_of_a_measured_scenario() {
        let record = |who, value| Record {
            scenario: Scenario::Idle,
            case: "20 pods".into(),
            who,
            measures: vec![Measure::new("CPU", Unit::Seconds, value)],
        };
        let records = [record(Subject::Endpointd, 1.0), record(Subject::Kcm, 5.0)];
        let (scale, command) = (&Scale::tiny(), "cargo xtask bench idle");
        let origin = &machine::describe(command, scale);
        let report = Report { records: &records, scale, command, origin };
        let directory = std::env::temp_dir().join(format!("bench-report-{}", std::process::id()));
        let written = report.write(Scenario::Idle, &directory).unwrap();
        let names: Vec<_> = written.iter().filter_map(|path| path.file_name()).collect();
        assert_eq!(names, ["idle.svg", "idle.txt"]);
        let text = fs::read_to_string(&written[1]).unwrap();
        fs::remove_dir_all(&directory).unwrap();
        assert!(text.starts_with("command: cargo xtask bench idle\n"), "{text}");
        assert!(text.contains("processor: ") && text.contains("5.0×"), "{text}");
        assert_eq!(report.json()["scenarios"]["idle"][0]["ratio"], 5.0);
    }
}
