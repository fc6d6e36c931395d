//! The fast path and the general path of the extractor return the same result for the same octets.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::Path;

use etherparse::PacketBuilder;
use flowgauge::base::{
    Frame, FrameBatch, IpProtocol, Limits, LinkType, Ports, SeqNum, Side, TcpFlags, Timestamp,
};
use flowgauge::decode::extractor::{
    Decapsulation, Direction, Extractor, KeyPolicy, Packet, PacketMarks, Scope, Skip, Transport, quoted_key,
};
use flowgauge::source::{FileSource, Next, Source};
use proptest::prelude::*;

/// Returns all combinations of the settings of a policy: two to the power of seven.
fn policies() -> Vec<KeyPolicy> {
    (0..128_u8)
        .map(|bits| {
            let mut policy = KeyPolicy::DEFAULT;
            policy.ports = bits & 1 == 0;
            policy.vlan_ids = bits & 2 != 0;
            policy.echo_id = bits & 4 != 0;
            policy.direction = if bits & 8 == 0 { Direction::Biflow } else { Direction::Uniflow };
            policy.scope = if bits & 16 == 0 { Scope::Fixed(0xffff_fff7) } else { Scope::Interface };
            policy.vni = bits & 32 != 0;
            policy.decapsulation =
                if bits & 64 == 0 { Decapsulation::Innermost } else { Decapsulation::Outermost };
            policy
        })
        .collect()
}

/// Returns default and restrictive limits for tags, extensions, labels, and nesting.
fn limits() -> [Limits; 3] {
    let mut strict = Limits::DEFAULT;
    strict.vlan_tag_count_max = 0;
    strict.ip_extension_count_max = 0;
    let mut narrow = Limits::DEFAULT;
    narrow.vlan_tag_count_max = 1;
    narrow.encapsulation_depth_max = 1;
    narrow.mpls_label_count_max = 1;
    [Limits::DEFAULT, narrow, strict]
}

/// Compares both paths under a policy, and returns their result.
fn result_of_both_paths<'a>(
    frame: &Frame<'a>,
    policy: KeyPolicy,
    limits: Limits,
) -> Result<Packet<'a>, Skip> {
    let extractor = Extractor::new(policy).with_limits(limits);
    let result = extractor.extract(frame);
    assert_eq!(result, extractor.extract_general(frame), "{policy:?} {:02x?}", frame.data);
    let mut written = Packet::EMPTY;
    let outcome = extractor.extract_into(frame, &mut written);
    match result {
        Ok(packet) => {
            assert_eq!((outcome, written), (Ok(()), packet));
            check_sanity(&packet, frame, &policy);
        }
        Err(skip) => assert_eq!(outcome, Err(skip)),
    }
    result
}

/// Checks invariants of every packet.
fn check_sanity(packet: &Packet<'_>, frame: &Frame<'_>, policy: &KeyPolicy) {
    assert!(packet.payload().len() <= packet.payload_len as usize);
    assert!(packet.ip_offset < packet.transport_offset && packet.transport_offset <= packet.payload_offset);
    assert!((packet.ip_offset as usize) < frame.data.len());
    assert_eq!((packet.timestamp, packet.interface), (frame.timestamp, frame.interface));
    assert_eq!(packet.wire_len, frame.wire_len);
    if packet.transport != Transport::Tcp {
        assert_eq!(packet.tcp, Packet::EMPTY.tcp, "no TCP fields without TCP");
    }
    let scope = match policy.scope {
        Scope::Fixed(scope) => scope,
        _ => frame.interface,
    };
    assert_eq!(packet.key.scope(), scope);
    assert!(policy.vlan_ids || packet.key.vlan_ids().is_empty());
    if policy.direction == Direction::Uniflow {
        assert_eq!(packet.side, Side::A);
    }
    if !policy.ports {
        assert_eq!(packet.key.ports(), Ports::None);
    }
    let _ = quoted_key(packet, policy);
}

/// Compares both paths under all policies, and under restrictive limits.
fn compare_under_all_policies(data: &[u8], extra_len: u32, interface: u32) {
    for frame in frame_variants(data, extra_len, interface) {
        for policy in policies() {
            let _ = result_of_both_paths(&frame, policy, Limits::DEFAULT);
        }
        for limits in limits() {
            let _ = result_of_both_paths(&frame, KeyPolicy::DEFAULT, limits);
        }
    }
}

/// Returns the octets as a complete frame, as a truncated frame, and as a frame with a wire length that is too small.
fn frame_variants(data: &[u8], extra_len: u32, interface: u32) -> [Frame<'_>; 3] {
    let frame = Frame { interface, ..Frame::ethernet(Timestamp::from_nanos(7), data) };
    let truncated = Frame { wire_len: data.len() as u32 + extra_len, ..frame };
    let wrong = Frame { wire_len: data.len() as u32 / 2, ..frame };
    [frame, truncated, wrong]
}

/// Generates octets that begin like a frame and continue with arbitrary values.
fn frame_like() -> impl Strategy<Value = Vec<u8>> {
    let tag = prop_oneof![Just([0x81, 0]), Just([0x88, 0xa8]), Just([0x91, 0])];
    let tags = prop::collection::vec((tag, any::<[u8; 2]>()), 0..4);
    let ether_type =
        prop_oneof![4 => Just([8, 0]), 4 => Just([0x86, 0xdd]), 1 => any::<[u8; 2]>(), 1 => Just([8, 6])];
    let protocol = prop_oneof![
        4 => Just(6_u8), 4 => Just(17), 1 => Just(1), 1 => Just(58), 1 => Just(132), 1 => Just(44), 1 => Just(0),
        1 => Just(43), 1 => Just(51), 1 => Just(59), 1 => Just(60), 1 => any::<u8>()
    ];
    let first = prop_oneof![6 => Just(true), 1 => Just(false)];
    let tail = prop::collection::vec(prop_oneof![2 => Just(0_u8), 1 => 0..64_u8, 3 => any::<u8>()], 0..140);
    (any::<[u8; 12]>(), tags, ether_type, protocol, first, any::<[u8; 4]>(), tail).prop_map(
        |(macs, tags, ether_type, protocol, is_version_right, odd, tail)| {
            let mut frame = macs.to_vec();
            for (tag, id) in tags {
                frame.extend(tag);
                frame.extend(id);
            }
            frame.extend(ether_type);
            let at = frame.len();
            frame.extend(&tail);
            let len = (tail.len() as u16).wrapping_add(i16::from(odd[0] as i8 / 32) as u16).to_be_bytes();
            let mut set = |position: usize, value: u8| {
                if let Some(octet) = frame.get_mut(at + position) {
                    *octet = value;
                }
            };
            if !is_version_right {
                return frame;
            }
            if ether_type == [8, 0] {
                set(0, if odd[1] < 200 { 0x45 } else { 0x40 | odd[1] & 0xf });
                set(2, len[0]);
                set(3, len[1]);
                if odd[2] < 220 {
                    set(6, odd[2] & 0x40);
                    set(7, 0);
                }
                set(9, protocol);
                transport(&mut set, 20, protocol, odd[3]);
            } else if ether_type == [0x86, 0xdd] {
                set(0, 0x60 | odd[1] & 0xf);
                let len = u16::from_be_bytes(len).saturating_sub(40).to_be_bytes();
                set(4, len[0]);
                set(5, len[1]);
                set(6, protocol);
                transport(&mut set, 40, protocol, odd[3]);
            }
            frame
        },
    )
}

/// Sets a valid header length in most transport headers.
fn transport(set: &mut impl FnMut(usize, u8), at: usize, protocol: u8, odd: u8) {
    match protocol {
        6 if odd < 180 => set(at + 12, 0x50 + (odd & 0x30)),
        17 if odd < 180 => {
            set(at + 4, 0);
            set(at + 5, odd / 3);
        }
        _ => {}
    }
}

/// The contents of a frame that `etherparse` builds.
#[derive(Clone, Debug)]
struct Built {
    tags: Vec<u16>,
    is_ipv6: bool,
    source: [u8; 16],
    destination: [u8; 16],
    hop_limit: u8,
    ports: (u16, u16),
    /// Sequence number, acknowledgment number, window, control bits without NS; `None` for UDP.
    tcp: Option<(u32, u32, u16, u8)>,
    option_words: usize,
    payload: Vec<u8>,
    padding_len: usize,
}

impl Built {
    fn addresses(&self) -> (IpAddr, IpAddr) {
        let address = |octets: [u8; 16]| {
            let [a, b, c, d, ..] = octets;
            if self.is_ipv6 { Ipv6Addr::from(octets).into() } else { Ipv4Addr::new(a, b, c, d).into() }
        };
        (address(self.source), address(self.destination))
    }

    fn frame(&self) -> Vec<u8> {
        use etherparse::VlanId;
        let ethernet = PacketBuilder::ethernet2([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]);
        let id = |position: usize| VlanId::try_new(self.tags[position]).expect("an id of 12 bits");
        let address = |octets: [u8; 16]| octets[..4].try_into().expect("four octets");
        macro_rules! ip {
            ($step:expr) => {
                if self.is_ipv6 {
                    $step.ipv6(self.source, self.destination, self.hop_limit)
                } else {
                    $step.ipv4(address(self.source), address(self.destination), self.hop_limit)
                }
            };
        }
        let ip = match self.tags.len() {
            0 => ip!(ethernet),
            1 => ip!(ethernet.single_vlan(id(0))),
            _ => ip!(ethernet.double_vlan(id(0), id(1))),
        };
        let mut frame = Vec::new();
        match self.tcp {
            Some((seq, ack, window, flags)) => {
                let mut header = etherparse::TcpHeader::new(self.ports.0, self.ports.1, seq, window);
                header.acknowledgment_number = ack;
                let has = |flag: TcpFlags| u16::from(flags) & flag.0 != 0;
                (header.fin, header.syn, header.rst) =
                    (has(TcpFlags::FIN), has(TcpFlags::SYN), has(TcpFlags::RST));
                (header.psh, header.ack, header.urg) =
                    (has(TcpFlags::PSH), has(TcpFlags::ACK), has(TcpFlags::URG));
                (header.ece, header.cwr) = (has(TcpFlags::ECE), has(TcpFlags::CWR));
                header.set_options_raw(&[1; 40][..self.option_words * 4]).expect("at most 40 octets");
                ip.tcp_header(header).write(&mut frame, &self.payload).expect("a valid packet");
            }
            None => {
                ip.udp(self.ports.0, self.ports.1).write(&mut frame, &self.payload).expect("a valid packet")
            }
        }
        frame.resize(frame.len() + self.padding_len, 0xee);
        frame
    }

    /// Checks that the extracted packet has the contents of this frame.
    fn check(&self, frame: &[u8]) {
        let frame = Frame::ethernet(Timestamp::ZERO, frame);
        let mut policy = KeyPolicy::DEFAULT;
        policy.vlan_ids = true;
        let packet = result_of_both_paths(&frame, policy, Limits::DEFAULT).expect("a packet");
        let (source, destination) = self.addresses();
        let (side, other) = (packet.side, packet.side.other());
        assert_eq!((packet.key.address(side), packet.key.address(other)), (source, destination));
        let port = |side| packet.key.port(side).expect("a port");
        assert_eq!((port(side), port(other)), self.ports);
        let (a, b) = ((packet.key.address(Side::A), port(Side::A)), (destination, self.ports.1));
        assert!(a <= (source, self.ports.0) && a <= b, "side A is the lower end");
        let ids: Vec<u16> = self.tags.iter().copied().filter(|id| *id != 0).collect();
        assert_eq!(packet.key.vlan_ids().iter().collect::<Vec<_>>(), ids);
        assert_eq!(packet.hop_limit, self.hop_limit);
        assert_eq!(packet.marks, PacketMarks::default());
        assert_eq!(packet.payload(), self.payload);
        assert_eq!(packet.payload_len as usize, self.payload.len());
        let ip_offset = 14 + 4 * self.tags.len();
        assert_eq!(packet.ip_offset as usize, ip_offset);
        assert_eq!(packet.ip_len as usize, frame.data.len() - ip_offset - self.padding_len);
        assert_eq!(packet.mac_addresses.source(frame.data), Some([2, 0, 0, 0, 0, 1]));
        match self.tcp {
            Some((seq, ack, window, flags)) => {
                assert_eq!((packet.transport, packet.key.protocol()), (Transport::Tcp, IpProtocol::TCP));
                assert_eq!((packet.tcp.seq, packet.tcp.ack), (SeqNum(seq), SeqNum(ack)));
                assert_eq!((packet.tcp.window, packet.tcp.flags), (window, TcpFlags(flags.into())));
            }
            None => assert_eq!((packet.transport, packet.key.protocol()), (Transport::Udp, IpProtocol::UDP)),
        }
    }
}

fn built() -> impl Strategy<Value = Built> {
    let address = || prop_oneof![any::<[u8; 16]>(), (0..3_u8).prop_map(|last| [last; 16])];
    let port = || prop_oneof![any::<u16>(), Just(80)];
    (
        prop::collection::vec(0..4096_u16, 0..3),
        any::<bool>(),
        (address(), address(), any::<u8>()),
        (port(), port()),
        prop::option::of(any::<(u32, u32, u16, u8)>()),
        0..11_usize,
        prop::collection::vec(any::<u8>(), 0..40),
        0..20_usize,
    )
        .prop_map(
            |(
                tags,
                is_ipv6,
                (source, destination, hop_limit),
                ports,
                tcp,
                option_words,
                payload,
                padding_len,
            )| {
                Built {
                    tags,
                    is_ipv6,
                    source,
                    destination,
                    hop_limit,
                    ports,
                    tcp,
                    option_words,
                    payload,
                    padding_len,
                }
            },
        )
}

fn cases(release: u32) -> ProptestConfig {
    let cases = if cfg!(debug_assertions) { release / 8 } else { release };
    ProptestConfig {
        cases,
        failure_persistence: None,
        max_shrink_iters: 2000,
        ..ProptestConfig::with_cases(cases)
    }
}

proptest! {
    #![proptest_config(cases(8000))]

    #[test]
    fn both_paths_agree_on_any_octets(data in frame_like(), extra_len in 0..100_u32, interface: u32) {
        compare_under_all_policies(&data, extra_len, interface);
    }
}

proptest! {
    #![proptest_config(cases(800))]

    #[test]
    fn built_frames_are_extracted_correctly_by_both_paths(built in built(), changes in prop::collection::vec(any::<(u16, u8)>(), 1..4)) {
        let mut frame = built.frame();
        built.check(&frame);
        compare_under_all_policies(&frame, 9, 3);
        for len in 0..frame.len() {
            for extra_len in [0, (frame.len() - len) as u32] {
                let truncated = Frame { wire_len: len as u32 + extra_len, ..Frame::ethernet(Timestamp::ZERO, &frame[..len]) };
                let _ = result_of_both_paths(&truncated, KeyPolicy::DEFAULT, Limits::DEFAULT);
            }
        }
        // The first 60 octets have most of the fields that matter.
        for (position, value) in changes {
            let position = usize::from(position) % frame.len().min(if position & 1 == 0 { 60 } else { usize::MAX });
            frame[position] = value;
            compare_under_all_policies(&frame, 0, 1);
        }
    }
}

#[test]
fn both_paths_agree_on_recorded_frames() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/data");
    let (mut frame_count, mut packet_count) = (0, 0);
    let mut batch = FrameBatch::new();
    for entry in std::fs::read_dir(folder).expect("the folder of captures") {
        let path = entry.expect("an entry").path();
        if !path.extension().is_some_and(|extension| extension == "pcap" || extension == "pcapng") {
            continue;
        }
        let mut source = FileSource::open(&path).expect("a capture");
        while source.next_batch(&mut batch).expect("a readable capture") == Next::Frames {
            for frame in batch.iter() {
                frame_count += 1;
                for (number, policy) in policies().into_iter().enumerate() {
                    let result = result_of_both_paths(&frame, policy, Limits::DEFAULT);
                    packet_count += usize::from(number == 0 && result.is_ok());
                }
                // Truncated anywhere in the headers.
                let len = frame.data.len().min(frame_count % 100);
                let _ = result_of_both_paths(
                    &Frame { data: &frame.data[..len], ..frame },
                    KeyPolicy::DEFAULT,
                    Limits::DEFAULT,
                );
            }
        }
    }
    // The sum of the counts in examples/data/README.md; six of these frames are ARP.
    assert_eq!((frame_count, packet_count), (3405, 3399));
}

#[test]
fn both_paths_agree_on_other_link_types() {
    let inner = Built {
        tags: vec![],
        is_ipv6: false,
        source: [1; 16],
        destination: [2; 16],
        hop_limit: 9,
        ports: (5, 6),
        tcp: None,
        option_words: 0,
        payload: vec![1, 2, 3],
        padding_len: 0,
    };
    let frame = inner.frame();
    let raw = Frame { link_type: LinkType::RAW, ..Frame::ethernet(Timestamp::ZERO, &frame[14..]) };
    let on_ethernet = Frame::ethernet(Timestamp::ZERO, &frame);
    for policy in policies() {
        let packet = result_of_both_paths(&raw, policy, Limits::DEFAULT).expect("a packet");
        assert_eq!(
            packet.key,
            result_of_both_paths(&on_ethernet, policy, Limits::DEFAULT).expect("a packet").key
        );
        assert_eq!((packet.payload(), packet.ip_offset), (&[1, 2, 3][..], 0));
    }
}
