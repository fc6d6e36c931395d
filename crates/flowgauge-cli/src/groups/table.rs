//! The table of groups on a terminal.

use std::fmt::Write as _;

use flowgauge::export::human;
use flowgauge::row::{Column, RowType as _, Type, Unit, Value};

use super::row::GroupRow;

/// Number of spaces between columns.
const GAP: usize = 2;

/// Returns a value for people.
fn cell(column: &Column, value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::Unsigned(number) if column.unit == Unit::Octets => human::octets(*number),
        Value::Float(number) if column.unit == Unit::Octets && *number >= 0.0 => {
            human::octets(*number as u64)
        }
        Value::Float(number) => format!("{number:.1}"),
        Value::Duration(duration) => human::duration(*duration),
        Value::Timestamp(time) => time.rfc3339().to_string(),
        value => value.to_string().escape_debug().to_string(),
    }
}

/// Returns the lines of a table, each value below the name of its column.
pub(super) fn lines(rows: &[GroupRow]) -> String {
    let columns = GroupRow::columns();
    let mut cells: Vec<Vec<String>> = vec![columns.iter().map(|column| column.name.to_uppercase()).collect()];
    for row in rows {
        cells.push(columns.iter().zip(&row.0).map(|(column, value)| cell(column, value)).collect());
    }
    let widths: Vec<usize> = (0..columns.len())
        .map(|index| {
            cells.iter().filter_map(|row| row.get(index)).map(|cell| cell.chars().count()).max().unwrap_or(0)
        })
        .collect();
    let mut out = String::new();
    for row in cells {
        let mut line = String::new();
        for ((cell, width), column) in row.iter().zip(&widths).zip(&columns) {
            let is_number = matches!(
                column.column_type,
                Type::Unsigned(_) | Type::Signed(_) | Type::Float | Type::Duration
            );
            let _ = if is_number { write!(line, "{cell:>width$}") } else { write!(line, "{cell:<width$}") };
            line.push_str(&" ".repeat(GAP));
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}
