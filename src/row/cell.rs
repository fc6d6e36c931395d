//! Rust types of the values of columns.

use std::fmt::Display;
use std::marker::PhantomData;
use std::net::IpAddr;
use std::time::Duration;

use super::column::{Column, Type};
use super::table::Table;
use super::visitor::Visitor;
use crate::base::{ApplicationName, Encapsulation, EncapsulationHeader, History, Timestamp, VlanIds};
use crate::base::{IpProtocol, TcpFlags, duration_nanos};

/// A value of a column. The type of the column follows from the Rust type, so that it is stated once.
pub trait Cell {
    /// Type of the column.
    const TYPE: Type;
    /// True if there may be no value.
    const IS_NULLABLE: bool = false;

    /// Passes the value to the method of the visitor for its type.
    fn visit(&self, column: &'static Column, visitor: &mut (impl Visitor + ?Sized));
}

/// Implements [`Cell`] for types whose values are passed to one method of a visitor.
macro_rules! scalar_cells {
    ($($rust:ty: $type:expr, $method:ident, |$value:ident| $convert:expr;)+) => {$(
        impl Cell for $rust {
            const TYPE: Type = $type;

            #[inline]
            fn visit(&self, column: &'static Column, visitor: &mut (impl Visitor + ?Sized)) {
                let $value = self;
                visitor.$method(column, $convert);
            }
        }
    )+};
}

scalar_cells! {
    bool: Type::Bool, bool, |value| *value;
    u8: Type::Unsigned(8), unsigned, |value| u64::from(*value);
    u16: Type::Unsigned(16), unsigned, |value| u64::from(*value);
    u32: Type::Unsigned(32), unsigned, |value| u64::from(*value);
    u64: Type::Unsigned(64), unsigned, |value| *value;
    usize: Type::Unsigned(64), unsigned, |value| *value as u64;
    i8: Type::Signed(8), signed, |value| i64::from(*value);
    i16: Type::Signed(16), signed, |value| i64::from(*value);
    i32: Type::Signed(32), signed, |value| i64::from(*value);
    i64: Type::Signed(64), signed, |value| *value;
    f64: Type::Float, float, |value| *value;
    Timestamp: Type::Timestamp, timestamp, |value| *value;
    Duration: Type::Duration, duration, |value| duration_nanos(*value);
    IpAddr: Type::Address, address, |value| *value;
    [u8; 6]: Type::Mac, mac, |value| *value;
    Name: Type::Name, name, |value| value.0;
    &str: Type::Text, text, |value| value;
    String: Type::Text, text, |value| value;
    &[u8]: Type::Octets, octets, |value| value;
    IpProtocol: Type::Unsigned(8), unsigned, |value| u64::from(value.0);
    TcpFlags: Type::Unsigned(16), unsigned, |value| u64::from(value.0);
    ApplicationName: Type::Text, text, |value| value.as_str();
}

/// One of a set of names that this crate or a registry defines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Name(pub &'static str);

impl<T: Cell> Cell for Option<T> {
    const TYPE: Type = T::TYPE;
    const IS_NULLABLE: bool = true;

    #[inline]
    fn visit(&self, column: &'static Column, visitor: &mut (impl Visitor + ?Sized)) {
        match self {
            Some(value) => value.visit(column, visitor),
            None => visitor.null(column),
        }
    }
}

impl<T: Cell> Cell for &T {
    const TYPE: Type = T::TYPE;
    const IS_NULLABLE: bool = T::IS_NULLABLE;

    #[inline]
    fn visit(&self, column: &'static Column, visitor: &mut (impl Visitor + ?Sized)) {
        (**self).visit(column, visitor);
    }
}

impl Cell for Box<str> {
    const TYPE: Type = Type::Text;

    #[inline]
    fn visit(&self, column: &'static Column, visitor: &mut (impl Visitor + ?Sized)) {
        visitor.text(column, self);
    }
}

impl<T: Cell> Cell for Vec<T> {
    const TYPE: Type = Type::List(Item::<T>::COLUMN);

    #[inline]
    fn visit(&self, column: &'static Column, visitor: &mut (impl Visitor + ?Sized)) {
        List(self.as_slice()).visit(column, visitor);
    }
}

/// A text that is written by the [`Display`] implementation of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Displayed<T>(pub T);

impl<T: Display> Cell for Displayed<T> {
    const TYPE: Type = Type::Text;

    #[inline]
    fn visit(&self, column: &'static Column, visitor: &mut (impl Visitor + ?Sized)) {
        visitor.display(column, &self.0);
    }
}

/// A row inside of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group<R>(pub R);

impl<R: Table> Cell for Group<R> {
    const TYPE: Type = Type::Group(R::COLUMNS);

    #[inline]
    fn visit(&self, column: &'static Column, visitor: &mut (impl Visitor + ?Sized)) {
        visitor.group(column, &mut |visitor| self.0.visit(visitor));
    }
}

/// A list: anything that can be iterated over again, such as a slice, or a parser that reads the items from the octets
/// of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct List<I>(pub I);

/// The type of a column of lists whose items are `T`, regardless of what they are read from.
pub type ListOf<T> = List<std::iter::Empty<T>>;

/// Holder of the column of the items of a list.
struct Item<T>(PhantomData<T>);

impl<T: Cell> Item<T> {
    const COLUMN: &'static Column = &Column::item(T::TYPE, T::IS_NULLABLE);
}

impl<I> Cell for List<I>
where
    I: Clone + IntoIterator,
    I::Item: Cell,
{
    const TYPE: Type = Type::List(Item::<I::Item>::COLUMN);

    #[inline]
    fn visit(&self, column: &'static Column, visitor: &mut (impl Visitor + ?Sized)) {
        visitor.list(column, &mut |visitor| {
            for item in self.0.clone() {
                item.visit(Item::<I::Item>::COLUMN, visitor);
            }
        });
    }
}

impl Cell for History {
    const TYPE: Type = Type::Text;

    #[inline]
    fn visit(&self, column: &'static Column, visitor: &mut (impl Visitor + ?Sized)) {
        let (letters, len) = self.ascii();
        visitor.text(column, std::str::from_utf8(letters.get(..len).unwrap_or_default()).unwrap_or_default());
    }
}

impl Cell for VlanIds {
    const TYPE: Type = Type::List(Item::<u16>::COLUMN);

    #[inline]
    fn visit(&self, column: &'static Column, visitor: &mut (impl Visitor + ?Sized)) {
        visitor
            .list(column, &mut |visitor| self.iter().for_each(|id| id.visit(Item::<u16>::COLUMN, visitor)));
    }
}

impl Cell for Encapsulation {
    const TYPE: Type = Type::List(Item::<Group<EncapsulationHeader>>::COLUMN);

    fn visit(&self, column: &'static Column, visitor: &mut (impl Visitor + ?Sized)) {
        visitor.list(column, &mut |visitor| {
            for header in self.headers() {
                Group(header).visit(Item::<Group<EncapsulationHeader>>::COLUMN, visitor);
            }
        });
    }
}
