//! A line of coloured pieces with a known width.

use std::fmt::Write;

/// Named by meaning; views must be readable without colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colour {
    Plain,
    Strong,
    Faint,
    Good,
    Wait,
    Bad,
}

impl Colour {
    fn code(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Strong => "\x1b[1m",
            Self::Faint => "\x1b[2m",
            Self::Good => "\x1b[32m",
            Self::Wait => "\x1b[33m",
            Self::Bad => "\x1b[31m",
        }
    }
}

/// Assumes that all characters are one column wide.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Line {
    pieces: Vec<(Colour, String)>,
}

impl Line {
    pub fn plain(text: impl Into<String>) -> Self {
        Self::default().with(Colour::Plain, text)
    }

    #[must_use]
    pub fn with(mut self, colour: Colour, text: impl Into<String>) -> Self {
        self.push(colour, text);
        self
    }

    pub fn push(&mut self, colour: Colour, text: impl Into<String>) {
        self.pieces.push((colour, text.into()));
    }

    pub fn width(&self) -> usize {
        self.pieces.iter().map(|(_, text)| text.chars().count()).sum()
    }

    /// Appends blanks up to a width.
    pub fn pad_to(&mut self, width: usize) {
        let n_blanks = width.saturating_sub(self.width());
        self.push(Colour::Plain, " ".repeat(n_blanks));
    }

    pub fn append(&mut self, other: Self) {
        self.pieces.extend(other.pieces);
    }

    /// Truncates to `width`, with `…` at the end.
    #[must_use]
    pub fn cut(self, width: usize) -> Self {
        if self.width() <= width {
            return self;
        }
        let mut n_left = width.saturating_sub(1);
        let mut cut = Self::default();
        for (colour, text) in self.pieces {
            let kept: String = text.chars().take(n_left).collect();
            n_left -= kept.chars().count();
            cut.push(colour, kept);
        }
        if width > 0 {
            cut.push(Colour::Faint, "…");
        }
        cut
    }

    pub fn coloured(&self) -> String {
        let mut text = String::new();
        for (colour, piece) in self.pieces.iter().filter(|(_, piece)| !piece.is_empty()) {
            let end = if *colour == Colour::Plain { "" } else { "\x1b[0m" };
            write!(text, "{}{piece}{end}", colour.code()).expect("text can be written to");
        }
        text
    }

    pub fn uncoloured(&self) -> String {
        self.pieces.iter().map(|(_, text)| text.as_str()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_cut_by_visible_characters() {
        let line = Line::plain("ready ").with(Colour::Good, "12").with(Colour::Bad, " 3");
        assert_eq!(line.width(), 10);
        assert_eq!(line.clone().cut(10).uncoloured(), "ready 12 3");
        assert_eq!(line.clone().cut(8).uncoloured(), "ready 1…");
        assert_eq!(line.clone().cut(0).uncoloured(), "");
        assert_eq!(line.coloured(), "ready \x1b[32m12\x1b[0m\x1b[31m 3\x1b[0m");
    }
}
