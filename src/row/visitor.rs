//! The interface between rows and formats.

use std::fmt::Display;
use std::net::IpAddr;

use super::column::Column;
use crate::base::Timestamp;

/// Passes the items of a list, or the members of a group, to a visitor.
pub type Members<'m> = &'m mut dyn FnMut(&mut dyn Visitor);

/// Receives the values of a row, one call per column, in the order of the columns. Implemented by each format.
///
/// Six methods are required. Each of the others passes its value to one of these as a text or a number. The trait is
/// object-safe: a row that is visited with a `&mut dyn Visitor` has one function for all formats, and a call costs about
/// a nanosecond more per column.
pub trait Visitor {
    /// Returns whether the next column is wanted. If not, its value is not computed, and no method is called for it.
    #[inline(always)]
    fn wants(&mut self, column: &'static Column) -> bool {
        let _ = column;
        true
    }

    /// Receives the absence of a value: it does not apply to the row, or is not known.
    fn null(&mut self, column: &'static Column);
    /// Receives an unsigned integer.
    fn unsigned(&mut self, column: &'static Column, value: u64);
    /// Receives a floating-point number.
    fn float(&mut self, column: &'static Column, value: f64);
    /// Receives a text.
    fn text(&mut self, column: &'static Column, value: &str);
    /// Receives a list: `items` passes each item to the visitor, with the column of the items.
    fn list(&mut self, column: &'static Column, items: Members<'_>);
    /// Receives a row inside of the row: `members` passes its columns to the visitor.
    fn group(&mut self, column: &'static Column, members: Members<'_>);

    /// Receives true or false.
    #[inline]
    fn bool(&mut self, column: &'static Column, value: bool) {
        self.text(column, if value { "true" } else { "false" });
    }

    /// Receives a signed integer.
    #[inline]
    fn signed(&mut self, column: &'static Column, value: i64) {
        self.display(column, &value);
    }

    /// Receives a point in time.
    #[inline]
    fn timestamp(&mut self, column: &'static Column, value: Timestamp) {
        self.unsigned(column, value.as_nanos());
    }

    /// Receives a length of time in nanoseconds.
    #[inline]
    fn duration(&mut self, column: &'static Column, nanoseconds: u64) {
        self.unsigned(column, nanoseconds);
    }

    /// Receives an IPv4 or IPv6 address.
    #[inline]
    fn address(&mut self, column: &'static Column, value: IpAddr) {
        self.display(column, &value);
    }

    /// Receives a MAC address.
    #[inline]
    fn mac(&mut self, column: &'static Column, value: [u8; 6]) {
        let [a, b, c, d, e, f] = value;
        self.display(column, &format_args!("{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{f:02x}"));
    }

    /// Receives one of a set of names.
    #[inline]
    fn name(&mut self, column: &'static Column, value: &'static str) {
        self.text(column, value);
    }

    /// Receives octets.
    fn octets(&mut self, column: &'static Column, value: &[u8]) {
        self.text(column, &value.iter().map(|octet| format!("{octet:02x}")).collect::<String>());
    }

    /// Receives a text that is written by a [`Display`] implementation.
    fn display(&mut self, column: &'static Column, value: &dyn Display) {
        self.text(column, &value.to_string());
    }
}

impl<V: Visitor + ?Sized> Visitor for &mut V {
    #[inline]
    fn wants(&mut self, column: &'static Column) -> bool {
        (**self).wants(column)
    }

    #[inline]
    fn null(&mut self, column: &'static Column) {
        (**self).null(column);
    }

    #[inline]
    fn unsigned(&mut self, column: &'static Column, value: u64) {
        (**self).unsigned(column, value);
    }

    #[inline]
    fn float(&mut self, column: &'static Column, value: f64) {
        (**self).float(column, value);
    }

    #[inline]
    fn text(&mut self, column: &'static Column, value: &str) {
        (**self).text(column, value);
    }

    #[inline]
    fn list(&mut self, column: &'static Column, items: Members<'_>) {
        (**self).list(column, items);
    }

    #[inline]
    fn group(&mut self, column: &'static Column, members: Members<'_>) {
        (**self).group(column, members);
    }

    #[inline]
    fn bool(&mut self, column: &'static Column, value: bool) {
        (**self).bool(column, value);
    }

    #[inline]
    fn signed(&mut self, column: &'static Column, value: i64) {
        (**self).signed(column, value);
    }

    #[inline]
    fn timestamp(&mut self, column: &'static Column, value: Timestamp) {
        (**self).timestamp(column, value);
    }

    #[inline]
    fn duration(&mut self, column: &'static Column, nanoseconds: u64) {
        (**self).duration(column, nanoseconds);
    }

    #[inline]
    fn address(&mut self, column: &'static Column, value: IpAddr) {
        (**self).address(column, value);
    }

    #[inline]
    fn mac(&mut self, column: &'static Column, value: [u8; 6]) {
        (**self).mac(column, value);
    }

    #[inline]
    fn name(&mut self, column: &'static Column, value: &'static str) {
        (**self).name(column, value);
    }

    #[inline]
    fn octets(&mut self, column: &'static Column, value: &[u8]) {
        (**self).octets(column, value);
    }

    #[inline]
    fn display(&mut self, column: &'static Column, value: &dyn Display) {
        (**self).display(column, value);
    }
}
