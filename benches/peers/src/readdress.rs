//! The same traffic between other hosts.

/// An Ethernet frame's IP header: where it begins, where the two addresses do, and how long one is.
struct Located {
    ip_offset: usize,
    addresses: usize,
    address_len: usize,
    protocol: u8,
    transport: Option<usize>,
}

/// Moves the outermost IP addresses of an Ethernet frame to networks of their own for each copy; copy 0 is the frame as it
/// is. Both addresses change by the same bits, so that conversations stay conversations. The checksums of IPv4, TCP, UDP and
/// ICMPv6 are changed by what the addresses changed (RFC 1624): what was right stays right, and what was wrong stays wrong.
///
/// Frames without IP stay as they are, and so do the packets inside a tunnel. Allocates nothing.
pub fn readdress(frame: &mut [u8], copy: u16) {
    let (false, Some(at)) = (copy == 0, locate(frame)) else { return };
    let addresses = at.addresses..at.addresses + 2 * at.address_len;
    let before = sum(&frame[addresses.clone()]);
    let [high, low] = copy.to_be_bytes();
    // The second and third octet of IPv4 addresses, the first of IPv6 after those that registries give out.
    let place = if at.address_len == 4 { 1 } else { 4 };
    for address in frame[addresses.clone()].chunks_exact_mut(at.address_len) {
        address[place] ^= low;
        address[place + 1] ^= high;
    }
    let after = sum(&frame[addresses]);
    if at.address_len == 4 {
        adjust(frame, at.ip_offset + 10, before, after);
    }
    let Some(transport) = at.transport else { return };
    match at.protocol {
        6 => adjust(frame, transport + 16, before, after),
        // Zero says that there is none.
        17 if frame.get(transport + 6..transport + 8) != Some(&[0, 0]) => {
            adjust(frame, transport + 6, before, after);
        }
        58 => adjust(frame, transport + 2, before, after),
        _ => {}
    }
}

fn locate(frame: &[u8]) -> Option<Located> {
    let word = |place: usize| Some(u16::from_be_bytes([*frame.get(place)?, *frame.get(place + 1)?]));
    let mut ip_offset = 14;
    while matches!(word(ip_offset - 2)?, 0x8100 | 0x88a8 | 0x9100) {
        ip_offset += 4;
    }
    match (word(ip_offset - 2)?, frame.get(ip_offset)? >> 4) {
        (0x0800, 4) if frame.len() >= ip_offset + 20 => {
            let header_len = usize::from(frame[ip_offset] & 15) * 4;
            let is_first = word(ip_offset + 6)? & 0x1fff == 0;
            Some(Located {
                ip_offset,
                addresses: ip_offset + 12,
                address_len: 4,
                protocol: frame[ip_offset + 9],
                transport: (is_first && header_len >= 20).then_some(ip_offset + header_len),
            })
        }
        (0x86dd, 6) if frame.len() >= ip_offset + 40 => Some(Located {
            ip_offset,
            addresses: ip_offset + 8,
            address_len: 16,
            protocol: frame[ip_offset + 6],
            transport: Some(ip_offset + 40),
        }),
        _ => None,
    }
}

/// The one's complement sum of an even number of octets.
fn sum(octets: &[u8]) -> u16 {
    octets.chunks_exact(2).map(|pair| u16::from_be_bytes([pair[0], pair[1]])).fold(0, add)
}

fn add(a: u16, b: u16) -> u16 {
    let (sum, carry) = a.overflowing_add(b);
    sum + u16::from(carry)
}

/// Changes a checksum, if it was captured, as the sum of what it covers changed.
fn adjust(frame: &mut [u8], place: usize, before: u16, after: u16) {
    let Some(field) = frame.get_mut(place..place + 2) else { return };
    let checksum = u16::from_be_bytes([field[0], field[1]]);
    let changed = !add(add(!checksum, !before), after);
    field.copy_from_slice(&changed.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use flowgauge::base::{Frame, Limits, Timestamp};
    use flowgauge::link::{Checksum, Decapsulated, Decapsulation, TunnelPorts, checksums, decapsulate};

    use super::readdress;
    use crate::support::{CLIENT, SERVER, in_ipv6, tcp, udp};

    /// Writes the right checksums into a frame without options, from the sum over what they cover.
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

    fn verdicts(data: &[u8]) -> (Checksum, Checksum) {
        let frame = Frame::ethernet(Timestamp::ZERO, data);
        let ports = TunnelPorts::default();
        let found = decapsulate(&frame, Decapsulation::Innermost, &ports, &Limits::DEFAULT);
        let Decapsulated::Packet(packet) = found else { panic!("{found:?}") };
        let found = checksums(data, &packet);
        (found.header, found.transport)
    }

    #[test]
    fn right_checksums_stay_right_and_wrong_ones_wrong() {
        let segment = tcp((CLIENT, 40_000), (SERVER, 443), b"some octets");
        let datagram = udp((CLIENT, 40_000), (SERVER, 53), b"question");
        for frame in [segment.clone(), datagram.clone(), in_ipv6(&segment), in_ipv6(&datagram)] {
            let frame = with_checksums(frame);
            let tagged = [&frame[..12], &[0x81, 0, 0, 7], &frame[12..]].concat();
            for mut frame in [frame, tagged] {
                let before = verdicts(&frame);
                assert_eq!(before.1, Checksum::Right);
                for copy in [1, 255, 256, 0xffff] {
                    let mut moved = frame.clone();
                    readdress(&mut moved, copy);
                    assert_ne!(moved, frame);
                    assert_eq!(verdicts(&moved), before, "copy {copy}");
                    readdress(&mut moved, copy);
                    assert_eq!(moved, frame, "the same change twice is none");
                }
                *frame.last_mut().expect("not empty") ^= 1;
                readdress(&mut frame, 3);
                assert_eq!(verdicts(&frame).1, Checksum::Wrong);
            }
        }
    }

    #[test]
    fn what_is_cut_or_no_ip_is_left_without_a_panic() {
        let whole = with_checksums(tcp((CLIENT, 40_000), (SERVER, 443), b"some octets"));
        for len in 0..whole.len() {
            let mut cut = whole[..len].to_vec();
            readdress(&mut cut, 0x0102);
            assert_eq!(cut == whole[..len], len < 34, "{len} octets");
        }
        let mut arp = [&whole[..12], &[8, 6], &[0; 28][..]].concat();
        let before = arp.clone();
        readdress(&mut arp, 9);
        assert_eq!(arp, before);
    }
}
