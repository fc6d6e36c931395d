//! Replacement of the addresses of frames, so that the same traffic takes place between other hosts.

use std::ops::Range;

use flowgauge::base::{Frame, IpProtocol, Limits, LinkType, Timestamp};
use flowgauge::decode::link::{Decapsulated, Decapsulation, TunnelPorts, decapsulate};

/// Position of an IP packet: offset of its header, range of its two addresses, length of an address, and transport.
struct Located {
    ip_offset: usize,
    addresses: Range<usize>,
    address_len: usize,
    protocol: IpProtocol,
    /// Offset of the transport header of a first fragment or of a packet that is not fragmented.
    transport: Option<usize>,
}

/// Moves the IP addresses of the outermost and of the innermost packet of a frame to other networks for each copy. Copy
/// 0 does not change the frame. The same bits of both addresses of a packet change, so that the packets of a
/// conversation remain together. The checksums of IPv4, TCP, UDP and ICMPv6 are adjusted (RFC 1624): right checksums
/// remain right, and wrong ones remain wrong. Checksums of GRE and of packets between the outermost and the innermost
/// one are not adjusted.
///
/// Frames without IP are not changed. Does not allocate.
pub fn readdress(frame: &mut [u8], link_type: LinkType, copy: u16) {
    if copy == 0 {
        return;
    }
    let Some(outer) = locate(frame, link_type, Decapsulation::Outermost) else { return };
    if let Some(inner) =
        locate(frame, link_type, Decapsulation::Innermost).filter(|it| it.ip_offset > outer.ip_offset)
    {
        let carried = outer.transport.unwrap_or(inner.ip_offset);
        let before = sum(&frame[carried..]);
        change(frame, &inner, copy);
        let after = sum(&frame[carried..]);
        // The outer checksum covers the inner packet.
        adjust_transport(frame, &outer, before, after);
    }
    change(frame, &outer, copy);
}

fn change(frame: &mut [u8], at: &Located, copy: u16) {
    let before = sum(&frame[at.addresses.clone()]);
    let [high, low] = copy.to_be_bytes();
    // The second and third octets of IPv4 addresses, and the fifth and sixth octets of IPv6 addresses.
    let position = if at.address_len == 4 { 1 } else { 4 };
    for address in frame[at.addresses.clone()].chunks_exact_mut(at.address_len) {
        address[position] ^= low;
        address[position + 1] ^= high;
    }
    let after = sum(&frame[at.addresses.clone()]);
    if at.address_len == 4 {
        adjust(frame, at.ip_offset + 10, before, after);
    }
    adjust_transport(frame, at, before, after);
}

/// Returns the position of a packet if its addresses were captured.
fn locate(frame: &[u8], link_type: LinkType, decapsulation: Decapsulation) -> Option<Located> {
    let described = Frame { link_type, ..Frame::ethernet(Timestamp::ZERO, frame) };
    let found = decapsulate(&described, decapsulation, &TunnelPorts::default(), &Limits::DEFAULT);
    let Decapsulated::Packet(packet) = found else { return None };
    let (ip, ip_offset) = (packet.ip, packet.offset);
    let (first, address_len) = if ip.is_ipv6 { (ip_offset + 8, 16) } else { (ip_offset + 12, 4) };
    let addresses = first..first + 2 * address_len;
    let transport = ip_offset + ip.header_len;
    let is_complete = !ip.is_truncated && !ip.is_later_fragment && transport <= frame.len();
    (addresses.end <= frame.len()).then_some(Located {
        ip_offset,
        addresses,
        address_len,
        protocol: ip.protocol,
        transport: is_complete.then_some(transport),
    })
}

/// Adjusts the checksum of the transport to a change of the covered octets from sum `before` to sum `after`.
fn adjust_transport(frame: &mut [u8], at: &Located, before: u16, after: u16) {
    let Some(transport) = at.transport else { return };
    match at.protocol {
        IpProtocol::TCP => adjust(frame, transport + 16, before, after),
        // Zero means that there is no checksum.
        IpProtocol::UDP if frame.get(transport + 6..transport + 8) != Some(&[0, 0]) => {
            adjust(frame, transport + 6, before, after);
        }
        IpProtocol::ICMPV6 => adjust(frame, transport + 2, before, after),
        _ => {}
    }
}

/// Returns the one's complement sum of octets, padded with a zero to an even length.
fn sum(octets: &[u8]) -> u16 {
    let words = octets.chunks(2).map(|pair| u16::from_be_bytes([pair[0], *pair.get(1).unwrap_or(&0)]));
    words.fold(0, add)
}

fn add(a: u16, b: u16) -> u16 {
    let (sum, carry) = a.overflowing_add(b);
    sum + u16::from(carry)
}

/// Adjusts a checksum, if it was captured, to a change of the covered octets from sum `before` to sum `after`.
fn adjust(frame: &mut [u8], position: usize, before: u16, after: u16) {
    let Some(field) = frame.get_mut(position..position + 2) else { return };
    let checksum = u16::from_be_bytes([field[0], field[1]]);
    let changed = !add(add(!checksum, !before), after);
    field.copy_from_slice(&changed.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use flowgauge::decode::link::{Checksum, checksums};

    use super::*;
    use crate::cases::{CLIENT, SERVER, in_ipv6, tcp, udp};

    /// Writes the right checksums into a frame without IP options.
    fn with_checksums(mut frame: Vec<u8>) -> Vec<u8> {
        let is_v4 = frame[12] == 8;
        let transport = if is_v4 { 34 } else { 54 };
        let (protocol, addresses) = if is_v4 { (frame[23], 26..34) } else { (frame[20], 22..54) };
        let folded = |octets: Vec<u8>| {
            let total: u32 =
                octets.chunks(2).map(|it| u32::from(it[0]) << 8 | u32::from(*it.get(1).unwrap_or(&0))).sum();
            let total = (total & 0xffff) + (total >> 16);
            (!((total & 0xffff) + (total >> 16)) as u16).to_be_bytes()
        };
        if is_v4 {
            let header = folded(frame[14..34].to_vec());
            frame[24..26].copy_from_slice(&header);
        }
        let len = (frame.len() - transport) as u16;
        let pseudo = [&frame[addresses], &[0, protocol], &len.to_be_bytes()].concat();
        let field = transport + if protocol == 6 { 16 } else { 6 };
        let checksum = folded([pseudo, frame[transport..].to_vec()].concat());
        frame[field..field + 2].copy_from_slice(&checksum);
        frame
    }

    fn checksums_of(data: &[u8], decapsulation: Decapsulation) -> (Checksum, Checksum) {
        let frame = Frame::ethernet(Timestamp::ZERO, data);
        let found = decapsulate(&frame, decapsulation, &TunnelPorts::default(), &Limits::DEFAULT);
        let Decapsulated::Packet(packet) = found else { panic!("{found:?}") };
        let found = checksums(data, &packet);
        (found.header, found.transport)
    }

    #[test]
    fn right_checksums_remain_right_and_wrong_ones_remain_wrong() {
        let segment = tcp((CLIENT, 40_000), (SERVER, 443), b"some octets");
        let datagram = udp((CLIENT, 40_000), (SERVER, 53), b"question");
        for frame in [segment.clone(), datagram.clone(), in_ipv6(&segment), in_ipv6(&datagram)] {
            let frame = with_checksums(frame);
            let tagged = [&frame[..12], &[0x81, 0, 0, 7], &frame[12..]].concat();
            for mut frame in [frame, tagged] {
                let checksums_of = |frame: &[u8]| checksums_of(frame, Decapsulation::Innermost);
                let before = checksums_of(&frame);
                assert_eq!(before.1, Checksum::Right);
                for copy in [1, 255, 256, 0xffff] {
                    let mut moved = frame.clone();
                    readdress(&mut moved, LinkType::ETHERNET, copy);
                    assert_ne!(moved, frame);
                    assert_eq!(checksums_of(&moved), before, "copy {copy}");
                    readdress(&mut moved, LinkType::ETHERNET, copy);
                    assert_eq!(moved, frame, "a second change did not restore the frame");
                }
                *frame.last_mut().expect("not empty") ^= 1;
                readdress(&mut frame, LinkType::ETHERNET, 3);
                assert_eq!(checksums_of(&frame).1, Checksum::Wrong);
            }
        }
    }

    #[test]
    fn packets_in_tunnels_get_new_addresses_and_right_checksums() {
        let (segment, datagram) =
            (tcp((CLIENT, 1), (SERVER, 2), b"odd"), udp((CLIENT, 3), (SERVER, 4), b"even"));
        for inner in [segment.clone(), datagram.clone(), in_ipv6(&segment), in_ipv6(&datagram)] {
            let payload = [&[8, 0, 0, 0, 0, 0, 1, 0], &with_checksums(inner)[..]].concat();
            let outer = udp((SERVER, 50_000), (CLIENT, 4789), &payload);
            for frame in [with_checksums(outer.clone()), with_checksums(in_ipv6(&outer))] {
                let mut moved = frame.clone();
                readdress(&mut moved, LinkType::ETHERNET, 0x1234);
                for level in [Decapsulation::Outermost, Decapsulation::Innermost] {
                    assert_eq!(checksums_of(&frame, level).1, Checksum::Right);
                    assert_eq!(checksums_of(&moved, level), checksums_of(&frame, level));
                    let [before, after] = [&frame, &moved]
                        .map(|data| locate(data, LinkType::ETHERNET, level).expect("an IP packet"));
                    assert_ne!(frame[before.addresses], moved[after.addresses]);
                }
            }
        }
    }

    #[test]
    fn truncated_frames_cause_no_panic_and_other_protocols_remain_unchanged() {
        let whole = with_checksums(tcp((CLIENT, 40_000), (SERVER, 443), b"some octets"));
        for len in 0..whole.len() {
            let mut truncated = whole[..len].to_vec();
            readdress(&mut truncated, LinkType::ETHERNET, 0x0102);
            assert_eq!(truncated == whole[..len], len < 34, "{len} octets");
        }
        let mut arp = [&whole[..12], &[8, 6], &[0; 28][..]].concat();
        let before = arp.clone();
        readdress(&mut arp, LinkType::ETHERNET, 9);
        assert_eq!(arp, before);
    }
}
