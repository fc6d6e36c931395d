//! Schemas of tables.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema, TimeUnit};
use flowgauge::FlowRecord;
use flowgauge::row::{Column, ColumnSide, Table as _, Type, Unit};

use crate::options::{Addresses, Durations, Names, Options};

/// Returns the schema of columns. Those with the names in `optional` are nullable.
pub(crate) fn schema(columns: &[&'static Column], optional: &[&str], options: &Options) -> Schema {
    let field_of = |column: &&'static Column| {
        let field = field(column, options);
        let is_nullable = field.is_nullable() || optional.contains(&column.name) || may_be_unknown(column);
        field.with_nullable(is_nullable)
    };
    let fields: Vec<Field> = columns.iter().map(field_of).collect();
    let mut metadata =
        HashMap::from([("flowgauge.version".to_owned(), env!("CARGO_PKG_VERSION").to_owned())]);
    metadata.extend(options.table.map(|table| ("flowgauge.table".to_owned(), table.to_owned())));
    Schema::new_with_metadata(fields, metadata)
}

/// Returns whether a column of flow records is absent in records that do not have it, such as those of a collector. All have
/// addresses.
fn may_be_unknown(column: &'static Column) -> bool {
    let is_known = |known: &Column| std::ptr::eq(known, column);
    column.column_type != Type::Address && FlowRecord::COLUMNS.iter().any(is_known)
}

/// Returns the field of a column.
fn field(column: &Column, options: &Options) -> Field {
    let unit = match column.column_type {
        Type::Timestamp | Type::Duration => "ns",
        _ => column.unit.name(),
    };
    let side = match column.side {
        ColumnSide::Shared => "",
        ColumnSide::Forward => "forward",
        ColumnSide::Reverse => "reverse",
    };
    let metadata = [("description", column.description), ("unit", unit), ("side", side)];
    let metadata = metadata.into_iter().filter(|(_, value)| !value.is_empty());
    Field::new(column.name, data_type(column, options), column.is_nullable)
        .with_metadata(metadata.map(|(key, value)| (key.to_owned(), value.to_owned())).collect())
}

/// Returns the Arrow type of a column.
fn data_type(column: &Column, options: &Options) -> DataType {
    match column.column_type {
        Type::Bool => DataType::Boolean,
        Type::Unsigned(..=8) => DataType::UInt8,
        Type::Unsigned(..=16) => DataType::UInt16,
        Type::Unsigned(..=32) => DataType::UInt32,
        Type::Unsigned(_) => DataType::UInt64,
        Type::Signed(..=8) => DataType::Int8,
        Type::Signed(..=16) => DataType::Int16,
        Type::Signed(..=32) => DataType::Int32,
        Type::Signed(_) => DataType::Int64,
        Type::Float => DataType::Float64,
        Type::Timestamp => DataType::Timestamp(TimeUnit::Nanosecond, Some("UTC".into())),
        Type::Duration if options.durations == Durations::Integers => DataType::Int64,
        Type::Duration => DataType::Duration(TimeUnit::Nanosecond),
        Type::Address if options.addresses == Addresses::Octets => DataType::FixedSizeBinary(16),
        Type::Mac if options.addresses == Addresses::Octets => DataType::FixedSizeBinary(6),
        Type::Name if options.names == Names::Dictionary => {
            DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8))
        }
        Type::Octets => DataType::Binary,
        Type::List(item) => DataType::List(Arc::new(field(item, options))),
        Type::Group(members) => {
            DataType::Struct(kept(members, options).map(|member| field(member, options)).collect())
        }
        // Addresses and names as text, and types that a later version of the library adds.
        _ => DataType::Utf8,
    }
}

/// Returns the columns that the options include.
pub(crate) fn kept<'c>(
    columns: impl IntoIterator<Item = &'c Column>,
    options: &Options,
) -> impl Iterator<Item = &'c Column> {
    let has_sensitive = options.has_sensitive;
    columns.into_iter().filter(move |column| has_sensitive || !column.is_sensitive)
}

/// Unit is part of the metadata only if a column has one.
const _: () = assert!(Unit::None.name().is_empty());
