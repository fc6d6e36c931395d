//! Values that rows keep while they are open, with the memory that they take.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use crate::base::Timestamp;
use crate::checkpoint::{Invalid, Saved, StateWriter};
use crate::codec::Reader;
use crate::codec::ber::{Oid, Value, tag};
use crate::row::{Cell, Column, List, ListOf, Name, Type, Visitor};
use crate::session::Text;

/// A value that states its memory.
pub(crate) trait Measured {
    /// Returns the number of octets that were allocated for the value.
    fn heap_len(&self) -> usize {
        0
    }
}

macro_rules! without_allocation {
    ($($type:ty),+ $(,)?) => { $( impl Measured for $type {} )+ };
}

without_allocation! { bool, u8, u16, u32, u64, i8, i16, i32, i64, f64, Timestamp, Duration, IpAddr, Name }

impl<T: Measured> Measured for Option<T> {
    fn heap_len(&self) -> usize {
        self.as_ref().map_or(0, Measured::heap_len)
    }
}

/// At most `N` octets of a text: longer ones are truncated. Octets that are not UTF-8 are replaced when it is written.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Kept<const N: usize>(Box<[u8]>);

impl<const N: usize> Kept<N> {
    /// Copies a text. Allocates, unless it is empty.
    #[must_use]
    pub fn new(octets: &[u8]) -> Self {
        Self(octets.get(..N).unwrap_or(octets).into())
    }

    /// Copies a text in UTF-16 with the least significant octet first, up to its first null character.
    pub(crate) fn of_utf16(octets: &[u8]) -> Self {
        let (units, _) = octets.as_chunks();
        let units = units.iter().map(|unit| u16::from_le_bytes(*unit)).take_while(|unit| *unit != 0);
        let letters =
            char::decode_utf16(units.take(N)).map(|letter| letter.unwrap_or(char::REPLACEMENT_CHARACTER));
        Self::new(letters.collect::<String>().as_bytes())
    }

    /// Returns the text.
    #[must_use]
    pub fn text(&self) -> Text<'_> {
        Text(&self.0)
    }
}

impl<const N: usize> fmt::Debug for Kept<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.text().fmt(f)
    }
}

impl<const N: usize> Cell for Kept<N> {
    const TYPE: Type = Type::Text;

    fn visit(&self, column: &'static Column, visitor: &mut (impl Visitor + ?Sized)) {
        self.text().visit(column, visitor);
    }
}

impl<const N: usize> Measured for Kept<N> {
    fn heap_len(&self) -> usize {
        self.0.len()
    }
}

impl<const N: usize> Saved for Kept<N> {
    fn save(&self, writer: &mut StateWriter<'_>) -> Result<(), Invalid> {
        writer.varint(self.0.len() as u64)?;
        Ok(writer.bytes(&self.0)?)
    }

    fn load(reader: &mut Reader<'_>) -> Result<Self, Invalid> {
        let len = usize::load(reader)?;
        if len > N {
            return Err(Invalid::new("a text that is too long"));
        }
        Ok(Self(reader.bytes(len)?.into()))
    }
}

/// An object identifier in BER, of at most `N` octets: longer ones are truncated. Displayed in dotted decimals.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeptOid<const N: usize>(Kept<N>);

impl<const N: usize> KeptOid<N> {
    /// Copies the content of an identifier.
    pub(crate) fn new(oid: Oid<'_>) -> Self {
        Self(Kept::new(oid.0))
    }
}

impl<const N: usize> fmt::Display for KeptOid<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Oid(&self.0.0).fmt(f)
    }
}

impl<const N: usize> Cell for KeptOid<N> {
    const TYPE: Type = Type::Text;

    fn visit(&self, column: &'static Column, visitor: &mut (impl Visitor + ?Sized)) {
        visitor.display(column, self);
    }
}

impl<const N: usize> Measured for KeptOid<N> {
    fn heap_len(&self) -> usize {
        self.0.heap_len()
    }
}

impl<const N: usize> Saved for KeptOid<N> {
    fn save(&self, writer: &mut StateWriter<'_>) -> Result<(), Invalid> {
        self.0.save(writer)
    }

    fn load(reader: &mut Reader<'_>) -> Result<Self, Invalid> {
        Kept::load(reader).map(Self)
    }
}

/// Texts, object identifiers and addresses of a list, in at most `N` octets: further ones are omitted. Takes one allocation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeptList<const N: usize>(Box<[u8]>);

impl<const N: usize> KeptList<N> {
    /// Copies values: object identifiers, and others as texts, each up to 255 octets. Values after those that fit are not read.
    pub(crate) fn of<'v>(values: impl IntoIterator<Item = Value<'v>>) -> Self {
        let mut octets = Vec::new();
        for Value { tag, content } in values {
            let content = content.get(..255).unwrap_or(content);
            if octets.len() + 2 + content.len() > N {
                break;
            }
            if octets.is_empty() {
                // Enough for a few values, so that it grows rarely.
                octets.reserve(N.min(64));
            }
            octets.extend([tag, content.len() as u8]);
            octets.extend_from_slice(content);
        }
        Self(octets.into())
    }

    /// Appends a text, if it fits.
    pub(crate) fn push(&mut self, text: &str) {
        let content = text.as_bytes();
        if content.len() < 256 && self.0.len() + 2 + content.len() <= N {
            self.0 = [&self.0, &[tag::OCTET_STRING, content.len() as u8][..], content].concat().into();
        }
    }

    /// Returns whether there is no value.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the values as they are displayed.
    pub fn iter(&self) -> impl Iterator<Item = KeptItem<'_>> + Clone {
        let mut rest = &*self.0;
        std::iter::from_fn(move || {
            let ([tag, len], content) = rest.split_first_chunk()?;
            let (content, next) = content.split_at_checked(usize::from(*len))?;
            rest = next;
            Some(KeptItem(Value { tag: *tag, content }))
        })
    }
}

/// A value of a [`KeptList`].
#[derive(Clone, Copy, Debug)]
pub struct KeptItem<'k>(Value<'k>);

impl KeptItem<'_> {
    /// Tag of an IPv4 address in 4 octets, an IPv6 address in 16, or the length of a prefix and its address in 17.
    pub(crate) const ADDRESS: u8 = 0x40;
}

impl fmt::Display for KeptItem<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.0.tag, self.0.content) {
            (tag::OBJECT_IDENTIFIER, content) => Oid(content).fmt(f),
            (Self::ADDRESS, &[a, b, c, d]) => Ipv4Addr::new(a, b, c, d).fmt(f),
            (Self::ADDRESS, content) => match content.split_last_chunk() {
                Some(([], octets)) => Ipv6Addr::from(*octets).fmt(f),
                Some(([len], octets)) => write!(f, "{}/{len}", Ipv6Addr::from(*octets)),
                _ => Text(content).fmt(f),
            },
            (_, content) => Text(content).fmt(f),
        }
    }
}

crate::row::cells! { displayed KeptItem<'k>; }

impl<const N: usize> Cell for KeptList<N> {
    const TYPE: Type = <ListOf<KeptItem<'static>> as Cell>::TYPE;

    fn visit(&self, column: &'static Column, visitor: &mut (impl Visitor + ?Sized)) {
        List(self.iter()).visit(column, visitor);
    }
}

impl<const N: usize> Measured for KeptList<N> {
    fn heap_len(&self) -> usize {
        self.0.len()
    }
}

impl<const N: usize> Saved for KeptList<N> {
    fn save(&self, writer: &mut StateWriter<'_>) -> Result<(), Invalid> {
        Kept::<N>(self.0.clone()).save(writer)
    }

    fn load(reader: &mut Reader<'_>) -> Result<Self, Invalid> {
        Kept::<N>::load(reader).map(|Kept(octets)| Self(octets))
    }
}
