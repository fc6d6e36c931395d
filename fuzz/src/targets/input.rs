//! Pieces of structured input.
//!
//! All of them are read from the front of the input, lengths included, so that a seed is written by appending the same
//! fields in the same order (see [`crate::seeds`] in the fuzz package).

use arbitrary::{Arbitrary, Result, Unstructured};

/// The largest length of an octet string.
pub const OCTETS_LEN_MAX: usize = 0xfff;

/// Octets after a length of two octets, little-endian, of which twelve bits count. A length beyond the end of the input
/// means all that is left.
#[derive(Clone, Copy, Debug)]
pub struct Octets<'a>(pub &'a [u8]);

impl<'a> Arbitrary<'a> for Octets<'a> {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        let len = usize::from(u16::arbitrary(u)?) & OCTETS_LEN_MAX;
        u.bytes(len.min(u.len())).map(Self)
    }
}

/// Items up to the end of the input, at most `count_max`.
pub fn items<'a, T: Arbitrary<'a>>(u: &mut Unstructured<'a>, count_max: usize) -> Result<Vec<T>> {
    let mut items = Vec::new();
    while !u.is_empty() && items.len() < count_max {
        items.push(T::arbitrary(u)?);
    }
    Ok(items)
}

/// A structured input made of all of `data`, or `None` if there is too little of it.
pub fn structured<'a, T: Arbitrary<'a>>(data: &'a [u8]) -> Option<T> {
    T::arbitrary_take_rest(Unstructured::new(data)).ok()
}

/// Writes an octet string as [`Octets`] reads it.
pub fn put_octets(seed: &mut Vec<u8>, octets: &[u8]) {
    let octets = &octets[..octets.len().min(OCTETS_LEN_MAX)];
    seed.extend((octets.len() as u16).to_le_bytes());
    seed.extend(octets);
}
