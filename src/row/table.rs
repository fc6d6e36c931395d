//! Rows and tables.

use super::column::Column;
#[cfg(feature = "protocols")]
use super::column::Type;
use super::column_set::ColumnSet;
use super::value::{Picker, Value};
use super::visitor::Visitor;

/// A row of a table: a flow record, a message, an event, a packet.
pub trait Row {
    /// Returns the columns of this row, in the order in which [`visit`](Self::visit) passes their values. Called once per writer
    /// and kind of rows.
    fn own_columns(&self) -> Vec<&'static Column>;

    /// Identifies the columns of the row: rows with the same number have the same columns. By default, that of the type.
    #[doc(hidden)]
    #[inline]
    fn shape_id(&self) -> usize {
        std::any::type_name::<Self>().as_ptr().addr()
    }

    /// Passes the values of all columns that the visitor wants to it.
    fn visit(&self, visitor: &mut (impl Visitor + ?Sized));

    /// Returns the value of the column with an index; [`Value::Null`] if there is no such column. Linear in the number
    /// of columns; for sorting and for tables of a few columns.
    fn value(&self, index: usize) -> Value {
        let mut picker = Picker::new(index);
        self.visit(&mut picker);
        picker.into_value()
    }

    /// Returns the values of all columns, in their order, with [`Value::Null`] for those that are not `wanted`.
    fn values(&self, wanted: &ColumnSet) -> Vec<Value> {
        let mut picker = Picker::of_set(wanted);
        self.visit(&mut picker);
        picker.into_values()
    }
}

/// A row whose columns follow from its type.
pub trait RowType: Row {
    /// Returns the columns in the order in which [`visit`](Row::visit) passes their values. Called once per writer.
    fn columns() -> Vec<&'static Column>;
}

/// A [`Row`] behind a pointer. Implemented for all rows.
pub trait DynRow {
    /// Passes the values of all columns that the visitor wants to it, as [`Row::visit`] does.
    fn visit_dyn(&self, visitor: &mut dyn Visitor);

    #[doc(hidden)]
    fn own_columns_dyn(&self) -> Vec<&'static Column>;

    #[doc(hidden)]
    fn shape_id_dyn(&self) -> usize;
}

impl<R: Row> DynRow for R {
    fn visit_dyn(&self, visitor: &mut dyn Visitor) {
        self.visit(visitor);
    }

    fn own_columns_dyn(&self) -> Vec<&'static Column> {
        self.own_columns()
    }

    fn shape_id_dyn(&self) -> usize {
        self.shape_id()
    }
}

impl Row for dyn DynRow + '_ {
    fn own_columns(&self) -> Vec<&'static Column> {
        self.own_columns_dyn()
    }

    fn shape_id(&self) -> usize {
        self.shape_id_dyn()
    }

    fn visit(&self, mut visitor: &mut (impl Visitor + ?Sized)) {
        self.visit_dyn(&mut visitor);
    }
}

/// Two rows about the same subject are one row, such as a message with its flow.
impl<A: Row, B: Row> Row for (A, B) {
    fn own_columns(&self) -> Vec<&'static Column> {
        let mut columns = self.0.own_columns();
        columns.extend(self.1.own_columns());
        columns
    }

    #[inline]
    fn shape_id(&self) -> usize {
        // A multiplication by an odd number is invertible, so that pairs with the same first or second part differ.
        self.0.shape_id().wrapping_mul(0x9e37_79b9_7f4a_7c15_u64 as usize).rotate_left(23) ^ self.1.shape_id()
    }

    #[inline]
    fn visit(&self, visitor: &mut (impl Visitor + ?Sized)) {
        self.0.visit(visitor);
        self.1.visit(visitor);
    }
}

impl<A: RowType, B: RowType> RowType for (A, B) {
    fn columns() -> Vec<&'static Column> {
        let mut columns = A::columns();
        columns.extend(B::columns());
        columns
    }
}

impl<R: Row + ?Sized> Row for &R {
    fn own_columns(&self) -> Vec<&'static Column> {
        (**self).own_columns()
    }

    #[inline]
    fn shape_id(&self) -> usize {
        (**self).shape_id()
    }

    #[inline]
    fn visit(&self, visitor: &mut (impl Visitor + ?Sized)) {
        (**self).visit(visitor);
    }
}

impl<R: RowType> RowType for &R {
    fn columns() -> Vec<&'static Column> {
        R::columns()
    }
}

/// A row whose type has a name and a static list of columns.
pub trait Table: RowType {
    /// Name of the table: for messages the protocol and the kind, such as `http.request`. Names never change.
    const NAME: &'static str;
    /// Description of the rows of the table.
    const DESCRIPTION: &'static str;
    /// Columns of the table.
    const COLUMNS: &'static [Column];
}

impl<T: Table> Table for &T {
    const NAME: &'static str = T::NAME;
    const DESCRIPTION: &'static str = T::DESCRIPTION;
    const COLUMNS: &'static [Column] = T::COLUMNS;
}

/// Name, description and columns of a table.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct TableInfo {
    /// Name of the table, such as `http.request`.
    pub name: &'static str,
    /// Description of the rows of the table.
    pub description: &'static str,
    /// Columns of the table.
    pub columns: &'static [Column],
}

impl TableInfo {
    /// Returns name, description and columns of a table.
    #[must_use]
    pub const fn of<T: Table>() -> Self {
        Self { name: T::NAME, description: T::DESCRIPTION, columns: T::COLUMNS }
    }

    /// Returns the table with another name.
    #[must_use]
    pub const fn named(self, name: &'static str) -> Self {
        Self { name, ..self }
    }

    /// Returns what several tables have in common: the part of the name before the dot, such as `tls` of
    /// `tls.client_hello`.
    #[must_use]
    pub fn prefix(&self) -> &'static str {
        self.name.split_once('.').map_or(self.name, |(prefix, _)| prefix)
    }

    /// Returns the kind of the table's rows: the part of the name after the dot.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        self.name.split_once('.').map_or(self.name, |(_, kind)| kind)
    }
}

/// Returns the columns of several tables as one list.
///
/// # Panics
///
/// At compile time, if `COUNT` is not the number of all columns.
#[cfg(feature = "protocols")]
#[allow(clippy::indexing_slicing, reason = "runs when compiled")]
pub(crate) const fn concat<const COUNT: usize>(parts: &[&[Column]]) -> [Column; COUNT] {
    let mut columns = [Column::new("", "", Type::Bool, false); COUNT];
    let (mut part, mut index, mut count) = (0, 0, 0);
    while part < parts.len() {
        if index == parts[part].len() {
            (part, index) = (part + 1, 0);
            continue;
        }
        columns[count] = parts[part][index];
        (index, count) = (index + 1, count + 1);
    }
    assert!(count == COUNT, "the number of all columns");
    columns
}
