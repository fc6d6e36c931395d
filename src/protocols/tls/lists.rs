//! Lists inside TLS hello messages, parsed on access.

use std::fmt;
use std::marker::PhantomData;

use super::numbers::ExtensionType;
use crate::codec::{Prefix, Reader};
use crate::row::{Cell, Column, List, ListOf, Type, Visitor};
use crate::session::Text;

/// Maximum number of items of a list that are written, because a number of two octets may have a name of forty.
/// Programs that try all cipher suites offer some 350.
pub const LISTED_COUNT_MAX: usize = 512;

/// A list of numbers of two octets each, of type `T`: cipher suites, groups, signature schemes, versions.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Numbers<'a, T> {
    bytes: &'a [u8],
    of: PhantomData<T>,
}

impl<'a, T: From<u16>> Numbers<'a, T> {
    pub(super) const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, of: PhantomData }
    }

    /// Iterates over the numbers in the order in which they were sent, including GREASE. An odd octet at the end is
    /// ignored.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = T> + ExactSizeIterator + Clone + use<'a, T> {
        self.bytes
            .chunks_exact(2)
            .map(|pair| T::from(u16::from_be_bytes(pair.try_into().unwrap_or_default())))
    }

    /// Returns the number of items in the list.
    #[must_use]
    pub const fn count(&self) -> usize {
        self.bytes.len() / 2
    }

    /// Returns whether the list is empty.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.count() == 0
    }
}

impl<T> Default for Numbers<'_, T> {
    fn default() -> Self {
        Self { bytes: &[], of: PhantomData }
    }
}

impl<T: From<u16> + fmt::Debug> fmt::Debug for Numbers<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// A list of names of application protocols (RFC 7301), each preceded by a length of one octet.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct AlpnNames<'a> {
    bytes: &'a [u8],
}

impl<'a> AlpnNames<'a> {
    /// Iterates over the names in the order in which they were sent. Ends at an invalid length.
    pub fn iter(&self) -> impl Iterator<Item = Text<'a>> + Clone + use<'a> {
        let mut reader = Reader::new(self.bytes);
        std::iter::from_fn(move || reader.prefixed(Prefix::U8).ok().map(Text))
    }

    /// Returns the first name of an application protocol in the list.
    #[must_use]
    pub fn first(&self) -> Option<Text<'a>> {
        self.iter().next()
    }
}

impl fmt::Debug for AlpnNames<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// An extension of a TLS hello message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Extension<'a> {
    /// Type of the extension.
    pub kind: ExtensionType,
    /// Content of the extension, without its type and length.
    pub data: &'a [u8],
}

/// The extensions of a TLS hello message.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Extensions<'a> {
    bytes: &'a [u8],
}

impl<'a> Extensions<'a> {
    /// Consumes the extensions at the end of a hello message: nothing, or a length of two octets and as many octets. An
    /// excessive length is limited to the available octets.
    pub(super) fn read(reader: &mut Reader<'a>) -> Self {
        let Ok(len) = reader.be::<u16>() else { return Self::default() };
        let len = usize::from(len).min(reader.remaining_len());
        Self { bytes: reader.bytes(len).unwrap_or_default() }
    }

    /// Iterates over the extensions in the order in which they were sent, including GREASE. Ends at an invalid length.
    pub fn iter(&self) -> impl Iterator<Item = Extension<'a>> + Clone + use<'a> {
        let mut reader = Reader::new(self.bytes);
        std::iter::from_fn(move || {
            let kind = ExtensionType(reader.be::<u16>().ok()?);
            Some(Extension { kind, data: reader.prefixed(Prefix::U16).ok()? })
        })
    }

    /// Returns the content of the first extension of type `kind`.
    #[must_use]
    pub fn find(&self, kind: u16) -> Option<&'a [u8]> {
        self.iter().find(|extension| extension.kind.0 == kind).map(|extension| extension.data)
    }

    /// Returns whether there is an extension of type `kind`.
    #[must_use]
    pub fn has(&self, kind: u16) -> bool {
        self.find(kind).is_some()
    }

    /// Returns the list of numbers in the extension of type `kind`, which starts with a length of one octet if
    /// `has_short_len`, otherwise of two; empty if there is no such extension.
    pub(super) fn numbers<T: From<u16>>(&self, kind: u16, has_short_len: bool) -> Numbers<'a, T> {
        let Some(data) = self.find(kind) else { return Numbers::default() };
        let mut reader = Reader::new(data);
        let len = if has_short_len {
            reader.be::<u8>().map(usize::from)
        } else {
            reader.be::<u16>().map(usize::from)
        };
        let len = len.unwrap_or_default().min(reader.remaining_len());
        Numbers::new(reader.bytes(len).unwrap_or_default())
    }

    /// Returns the names of application protocols in extension 16 (ALPN).
    pub(super) fn alpn(&self) -> AlpnNames<'a> {
        let Some((len, names)) = self.find(16).and_then(|data| data.split_first_chunk()) else {
            return AlpnNames::default();
        };
        let len = usize::from(u16::from_be_bytes(*len)).min(names.len());
        AlpnNames { bytes: names.get(..len).unwrap_or_default() }
    }
}

impl fmt::Debug for Extensions<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// Octets that are displayed and written as lower-case hex.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Hex<'a>(pub &'a [u8]);

impl fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let digit = |number: u8| DIGITS.get(usize::from(number)).copied().unwrap_or_default();
        // Formats many octets per write: formatting each one would take longer than the rest of a message.
        for octets in self.0.chunks(32) {
            let mut text = [0; 64];
            for (pair, octet) in text.chunks_exact_mut(2).zip(octets) {
                pair.copy_from_slice(&[digit(octet >> 4), digit(octet & 0xf)]);
            }
            let text = text.get(..2 * octets.len()).and_then(|text| std::str::from_utf8(text).ok());
            f.write_str(text.unwrap_or_default())?;
        }
        Ok(())
    }
}

impl fmt::Debug for Hex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl<T: From<u16> + Cell> Cell for Numbers<'_, T> {
    const TYPE: Type = ListOf::<T>::TYPE;

    fn visit(&self, column: &'static Column, visitor: &mut (impl Visitor + ?Sized)) {
        List(self.iter().take(LISTED_COUNT_MAX)).visit(column, visitor);
    }
}

impl Cell for AlpnNames<'_> {
    const TYPE: Type = ListOf::<Text<'_>>::TYPE;

    fn visit(&self, column: &'static Column, visitor: &mut (impl Visitor + ?Sized)) {
        List(self.iter().take(LISTED_COUNT_MAX)).visit(column, visitor);
    }
}

/// The types of the extensions.
impl Cell for Extensions<'_> {
    const TYPE: Type = ListOf::<ExtensionType>::TYPE;

    fn visit(&self, column: &'static Column, visitor: &mut (impl Visitor + ?Sized)) {
        List(self.iter().take(LISTED_COUNT_MAX).map(|extension| extension.kind)).visit(column, visitor);
    }
}

impl Cell for Hex<'_> {
    const TYPE: Type = Type::Octets;

    fn visit(&self, column: &'static Column, visitor: &mut (impl Visitor + ?Sized)) {
        visitor.octets(column, self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn octets_are_written_as_two_digits() {
        let octets: Vec<u8> = (0..=255).collect();
        let expected: String = octets.iter().map(|octet| format!("{octet:02x}")).collect();
        assert_eq!(Hex(&octets).to_string(), expected);
        assert_eq!(Hex(&octets[9..42]).to_string(), expected[18..84]);
        assert_eq!(Hex(&[]).to_string(), "");
    }
}
