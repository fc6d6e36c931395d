//! Extraction of a packet with its Flow Key from a frame.

use std::hint::black_box;

use flowgauge::base::{Frame, Timestamp};
use flowgauge::decode::extractor::{Extractor, Packet};
use gungraun::prelude::*;

use crate::cases::{CLIENT, SERVER, in_ipv6, tcp, udp};

const COUNT: u64 = 1000;

const SOURCE_PORT: u16 = 40_000;

/// A frame, and the sum of the source ports of the extracted packets.
struct Extraction {
    extractor: Extractor,
    frame: Vec<u8>,
    port_sum: u64,
}

fn of(frame: Vec<u8>) -> Extraction {
    Extraction { extractor: Extractor::default(), frame, port_sum: 0 }
}

fn tcp_frame() -> Vec<u8> {
    tcp((CLIENT, SOURCE_PORT), (SERVER, 443), &[0; 18])
}

fn udp_frame() -> Vec<u8> {
    udp((CLIENT, SOURCE_PORT), (SERVER, 53), &[0; 5])
}

fn tagged() -> Vec<u8> {
    let frame = tcp_frame();
    [&frame[..12], &[0x81, 0, 0, 42], &frame[12..]].concat()
}

fn with_options() -> Vec<u8> {
    let mut frame = tcp_frame();
    frame[14] = 0x46;
    frame[17] += 4;
    frame.splice(34..34, [1, 1, 1, 0]);
    frame
}

fn in_vxlan() -> Vec<u8> {
    udp((SERVER, 50_000), (CLIENT, 4789), &[&[8, 0, 0, 0, 0, 0, 1, 0], &tcp_frame()[..]].concat())
}

fn all_found(extraction: Extraction) {
    assert_eq!(extraction.port_sum, COUNT * u64::from(SOURCE_PORT));
}

#[library_benchmark(setup = of, teardown = all_found)]
#[bench::ipv4_tcp(tcp_frame())]
#[bench::ipv4_udp(udp_frame())]
#[bench::ipv6_udp(in_ipv6(&udp_frame()))]
#[bench::vlan_ipv4_tcp(tagged())]
#[bench::ipv4_options_tcp(with_options())]
#[bench::vxlan_ipv4_tcp(in_vxlan())]
fn five_tuple(mut extraction: Extraction) -> Extraction {
    let mut packet = Packet::EMPTY;
    for _ in 0..COUNT {
        let frame = Frame::ethernet(Timestamp::ZERO, black_box(&extraction.frame));
        if extraction.extractor.extract_into(&frame, &mut packet).is_ok() {
            let packet = black_box(&packet);
            extraction.port_sum += u64::from(packet.key.port(packet.side).unwrap_or_default());
        }
    }
    extraction
}

library_benchmark_group!(name = extractor_group, benchmarks = five_tuple);
