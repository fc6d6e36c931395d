//! Rows collected in columns.

use std::fmt::Display;
use std::net::IpAddr;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_schema::{ArrowError, SchemaRef};
use flowgauge::base::Timestamp;
use flowgauge::row::{Column, Members, Row, RowType, Shape, Visitor};

use crate::columns::{Buffer, Values};
use crate::options::Options;
use crate::schema::{kept, schema};

/// Returns the name of a column of a kind of rows, if another kind has a column of its name with another type.
pub(crate) fn qualified(kind: &str, name: &str) -> String {
    format!("{kind}_{name}")
}

/// Collects rows in columns, and returns them as a `RecordBatch`.
#[derive(Debug)]
pub struct BatchBuilder {
    schema: SchemaRef,
    /// The columns of a row.
    all: Vec<&'static Column>,
    /// The values of each column of a row, in the order of the row.
    values: Vec<Values>,
    /// For each column of the schema, its index in the order of the row.
    order: Vec<usize>,
    /// Octets of a row besides texts, octets and lists.
    width: usize,
    row_count: usize,
    /// Octets of texts, octets and items of lists.
    octet_count: usize,
    row_count_max: usize,
    octet_count_max: usize,
    /// The columns of the rows, unless they are of several types.
    shape: Option<Shape>,
    /// The first column whose value had another type than the column.
    fault: Option<&'static Column>,
    /// The first row that had other columns.
    refused: Option<String>,
}

impl BatchBuilder {
    /// Creates a builder of batches for rows of type `R`.
    #[must_use]
    pub fn new<R: RowType>(options: &Options) -> Self {
        Self::for_columns(R::columns(), options)
    }

    /// Creates a builder of batches for rows with these columns.
    #[must_use]
    pub fn for_columns(columns: Vec<&'static Column>, options: &Options) -> Self {
        let builder = Self::of_columns(columns.clone(), &[], options);
        Self { shape: Some(Shape::new(columns)), ..builder }
    }

    /// Creates a builder of batches for rows of several types, each of which has some of these columns
    /// ([`places`](Self::places)). The columns with the names in `optional` are nullable.
    pub(crate) fn of_columns(all: Vec<&'static Column>, optional: &[&str], options: &Options) -> Self {
        let index_of = |column: &Column| all.iter().position(|known| known.name == column.name);
        let chosen: Vec<&'static Column> = match &options.selection {
            Some(selection) => selection.columns().to_vec(),
            None => all.clone(),
        };
        let chosen: Vec<&'static Column> =
            chosen.into_iter().filter(|column| kept([*column], options).next().is_some()).collect();
        let schema = Arc::new(schema(&chosen, optional, options));
        let mut values: Vec<Values> = all.iter().map(|_| Values::OMITTED).collect();
        let mut order = Vec::with_capacity(chosen.len());
        for (column, field) in chosen.iter().zip(schema.fields()) {
            let Some(index) = index_of(column) else { continue };
            order.push(index);
            if let Some(place) = values.get_mut(index) {
                *place = Values::new(column, field, options);
            }
        }
        let width = values.iter().map(Values::width).sum();
        Self {
            schema,
            all,
            values,
            order,
            width,
            row_count: 0,
            octet_count: 0,
            row_count_max: options.row_count_max.max(1),
            octet_count_max: options.octet_count_max,
            shape: None,
            fault: None,
            refused: None,
        }
    }

    /// Returns the schema of the batches.
    #[must_use]
    pub fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    /// Appends a row. It must have the columns for which the builder was created; a row with other columns is not appended, and
    /// [`finish`](Self::finish) returns an error.
    #[inline]
    pub fn push(&mut self, row: &impl Row) {
        match self.check(row) {
            Ok(()) => self.fill::<false>(row, None),
            Err(problem) => drop(self.refused.get_or_insert(problem)),
        }
    }

    /// Returns a description of the difference if a row has other columns than the builder.
    #[inline]
    pub(crate) fn check(&mut self, row: &impl Row) -> Result<(), String> {
        self.shape.as_mut().map_or(Ok(()), |shape| shape.check(row))
    }

    /// Returns the places of these columns of a kind of rows, which is before the name of a column if the name is that
    /// of a column with another type. A column that the builder does not have is skipped.
    #[must_use]
    pub(crate) fn places(&self, kind: &str, columns: Vec<&'static Column>) -> Places {
        let place_of = |column: &Column| {
            let place = |name: &str| {
                let mut known = self.all.iter();
                known.position(|known| known.name == name && known.column_type == column.column_type)
            };
            place(column.name).or_else(|| place(&qualified(kind, column.name))).unwrap_or(usize::MAX)
        };
        let columns: Vec<usize> = columns.into_iter().map(place_of).collect();
        let absent = (0..self.values.len()).filter(|place| !columns.contains(place)).collect();
        Places { columns, absent }
    }

    /// Returns the names of the columns of rows with these places; the name of a column that the builder does not have is
    /// empty.
    #[must_use]
    pub(crate) fn names(&self, places: &Places) -> Vec<&'static str> {
        let name = |place: &usize| self.all.get(*place).map_or("", |column| column.name);
        places.columns.iter().map(name).collect()
    }

    /// Appends a row of a type with these places. What the type does not have is absent.
    #[inline]
    pub(crate) fn push_at(&mut self, row: &impl Row, places: &Places) {
        for place in &places.absent {
            if let Some(values) = self.values.get_mut(*place) {
                values.push_null();
            }
        }
        self.fill::<true>(row, Some(&places.columns));
    }

    #[inline]
    fn fill<const IS_PLACED: bool>(&mut self, row: &impl Row, places: Option<&[usize]>) {
        let mut fill = Fill::<IS_PLACED> {
            columns: std::mem::take(&mut self.values),
            places,
            at: 0,
            next: 0,
            octet_count: 0,
            fault: self.fault,
        };
        row.visit(&mut fill);
        self.values = fill.columns;
        self.fault = fill.fault;
        self.octet_count += fill.octet_count;
        self.row_count += 1;
    }

    /// Returns the number of rows since the last batch.
    #[must_use]
    pub const fn row_count(&self) -> usize {
        self.row_count
    }

    /// Returns whether a batch has the maximum size of the options, so that [`finish`](Self::finish) is due.
    #[must_use]
    pub const fn is_full(&self) -> bool {
        self.row_count >= self.row_count_max || self.octet_count() >= self.octet_count_max
    }

    /// Returns the approximate number of octets of the rows in memory.
    #[must_use]
    pub const fn octet_count(&self) -> usize {
        self.octet_count + self.row_count * self.width
    }

    /// Returns the rows since the last batch.
    ///
    /// # Errors
    ///
    /// Returns an error if a row did not have the columns for which the builder was created.
    pub fn finish(&mut self) -> Result<RecordBatch, ArrowError> {
        let row_count = std::mem::take(&mut self.row_count);
        self.octet_count = 0;
        // All columns begin again, also after an error.
        let finished = |index: &usize| self.values.get_mut(*index).map(Values::finish).transpose();
        let arrays: Vec<_> = self.order.iter().map(finished).collect();
        let (refused, fault) = (self.refused.take(), self.fault.take());
        if let Some(problem) = refused {
            return Err(ArrowError::SchemaError(problem));
        }
        if let Some(column) = fault {
            return Err(ArrowError::SchemaError(format!(
                "a value of the column {} is not of the type {}",
                column.name, column.column_type
            )));
        }
        let arrays: Vec<Option<Option<ArrayRef>>> = arrays.into_iter().collect::<Result<_, _>>()?;
        let arrays: Vec<ArrayRef> = arrays.into_iter().flatten().flatten().collect();
        // A projection may have no column.
        let options = RecordBatchOptions::new().with_row_count(Some(row_count));
        RecordBatch::try_new_with_options(Arc::clone(&self.schema), arrays, &options)
    }
}

/// Where the columns of a type of rows are in batches of several types.
#[derive(Clone, Debug)]
pub(crate) struct Places {
    /// The place of each column of the type; `usize::MAX` for a column that batches do not have.
    columns: Vec<usize>,
    /// The places of the columns that the type does not have.
    absent: Vec<usize>,
}

/// Visitor that appends the values of a row to columns.
struct Fill<'p, const IS_PLACED: bool> {
    /// The columns of the row, or of the list or group that is visited.
    columns: Vec<Values>,
    /// The places of the columns; `None` if they are in the order of the row, as those of lists and groups are.
    places: Option<&'p [usize]>,
    /// Index of the column whose value comes next; zero in a list.
    at: usize,
    /// Index of the column after it.
    next: usize,
    octet_count: usize,
    fault: Option<&'static Column>,
}

impl<const IS_PLACED: bool> Fill<'_, IS_PLACED> {
    #[inline(always)]
    fn put(&mut self, column: &'static Column, push: impl FnOnce(&mut Buffer) -> bool) {
        let is_accepted = self.columns.get_mut(self.at).is_some_and(|values| push(values.buffer()));
        if !is_accepted {
            self.refuse(column);
        }
    }

    #[inline(always)]
    fn buffer(&mut self) -> Option<&mut Buffer> {
        self.columns.get_mut(self.at).map(Values::buffer)
    }

    #[cold]
    fn refuse(&mut self, column: &'static Column) {
        self.fault.get_or_insert(column);
        if let Some(values) = self.columns.get_mut(self.at) {
            values.push_null();
        }
    }

    /// Visits the items of a list or the members of a group.
    #[inline]
    fn inside(&mut self, columns: Vec<Values>, visit: Members<'_>) -> Vec<Values> {
        let outer = std::mem::replace(&mut self.columns, columns);
        let place = (self.places.take(), self.at, self.next);
        (self.at, self.next) = (0, 0);
        visit(self);
        (self.places, self.at, self.next) = place;
        std::mem::replace(&mut self.columns, outer)
    }
}

impl<const IS_PLACED: bool> Visitor for Fill<'_, IS_PLACED> {
    #[inline(always)]
    fn wants(&mut self, _: &'static Column) -> bool {
        self.at = match self.places {
            Some(places) if IS_PLACED => places.get(self.next).copied().unwrap_or(usize::MAX),
            _ => self.next,
        };
        self.next += 1;
        self.columns.get(self.at).is_some_and(|values| !values.is_omitted())
    }

    #[inline]
    fn null(&mut self, _: &'static Column) {
        if let Some(values) = self.columns.get_mut(self.at) {
            values.push_null();
        }
    }

    #[inline]
    fn unsigned(&mut self, column: &'static Column, value: u64) {
        self.put(column, |values| values.push_unsigned(value));
    }

    #[inline]
    fn float(&mut self, column: &'static Column, value: f64) {
        self.put(column, |values| values.push_float(value));
    }

    #[inline]
    fn text(&mut self, column: &'static Column, value: &str) {
        self.octet_count += value.len();
        self.put(column, |values| values.push_text(value));
    }

    #[inline]
    fn list(&mut self, column: &'static Column, items: Members<'_>) {
        let Some(Buffer::List(list)) = self.buffer() else { return self.refuse(column) };
        let values = std::mem::take(&mut list.items);
        let width = values.first().map_or(0, Values::width);
        let len_before = values.first().map_or(0, Values::len);
        let values = self.inside(values, items);
        let len = values.first().map_or(0, Values::len);
        self.octet_count += (len - len_before) * width;
        self.put(column, |place| match place {
            Buffer::List(list) => {
                list.items = values;
                list.end()
            }
            _ => false,
        });
    }

    #[inline]
    fn group(&mut self, column: &'static Column, members: Members<'_>) {
        let Some(Buffer::Group(group)) = self.buffer() else { return self.refuse(column) };
        let values = std::mem::take(&mut group.members);
        let values = self.inside(values, members);
        if let Some(Buffer::Group(group)) = self.buffer() {
            group.members = values;
            group.end();
        }
    }

    #[inline]
    fn bool(&mut self, column: &'static Column, value: bool) {
        self.put(column, |values| values.push_bool(value));
    }

    #[inline]
    fn signed(&mut self, column: &'static Column, value: i64) {
        self.put(column, |values| values.push_signed(value));
    }

    #[inline]
    fn timestamp(&mut self, column: &'static Column, value: Timestamp) {
        self.put(column, |values| values.push_timestamp(value.as_nanos()));
    }

    #[inline]
    fn duration(&mut self, column: &'static Column, nanoseconds: u64) {
        self.put(column, |values| values.push_duration(nanoseconds));
    }

    #[inline]
    fn address(&mut self, column: &'static Column, value: IpAddr) {
        self.put(column, |values| values.push_address(value));
    }

    #[inline]
    fn mac(&mut self, column: &'static Column, value: [u8; 6]) {
        self.put(column, |values| values.push_mac(value));
    }

    #[inline]
    fn name(&mut self, column: &'static Column, value: &'static str) {
        self.put(column, |values| values.push_name(value));
    }

    fn octets(&mut self, column: &'static Column, value: &[u8]) {
        self.octet_count += value.len();
        self.put(column, |values| values.push_octets(value));
    }

    fn display(&mut self, column: &'static Column, value: &dyn Display) {
        match self.buffer().and_then(|buffer| buffer.push_displayed(value)) {
            Some(len) => self.octet_count += len,
            None => self.refuse(column),
        }
    }
}
