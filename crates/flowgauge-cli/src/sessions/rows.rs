//! Messages of sessions for people: one row each, truncated at the width of the terminal.

use std::fmt::Write as _;
use std::io::{self, Write};
use std::net::{IpAddr, SocketAddr};

use flowgauge::base::Timestamp;
use flowgauge::export::{MessageVisitor, visit_message};
use serde::Serialize;
use serde::ser::Serializer;

use super::line::{Header, is_written};
use crate::escape;
use crate::table::{date_and_time, line_width};

/// Writes messages of sessions as rows.
pub(super) struct Rows {
    line_width: Option<usize>,
    /// The current row.
    row: String,
    /// Buffer for the value of a field as JSON.
    json: Vec<u8>,
}

impl Rows {
    /// Writes the column titles.
    pub(super) fn new(out: &mut impl Write) -> io::Result<Self> {
        let titles = ("TIME", "PROTO", "CLIENT", "SERVER", "MESSAGE");
        let (time, protocol, client, server, message) = titles;
        writeln!(out, "{time:<12}  {protocol:<5}  {client:<21}    {server:<21}  {message}")?;
        Ok(Self { line_width: line_width(), row: String::new(), json: Vec::new() })
    }

    /// Appends the row of a message. Characters that are not printable are escaped, so that untrusted text cannot
    /// control the terminal.
    pub(super) fn write(
        &mut self,
        line: &mut Vec<u8>,
        header: &Header,
        message: &impl Serialize,
        has_credentials: bool,
    ) -> serde_json::Result<()> {
        let Self { line_width, row, json } = self;
        row.clear();
        let start = date_and_time(Timestamp::from_nanos(header.timestamp_ns));
        let _ = write!(
            row,
            "{:<12}  {:<5}  {:<21} {} {:<21}  ",
            start.get(11..).unwrap_or(&start),
            header.protocol,
            end(header.source_address, header.source_port),
            if header.role == "server" { "<-" } else { "->" },
            end(header.destination_address, header.destination_port),
        );
        visit_message(message, &mut Row { row: &mut *row, json, has_credentials })?;
        let end =
            line_width.and_then(|width| row.char_indices().nth(width)).map_or(row.len(), |(end, _)| end);
        line.extend_from_slice(row.get(..end).unwrap_or_default().as_bytes());
        Ok(())
    }
}

fn end(address: IpAddr, port: Option<u16>) -> String {
    port.map_or_else(|| address.to_string(), |port| SocketAddr::new(address, port).to_string())
}

/// Serializer that appends the fields of a message to a row. The first field is the kind of the message, which has its
/// own column.
struct Row<'r> {
    row: &'r mut String,
    json: &'r mut Vec<u8>,
    has_credentials: bool,
}

impl MessageVisitor for Row<'_> {
    type Error = serde_json::Error;

    fn field<T: Serialize + ?Sized>(&mut self, name: &str, value: &T) -> serde_json::Result<()> {
        if !is_written(name, self.has_credentials) {
            return Ok(());
        }
        let before = self.row.len();
        if name != "message" {
            let _ = write!(self.row, " {name}=");
        }
        self.json.clear();
        let mut serializer = serde_json::Serializer::new(&mut *self.json);
        let mut written = Written::Json;
        value.serialize(Cell { row: &mut *self.row, written: &mut written, json: &mut serializer })?;
        match written {
            Written::Nothing => self.row.truncate(before),
            Written::Text => {}
            Written::Json => escape::push_printable(self.row, &String::from_utf8_lossy(self.json)),
        }
        Ok(())
    }
}

/// Result of writing the value of a field.
enum Written {
    /// The field has no value.
    Nothing,
    /// The value is a text, and was appended to the row.
    Text,
    /// The value was written to the buffer as JSON.
    Json,
}

/// Implements the methods of `Serializer` for types of values that are written as JSON.
macro_rules! scalars {
    ($($method:ident($type:ty);)+) => {
        $( fn $method(self, value: $type) -> serde_json::Result<()> {
            self.json.$method(value)
        } )+
    };
}

/// Serializes the value of a field: appends a text to the row unchanged, and writes other values as JSON.
struct Cell<'a, 'j> {
    row: &'a mut String,
    written: &'a mut Written,
    json: Json<'a, 'j>,
}

type Json<'a, 'j> = &'a mut serde_json::Serializer<&'j mut Vec<u8>>;

impl<'a, 'j> Serializer for Cell<'a, 'j> {
    type Ok = ();
    type Error = serde_json::Error;
    type SerializeSeq = <Json<'a, 'j> as Serializer>::SerializeSeq;
    type SerializeTuple = <Json<'a, 'j> as Serializer>::SerializeTuple;
    type SerializeTupleStruct = <Json<'a, 'j> as Serializer>::SerializeTupleStruct;
    type SerializeTupleVariant = <Json<'a, 'j> as Serializer>::SerializeTupleVariant;
    type SerializeMap = <Json<'a, 'j> as Serializer>::SerializeMap;
    type SerializeStruct = <Json<'a, 'j> as Serializer>::SerializeStruct;
    type SerializeStructVariant = <Json<'a, 'j> as Serializer>::SerializeStructVariant;

    fn serialize_str(self, text: &str) -> serde_json::Result<()> {
        *self.written = Written::Text;
        escape::push_printable(self.row, text);
        Ok(())
    }

    fn serialize_char(self, letter: char) -> serde_json::Result<()> {
        self.serialize_str(letter.encode_utf8(&mut [0; 4]))
    }

    fn serialize_unit_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
    ) -> serde_json::Result<()> {
        self.serialize_str(variant)
    }

    fn serialize_none(self) -> serde_json::Result<()> {
        *self.written = Written::Nothing;
        Ok(())
    }

    fn serialize_unit(self) -> serde_json::Result<()> {
        self.serialize_none()
    }

    fn serialize_unit_struct(self, _: &'static str) -> serde_json::Result<()> {
        self.serialize_none()
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> serde_json::Result<()> {
        value.serialize(self)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> serde_json::Result<()> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        index: u32,
        variant: &'static str,
        value: &T,
    ) -> serde_json::Result<()> {
        self.json.serialize_newtype_variant(name, index, variant, value)
    }

    fn serialize_seq(self, len: Option<usize>) -> serde_json::Result<Self::SerializeSeq> {
        self.json.serialize_seq(len)
    }

    fn serialize_tuple(self, len: usize) -> serde_json::Result<Self::SerializeTuple> {
        self.json.serialize_tuple(len)
    }

    fn serialize_tuple_struct(
        self,
        name: &'static str,
        len: usize,
    ) -> serde_json::Result<Self::SerializeTupleStruct> {
        self.json.serialize_tuple_struct(name, len)
    }

    fn serialize_tuple_variant(
        self,
        name: &'static str,
        index: u32,
        variant: &'static str,
        len: usize,
    ) -> serde_json::Result<Self::SerializeTupleVariant> {
        self.json.serialize_tuple_variant(name, index, variant, len)
    }

    fn serialize_map(self, len: Option<usize>) -> serde_json::Result<Self::SerializeMap> {
        self.json.serialize_map(len)
    }

    fn serialize_struct(self, name: &'static str, len: usize) -> serde_json::Result<Self::SerializeStruct> {
        self.json.serialize_struct(name, len)
    }

    fn serialize_struct_variant(
        self,
        name: &'static str,
        index: u32,
        variant: &'static str,
        len: usize,
    ) -> serde_json::Result<Self::SerializeStructVariant> {
        self.json.serialize_struct_variant(name, index, variant, len)
    }

    scalars! {
        serialize_bool(bool);
        serialize_i8(i8);
        serialize_i16(i16);
        serialize_i32(i32);
        serialize_i64(i64);
        serialize_u8(u8);
        serialize_u16(u16);
        serialize_u32(u32);
        serialize_u64(u64);
        serialize_f32(f32);
        serialize_f64(f64);
        serialize_bytes(&[u8]);
    }
}
