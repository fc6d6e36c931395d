//! Frames of fragments, tunnels and anything else through the whole pipeline: each counts once, whatever becomes of it.
#![no_main]

use flowgauge::base::{Frame, LinkType, Timestamp};
use flowgauge::fragment::{OverlapPolicy, PoolConfig};
use flowgauge::link::Decapsulation;
use flowgauge::pipeline::{ChecksumHandling, FragmentHandling, Pipeline, Records};
use flowgauge::tracker::TrackerConfig;
use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;

#[derive(Arbitrary, Debug)]
struct Part<'a> {
    is_ipv6: bool,
    /// A whole packet of these octets, or a fragment header before them.
    is_fragment: bool,
    in_tunnel: bool,
    id: u8,
    offset: u8,
    more: bool,
    protocol: u8,
    wait_seconds: u8,
    cut: u8,
    payload: &'a [u8],
}

/// An IPv4 packet between two hosts.
fn ipv4(protocol: u8, id: u8, place: u16, payload: &[u8]) -> Vec<u8> {
    let [high, low] = (20 + payload.len() as u16).to_be_bytes();
    let [flags, offset] = place.to_be_bytes();
    let header = [0x45, 0, high, low, 0, id, flags, offset, 64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
    [&header, payload].concat()
}

fn packet(part: &Part<'_>) -> Vec<u8> {
    let more = u16::from(part.more);
    let payload = &part.payload[..part.payload.len().min(2000)];
    let inner = match (part.is_ipv6, part.is_fragment) {
        (false, false) => ipv4(part.protocol, part.id, 0, payload),
        (false, true) => ipv4(part.protocol, part.id, u16::from(part.offset) | more << 13, payload),
        (true, _) => {
            let place = (u16::from(part.offset) << 3 | more).to_be_bytes();
            let fragment = [part.protocol, 0, place[0], place[1], 0, 0, 0, part.id];
            let [high, low] = (8 + payload.len() as u16).to_be_bytes();
            [&[0x60, 0, 0, 0, high, low, 44, 64][..], &[1; 32], &fragment, payload].concat()
        }
    };
    if part.in_tunnel { ipv4(if part.is_ipv6 { 41 } else { 4 }, 0, 0, &inner) } else { inner }
}

fuzz_target!(|input: (u8, u8, u8, u8, Vec<Part<'_>>)| {
    let (handling, policy, checksums, tunnels, parts) = input;
    let handling = match handling % 3 {
        0 => FragmentHandling::Reassemble,
        1 => FragmentHandling::ReassembleOrPair,
        _ => FragmentHandling::AsTheyCome,
    };
    let checksums = if checksums % 4 == 0 { ChecksumHandling::Drop } else { ChecksumHandling::Count };
    let mut pool = PoolConfig::default();
    pool.policy = OverlapPolicy::ALL[usize::from(policy) % OverlapPolicy::ALL.len()];
    pool.limits.fragment_datagram_count_max = 4;
    pool.limits.fragment_per_datagram_count_max = 6;
    let mut config = TrackerConfig::default();
    config.key_policy.decapsulation = match tunnels % 3 {
        0 => Decapsulation::Innermost,
        1 => Decapsulation::Outermost,
        _ => Decapsulation::Both,
    };
    let mut pipeline = Pipeline::<()>::new(config)
        .and_then(|pipeline| pipeline.with_fragments(handling, pool))
        .unwrap()
        .with_checksums(checksums)
        .with_encapsulation(tunnels & 128 != 0);
    let (mut octets, mut carried_count) = (0, 0);
    let mut seconds = 0;
    let mut sink = Records::new(|record| {
        let carried = record.enclosure.as_ref().map(|enclosure| enclosure.carried).unwrap_or_default();
        octets += record.octet_count() - carried.octet_count;
        carried_count += carried.packet_count;
    });
    for part in &parts {
        seconds += u64::from(part.wait_seconds % 16);
        let data = packet(part);
        let cut = data.len().saturating_sub(usize::from(part.cut / 8));
        let frame = Frame {
            timestamp: Timestamp::from_parts(seconds, 0),
            link_type: LinkType::RAW,
            data: &data[..cut],
            wire_len: data.len() as u32,
            interface: 0,
        };
        pipeline.frame(&frame, &mut sink);
    }
    pipeline.finish(&mut sink);
    let stats = pipeline.stats();
    assert_eq!(stats.frame_count, parts.len() as u64);
    let dropped = stats.skipped.total() + stats.checksums.dropped_count + stats.fragment_alone_count;
    assert_eq!(stats.frame_count + stats.enclosing_count, stats.tracker.packet_count + dropped);
    assert_eq!(carried_count, stats.enclosing_count);
    if dropped == 0 {
        assert_eq!(octets, stats.octet_count);
    }
});
