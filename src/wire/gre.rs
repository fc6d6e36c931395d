//! GRE (RFC 2784, RFC 2890) and the enhanced GRE of PPTP (RFC 2637 section 4.1).

use super::{be16, be32, ip, ipv4, le16};
use crate::base::EtherType;

/// EtherType of ERSPAN types I and II as a GRE payload.
pub(crate) const ERSPAN_II: EtherType = EtherType(0x88be);

/// EtherType of ERSPAN type III as a GRE payload.
pub(crate) const ERSPAN_III: EtherType = EtherType(0x22eb);

/// EtherType of PPP as a GRE payload.
pub(crate) const PPP: EtherType = EtherType(0x880b);

/// EtherType of WCCP version 2 as a GRE payload; some variants have a WCCP header before the IPv4 packet.
pub(crate) const WCCP: EtherType = EtherType(0x883e);

const WCCP_HEADER_LEN: usize = 4;

/// Length of the flags and protocol fields of a GRE header, in octets.
const HEADER_LEN_MIN: usize = 4;
/// Length of each optional field of a GRE header, in octets.
const OPTIONAL_LEN: usize = 4;

const HAS_CHECKSUM: u16 = 0x8000;
const HAS_ROUTING: u16 = 0x4000;
const HAS_KEY: u16 = 0x2000;
const HAS_SEQUENCE: u16 = 0x1000;
/// Flag of the acknowledgment number, which only PPTP uses.
const HAS_ACKNOWLEDGMENT: u16 = 0x80;
const VERSION_MASK: u16 = 7;

/// Flags, version and protocol of EoIP.
const EOIP: u32 = 0x2001_6400;

mod field {
    pub(super) const FLAGS: usize = 0;
    pub(super) const PROTOCOL: usize = 2;
    pub(super) const EOIP_LEN: usize = 4;
    pub(super) const EOIP_TUNNEL: usize = 6;
}

/// Fields of a GRE header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub(crate) struct GreHeader {
    /// GRE version: 0, or 1 for PPTP.
    pub(crate) version: u8,
    /// Protocol of the payload.
    pub(crate) protocol: EtherType,
    /// Length of the GRE header in octets.
    pub(crate) len: usize,
    /// GRE key, if present. In PPTP, the payload length is in the upper 16 bits and the call identifier in the
    /// lower.
    pub(crate) key: Option<u32>,
    /// True if the GRE header contains a checksum.
    pub(crate) has_checksum: bool,
    /// True if the GRE header contains a sequence number. A PPTP packet without a sequence number has no
    /// payload.
    pub(crate) has_sequence: bool,
}

/// Fields of a header of EoIP, the form of GRE with which routers of MikroTik carry Ethernet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EoipHeader {
    /// Identifier of the tunnel.
    pub(crate) tunnel_id: u16,
    /// Length of the payload in octets.
    pub(crate) payload_len: usize,
}

/// Length of an EoIP header in octets.
pub(crate) const EOIP_LEN: usize = 8;

/// Reads an EoIP header: flags and version as in PPTP, a protocol of its own, the length of the payload, and the
/// identifier of the tunnel in little-endian order. `None` if the header is truncated or of another kind.
#[must_use]
pub(crate) fn eoip(data: &[u8]) -> Option<EoipHeader> {
    let header = data.first_chunk::<EOIP_LEN>()?;
    let is_eoip = be32(header, field::FLAGS)? == EOIP;
    let payload_len = be16(header, field::EOIP_LEN)?.into();
    is_eoip.then_some(EoipHeader { tunnel_id: le16(header, field::EOIP_TUNNEL)?, payload_len })
}

/// Returns whether a GRE payload is an 802.11 frame, as between access points and controllers of Aruba: 0x8200, 0x8210
/// and so on to 0x8370, one for each pair of radio and SSID.
#[must_use]
pub(crate) const fn is_aruba(protocol: EtherType) -> bool {
    matches!(protocol.0, 0x8200..=0x8370) && protocol.0 & 0x0f == 0
}

/// Reads a GRE header; `None` if the header is truncated, has an unknown version, or contains the source routes
/// that RFC 2784 removed.
#[must_use]
pub(crate) fn header(data: &[u8]) -> Option<GreHeader> {
    let (flags, protocol) = (be16(data, field::FLAGS)?, EtherType(be16(data, field::PROTOCOL)?));
    // The most common case; the code below returns the same result in twice the time.
    if flags == 0 {
        let (has_checksum, has_sequence) = (false, false);
        return Some(GreHeader {
            version: 0,
            protocol,
            len: HEADER_LEN_MIN,
            key: None,
            has_checksum,
            has_sequence,
        });
    }
    let has = |bit: u16| flags & bit != 0;
    let (has_checksum, has_key, has_sequence) = (has(HAS_CHECKSUM), has(HAS_KEY), has(HAS_SEQUENCE));
    let version = (flags & VERSION_MASK) as u8;
    let is_pptp = version == 1;
    if has(HAS_ROUTING) || version > 1 || (is_pptp && (has_checksum || !has_key || protocol != PPP)) {
        return None;
    }
    let len_of = |is_present: bool| if is_present { OPTIONAL_LEN } else { 0 };
    let key_at = HEADER_LEN_MIN + len_of(has_checksum);
    let len = key_at + len_of(has_key) + len_of(has_sequence) + len_of(is_pptp && has(HAS_ACKNOWLEDGMENT));
    let key = if has_key { Some(be32(data, key_at)?) } else { None };
    Some(GreHeader { version, protocol, len, key, has_checksum, has_sequence })
}

impl GreHeader {
    /// Returns the virtual subnet identifier of NVGRE (RFC 7637 section 3.2), 24 bits. NVGRE is bridged
    /// Ethernet with a key, but with neither a checksum nor a sequence number; `None` for other headers.
    #[must_use]
    pub(crate) fn virtual_subnet(&self) -> Option<u32> {
        let is_bridging = self.protocol == EtherType::ETHERNET_BRIDGING;
        let key = self.key.filter(|_| is_bridging && !self.has_checksum && !self.has_sequence);
        key.map(|key| key >> 8)
    }

    /// Returns the payload length in octets and the call identifier of a PPTP packet; `None` if the packet is
    /// only an acknowledgment, which has no sequence number.
    #[must_use]
    pub(crate) fn pptp_call(&self) -> Option<(usize, u32)> {
        let key = self.key.filter(|_| self.has_sequence)?;
        Some(((key >> 16) as usize, key & 0xffff))
    }
}

/// Returns the length in octets of the WCCP header between the GRE header and the redirected IPv4 packet: zero
/// if the packet directly follows the GRE header.
#[must_use]
pub(crate) fn wccp_header_len(data: &[u8]) -> usize {
    if ip::version(data).is_some_and(|version| version != ipv4::VERSION) { WCCP_HEADER_LEN } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the length and the key for each set of flags, counted field by field (RFC 2890 section 2).
    #[test]
    fn fields_are_in_the_order_of_their_flags() {
        for flags in [0u16, 0x8000, 0x2000, 0x1000, 0xa000, 0x9000, 0x3000, 0xb000] {
            let (mut data, mut wanted) = ([flags.to_be_bytes(), [8, 0]].concat(), None);
            for (bit, field) in [(0x8000, [9; 4]), (0x2000, [1, 2, 3, 4]), (0x1000, [8; 4])] {
                if flags & bit != 0 {
                    data.extend(field);
                    wanted = if bit == 0x2000 { Some(0x0102_0304) } else { wanted };
                }
            }
            let found = header(&data).unwrap();
            assert_eq!((found.version, found.protocol, found.len), (0, EtherType::IPV4, data.len()));
            assert_eq!(found.key, wanted);
            assert_eq!((found.has_checksum, found.has_sequence), (flags & 0x8000 != 0, flags & 0x1000 != 0));
        }
    }

    #[test]
    fn nvgre_has_a_key_alone() {
        let subnet = |data: &[u8]| header(data).unwrap().virtual_subnet();
        assert_eq!(subnet(&[0x20, 0, 0x65, 0x58, 0x12, 0x34, 0x56, 9]), Some(0x12_3456));
        assert_eq!(subnet(&[0x20, 0, 8, 0, 0x12, 0x34, 0x56, 9]), None);
        assert_eq!(subnet(&[0x30, 0, 0x65, 0x58, 0x12, 0x34, 0x56, 9, 0, 0, 0, 1]), None);
        assert_eq!((wccp_header_len(&[0x45]), wccp_header_len(&[0x00]), wccp_header_len(&[])), (0, 4, 0));
    }

    #[test]
    fn vendors_have_payloads_of_their_own() {
        let data = [0x20, 1, 0x64, 0, 1, 2, 7, 0, 9];
        assert_eq!(eoip(&data), Some(EoipHeader { tunnel_id: 7, payload_len: 0x102 }));
        assert_eq!((eoip(&data[..7]), header(&data)), (None, None));
        assert_eq!(eoip(&[0x20, 1, 0x64, 1, 1, 2, 7, 0]), None);
        let aruba: Vec<_> = (0..=u16::MAX).filter(|number| is_aruba(EtherType(*number))).collect();
        assert_eq!((aruba.len(), aruba[0], aruba[23]), (24, 0x8200, 0x8370));
    }

    #[test]
    fn pptp_needs_a_key_and_ppp() {
        let data = [0x30, 0x81, 0x88, 0x0b, 0, 7, 0, 9, 0, 0, 0, 1, 0, 0, 0, 2];
        let found = header(&data).unwrap();
        assert_eq!((found.version, found.len, found.key), (1, 16, Some(0x0007_0009)));
        assert_eq!(found.pptp_call(), Some((7, 9)));
        assert_eq!(GreHeader { has_sequence: false, ..found }.pptp_call(), None);
        for (place, value) in [(0, 0x10), (0, 0xb0), (3, 0x0c), (1, 0x82)] {
            let mut other = data;
            other[place] = value;
            assert_eq!(header(&other), None, "no key, a checksum, no PPP, version 2");
        }
        assert_eq!(
            (header(&[0x40, 0, 8, 0]), header(&[0, 0, 8]), header(&[0x20, 0, 8, 0, 1])),
            (None, None, None)
        );
    }
}
