//! From an Ethernet frame to a packet with its Flow Key.

mod support;

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use flowgauge::base::{Frame, IpProtocol, LinkType, Timestamp};
use flowgauge::extractor::{Extractor, Packet};
use support::{CLIENT, SERVER, tcp, udp};

fn five_tuple(criterion: &mut Criterion) {
    let extractor = Extractor::default();
    let mut group = criterion.benchmark_group("extractor");
    // The frames of the peer's rows: 18 octets of TCP payload, 5 of UDP.
    let tcp_frame = tcp((CLIENT, 40_000), (SERVER, 443), &[0; 18]);
    let udp_frame = udp((CLIENT, 40_000), (SERVER, 53), &[0; 5]);
    let tagged = [&tcp_frame[..12], &[0x81, 0, 0, 42], &tcp_frame[12..]].concat();
    let mut with_options = tcp_frame.clone();
    with_options[14] = 0x46;
    with_options[17] += 4;
    with_options.splice(34..34, [1, 1, 1, 0]);
    // VXLAN with network 1 around the whole frame, and the frame behind a cooked header.
    let in_vxlan =
        udp((SERVER, 50_000), (CLIENT, 4789), &[&[8, 0, 0, 0, 0, 0, 1, 0], &tcp_frame[..]].concat());
    let cooked = [&[0, 0, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0, 8, 0], &tcp_frame[14..]].concat();
    for (id, link_type, data, protocol) in [
        ("five_tuple_ipv4_tcp", LinkType::ETHERNET, &tcp_frame, IpProtocol::TCP),
        ("five_tuple_ipv4_udp", LinkType::ETHERNET, &udp_frame, IpProtocol::UDP),
        ("five_tuple_vlan_ipv4_tcp", LinkType::ETHERNET, &tagged, IpProtocol::TCP),
        ("five_tuple_ipv4_options_tcp", LinkType::ETHERNET, &with_options, IpProtocol::TCP),
        ("five_tuple_cooked_ipv4_tcp", LinkType::LINUX_SLL, &cooked, IpProtocol::TCP),
        ("five_tuple_vxlan_ipv4_tcp", LinkType::ETHERNET, &in_vxlan, IpProtocol::TCP),
    ] {
        let frame = Frame { link_type, ..Frame::ethernet(Timestamp::ZERO, data) };
        let packet = extractor.extract(&frame).expect("the frame holds a packet");
        assert_eq!((packet.key.protocol(), packet.side), (protocol, flowgauge::base::Side::A));
        assert_eq!(packet.key.port(packet.side), 40_000);
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

criterion_group!(benches, five_tuple);
criterion_main!(benches);
