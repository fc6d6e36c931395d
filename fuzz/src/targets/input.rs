//! Parts of structured input.
//!
//! All parts, including lengths, are read from the front of the input, so that a seed is written by appending the same
//! fields in the same order (see [`crate::seeds`] in the fuzz package).

use arbitrary::{Arbitrary, Result, Unstructured};

/// Maximum length of an octet string.
pub const OCTETS_LEN_MAX: usize = 0xfff;

/// Octets after a little-endian length of two octets, of which twelve bits are used. A length beyond the end of the
/// input means all remaining octets.
#[derive(Clone, Copy, Debug)]
pub struct Octets<'a>(pub &'a [u8]);

impl<'a> Arbitrary<'a> for Octets<'a> {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        let len = usize::from(u16::arbitrary(u)?) & OCTETS_LEN_MAX;
        u.bytes(len.min(u.len())).map(Self)
    }
}

/// Reads items up to the end of the input, at most `count_max`.
pub fn items<'a, T: Arbitrary<'a>>(u: &mut Unstructured<'a>, count_max: usize) -> Result<Vec<T>> {
    let mut items = Vec::new();
    while !u.is_empty() && items.len() < count_max {
        items.push(T::arbitrary(u)?);
    }
    Ok(items)
}

/// Reads a structured input from all of `data`, or returns `None` if `data` is too short.
pub fn structured<'a, T: Arbitrary<'a>>(data: &'a [u8]) -> Option<T> {
    T::arbitrary_take_rest(Unstructured::new(data)).ok()
}

/// Writes an octet string as [`Octets`] reads it.
pub fn put_octets(seed: &mut Vec<u8>, octets: &[u8]) {
    let octets = &octets[..octets.len().min(OCTETS_LEN_MAX)];
    seed.extend((octets.len() as u16).to_le_bytes());
    seed.extend(octets);
}
