//! The fields of a head or of a trailer section.

use std::fmt;

use super::credentials;
use crate::session::Text;

/// Header fields in the order in which they stand, duplicates included.
///
/// Not serialised: a message has the fields that are of use to most readers as keys of their own.
#[derive(Clone, Copy, Default, PartialEq)]
pub struct Headers<'m> {
    fields: &'m [httparse::Header<'m>],
}

/// One field.
#[derive(Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Header<'m> {
    /// Its name as sent; names are compared without case.
    pub name: &'m str,
    /// Its value without white space around it. Of a field that was folded over lines, one line.
    pub value: Text<'m>,
    /// The kind of credentials that the value is, so that it can be kept out of what is written. `Debug` does so.
    pub credentials: Option<&'static str>,
}

impl<'m> Headers<'m> {
    pub(super) const fn new(fields: &'m [httparse::Header<'m>]) -> Self {
        Self { fields }
    }

    /// All fields.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Header<'m>> + use<'m> {
        self.fields.iter().map(|field| Header {
            name: field.name,
            value: Text(field.value),
            credentials: credentials::of_field(field.name.as_bytes(), field.value),
        })
    }

    /// The value of the first field of a name, compared without case. Looks at each field.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<Text<'m>> {
        self.fields.iter().find(|field| field.name.eq_ignore_ascii_case(name)).map(|field| Text(field.value))
    }

    /// How many there are.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.fields.len()
    }

    /// Whether there is none.
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
