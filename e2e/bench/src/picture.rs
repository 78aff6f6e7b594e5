//! One picture per scenario: bars side by side, a group for each measure. Plain SVG, without script
//! or font of its own, readable on light and on dark pages.

use crate::contender::Contender;
use crate::record::{Record, Row, Scenario, rows};

const WIDTH: f64 = 780.0;
const LABELS: f64 = 250.0;
const BARS: f64 = 400.0;
const BAR: f64 = 14.0;
const GAP: f64 = 10.0;
const HEADING: f64 = 26.0;

/// The picture of a scenario; none if nothing was measured.
pub fn picture(records: &[Record], scenario: Scenario, caption: &str) -> Option<String> {
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

/// What people compare: not what the harness says about itself.
fn is_shown(row: &Row) -> bool {
    let is_own = ["of this harness", "sent late"].iter().any(|part| row.name.contains(part));
    let is_something = row.samples.iter().any(|(who, _)| row.median(*who) > Some(0.0));
    !is_own && is_something
}

struct Canvas {
    body: String,
    y: f64,
}

impl Canvas {
    fn legend(&mut self, rows: &[&Row]) {
        let mut all: Vec<Contender> =
            rows.iter().flat_map(|row| row.samples.iter().map(|(who, _)| *who)).collect();
        all.sort_unstable();
        all.dedup();
        self.y += BAR;
        for (number, who) in all.into_iter().enumerate() {
            let x = 260.0 * number as f64;
            self.bar(x, 12.0, who);
            self.text(x + 18.0, "value", &who.to_string());
        }
        self.y += GAP;
    }

    fn bars(&mut self, row: &Row) {
        let ranges = row.samples.iter().filter_map(|(_, samples)| samples.range());
        let largest = ranges.map(|(_, max)| max).fold(f64::MIN_POSITIVE, f64::max);
        self.y += GAP + BAR;
        self.text(0.0, "name", &row.name);
        self.y -= BAR;
        for (who, samples) in &row.samples {
            let Some(median) = samples.median() else { continue };
            self.y += BAR;
            let length = (BARS * median / largest).max(1.0);
            self.bar(LABELS, length, *who);
            let mut end = length;
            if let Some((min, max)) = samples.range().filter(|(min, max)| min < max) {
                end = end.max(BARS * max / largest);
                self.whisker(LABELS + BARS * min / largest, LABELS + end);
            }
            let ratio = (*who != Contender::Ours).then(|| row.ratio_to_ours(*who)).flatten();
            let ratio = ratio.map_or_else(String::new, |ratio| format!("  {ratio:.1}×"));
            let text = format!("{}{ratio}", row.unit.show(median));
            self.text(LABELS + end + 8.0, "value", &text);
        }
    }

    fn bar(&mut self, x: f64, length: f64, who: Contender) {
        let (y, height) = (self.y - BAR + 3.0, BAR - 3.0);
        self.body += &format!(
            "<rect class=\"{}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{length:.1}\" \
             height=\"{height:.1}\"/>\n",
            who.key()
        );
    }

    /// From the smallest to the largest of all rounds.
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
.kcm { fill: #8a94a6 } .kcm-raised { fill: #c3cad6 } .endpointd { fill: #d9662b } .floor { fill: #4c9f70 }
.whisker { stroke: #444; stroke-width: 1; fill: none }
@media (prefers-color-scheme: dark) { text { fill: #ddd } .whisker { stroke: #eee } }
</style>
";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Measure, Unit};

    fn record(who: Contender, value: f64) -> Record {
        let measures = vec![
            Measure::new("time", Unit::Seconds, value),
            Measure::new("CPU of this harness", Unit::Seconds, 9.0),
        ];
        Record { scenario: Scenario::Idle, case: "a < b".into(), who, measures }
    }

    #[test]
    fn the_longest_bar_is_the_largest() {
        let records = [record(Contender::Ours, 1.0), record(Contender::Peer, 4.0)];
        let svg = picture(&records, Scenario::Idle, "here").unwrap();
        assert!(svg.contains("<rect class=\"kcm\" x=\"250.0\" y=\""), "{svg}");
        assert!(svg.contains("width=\"400.0\""), "{svg}");
        assert!(svg.contains("width=\"100.0\""), "{svg}");
        assert!(svg.contains("4 s  4.0×"), "{svg}");
        assert!(svg.contains("a &lt; b"), "{svg}");
        assert!(!svg.contains("harness"), "{svg}");
    }

    #[test]
    fn rounds_that_differ_have_a_whisker() {
        let one = [record(Contender::Ours, 1.0)];
        assert!(!picture(&one, Scenario::Idle, "").unwrap().contains("class=\"whisker\""));
        let two = [record(Contender::Ours, 1.0), record(Contender::Ours, 2.0)];
        assert!(picture(&two, Scenario::Idle, "").unwrap().contains("class=\"whisker\""));
    }

    #[test]
    fn nothing_measured_is_no_picture() {
        assert_eq!(picture(&[], Scenario::Idle, ""), None);
    }
}
