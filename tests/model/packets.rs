//! Random packets of few flows.

use flowgauge::base::{FlowKey, IpProtocol, NANOS_PER_SECOND, SeqNum, TcpFlags, Timestamp};
use flowgauge::decode::extractor::{Packet, Transport};
use proptest::prelude::*;

use super::naive::seconds;

const NO_OPTIONS: [u8; 20] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x50, 2, 0, 0, 0, 0, 0, 0];
const SCALE_2: [u8; 24] = {
    let mut header = [0; 24];
    (header[12], header[13]) = (0x60, 2);
    (header[20], header[21], header[22]) = (3, 3, 2);
    header
};

/// Returns the protocol and ports of a flow: TCP with and without a service port, UDP, ESP.
fn ends(flow: u8) -> (IpProtocol, [u16; 2]) {
    match flow {
        0 => (IpProtocol::TCP, [40_000, 80]),
        1 => (IpProtocol::TCP, [40_000, 40_001]),
        2 => (IpProtocol::UDP, [40_000, 53]),
        _ => (IpProtocol::ESP, [0, 0]),
    }
}

pub(crate) type Step = (u8, bool, usize, usize, usize, usize, usize, usize, u8);

pub(crate) fn step() -> impl Strategy<Value = Step> {
    let flow = prop_oneof![6 => Just(0_u8), 6 => Just(1), 1 => Just(2), 1 => Just(3)];
    (
        flow,
        any::<bool>(),
        0..24_usize,
        0..12_usize,
        0..12_usize,
        0..4_usize,
        0..4_usize,
        0..40_usize,
        any::<u8>(),
    )
}

/// Returns the packets of steps; the sequence numbers of each side start at its own base.
pub(crate) fn packets(steps: &[Step], bases: [u32; 2]) -> Vec<Packet<'static>> {
    const S: TcpFlags = TcpFlags::SYN;
    const A: TcpFlags = TcpFlags::ACK;
    const SA: TcpFlags = TcpFlags(S.0 | A.0);
    const F: TcpFlags = TcpFlags(TcpFlags::FIN.0 | A.0);
    const R: TcpFlags = TcpFlags::RST;
    const RA: TcpFlags = TcpFlags(R.0 | A.0);
    const FLAGS: [TcpFlags; 24] =
        [S, S, S, S, SA, SA, SA, SA, A, A, A, A, A, A, A, A, F, F, F, TcpFlags::FIN, R, R, RA, TcpFlags(0)];
    const OFFSETS: [u32; 12] = [0, 0, 0, 1, 1, 1, 1, 2, 101, 102, 5000, 2_000_000];
    const LENS: [u32; 4] = [0, 0, 1, 100];
    const WINDOWS: [u16; 4] = [0, 100, 1000, 65_535];
    const MILLISECOND: u64 = NANOS_PER_SECOND / 1000;
    let mut now = seconds(1_000_000);
    let make = |&(flow, from_second, flags, seq, ack, len, window, time, odd): &Step| {
        let jump = match time {
            0..10 => 0,
            10..14 => 1,
            14..24 => MILLISECOND * u64::from(odd),
            24..30 => seconds(1) + MILLISECOND * u64::from(odd),
            30 => seconds(5),
            31 => seconds(5) - 1,
            32 => seconds(30),
            33 => seconds(60),
            34 => seconds(64),
            35 => seconds(65),
            36 => seconds(300),
            37 => seconds(299),
            _ => 0,
        };
        let back = match time {
            38 => seconds(1),
            39 => seconds(70) + u64::from(odd),
            _ => 0,
        };
        now += jump;
        let (protocol, ports) = ends(flow);
        let (source, target) = if from_second { (1, 0) } else { (0, 1) };
        let end = |number: usize| ([10, 0, 0, number as u8 + 1].into(), ports[number]);
        let (key, side) = FlowKey::new(protocol, end(source), end(target));
        let mut packet = Packet::new(key, side, Timestamp::from_nanos(now - back), &[]);
        packet.wire_len = 60 + u32::from(odd);
        packet.ip_len = 40 + u32::from(odd / 2);
        packet.payload_len = LENS[len];
        match protocol {
            IpProtocol::TCP => {
                packet.transport = Transport::Tcp;
                packet.tcp.flags = FLAGS[flags];
                packet.tcp.seq = SeqNum(bases[source].wrapping_add(OFFSETS[seq]));
                packet.tcp.ack = SeqNum(bases[target].wrapping_add(OFFSETS[ack]));
                packet.tcp.window = WINDOWS[window];
                // One SYN in four may have octets, as in TCP Fast Open.
                let is_bare_syn = packet.tcp.flags.contains(S) && odd % 16 < 12;
                if packet.tcp.flags.contains(R) || is_bare_syn {
                    packet.payload_len = 0;
                }
                packet.frame = match odd % 4 {
                    _ if !packet.tcp.flags.contains(S) => &[],
                    0 => &[],
                    1 => &NO_OPTIONS,
                    _ => &SCALE_2,
                };
            }
            IpProtocol::UDP => packet.transport = Transport::Udp,
            _ => {}
        }
        packet
    };
    steps.iter().map(make).collect()
}
