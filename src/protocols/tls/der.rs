//! Parser of the subset of DER that certificates need: tag-length-value items, in sequence or nested.

/// Tags of the DER values that are parsed.
pub(super) mod tag {
    pub(crate) const INTEGER: u8 = 0x02;
    pub(crate) const BIT_STRING: u8 = 0x03;
    pub(crate) const OCTET_STRING: u8 = 0x04;
    pub(crate) const OBJECT_IDENTIFIER: u8 = 0x06;
    pub(crate) const BOOLEAN: u8 = 0x01;
    pub(crate) const UTC_TIME: u8 = 0x17;
    pub(crate) const GENERALIZED_TIME: u8 = 0x18;
    pub(crate) const T61_STRING: u8 = 0x14;
    pub(crate) const UNIVERSAL_STRING: u8 = 0x1c;
    pub(crate) const BMP_STRING: u8 = 0x1e;
    pub(crate) const SEQUENCE: u8 = 0x30;
    pub(crate) const SET: u8 = 0x31;
    pub(crate) const CONTEXT_0: u8 = 0xa0;
    pub(crate) const CONTEXT_3: u8 = 0xa3;
}

/// A DER value: its tag and its content without tag and length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Value<'a> {
    pub(super) tag: u8,
    pub(super) content: &'a [u8],
}

/// Iterator over consecutive DER values. Ends at an invalid one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Values<'a>(pub(super) &'a [u8]);

impl<'a> Values<'a> {
    /// Consumes the next DER value if its tag is `tag`, and returns its content.
    pub(super) fn next_of(&mut self, tag: u8) -> Option<&'a [u8]> {
        let mut ahead = *self;
        let value = ahead.next().filter(|value| value.tag == tag)?;
        *self = ahead;
        Some(value.content)
    }
}

impl<'a> Iterator for Values<'a> {
    type Item = Value<'a>;

    /// Returns the next DER value. Its length may have up to three octets, more than a handshake message needs; longer
    /// BER encodings of short lengths are accepted too, the indefinite form is not.
    fn next(&mut self) -> Option<Value<'a>> {
        let ([tag, short], rest) = self.0.split_first_chunk::<2>()?;
        let (len, rest) = match short {
            0..=0x7f => (usize::from(*short), rest),
            0x81..=0x83 => {
                let (octets, rest) = rest.split_at_checked(usize::from(short & 3))?;
                (octets.iter().fold(0, |len, octet| len << 8 | usize::from(*octet)), rest)
            }
            _ => return None,
        };
        let (content, rest) = rest.split_at_checked(len)?;
        self.0 = rest;
        Some(Value { tag: *tag, content })
    }
}

/// Returns the value of the content of an INTEGER; `None` if it is negative or too large.
pub(super) fn unsigned(content: &[u8]) -> Option<u32> {
    let (first, _) = content.split_first()?;
    let is_small = *first < 0x80 && content.iter().skip_while(|octet| **octet == 0).count() <= 4;
    is_small.then(|| content.iter().fold(0, |number, octet| number << 8 | u32::from(*octet)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn consecutive_values_are_read() {
        let mut values = Values(&[2, 1, 5, 0x30, 0x81, 2, 5, 0, 4, 0x82, 0, 1, 9]);
        assert_eq!(values.next_of(tag::SEQUENCE), None);
        assert_eq!(values.next_of(tag::INTEGER), Some(&[5][..]));
        assert_eq!(values.next(), Some(Value { tag: tag::SEQUENCE, content: &[5, 0] }));
        assert_eq!(values.next_of(tag::OCTET_STRING), Some(&[9][..]));
        assert_eq!(values.next(), None);
    }

    #[test]
    fn a_length_beyond_the_input_is_rejected() {
        for bytes in [
            &[][..],
            &[2],
            &[2, 2, 1],
            &[2, 0x80, 0, 0],
            &[2, 0x82, 1],
            &[2, 0x84, 0, 0, 0, 0],
            &[2, 0x83, 255, 255, 255, 1],
        ] {
            assert_eq!(Values(bytes).next(), None, "{bytes:?}");
        }
    }
}
