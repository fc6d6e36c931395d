//! Rows as JSON objects (RFC 8259).

use std::fmt::Display;
use std::net::IpAddr;

use super::selection::{All, Choice, Chosen, Scratch, Selection};
use super::style::{Nulls, Style};
use super::text;
use crate::base::Timestamp;
use crate::row::{Column, Members, Name, Row, Union, Visitor};

/// Appends a row to `out` as a JSON object without a line end. Controls in texts are escaped. Allocates nothing once the
/// buffer has grown.
///
/// ```
/// use flowgauge::export::{Style, write_json};
/// use flowgauge::{FileSource, records};
///
/// let mut line = Vec::new();
/// for record in records(FileSource::open("examples/data/web.pcap")?).take(1) {
///     write_json(&mut line, &record?, Style::default());
/// }
/// assert!(line.starts_with(br#"{"protocol":6,"source_address":"#));
/// # Ok::<(), flowgauge::Error>(())
/// ```
#[inline]
pub fn write_json(out: &mut Vec<u8>, row: &(impl Row + ?Sized), style: Style) {
    let start = out.len();
    row.visit(&mut Object { out, choice: All, style });
    enclose(out, start, b'{', b'}');
}

/// Appends a row of one of several tables, such as a message, to `out` as a JSON object, in which `message` is the kind of
/// the row.
#[inline]
pub fn write_message(out: &mut Vec<u8>, message: &impl Union, style: Style) {
    let row = message.row();
    write_json(out, &(Kind(row.table.kind()), row), style);
}

/// The kind of a message.
struct Kind(&'static str);

crate::table! {
    /// The kind of a message.
    impl "kind" for Kind as kind {
        /// Kind of the message: the part of the table's name after the dot.
        "message": Name = Name(kind.0);
    }
}

/// Appends the selected columns of a row to `out` as a JSON object.
pub(super) fn write_selected(
    out: &mut Vec<u8>,
    row: &(impl Row + ?Sized),
    style: Style,
    selection: &Selection,
    scratch: &mut Scratch,
) {
    let start = out.len();
    row.visit(&mut Object { out: &mut *out, choice: Chosen::new(selection, scratch), style });
    selection.arrange(out, scratch);
    enclose(out, start, b'{', b'}');
}

/// Completes the object or array whose entries begin at `start`: replaces the comma before its first entry with the
/// opening bracket, and appends the closing one.
#[inline]
fn enclose(out: &mut Vec<u8>, start: usize, open: u8, close: u8) {
    match out.get_mut(start) {
        Some(first) => *first = open,
        None => out.push(open),
    }
    out.push(close);
}

/// Visitor that appends each value as an entry of a JSON object, preceded by a comma.
struct Object<'o, C> {
    out: &'o mut Vec<u8>,
    choice: C,
    style: Style,
}

impl<C: Choice> Object<'_, C> {
    #[inline]
    fn key(&mut self, column: &'static Column) {
        let start = self.out.len();
        let (octets, len) = column.json_key();
        self.out.extend_from_slice(octets);
        self.out.truncate(start + len);
    }

    #[inline]
    fn quoted(&mut self, column: &'static Column, write: impl FnOnce(&mut Vec<u8>)) {
        self.key(column);
        self.out.push(b'"');
        write(self.out);
        self.out.push(b'"');
    }

    #[inline]
    fn nested(&mut self, column: &'static Column, brackets: [u8; 2], members: Members<'_>) {
        let before = self.out.len();
        self.key(column);
        let start = self.out.len();
        self.choice.enter();
        members(self);
        self.choice.leave();
        if column.is_sparse && self.out.len() == start && self.style.nulls == Nulls::Omit {
            return self.out.truncate(before);
        }
        let [open, close] = brackets;
        enclose(self.out, start, open, close);
    }
}

impl<C: Choice> Visitor for Object<'_, C> {
    #[inline(always)]
    fn wants(&mut self, column: &'static Column) -> bool {
        self.choice.next(self.out.len()) & (!column.is_sensitive || self.style.has_sensitive)
    }

    #[inline]
    fn null(&mut self, column: &'static Column) {
        if self.style.nulls == Nulls::Null {
            self.key(column);
            self.out.extend_from_slice(b"null");
        }
    }

    #[inline]
    fn unsigned(&mut self, column: &'static Column, value: u64) {
        if column.is_sparse && value == 0 && self.style.nulls == Nulls::Omit {
            return;
        }
        self.key(column);
        text::number(self.out, value);
    }

    fn float(&mut self, column: &'static Column, value: f64) {
        self.key(column);
        text::float(self.out, value);
    }

    #[inline]
    fn text(&mut self, column: &'static Column, value: &str) {
        self.quoted(column, |out| text::escaped(out, value));
    }

    #[inline]
    fn list(&mut self, column: &'static Column, items: Members<'_>) {
        self.nested(column, *b"[]", items);
    }

    #[inline]
    fn group(&mut self, column: &'static Column, members: Members<'_>) {
        self.nested(column, *b"{}", members);
    }

    #[inline]
    fn bool(&mut self, column: &'static Column, value: bool) {
        if column.is_sparse && !value && self.style.nulls == Nulls::Omit {
            return;
        }
        self.key(column);
        self.out.extend_from_slice(if value { b"true" } else { b"false" });
    }

    fn signed(&mut self, column: &'static Column, value: i64) {
        self.key(column);
        text::signed(self.out, value);
    }

    #[inline]
    fn timestamp(&mut self, column: &'static Column, value: Timestamp) {
        self.key(column);
        text::timestamp(self.out, value, self.style.time, b"\"");
    }

    #[inline]
    fn duration(&mut self, column: &'static Column, nanoseconds: u64) {
        self.key(column);
        text::duration(self.out, nanoseconds, self.style.time);
    }

    fn address(&mut self, column: &'static Column, value: IpAddr) {
        self.quoted(column, |out| text::address(out, value));
    }

    fn mac(&mut self, column: &'static Column, value: [u8; 6]) {
        self.quoted(column, |out| text::mac(out, value));
    }

    #[inline]
    fn name(&mut self, column: &'static Column, value: &'static str) {
        // Names are chosen by this crate, and need no escapes.
        self.quoted(column, |out| out.extend_from_slice(value.as_bytes()));
    }

    fn octets(&mut self, column: &'static Column, value: &[u8]) {
        self.quoted(column, |out| text::octets(out, value));
    }

    fn display(&mut self, column: &'static Column, value: &dyn Display) {
        self.quoted(column, |out| text::display(out, value));
    }
}
