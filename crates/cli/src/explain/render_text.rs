//! The findings for people: the verdict, then a line for each finding, worst first, in a section for
//! each layer. On a terminal, long lines are broken; elsewhere each finding is one line.

use std::collections::BTreeMap;

use endpointd_explain::{Code, Finding, Findings, Layer, Level, ReadyEndpoint};

use super::answers::{Answer, Question};
use super::flags::Format;
use super::label::{READY, label};
use super::render_json::verdict;
use crate::cli_error::CliError;
use crate::terminal::{Style, Terminal};

/// Lines of one kind; `-o wide` and the JSON have all.
const SAME_KIND_MAX: usize = 10;
/// Mark, label, and the spaces around them.
const LABEL_WIDTH: usize = 11;
const MESSAGE_COLUMN: usize = 2 + 2 + LABEL_WIDTH + 2;
/// `  EPD103`.
const CODE_WIDTH: usize = 8;
const DOCUMENTATION: &str = "docs/explain.md";

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    /// Few lines of one kind, no evidence.
    Brief,
    Full,
}

impl Detail {
    pub fn of(format: Format) -> Self {
        match format {
            Format::Wide => Self::Full,
            Format::Text | Format::Json | Format::Yaml => Self::Brief,
        }
    }
}

/// The error if the object does not exist.
pub fn not_found(findings: &Findings) -> CliError {
    let near = findings.findings.iter().find_map(|finding| finding.near_miss.clone());
    let kind = findings.object.kind.to_lowercase();
    let list = format!("`kubectl -n {} get {kind}` lists what there is", findings.object.namespace);
    match findings.verdict.split_once(". ") {
        Some((verdict, hint)) => CliError::new(verdict, near.unwrap_or_else(|| hint.to_owned())),
        None => CliError::new(findings.verdict.trim_end_matches('.'), near.unwrap_or(list)),
    }
}

pub fn render(
    terminal: &Terminal,
    detail: Detail,
    question: &Question,
    answers: &[&Answer],
    n_all: usize,
) -> String {
    let page = Page { terminal, detail };
    let mut out = String::new();
    match question {
        Question::One(_) => answers.iter().for_each(|one| page.answer(&mut out, &one.findings)),
        Question::All(_) => page.many(&mut out, answers, n_all),
    }
    let mut codes = answers.iter().flat_map(|one| &one.findings.findings);
    if let Some(first) = codes.find(|finding| finding.code != Code::AllWell) {
        let anchor = first.code.to_string().to_lowercase();
        let line = format!("The codes are explained in {DOCUMENTATION}#{anchor}");
        out.push_str(&format!("\n{}\n", terminal.paint(Style::Dim, &line)));
    }
    out
}

struct Page<'a> {
    terminal: &'a Terminal,
    detail: Detail,
}

impl Page<'_> {
    /// Services without problems have one line each.
    fn many(&self, out: &mut String, answers: &[&Answer], n_all: usize) {
        let (bad, good): (Vec<&Answer>, Vec<&Answer>) =
            answers.iter().copied().partition(|one| one.needs_attention());
        for answer in &bad {
            self.answer(out, &answer.findings);
            out.push('\n');
        }
        for answer in good {
            let mark = self.terminal.paint(Style::Good, "√");
            out.push_str(&format!("{mark} {}\n", answer.findings.verdict));
        }
        let line = verdict(bad.len(), n_all);
        let separator = if out.is_empty() || out.ends_with("\n\n") { "" } else { "\n" };
        out.push_str(&format!("{separator}{}\n", self.terminal.paint(Style::Bold, &line)));
    }

    fn answer(&self, out: &mut String, findings: &Findings) {
        let verdict = self.terminal.wrap(&findings.verdict, 0).join("\n");
        out.push_str(&format!("{}\n", self.terminal.paint(Style::Bold, &verdict)));
        let sections = sections(findings);
        for section in &sections {
            out.push('\n');
            if sections.len() > 1 {
                out.push_str(&format!("{}\n", self.terminal.paint(Style::Dim, section.title)));
            }
            self.findings(out, &section.findings);
            self.endpoints(out, section.endpoints);
        }
        if !findings.not_read.is_empty() {
            out.push('\n');
            for what in &findings.not_read {
                self.line(
                    out,
                    &Line {
                        mark: "?",
                        style: Style::Warning,
                        label: "not read",
                        text: what,
                        code: "",
                    },
                );
            }
        }
    }

    fn findings(&self, out: &mut String, findings: &[&Finding]) {
        let mut n_by_code: BTreeMap<Code, usize> = BTreeMap::new();
        for finding in findings {
            *n_by_code.entry(finding.code).or_default() += 1;
        }
        let mut n_shown: BTreeMap<Code, usize> = BTreeMap::new();
        for finding in findings {
            let shown = n_shown.entry(finding.code).or_default();
            *shown += 1;
            match self.detail {
                Detail::Brief if *shown > SAME_KIND_MAX + 1 => {}
                Detail::Brief if *shown > SAME_KIND_MAX => {
                    let n_more = n_by_code[&finding.code] - SAME_KIND_MAX;
                    self.more(out, n_more, "for the same reason", finding.code);
                }
                Detail::Brief | Detail::Full => self.finding(out, finding),
            }
        }
    }

    fn more(&self, out: &mut String, n: usize, why: &str, code: Code) {
        let text = format!("and {n} more {why}");
        let code = code.to_string();
        self.line(out, &Line { mark: " ", style: Style::Dim, label: "", text: &text, code: &code });
    }

    fn finding(&self, out: &mut String, finding: &Finding) {
        let (mark, style) = match finding.level {
            Level::Error => ("×", Style::Bad),
            Level::Warning => ("!", Style::Warning),
            Level::Info => ("·", Style::Dim),
        };
        let (label, code) = (label(finding.code), finding.code.to_string());
        self.line(out, &Line { mark, style, label, text: &finding.message, code: &code });
        if let Some(near) = &finding.near_miss {
            self.detail_line(out, "hint: ", near);
        }
        if let Some(command) = &finding.command {
            self.detail_line(out, "try:  ", command);
        }
        if self.detail == Detail::Full {
            finding.evidence.iter().for_each(|fact| self.detail_line(out, "seen: ", fact));
        }
    }

    fn endpoints(&self, out: &mut String, endpoints: &[ReadyEndpoint]) {
        let n_max = match self.detail {
            Detail::Brief => SAME_KIND_MAX,
            Detail::Full => usize::MAX,
        };
        let width = endpoints.iter().take(n_max).map(|one| one.pod.len()).max().unwrap_or_default();
        for endpoint in endpoints.iter().take(n_max) {
            let text = format!("{:width$}  {}", endpoint.pod, place(endpoint));
            self.line(
                out,
                &Line {
                    mark: "√",
                    style: Style::Good,
                    label: READY,
                    text: text.trim_end(),
                    code: "",
                },
            );
        }
        let n_more = endpoints.len().saturating_sub(n_max);
        if n_more > 0 {
            let text = format!("and {n_more} more");
            self.line(
                out,
                &Line { mark: " ", style: Style::Dim, label: "", text: &text, code: "" },
            );
        }
    }

    fn line(&self, out: &mut String, line: &Line) {
        let Line { mark, style, label, text, code } = line;
        let room = if code.is_empty() { 0 } else { CODE_WIDTH };
        let lines = self.terminal.wrap(text, MESSAGE_COLUMN + room);
        let (mark, padded) = (
            self.terminal.paint(*style, mark),
            self.terminal.paint(*style, &format!("{label:LABEL_WIDTH$}")),
        );
        out.push_str(&format!("  {mark} {padded}  "));
        let last = lines.len().saturating_sub(1);
        for (at, text) in lines.iter().enumerate() {
            if at > 0 {
                out.push_str(&" ".repeat(MESSAGE_COLUMN));
            }
            out.push_str(text);
            if at == last && !code.is_empty() {
                let free = self.terminal.width.map_or(0, |width| {
                    width.saturating_sub(MESSAGE_COLUMN + CODE_WIDTH + text.chars().count())
                });
                out.push_str(&" ".repeat(free + 2));
                out.push_str(&self.terminal.paint(Style::Dim, code));
            }
            out.push('\n');
        }
    }

    /// A command must stay one line, so that it can be copied.
    fn detail_line(&self, out: &mut String, name: &str, text: &str) {
        let column = MESSAGE_COLUMN + name.len();
        let lines = match name.starts_with("try") {
            true => vec![text.to_owned()],
            false => self.terminal.wrap(text, column),
        };
        let name = self.terminal.paint(Style::Dim, name);
        for (at, text) in lines.iter().enumerate() {
            match at {
                0 => out.push_str(&format!("{}{name}{text}\n", " ".repeat(MESSAGE_COLUMN))),
                _ => out.push_str(&format!("{}{text}\n", " ".repeat(column))),
            }
        }
    }
}

struct Line<'a> {
    mark: &'a str,
    style: Style,
    label: &'a str,
    text: &'a str,
    code: &'a str,
}

/// `10.0.0.1:8080 in zone-a, in slice web-x7k2p`.
fn place(endpoint: &ReadyEndpoint) -> String {
    let mut text = endpoint.addresses.join(", ");
    if let Some(zone) = &endpoint.zone {
        text.push_str(&format!(" in {zone}"));
    }
    if !endpoint.slices.is_empty() {
        text.push_str(&format!(", published in {}", endpoint.slices.join(", ")));
    }
    text
}

/// The findings about one layer.
struct Section<'a> {
    title: &'static str,
    worst: Level,
    findings: Vec<&'a Finding>,
    endpoints: &'a [ReadyEndpoint],
}

/// What should be, what is published, and what clients make of it; the worst first.
fn sections(all: &Findings) -> Vec<Section<'_>> {
    let layers = [
        (Layer::Plan, "What should be published"),
        (Layer::Published, "What is published"),
        (Layer::Clients, "What kube-proxy and DNS make of it"),
    ];
    let mut sections = Vec::new();
    for (layer, title) in layers {
        let findings: Vec<&Finding> =
            all.findings.iter().filter(|finding| finding.code.layer() == layer).collect();
        let endpoints = if layer == Layer::Plan { all.endpoints.as_slice() } else { &[] };
        let worst = findings.iter().map(|finding| finding.level).min().unwrap_or(Level::Info);
        if !findings.is_empty() || !endpoints.is_empty() {
            sections.push(Section { title, worst, findings, endpoints });
        }
    }
    sections.sort_by_key(|section| section.worst);
    sections
}
