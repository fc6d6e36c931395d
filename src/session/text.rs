//! Octets that are text according to their protocol, but may contain any octet values.

use std::fmt;

/// Octets that should be text. Displayed and serialized as UTF-8, with U+FFFD for invalid octets. The original octets
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
        f.write_str(&self.to_str_lossy())
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

#[cfg(feature = "serde")]
impl serde::Serialize for Text<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.to_str_lossy())
    }
}
