//! Header compression (RFC 7541), the decoder's side.
//!
//! Written here: the crates that there are allocate for each field, keep no limit on what a block unfolds to, or were left
//! alone for years.

mod huffman;
mod static_table;
mod table;

use super::fields::Block;
use static_table::STATIC;
use table::Table;

/// Octets that a dynamic table may be told to have. One that is told more cannot be followed.
pub(super) const TABLE_LEN_MAX: usize = 64 << 10;

/// Octets that a dynamic table may be told to have while no SETTINGS say otherwise (RFC 9113 section 6.5.2).
pub(super) const TABLE_LEN_DEFAULT: usize = 4096;

/// What a block may ask for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Octets of names and values that it may unfold to.
    pub(super) list_len_max: usize,
    /// Octets of the dynamic table.
    pub(super) table_len_max: usize,
}

/// Why a block cannot be decoded; what follows it on the connection cannot either.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HpackError {
    /// It ends within a field.
    Cut,
    /// A number has more bits than any that makes sense.
    Integer,
    /// A string is not what the code can have made.
    Huffman,
    /// There is no such field in the tables.
    Index,
    /// The table's size comes behind a field.
    LateResize,
    /// The table is told to be larger than it may be.
    TableTooLong,
    /// It unfolds to more than it may.
    ListTooLong,
}

/// Decodes the blocks of one direction of a connection, in order and without exception.
#[derive(Debug, Default)]
pub(super) struct Decoder {
    table: Table,
}

impl Decoder {
    /// Decodes a block and adds its fields to a list. Ends where that has as much as it may have.
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
                // Section 6.1: an indexed field.
                0x80.. => {
                    let (name, value) = self.field(integer(&mut block, 7)?)?;
                    if !list.add(name, value, list_len_max) {
                        return Err(HpackError::ListTooLong);
                    }
                }
                // Section 6.2.1: a literal that is added to the table.
                0x40.. => {
                    let (name, value) = self.literal((&mut block, 6), list, list_len_max)?;
                    self.table.add(name, value);
                }
                // Section 6.3: the table's size.
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
                // Sections 6.2.2 and 6.2.3: a literal that is not.
                _ => {
                    self.literal((&mut block, 4), list, list_len_max)?;
                }
            }
            may_resize = false;
        }
        Ok(())
    }

    /// Octets that it allocated.
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

    /// Reads a name, by its index or in full, and a value, and adds both to a list, where they are decoded to.
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

/// Section 5.1: a number that begins in the last bits of an octet.
fn integer(block: &mut &[u8], prefix_len: u32) -> Result<usize, HpackError> {
    let (first, mut rest) = block.split_first().ok_or(HpackError::Cut)?;
    let mask = (1_u32 << prefix_len) - 1;
    let mut number = u32::from(*first) & mask;
    if number == mask {
        // Four octets are 28 bits: more than any length or size that is taken.
        let mut shift = 0;
        loop {
            let (octet, after) = rest.split_first().ok_or(HpackError::Cut)?;
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

/// Section 5.2: a string, appended as what it says.
fn string(block: &mut &[u8], text: &mut Vec<u8>) -> Result<(), HpackError> {
    let is_huffman = block.first().ok_or(HpackError::Cut)? & 0x80 != 0;
    let len = integer(block, 7)?;
    let (string, rest) = block.split_at_checked(len).ok_or(HpackError::Cut)?;
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
