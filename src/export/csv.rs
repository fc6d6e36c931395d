//! Rows as comma-separated values (RFC 4180).
//!
//! A list is one value in quotes with semicolons between its items, so that no reader takes it for a number; a group
//! consists of its members as `name=value`, separated by spaces. Controls in texts are escaped as in JSON, so that a row
//! is one line.

use std::fmt::Display;
use std::net::IpAddr;

use super::selection::{All, Choice, Chosen, Scratch, Selection};
use super::style::{Nulls, Style};
use super::text;
use crate::base::Timestamp;
use crate::row::{Column, Members, Row, Visitor};

/// Appends the names of the columns as a line.
pub(super) fn write_header(out: &mut Vec<u8>, columns: &[&'static Column]) {
    for (index, column) in columns.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        out.extend_from_slice(column.name.as_bytes());
    }
    out.push(b'\n');
}

/// Appends a row as a line.
#[inline]
pub(super) fn write_row(out: &mut Vec<u8>, row: &impl Row, style: Style) {
    let start = out.len();
    row.visit(&mut Line::new(&mut *out, All, style));
    finish(out, start);
}

/// Appends the selected columns of a row as a line.
pub(super) fn write_selected(
    out: &mut Vec<u8>,
    row: &impl Row,
    style: Style,
    selection: &Selection,
    scratch: &mut Scratch,
) {
    let start = out.len();
    row.visit(&mut Line::new(&mut *out, Chosen::new(selection, scratch), style));
    selection.arrange(out, scratch);
    finish(out, start);
}

/// Replaces the last comma with the line end.
#[inline]
fn finish(out: &mut Vec<u8>, start: usize) {
    if out.len() > start {
        out.pop();
    }
    out.push(b'\n');
}

/// Where the next value is, as the separator behind it.
type Place = u8;

/// In a column of the line.
const COLUMN: Place = b',';
/// In a list, as an item.
const ITEM: Place = b';';
/// In a group, as a member, with its name.
const MEMBER: Place = b' ';

/// Visitor that appends each value to a line, followed by a comma.
struct Line<'o, C> {
    out: &'o mut Vec<u8>,
    choice: C,
    style: Style,
    place: Place,
    /// True if an absent value is nothing, and a comma follows.
    is_plain_null: bool,
}

impl<'o, C: Choice> Line<'o, C> {
    #[inline(always)]
    fn new(out: &'o mut Vec<u8>, choice: C, style: Style) -> Self {
        Self { out, choice, style, place: COLUMN, is_plain_null: style.nulls == Nulls::Omit }
    }

    #[inline]
    fn value(&mut self, column: &'static Column, write: impl FnOnce(&mut Vec<u8>)) {
        self.begin(column);
        write(self.out);
        self.out.push(self.place);
    }

    #[inline(never)]
    fn long_unsigned(&mut self, column: &'static Column, value: u64) {
        self.value(column, |out| text::number(out, value));
    }

    #[cold]
    fn other_null(&mut self, column: &'static Column) {
        match self.style.nulls {
            Nulls::Null => self.value(column, |out| out.extend_from_slice(b"null")),
            Nulls::Omit if self.place == MEMBER => {}
            Nulls::Omit => self.out.push(self.place),
        }
    }

    /// Writes what precedes a value.
    #[inline(always)]
    fn begin(&mut self, column: &'static Column) {
        if self.place == MEMBER {
            self.out.extend_from_slice(column.name.as_bytes());
            self.out.push(b'=');
        }
    }

    /// Writes a text that has escapes or a character with a meaning in csv.
    #[cold]
    fn write_text(&mut self, column: &'static Column, write: impl FnOnce(&mut Vec<u8>)) {
        let place = self.place;
        self.value(column, |out| {
            let start = out.len();
            write(out);
            let text = out.get(start..).unwrap_or_default();
            if text.iter().any(|octet| matches!(octet, b',' | b'"' | b';')) {
                requote(out, start, place);
            }
        });
    }

    #[inline]
    fn nested(&mut self, column: &'static Column, place: Place, members: Members<'_>) {
        self.begin(column);
        let outer = std::mem::replace(&mut self.place, place);
        let is_plain_null = std::mem::replace(&mut self.is_plain_null, false);
        let start = self.out.len();
        if outer == COLUMN {
            self.out.push(b'"');
        }
        let inner = self.out.len();
        self.choice.enter();
        members(self);
        self.choice.leave();
        (self.place, self.is_plain_null) = (outer, is_plain_null);
        if self.out.len() > inner {
            // The separator after the last one.
            self.out.pop();
            if outer == COLUMN {
                self.out.push(b'"');
            }
        } else {
            self.out.truncate(start);
        }
        self.out.push(outer);
    }
}

/// Returns whether a text is written without quotes and escapes: printable ASCII without the characters that csv or its
/// lists give a meaning.
#[inline]
fn is_plain(text: &str) -> bool {
    text.as_bytes().iter().fold(true, |is_plain, octet| {
        let is_special = matches!(octet, b',' | b'"' | b';' | b'\\');
        is_plain & (0x20..0x7f).contains(octet) & !is_special
    })
}

/// Converts a text that was escaped for JSON to csv: quotation marks are doubled instead of escaped, and the text of a
/// column is quoted. In a list or group, which is quoted as a whole, semicolons are escaped by a backslash.
fn requote(out: &mut Vec<u8>, start: usize, place: Place) {
    let text = out.split_off(start);
    if place == COLUMN {
        out.push(b'"');
    }
    let mut octets = text.iter().copied();
    while let Some(octet) = octets.next() {
        match octet {
            b'\\' => match octets.next() {
                Some(b'"') => out.extend_from_slice(b"\"\""),
                letter => out.extend(std::iter::once(octet).chain(letter)),
            },
            b';' if place != COLUMN => out.extend_from_slice(b"\\;"),
            _ => out.push(octet),
        }
    }
    if place == COLUMN {
        out.push(b'"');
    }
}

impl<C: Choice> Visitor for Line<'_, C> {
    #[inline(always)]
    fn wants(&mut self, column: &'static Column) -> bool {
        self.choice.next(self.out.len()) & (!column.is_sensitive || self.style.has_sensitive)
    }

    #[inline(always)]
    fn null(&mut self, column: &'static Column) {
        if self.is_plain_null {
            self.out.push(COLUMN);
        } else {
            self.other_null(column);
        }
    }

    #[inline(always)]
    fn unsigned(&mut self, column: &'static Column, value: u64) {
        // Most numbers of a record are small.
        if value < 10 && self.place == COLUMN {
            self.out.extend_from_slice(&[b'0' + value as u8, COLUMN]);
        } else {
            self.long_unsigned(column, value);
        }
    }

    fn float(&mut self, column: &'static Column, value: f64) {
        self.value(column, |out| text::float(out, value));
    }

    #[inline]
    fn text(&mut self, column: &'static Column, value: &str) {
        if is_plain(value) {
            return self.value(column, |out| out.extend_from_slice(value.as_bytes()));
        }
        self.write_text(column, |out| text::escaped(out, value));
    }

    #[inline]
    fn list(&mut self, column: &'static Column, items: Members<'_>) {
        self.nested(column, ITEM, items);
    }

    #[inline]
    fn group(&mut self, column: &'static Column, members: Members<'_>) {
        self.nested(column, MEMBER, members);
    }

    fn signed(&mut self, column: &'static Column, value: i64) {
        self.value(column, |out| text::signed(out, value));
    }

    #[inline]
    fn timestamp(&mut self, column: &'static Column, value: Timestamp) {
        let format = self.style.time;
        self.value(column, |out| text::timestamp(out, value, format, b""));
    }

    #[inline]
    fn duration(&mut self, column: &'static Column, nanoseconds: u64) {
        let format = self.style.time;
        self.value(column, |out| text::duration(out, nanoseconds, format));
    }

    fn address(&mut self, column: &'static Column, value: IpAddr) {
        self.value(column, |out| text::address(out, value));
    }

    fn mac(&mut self, column: &'static Column, value: [u8; 6]) {
        self.value(column, |out| text::mac(out, value));
    }

    #[inline]
    fn name(&mut self, column: &'static Column, value: &'static str) {
        self.value(column, |out| out.extend_from_slice(value.as_bytes()));
    }

    fn octets(&mut self, column: &'static Column, value: &[u8]) {
        self.value(column, |out| text::octets(out, value));
    }

    fn display(&mut self, column: &'static Column, value: &dyn Display) {
        self.write_text(column, |out| text::display(out, value));
    }
}
