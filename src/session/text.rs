//! Octets that are text according to their protocol, but may contain any octet values.

use std::fmt;

use crate::row::{Cell, Column, Type, Visitor};

/// Octets that should be text. Displayed and written as UTF-8, with U+FFFD for invalid octets. The original octets
/// are kept.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Text<'a>(pub &'a [u8]);

impl<'a> Text<'a> {
    /// Returns the text as a string, with U+FFFD for invalid octets; borrowed if the octets are valid UTF-8.
    #[must_use]
    pub fn to_str_lossy(self) -> std::borrow::Cow<'a, str> {
        String::from_utf8_lossy(self.0)
    }

    /// Returns whether the text is empty.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for chunk in self.0.utf8_chunks() {
            f.write_str(chunk.valid())?;
            if !chunk.invalid().is_empty() {
                f.write_str("\u{fffd}")?;
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.0.escape_ascii())
    }
}

impl<'a> From<&'a str> for Text<'a> {
    fn from(text: &'a str) -> Self {
        Self(text.as_bytes())
    }
}

impl Cell for Text<'_> {
    const TYPE: Type = Type::Text;

    #[inline]
    fn visit(&self, column: &'static Column, visitor: &mut (impl Visitor + ?Sized)) {
        match std::str::from_utf8(self.0) {
            Ok(text) => visitor.text(column, text),
            // Written in pieces, without a copy.
            Err(_) => visitor.display(column, self),
        }
    }
}
