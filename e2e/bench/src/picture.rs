//! One picture per scenario: bars side by side, a group for each measure. Plain SVG, without script
//! or font of its own, readable on light and on dark pages.

use crate::contender::Contender;
use crate::record::{Record, Row, Scenario, rows};
use crate::statistics::{Samples, show_ratio};

const WIDTH: f64 = 780.0;
const LABELS: f64 = 250.0;
const BARS: f64 = 400.0;
const BAR: f64 = 14.0;
const GAP: f64 = 10.0;
const HEADING: f64 = 26.0;
/// About as wide as a letter of the legend; fonts differ, so it is generous.
const LETTER: f64 = 6.0;
/// Who needs more than so many times as much as anybody else, in every round, is cut off.
const DWARFS_FROM: f64 = 8.0;
/// How much of the width the others may use then.
const LEFT_TO_OTHERS: f64 = 0.75;

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

/// What a bar of full length stands for: the largest number, unless that would make slivers of at
/// least two others, which are what people compare then.
fn full_length(row: &Row) -> f64 {
    let mut ranges: Vec<(f64, f64)> =
        row.samples.iter().filter_map(|(_, samples)| samples.range()).collect();
    ranges.sort_by(|(_, one), (_, other)| one.total_cmp(other));
    match ranges.as_slice() {
        [_, .., (_, second), (least, _)] if *second > 0.0 && *least > DWARFS_FROM * second => {
            second / LEFT_TO_OTHERS
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
        let mut all: Vec<Contender> =
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
            let ratio = (*who != Contender::Ours).then(|| row.ratio_to_ours(*who)).flatten();
            let ratio = ratio.map_or_else(String::new, |ratio| format!(" · {}", show_ratio(ratio)));
            let text = format!("{}{ratio}", row.unit.show(median));
            self.text(LABELS + end + 8.0, "value", &text);
        }
    }

    /// How far it reaches.
    fn bar_with_whisker(
        &mut self,
        who: Contender,
        samples: &Samples,
        median: f64,
        full: f64,
    ) -> f64 {
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

    fn bar(&mut self, x: f64, length: f64, who: Contender) {
        let (y, height) = (self.y - BAR + 3.0, BAR - 3.0);
        self.body += &format!(
            "<rect class=\"{}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{length:.1}\" \
             height=\"{height:.1}\"/>\n",
            who.key()
        );
    }

    /// A gap in a bar that would be much longer.
    fn cut(&mut self) {
        let (x, y) = (LABELS + BARS * f64::midpoint(LEFT_TO_OTHERS, 1.0), self.y + 1.5);
        self.body += &format!("<path class=\"cut\" d=\"M{x:.1} {y:.1}l6 -{:.1}\"/>\n", BAR + 1.0);
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
.whisker { stroke: #444; stroke-width: 1; fill: none } .cut { stroke: #fff; stroke-width: 4 }
@media (prefers-color-scheme: dark) { text { fill: #ddd } .whisker { stroke: #eee } .cut { stroke: #111 } }
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
        assert!(svg.contains("4 s · 4.0×"), "{svg}");
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
    fn a_bar_that_dwarfs_two_others_is_cut_and_they_stay_comparable() {
        let others = [record(Contender::Ours, 1.0), record(Contender::PeerRaised, 2.0)];
        let with = |value| {
            let records = [&others[..], &[record(Contender::Peer, value)]].concat();
            picture(&records, Scenario::Idle, "").unwrap()
        };
        let (near, far) = (with(8.0), with(500.0));
        assert!(!near.contains("class=\"cut\""), "{near}");
        assert!(far.contains("class=\"cut\"") && far.contains("500 s · 500×"), "{far}");
        assert!(far.contains("width=\"300.0\"") && far.contains("width=\"150.0\""), "{far}");
    }

    #[test]
    fn the_legend_has_room_for_everybody() {
        let all = [Contender::Peer, Contender::PeerRaised, Contender::Ours, Contender::Floor];
        let records = all.map(|who| record(who, 1.0));
        let svg = picture(&records, Scenario::Idle, "").unwrap();
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
    fn one_against_one_is_never_cut() {
        let records = [record(Contender::Ours, 1.0), record(Contender::Peer, 500.0)];
        assert!(!picture(&records, Scenario::Idle, "").unwrap().contains("class=\"cut\""));
    }

    #[test]
    fn nothing_measured_is_no_picture() {
        assert_eq!(picture(&[], Scenario::Idle, ""), None);
    }
}
