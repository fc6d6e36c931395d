//! Frames with a length field that exceeds the length of its outer headers, written octet by octet from the
//! specifications.

use etherparse::PacketBuilder;
use flowgauge::base::LinkType;

pub(crate) const CLIENT: [u8; 4] = [10, 1, 1, 1];
pub(crate) const SERVER: [u8; 4] = [10, 1, 1, 2];
const TUNNEL_ENDS: [[u8; 4]; 2] = [[192, 0, 2, 1], [192, 0, 2, 2]];
const CLIENT_V6: [u8; 16] = [0x20, 1, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1];
const SERVER_V6: [u8; 16] = [0x20, 1, 0, 0, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2];
const ETHERNET: [u8; 12] = [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
const INNER_ETHERNET: [u8; 12] = [2, 0, 0, 0, 0, 3, 2, 0, 0, 0, 0, 4];

/// The payload of the segment, and the octets behind the end of its outer header. The false length covers both.
pub(crate) const PAYLOAD: &[u8] = b"abcdef";
pub(crate) const BEYOND: &[u8] = b"beyond";

pub(crate) fn join(parts: &[&[u8]]) -> Vec<u8> {
    parts.concat()
}

fn be(len: usize) -> [u8; 2] {
    (len as u16).to_be_bytes()
}

/// Returns an IPv4 packet with a segment of [`PAYLOAD`], the given total length, and checksums that are correct for the
/// actual octets.
pub(crate) fn segment(total_len: usize) -> Vec<u8> {
    let mut packet = Vec::new();
    let builder = PacketBuilder::ipv4(CLIENT, SERVER, 64).tcp(1000, 2000, 1, 1000).ack(1);
    builder.write(&mut packet, PAYLOAD).unwrap();
    packet[2..4].copy_from_slice(&be(total_len));
    sum_header(&mut packet);
    packet
}

/// Fills in the checksum of an IPv4 header without options.
pub(crate) fn sum_header(packet: &mut [u8]) {
    packet[10..12].fill(0);
    let sum: u32 = packet[..20].chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1])).sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    packet[10..12].copy_from_slice(&(!((folded & 0xffff) + (folded >> 16)) as u16).to_be_bytes());
}

pub(crate) const SEGMENT_LEN: usize = 20 + 20 + PAYLOAD.len();

/// Returns the segment in a packet with a total length of six octets more than its actual length.
pub(crate) fn packet_with_false_length() -> Vec<u8> {
    segment(SEGMENT_LEN + BEYOND.len())
}

/// Returns the same in IPv6.
fn ipv6_packet_with_false_length() -> Vec<u8> {
    let mut packet = Vec::new();
    let builder = PacketBuilder::ipv6(CLIENT_V6, SERVER_V6, 64).tcp(1000, 2000, 1, 1000).ack(1);
    builder.write(&mut packet, PAYLOAD).unwrap();
    packet[4..6].copy_from_slice(&be(20 + PAYLOAD.len() + BEYOND.len()));
    packet
}

pub(crate) fn ethernet(ether_type: u16, payload: &[u8]) -> Vec<u8> {
    join(&[&ETHERNET, &ether_type.to_be_bytes(), payload])
}

/// Returns an IPv4 packet between the endpoints of the tunnel with the given total length.
fn outer(protocol: u8, payload: &[u8], total_len: usize) -> Vec<u8> {
    let len = be(total_len);
    let fixed = [0x45, 0, len[0], len[1], 0, 1, 0, 0, 64, protocol, 0, 0];
    let mut packet = join(&[&fixed, &TUNNEL_ENDS[0], &TUNNEL_ENDS[1], payload]);
    sum_header(&mut packet);
    ethernet(0x0800, &packet)
}

/// Returns the same packet with its actual length.
pub(crate) fn whole(protocol: u8, payload: &[u8]) -> Vec<u8> {
    outer(protocol, payload, 20 + payload.len())
}

pub(crate) fn udp(destination: u16, payload: &[u8], udp_len: usize) -> Vec<u8> {
    join(&[&40_000_u16.to_be_bytes(), &destination.to_be_bytes(), &be(udp_len), &[0, 0], payload])
}

fn in_udp(destination: u16, payload: &[u8], udp_len: usize) -> Vec<u8> {
    whole(17, &udp(destination, payload, udp_len))
}

const SNAP: [u8; 8] = [0xaa, 0xaa, 3, 0, 0, 0, 8, 0];

fn pppoe(payload_len: usize, packet: &[u8]) -> Vec<u8> {
    ethernet(0x8864, &join(&[&[0x11, 0, 0, 9], &be(payload_len), &[0, 0x21], packet]))
}

fn pptp(payload_len: usize, packet: &[u8]) -> Vec<u8> {
    join(&[&[0x30, 1, 0x88, 0x0b], &be(payload_len), &[0, 7, 0, 0, 0, 1, 0xff, 3, 0, 0x21], packet])
}

pub(crate) fn gtpu(message_len: usize, packet: &[u8]) -> Vec<u8> {
    join(&[&[0x30, 255], &be(message_len), &[0, 0, 0, 77], packet])
}

fn l2tp(message_len: usize, packet: &[u8]) -> Vec<u8> {
    join(&[&[0x40, 2], &be(message_len), &[0, 1, 0, 2, 0xff, 3, 0, 0x21], packet])
}

/// A frame and its name in the table.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) link_type: LinkType,
    pub(crate) frame: Vec<u8>,
    /// The reason for a different result of tshark, if there is one.
    pub(crate) tshark_differs: Option<&'static str>,
}

/// Returns frames for every header that has a length and can be outside of an IP packet. In each frame the length of
/// the innermost packet, or of one of its outer headers, is too large; if the frame has these octets, they are
/// [`BEYOND`].
pub(crate) fn cases() -> Vec<Case> {
    let (inner, inner_v6, true_inner) =
        (packet_with_false_length(), ipv6_packet_with_false_length(), segment(SEGMENT_LEN));
    let (len, v6_len) = (SEGMENT_LEN, inner_v6.len());
    let long = join(&[&inner, BEYOND]);
    let long_v6 = join(&[&inner_v6, BEYOND]);
    let bridge = join(&[&INNER_ETHERNET, &[8, 0]]);
    let bridged = join(&[&bridge, &long]);
    let vxlan = |packet: &[u8]| join(&[&[8, 0, 0, 0, 0, 0, 42, 0], &bridge, packet]);
    let llc = |packet: &[u8]| join(&[&be(8 + len), &SNAP, packet]);
    let label = [0, 1, 1, 64];
    let erspan = [0x10, 0, 0x88, 0xbe, 0, 0, 0, 1, 0x10, 5, 0, 3, 0, 0, 0, 0];
    let mut outer_v6 = join(&[&[0x60, 0, 0, 0], &be(len), &[4, 64], &[1; 16], &[2; 16], &long]);
    outer_v6 = ethernet(0x86dd, &outer_v6);
    let of_ethernet = [
        ("the frame itself", ethernet(0x0800, &inner)),
        ("802.3 length", join(&[&ETHERNET, &llc(&long)])),
        ("802.3 length behind a tag", ethernet(0x8100, &join(&[&[0, 5], &llc(&long)]))),
        ("PPPoE length", pppoe(2 + len, &long)),
        ("PPPoE length beyond the frame", pppoe(2 + len + 6, &inner)),
        ("PPPoE length beyond the frame, IP agrees", pppoe(2 + len + 6, &true_inner)),
        ("NSH", ethernet(0x894f, &join(&[&[0x0f, 0xc2, 2, 1, 0, 0, 9, 255], &inner]))),
        ("a label", ethernet(0x8847, &join(&[&label, &inner]))),
        ("IPv4 total length", outer(4, &long, 20 + len)),
        ("IPv4 total length beyond the frame", outer(4, &inner, 20 + len + 6)),
        ("IPv4 total length beyond the frame, inner agrees", outer(4, &true_inner, 20 + len + 6)),
        ("IPv6 payload length", outer_v6),
        ("6in4", outer(41, &long_v6, 20 + v6_len)),
        ("GRE", outer(47, &join(&[&[0, 0, 8, 0], &long]), 24 + len)),
        ("GRE, bridged", outer(47, &join(&[&[0, 0, 0x65, 0x58], &bridged]), 38 + len)),
        ("ERSPAN", outer(47, &join(&[&erspan, &bridged]), 50 + len)),
        ("WCCP", outer(47, &join(&[&[0, 0, 0x88, 0x3e], &long]), 24 + len)),
        ("PPTP, IPv4 total length", outer(47, &pptp(4 + len, &long), 20 + 16 + len)),
        ("PPTP payload length beyond the packet", whole(47, &pptp(4 + len + 6, &true_inner))),
        ("authentication header", outer(51, &join(&[&[4, 4, 0, 0], &[0; 20], &long]), 44 + len)),
        ("EtherIP", outer(97, &join(&[&[0x30, 0], &bridged]), 36 + len)),
        ("VXLAN, UDP length", in_udp(4789, &vxlan(&long), 30 + len)),
        ("VXLAN, IPv4 total length", outer(17, &udp(4789, &vxlan(&long), 30 + len), 50 + len)),
        ("VXLAN, UDP length beyond the packet", outer(17, &udp(4789, &vxlan(&long), 36 + len), 50 + len)),
        ("GENEVE, UDP length", in_udp(6081, &join(&[&[0, 0, 8, 0, 0, 0, 42, 0], &long]), 16 + len)),
        ("GTP-U message length", in_udp(2152, &gtpu(len, &long), 16 + len + 6)),
        ("GTP-U, UDP length", in_udp(2152, &gtpu(len + 6, &long), 16 + len)),
        ("GTP-U message length beyond UDP", in_udp(2152, &gtpu(len + 6, &true_inner), 16 + len)),
        ("Teredo, UDP length", in_udp(3544, &long_v6, 8 + v6_len)),
        ("L2TP message length", in_udp(1701, &l2tp(12 + len, &long), 20 + len + 6)),
        ("L2TP, UDP length", in_udp(1701, &l2tp(12 + len + 6, &long), 20 + len)),
        ("L2TP message length beyond UDP", in_udp(1701, &l2tp(12 + len + 6, &true_inner), 20 + len)),
        ("MPLS in UDP", in_udp(6635, &join(&[&label, &long]), 12 + len)),
    ];
    let case =
        |name, frame, tshark_differs| Case { name, link_type: LinkType::ETHERNET, frame, tshark_differs };
    let mut all: Vec<_> = of_ethernet.into_iter().map(|(name, frame)| case(name, frame, None)).collect();
    let ignored = Some("tshark ignores the payload length in the key");
    all.push(case("PPTP payload length", whole(47, &pptp(4 + len, &long)), ignored));
    let unknown = Some("tshark uses the registry of hardware addresses, or a preference");
    let pseudowire = |rest: &[u8]| ethernet(0x8847, &join(&[&label, &[0; 4], &INNER_ETHERNET, rest]));
    all.push(case("pseudowire", pseudowire(&join(&[&[8, 0], &inner])), unknown));
    all.push(case("pseudowire, 802.3 length", pseudowire(&llc(&long)), unknown));
    let l2tp_3 = join(&[&[0, 0, 0, 5], &bridged]);
    all.push(case("L2TPv3", outer(115, &l2tp_3, 38 + len), unknown));
    let service = join(&[&[0, 1, 2, 3], &INNER_ETHERNET, &llc(&long)]);
    let unread = Some("tshark 4.0 reads no LLC behind a service tag");
    all.push(case("802.1ah, 802.3 length", ethernet(0x88e7, &service), unread));
    let clear = join(&[&[0, (2 + len) as u8, 0, 0, 0, 1, 8, 0], &inner, &[0xcc; 16]]);
    let macsec = Some("tshark treats the integrity check value as user data");
    all.push(case("MACsec short length", ethernet(0x88e5, &clear), macsec));
    for (name, link_type, before) in [
        ("PPP", LinkType::PPP, &[0xff, 3, 0, 0x21][..]),
        ("Cisco HDLC on a line of PPP", LinkType::PPP, &[0x0f, 0, 8, 0]),
        ("raw IP", LinkType::RAW, &[]),
        ("cooked", LinkType::LINUX_SLL, &[0, 0, 0, 1, 0, 6, 1, 2, 3, 4, 5, 6, 0, 0, 8, 0]),
    ] {
        all.push(Case { name, link_type, frame: join(&[before, &inner]), tshark_differs: None });
    }
    all
}
