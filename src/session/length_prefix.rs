//! Splitting of length-prefixed messages, for protocols that send the length of each message before the message.
//!
//! A parser of such a protocol declares the length field and passes on the result of [`LengthPrefix::split`]:
//!
//! ```
//! use flowgauge::session::Progress;
//! use flowgauge::session::length_prefix::LengthPrefix;
//!
//! let mut messages = Vec::new();
//! let progress = LengthPrefix::u16_be(512).split(b"\0\x03one\0\x03two\0\x05th", |message| {
//!     messages.push(message);
//!     Ok(())
//! })?;
//! assert_eq!(messages, [b"one", b"two"]);
//! assert!(matches!(progress, Progress::Needs { taken: 10, need: 7 }));
//! assert_eq!(LengthPrefix::u8(16).split(b"\x20", |_| Ok(())).err(), Some(LengthPrefix::TOO_LONG));
//! # Ok::<(), flowgauge::Fault>(())
//! ```

use super::parser::{Fault, Progress};

/// The format of the length field before each message of a stream.
///
/// ```
/// use flowgauge::session::length_prefix::LengthPrefix;
/// use flowgauge::session::{Fault, Input, Out, Parser, Progress};
///
/// /// DNS over TCP (RFC 7766 section 8): two octets of length, then the message.
/// #[derive(Debug, Default)]
/// struct DnsOverTcp;
///
/// impl Parser for DnsOverTcp {
///     type Message<'m> = &'m [u8];
///
///     fn bytes(&mut self, input: &Input<'_>, out: Out<'_, Self>) -> Result<Progress, Fault> {
///         LengthPrefix::u16_be(65_535).split(input.bytes, |message| {
///             out(message);
///             Ok(())
///         })
///     }
/// }
///
/// use flowgauge::{Role, Timestamp};
/// let mut seen = Vec::new();
/// let input = Input::new(b"\0\x03one\0\x05tw", 0, Role::Client, Timestamp::ZERO);
/// let progress = DnsOverTcp.bytes(&input, &mut |message| seen.push(message.to_vec()))?;
/// assert_eq!(seen, [b"one"]);
/// assert!(matches!(progress, Progress::Needs { taken: 5, need: 7 }));
/// # Ok::<(), Fault>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LengthPrefix {
    field_len: usize,
    is_little_endian: bool,
    /// Number of octets that the value of the length field counts in addition to the message, such as the length field.
    counted_len: usize,
    len_max: usize,
}

impl LengthPrefix {
    /// Fault: a message is longer than the protocol allows.
    pub const TOO_LONG: Fault = Fault::new("length_too_great");
    /// Fault: the length field of a message is smaller than the octets that the length must include.
    pub const TOO_SHORT: Fault = Fault::new("length_too_small");

    const fn new(field_len: usize, is_little_endian: bool, len_max: usize) -> Self {
        Self { field_len, is_little_endian, counted_len: 0, len_max }
    }

    /// Returns the format of a length field of one octet, for messages of at most `len_max` octets.
    #[must_use]
    pub const fn u8(len_max: usize) -> Self {
        Self::new(1, false, len_max)
    }

    /// Returns the format of a length field of two octets in network byte order, for messages of at most `len_max`
    /// octets.
    #[must_use]
    pub const fn u16_be(len_max: usize) -> Self {
        Self::new(2, false, len_max)
    }

    /// Returns the format of a length field of two octets, least significant octet first, for messages of at most
    /// `len_max` octets.
    #[must_use]
    pub const fn u16_le(len_max: usize) -> Self {
        Self::new(2, true, len_max)
    }

    /// Returns the format of a length field of three octets in network byte order, for messages of at most `len_max`
    /// octets.
    #[must_use]
    pub const fn u24_be(len_max: usize) -> Self {
        Self::new(3, false, len_max)
    }

    /// Returns the format of a length field of four octets in network byte order, for messages of at most `len_max`
    /// octets.
    #[must_use]
    pub const fn u32_be(len_max: usize) -> Self {
        Self::new(4, false, len_max)
    }

    /// Returns the format of a length field of four octets, least significant octet first, for messages of at most
    /// `len_max` octets.
    #[must_use]
    pub const fn u32_le(len_max: usize) -> Self {
        Self::new(4, true, len_max)
    }

    /// Returns this length field format, changed so that the value of the field includes the octets of the field.
    #[must_use]
    pub const fn counting_itself(self) -> Self {
        Self { counted_len: self.field_len, ..self }
    }

    /// Splits the octets at the start of `bytes` into messages, without their length fields, and calls `message` for
    /// each. Returns the progress for [`Parser::bytes`](super::Parser::bytes): the number of octets consumed, and the
    /// number that the next message needs.
    ///
    /// # Errors
    ///
    /// [`TOO_LONG`](Self::TOO_LONG) or [`TOO_SHORT`](Self::TOO_SHORT) for an invalid length, and the faults that
    /// `message` returns. The messages before the fault were delivered.
    pub fn split<'a>(
        &self,
        bytes: &'a [u8],
        mut message: impl FnMut(&'a [u8]) -> Result<(), Fault>,
    ) -> Result<Progress, Fault> {
        let mut rest = bytes;
        loop {
            let taken = bytes.len() - rest.len();
            let Some((field, after)) = rest.split_at_checked(self.field_len) else {
                return Ok(Progress::Took(taken));
            };
            let counted = self.read(field);
            let len = counted.checked_sub(self.counted_len).ok_or(Self::TOO_SHORT)?;
            if len > self.len_max {
                return Err(Self::TOO_LONG);
            }
            let Some((body, next)) = after.split_at_checked(len) else {
                return Ok(Progress::Needs { taken, need: self.field_len + len });
            };
            message(body)?;
            rest = next;
        }
    }

    fn read(&self, field: &[u8]) -> usize {
        let shift = |value: usize, octet: &u8| value << 8 | usize::from(*octet);
        if self.is_little_endian { field.iter().rev().fold(0, shift) } else { field.iter().fold(0, shift) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Number of octets consumed, and number of octets needed for the next message.
    type Outcome = Result<(usize, usize), Fault>;

    fn split(prefix: LengthPrefix, bytes: &[u8]) -> (Vec<Vec<u8>>, Outcome) {
        let mut messages = Vec::new();
        let outcome = prefix.split(bytes, |message| {
            messages.push(message.to_vec());
            Ok(())
        });
        let outcome = outcome.map(|progress| match progress {
            Progress::Took(taken) => (taken, 0),
            Progress::Needs { taken, need } => (taken, need),
            other => panic!("{other:?}"),
        });
        (messages, outcome)
    }

    #[test]
    fn length_fields_of_all_formats_are_read() {
        for (prefix, bytes) in [
            (LengthPrefix::u8(9), &b"\x02ab\x00\x09"[..]),
            (LengthPrefix::u16_be(9), b"\x00\x02ab\x00\x00\x00\x09"),
            (LengthPrefix::u16_le(9), b"\x02\x00ab\x00\x00\x09\x00"),
            (LengthPrefix::u24_be(9), b"\x00\x00\x02ab\x00\x00\x00\x00\x00\x09"),
            (LengthPrefix::u32_be(9), b"\x00\x00\x00\x02ab\x00\x00\x00\x00\x00\x00\x00\x09"),
            (LengthPrefix::u32_le(9), b"\x02\x00\x00\x00ab\x00\x00\x00\x00\x09\x00\x00\x00"),
        ] {
            let (messages, outcome) = split(prefix, bytes);
            let field_len = prefix.field_len;
            assert_eq!(messages, [b"ab".to_vec(), Vec::new()], "{prefix:?}");
            assert_eq!(outcome, Ok((2 * field_len + 2, field_len + 9)));
            assert_eq!(split(prefix, &bytes[..field_len - 1]), (Vec::new(), Ok((0, 0))));
        }
    }

    #[test]
    fn invalid_lengths_are_rejected() {
        let (messages, outcome) = split(LengthPrefix::u16_be(4), b"\x00\x04abcd\x00\x05");
        assert_eq!((messages, outcome), (vec![b"abcd".to_vec()], Err(LengthPrefix::TOO_LONG)));
        let own = LengthPrefix::u16_be(4).counting_itself();
        assert_eq!(split(own, b"\x00\x04ab\x00\x01").1, Err(LengthPrefix::TOO_SHORT));
        assert_eq!(split(own, b"\x00\x06abcd").1, Ok((6, 0)));
        assert_eq!(split(LengthPrefix::u32_le(1 << 20), &[0xff; 9]).1, Err(LengthPrefix::TOO_LONG));
    }
}
