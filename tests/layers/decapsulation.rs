//! Decapsulation of each link type and tunnel, with octets written from its specification; nesting beyond the limit;
//! false lengths.

use etherparse::PacketBuilder;
use flowgauge::base::{
    Encapsulation, EncapsulationHeader, EtherType, Frame, IpProtocol, Limits, LinkType, ParseErrorKind, Side,
    Timestamp, VlanIds,
};
use flowgauge::decode::extractor::{Extractor, KeyPolicy, Packet, PacketMarks, Skip, quoted_key};
use flowgauge::decode::link::{
    Decapsulated, Decapsulation, HeaderKind, IpPacket, TunnelPorts, UdpTunnel, Unsupported, decapsulate,
    encapsulation,
};
use flowgauge::pipeline::Pipeline;
use proptest::prelude::*;

const INNER: ([u8; 4], [u8; 4]) = ([10, 1, 1, 1], [10, 1, 1, 2]);
const OUTER: ([u8; 4], [u8; 4]) = ([192, 0, 2, 1], [192, 0, 2, 2]);
const ETHERNET: [u8; 12] = [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
const INNER_ETHERNET: [u8; 12] = [2, 0, 0, 0, 0, 3, 2, 0, 0, 0, 0, 4];

/// A UDP datagram in IPv4 between the inner hosts.
pub(crate) fn inner() -> Vec<u8> {
    let mut packet = Vec::new();
    let builder = PacketBuilder::ipv4(INNER.0, INNER.1, 64).udp(1000, 2000);
    builder.write(&mut packet, &[1, 2, 3, 4]).unwrap();
    packet
}

pub(crate) fn inner_ipv6() -> Vec<u8> {
    let mut packet = Vec::new();
    PacketBuilder::ipv6([1; 16], [2; 16], 64).udp(1000, 2000).write(&mut packet, &[1, 2, 3, 4]).unwrap();
    packet
}

pub(crate) fn join(parts: &[&[u8]]) -> Vec<u8> {
    parts.concat()
}

/// Returns an Ethernet frame with an EtherType and a payload.
pub(crate) fn ethernet(ether_type: u16, payload: &[u8]) -> Vec<u8> {
    join(&[&ETHERNET, &ether_type.to_be_bytes(), payload])
}

pub(crate) fn inner_ethernet(payload: &[u8]) -> Vec<u8> {
    join(&[&INNER_ETHERNET, &[8, 0], payload])
}

/// An IPv4 packet between the outer hosts.
fn outer(protocol: u8, payload: &[u8]) -> Vec<u8> {
    let len = (20 + payload.len() as u16).to_be_bytes();
    let fixed = [0x45, 0, len[0], len[1], 0, 1, 0, 0, 64, protocol, 0, 0];
    join(&[&fixed, &OUTER.0, &OUTER.1, payload])
}

pub(crate) fn in_ip(protocol: u8, payload: &[u8]) -> Vec<u8> {
    ethernet(0x0800, &outer(protocol, payload))
}

pub(crate) fn udp(source: u16, destination: u16, payload: &[u8]) -> Vec<u8> {
    let len = (8 + payload.len() as u16).to_be_bytes();
    join(&[&source.to_be_bytes(), &destination.to_be_bytes(), &len, &[0, 0], payload])
}

pub(crate) fn in_udp(destination: u16, payload: &[u8]) -> Vec<u8> {
    in_ip(17, &udp(40_000, destination, payload))
}

pub(crate) fn walk(link_type: LinkType, data: &[u8]) -> Decapsulated {
    let frame = Frame { link_type, ..Frame::ethernet(Timestamp::ZERO, data) };
    decapsulate(&frame, Decapsulation::Innermost, &TunnelPorts::DEFAULT, &Limits::DEFAULT)
}

#[track_caller]
fn found(link_type: LinkType, data: &[u8]) -> IpPacket {
    match walk(link_type, data) {
        Decapsulated::Packet(packet) => packet,
        other => panic!("{other:?}"),
    }
}

/// Returns the headers around the packet.
fn around(link_type: LinkType, data: &[u8]) -> Encapsulation {
    let frame = Frame { link_type, ..Frame::ethernet(Timestamp::ZERO, data) };
    encapsulation(&frame, Decapsulation::Innermost, &TunnelPorts::DEFAULT, &Limits::DEFAULT)
}

/// Returns the headers without the endpoints, and checks that exactly the IP headers have endpoints.
fn without_endpoints(encapsulation: &Encapsulation) -> Vec<EncapsulationHeader> {
    let without = |header: &EncapsulationHeader| {
        assert_eq!(header.endpoints.is_some(), header.kind == HeaderKind::Ip);
        EncapsulationHeader::new(header.kind, header.id().unwrap_or_default())
    };
    encapsulation.headers().iter().map(without).collect()
}

/// Checks that the frame is decapsulated to the inner datagram, through the given headers.
#[track_caller]
pub(crate) fn assert_decapsulated(link_type: LinkType, data: &[u8], headers: &[(HeaderKind, u32)]) {
    let packet = found(link_type, data);
    let headers: Vec<_> = headers.iter().map(|(kind, id)| EncapsulationHeader::new(*kind, *id)).collect();
    assert_eq!(without_endpoints(&around(link_type, data)), headers);
    let inner = if packet.ether_type == EtherType::IPV6 { inner_ipv6() } else { inner() };
    assert_eq!(data.get(packet.offset..packet.offset + inner.len()), Some(&inner[..]));
    assert_eq!((packet.ip.len, packet.ip.protocol), (inner.len(), IpProtocol::UDP));
    // A frame truncated anywhere yields no packet that begins beyond its captured octets.
    for len in 0..data.len() {
        let frame = Frame::ethernet(Timestamp::ZERO, &data[..len]);
        let frame = Frame { link_type, wire_len: data.len() as u32, ..frame };
        if let Decapsulated::Packet(packet) =
            decapsulate(&frame, Decapsulation::Innermost, &TunnelPorts::DEFAULT, &Limits::DEFAULT)
        {
            assert!(packet.offset < len);
        }
    }
}

/// Checks that the frame is not decapsulated, so that it belongs to the flow of the outer hosts.
#[track_caller]
pub(crate) fn assert_not_decapsulated(data: &[u8]) -> IpPacket {
    let packet = found(LinkType::ETHERNET, data);
    assert_eq!((packet.offset, around(LinkType::ETHERNET, data)), (14, Encapsulation::NONE));
    packet
}

#[test]
fn ip_packets_are_found_on_each_link_type() {
    let snap = join(&[&[0xaa, 0xaa, 3, 0, 0, 0, 8, 0], &inner()]);
    for (link_type, before) in [
        (LinkType::RAW, &[][..]),
        (LinkType::RAW_DLT_14, &[]),
        (LinkType::IPV4, &[]),
        (LinkType::LINUX_SLL, &[0, 0, 0, 1, 0, 6, 1, 2, 3, 4, 5, 6, 0, 0, 8, 0]),
        (LinkType::LINUX_SLL2, &[8, 0, 0, 0, 0, 0, 0, 9, 0, 1, 4, 6, 1, 2, 3, 4, 5, 6, 0, 0]),
        (LinkType::NULL, &[2, 0, 0, 0]),
        (LinkType::LOOP, &[0, 0, 0, 2]),
        (LinkType::PPP, &[0xff, 3, 0, 0x21]),
        (LinkType::PPP_PPPD, &[1, 0x21]),
        (LinkType::PPP_WITH_DIR, &[1, 0xff, 3, 0, 0x21]),
        (LinkType::C_HDLC_WITH_DIR, &[0, 0x0f, 0, 8, 0]),
        (LinkType::FRELAY_WITH_DIR, &[0, 0x04, 0x01, 3, 0xcc]),
        (LinkType::C_HDLC, &[0x0f, 0, 8, 0]),
        (LinkType::C_HDLC, &[0xff, 3, 0, 0x21]),
        // DLCI 16 in two octets and in four; Cisco's encapsulation.
        (LinkType::FRELAY, &[0x04, 0x01, 3, 0xcc]),
        (LinkType::FRELAY, &[0x04, 0x01, 3, 0, 0xcc]),
        (LinkType::FRELAY, &[0x04, 0x00, 0x00, 0x01, 3, 0xcc]),
        (LinkType::FRELAY, &[0x04, 0x01, 8, 0]),
        (LinkType::FRELAY, &[0x04, 0x01, 3, 0xcf, 0, 0x21]),
        (LinkType::FRELAY, &[0x04, 0x01, 3, 0, 0x80, 0, 0, 0, 8, 0]),
        (LinkType::ATM_RFC1483, &[0xaa, 0xaa, 3, 0, 0, 0, 8, 0]),
        (LinkType::ATM_RFC1483, &[0xfe, 0xfe, 3, 0xcc]),
        // Attributes of a netfilter log: hook of the packet, then the packet.
        (LinkType::NFLOG, &[2, 0, 0, 1, 8, 0, 1, 0, 8, 0, 3, 0, 36, 0, 9, 0]),
        (LinkType::NFLOG, &[2, 0, 0, 1, 0, 8, 0, 1, 8, 0, 3, 0, 0, 36, 0, 9]),
        // Linux cooked capture from a device with Frame Relay: the protocol field has no meaning.
        (LinkType::LINUX_SLL, &[0, 0, 3, 2, 0, 2, 4, 1, 0, 0, 0, 0, 0, 0, 0, 3, 0x04, 0x01, 3, 0xcc]),
    ] {
        assert_decapsulated(link_type, &join(&[before, &inner()]), &[]);
    }
    assert_decapsulated(LinkType::MPLS, &join(&[&[0, 1, 1, 64], &inner()]), &[(HeaderKind::Mpls, 16)]);
    for (link_type, before) in [
        (LinkType::FDDI, join(&[&[0x50], &ETHERNET])),
        (LinkType::IEEE802_5, join(&[&[0x10, 0x40], &ETHERNET])),
        (LinkType::IEEE802_5, join(&[&[0x10, 0x40], &ETHERNET[..6], &[0x82, 0, 0, 0, 0, 2, 4, 0, 1, 2]])),
        (LinkType::IP_OVER_FC, vec![1; 16]),
        (LinkType::ETHERNET, join(&[&ETHERNET, &(snap.len() as u16).to_be_bytes()])),
        (LinkType::LINUX_SLL, vec![0, 0, 0, 1, 0, 6, 1, 2, 3, 4, 5, 6, 0, 0, 0, 4]),
    ] {
        assert_decapsulated(link_type, &join(&[&before, &snap]), &[]);
    }
    let packet = found(LinkType::FDDI, &join(&[&[0x50], &ETHERNET, &snap]));
    let fddi = join(&[&[0x50], &ETHERNET]);
    assert_eq!(packet.link.mac_addresses.source(&fddi), Some([2, 0, 0, 0, 0, 2]));
}

#[test]
fn ip_packets_are_found_in_wireless_frames() {
    let snap = join(&[&[0xaa, 0xaa, 3, 0, 0, 0, 8, 0], &inner()]);
    // Three addresses with the sender's as the second; from an access point; between access points; with QoS; with HT
    // control.
    let station = join(&[&[0x08, 0x01, 0, 0], &[1; 6], &[2; 6], &[3; 6], &[0x10, 0]]);
    let access_point = join(&[&[0x08, 0x02, 0, 0], &[1; 6], &[3; 6], &[2; 6], &[0x10, 0]]);
    let bridge = join(&[&[0x08, 0x03, 0, 0], &[1; 6], &[3; 6], &[4; 6], &[0x10, 0], &[2; 6]]);
    let quality = join(&[&[0x88, 0x01, 0, 0], &[1; 6], &[2; 6], &[3; 6], &[0x10, 0, 0, 0]]);
    let high_throughput =
        join(&[&[0x88, 0x81, 0, 0], &[1; 6], &[2; 6], &[3; 6], &[0x10, 0, 0, 0, 0, 0, 0, 0]]);
    for header in [&station, &access_point, &bridge, &quality, &high_throughput] {
        let data = join(&[header, &snap]);
        assert_decapsulated(LinkType::IEEE802_11, &data, &[]);
        let packet = found(LinkType::IEEE802_11, &data);
        assert_eq!(packet.link.mac_addresses.source(&data), Some([2; 6]));
        // Radiotap with a timer and flags, one of which indicates a frame check sequence; then PPI, Prism, AVS.
        let tap = [0, 0, 17, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x10];
        assert_decapsulated(LinkType::IEEE802_11_RADIOTAP, &join(&[&tap, &data, &[9; 4]]), &[]);
        assert_decapsulated(LinkType::PPI, &join(&[&[0, 0, 8, 0, 105, 0, 0, 0], &data]), &[]);
        let cooked = [0, 0, 3, 35, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4];
        assert_decapsulated(LinkType::LINUX_SLL, &join(&[&cooked, &tap, &data, &[9; 4]]), &[]);
        let prism = join(&[&[0x44, 0, 0, 0, 144, 0, 0, 0], &[0; 136]]);
        assert_decapsulated(LinkType::IEEE802_11_PRISM, &join(&[&prism, &data]), &[]);
        let avs = join(&[&[0x80, 0x21, 0x10, 1, 0, 0, 0, 64], &[0; 56]]);
        assert_decapsulated(LinkType::IEEE802_11_AVS, &join(&[&avs, &data]), &[]);
    }
    // The header of 26 octets is padded to a multiple of four.
    let tap = [0, 0, 9, 0, 2, 0, 0, 0, 0x20];
    assert_decapsulated(LinkType::IEEE802_11_RADIOTAP, &join(&[&tap, &quality, &[0, 0], &snap]), &[]);
    let aggregate = join(&[&quality[..24], &[0x80, 0], &[1; 12], &(snap.len() as u16).to_be_bytes(), &snap]);
    assert_decapsulated(LinkType::IEEE802_11, &aggregate, &[]);
    for (first, second, fragment, why) in [
        (0x08, 0x41, 0x10, Unsupported::WlanEncrypted),
        (0x08, 0x01, 0x11, Unsupported::WlanFragment),
        (0x48, 0x01, 0x10, Unsupported::WlanManagement),
        (0x80, 0x00, 0x10, Unsupported::WlanManagement),
    ] {
        let mut data = join(&[&station, &snap]);
        (data[0], data[1], data[22]) = (first, second, fragment);
        match walk(LinkType::IEEE802_11, &data) {
            Decapsulated::Unsupported(found) => assert_eq!(found, why),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn ip_packets_are_found_behind_tags_and_labels() {
    use HeaderKind::{Ethernet, Macsec, Mpls, Pppoe, ProviderBackbone, Vlan, VnTag};
    let link = LinkType::ETHERNET;
    assert_decapsulated(link, &ethernet(0x0800, &inner()), &[]);
    assert_decapsulated(link, &ethernet(0x8100, &join(&[&[0, 5, 8, 0], &inner()])), &[(Vlan, 5)]);
    assert_decapsulated(
        link,
        &ethernet(0x88a8, &join(&[&[0, 7, 0x81, 0, 0, 5, 8, 0], &inner()])),
        &[(Vlan, 7), (Vlan, 5)],
    );
    let service = join(&[&[0, 0x01, 0x02, 0x03], &inner_ethernet(&inner())]);
    assert_decapsulated(link, &ethernet(0x88e7, &service), &[(ProviderBackbone, 0x01_0203), (Ethernet, 0)]);
    assert_decapsulated(
        link,
        &ethernet(0x8926, &join(&[&[0x00, 0x05, 0, 0, 8, 0], &inner()])),
        &[(VnTag, 5)],
    );
    // Without and with SCI; the integrity check value is at the end.
    let clear = join(&[&[0, 32 + 2, 0, 0, 0, 1, 8, 0], &inner(), &[0xcc; 16]]);
    assert_decapsulated(link, &ethernet(0x88e5, &clear), &[(Macsec, 0)]);
    let clear = join(&[&[0x20, 0, 0, 0, 0, 1], &[7; 8], &[8, 0], &inner(), &[0xcc; 16]]);
    assert_decapsulated(link, &ethernet(0x88e5, &clear), &[(Macsec, 0)]);
    let pppoe = join(&[&[0x11, 0, 0, 9, 0, 34, 0, 0x21], &inner()]);
    assert_decapsulated(link, &ethernet(0x8864, &pppoe), &[(Pppoe, 9)]);
    assert_decapsulated(LinkType::PPP_ETHER, &pppoe, &[(Pppoe, 9)]);
    let labels = [0, 1, 0x00, 64, 0, 2, 0x01, 64];
    let expected_headers = [(Mpls, 16), (Mpls, 32)];
    assert_decapsulated(link, &ethernet(0x8847, &join(&[&labels, &inner()])), &expected_headers);
    assert_decapsulated(link, &ethernet(0x8847, &join(&[&labels, &inner_ipv6()])), &expected_headers);
    assert_decapsulated(LinkType::PPP, &join(&[&[0x02, 0x81], &labels, &inner()]), &expected_headers);
    let expected_headers = [(Mpls, 16), (Mpls, 32), (Ethernet, 0)];
    let bridged = inner_ethernet(&inner());
    assert_decapsulated(link, &ethernet(0x8847, &join(&[&labels, &bridged])), &expected_headers);
    assert_decapsulated(
        link,
        &ethernet(0x8847, &join(&[&labels, &[0, 0, 0, 1], &bridged])),
        &expected_headers,
    );
    // A destination address that begins like an IPv4 header is not IPv4.
    let mut like_ip = bridged.clone();
    like_ip[0] = 0x45;
    assert_decapsulated(link, &ethernet(0x8847, &join(&[&labels, &like_ip])), &expected_headers);
}

#[test]
fn ip_in_ip_and_gre_are_decapsulated() {
    use HeaderKind::{Erspan, EtherIp, Ethernet, Gre, Ip, L2tp, Mpls, Nvgre, Pptp};
    let link = LinkType::ETHERNET;
    let bridged = inner_ethernet(&inner());
    assert_decapsulated(link, &in_ip(4, &inner()), &[(Ip, 0)]);
    assert_decapsulated(link, &in_ip(41, &inner_ipv6()), &[(Ip, 0)]);
    let mut outer_ipv6 = vec![0x60, 0, 0, 0, 0, 32, 4, 64];
    outer_ipv6.extend([3; 32]);
    outer_ipv6.extend(inner());
    assert_decapsulated(link, &ethernet(0x86dd, &outer_ipv6), &[(Ip, 0)]);
    // AH in tunnel mode (RFC 4302): 24 octets.
    let ah = join(&[&[4, 4, 0, 0], &[0; 20], &inner()]);
    assert_decapsulated(link, &in_ip(51, &ah), &[(Ip, 0)]);
    assert_decapsulated(link, &in_ip(137, &join(&[&[0, 1, 1, 64], &inner()])), &[(Ip, 0), (Mpls, 16)]);
    assert_decapsulated(
        link,
        &in_ip(97, &join(&[&[0x30, 0], &bridged])),
        &[(Ip, 0), (EtherIp, 0), (Ethernet, 0)],
    );
    let gre = |header: &[u8], payload: &[u8]| in_ip(47, &join(&[header, payload]));
    assert_decapsulated(link, &gre(&[0, 0, 8, 0], &inner()), &[(Ip, 0), (Gre, 0)]);
    assert_decapsulated(link, &gre(&[0x80, 0, 8, 0, 1, 2, 0, 0], &inner()), &[(Ip, 0), (Gre, 0)]);
    let all = [0xb0, 0, 8, 0, 1, 2, 0, 0, 0, 0, 0, 9, 0, 0, 0, 1];
    assert_decapsulated(link, &gre(&all, &inner()), &[(Ip, 0), (Gre, 9)]);
    assert_decapsulated(link, &gre(&[0, 0, 0x65, 0x58], &bridged), &[(Ip, 0), (Gre, 0), (Ethernet, 0)]);
    let nvgre = [0x20, 0, 0x65, 0x58, 0, 0x12, 0x34, 0xff];
    assert_decapsulated(link, &gre(&nvgre, &bridged), &[(Ip, 0), (Nvgre, 0x1234), (Ethernet, 0)]);
    assert_eq!(found(link, &gre(&nvgre, &bridged)).link.vni, Some(0x1234));
    let pptp = [0x30, 1, 0x88, 0x0b, 0, 36, 0, 7, 0, 0, 0, 1, 0xff, 3, 0, 0x21];
    assert_decapsulated(link, &gre(&pptp, &inner()), &[(Ip, 0), (Pptp, 7)]);
    let expected_headers = |session| [(Ip, 0), (Gre, 0), (Erspan, session), (Ethernet, 0)];
    assert_decapsulated(link, &gre(&[0, 0, 0x88, 0xbe], &bridged), &expected_headers(0));
    let two = [0x10, 0, 0x88, 0xbe, 0, 0, 0, 1, 0x10, 5, 0, 3, 0, 0, 0, 0];
    assert_decapsulated(link, &gre(&two, &bridged), &expected_headers(3));
    let three = [0x10, 0, 0x22, 0xeb, 0, 0, 0, 1, 0x20, 5, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0];
    assert_decapsulated(link, &gre(&three, &bridged), &expected_headers(3));
    let mut with_subheader = three.to_vec();
    with_subheader[19] = 1;
    with_subheader.extend([0; 8]);
    assert_decapsulated(link, &gre(&with_subheader, &bridged), &expected_headers(3));
    for cookie_len in [0, 4, 8] {
        let l2tp = join(&[&[0, 0, 0, 5], &vec![0xee; cookie_len], &bridged]);
        assert_decapsulated(link, &in_ip(115, &l2tp), &[(Ip, 0), (L2tp, 5), (Ethernet, 0)]);
    }
}

#[test]
fn udp_tunnels_are_decapsulated() {
    use HeaderKind::{Ethernet, Geneve, GtpU, Ip, L2tp, Mpls, Nsh, Teredo, Vxlan, VxlanGpe};
    let link = LinkType::ETHERNET;
    let bridged = inner_ethernet(&inner());
    let vxlan = join(&[&[8, 0, 0, 0, 0, 0, 42, 0], &bridged]);
    for port in [4789, 8472] {
        assert_decapsulated(link, &in_udp(port, &vxlan), &[(Ip, 0), (Vxlan, 42), (Ethernet, 0)]);
    }
    let gpe = |next: u8, payload: &[u8]| in_udp(4790, &join(&[&[0x0c, 0, 0, next, 0, 0, 42, 0], payload]));
    assert_decapsulated(link, &gpe(1, &inner()), &[(Ip, 0), (VxlanGpe, 42)]);
    assert_decapsulated(link, &gpe(2, &inner_ipv6()), &[(Ip, 0), (VxlanGpe, 42)]);
    assert_decapsulated(link, &gpe(3, &bridged), &[(Ip, 0), (VxlanGpe, 42), (Ethernet, 0)]);
    // MD type 1: six words.
    let nsh = |next: u8| join(&[&[0x0f, 0xc6, 1, next, 0, 0, 9, 255], &[0; 16]]);
    assert_decapsulated(link, &gpe(4, &join(&[&nsh(1), &inner()])), &[(Ip, 0), (VxlanGpe, 42), (Nsh, 9)]);
    assert_decapsulated(link, &ethernet(0x894f, &join(&[&nsh(3), &bridged])), &[(Nsh, 9), (Ethernet, 0)]);
    let geneve = join(&[&[1, 0, 0x65, 0x58, 0, 0, 42, 0], &[1, 2, 3, 0], &bridged]);
    assert_decapsulated(link, &in_udp(6081, &geneve), &[(Ip, 0), (Geneve, 42), (Ethernet, 0)]);
    let geneve = join(&[&[0, 0, 0x08, 0x00, 0, 0, 42, 0], &inner()]);
    assert_decapsulated(link, &in_udp(6081, &geneve), &[(Ip, 0), (Geneve, 42)]);
    let gtpu = join(&[&[0x30, 255, 0, 32, 0, 0, 0, 77], &inner()]);
    assert_decapsulated(link, &in_udp(2152, &gtpu), &[(Ip, 0), (GtpU, 77)]);
    // A sequence number, and the PDU session container (TS 38.415) as an extension header.
    let gtpu = join(&[&[0x36, 255, 0, 40, 0, 0, 0, 77, 0, 1, 0, 0x85, 1, 0, 9, 0], &inner()]);
    assert_decapsulated(link, &in_udp(2152, &gtpu), &[(Ip, 0), (GtpU, 77)]);
    assert_decapsulated(link, &in_udp(3544, &inner_ipv6()), &[(Ip, 0), (Teredo, 0)]);
    let teredo = join(&[&[0, 1, 1, 2], &[9; 12], &[0, 0, 1, 2, 3, 4, 5, 6], &inner_ipv6()]);
    assert_decapsulated(link, &in_udp(3544, &teredo), &[(Ip, 0), (Teredo, 0)]);
    assert_decapsulated(link, &in_ip(17, &udp(3544, 9, &inner_ipv6())), &[(Ip, 0), (Teredo, 0)]);
    assert_decapsulated(link, &in_udp(6635, &join(&[&[0, 1, 1, 64], &inner()])), &[(Ip, 0), (Mpls, 16)]);
    let l2tp = join(&[&[0x40, 2, 0, 44, 0, 1, 0, 2, 0xff, 3, 0, 0x21], &inner()]);
    assert_decapsulated(link, &in_udp(1701, &l2tp), &[(Ip, 0), (L2tp, 0x1_0002)]);
    let l2tp = join(&[&[0x02, 2, 0, 1, 0, 2, 0, 2, 0, 0, 0, 0x21], &inner()]);
    assert_decapsulated(link, &in_udp(1701, &l2tp), &[(Ip, 0), (L2tp, 0x1_0002)]);
    let l2tp = join(&[&[0, 3, 0, 0, 0, 0, 0, 5], &bridged]);
    assert_decapsulated(link, &in_udp(1701, &l2tp), &[(Ip, 0), (L2tp, 5), (Ethernet, 0)]);
}

#[test]
fn invalid_tunnel_content_belongs_to_the_outer_flow() {
    let bridged = inner_ethernet(&inner());
    let vxlan = join(&[&[8, 0, 0, 0, 0, 0, 42, 0], &bridged]);
    // Tunnel content on a port that is not a tunnel port; a header without the I flag; ARP as the inner packet.
    assert_not_decapsulated(&in_udp(4788, &vxlan));
    assert_not_decapsulated(&in_ip(17, &udp(4789, 9, &vxlan)));
    assert_not_decapsulated(&in_udp(4789, &join(&[&[0, 0, 0, 0, 0, 0, 42, 0], &bridged])));
    let arp = join(&[&[8, 0, 0, 0, 0, 0, 42, 0], &INNER_ETHERNET, &[8, 6], &[0; 28]]);
    assert_not_decapsulated(&in_udp(4789, &arp));
    // GTP-U echo, another GTP version, a payload that is not IP; L2TP control message; PPTP acknowledgment; ESP.
    assert_not_decapsulated(&in_udp(2152, &join(&[&[0x30, 1, 0, 32, 0, 0, 0, 0], &inner()])));
    assert_not_decapsulated(&in_udp(2152, &join(&[&[0x50, 255, 0, 32, 0, 0, 0, 0], &inner()])));
    assert_not_decapsulated(&in_udp(2152, &join(&[&[0x30, 255, 0, 32, 0, 0, 0, 7], &[0; 32]])));
    assert_not_decapsulated(&in_udp(1701, &[0xc8, 2, 0, 12, 0, 1, 0, 0, 0, 0, 0, 0]));
    assert_not_decapsulated(&in_ip(47, &[0x20, 0x81, 0x88, 0x0b, 0, 0, 0, 7, 0, 0, 0, 1]));
    assert_not_decapsulated(&in_ip(50, &inner()));
    // GENEVE with options that do not fill their length, and an unknown version.
    let geneve = |first: u8, flags: u8, words: u8| {
        let header = [first, flags, 8, 0, 0, 0, 42, 0, 1, 2, 3, words];
        assert_not_decapsulated(&in_udp(6081, &join(&[&header, &inner()])));
    };
    geneve(1, 0, 1);
    geneve(0x41, 0, 0);
    // A fragment has only a part of the tunnel.
    let mut fragment = in_udp(4789, &vxlan);
    fragment[20] = 0x20;
    assert_not_decapsulated(&fragment);
}

#[test]
fn contradictory_lengths_end_decapsulation() {
    let ipip = in_ip(4, &inner());
    let inner_at = ipip.len() - inner().len();
    for (position, value) in [
        // The inner packet is shorter than its header; its header length is too small or too large; its version is
        // another one.
        (inner_at + 3, 19),
        (inner_at, 0x44),
        (inner_at, 0x4f),
        (inner_at, 0x55),
        // The outer packet ends within the inner header.
        (17, 20 + 19),
    ] {
        let mut data = ipip.clone();
        data[position] = value;
        assert_not_decapsulated(&data);
    }
    // The UDP length is less than that of the UDP header.
    let mut gtpu = in_udp(2152, &join(&[&[0x30, 255, 0, 32, 0, 0, 0, 77], &inner()]));
    gtpu[39] = 7;
    assert_not_decapsulated(&gtpu);
    // Octets behind the inner packet are ignored.
    let data = join(&[&ipip, &[0; 20]]);
    assert_eq!(found(LinkType::ETHERNET, &data).ip.len, inner().len());
}

/// The inner packet ends at the smallest length of its outer headers; `tests/enclosing` checks each encapsulation.
#[test]
fn false_lengths_are_limited_by_the_outer_headers() {
    let ipip = in_ip(4, &inner());
    let inner_at = ipip.len() - inner().len();
    let gtpu = in_udp(2152, &join(&[&[0x30, 255, 0, 32, 0, 0, 0, 77], &inner()]));
    let pppoe = ethernet(0x8864, &join(&[&[0x11, 0, 0, 9, 0, 34, 0, 0x21], &inner()]));
    let len = inner().len();
    for (data, position, value, expected_len, is_over_long, is_outer_len_bad) in [
        // The inner length exceeds the outer packet; the outer packet ends within the inner one, or exceeds the frame.
        (&ipip, inner_at + 3, len as u8 + 1, len, true, false),
        (&ipip, 17, 20 + 31, 31, true, false),
        (&ipip, 17, 255, len, false, true),
        // UDP length exceeds IP, GTP-U length exceeds UDP, the UDP and GTP-U lengths end within the inner packet.
        (&gtpu, 39, 49, len, false, true),
        (&gtpu, 45, 33, len, false, true),
        (&gtpu, 39, 47, 31, true, true),
        (&gtpu, 45, 31, 31, true, false),
        (&pppoe, 19, 35, len, false, true),
        (&pppoe, 19, 33, 31, true, false),
    ] {
        let mut data = data.clone();
        data[position] = value;
        let packet = found(LinkType::ETHERNET, &data);
        assert_eq!(packet.offset, data.len() - len, "{position} {value}");
        assert_eq!(
            (packet.ip.len, packet.ip.is_over_long),
            (expected_len, is_over_long),
            "{position} {value}"
        );
        assert_eq!(packet.is_outer_len_bad, is_outer_len_bad, "{position} {value}");
    }
}

#[test]
fn nesting_depth_is_limited() {
    let nested = |count: usize| (0..count).fold(inner(), |packet, _| outer(4, &packet));
    let max = Limits::DEFAULT.encapsulation_depth_max as usize;
    assert!(!found(LinkType::RAW, &nested(max)).is_too_deep);
    assert_eq!(around(LinkType::RAW, &nested(max)).headers().len(), max);
    for count in [max + 1, max + 2, 60] {
        let data = nested(count);
        let packet = found(LinkType::RAW, &data);
        assert_eq!((packet.offset, packet.is_too_deep), (max * 20, true));
        let frame = Frame { link_type: LinkType::RAW, ..Frame::ethernet(Timestamp::ZERO, &data) };
        let packet = Extractor::default().extract(&frame).unwrap();
        assert!(packet.marks.contains(PacketMarks::TOO_DEEP));
        assert_eq!(packet.key.protocol(), IpProtocol::IPV4);
    }
    // If there is no IP packet within the depth limit, the frame has none.
    let nsh = [0x0f, 0xc2, 2, 4, 0, 0, 9, 255].repeat(9);
    let frame = ethernet(0x894f, &nsh);
    let Decapsulated::Malformed(error) = walk(LinkType::ETHERNET, &frame) else { panic!("not rejected") };
    assert_eq!(error.kind, ParseErrorKind::TooDeep);
    let labels = [0, 1, 0, 64].repeat(17);
    let Decapsulated::Malformed(error) = walk(LinkType::ETHERNET, &ethernet(0x8847, &labels)) else {
        panic!("not rejected")
    };
    assert_eq!(error.kind, ParseErrorKind::TooDeep);
    let tags = [0, 9, 0x81, 0].repeat(9);
    let Decapsulated::Malformed(error) = walk(LinkType::ETHERNET, &ethernet(0x8100, &tags)) else {
        panic!("not rejected")
    };
    assert_eq!(error.kind, ParseErrorKind::TooDeep);
    let ppi = [0, 0, 8, 0, 192, 0, 0, 0].repeat(50);
    assert!(matches!(walk(LinkType::PPI, &ppi), Decapsulated::Unsupported(_)));
}

#[test]
fn frames_without_a_packet_report_the_reason() {
    assert!(matches!(walk(LinkType::ETHERNET, &[0; 13]), Decapsulated::Truncated(_)));
    assert!(matches!(walk(LinkType::RAW, &[0x50]), Decapsulated::Malformed(_)));
    assert!(matches!(walk(LinkType::RAW, &[]), Decapsulated::Truncated(_)));
    let encrypted = join(&[&[0x0c, 0, 0, 0, 0, 1], &inner(), &[0; 16]]);
    for (link_type, data, why) in [
        (LinkType::ETHERNET, ethernet(0x0806, &[]), Unsupported::EtherType(EtherType::ARP)),
        (LinkType::ETHERNET, ethernet(38, &[0x42, 0x42, 3]), Unsupported::Llc(0x42)),
        (LinkType::ETHERNET, ethernet(0x88e5, &encrypted), Unsupported::MacsecEncrypted),
        (LinkType::ETHERNET, ethernet(0x8847, &[0, 1, 1, 64, 0x10, 0, 0, 0x21]), Unsupported::MplsPayload),
        (LinkType::NULL, vec![23, 0, 0, 0], Unsupported::AddressFamily(23)),
        (LinkType::PPP, vec![0xc0, 0x21], Unsupported::Ppp(0xc021)),
        (LinkType::FRELAY, vec![4, 1, 3, 8], Unsupported::Nlpid(8)),
        (LinkType::C_HDLC, vec![0x8f, 0, 0x80, 0x35], Unsupported::EtherType(EtherType(0x8035))),
        (LinkType::NFLOG, vec![2, 0, 0, 1, 4, 0, 1, 0], Unsupported::Nflog),
        (LinkType::USB_LINUX, vec![], Unsupported::LinkType(LinkType::USB_LINUX)),
        // Linux cooked capture from a netlink device: family 4 is not LLC.
        (
            LinkType::LINUX_SLL2,
            vec![0, 4, 0, 0, 0, 0, 0, 9, 3, 56, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xaa, 0xaa, 3],
            Unsupported::LinkType(LinkType::NETLINK),
        ),
    ] {
        match walk(link_type, &data) {
            Decapsulated::Unsupported(found) => assert_eq!(found, why),
            other => panic!("{why}: {other:?}"),
        }
    }
}

fn extracted(data: &[u8], policy: KeyPolicy) -> Result<Packet<'_>, Skip> {
    Extractor::new(policy).extract(&Frame::ethernet(Timestamp::ZERO, data))
}

#[test]
fn the_key_policy_sets_decapsulation_tunnel_ports_and_vni() {
    let tagged = join(&[&INNER_ETHERNET, &[0x81, 0, 0, 5, 8, 0], &inner()]);
    let vxlan = join(&[&[8, 0, 0, 0, 0, 0, 42, 0], &tagged]);
    let data = in_udp(4789, &vxlan);
    let packet = extracted(&data, KeyPolicy::DEFAULT).unwrap();
    assert_eq!(packet.key.address(Side::A), std::net::IpAddr::from(INNER.0));
    assert_eq!((packet.key.port(packet.side), packet.payload()), (Some(1000), &[1, 2, 3, 4][..]));
    assert_eq!((packet.key.vni(), packet.ip_len as usize), (None, inner().len()));
    // MAC addresses and VLANs are those of the inner frame.
    assert_eq!(packet.mac_addresses.source(&data), Some([2, 0, 0, 0, 0, 4]));
    assert_eq!(packet.vlan_ids, VlanIds::NONE.push(5));
    let mut policy = KeyPolicy::DEFAULT;
    policy.vni = true;
    assert_eq!(extracted(&data, policy).unwrap().key.vni(), Some(42));
    // The network of a frame without an IP packet inside.
    let arp = join(&[&INNER_ETHERNET, &[8, 6], &[0; 28]]);
    for network in [
        in_udp(4789, &join(&[&[8, 0, 0, 0, 0, 0, 42, 0], &arp])),
        in_udp(4790, &join(&[&[8, 0, 0, 0, 0, 0, 42, 0], &arp])),
        in_udp(6081, &join(&[&[0, 0, 0x65, 0x58, 0, 0, 42, 0], &arp])),
        in_ip(47, &join(&[&[0x20, 0, 0x65, 0x58, 0, 0, 42, 0], &arp])),
        in_udp(4789, &join(&[&[8, 0, 0, 0, 0, 0, 42, 0], &[7; 13]])),
    ] {
        let of_network = extracted(&network, policy).unwrap();
        assert_eq!((of_network.key.vni(), of_network.key.address(Side::A)), (Some(42), OUTER.0.into()));
        assert_eq!(extracted(&network, KeyPolicy::DEFAULT).unwrap().key.vni(), None);
    }
    assert_eq!(extracted(&in_udp(4789, &[8, 0, 0, 0, 0, 0]), policy).unwrap().key.vni(), None);
    policy.decapsulation = Decapsulation::Outermost;
    let outermost = extracted(&data, policy).unwrap();
    assert_eq!((outermost.key.port(outermost.side), outermost.key.vni()), (Some(40_000), None));
    assert_eq!(outermost.key.address(Side::A), std::net::IpAddr::from(OUTER.0));
    let mut policy = KeyPolicy::DEFAULT;
    policy.tunnel_ports = TunnelPorts::NONE;
    assert_eq!(extracted(&data, policy).unwrap().key, outermost.key);
    policy.tunnel_ports = TunnelPorts::NONE.with(9999, UdpTunnel::Vxlan).unwrap();
    assert_eq!(extracted(&in_udp(9999, &vxlan), policy).unwrap().key, packet.key);
}

/// Encapsulates an Ethernet frame, or the IPv4 packet in it, in one more tunnel. Returns the result and the added
/// headers.
fn encapsulate(choice: u8, frame: &[u8]) -> (Vec<u8>, Vec<HeaderKind>) {
    use HeaderKind::{
        Erspan, Ethernet, Geneve, Gre, GtpU, Ip, L2tp, Mpls, Nsh, Nvgre, Pppoe, ProviderBackbone, Vlan, Vxlan,
    };
    let packet = &frame[14..];
    let in_ppp = join(&[&[0x11, 0, 0, 9], &(packet.len() as u16 + 2).to_be_bytes(), &[0, 0x21], packet]);
    let gtpu = join(&[&[0x30, 255], &(packet.len() as u16).to_be_bytes(), &[0, 0, 0, 77], packet]);
    // Only an IPv4 packet can be encapsulated without its Ethernet header.
    let is_ipv4 = frame[12..14] == [8, 0];
    match choice % if is_ipv4 { 13 } else { 8 } {
        0 => (in_udp(4789, &join(&[&[8, 0, 0, 0, 0, 0, 42, 0], frame])), vec![Ip, Vxlan, Ethernet]),
        1 => (in_ip(47, &join(&[&[0, 0, 0x65, 0x58], frame])), vec![Ip, Gre, Ethernet]),
        2 => (in_ip(47, &join(&[&[0x20, 0, 0x65, 0x58, 0, 0, 1, 0], frame])), vec![Ip, Nvgre, Ethernet]),
        3 => (in_ip(47, &join(&[&[0, 0, 0x88, 0xbe], frame])), vec![Ip, Gre, Erspan, Ethernet]),
        4 => (in_udp(6081, &join(&[&[0, 0, 0x65, 0x58, 0, 0, 42, 0], frame])), vec![Ip, Geneve, Ethernet]),
        5 => (ethernet(0x88e7, &join(&[&[0, 1, 2, 3], frame])), vec![ProviderBackbone, Ethernet]),
        6 => (ethernet(0x894f, &join(&[&[0x0f, 0xc2, 2, 3, 0, 0, 9, 255], frame])), vec![Nsh, Ethernet]),
        7 => (ethernet(0x8847, &join(&[&[0, 1, 1, 64, 0, 0, 0, 0], frame])), vec![Mpls, Ethernet]),
        8 => (in_ip(4, packet), vec![Ip]),
        9 => (ethernet(0x8864, &in_ppp), vec![Pppoe]),
        10 => (in_udp(2152, &gtpu), vec![Ip, GtpU]),
        11 => (in_udp(1701, &join(&[&[0, 2, 0, 1, 0, 2, 0, 0x21], packet])), vec![Ip, L2tp]),
        _ => (ethernet(0x8100, &join(&[&[0, 5, 8, 0], packet])), vec![Vlan]),
    }
}

#[test]
fn excessive_depth_and_bad_lengths_have_their_own_counters() {
    let deep = (0..20).fold(inner(), |packet, _| outer(4, &packet));
    let mut long = in_ip(50, &[0; 8]);
    long[17] = 200;
    let tags = ethernet(0x8100, &[0, 9, 0x81, 0].repeat(9));
    let mut short = in_ip(50, &[0; 8]);
    short[17] = 19;
    let mut pipeline = Pipeline::builder().build(()).expect("a valid configuration");
    for data in [&ethernet(0x0800, &deep), &long, &tags, &short, &in_ip(4, &inner())] {
        pipeline.frame(&Frame::ethernet(Timestamp::ZERO, data));
    }
    let stats = pipeline.stats();
    assert_eq!((stats.tracker.packet_count, stats.skipped.total()), (3, 2));
    assert_eq!((stats.tracker.too_deep_count, stats.tracker.bad_ip_len_count), (1, 1));
    assert_eq!((stats.skipped.too_deep_count, stats.skipped.malformed_count), (1, 1));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(600) })]

    #[test]
    fn nested_tunnels_are_decapsulated_and_both_paths_agree_on_any_octets(
        choices in prop::collection::vec(any::<u8>(), 0..=4),
        changes in prop::collection::vec(any::<(u16, u8)>(), 1..6),
        truncated: u16,
    ) {
        let mut frame = ethernet(0x0800, &inner());
        let mut expected_headers = Vec::new();
        for choice in choices {
            let (outer_frame, mut kinds) = encapsulate(choice, &frame);
            kinds.append(&mut expected_headers);
            (frame, expected_headers) = (outer_frame, kinds);
        }
        let packet = found(LinkType::ETHERNET, &frame);
        let kinds: Vec<_> = around(LinkType::ETHERNET, &frame).headers().iter().map(|header| header.kind).collect();
        prop_assert_eq!(&kinds[..], &expected_headers[..expected_headers.len().min(16)]);
        prop_assert_eq!(packet.offset, frame.len() - inner().len());
        for (position, value) in changes {
            let position = usize::from(position) % frame.len();
            frame[position] = value;
            let truncated = frame.len() - usize::from(truncated) % frame.len();
            for (data, wire_len) in [(&frame[..], frame.len()), (&frame[..truncated], frame.len()), (&frame[..truncated], truncated)] {
                let frame = Frame { wire_len: wire_len as u32, ..Frame::ethernet(Timestamp::ZERO, data) };
                let extractor = Extractor::default();
                let result = extractor.extract(&frame);
                prop_assert_eq!(&result, &extractor.extract_general(&frame));
                if let Ok(packet) = result {
                    prop_assert!((packet.ip_offset as usize) < data.len());
                    prop_assert!(packet.payload().len() <= packet.payload_len as usize);
                    let _ = quoted_key(&packet, &KeyPolicy::DEFAULT);
                }
            }
        }
    }
}
