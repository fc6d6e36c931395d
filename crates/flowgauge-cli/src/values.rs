//! The values of a row as one line for people.

use std::fmt::Write as _;

use flowgauge::row::{ColumnSet, Row as _, TableRow, Value};

use crate::escape;

/// Appends the values of a row, each as ` name=value`. Characters that are not printable are escaped, so that untrusted text
/// cannot control a terminal. Absent values, and usual ones of sparse columns, are omitted, and those of sensitive columns unless
/// they are wanted.
pub(crate) fn push_values(line: &mut String, row: TableRow<'_>, has_sensitive: bool) {
    let columns = row.table.columns;
    let all: ColumnSet = (0..columns.len()).collect();
    for (column, value) in columns.iter().zip(row.values(&all)) {
        let is_usual = match &value {
            Value::Null => true,
            Value::Bool(value) => column.is_sparse && !value,
            Value::Unsigned(value) => column.is_sparse && *value == 0,
            Value::List(items) => column.is_sparse && items.is_empty(),
            _ => false,
        };
        if is_usual || column.is_sensitive && !has_sensitive {
            continue;
        }
        let _ = write!(line, " {}=", column.name);
        match value {
            Value::Text(text) => escape::push_printable(line, &text),
            value @ (Value::List(_) | Value::Group(_)) => {
                let json = serde_json::to_string(&without_nulls(value)).unwrap_or_default();
                escape::push_printable(line, &json);
            }
            value => {
                let _ = write!(line, "{value}");
            }
        }
    }
}

/// Returns a value without the absent and usual members of its groups.
fn without_nulls(value: Value) -> Value {
    match value {
        Value::List(items) => Value::List(items.into_iter().map(without_nulls).collect()),
        Value::Group(members) => Value::Group(
            members
                .into_iter()
                .filter(|(column, value)| {
                    *value != Value::Null && !(column.is_sparse && *value == Value::Bool(false))
                })
                .map(|(column, value)| (column, without_nulls(value)))
                .collect(),
        ),
        value => value,
    }
}
