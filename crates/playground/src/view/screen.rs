//! Draws pages on the alternate screen of a terminal and restores the terminal at the end.

use std::io::{self, Write};

use crossterm::terminal::{
    BeginSynchronizedUpdate, Clear, ClearType, EndSynchronizedUpdate, EnterAlternateScreen,
    LeaveAlternateScreen,
};
use crossterm::{QueueableCommand, cursor, terminal};

use super::Line;

/// If the terminal does not report its size.
const SIZE_DEFAULT: (usize, usize) = (80, 24);

/// Restores the terminal when dropped.
pub struct Screen<W: Write> {
    out: W,
    colours: Colours,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colours {
    On,
    Off,
}

impl<W: Write> Screen<W> {
    pub fn open(mut out: W, colours: Colours) -> io::Result<Self> {
        out.queue(EnterAlternateScreen)?.queue(cursor::Hide)?.flush()?;
        Ok(Self { out, colours })
    }

    /// Overwrites the old page line by line in one write. Clearing it first would flicker.
    pub fn draw(&mut self, lines: &[Line]) -> io::Result<()> {
        let mut frame = Vec::new();
        frame.queue(BeginSynchronizedUpdate)?;
        for (row, line) in (0_u16..).zip(lines) {
            frame.queue(cursor::MoveTo(0, row))?;
            let text = match self.colours {
                Colours::On => line.coloured(),
                Colours::Off => line.uncoloured(),
            };
            frame.write_all(text.as_bytes())?;
            frame.queue(Clear(ClearType::UntilNewLine))?;
        }
        frame.queue(Clear(ClearType::FromCursorDown))?.queue(EndSynchronizedUpdate)?;
        self.out.write_all(&frame)?;
        self.out.flush()
    }
}

/// Columns and rows.
pub fn size() -> (usize, usize) {
    match terminal::size() {
        Ok((columns, rows)) if columns > 0 && rows > 0 => (columns.into(), rows.into()),
        Ok(_) | Err(_) => SIZE_DEFAULT,
    }
}

impl<W: Write> Drop for Screen<W> {
    fn drop(&mut self) {
        // Fails only if the terminal is closed.
        let closed = self.out.queue(cursor::Show).and_then(|out| out.queue(LeaveAlternateScreen));
        let _ = closed.and_then(|out| out.flush());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_overwrites_the_last_one_and_the_terminal_is_restored() {
        let mut out = Vec::new();
        let mut screen = Screen::open(&mut out, Colours::Off).expect("memory can be written");
        screen.draw(&[Line::plain("one"), Line::plain("two")]).expect("memory can be written");
        drop(screen);
        let text = String::from_utf8(out).expect("UTF-8");
        assert!(!text.contains("\x1b[2J"), "clearing everything first flickers: {text:?}");
        assert!(text.contains("\x1b[1;1Hone\x1b[K\x1b[2;1Htwo\x1b[K"), "{text:?}");
        assert!(text.starts_with("\x1b[?1049h") && text.ends_with("\x1b[?1049l"), "{text:?}");
    }
}
