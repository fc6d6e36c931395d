//! Extraction of a packet with its Flow Key from an Ethernet frame.

mod cases;

use std::hint::black_box;

use cases::{CLIENT, SERVER, in_ipv6, tcp, udp};
use criterion::{Criterion, criterion_group, criterion_main};
use flowgauge::base::{Frame, IpProtocol, LinkType, Timestamp};
use flowgauge::decode::extractor::{Extractor, Packet};

fn five_tuple(criterion: &mut Criterion) {
    let extractor = Extractor::default();
    let mut group = criterion.benchmark_group("extractor");
    // The same frames as in the rows of the peer: 18 octets of TCP payload and 5 octets of UDP payload.
    let tcp_frame = tcp((CLIENT, 40_000), (SERVER, 443), &[0; 18]);
    let udp_frame = udp((CLIENT, 40_000), (SERVER, 53), &[0; 5]);
    let udp_ipv6_frame = in_ipv6(&udp_frame);
    let tagged = [&tcp_frame[..12], &[0x81, 0, 0, 42], &tcp_frame[12..]].concat();
    let mut with_options = tcp_frame.clone();
    with_options[14] = 0x46;
    with_options[17] += 4;
    with_options.splice(34..34, [1, 1, 1, 0]);
    // The frame in VXLAN with network identifier 1, and the frame after a cooked header.
    let in_vxlan =
        udp((SERVER, 50_000), (CLIENT, 4789), &[&[8, 0, 0, 0, 0, 0, 1, 0], &tcp_frame[..]].concat());
    let cooked = [&[0, 0, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0, 8, 0], &tcp_frame[14..]].concat();
    for (id, link_type, data, protocol) in [
        ("five_tuple_ipv4_tcp", LinkType::ETHERNET, &tcp_frame, IpProtocol::TCP),
        ("five_tuple_ipv4_udp", LinkType::ETHERNET, &udp_frame, IpProtocol::UDP),
        ("five_tuple_ipv6_udp", LinkType::ETHERNET, &udp_ipv6_frame, IpProtocol::UDP),
        ("five_tuple_vlan_ipv4_tcp", LinkType::ETHERNET, &tagged, IpProtocol::TCP),
        ("five_tuple_ipv4_options_tcp", LinkType::ETHERNET, &with_options, IpProtocol::TCP),
        ("five_tuple_cooked_ipv4_tcp", LinkType::LINUX_SLL, &cooked, IpProtocol::TCP),
        ("five_tuple_vxlan_ipv4_tcp", LinkType::ETHERNET, &in_vxlan, IpProtocol::TCP),
    ] {
        let frame = Frame { link_type, ..Frame::ethernet(Timestamp::ZERO, data) };
        let packet = extractor.extract(&frame).expect("the frame contains a packet");
        assert_eq!((packet.key.protocol(), packet.side), (protocol, flowgauge::base::Side::A));
        assert_eq!(packet.key.port(packet.side), Some(40_000));
        let mut packet = Packet::EMPTY;
        group.bench_function(id, |bencher| {
            bencher.iter(|| {
                let outcome = extractor.extract_into(black_box(&frame), &mut packet);
                black_box(&packet);
                outcome
            });
        });
    }
    group.finish();
}

/// Prepends an IPv4 header of 20 octets to a payload.
fn in_ipv4(protocol: u8, payload: &[u8]) -> Vec<u8> {
    let [high, low] = (20 + payload.len() as u16).to_be_bytes();
    let header = [0x45, 0, high, low, 0, 1, 0, 0, 64, protocol, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2];
    [&header, payload].concat()
}

/// Puts a packet into a tunnel.
type Wrap<'a> = &'a dyn Fn(&[u8]) -> Vec<u8>;

/// The general path for a packet in a number of tunnels: the difference between two successive rows is the cost of a
/// layer.
fn tunnels(criterion: &mut Criterion) {
    let extractor = Extractor::default();
    let mut group = criterion.benchmark_group("extractor");
    let innermost = tcp((CLIENT, 40_000), (SERVER, 443), &[0; 18]);
    let (macs, innermost) = (&innermost[..14], &innermost[14..]);
    let ip_in_ip = |packet: &[u8]| in_ipv4(4, packet);
    let gre = |packet: &[u8]| in_ipv4(47, &[&[0, 0, 8, 0], packet].concat());
    let vxlan = |packet: &[u8]| {
        let payload = [&[8, 0, 0, 0, 0, 0, 1, 0], macs, packet].concat();
        udp((SERVER, 50_000), (CLIENT, 4789), &payload)[14..].to_vec()
    };
    let wraps: [Wrap<'_>; 3] = [&ip_in_ip, &gre, &vxlan];
    for (name, wrap) in ["ip_in_ip", "gre", "vxlan"].into_iter().zip(wraps) {
        let mut inside = innermost.to_vec();
        for depth in 0..=3 {
            let data = [macs, &inside].concat();
            let frame = Frame::ethernet(Timestamp::ZERO, &data);
            let packet = extractor.extract_general(&frame).expect("the frame contains a packet");
            assert_eq!(
                (packet.key.protocol(), packet.key.port(packet.side)),
                (IpProtocol::TCP, Some(40_000))
            );
            group.bench_function(format!("{name}/{depth}"), |bencher| {
                bencher.iter(|| extractor.extract_general(black_box(&frame)));
            });
            inside = wrap(&inside);
        }
    }
    group.finish();
}

criterion_group!(benches, five_tuple, tunnels);
criterion_main!(benches);
