//! The fields of a header block.

use std::fmt;

use super::{FIELD_COUNT_MAX, LIST_LEN_MAX};
use crate::session::Text;
use crate::session::http1::credentials;

/// Octets of capacity that are kept for the next block.
const SPARE_LEN: usize = 4096;

/// Decoded fields, kept until the next block comes.
#[derive(Debug, Default)]
pub(super) struct Block {
    text: Vec<u8>,
    spans: Vec<Span>,
    /// There were more.
    pub(super) is_cut: bool,
}

/// Lengths of a name and a value.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Span {
    name_len: u32,
    value_len: u32,
}

impl Block {
    pub(super) fn clear(&mut self) {
        if self.text.capacity() > SPARE_LEN {
            self.text = Vec::new();
            self.spans = Vec::new();
        }
        self.text.clear();
        self.spans.clear();
        self.is_cut = false;
    }

    /// Adds a field, unless there are too many.
    pub(super) fn add(&mut self, name: &[u8], value: &[u8]) {
        if self.spans.len() == FIELD_COUNT_MAX || self.text.len() + name.len() + value.len() > LIST_LEN_MAX {
            self.is_cut = true;
        }
        if !self.is_cut {
            self.text.extend_from_slice(name);
            self.text.extend_from_slice(value);
            self.spans.push(Span { name_len: name.len() as u32, value_len: value.len() as u32 });
        }
    }

    pub(super) fn fields(&self) -> Fields<'_> {
        Fields { text: &self.text, spans: &self.spans }
    }

    pub(super) fn heap_len(&self) -> usize {
        self.text.capacity() + self.spans.capacity() * size_of::<Span>()
    }
}

/// Header fields in the order in which they stand, those with a colon first. Not serialised.
#[derive(Clone, Copy, Default, PartialEq)]
pub struct Fields<'m> {
    text: &'m [u8],
    spans: &'m [Span],
}

/// One field.
#[derive(Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Field<'m> {
    /// Its name, which is in lower case.
    pub name: Text<'m>,
    /// Its value.
    pub value: Text<'m>,
    /// The kind of credentials that the value is, so that it can be kept out of what is written. `Debug` does so.
    pub credentials: Option<&'static str>,
}

impl<'m> Fields<'m> {
    /// All fields.
    pub fn iter(&self) -> impl Iterator<Item = Field<'m>> + use<'m> {
        let mut text = self.text;
        self.spans.iter().map_while(move |span| {
            let (name, rest) = text.split_at_checked(span.name_len as usize)?;
            let (value, rest) = rest.split_at_checked(span.value_len as usize)?;
            text = rest;
            let credentials =
                std::str::from_utf8(name).ok().and_then(|name| credentials::of_field(name, value));
            Some(Field { name: Text(name), value: Text(value), credentials })
        })
    }

    /// The value of the first field of a name, which is in lower case. Looks at each field.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<Text<'m>> {
        self.iter().find(|field| field.name.0 == name.as_bytes()).map(|field| field.value)
    }

    /// How many there are.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.spans.len()
    }

    /// Whether there is none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }
}

impl fmt::Debug for Fields<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl fmt::Debug for Field<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.credentials {
            Some(kind) => write!(f, "{:?}: ({kind})", self.name),
            None => write!(f, "{:?}: {:?}", self.name, self.value),
        }
    }
}
