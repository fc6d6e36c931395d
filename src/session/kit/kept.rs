//! Values that rows keep while they are open, with the memory that they take.

use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

use crate::base::Timestamp;
use crate::checkpoint::{Invalid, Saved, StateWriter};
use crate::codec::Reader;
use crate::row::{Cell, Column, Name, Type, Visitor};
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

without_allocation! { bool, u8, u16, u32, u64, i8, i16, i32, i64, Timestamp, Duration, IpAddr, Name }

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
