//! Rows for serde.

use std::net::IpAddr;

use serde::ser::{Serialize, SerializeMap, Serializer};

use super::column::Column;
use super::table::Row;
use super::union::Union;
use super::value::Value;
use super::visitor::{Members, Visitor};

/// A row that is serialized as a map of its columns. Absent values are null, times are numbers of nanoseconds.
///
/// ```
/// use flowgauge::row::Serialized;
/// use flowgauge::{FileSource, records};
///
/// for record in records(FileSource::open("examples/data/web.pcap")?) {
///     let json = serde_json::to_string(&Serialized(&record?))?;
///     assert!(json.starts_with(r#"{"protocol":"#));
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Serialized<'r, R>(pub &'r R);

impl<R: Row> Serialize for Serialized<'_, R> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let map = serializer.serialize_map(None)?;
        let mut entries = Entries { map, nested: None, outcome: Ok(()) };
        self.0.visit(&mut entries);
        entries.outcome?;
        entries.map.end()
    }
}

/// A row of one of several tables, such as a message, that is serialized as a map: `message` is the kind of its table,
/// then its columns follow. Sensitive columns are omitted.
#[derive(Clone, Copy, Debug)]
pub struct SerializedUnion<'r, U>(pub &'r U);

impl<U: Union> Serialize for SerializedUnion<'_, U> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let row = self.0.row();
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("message", row.table.kind())?;
        let mut entries = Entries { map, nested: None, outcome: Ok(()) };
        row.visit(&mut entries);
        entries.outcome?;
        entries.map.end()
    }
}

/// Visitor that serializes each value as an entry of a map, until the first error. Lists and groups are collected before
/// they are serialized, because a serializer passes their items to a type of its own.
struct Entries<M: SerializeMap> {
    map: M,
    /// Values of the list or group that is collected.
    nested: Option<Vec<(&'static Column, Value)>>,
    outcome: Result<(), M::Error>,
}

impl<M: SerializeMap> Entries<M> {
    fn entry(&mut self, column: &'static Column, value: &(impl Serialize + ?Sized)) {
        if self.outcome.is_ok() {
            self.outcome = self.map.serialize_entry(column.name, value);
        }
    }

    fn put(&mut self, column: &'static Column, value: Value) {
        match &mut self.nested {
            Some(values) => values.push((column, value)),
            None => self.entry(column, &value),
        }
    }

    /// Returns the values that `visit` passes to this visitor.
    fn collect(&mut self, visit: Members<'_>) -> Vec<(&'static Column, Value)> {
        let outer = self.nested.replace(Vec::new());
        visit(self);
        std::mem::replace(&mut self.nested, outer).unwrap_or_default()
    }
}

impl<M: SerializeMap> Visitor for Entries<M> {
    fn wants(&mut self, column: &'static Column) -> bool {
        !column.is_sensitive
    }

    fn null(&mut self, column: &'static Column) {
        self.put(column, Value::Null);
    }

    fn unsigned(&mut self, column: &'static Column, value: u64) {
        self.put(column, Value::Unsigned(value));
    }

    fn float(&mut self, column: &'static Column, value: f64) {
        self.put(column, Value::Float(value));
    }

    fn text(&mut self, column: &'static Column, value: &str) {
        match &mut self.nested {
            Some(values) => values.push((column, Value::Text(value.to_owned()))),
            None => self.entry(column, value),
        }
    }

    fn list(&mut self, column: &'static Column, items: Members<'_>) {
        let items = self.collect(items).into_iter().map(|(_, value)| value).collect();
        self.put(column, Value::List(items));
    }

    fn group(&mut self, column: &'static Column, members: Members<'_>) {
        let members = self.collect(members);
        self.put(column, Value::Group(members));
    }

    fn bool(&mut self, column: &'static Column, value: bool) {
        self.put(column, Value::Bool(value));
    }

    fn signed(&mut self, column: &'static Column, value: i64) {
        self.put(column, Value::Signed(value));
    }

    fn address(&mut self, column: &'static Column, value: IpAddr) {
        self.put(column, Value::Address(value));
    }
}
