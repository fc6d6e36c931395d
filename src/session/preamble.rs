//! The header of the PROXY protocol, which a proxy sends at the start of a connection that it forwards.
//!
//! The header does not identify the application protocol, so recognition begins after the header. The format is that of
//! the HAProxy specification, versions 1 (a line of text) and 2 (binary).

use super::protocol::PROBE_LEN_MAX;

/// Maximum length in octets of a PROXY protocol header of version 1, including the line end.
const LINE_LEN_MAX: usize = 107;

/// First octets of every PROXY protocol header of version 2.
const SIGNATURE: &[u8; 12] = b"\r\n\r\n\0\r\nQUIT\n";

/// Length in octets of the fixed part of a PROXY protocol header of version 2, before the addresses: signature, version
/// and command, family, length.
const FIXED_LEN: usize = 16;

/// Result of the search for a PROXY protocol header at the beginning of a client's octets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Preamble {
    /// The octets do not begin with a PROXY protocol header.
    None,
    /// The octets may begin with a PROXY protocol header, but octets of it are missing.
    Partial,
    /// The octets begin with a PROXY protocol header of this many octets.
    Whole(usize),
}

impl Preamble {
    /// Searches for a PROXY protocol header at the start of a client's octets.
    pub(super) fn read(bytes: &[u8]) -> Self {
        match bytes.first() {
            Some(b'P') => line(bytes),
            Some(b'\r') => binary(bytes),
            _ => Self::None,
        }
    }
}

fn line(bytes: &[u8]) -> Preamble {
    const STARTS: [&[u8]; 3] = [b"PROXY TCP4 ", b"PROXY TCP6 ", b"PROXY UNKNOWN"];
    let may_begin = |start: &[u8]| bytes.iter().zip(start).all(|(octet, expected)| octet == expected);
    let Some(start) = STARTS.iter().find(|start| may_begin(start)) else { return Preamble::None };
    let window = bytes.get(..LINE_LEN_MAX).unwrap_or(bytes);
    match window.iter().position(|octet| *octet == b'\n') {
        Some(end) if end >= start.len() && window.get(end - 1) == Some(&b'\r') => Preamble::Whole(end + 1),
        None if bytes.len() < LINE_LEN_MAX => Preamble::Partial,
        _ => Preamble::None,
    }
}

fn binary(bytes: &[u8]) -> Preamble {
    if !bytes.iter().zip(SIGNATURE).all(|(octet, expected)| octet == expected) {
        return Preamble::None;
    }
    let Some([_, _, _, _, _, _, _, _, _, _, _, _, version, family, high, low]) = bytes.first_chunk() else {
        return Preamble::Partial;
    };
    // Version 2, local or proxied; without an address, or with one of IPv4, IPv6 or Unix for streams or datagrams.
    let is_header = matches!(version, 0x20 | 0x21) && family >> 4 <= 3 && family & 0x0F <= 2;
    let len = FIXED_LEN + usize::from(u16::from_be_bytes([*high, *low]));
    match is_header && len < PROBE_LEN_MAX {
        false => Preamble::None,
        true if bytes.len() < len => Preamble::Partial,
        true => Preamble::Whole(len),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the example headers of the PROXY protocol specification, sections 2.1 and 2.2.
    #[test]
    fn header_lengths_match_the_specification() {
        let longest: &[u8] = b"PROXY TCP6 ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff \
            ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 65535 65535\r\n";
        let unknown: &[u8] = b"PROXY UNKNOWN ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff \
            ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 65535 65535\r\n";
        assert_eq!(unknown.len(), LINE_LEN_MAX);
        let binary =
            [SIGNATURE.as_slice(), b"\x21\x11\x00\x0C\x0A\0\0\x01\x0A\0\0\x02\x9C\x40\x01\xBB"].concat();
        let local = [SIGNATURE.as_slice(), b"\x20\x00\x00\x00"].concat();
        for header in [
            b"PROXY TCP4 255.255.255.255 255.255.255.255 65535 65535\r\n".as_slice(),
            longest,
            unknown,
            b"PROXY UNKNOWN\r\n",
            &binary,
            &local,
        ] {
            let followed = [header, b"\x16\x03\x01"].concat();
            assert_eq!(Preamble::read(&followed), Preamble::Whole(header.len()), "{header:?}");
            for len in 1..header.len() {
                assert_eq!(Preamble::read(&header[..len]), Preamble::Partial, "{len} of {header:?}");
            }
        }
    }

    #[test]
    fn similar_octets_are_not_a_header() {
        let too_long = [b"PROXY UNKNOWN ".as_slice(), &[b'x'; LINE_LEN_MAX], b"\r\n"].concat();
        let version_3 = [SIGNATURE.as_slice(), b"\x31\x11\x00\x00"].concat();
        let huge = [SIGNATURE.as_slice(), b"\x21\x11\xFF\xFF"].concat();
        for bytes in [
            b"".as_slice(),
            b"POST / HTTP/1.1\r\n",
            b"PROXY UDP4 1.2.3.4 1.2.3.4 1 1\r\n",
            b"PROXY TCP4 1.2.3.4\n",
            b"\r\n\r\nGET / HTTP/1.1\r\n",
            &too_long,
            &version_3,
            &huge,
        ] {
            assert_eq!(Preamble::read(bytes), Preamble::None, "{bytes:?}");
        }
    }
}
