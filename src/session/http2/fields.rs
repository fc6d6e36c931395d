//! The fields of a header block.

use std::fmt;

use super::FIELD_COUNT_MAX;
use crate::session::Text;
use crate::session::http1::credentials;

/// Octets of capacity that are kept for the next block: as many as a table of the usual size unfolds to.
const SPARE_LEN: usize = 8192;

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
    /// Octets of names and values so far.
    pub(super) fn len(&self) -> usize {
        self.text.len()
    }

    pub(super) fn clear(&mut self) {
        if self.text.capacity() > SPARE_LEN {
            self.text = Vec::new();
            self.spans = Vec::new();
        }
        self.text.clear();
        self.spans.clear();
        self.is_cut = false;
    }

    /// Adds a field that lies elsewhere. Whether all fields together have no more than `len_max` octets; if not, it is not added.
    pub(super) fn add(&mut self, name: &[u8], value: &[u8], len_max: usize) -> bool {
        let start = self.text.len();
        if start + name.len() + value.len() > len_max {
            return self.cut(start);
        }
        self.text.extend_from_slice(name);
        self.text.extend_from_slice(value);
        self.end_field(start, name.len(), len_max).is_some()
    }

    /// Where the name and the value of a field are decoded to, one behind the other.
    pub(super) const fn text_mut(&mut self) -> &mut Vec<u8> {
        &mut self.text
    }

    /// Takes what lies behind the first `start` octets as a field, `name_len` octets of it as its name, and returns both. None if
    /// there are too many fields, or more than `len_max` octets of them; the field is dropped then.
    pub(super) fn end_field(
        &mut self,
        start: usize,
        name_len: usize,
        len_max: usize,
    ) -> Option<(&[u8], &[u8])> {
        if self.spans.len() == FIELD_COUNT_MAX || self.text.len() > len_max {
            self.cut(start);
            return None;
        }
        let value_len = self.text.len().checked_sub(start + name_len)?;
        self.spans.push(Span { name_len: name_len as u32, value_len: value_len as u32 });
        self.text.get(start..)?.split_at_checked(name_len)
    }

    /// Drops what lies behind the first `start` octets: there was more than may be.
    fn cut(&mut self, start: usize) -> bool {
        self.text.truncate(start);
        self.is_cut = true;
        false
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
            let credentials = credentials::of_field(name, value);
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
