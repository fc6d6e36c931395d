//! Text formats with one line per row: ndjson and csv.

use std::io::{self, Write};

use super::selection::{Scratch, Selection};
use super::style::Style;
use super::writer::{RecordWriter, Summary};
use super::{csv, json};
use crate::row::{Row, RowType, Shape};

/// The format of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Ndjson,
    Csv,
}

/// Writes rows as lines: JSON objects, or comma-separated values after a line with the names of the columns. All rows of a
/// header or a selection have the same columns; another row is an error of kind `InvalidInput`.
///
/// ```
/// use flowgauge::export::{Lines, RecordWriter, Selection, Style};
/// use flowgauge::{FileSource, FlowRecord, records};
///
/// let columns = Selection::of::<FlowRecord>(["packet_count", "protocol"]).expect("names of columns");
/// let mut lines = Box::new(Lines::csv(Vec::new(), Some(columns), Style::default()));
/// for record in records(FileSource::open("examples/data/web.pcap")?).take(2) {
///     lines.write(&record?)?;
/// }
/// let text = String::from_utf8(lines.into_inner()?)?;
/// assert!(text.starts_with("packet_count,protocol\n"));
/// assert_eq!(text.lines().count(), 3);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Lines<W> {
    kind: Kind,
    selection: Option<Selection>,
    style: Style,
    out: W,
    /// The current line; before the first row, also the header, so that a program that fails to start writes nothing.
    line: Vec<u8>,
    scratch: Scratch,
    /// The columns of the rows so far, for which there is a header or a selection.
    shape: Option<Shape>,
    has_header: bool,
    row_count: u64,
}

impl<W: Write> Lines<W> {
    /// Creates a writer of one JSON object per line.
    pub const fn ndjson(out: W, selection: Option<Selection>, style: Style) -> Self {
        Self::new(Kind::Ndjson, out, selection, style)
    }

    /// Creates a writer of comma-separated values. The first row, or the end of the output, is preceded by a line with
    /// the names of the columns.
    pub const fn csv(out: W, selection: Option<Selection>, style: Style) -> Self {
        Self::new(Kind::Csv, out, selection, style)
    }

    const fn new(kind: Kind, out: W, selection: Option<Selection>, style: Style) -> Self {
        let has_header = matches!(kind, Kind::Ndjson);
        Self {
            kind,
            selection,
            style,
            out,
            line: Vec::new(),
            scratch: Scratch::new(),
            shape: None,
            has_header,
            row_count: 0,
        }
    }

    /// Returns the destination, for example to write other lines between rows.
    pub const fn get_mut(&mut self) -> &mut W {
        &mut self.out
    }

    /// Returns the destination. Rows that were written are complete in it.
    ///
    /// # Errors
    ///
    /// Any error of the destination.
    pub fn into_inner(mut self) -> io::Result<W> {
        self.write_line()?;
        Ok(self.out)
    }

    /// Returns an error for rows with other columns than those before, which a header or a selection does not describe.
    /// Without both, each line names its columns.
    #[inline]
    fn check(&mut self, row: &impl Row) -> io::Result<()> {
        if self.kind == Kind::Ndjson && self.selection.is_none() {
            return Ok(());
        }
        let checked = match &mut self.shape {
            Some(shape) => shape.check(row),
            None => {
                let shape = Shape::new(row.own_columns());
                let fits =
                    self.selection.as_ref().is_none_or(|selection| selection.is_among(shape.columns()));
                self.shape = Some(shape);
                if fits {
                    Ok(())
                } else {
                    Err("the columns were selected from those of another type of row".to_owned())
                }
            }
        };
        checked.map_err(|problem| io::Error::new(io::ErrorKind::InvalidInput, problem))
    }

    /// Appends the header to the line unless it was written.
    fn prepare<R: RowType>(&mut self) {
        if !std::mem::replace(&mut self.has_header, true) {
            match &self.selection {
                Some(selection) => csv::write_header(&mut self.line, selection.columns()),
                None => csv::write_header(&mut self.line, &R::columns()),
            }
        }
    }

    #[inline]
    fn append<R: Row>(&mut self, row: &R) {
        let Self { kind, selection, style, line, scratch, .. } = self;
        match (kind, selection) {
            (Kind::Ndjson, None) => json::write_json(line, row, *style),
            (Kind::Csv, None) => return csv::write_row(line, row, *style),
            (Kind::Ndjson, Some(selection)) => {
                json::write_selected(line, row, *style, selection, scratch);
            }
            (Kind::Csv, Some(selection)) => {
                return csv::write_selected(line, row, *style, selection, scratch);
            }
        }
        self.line.push(b'\n');
    }

    fn write_line(&mut self) -> io::Result<()> {
        self.out.write_all(&self.line)?;
        self.line.clear();
        Ok(())
    }
}

impl<R: RowType, W: Write> RecordWriter<R> for Lines<W> {
    fn write_if(&mut self, row: &R, permits: &mut dyn FnMut(usize) -> bool) -> io::Result<bool> {
        self.check(row)?;
        self.prepare::<R>();
        let start = self.line.len();
        self.append(row);
        if !permits(self.line.len() - start) {
            self.line.truncate(start);
            return Ok(false);
        }
        self.row_count += 1;
        self.write_line()?;
        Ok(true)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.prepare::<R>();
        self.write_line()?;
        self.out.flush()
    }

    fn finish(mut self: Box<Self>) -> io::Result<Summary> {
        RecordWriter::<R>::flush(&mut *self)?;
        Ok(Summary { row_count: self.row_count })
    }
}
