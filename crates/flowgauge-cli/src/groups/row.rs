//! Rows of groups, whose columns are known when the program runs.

use std::sync::OnceLock;
use std::time::Duration;

use flowgauge::row::{Column, Row, RowType, Type, Value, Visitor};

/// The columns of all rows of this run.
static COLUMNS: OnceLock<Vec<&'static Column>> = OnceLock::new();

/// A row of a group.
#[derive(Clone, Debug)]
pub(super) struct GroupRow(pub(super) Vec<Value>);

impl GroupRow {
    /// Sets the columns of all rows of the run.
    pub(super) fn set_columns(columns: Vec<Column>) {
        let leaked = columns.into_iter().map(|column| &*Box::leak(Box::new(column)));
        // A run has one table of groups.
        let _ = COLUMNS.set(leaked.collect());
    }
}

impl RowType for GroupRow {
    fn columns() -> Vec<&'static Column> {
        COLUMNS.get().cloned().unwrap_or_default()
    }
}

impl Row for GroupRow {
    fn own_columns(&self) -> Vec<&'static Column> {
        Self::columns()
    }

    fn visit(&self, visitor: &mut (impl Visitor + ?Sized)) {
        let columns = COLUMNS.get().map(Vec::as_slice).unwrap_or_default();
        for (column, value) in columns.iter().zip(&self.0) {
            if visitor.wants(column) {
                pass(column, value, visitor);
            }
        }
    }
}

/// Passes a value to a visitor.
fn pass(column: &'static Column, value: &Value, visitor: &mut (impl Visitor + ?Sized)) {
    match value {
        Value::Null => visitor.null(column),
        Value::Bool(value) => visitor.bool(column, *value),
        Value::Unsigned(value) => visitor.unsigned(column, *value),
        Value::Signed(value) => visitor.signed(column, *value),
        Value::Float(value) => visitor.float(column, *value),
        Value::Timestamp(value) => visitor.timestamp(column, *value),
        Value::Duration(value) => visitor.duration(column, nanoseconds(*value)),
        Value::Address(value) => visitor.address(column, *value),
        Value::Mac(value) => visitor.mac(column, *value),
        Value::Name(value) => visitor.name(column, value),
        Value::Text(value) => visitor.text(column, value),
        Value::Octets(value) => visitor.octets(column, value),
        Value::List(items) => match column.column_type {
            Type::List(item_column) => {
                visitor.list(column, &mut |visitor| {
                    items.iter().for_each(|item| pass(item_column, item, visitor))
                });
            }
            _ => visitor.null(column),
        },
        Value::Group(members) => visitor.group(column, &mut |visitor| {
            for (member, value) in members {
                if visitor.wants(member) {
                    pass(member, value, visitor);
                }
            }
        }),
        _ => visitor.null(column),
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
