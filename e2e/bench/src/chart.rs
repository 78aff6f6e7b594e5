//! One bar chart per scenario, with a group of bars for each measurement. Plain SVG without scripts
//! and fonts, for light and dark pages.

use crate::record::{Record, Row, Scenario, rows};
use crate::statistics::{Samples, show_ratio};
use crate::subject::Subject;

const WIDTH: f64 = 780.0;
const LABELS: f64 = 250.0;
const BARS: f64 = 400.0;
const BAR: f64 = 14.0;
const GAP: f64 = 10.0;
const HEADING: f64 = 26.0;
/// An upper bound for the width of a letter of the legend.
const LETTER: f64 = 6.0;
/// A bar is cut if its minimum is more than this many times the second largest maximum.
const CUT_RATIO: f64 = 8.0;
/// The share of the width for the other bars if one is cut.
const UNCUT_SHARE: f64 = 0.75;

/// The chart of a scenario; `None` without measurements.
pub fn chart(records: &[Record], scenario: Scenario, caption: &str) -> Option<String> {
    let rows = rows(records, scenario);
    let shown: Vec<&Row> = rows.iter().filter(|row| is_shown(row)).collect();
    if shown.is_empty() {
        return None;
    }
    let mut canvas = Canvas { body: String::new(), y: HEADING };
    canvas.text(0.0, "heading", scenario.title());
    canvas.y += 18.0;
    canvas.text(0.0, "caption", caption);
    canvas.y += GAP;
    canvas.legend(&shown);
    let mut case = "";
    for row in shown {
        if row.case != case {
            case = &row.case;
            canvas.y += HEADING;
            canvas.text(0.0, "case", case);
            canvas.y += GAP / 2.0;
        }
        canvas.bars(row);
    }
    Some(canvas.finish())
}

/// Measurements of the harness itself are not shown.
fn is_shown(row: &Row) -> bool {
    let is_own = ["of the harness", "send delay"].iter().any(|part| row.name.contains(part));
    let is_something = row.samples.iter().any(|(who, _)| row.median(*who) > Some(0.0));
    !is_own && is_something
}

/// The value of a bar of full length: the largest, unless at least two other bars would then be too
/// short to compare.
fn full_length(row: &Row) -> f64 {
    let mut ranges: Vec<(f64, f64)> =
        row.samples.iter().filter_map(|(_, samples)| samples.range()).collect();
    ranges.sort_by(|(_, one), (_, other)| one.total_cmp(other));
    match ranges.as_slice() {
        [_, .., (_, second), (least, _)] if *second > 0.0 && *least > CUT_RATIO * second => {
            second / UNCUT_SHARE
        }
        [.., (_, largest)] => largest.max(f64::MIN_POSITIVE),
        [] => f64::MIN_POSITIVE,
    }
}

struct Canvas {
    body: String,
    y: f64,
}

impl Canvas {
    fn legend(&mut self, rows: &[&Row]) {
        let mut all: Vec<Subject> =
            rows.iter().flat_map(|row| row.samples.iter().map(|(who, _)| *who)).collect();
        all.sort_unstable();
        all.dedup();
        self.y += BAR;
        let mut x = 0.0;
        for who in all {
            let name = who.to_string();
            self.bar(x, 12.0, who);
            self.text(x + 18.0, "value", &name);
            x += 18.0 + LETTER * name.len() as f64 + 2.0 * GAP;
        }
        self.y += GAP;
    }

    fn bars(&mut self, row: &Row) {
        let full = full_length(row);
        self.y += GAP + BAR;
        self.text(0.0, "name", &row.name);
        self.y -= BAR;
        for (who, samples) in &row.samples {
            let Some(median) = samples.median() else { continue };
            self.y += BAR;
            let end = self.bar_with_whisker(*who, samples, median, full);
            let ratio =
                (*who != Subject::Endpointd).then(|| row.ratio_to_endpointd(*who)).flatten();
            let ratio = ratio.map_or_else(String::new, |ratio| format!(" · {}", show_ratio(ratio)));
            let text = format!("{}{ratio}", row.unit.show(median));
            self.text(LABELS + end + 8.0, "value", &text);
        }
    }

    /// Draws a bar and returns the x position of its end.
    fn bar_with_whisker(&mut self, who: Subject, samples: &Samples, median: f64, full: f64) -> f64 {
        if median > full {
            self.bar(LABELS, BARS, who);
            self.cut();
            return BARS;
        }
        let length = (BARS * median / full).max(1.0);
        self.bar(LABELS, length, who);
        let Some((min, max)) = samples.range().filter(|(min, max)| min < max) else {
            return length;
        };
        let end = length.max(BARS * max / full);
        self.whisker(LABELS + BARS * min / full, LABELS + end);
        end
    }

    fn bar(&mut self, x: f64, length: f64, who: Subject) {
        let (y, height) = (self.y - BAR + 3.0, BAR - 3.0);
        self.body += &format!(
            "<rect class=\"{}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{length:.1}\" \
             height=\"{height:.1}\"/>\n",
            who.key()
        );
    }

    /// Draws the gap of a cut bar.
    fn cut(&mut self) {
        let (x, y) = (LABELS + BARS * f64::midpoint(UNCUT_SHARE, 1.0), self.y + 1.5);
        self.body += &format!("<path class=\"cut\" d=\"M{x:.1} {y:.1}l6 -{:.1}\"/>\n", BAR + 1.0);
    }

    /// Draws the range of all rounds.
    fn whisker(&mut self, from: f64, to: f64) {
        let y = self.y - BAR / 2.0 + 1.5;
        self.body += &format!(
            "<path class=\"whisker\" d=\"M{from:.1} {y:.1}H{to:.1}M{from:.1} {:.1}v6M{to:.1} \
             {:.1}v6\"/>\n",
            y - 3.0,
            y - 3.0
        );
    }

    fn text(&mut self, x: f64, class: &str, text: &str) {
        let text = text.replace('&', "&amp;").replace('<', "&lt;");
        self.body +=
            &format!("<text class=\"{class}\" x=\"{x:.1}\" y=\"{:.1}\">{text}</text>\n", self.y);
    }

    fn finish(self) -> String {
        let height = self.y + 2.0 * GAP;
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"-16 0 {:.0} {height:.0}\" \
             width=\"{:.0}\" font-family=\"system-ui, sans-serif\" font-size=\"12\">\n{STYLE}{}\
             </svg>\n",
            WIDTH + 32.0,
            WIDTH + 32.0,
            self.body
        )
    }
}

const STYLE: &str = "<style>
text { fill: #222 } .heading { font-size: 16px; font-weight: 600 } .case { font-weight: 600 }
.caption { fill: #777; font-size: 11px } .value { font-size: 11px }
.kcm { fill: #8a94a6 } .kcm-unthrottled { fill: #c3cad6 } .endpointd { fill: #d9662b } .write-only { fill: #4c9f70 }
.whisker { stroke: #444; stroke-width: 1; fill: none } .cut { stroke: #fff; stroke-width: 4 }
@media (prefers-color-scheme: dark) { text { fill: #ddd } .whisker { stroke: #eee } .cut { stroke: #111 } }
</style>
";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Measure, Unit};

    fn record(who: Subject, value: f64) -> Record {
        let measures = vec![
            Measure::new("time", Unit::Seconds, value),
            Measure::new("CPU of the harness", Unit::Seconds, 9.0),
        ];
        Record { scenario: Scenario::Idle, case: "a < b".into(), who, measures }
    }

    #[test]
    fn longest_bar_has_the_largest_value() {
        let records = [record(Subject::Endpointd, 1.0), record(Subject::Kcm, 4.0)];
        let svg = chart(&records, Scenario::Idle, "here").unwrap();
        assert!(svg.contains("<rect class=\"kcm\" x=\"250.0\" y=\""), "{svg}");
        assert!(svg.contains("width=\"400.0\""), "{svg}");
        assert!(svg.contains("width=\"100.0\""), "{svg}");
        assert!(svg.contains("4 s · 4.0×"), "{svg}");
        assert!(svg.contains("a &lt; b"), "{svg}");
        assert!(!svg.contains("harness"), "{svg}");
    }

    #[test]
    fn differing_rounds_have_a_whisker() {
        let one = [record(Subject::Endpointd, 1.0)];
        assert!(!chart(&one, Scenario::Idle, "").unwrap().contains("class=\"whisker\""));
        let two = [record(Subject::Endpointd, 1.0), record(Subject::Endpointd, 2.0)];
        assert!(chart(&two, Scenario::Idle, "").unwrap().contains("class=\"whisker\""));
    }

    #[test]
    fn bar_much_longer_than_two_others_is_cut() {
        let others = [record(Subject::Endpointd, 1.0), record(Subject::KcmUnthrottled, 2.0)];
        let with = |value| {
            let records = [&others[..], &[record(Subject::Kcm, value)]].concat();
            chart(&records, Scenario::Idle, "").unwrap()
        };
        let (near, far) = (with(8.0), with(500.0));
        assert!(!near.contains("class=\"cut\""), "{near}");
        assert!(far.contains("class=\"cut\"") && far.contains("500 s · 500×"), "{far}");
        assert!(far.contains("width=\"300.0\"") && far.contains("width=\"150.0\""), "{far}");
    }

    #[test]
    fn legend_fits_all_subjects() {
        let all = [Subject::Kcm, Subject::KcmUnthrottled, Subject::Endpointd, Subject::WriteOnly];
        let records = all.map(|who| record(who, 1.0));
        let svg = chart(&records, Scenario::Idle, "").unwrap();
        let mut free_from = 0.0;
        for who in all {
            let (before, _) = svg.split_once(&format!(">{who}</text>")).unwrap();
            let (_, x) = before.rsplit_once(" x=\"").unwrap();
            let x: f64 = x.split('"').next().unwrap().parse().unwrap();
            assert!(x >= free_from, "{who} begins at {x}");
            free_from = x + LETTER * who.to_string().len() as f64;
            assert!(free_from <= WIDTH, "{who} ends at {free_from}");
        }
    }

    #[test]
    fn bar_is_not_cut_with_only_one_other() {
        let records = [record(Subject::Endpointd, 1.0), record(Subject::Kcm, 500.0)];
        assert!(!chart(&records, Scenario::Idle, "").unwrap().contains("class=\"cut\""));
    }

    #[test]
    fn chart_without_records_is_none() {
        assert_eq!(chart(&[], Scenario::Idle, ""), None);
    }
}
