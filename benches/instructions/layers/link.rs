//! Decapsulation of the innermost IP packet of a frame.

use std::hint::black_box;

use flowgauge::base::{Frame, Limits, Timestamp};
use flowgauge::decode::link::{Decapsulated, Decapsulation, TunnelPorts, decapsulate};
use flowgauge::tap::ethernet_to_ip;
use gungraun::prelude::*;

use crate::cases::{CLIENT, SERVER, tcp, udp};

const COUNT: usize = 500;

/// A frame, and the offset of its packet.
struct Walked {
    frame: Vec<u8>,
    offset: usize,
    offset_sum: usize,
}

fn plain() -> Walked {
    Walked { frame: tcp((CLIENT, 40_000), (SERVER, 443), &[0; 100]), offset: 14, offset_sum: 0 }
}

fn in_vlans() -> Walked {
    let plain = plain().frame;
    let frame = [&plain[..12], &[0x88, 0xa8, 0, 7, 0x81, 0, 0, 42], &plain[12..]].concat();
    Walked { frame, offset: 22, offset_sum: 0 }
}

fn in_vxlan() -> Walked {
    let payload = [&[8, 0, 0, 0, 0, 0, 1, 0], &plain().frame[..]].concat();
    Walked { frame: udp((SERVER, 50_000), (CLIENT, 4789), &payload), offset: 64, offset_sum: 0 }
}

fn all_found(walked: Walked) {
    assert_eq!(walked.offset_sum, COUNT * walked.offset);
}

#[library_benchmark(teardown = all_found)]
#[bench::plain(plain())]
#[bench::vlan_stack(in_vlans())]
#[bench::vxlan(in_vxlan())]
fn walk(mut walked: Walked) -> Walked {
    let (ports, limits) = (TunnelPorts::default(), Limits::DEFAULT);
    for _ in 0..COUNT {
        let frame = Frame::ethernet(Timestamp::ZERO, black_box(&walked.frame));
        let found = decapsulate(&frame, Decapsulation::Innermost, &ports, &limits);
        if let Decapsulated::Packet(packet) = black_box(&found) {
            walked.offset_sum += packet.offset;
        }
    }
    walked
}

#[library_benchmark(teardown = all_found)]
#[bench::plain(plain())]
#[bench::vlan_stack(in_vlans())]
fn to_ip(mut walked: Walked) -> Walked {
    for _ in 0..COUNT {
        if let Ok(packet) = ethernet_to_ip(black_box(&walked.frame)) {
            walked.offset_sum += walked.frame.len() - packet.len();
        }
    }
    walked
}

library_benchmark_group!(name = link_group, benchmarks = [walk, to_ip]);
