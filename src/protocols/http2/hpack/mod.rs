//! Decoder for HPACK, the header compression of HTTP/2 (RFC 7541).
//!
//! HPACK is implemented here because the existing crates allocate for each field, do not limit the decoded size of a
//! block, or have been unmaintained for years.

mod error;
mod huffman;
mod static_table;
mod table;

use super::fields::Block;
pub(super) use error::HpackError;
use static_table::STATIC;
use table::Table;
pub(super) use table::{TABLE_LEN_DEFAULT, TABLE_LEN_MAX};

/// Limits for decoding a header block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Maximum number of octets of the decoded names and values of the block.
    pub(super) list_len_max: usize,
    /// Maximum size in octets to which the block may set the dynamic table.
    pub(super) table_len_max: usize,
}

/// HPACK decoder for the header blocks of one direction of a connection, all of them in order.
#[derive(Debug, Default)]
pub(super) struct Decoder {
    table: Table,
}

impl Decoder {
    /// Decodes a header block and adds its fields to `list`. Stops when the limit of the list is reached.
    pub(super) fn decode(
        &mut self,
        mut block: &[u8],
        list: &mut Block,
        limits: Limits,
    ) -> Result<(), HpackError> {
        let Limits { list_len_max, table_len_max } = limits;
        let mut may_resize = true;
        while let Some(first) = block.first() {
            match first {
                // An indexed field (section 6.1).
                0x80.. => {
                    let (name, value) = self.field(integer(&mut block, 7)?)?;
                    if !list.add(name, value, list_len_max) {
                        return Err(HpackError::ListTooLong);
                    }
                }
                // A literal that is added to the table (section 6.2.1).
                0x40.. => {
                    let (name, value) = self.literal((&mut block, 6), list, list_len_max)?;
                    self.table.add(name, value);
                }
                // A change of the table's size (section 6.3).
                0x20.. => {
                    let max = integer(&mut block, 5)?;
                    if !may_resize {
                        return Err(HpackError::LateResize);
                    }
                    if max > table_len_max || !self.table.resize(max) {
                        return Err(HpackError::TableTooLong);
                    }
                    continue;
                }
                // A literal that is not added to the table (sections 6.2.2 and 6.2.3).
                _ => {
                    self.literal((&mut block, 4), list, list_len_max)?;
                }
            }
            may_resize = false;
        }
        Ok(())
    }

    /// Returns the number of octets of memory that the decoder has allocated.
    pub(super) fn heap_len(&self) -> usize {
        self.table.heap_len()
    }

    fn field(&self, index: usize) -> Result<(&[u8], &[u8]), HpackError> {
        let index = index.checked_sub(1).ok_or(HpackError::Index)?;
        match STATIC.get(index) {
            Some((name, value)) => Ok((name.as_bytes(), value.as_bytes())),
            None => self.table.field(index - STATIC.len()).ok_or(HpackError::Index),
        }
    }

    /// Consumes a literal field from `block` and adds it to `list`: a name, as an index or a string, then a value.
    /// `prefix_len` is the length of the index in the first octet, in bits.
    fn literal<'l>(
        &self,
        (block, prefix_len): (&mut &[u8], u32),
        list: &'l mut Block,
        list_len_max: usize,
    ) -> Result<(&'l [u8], &'l [u8]), HpackError> {
        let start = list.len();
        match integer(block, prefix_len)? {
            0 => string(block, list.text_mut())?,
            index => list.text_mut().extend_from_slice(self.field(index)?.0),
        }
        let name_len = list.len() - start;
        string(block, list.text_mut())?;
        list.end_field(start, name_len, list_len_max).ok_or(HpackError::ListTooLong)
    }
}

/// Consumes an HPACK number that begins in the last `prefix_len` bits of the first octet (RFC 7541 section 5.1).
fn integer(block: &mut &[u8], prefix_len: u32) -> Result<usize, HpackError> {
    let (first, mut rest) = block.split_first().ok_or(HpackError::Truncated)?;
    let mask = (1_u32 << prefix_len) - 1;
    let mut number = u32::from(*first) & mask;
    if number == mask {
        // Four octets are 28 bits: more than any length or size that is accepted.
        let mut shift = 0;
        loop {
            let (octet, after) = rest.split_first().ok_or(HpackError::Truncated)?;
            rest = after;
            if shift > 21 {
                return Err(HpackError::Integer);
            }
            number += u32::from(octet & 0x7F) << shift;
            shift += 7;
            if octet & 0x80 == 0 {
                break;
            }
        }
    }
    *block = rest;
    Ok(number as usize)
}

/// Consumes an HPACK string from `block`, and appends its decoded octets to `text` (RFC 7541 section 5.2).
fn string(block: &mut &[u8], text: &mut Vec<u8>) -> Result<(), HpackError> {
    let is_huffman = block.first().ok_or(HpackError::Truncated)? & 0x80 != 0;
    let len = integer(block, 7)?;
    let (string, rest) = block.split_at_checked(len).ok_or(HpackError::Truncated)?;
    *block = rest;
    if is_huffman {
        huffman::decode(string, text)
    } else {
        text.extend_from_slice(string);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
