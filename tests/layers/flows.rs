//! Behavior of flows other than the TCP states: direction, ICMP errors, muting, removal, lookups, active timeouts.

use std::time::Duration;

use etherparse::PacketBuilder;
use flowgauge::base::{
    DirectionEvidence, EndReason, FlowKey, Frame, IpProtocol, NANOS_PER_SECOND, Resources, SeqNum, Side,
    TcpFlags, Timestamp,
};
use flowgauge::decode::extractor::{Extractor, Packet, Transport};
use flowgauge::record::FlowRecord;
use flowgauge::tracker::{
    Anomaly, Class, Flow, FlowEvent, FlowView, Interest, Observer, Timeouts, Tracker, TrackerConfig,
};

use crate::record_list::RecordList;

fn at(second: u64) -> Timestamp {
    Timestamp::from_nanos(1_000 * NANOS_PER_SECOND + second * NANOS_PER_SECOND)
}

fn packet(protocol: IpProtocol, source: (&str, u16), target: (&str, u16), second: u64) -> Packet<'static> {
    let end = |(address, port): (&str, u16)| (address.parse().expect("an address"), port);
    let (key, side) = FlowKey::new(protocol, end(source), end(target));
    let mut packet = Packet::new(key, side, at(second), &[]);
    packet.wire_len = 100;
    packet.transport = match protocol {
        IpProtocol::TCP => Transport::Tcp,
        IpProtocol::UDP => Transport::Udp,
        _ => Transport::Other,
    };
    packet.tcp.flags = TcpFlags::ACK;
    packet.tcp.window = 100;
    packet
}

fn records_of(packets: &[Packet<'_>], config: TrackerConfig) -> Vec<FlowRecord> {
    let mut records = RecordList::default();
    let mut tracker: Tracker<()> =
        Tracker::new(config, &Resources::default()).expect("a valid configuration");
    tracker.track_batch(packets, &mut records);
    tracker.finish(&mut records);
    records.0
}

#[test]
fn the_initiator_is_inferred_from_group_addresses_and_service_ports() {
    use DirectionEvidence::{FirstSeen, Multicast, ServicePort};
    let (tcp, udp) = (IpProtocol::TCP, IpProtocol::UDP);
    for (protocol, source, target, sender_began, evidence) in [
        // A multicast or broadcast address is never the initiator, for any ports.
        (udp, ("10.0.0.9", 53), ("224.0.0.251", 40_000), true, Multicast),
        (udp, ("224.0.0.251", 40_000), ("10.0.0.9", 53), false, Multicast),
        (udp, ("fe80::1", 5353), ("ff02::fb", 5353), true, Multicast),
        (udp, ("10.0.0.9", 67), ("255.255.255.255", 40_000), true, Multicast),
        // First packet in the middle of a connection: the side with the registered service is the responder.
        (tcp, ("10.0.0.1", 443), ("10.0.0.2", 50_000), false, ServicePort),
        (tcp, ("10.0.0.2", 50_000), ("10.0.0.1", 443), true, ServicePort),
        (udp, ("10.0.0.1", 53), ("10.0.0.2", 50_000), false, ServicePort),
        // Both ports or none are registered: the sender of the first packet is the initiator.
        (udp, ("10.0.0.2", 123), ("10.0.0.1", 123), true, FirstSeen),
        (tcp, ("10.0.0.2", 50_001), ("10.0.0.1", 50_000), true, FirstSeen),
        (IpProtocol::ESP, ("10.0.0.2", 0), ("10.0.0.1", 0), true, FirstSeen),
    ] {
        let first = packet(protocol, source, target, 0);
        let records = records_of(&[first], TrackerConfig::default());
        let found = (records[0].initiator == first.side, records[0].direction_evidence);
        assert_eq!(found, (sender_began, evidence), "{source:?} to {target:?}");
        let is_reversed = records[0].history.to_string().starts_with('^');
        assert_eq!(is_reversed, !sender_began, "an initiator that did not send the first packet is marked");
        let (own, other) = (&records[0].forward.counters, &records[0].reverse.counters);
        assert_eq!((own.packet_count, other.packet_count), if sender_began { (1, 0) } else { (0, 1) });
    }
    // A SYN takes precedence over both.
    let mut syn = packet(tcp, ("10.0.0.1", 443), ("10.0.0.2", 50_000), 0);
    syn.tcp.flags = TcpFlags::SYN;
    let records = records_of(&[syn], TrackerConfig::default());
    assert_eq!((records[0].initiator, records[0].direction_evidence), (syn.side, DirectionEvidence::Syn));
}

/// Records the calls that it receives.
#[derive(Default)]
struct Calls {
    mutes: bool,
    packets: u32,
    events: Vec<FlowEvent>,
    ended: Vec<(FlowKey, EndReason, u64)>,
}

impl Observer<u32> for Calls {
    fn packet(&mut self, flow: &mut Flow<'_, u32>, _: &Packet<'_>) {
        self.packets += 1;
        *flow.state += 1;
        if self.mutes {
            flow.mute();
        }
    }

    fn event(&mut self, _: &mut Flow<'_, u32>, event: &FlowEvent) {
        self.events.push(*event);
    }

    fn ended(&mut self, flow: &FlowView<'_>, reason: EndReason, _: u32) {
        self.ended.push((*flow.key(), reason, flow.packet_count()));
    }
}

/// Returns an ICMP error of a router that quotes the given number of octets of a frame.
fn icmp_error_for(frame: &[u8], quoted_len: usize) -> Vec<u8> {
    let mut error = Vec::new();
    PacketBuilder::ethernet2([2; 6], [4; 6])
        .ipv4([10, 9, 9, 9], [10, 0, 0, 1], 64)
        .icmpv4_raw(11, 0, [0; 4])
        .write(&mut error, &frame[14..14 + quoted_len])
        .expect("a valid packet");
    error
}

#[test]
fn an_icmp_error_is_counted_for_the_flow_that_it_quotes() {
    let mut datagram = Vec::new();
    PacketBuilder::ethernet2([2; 6], [4; 6])
        .ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64)
        .udp(40_000, 33_434)
        .write(&mut datagram, &[0; 20])
        .expect("a valid packet");
    let (error, short) = (icmp_error_for(&datagram, 28), icmp_error_for(&datagram, 22));
    let extractor = Extractor::default();
    let extract = |data, second| extractor.extract(&Frame::ethernet(at(second), data)).expect("a packet");
    let (probe, error, short) = (extract(&datagram, 0), |second| extract(&error, second), extract(&short, 2));
    let mut tracker: Tracker<u32> = Tracker::default();
    let mut calls = Calls::default();
    // An error does not create the flow that it quotes.
    tracker.track(&error(0), &mut calls);
    assert_eq!((tracker.len(), tracker.stats().icmp_error_unmatched_count), (1, 1));
    tracker.track(&probe, &mut calls);
    tracker.track_batch(&[error(1), error(2), short], &mut calls);
    assert_eq!((tracker.len(), tracker.stats().icmp_error_matched_count), (2, 2));
    assert_eq!(tracker.stats().icmp_error_unmatched_count, 2);
    assert_eq!(calls.events, [FlowEvent::Anomaly(Anomaly::IcmpError); 2]);
    let id = tracker.find(&probe.key).expect("the flow");
    let (flow, _) = tracker.get(id).expect("the flow");
    assert_eq!((flow.icmp_error_count(), flow.packet_count()), (2, 1));
    // An error does not extend the life of the flow, and does not match a flow that has timed out, removed or not.
    tracker.track(&error(60), &mut calls);
    assert_eq!(tracker.stats().icmp_error_unmatched_count, 3);
    tracker.finish(&mut calls);
    assert_eq!(calls.ended.iter().filter(|end| end.0 == probe.key).count(), 1);
}

#[test]
fn icmp_errors_give_the_same_records_for_any_time_of_expiry() {
    let mut datagram = Vec::new();
    PacketBuilder::ethernet2([2; 6], [4; 6])
        .ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64)
        .udp(40_000, 33_434)
        .write(&mut datagram, &[0; 20])
        .expect("a valid packet");
    let error = icmp_error_for(&datagram, 28);
    let extractor = Extractor::default();
    let extract = |data, second| extractor.extract(&Frame::ethernet(at(second), data)).expect("a packet");
    // Errors before and after an active timeout, and after the idle timeout.
    let packets: Vec<_> = [0, 4, 9, 12, 15, 30, 31, 95, 96]
        .iter()
        .map(|second| extract(if second % 3 == 0 { &error } else { &datagram }, *second))
        .chain([extract(&datagram, 97), extract(&error, 98)])
        .collect();
    let run = |is_advanced: bool| {
        let mut config = TrackerConfig::default();
        config.active_timeout = Some(Duration::from_secs(10));
        let mut records = RecordList::default();
        let mut tracker: Tracker<()> =
            Tracker::new(config, &Resources::default()).expect("a valid configuration");
        for packet in &packets {
            if is_advanced {
                tracker.advance(packet.timestamp, &mut records);
            }
            tracker.track(packet, &mut records);
        }
        tracker.finish(&mut records);
        records.0.sort_by_key(|record| (record.key, record.start));
        records.0
    };
    assert_eq!(run(false), run(true));
}

#[test]
fn a_muted_flow_is_counted_and_its_end_is_reported() {
    let udp = |second| packet(IpProtocol::UDP, ("10.0.0.1", 50_000), ("10.0.0.2", 50_001), second);
    let mut tracker: Tracker<u32> = Tracker::default();
    let mut calls = Calls { mutes: true, ..Calls::default() };
    tracker.track_batch(&[udp(0), udp(1), udp(2)], &mut calls);
    assert_eq!(calls.packets, 1);
    tracker.finish(&mut calls);
    assert_eq!(calls.ended, [(udp(0).key, EndReason::ForcedEnd, 3)]);
    // Muted by its identifier.
    let mut calls = Calls::default();
    tracker.track(&udp(3), &mut calls);
    let id = tracker.find(&udp(3).key).expect("the flow");
    assert!(tracker.mute(id));
    tracker.track_batch(&[udp(4), udp(5)], &mut calls);
    assert_eq!(calls.packets, 1);
    tracker.finish(&mut calls);
    assert!(!tracker.mute(id));
    // The next flow with the same key is not muted.
    tracker.track(&udp(6), &mut calls);
    assert_eq!(calls.packets, 2);
}

#[test]
fn flows_are_found_changed_and_removed_by_identifier() {
    let udp = |port, second| packet(IpProtocol::UDP, ("10.0.0.1", port), ("10.0.0.2", 50_001), second);
    let mut tracker: Tracker<u32> = Tracker::default();
    let mut calls = Calls::default();
    tracker.track_batch(&[udp(1, 0), udp(2, 0), udp(1, 1)], &mut calls);
    let id = tracker.find(&udp(1, 0).key).expect("the flow");
    let (view, state) = tracker.get_mut(id).expect("the flow");
    assert_eq!((view.packet_count(), *state), (2, 2));
    *state = 77;
    assert_eq!(tracker.get(id).map(|(_, state)| *state), Some(77));
    let open: Vec<_> = tracker.iter().map(|(view, state)| (view.id(), *state)).collect();
    assert_eq!(open, [(id, 77), (tracker.find(&udp(2, 0).key).expect("the flow"), 1)]);
    assert!(tracker.remove(id, &mut calls) && !tracker.remove(id, &mut calls));
    assert_eq!(calls.ended, [(udp(1, 0).key, EndReason::ForcedEnd, 2)]);
    assert_eq!((tracker.len(), tracker.find(&udp(1, 0).key)), (1, None));
    // Its slot is reused with another identifier.
    tracker.track(&udp(3, 2), &mut calls);
    assert!(tracker.get(id).is_none() && tracker.get_mut(id).is_none());
    tracker.check_invariants();
}

/// A segment of an established connection.
fn data(second: u64, seq: u32, len: u32, window: u16) -> Packet<'static> {
    let mut segment = packet(IpProtocol::TCP, ("10.0.0.1", 50_000), ("10.0.0.2", 50_001), second);
    (segment.tcp.seq, segment.tcp.ack) = (SeqNum(seq), SeqNum(1));
    (segment.payload_len, segment.tcp.window) = (len, window);
    segment
}

#[test]
fn an_active_timeout_resets_only_the_counters() {
    let mut config = TrackerConfig::default();
    config.active_timeout = Some(Duration::from_secs(10));
    let mut syn = data(0, 0, 0, 9);
    (syn.tcp.flags, syn.frame) = (TcpFlags::SYN, &[]);
    let mut packets = [
        syn,
        data(1, 1, 10, 9),
        // Retransmitted; then out of order by a millisecond, with a zero window.
        data(2, 1, 10, 9),
        data(3, 21, 10, 0),
        data(3, 11, 10, 0),
        // The second record begins with this packet, at ten seconds.
        data(10, 31, 10, 0),
        data(11, 31, 10, 9),
        // No empty record covers the time between 20 and 40 s, in which there is no packet.
        data(40, 41, 10, 9),
    ];
    let late = Timestamp::from_nanos(at(3).as_nanos() + 1_000_000);
    packets[4].timestamp = late;
    for (packet, hop_limit) in packets.iter_mut().zip([64, 3, 200, 64, 64, 60, 61, 62]) {
        packet.hop_limit = hop_limit;
    }
    let records = records_of(&packets, config);
    let summary: Vec<_> = records
        .iter()
        .map(|record| {
            let (side, tcp) = (&record.forward.counters, &record.forward.tcp);
            let counts = [tcp.retransmitted_count, tcp.out_of_order_count, tcp.zero_window_count];
            (
                record.sequence_number,
                record.start,
                record.end,
                side.packet_count,
                counts,
                record.flow_end_reason,
            )
        })
        .collect();
    assert_eq!(
        summary,
        [
            (0, at(0), late, 5, [1, 1, 2], EndReason::ActiveTimeout),
            (1, at(10), at(11), 2, [1, 0, 1], EndReason::ActiveTimeout),
            (2, at(40), at(40), 1, [0, 0, 0], EndReason::ForcedEnd),
        ]
    );
    assert!(
        records.iter().all(|record| record.initiator == syn.side && record.tcp_state == records[0].tcp_state)
    );
    assert_eq!(records[1].forward.tcp_flags, TcpFlags::ACK, "control bits are those of the record");
    let hop_limits: Vec<_> = records.iter().map(|record| record.forward.hop_limits).collect();
    assert_eq!(hop_limits, [Some((3, 200)), Some((60, 61)), Some((62, 62))]);
    assert_eq!(records[2].direction_evidence, DirectionEvidence::Syn);
    let octets: u64 = records.iter().map(FlowRecord::octet_count).sum();
    assert_eq!(octets, 800);
}

#[test]
fn an_active_timeout_of_a_closed_connection_is_its_end() {
    let mut reset = data(8, 11, 0, 9);
    reset.tcp.flags = TcpFlags::RST;
    let reasons = |packets: &[Packet<'static>]| -> Vec<_> {
        let mut config = TrackerConfig::default();
        config.active_timeout = Some(Duration::from_secs(10));
        let records = records_of(packets, config);
        records.iter().map(|record| (record.sequence_number, record.flow_end_reason)).collect()
    };
    let mut closed = vec![data(0, 1, 10, 9), reset];
    // Another flow's packet advances the clock beyond the active timeout, within the linger of five seconds.
    let other = packet(IpProtocol::UDP, ("10.0.0.1", 50_000), ("10.0.0.2", 50_001), 12);
    closed.push(other);
    let other_end = (0, EndReason::ForcedEnd);
    assert_eq!(reasons(&closed), [(0, EndReason::EndOfFlow), other_end]);
    // A late segment belongs to the same flow, in one more record.
    closed.push(data(12, 1, 10, 9));
    assert_eq!(reasons(&closed), [(0, EndReason::EndOfFlow), (1, EndReason::EndOfFlow), other_end],);
}

#[test]
fn an_idle_timeout_that_is_due_first_is_the_only_one() {
    let udp = |second| packet(IpProtocol::UDP, ("10.0.0.1", 50_000), ("10.0.0.2", 50_001), second);
    let mut config = TrackerConfig::default();
    config.active_timeout = Some(Duration::from_secs(100));
    let reasons: Vec<_> = records_of(&[udp(0), udp(30), udp(200)], config)
        .iter()
        .map(|record| (record.flow_end_reason, record.packet_count()))
        .collect();
    assert_eq!(reasons, [(EndReason::IdleTimeout, 2), (EndReason::ForcedEnd, 1)]);
}

#[test]
fn the_order_of_final_records_does_not_depend_on_earlier_flows() {
    let udp = |port, second| packet(IpProtocol::UDP, ("10.0.0.1", port), ("10.0.0.2", 50_001), second);
    // The clock is at 9 when flows 2 and 1 begin, by their own times.
    let packets = [udp(3, 9), udp(2, 5), udp(1, 5), udp(4, 4), udp(5, 9)];
    let ports = |tracker: &mut Tracker<u32>| {
        let mut calls = Calls::default();
        tracker.track_batch(&packets, &mut calls);
        tracker.finish(&mut calls);
        calls.ended.iter().filter_map(|end| end.0.port(Side::A)).collect::<Vec<_>>()
    };
    let mut tracker = Tracker::default();
    for _ in 0..3 {
        assert_eq!(ports(&mut tracker), [4, 1, 2, 3, 5]);
    }
}

#[test]
fn user_defined_classes_have_their_own_timeouts() {
    let udp = |port, second| packet(IpProtocol::UDP, ("10.0.0.1", port), ("10.0.0.2", 50_001), second);
    let mut config = TrackerConfig::default();
    config.timeouts = Timeouts::DEFAULT;
    let short = config.add_class(Some(Duration::from_secs(2))).expect("the first class");
    config.classify(move |key| (key.port(Side::A) == Some(53)).then_some(short));
    let packets = [udp(53, 0), udp(54, 0), udp(53, 1), udp(53, 3), udp(54, 59)];
    assert_eq!(records_of(&packets, config).len(), 3);
    let _ = Class::User(short);
}

#[test]
fn an_observer_is_called_only_according_to_its_interest() {
    struct Ends(u32);
    impl Observer<u32> for Ends {
        fn interest(&self) -> Interest {
            Interest::RECORDS
        }
        fn started(&mut self, _: &mut Flow<'_, u32>) {
            panic!("a start without interest");
        }
        fn packet(&mut self, _: &mut Flow<'_, u32>, _: &Packet<'_>) {
            panic!("a packet without interest");
        }
        fn event(&mut self, _: &mut Flow<'_, u32>, _: &FlowEvent) {
            panic!("an event without interest");
        }
        fn ended(&mut self, _: &FlowView<'_>, _: EndReason, _: u32) {
            self.0 += 1;
        }
    }
    let mut tracker: Tracker<u32> = Tracker::default();
    let mut ends = Ends(0);
    let sink: &mut dyn Observer<u32> = &mut ends;
    let mut syn = data(0, 0, 0, 9);
    syn.tcp.flags = TcpFlags::SYN;
    tracker.track_batch(&[syn, data(1, 1, 5, 9), data(2, 9, 5, 0)], sink);
    tracker.finish(sink);
    assert_eq!(ends.0, 1);
}

/// Returns packets of TCP connections between two hosts. Each is given by a second, a client port, the letters of its
/// control bits (`D` for payload), and `<` for the packets of the server.
fn connections(steps: impl IntoIterator<Item = (u64, u16, &'static str)>) -> Vec<Packet<'static>> {
    let segment = |(second, port, text): (u64, u16, &str)| {
        let ends = (("10.0.0.1", port), ("10.0.0.2", 80));
        let is_reply = text.contains('<');
        let (source, target) = if is_reply { (ends.1, ends.0) } else { ends };
        let mut packet = packet(IpProtocol::TCP, source, target, second);
        packet.tcp.flags = match text.trim_start_matches('<') {
            "S" => TcpFlags::SYN,
            "SA" => TcpFlags(TcpFlags::SYN.0 | TcpFlags::ACK.0),
            _ => TcpFlags::ACK,
        };
        let has_syn = packet.tcp.flags.contains(TcpFlags::SYN);
        packet.tcp.seq = SeqNum(if is_reply { 500 } else { 100 } + u32::from(!has_syn));
        packet.tcp.ack = SeqNum(if is_reply { 101 } else { 501 });
        packet.payload_len = if text.ends_with('D') { 10 } else { 0 };
        packet
    };
    steps.into_iter().map(segment).collect()
}

/// The first payload of a connection arrives after the active timeout, while more flows are due than one sweep ends.
#[test]
fn an_active_timeout_is_decided_before_the_first_payload() {
    let mut config = TrackerConfig::default();
    config.active_timeout = Some(Duration::from_secs(60));
    let ports = 10_000..10_200;
    let handshakes = ports.clone().flat_map(|port| [(0, port, "S"), (0, port, "<SA"), (0, port, "A")]);
    let packets = connections(handshakes.chain([(62, 10_199, "D")]));
    let records = records_of(&packets, config);
    let mut of_last: Vec<_> = records.iter().filter(|record| record.source_port() == Some(10_199)).collect();
    of_last.sort_by_key(|record| record.sequence_number);
    let counts: Vec<_> = of_last
        .iter()
        .map(|record| (record.forward.counters.packet_count, record.reverse.counters.packet_count))
        .collect();
    assert_eq!(counts, [(2, 1), (1, 0)]);
}

/// A SYN-ACK does not restart the timeout of a handshake, and does not delay its end.
#[test]
fn a_handshake_ends_before_a_later_one_without_a_reply() {
    let steps = [(0, 10_000, "S"), (39, 10_001, "S"), (40, 10_000, "<SA"), (66, 10_002, "S")];
    let mut records = RecordList::default();
    let mut tracker: Tracker<()> = Tracker::default();
    tracker.track_batch(&connections(steps), &mut records);
    let ended: Vec<_> = records.0.iter().map(|record| record.source_port()).collect();
    assert_eq!(ended, [Some(10_000)]);
}

/// Packets whose headers another parser read.
mod foreign {
    use std::net::IpAddr;

    use etherparse::{LaxNetSlice, LaxSlicedPacket, LinkSlice};
    use flowgauge::base::{FrameBatch, LinkType, VlanIds};
    use flowgauge::decode::extractor::PacketError;
    use flowgauge::{FileSource, FragmentHandling, Pipeline, Source as _};

    use super::*;

    /// Returns the packet of an Ethernet frame or of a raw IP packet, as etherparse reads it.
    fn parsed<'a>(frame: &Frame<'a>) -> Option<Packet<'a>> {
        let is_ethernet = frame.link_type == LinkType::ETHERNET;
        let parsed = if is_ethernet {
            LaxSlicedPacket::from_ethernet(frame.data).ok()?
        } else {
            LaxSlicedPacket::from_ip(frame.data).ok()?
        };
        let offset_of = |slice: &[u8]| slice.as_ptr() as usize - frame.data.as_ptr() as usize;
        let builder =
            Packet::builder(frame.timestamp, frame.data).wire_len(frame.wire_len).interface(frame.interface);
        let builder = match &parsed.link {
            Some(LinkSlice::Ethernet2(_)) => {
                let ids = parsed.vlan_ids();
                builder.ethernet(0, ids.iter().fold(VlanIds::NONE, |ids, id| ids.push(id.value())))
            }
            _ => builder,
        };
        let packet = match parsed.net? {
            LaxNetSlice::Ipv4(ip) => {
                let (header, offset) = (ip.header(), offset_of(ip.header().slice()));
                let (source, destination) = (header.source_addr(), header.destination_addr());
                let payload_offset = offset_of(ip.payload().payload);
                let builder = builder
                    .ip(source.into(), destination.into(), IpProtocol(ip.payload().ip_number.0))
                    .ip_header(offset, payload_offset - offset, header.total_len().into())
                    .hop_limit(header.ttl())
                    .traffic_class(header.dcp().value() << 2 | header.ecn().value());
                if header.is_fragmenting_payload() {
                    builder.fragment(header.fragments_offset().value() == 0)
                } else {
                    builder
                }
            }
            LaxNetSlice::Ipv6(ip) => {
                let (header, offset) = (ip.header(), offset_of(ip.header().slice()));
                let payload_offset = offset_of(ip.payload().payload);
                let fragment = ip.extensions().clone().into_iter().find_map(|extension| match extension {
                    etherparse::Ipv6ExtensionSlice::Fragment(fragment) => Some(fragment),
                    _ => None,
                });
                let builder = match fragment {
                    Some(fragment) => builder.fragment(fragment.fragment_offset().value() == 0),
                    None => builder,
                };
                builder
                    .ip(
                        header.source_addr().into(),
                        header.destination_addr().into(),
                        IpProtocol(ip.payload().ip_number.0),
                    )
                    .ip_header(offset, payload_offset - offset, 40 + usize::from(header.payload_length()))
                    .hop_limit(header.hop_limit())
                    .traffic_class(header.traffic_class())
            }
            _ => return None,
        };
        Some(packet.build().expect("a packet that etherparse read"))
    }

    #[test]
    fn records_are_those_of_the_pipeline() {
        let mut icmp_count = 0;
        for name in
            ["dns.pcap", "lossy.pcap", "mail.pcap", "raw-tun.pcap", "ssh.pcap", "vlan.pcapng", "web.pcap"]
        {
            let open = || FileSource::open(format!("examples/data/{name}")).expect("a capture");
            // A packet at a time, without reassembly of datagrams.
            let builder = Pipeline::builder().fragments(FragmentHandling::AsTheyCome);
            let records = builder.records(open()).unwrap().map(Result::unwrap);
            let expected: Vec<_> = records.collect();
            let (mut source, mut batch) = (open(), FrameBatch::new());
            let mut tracker: Tracker<()> = Tracker::default();
            let mut found = RecordList::default();
            while !source.next_batch(&mut batch).expect("a capture").is_end() {
                for frame in batch.iter() {
                    if let Some(packet) = parsed(&frame) {
                        tracker.track(&packet, &mut found);
                    }
                }
            }
            tracker.finish(&mut found);
            let different = found.0.iter().zip(&expected).find(|(found, expected)| found != expected);
            assert!(different.is_none(), "{name}: {different:?}");
            assert_eq!(found.0.len(), expected.len(), "{name}");
            icmp_count += expected.iter().filter(|record| record.key.protocol() != IpProtocol::TCP).count();
        }
        assert!(icmp_count > 50);
    }

    #[test]
    fn contradictions_are_refused() {
        let [v4, v6]: [IpAddr; 2] = ["10.0.0.1", "fe80::1"].map(|text| text.parse().unwrap());
        let octets = [[0x45; 20], [0; 20]].concat();
        let builder = || Packet::builder(at(0), &octets).ip(v4, v4, IpProtocol::UDP).ip_header(0, 20, 40);
        assert!(builder().build().is_ok());
        for (builder, error) in [
            (Packet::builder(at(0), &octets), PacketError::NoAddresses),
            (builder().ip(v4, v6, IpProtocol::UDP), PacketError::MixedAddresses),
            (builder().ip(v6, v6, IpProtocol::UDP), PacketError::NoHeader),
            (builder().ip_header(20, 20, 40), PacketError::NoHeader),
            (builder().ip_header(40, 20, 40), PacketError::NoHeader),
            (builder().ip_header(usize::MAX, 20, 40), PacketError::NoHeader),
            (builder().ip_header(0, 20, 19), PacketError::ShortPacket),
            (builder().wire_len(39), PacketError::ShortFrame),
        ] {
            assert_eq!(builder.build(), Err(error));
        }
        // Extreme lengths are no error of the program: the packet ends with its frame.
        let packet = builder().ip_header(0, usize::MAX, usize::MAX).build().unwrap();
        assert_eq!((packet.ip_len, packet.payload_len), (40, 0));
        let packet = builder().ip_header(0, 20, 9000).build().unwrap();
        assert_eq!((packet.ip_len, packet.payload().len()), (40, 12));
    }
}
