//! PPP over Ethernet, session stage (RFC 2516 section 4).

use super::be16;

/// Length of a PPPoE header in octets.
pub(crate) const HEADER_LEN: usize = 6;

/// PPPoE version 1, type 1, code 0: the first 16 bits of a packet that carries session data.
const SESSION_DATA: u16 = 0x1100;

mod field {
    /// Offset of version, type and code.
    pub(super) const KIND: usize = 0;
    pub(super) const SESSION: usize = 2;
    pub(super) const LEN: usize = 4;
}

/// Fields of a PPPoE session header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub(crate) struct PppoeHeader {
    /// True if the packet carries session data: version 1, type 1, code 0.
    pub(crate) is_session_data: bool,
    /// PPPoE session identifier.
    pub(crate) session_id: u16,
    /// Number of octets behind the PPPoE header, as its length field states.
    pub(crate) payload_len: usize,
}

/// Reads the PPPoE header at the start of `data`; `None` if the header is truncated.
#[must_use]
pub(crate) fn header(data: &[u8]) -> Option<PppoeHeader> {
    Some(PppoeHeader {
        is_session_data: be16(data, field::KIND)? == SESSION_DATA,
        session_id: be16(data, field::SESSION)?,
        payload_len: be16(data, field::LEN)?.into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_code_zero_of_version_one_is_data() {
        let data = [0x11, 0, 0x12, 0x34, 0, 40];
        let expected = PppoeHeader { is_session_data: true, session_id: 0x1234, payload_len: 40 };
        assert_eq!(header(&data), Some(expected));
        for (place, value) in [(0, 0x21), (0, 0x12), (1, 9)] {
            let mut other = data;
            other[place] = value;
            assert_eq!(header(&other), Some(PppoeHeader { is_session_data: false, ..expected }));
        }
        assert_eq!(header(&data[..5]), None);
    }
}
