//! The decoded fields of an HTTP/2 header block.

use std::fmt;

use crate::protocols::http1::credentials;
use crate::session::Text;

/// Maximum number of fields that are decoded from one header block. Browsers send a cookie as several fields.
pub const FIELD_COUNT_MAX: usize = 1024;

/// Maximum capacity in octets of the text buffer that stays allocated for the next header block: the decoded length of
/// a dynamic table of the usual size.
const SPARE_LEN: usize = 8192;

/// Decoded fields of a header block, stored until the next block is decoded.
#[derive(Debug, Default)]
pub(super) struct Block {
    text: Vec<u8>,
    spans: Vec<Span>,
    /// True if the header block has more fields than are stored, because a limit was exceeded.
    pub(super) is_truncated: bool,
}

/// Lengths of the name and the value of a field, in octets.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Span {
    name_len: u32,
    value_len: u32,
}

impl Block {
    /// Returns the number of octets of the stored names and values.
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
        self.is_truncated = false;
    }

    /// Adds a field by copying its name and value. Returns false and does not add the field if all fields together
    /// would exceed `len_max` octets.
    pub(super) fn add(&mut self, name: &[u8], value: &[u8], len_max: usize) -> bool {
        let start = self.text.len();
        if start + name.len() + value.len() > len_max {
            return self.truncate(start);
        }
        self.text.extend_from_slice(name);
        self.text.extend_from_slice(value);
        self.end_field(start, name.len(), len_max).is_some()
    }

    /// Returns the buffer to which the name and the value of a field are decoded, in this order.
    pub(super) const fn text_mut(&mut self) -> &mut Vec<u8> {
        &mut self.text
    }

    /// Completes a field whose octets were appended to the text after its first `start` octets: the first `name_len` of
    /// them are the name. Returns name and value. Returns `None` and drops the field if there are too many fields, or
    /// all fields together exceed `len_max` octets.
    pub(super) fn end_field(
        &mut self,
        start: usize,
        name_len: usize,
        len_max: usize,
    ) -> Option<(&[u8], &[u8])> {
        if self.spans.len() == FIELD_COUNT_MAX || self.text.len() > len_max {
            self.truncate(start);
            return None;
        }
        let value_len = self.text.len().checked_sub(start + name_len)?;
        self.spans.push(Span { name_len: name_len as u32, value_len: value_len as u32 });
        self.text.get(start..)?.split_at_checked(name_len)
    }

    /// Drops the octets of the text after the first `start` ones, because a limit was exceeded, and marks the block as
    /// truncated. Returns false.
    fn truncate(&mut self, start: usize) -> bool {
        self.text.truncate(start);
        self.is_truncated = true;
        false
    }

    pub(super) fn fields(&self) -> Fields<'_> {
        Fields { text: &self.text, spans: &self.spans }
    }

    pub(super) fn heap_len(&self) -> usize {
        self.text.capacity() + self.spans.capacity() * size_of::<Span>()
    }
}

/// Header fields of a message in the order in which they were sent, pseudo-header fields first. Not serialized.
#[derive(Clone, Copy, Default, PartialEq)]
pub struct Fields<'m> {
    text: &'m [u8],
    spans: &'m [Span],
}

/// A header field.
#[derive(Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Field<'m> {
    /// Name of the field in lower case.
    pub name: Text<'m>,
    /// Value of the field.
    pub value: Text<'m>,
    /// Kind of credentials in the value, by which it can be omitted from output; `None` if there are none. `Debug`
    /// omits a value with credentials.
    pub credentials: Option<&'static str>,
}

impl<'m> Fields<'m> {
    /// Iterates over all fields in the order in which they were sent.
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

    /// Returns the value of the first field whose name is `name`, in lower case. Takes time linear in the number of
    /// fields.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<Text<'m>> {
        self.iter().find(|field| field.name.0 == name.as_bytes()).map(|field| field.value)
    }

    /// Returns the number of header fields.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.spans.len()
    }

    /// Returns whether there are no header fields.
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
