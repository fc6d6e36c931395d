//! The fields of an HTTP/1.x head or trailer section.

use std::fmt;

use super::credentials;
use crate::session::Text;

/// HTTP header fields in the order in which they were sent, including duplicates.
///
/// Not serialized: the fields that most readers need are separate keys of the serialized messages.
#[derive(Clone, Copy, Default, PartialEq)]
pub struct Headers<'m> {
    fields: &'m [httparse::Header<'m>],
}

/// One HTTP header field.
#[derive(Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Header<'m> {
    /// Name of the field as sent; comparisons ignore case.
    pub name: &'m str,
    /// Value of the field without surrounding white space. A field that was folded over several lines is joined into
    /// one.
    pub value: Text<'m>,
    /// Kind of credentials in the value, so that the value can be kept out of output. `Debug` omits it.
    pub credentials: Option<&'static str>,
}

impl<'m> Headers<'m> {
    pub(super) const fn new(fields: &'m [httparse::Header<'m>]) -> Self {
        Self { fields }
    }

    /// Iterates over all header fields.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Header<'m>> + use<'m> {
        self.fields.iter().map(|field| Header {
            name: field.name,
            value: Text(field.value),
            credentials: credentials::of_field(field.name.as_bytes(), field.value),
        })
    }

    /// Returns the value of the first header field with a name, ignoring case. Takes time linear in the number of
    /// fields.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<Text<'m>> {
        self.fields.iter().find(|field| field.name.eq_ignore_ascii_case(name)).map(|field| Text(field.value))
    }

    /// Returns the number of header fields.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.fields.len()
    }

    /// Returns whether there are no header fields.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }
}

impl fmt::Debug for Headers<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl fmt::Debug for Header<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.credentials {
            Some(kind) => write!(f, "{}: ({kind})", self.name),
            None => write!(f, "{}: {:?}", self.name, self.value),
        }
    }
}
