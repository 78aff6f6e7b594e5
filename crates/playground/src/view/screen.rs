//! A terminal that shows a page: its own screen, redrawn in place, given back at the end.

use std::io::{self, Write};

use crossterm::terminal::{
    BeginSynchronizedUpdate, Clear, ClearType, EndSynchronizedUpdate, EnterAlternateScreen,
    LeaveAlternateScreen,
};
use crossterm::{QueueableCommand, cursor, terminal};

use super::Line;

/// When the terminal does not tell.
const SIZE_DEFAULT: (usize, usize) = (80, 24);

/// Gives the terminal back when it goes, however that happens.
pub struct Screen<W: Write> {
    out: W,
}

impl<W: Write> Screen<W> {
    pub fn open(mut out: W) -> io::Result<Self> {
        out.queue(EnterAlternateScreen)?.queue(cursor::Hide)?.flush()?;
        Ok(Self { out })
    }

    /// Overwrites what was there line by line, in one go: nothing is cleared first, so nothing
    /// flickers.
    pub fn draw(&mut self, lines: &[Line]) -> io::Result<()> {
        let mut frame = Vec::new();
        frame.queue(BeginSynchronizedUpdate)?;
        for (row, line) in (0_u16..).zip(lines) {
            frame.queue(cursor::MoveTo(0, row))?;
            frame.write_all(line.coloured().as_bytes())?;
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
        // A terminal that is gone needs nothing back.
        let closed = self.out.queue(cursor::Show).and_then(|out| out.queue(LeaveAlternateScreen));
        let _ = closed.and_then(|out| out.flush());
    }
}
