//! Values of one column, of any type, in Arrow's layout.

use std::collections::HashMap;
use std::fmt::{Display, Write as _};
use std::net::IpAddr;
use std::sync::Arc;

use arrow_array::builder::{
    BinaryBuilder, BooleanBuilder, FixedSizeBinaryBuilder, PrimitiveBuilder, StringBuilder,
};
use arrow_array::types::{
    ArrowPrimitiveType, DurationNanosecondType, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    TimestampNanosecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, DictionaryArray, ListArray, StringArray, StructArray};
use arrow_buffer::{NullBufferBuilder, OffsetBuffer, ScalarBuffer};
use arrow_schema::{ArrowError, DataType, Field, FieldRef, Fields};
use flowgauge::row::{Column, Type};

use crate::options::Options;
use crate::schema::kept;

/// A column, and the number of absent values behind its values, which are appended together.
#[derive(Debug)]
pub(crate) struct Values {
    absent_count: usize,
    buffer: Buffer,
}

impl Values {
    /// A column that is not part of the batch.
    pub(crate) const OMITTED: Self = Self { absent_count: 0, buffer: Buffer::Omitted };

    /// Creates the values of a column, whose field is that of the schema.
    pub(crate) fn new(column: &Column, field: &Field, options: &Options) -> Self {
        Self { absent_count: 0, buffer: Buffer::new(column, field, options) }
    }

    /// Appends the absence of a value.
    #[inline(always)]
    pub(crate) fn push_null(&mut self) {
        self.absent_count += 1;
    }

    /// Returns the buffer, which contains all values up to here.
    #[inline(always)]
    pub(crate) fn buffer(&mut self) -> &mut Buffer {
        if self.absent_count > 0 {
            self.append_absent();
        }
        &mut self.buffer
    }

    #[cold]
    fn append_absent(&mut self) {
        self.buffer.push_nulls(std::mem::take(&mut self.absent_count));
    }

    /// Returns whether the column is not part of the batch.
    #[inline(always)]
    pub(crate) const fn is_omitted(&self) -> bool {
        matches!(self.buffer, Buffer::Omitted)
    }

    /// Returns the number of octets of a value besides those of texts, octets and lists.
    pub(crate) fn width(&self) -> usize {
        self.buffer.width()
    }

    /// Returns the number of values.
    pub(crate) fn len(&self) -> usize {
        self.buffer.len() + self.absent_count
    }

    /// Returns the values that were appended, and begins again; `None` if the column is omitted.
    pub(crate) fn finish(&mut self) -> Result<Option<ArrayRef>, ArrowError> {
        self.buffer().finish()
    }
}

/// Values of a type.
#[derive(Debug)]
pub(crate) enum Buffer {
    /// The column is not part of the batch.
    Omitted,
    Bool(BooleanBuilder),
    U8(PrimitiveBuilder<UInt8Type>),
    U16(PrimitiveBuilder<UInt16Type>),
    U32(PrimitiveBuilder<UInt32Type>),
    U64(PrimitiveBuilder<UInt64Type>),
    I8(PrimitiveBuilder<Int8Type>),
    I16(PrimitiveBuilder<Int16Type>),
    I32(PrimitiveBuilder<Int32Type>),
    I64(PrimitiveBuilder<Int64Type>),
    Float(PrimitiveBuilder<Float64Type>),
    Timestamp(PrimitiveBuilder<TimestampNanosecondType>),
    Duration(PrimitiveBuilder<DurationNanosecondType>),
    /// Addresses and MAC addresses as octets.
    Fixed(FixedSizeBinaryBuilder),
    Text(StringBuilder),
    Octets(BinaryBuilder),
    Name(Box<Names>),
    List(Box<List>),
    Group(Box<Group>),
}

/// Names of a set that is small, each stored once for all batches.
#[derive(Debug)]
pub(crate) struct Names {
    keys: PrimitiveBuilder<Int32Type>,
    /// Address and length of names that were seen, and their keys. Equal names may have several addresses.
    seen: Vec<(usize, usize, i32)>,
    by_text: HashMap<Box<str>, i32>,
    names: StringBuilder,
    /// All names of earlier batches.
    dictionary: Arc<StringArray>,
}

/// Number of addresses of names that are compared before a name is looked up by its text.
const SEEN_COUNT_MAX: usize = 32;

#[derive(Debug)]
pub(crate) struct List {
    item: FieldRef,
    /// The values of the items: one column.
    pub(crate) items: Vec<Values>,
    offsets: Vec<i32>,
    nulls: NullBufferBuilder,
}

#[derive(Debug)]
pub(crate) struct Group {
    fields: Fields,
    pub(crate) members: Vec<Values>,
    nulls: NullBufferBuilder,
}

impl Buffer {
    fn new(column: &Column, field: &Field, options: &Options) -> Self {
        match (field.data_type(), column.column_type) {
            (DataType::Boolean, _) => Self::Bool(BooleanBuilder::new()),
            (DataType::UInt8, _) => Self::U8(PrimitiveBuilder::new()),
            (DataType::UInt16, _) => Self::U16(PrimitiveBuilder::new()),
            (DataType::UInt32, _) => Self::U32(PrimitiveBuilder::new()),
            (DataType::UInt64, _) => Self::U64(PrimitiveBuilder::new()),
            (DataType::Int8, _) => Self::I8(PrimitiveBuilder::new()),
            (DataType::Int16, _) => Self::I16(PrimitiveBuilder::new()),
            (DataType::Int32, _) => Self::I32(PrimitiveBuilder::new()),
            (DataType::Int64, _) => Self::I64(PrimitiveBuilder::new()),
            (DataType::Float64, _) => Self::Float(PrimitiveBuilder::new()),
            (DataType::Timestamp(..), _) => Self::Timestamp(PrimitiveBuilder::new().with_timezone("UTC")),
            (DataType::Duration(_), _) => Self::Duration(PrimitiveBuilder::new()),
            (DataType::FixedSizeBinary(len), _) => Self::Fixed(FixedSizeBinaryBuilder::new(*len)),
            (DataType::Binary, _) => Self::Octets(BinaryBuilder::new()),
            (DataType::Dictionary(..), _) => Self::Name(Box::new(Names::new())),
            (DataType::List(item), Type::List(item_column)) => Self::List(Box::new(List {
                item: Arc::clone(item),
                items: vec![Values::new(item_column, item, options)],
                offsets: vec![0],
                nulls: NullBufferBuilder::new(0),
            })),
            (DataType::Struct(fields), Type::Group(columns)) => {
                let mut known = kept(columns, options).zip(fields);
                let mut next = known.next();
                let members = columns.iter().map(|column| match next {
                    Some((kept, field)) if kept.name == column.name => {
                        next = known.next();
                        Values::new(column, field, options)
                    }
                    _ => Values::OMITTED,
                });
                Self::Group(Box::new(Group {
                    members: members.collect(),
                    fields: fields.clone(),
                    nulls: NullBufferBuilder::new(0),
                }))
            }
            _ => Self::Text(StringBuilder::new()),
        }
    }

    fn width(&self) -> usize {
        match self {
            Self::Omitted => 0,
            Self::Bool(_) | Self::U8(_) | Self::I8(_) => 1,
            Self::U16(_) | Self::I16(_) => 2,
            Self::Fixed(_) => 16,
            Self::Group(group) => group.members.iter().map(Values::width).sum(),
            _ => 8,
        }
    }

    /// Appends the absence of a number of values.
    fn push_nulls(&mut self, count: usize) {
        match self {
            Self::Omitted => {}
            Self::Bool(values) => values.append_nulls(count),
            Self::U8(values) => values.append_nulls(count),
            Self::U16(values) => values.append_nulls(count),
            Self::U32(values) => values.append_nulls(count),
            Self::U64(values) => values.append_nulls(count),
            Self::I8(values) => values.append_nulls(count),
            Self::I16(values) => values.append_nulls(count),
            Self::I32(values) => values.append_nulls(count),
            Self::I64(values) => values.append_nulls(count),
            Self::Float(values) => values.append_nulls(count),
            Self::Timestamp(values) => values.append_nulls(count),
            Self::Duration(values) => values.append_nulls(count),
            Self::Fixed(values) => values.append_nulls(count),
            Self::Text(values) => values.append_nulls(count),
            Self::Octets(values) => values.append_nulls(count),
            Self::Name(names) => names.keys.append_nulls(count),
            Self::List(list) => {
                let end = list.offsets.last().copied().unwrap_or_default();
                list.offsets.resize(list.offsets.len() + count, end);
                list.nulls.append_n_nulls(count);
            }
            Self::Group(group) => {
                group.members.iter_mut().for_each(|member| member.absent_count += count);
                group.nulls.append_n_nulls(count);
            }
        }
    }

    // Each function below appends a value, and returns false if the column has another type.

    #[inline]
    pub(crate) fn push_unsigned(&mut self, value: u64) -> bool {
        match self {
            Self::U8(values) => values.append_value(value as u8),
            Self::U16(values) => values.append_value(value as u16),
            Self::U32(values) => values.append_value(value as u32),
            Self::U64(values) => values.append_value(value),
            _ => return false,
        }
        true
    }

    #[inline]
    pub(crate) fn push_signed(&mut self, value: i64) -> bool {
        match self {
            Self::I8(values) => values.append_value(value as i8),
            Self::I16(values) => values.append_value(value as i16),
            Self::I32(values) => values.append_value(value as i32),
            Self::I64(values) => values.append_value(value),
            _ => return false,
        }
        true
    }

    #[inline]
    pub(crate) fn push_duration(&mut self, nanoseconds: u64) -> bool {
        let nanoseconds = clamped(nanoseconds);
        match self {
            Self::Duration(values) => values.append_value(nanoseconds),
            Self::I64(values) => values.append_value(nanoseconds),
            _ => return false,
        }
        true
    }

    #[inline]
    pub(crate) fn push_timestamp(&mut self, nanoseconds: u64) -> bool {
        let Self::Timestamp(values) = self else { return false };
        values.append_value(clamped(nanoseconds));
        true
    }

    #[inline]
    pub(crate) fn push_bool(&mut self, value: bool) -> bool {
        let Self::Bool(values) = self else { return false };
        values.append_value(value);
        true
    }

    #[inline]
    pub(crate) fn push_float(&mut self, value: f64) -> bool {
        let Self::Float(values) = self else { return false };
        values.append_value(value);
        true
    }

    #[inline]
    pub(crate) fn push_address(&mut self, address: IpAddr) -> bool {
        match self {
            Self::Fixed(values) => {
                let octets = match address {
                    IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
                    IpAddr::V6(address) => address.octets(),
                };
                values.append_value(octets).is_ok()
            }
            Self::Text(values) => match address {
                IpAddr::V4(address) => Short::ipv4(address.octets()).append(values),
                IpAddr::V6(_) => displayed(values, address),
            },
            _ => false,
        }
    }

    #[inline]
    pub(crate) fn push_mac(&mut self, octets: [u8; 6]) -> bool {
        match self {
            Self::Fixed(values) => values.append_value(octets).is_ok(),
            Self::Text(values) => Short::mac(octets).append(values),
            _ => false,
        }
    }

    #[inline]
    pub(crate) fn push_text(&mut self, text: &str) -> bool {
        match self {
            Self::Text(values) => values.append_value(text),
            Self::Name(names) => {
                let key = names.key_of_text(text);
                names.keys.append_value(key);
            }
            _ => return false,
        }
        true
    }

    /// Appends what `value` displays. Returns the number of its octets; `None` if the column has another type.
    pub(crate) fn push_displayed(&mut self, value: impl Display) -> Option<usize> {
        if let Self::Text(values) = self {
            let before = values.values_slice().len();
            return displayed(values, value).then(|| values.values_slice().len() - before);
        }
        let text = value.to_string();
        self.push_text(&text).then_some(text.len())
    }

    #[inline]
    pub(crate) fn push_name(&mut self, name: &'static str) -> bool {
        let Self::Name(names) = self else { return self.push_text(name) };
        let key = names.key_of(name);
        names.keys.append_value(key);
        true
    }

    #[inline]
    pub(crate) fn push_octets(&mut self, octets: &[u8]) -> bool {
        let Self::Octets(values) = self else { return false };
        values.append_value(octets);
        true
    }

    fn finish(&mut self) -> Result<Option<ArrayRef>, ArrowError> {
        Ok(Some(match self {
            Self::Omitted => return Ok(None),
            Self::Bool(values) => Arc::new(values.finish()),
            Self::U8(values) => finished(values),
            Self::U16(values) => finished(values),
            Self::U32(values) => finished(values),
            Self::U64(values) => finished(values),
            Self::I8(values) => finished(values),
            Self::I16(values) => finished(values),
            Self::I32(values) => finished(values),
            Self::I64(values) => finished(values),
            Self::Float(values) => finished(values),
            Self::Timestamp(values) => finished(values),
            Self::Duration(values) => finished(values),
            Self::Fixed(values) => Arc::new(values.finish()),
            Self::Text(values) => Arc::new(values.finish()),
            Self::Octets(values) => Arc::new(values.finish()),
            Self::Name(names) => names.finish()?,
            Self::List(list) => list.finish()?,
            Self::Group(group) => group.finish()?,
        }))
    }
}

/// Returns a time as Arrow's signed number; the latest one that it can express for a later time.
fn clamped(nanoseconds: u64) -> i64 {
    i64::try_from(nanoseconds).unwrap_or(i64::MAX)
}

/// A short text of ASCII characters. Its digits are written without the formatting machinery of the standard library, which
/// took a tenth of the time of flow records.
#[derive(Debug, Default)]
struct Short {
    octets: [u8; 17],
    len: usize,
}

impl Short {
    fn push(&mut self, octet: u8) {
        if let Some(place) = self.octets.get_mut(self.len) {
            *place = octet;
            self.len += 1;
        }
    }

    fn ipv4(address: [u8; 4]) -> Self {
        let mut text = Self::default();
        for octet in address {
            if text.len > 0 {
                text.push(b'.');
            }
            if octet >= 100 {
                text.push(b'0' + octet / 100);
            }
            if octet >= 10 {
                text.push(b'0' + octet / 10 % 10);
            }
            text.push(b'0' + octet % 10);
        }
        text
    }

    fn mac(address: [u8; 6]) -> Self {
        let mut text = Self::default();
        for octet in address {
            if text.len > 0 {
                text.push(b':');
            }
            for digit in [octet >> 4, octet & 15] {
                text.push(digit + if digit < 10 { b'0' } else { b'a' - 10 });
            }
        }
        text
    }

    fn append(&self, values: &mut StringBuilder) -> bool {
        let text = self.octets.get(..self.len).and_then(|octets| str::from_utf8(octets).ok());
        text.map(|text| values.append_value(text)).is_some()
    }
}

fn displayed(values: &mut StringBuilder, value: impl Display) -> bool {
    // Writing to memory does not fail.
    let is_written = write!(values, "{value}").is_ok();
    values.append_value("");
    is_written
}

fn finished<T: ArrowPrimitiveType>(values: &mut PrimitiveBuilder<T>) -> ArrayRef {
    Arc::new(values.finish())
}

impl Names {
    fn new() -> Self {
        Self {
            keys: PrimitiveBuilder::new(),
            seen: Vec::new(),
            by_text: HashMap::new(),
            names: StringBuilder::new(),
            dictionary: Arc::new(StringArray::new_null(0)),
        }
    }

    #[inline]
    fn key_of(&mut self, name: &'static str) -> i32 {
        let address = (name.as_ptr() as usize, name.len());
        match self.seen.iter().find(|(start, len, _)| (*start, *len) == address) {
            Some((_, _, key)) => *key,
            None => self.key_of_new(name),
        }
    }

    #[cold]
    fn key_of_new(&mut self, name: &'static str) -> i32 {
        let key = self.key_of_text(name);
        if self.seen.len() < SEEN_COUNT_MAX {
            self.seen.push((name.as_ptr() as usize, name.len(), key));
        }
        key
    }

    fn key_of_text(&mut self, name: &str) -> i32 {
        if let Some(key) = self.by_text.get(name) {
            return *key;
        }
        let key = self.by_text.len() as i32;
        self.by_text.insert(name.into(), key);
        self.names.append_value(name);
        key
    }

    /// Returns the names of a batch with those of all earlier batches, in the same order, so that a dictionary of IPC
    /// only grows.
    fn finish(&mut self) -> Result<ArrayRef, ArrowError> {
        if self.dictionary.len() != self.by_text.len() {
            self.dictionary = Arc::new(self.names.finish_cloned());
        }
        let dictionary = Arc::clone(&self.dictionary) as ArrayRef;
        Ok(Arc::new(DictionaryArray::try_new(self.keys.finish(), dictionary)?))
    }
}

impl List {
    /// Completes a list whose items were appended.
    pub(crate) fn end(&mut self) -> bool {
        let Some(Ok(len)) = self.items.first().map(|items| i32::try_from(items.len())) else { return false };
        self.offsets.push(len);
        self.nulls.append_non_null();
        true
    }

    fn finish(&mut self) -> Result<ArrayRef, ArrowError> {
        let offsets = std::mem::replace(&mut self.offsets, vec![0]);
        let items = self.items.first_mut().map(Values::finish).transpose()?.flatten();
        let items = items.ok_or_else(|| ArrowError::SchemaError("a list without items".to_owned()))?;
        let offsets = OffsetBuffer::new(ScalarBuffer::from(offsets));
        Ok(Arc::new(ListArray::try_new(Arc::clone(&self.item), offsets, items, self.nulls.finish())?))
    }
}

impl Group {
    /// Completes a group whose members were appended.
    pub(crate) fn end(&mut self) {
        self.nulls.append_non_null();
    }

    fn finish(&mut self) -> Result<ArrayRef, ArrowError> {
        let mut members = Vec::with_capacity(self.fields.len());
        for member in &mut self.members {
            members.extend(member.finish()?);
        }
        Ok(Arc::new(StructArray::try_new(self.fields.clone(), members, self.nulls.finish())?))
    }
}

impl Buffer {
    fn len(&self) -> usize {
        use arrow_array::builder::ArrayBuilder;

        match self {
            Self::Omitted => 0,
            Self::Bool(values) => values.len(),
            Self::U8(values) => values.len(),
            Self::U16(values) => values.len(),
            Self::U32(values) => values.len(),
            Self::U64(values) => values.len(),
            Self::I8(values) => values.len(),
            Self::I16(values) => values.len(),
            Self::I32(values) => values.len(),
            Self::I64(values) => values.len(),
            Self::Float(values) => values.len(),
            Self::Timestamp(values) => values.len(),
            Self::Duration(values) => values.len(),
            Self::Fixed(values) => values.len(),
            Self::Text(values) => values.len(),
            Self::Octets(values) => values.len(),
            Self::Name(names) => names.keys.len(),
            Self::List(list) => list.offsets.len() - 1,
            Self::Group(group) => group.nulls.len(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};

    use super::*;

    /// Returns the text that is appended by `push`.
    fn pushed(push: impl FnOnce(&mut Buffer) -> bool) -> String {
        let mut buffer = Buffer::Text(StringBuilder::new());
        assert!(push(&mut buffer));
        let Buffer::Text(mut values) = buffer else { unreachable!() };
        values.finish().value(0).to_owned()
    }

    #[test]
    fn addresses_are_texts_as_the_standard_library_displays_them() {
        for octet in 0..=u8::MAX {
            let v4 = Ipv4Addr::from([octet, 255 - octet, octet / 2, 9]);
            let v6 = Ipv6Addr::from([0x2001, 0xdb8, 0, 0, octet.into(), 0, 0, 1]);
            for address in [IpAddr::V4(v4), IpAddr::V6(v6)] {
                assert_eq!(pushed(|buffer| buffer.push_address(address)), address.to_string());
            }
            let mac = [octet, 255 - octet, 0, 0xff, octet / 2, 0x0a];
            let expected = mac.map(|octet| format!("{octet:02x}")).join(":");
            assert_eq!(pushed(|buffer| buffer.push_mac(mac)), expected);
        }
    }
}
