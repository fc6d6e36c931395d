//! Anything in Anything (AYIYA, draft-massar-v6ops-ayiya-02), which carries IP over UDP.

use crate::base::{EtherType, IpProtocol};
use crate::codec::Reader;

/// Operation of a packet that is forwarded.
const FORWARD: u8 = 1;

/// Reads the header of a packet that is forwarded. Returns its length in octets and the EtherType of the payload; `None`
/// if the header is truncated, or the packet carries no IP packet.
#[must_use]
pub(crate) fn header(data: &[u8]) -> Option<(usize, EtherType)> {
    let mut reader = Reader::new(data);
    let [identity, signature, operation, next] = reader.array().ok()?;
    // The epoch, the identity with a length that is a power of two, and the signature in words.
    let rest_len = 4 + (1 << (identity >> 4)) + usize::from(signature >> 4) * 4;
    reader.skip(rest_len).ok()?;
    let ether_type = match IpProtocol(next) {
        IpProtocol::IPV4 => EtherType::IPV4,
        IpProtocol::IPV6 => EtherType::IPV6,
        _ => return None,
    };
    (operation & 0x0f == FORWARD).then_some((reader.offset(), ether_type))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identity_and_signature_have_lengths_of_their_own() {
        // An identity of 16 octets and a signature of 20, as most brokers use.
        let mut data = [&[0x41, 0x52, 0x11, 41][..], &[0; 4 + 16 + 20]].concat();
        assert_eq!(header(&data), Some((44, EtherType::IPV6)));
        assert_eq!(header(&data[..43]), None);
        for (place, value) in [(2, 0x10), (3, 59)] {
            let octet = std::mem::replace(&mut data[place], value);
            assert_eq!(header(&data), None, "another operation, no next header");
            data[place] = octet;
        }
        (data[0], data[1], data[3]) = (0, 0, 4);
        assert_eq!(header(&data), Some((9, EtherType::IPV4)));
    }
}
