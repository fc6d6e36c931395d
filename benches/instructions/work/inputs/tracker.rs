//! Flow tracking with a full table: short connections, and floods.

use std::net::Ipv4Addr;

use flowgauge::base::{Frame, Limits, Resources, Timestamp};
use flowgauge::decode::extractor::{Extractor, Packet};
use flowgauge::tracker::{Tracker, TrackerConfig};

use super::frames::{ACK, Frames, RST, SYN, segment};
use crate::SEEDS;
use crate::cases::{CLIENT, SERVER, udp};

const FLOW_COUNT: u32 = 256;

/// A tracker with the maximum number of flows, and packets to be tracked.
pub(crate) struct Tracking {
    tracker: Tracker<()>,
    packets: Vec<Packet<'static>>,
    packet_count: u64,
}

fn packets(frames: Frames, step_ns: u64) -> Vec<Packet<'static>> {
    let extractor = Extractor::default();
    let frames = frames.leaked().into_iter().zip(1..);
    frames
        .map(|(frame, number)| {
            let time = Timestamp::from_nanos(1_000_000_000 + step_ns * number);
            extractor.extract(&Frame::ethernet(time, frame)).expect("the frame contains a packet")
        })
        .collect()
}

fn peer(number: u32) -> (Ipv4Addr, u16) {
    (Ipv4Addr::from(0x0a20_0000 + number), 40_000)
}

pub(crate) fn prepared((make, step_ns): (fn() -> Frames, u64)) -> Tracking {
    let mut limits = Limits::DEFAULT;
    limits.flow_count_max = FLOW_COUNT;
    let resources = Resources::new(limits).with_seeds(SEEDS);
    let mut tracker = Tracker::new(TrackerConfig::default(), &resources).expect("a valid configuration");
    let mut number = FLOW_COUNT;
    let known = Frames::filled(|_| {
        number = (number + 1) % FLOW_COUNT;
        udp(peer(1_000_000 + number), (SERVER, 9), &[0; 20])
    });
    for packet in packets(known, 0) {
        tracker.track(&packet, &mut ());
    }
    let packet_count = tracker.stats().packet_count;
    Tracking { tracker, packets: packets(make(), step_ns), packet_count }
}

pub(crate) fn checked(tracking: Tracking) {
    let packet_count = tracking.packet_count + tracking.packets.len() as u64;
    assert_eq!(tracking.tracker.stats().packet_count, packet_count);
    tracking.tracker.check_invariants();
}

impl Tracking {
    pub(crate) fn track(mut self) -> Self {
        for packet in &self.packets {
            self.tracker.track(packet, &mut ());
        }
        self
    }
}

/// Connections of eight segments, four connections at a time.
pub(crate) fn benign() -> Frames {
    const STEPS: [(bool, u8, usize, u32, u32); 8] = [
        (true, SYN, 0, 0, 0),
        (false, SYN | ACK, 0, 0, 1),
        (true, ACK, 0, 1, 1),
        (true, ACK, 100, 1, 1),
        (false, ACK, 100, 1, 101),
        (true, ACK | 1, 0, 101, 101),
        (false, ACK | 1, 0, 101, 102),
        (true, ACK, 0, 102, 102),
    ];
    Frames::filled(|number| {
        let flow = number / 32 * 4 + number % 4;
        let (is_client, flags, len, seq, ack) = STEPS[(number / 4 % 8) as usize];
        let ends = (peer(flow), (SERVER, 443));
        let ends = if is_client { ends } else { (ends.1, ends.0) };
        segment(ends, flags, (seq, ack), &vec![0; len])
    })
}

/// SYN segments of different hosts, which each evict a flow.
pub(crate) fn syn_flood() -> Frames {
    Frames::filled(|number| segment((peer(number), (SERVER, 443)), SYN, (number, 0), &[]))
}

/// Datagrams of different hosts.
pub(crate) fn udp_flood() -> Frames {
    Frames::filled(|number| udp(peer(number), (SERVER, 53), &[0; 12]))
}

/// A connection that is repeatedly opened and reset.
pub(crate) fn reuse() -> Frames {
    Frames::filled(|number| {
        let isn = 1000 * (number / 2);
        let (flags, seq) = if number % 2 == 0 { (SYN, isn) } else { (RST, isn + 1) };
        segment((peer(1), (SERVER, 443)), flags, (seq, 0), &[])
    })
}

/// Segments that are repeated after later ones.
pub(crate) fn disorder() -> Frames {
    Frames::filled(|number| {
        let seq = (number * 7919) % 1000;
        segment((peer(1), (SERVER, 443)), ACK, (seq * 10, number), &[0; 10])
    })
}

/// ICMP errors that quote packets of unknown flows.
pub(crate) fn icmp_errors() -> Frames {
    Frames::filled(|number| {
        let quoted = &udp((SERVER, 53), peer(number), &[])[14..];
        let mut frame = udp((SERVER, 0), (CLIENT, 0), &[]);
        frame.truncate(34);
        frame[23] = 1;
        frame.extend([3, 3, 0, 0, 0, 0, 0, 0]);
        frame.extend(quoted);
        let len = (frame.len() - 14) as u16;
        frame[16..18].copy_from_slice(&len.to_be_bytes());
        frame
    })
}
