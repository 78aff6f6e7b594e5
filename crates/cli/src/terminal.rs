//! How text is shown: colours and line length on a terminal, plain lines elsewhere.

use std::env;

use comfy_table::Table;

/// Lines longer than this are hard to read, however wide the terminal is.
const WIDTH_MAX: usize = 140;
/// In a narrower terminal, the terminal breaks the lines.
const WIDTH_MIN: usize = 60;

/// Whether colours are wanted; see <https://no-color.org>. Whether the output is a terminal is
/// another question.
pub fn wants_colours() -> bool {
    let is_set = |name| env::var_os(name).is_some_and(|value| !value.is_empty());
    let is_dumb = env::var_os("TERM").is_some_and(|value| value == "dumb");
    !is_set("NO_COLOR") && !is_dumb
}

/// Standard output.
#[derive(Clone, Copy, Debug)]
pub struct Terminal {
    has_colours: bool,
    /// Where lines are broken; `None`: nowhere, because the output is no terminal.
    pub width: Option<usize>,
}

/// The meaning of a piece of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    Bold,
    Dim,
    Good,
    Warning,
    Bad,
}

impl Terminal {
    pub fn of_stdout() -> Self {
        let table = Table::new();
        let width = table.width().filter(|_| table.is_tty()).map(usize::from);
        Self {
            has_colours: width.is_some() && wants_colours(),
            width: width.filter(|width| *width >= WIDTH_MIN).map(|width| width.min(WIDTH_MAX)),
        }
    }

    pub fn paint(&self, style: Style, text: &str) -> String {
        let code = match style {
            Style::Bold => "1",
            Style::Dim => "2",
            Style::Good => "32",
            Style::Warning => "33",
            Style::Bad => "31",
        };
        match self.has_colours && !text.is_empty() {
            true => format!("\x1b[{code}m{text}\x1b[0m"),
            false => text.to_owned(),
        }
    }

    /// The lines of a text that starts at this column.
    pub fn wrap(&self, text: &str, column: usize) -> Vec<String> {
        match self.width {
            Some(width) => wrap(text, width.saturating_sub(column)),
            None => vec![text.to_owned()],
        }
    }
}

/// A word longer than a line stays whole.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        let length = |text: &str| text.chars().count();
        match lines.last_mut() {
            Some(line) if length(line) + 1 + length(word) <= width => {
                line.push(' ');
                line.push_str(word);
            }
            Some(_) | None => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_broken_between_words() {
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("one two three", 13), ["one two three"]);
        assert_eq!(wrap("a-word-that-is-too-long b", 5), ["a-word-that-is-too-long", "b"]);
        let plain = Terminal { has_colours: false, width: None };
        assert_eq!(plain.wrap("one two three", 80), ["one two three"]);
    }

    #[test]
    fn colours_are_for_terminals() {
        let paint = |has_colours| Terminal { has_colours, width: None }.paint(Style::Bad, "x");
        assert_eq!(paint(false), "x");
        assert_eq!(paint(true), "\x1b[31mx\x1b[0m");
    }
}
