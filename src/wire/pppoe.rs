//! PPP over Ethernet, session stage (RFC 2516 section 4).

use super::be16;

/// Octets of the header.
pub(crate) const HEADER_LEN: usize = 6;

/// Version 1, type 1, code 0.
const SESSION_DATA: u16 = 0x1100;

mod field {
    /// Version, type and code.
    pub(super) const KIND: usize = 0;
    pub(super) const SESSION: usize = 2;
    pub(super) const LEN: usize = 4;
}

/// Fields of a session header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub(crate) struct PppoeHeader {
    /// True for version 1, type 1, code 0: the data of a session.
    pub(crate) is_session_data: bool,
    /// Session identifier.
    pub(crate) session_id: u16,
    /// Octets behind the header.
    pub(crate) payload_len: usize,
}

/// Reads a header.
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
