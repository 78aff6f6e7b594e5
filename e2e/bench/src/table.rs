//! Records as text tables.

use comfy_table::presets::UTF8_BORDERS_ONLY;
use comfy_table::{CellAlignment, ContentArrangement, Table};

use crate::record::{Record, Row, Scenario, rows};
use crate::statistics::{Samples, show_ratio};
use crate::subject::Subject;

/// The table of a scenario; `None` without measurements.
pub fn table(records: &[Record], scenario: Scenario) -> Option<String> {
    let rows = rows(records, scenario);
    let mut columns: Vec<Subject> =
        rows.iter().flat_map(|row| row.samples.iter().map(|(who, _)| *who)).collect();
    columns.sort_unstable();
    columns.dedup();
    if columns.is_empty() {
        return None;
    }
    let compared: Vec<Subject> = columns
        .iter()
        .copied()
        .filter(|who| columns.contains(&Subject::Endpointd) && *who != Subject::Endpointd)
        .collect();
    let mut table = Table::new();
    table.load_style(UTF8_BORDERS_ONLY).set_content_arrangement(ContentArrangement::Dynamic);
    let ratios = compared.iter().map(|who| format!("{} / endpointd", who.key()));
    let header = columns.iter().map(|who| who.key().to_owned()).chain(ratios);
    table.set_header([String::new(), String::new()].into_iter().chain(header));
    let mut case = "";
    for row in &rows {
        let shown = if row.case == case { "" } else { &row.case };
        case = &row.case;
        table.add_row(cells(row, shown, &columns, &compared));
    }
    for column in table.column_iter_mut().skip(2) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    Some(format!("{}\n{table}", scenario.title()))
}

fn cells(row: &Row, case: &str, columns: &[Subject], compared: &[Subject]) -> Vec<String> {
    let mut cells = vec![case.to_owned(), row.name.clone()];
    cells.extend(
        columns
            .iter()
            .map(|who| row.of(*who).map_or_else(String::new, |samples| with_spread(row, samples))),
    );
    cells.extend(
        compared
            .iter()
            .map(|who| row.ratio_to_endpointd(*who).map_or_else(String::new, show_ratio)),
    );
    cells
}

/// The median, with minimum and maximum if they differ.
fn with_spread(row: &Row, samples: &Samples) -> String {
    let median = row.unit.show(samples.median().unwrap_or_default());
    match samples.range() {
        Some((min, max)) if samples.all().len() > 1 && min < max => {
            format!("{median} ({} – {})", row.unit.show(min), row.unit.show(max))
        }
        _ => median,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Measure, Unit};

    #[test]
    fn table_shows_ratios_to_endpointd() {
        let record = |who, value| Record {
            scenario: Scenario::Idle,
            case: "20 pods".into(),
            who,
            measures: vec![Measure::new("CPU", Unit::Seconds, value)],
        };
        let records = [
            record(Subject::Endpointd, 0.5),
            record(Subject::Endpointd, 0.7),
            record(Subject::Kcm, 6.0),
        ];
        let table = table(&records, Scenario::Idle).unwrap();
        assert!(table.contains("0.600 s (0.500 s – 0.700 s)"), "{table}");
        assert!(table.contains("kcm / endpointd"), "{table}");
        assert!(table.contains("10×"), "{table}");
        assert_eq!(super::table(&records, Scenario::Churn), None);
    }
}
