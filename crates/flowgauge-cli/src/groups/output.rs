//! What groups and counts over time share: names of fields, and the output.

use std::io::Write as _;

use flowgauge::FlowRecord;
use flowgauge::export::{Format, Lines, RecordWriter, Selection, Style};

use super::row::GroupRow;
use super::table;
use crate::console::{Failure, stdout};
use crate::selection::parse_columns;

/// Name of the column with the number of flows.
pub(super) const COUNT: &str = "flow_count";

/// Parses names of fields.
pub(super) fn fields(text: &str) -> Result<Selection, String> {
    parse_columns::<FlowRecord>(text)
}

/// Where groups are written, and in which format.
pub(crate) enum Target {
    Table,
    Lines(Format, Style),
    #[cfg(feature = "arrow")]
    Columns(crate::columns::Columns, crate::columns::ColumnArgs),
}

/// Writes rows to standard output.
pub(super) fn write(rows: Vec<GroupRow>, target: Target) -> Result<(), Failure> {
    let mut out = stdout();
    let mut writer: Box<dyn RecordWriter<GroupRow>> = match target {
        Target::Table => {
            out.write_all(table::lines(&rows).as_bytes())?;
            return Ok(out.flush()?);
        }
        Target::Lines(Format::Csv, style) => Box::new(Lines::csv(out, None, style)),
        Target::Lines(_, style) => Box::new(Lines::ndjson(out, None, style)),
        #[cfg(feature = "arrow")]
        Target::Columns(format, args) => {
            Box::new(format.writer::<GroupRow, _>(out, args.options("group", None))?)
        }
    };
    rows.iter().try_for_each(|row| writer.write(row))?;
    writer.finish()?;
    Ok(())
}
