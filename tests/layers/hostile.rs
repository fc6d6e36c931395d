//! Hostile traffic against the tracker: floods while the table is full, a budget that is too small, extreme times and
//! timeouts.
//!
//! `FLOWGAUGE_FLOOD=10000000` sets the number of packets per flood; the default is a million, and fewer in debug
//! builds.

use std::cell::Cell;
use std::collections::{HashMap, HashSet};
use std::net::Ipv4Addr;
use std::time::Duration;

use flowgauge::base::{
    Budget, ConfigError, ConfigProblem, EndReason, FlowKey, IpProtocol, Limits, NANOS_PER_SECOND, Resources,
    SeqNum, TcpFlags, Timestamp,
};
use flowgauge::decode::extractor::{Packet, Transport};
use flowgauge::record::FlowRecord;
use flowgauge::tracker::{Flow, FlowView, Observer, Timeouts, Tracker, TrackerConfig};

use crate::record_list::RecordList;

const S: TcpFlags = TcpFlags::SYN;
const A: TcpFlags = TcpFlags::ACK;
const SA: TcpFlags = TcpFlags(S.0 | A.0);
const RA: TcpFlags = TcpFlags(TcpFlags::RST.0 | A.0);

fn flood_len() -> u32 {
    let default = if cfg!(debug_assertions) { 100_000 } else { 1_000_000 };
    std::env::var("FLOWGAUGE_FLOOD").ok().map_or(default, |count| count.parse().expect("a number of packets"))
}

fn table_sizes() -> [u32; 2] {
    if cfg!(debug_assertions) { [2000, 20_000] } else { [10_000, 100_000] }
}

/// Returns a packet from or to a peer at a time in nanoseconds.
fn packet(protocol: IpProtocol, peer: u32, is_from_peer: bool, now: u64) -> Packet<'static> {
    let ends = ((Ipv4Addr::from(peer).into(), 40_000), ([192, 0, 2, 1].into(), 443));
    let (source, target) = if is_from_peer { ends } else { (ends.1, ends.0) };
    let (key, side) = FlowKey::new(protocol, source, target);
    let mut packet = Packet::new(key, side, Timestamp::from_nanos(now), &[]);
    packet.wire_len = 60;
    if protocol == IpProtocol::UDP {
        packet.transport = Transport::Udp;
    }
    packet
}

fn tcp(peer: u32, is_from_peer: bool, flags: TcpFlags, now: u64) -> Packet<'static> {
    let mut packet = packet(IpProtocol::TCP, peer, is_from_peer, now);
    packet.transport = Transport::Tcp;
    packet.tcp.flags = flags;
    let (own, other) = if is_from_peer { (1000, 5000) } else { (5000, 1000) };
    let is_open = u32::from(!flags.contains(S));
    (packet.tcp.seq, packet.tcp.ack) = (SeqNum(own + is_open), SeqNum(other + 1));
    packet.tcp.window = 1000;
    packet
}

fn udp(peer: u32, is_from_peer: bool, now: u64) -> Packet<'static> {
    packet(IpProtocol::UDP, peer, is_from_peer, now)
}

fn handshake(peer: u32, now: u64) -> [Packet<'static>; 3] {
    [tcp(peer, true, S, now), tcp(peer, false, SA, now), tcp(peer, true, A, now)]
}

/// First address of the legitimate peers, which are in 172.16.0.0/12. Floods come from the addresses below it.
const LEGITIMATE_PEERS: u32 = 0xac10_0000;

#[derive(Default)]
struct EndList(Vec<(FlowKey, EndReason)>);

impl<T> Observer<T> for EndList {
    fn ended(&mut self, flow: &FlowView<'_>, reason: EndReason, _: T) {
        self.0.push((*flow.key(), reason));
    }
}

/// Returns resources with a maximum number of flows.
fn resources_for(flow_count_max: u32) -> Resources {
    let mut limits = Limits::DEFAULT;
    limits.flow_count_max = flow_count_max;
    Resources::new(limits)
}

fn tracker_for(flow_count_max: u32) -> Tracker<()> {
    Tracker::new(TrackerConfig::default(), &resources_for(flow_count_max)).expect("a valid configuration")
}

/// Floods a table that also has legitimate flows with occasional packets. Returns the tracker and the flows that ended.
fn flood(
    flow_count_max: u32,
    open: impl Fn(u32, u64) -> Vec<Packet<'static>>,
    next_packet: impl Fn(u32, u64) -> Packet<'static>,
    attack_packets: impl Fn(u32, u64) -> Vec<Packet<'static>>,
) -> (Tracker<()>, EndList) {
    const LEGITIMATE_COUNT: u32 = 100;
    let (mut tracker, mut ends) = (tracker_for(flow_count_max), EndList::default());
    for legitimate_peer in 0..LEGITIMATE_COUNT {
        tracker.track_batch(&open(LEGITIMATE_PEERS + legitimate_peer, 1), &mut ends);
    }
    let find = |tracker: &Tracker<()>, legitimate_peer| {
        tracker.find(&next_packet(LEGITIMATE_PEERS + legitimate_peer, 0).key)
    };
    let ids: Vec<_> = (0..LEGITIMATE_COUNT).map(|legitimate_peer| find(&tracker, legitimate_peer)).collect();
    assert!(ids.iter().all(Option::is_some));
    for number in 0..flood_len() {
        // One packet per microsecond, from addresses without an order.
        let now = 1000 * u64::from(number) + 2;
        tracker.track_batch(
            &attack_packets(number.wrapping_mul(2_654_435_761) % LEGITIMATE_PEERS, now),
            &mut ends,
        );
        // Each legitimate flow has one packet in the time in which a quarter of the table's capacity arrives as new
        // flows.
        if number % (flow_count_max / 4 / LEGITIMATE_COUNT).max(1) == 0 {
            let legitimate_peer = number / (flow_count_max / 4 / LEGITIMATE_COUNT).max(1) % LEGITIMATE_COUNT;
            tracker.track(&next_packet(LEGITIMATE_PEERS + legitimate_peer, now), &mut ends);
        }
    }
    for (legitimate_peer, id) in (0..).zip(ids) {
        assert_eq!(
            find(&tracker, legitimate_peer),
            id,
            "legitimate flow {legitimate_peer} is still the same flow"
        );
    }
    assert_eq!(tracker.len(), flow_count_max as usize);
    let stats = tracker.stats();
    assert_eq!(
        (stats.started_count, stats.open_count_max),
        (flow_count_max as u64 + stats.evicted_count(), flow_count_max.into())
    );
    assert_eq!(stats.evicted_count(), ends.0.len() as u64);
    assert!(ends.0.iter().all(|(_, reason)| *reason == EndReason::LackOfResources));
    tracker.check_invariants();
    (tracker, ends)
}

#[test]
fn a_syn_flood_evicts_its_own_flows_in_order() {
    for flow_count_max in table_sizes() {
        let (tracker, ends) = flood(
            flow_count_max,
            |peer, now| handshake(peer, now).to_vec(),
            |peer, now| tcp(peer, true, A, now),
            |peer, now| vec![tcp(peer, true, S, now)],
        );
        let stats = tracker.stats();
        assert_eq!(stats.evicted_half_open_count, stats.evicted_count());
        for (position, (key, _)) in (0..).zip(&ends.0) {
            let peer = u32::wrapping_mul(position, 2_654_435_761) % LEGITIMATE_PEERS;
            assert_eq!(*key, tcp(peer, true, S, 0).key, "the oldest flow is evicted first");
        }
    }
}

#[test]
fn forged_syn_and_syn_ack_pairs_evict_their_own_flows() {
    let (tracker, _) = flood(
        table_sizes()[0],
        |peer, now| handshake(peer, now).to_vec(),
        |peer, now| tcp(peer, true, A, now),
        |peer, now| vec![tcp(peer, true, S, now), tcp(peer, false, SA, now)],
    );
    let stats = tracker.stats();
    assert_eq!(stats.evicted_half_open_count, stats.evicted_count());
}

#[test]
fn an_ack_flood_does_not_evict_answered_connections() {
    let (tracker, _) = flood(
        table_sizes()[0],
        |peer, now| handshake(peer, now).to_vec(),
        |peer, now| tcp(peer, true, A, now),
        |peer, now| vec![tcp(peer, true, A, now)],
    );
    let stats = tracker.stats();
    assert_eq!(stats.evicted_unanswered_count, stats.evicted_count());
}

#[test]
fn a_udp_flood_does_not_evict_active_flows() {
    for is_answered in [true, false] {
        for flow_count_max in table_sizes() {
            let (tracker, _) = flood(
                flow_count_max,
                |peer, now| vec![udp(peer, true, now), udp(peer, !is_answered, now)],
                |peer, now| udp(peer, true, now),
                |peer, now| vec![udp(peer, true, now)],
            );
            assert_eq!(tracker.stats().evicted_unanswered_count, tracker.stats().evicted_count());
        }
    }
}

#[test]
fn a_flood_of_answered_flows_evicts_the_least_recently_used() {
    let (tracker, _) = flood(
        table_sizes()[0],
        |peer, now| handshake(peer, now).to_vec(),
        |peer, now| tcp(peer, true, A, now),
        |peer, now| vec![udp(peer, true, now), udp(peer, false, now)],
    );
    assert_eq!(tracker.stats().evicted_answered_count, tracker.stats().evicted_count());
}

#[test]
fn flows_are_evicted_in_the_documented_order() {
    let (mut tracker, mut ends) = (tracker_for(9), EndList::default());
    let answered = |peer, now| vec![udp(peer, true, now), udp(peer, false, now)];
    let groups: [Vec<Packet<'_>>; 9] = [
        // Answered flows, least recently used first.
        handshake(1, 1).to_vec(),
        answered(2, 2),
        // Closed.
        [&handshake(3, 3)[..], &[tcp(3, false, RA, 3)]].concat(),
        [&handshake(4, 4)[..], &[tcp(4, true, RA, 4)]].concat(),
        // Unanswered.
        vec![tcp(5, true, A, 5)],
        vec![udp(6, true, 6)],
        // Incomplete handshakes.
        vec![tcp(7, true, S, 7)],
        vec![tcp(8, true, S, 8), tcp(8, false, SA, 8)],
        vec![tcp(9, true, S, 9)],
    ];
    let keys: Vec<_> = groups.iter().map(|packets| packets[0].key).collect();
    groups.iter().for_each(|packets| tracker.track_batch(packets, &mut ends));
    for newcomer in 0..9 {
        tracker.track_batch(&answered(100 + newcomer, 10), &mut ends);
    }
    let wanted = [7, 8, 9, 5, 6, 3, 4, 1, 2].map(|peer| keys[peer - 1]);
    assert_eq!(ends.0.iter().map(|(key, _)| *key).collect::<Vec<_>>(), wanted);
    let stats = tracker.stats();
    let counts = [stats.evicted_half_open_count, stats.evicted_unanswered_count];
    assert_eq!((counts, stats.evicted_closed_count, stats.evicted_answered_count), ([3, 2], 2, 2));
}

#[test]
fn flows_looked_up_early_in_a_batch_may_be_evicted_before_they_are_updated() {
    // Twenty flows share a table of five, so that flows are evicted and started within one batch.
    let packets: Vec<_> = (0..2000_u32)
        .map(|number| {
            let peer = number.wrapping_mul(2_654_435_761) >> 7;
            udp(peer % 20, peer & 64 != 0, u64::from(number))
        })
        .collect();
    let outcome = |is_staged: bool| {
        let mut config = TrackerConfig::default();
        config.staged_flow_count_min = if is_staged { 0 } else { u32::MAX };
        let mut tracker: Tracker<()> =
            Tracker::new(config, &resources_for(5)).expect("a valid configuration");
        let mut ends = EndList::default();
        packets.chunks(100).for_each(|batch| tracker.track_batch(batch, &mut ends));
        tracker.check_invariants();
        tracker.finish(&mut ends);
        (ends.0, *tracker.stats())
    };
    let (ends, stats) = outcome(true);
    assert!(ends.len() > 500, "{} flows ended", ends.len());
    let (single_ends, single_stats) = outcome(false);
    let first = ends.iter().zip(&single_ends).position(|(batch, single)| batch != single);
    assert_eq!((first, ends.len()), (None, single_ends.len()), "{stats:?} {single_stats:?}");
}

#[test]
fn a_budget_smaller_than_the_flow_limit_is_not_exceeded() {
    let count = flood_len() / 4;
    let budget = Budget::new(3_000_000);
    let resources = Resources::default().with_budget(budget.clone());
    let mut tracker: Tracker<[u64; 4]> =
        Tracker::new(TrackerConfig::default(), &resources).expect("memory for the first flows");
    let mut ends = EndList::default();
    for number in 0..count {
        let now = u64::from(number);
        tracker.track(&tcp(number, true, A, now), &mut ends);
        // A retransmission needs additional memory.
        let mut again = tcp(number, true, A, now);
        again.payload_len = 9;
        tracker.track_batch(&[again, again], &mut ends);
    }
    let stats = tracker.stats();
    assert!(budget.peak() <= budget.limit() && budget.peak() > budget.limit() / 2);
    assert!(budget.refused_count() > 0);
    assert_eq!(stats.evicted_by_budget_count, stats.evicted_count());
    assert_eq!(stats.started_count, stats.evicted_count() + tracker.len() as u64);
    assert!(tracker.len() > 2000, "{} flows in 3 MB", tracker.len());
    assert_eq!(stats.packet_count, 3 * u64::from(count));
    tracker.check_invariants();
    drop(tracker);
    assert_eq!(budget.held(), 0);
}

#[test]
fn creation_fails_when_the_budget_is_already_used() {
    let resources = Resources::default().with_budget(Budget::new(500_000));
    let make = || Tracker::<()>::new(TrackerConfig::default(), &resources);
    let mut first = make().expect("memory for the first flows");
    for number in 0..10_000 {
        first.track(&udp(number, true, 1), &mut ());
    }
    let refused = make().err();
    let is_too_small = |error: ConfigError| matches!(error.problem, ConfigProblem::TooSmall { .. });
    assert!(refused.is_some_and(is_too_small), "{refused:?}");
    drop(first);
    let mut second = make().expect("memory is available again");
    second.track(&udp(1, true, 1), &mut ());
    assert_eq!(second.len(), 1);
}

#[test]
fn a_table_of_one_flow_evicts_for_each_new_flow() {
    let (mut tracker, mut ends) = (tracker_for(1), EndList::default());
    for round in 0..3 {
        for packet in handshake(1, round).iter().chain(&[udp(2, true, round)]) {
            tracker.track(packet, &mut ends);
            assert_eq!(tracker.len(), 1);
            tracker.check_invariants();
        }
    }
    tracker.finish(&mut ends);
    assert_eq!(ends.0.len(), 6);
    let error =
        Tracker::<()>::new(TrackerConfig::default(), &resources_for(0)).expect_err("a table without flows");
    assert_eq!((error.layer, error.field), ("tracker", "flow_count_max"));
}

thread_local! {
    static MADE: Cell<u64> = const { Cell::new(0) };
    static DROPPED: Cell<u64> = const { Cell::new(0) };
}

/// A state that counts its creation and its drop.
struct Counted(u64);

impl Default for Counted {
    fn default() -> Self {
        MADE.set(MADE.get() + 1);
        Self(MADE.get())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        DROPPED.set(DROPPED.get() + 1);
    }
}

/// Tracks which states were passed to the observer and which were returned.
#[derive(Default)]
struct ReturnedStates {
    open: HashMap<FlowKey, u64>,
    shown: HashSet<u64>,
    count: u64,
}

impl Observer<Counted> for ReturnedStates {
    fn started(&mut self, flow: &mut Flow<'_, Counted>) {
        assert!(self.open.insert(*flow.view.key(), flow.state.0).is_none(), "one flow per key at a time");
        assert!(self.shown.insert(flow.state.0), "each flow starts with its own state");
    }

    fn ended(&mut self, flow: &FlowView<'_>, _: EndReason, state: Counted) {
        assert_eq!(self.open.remove(flow.key()), Some(state.0), "the flow's own state is returned");
        self.count += 1;
    }
}

#[test]
fn every_state_is_returned_once() {
    for is_finished in [true, false] {
        MADE.set(0);
        DROPPED.set(0);
        let mut tracker: Tracker<Counted> =
            Tracker::new(TrackerConfig::default(), &resources_for(50)).expect("a valid configuration");
        let mut returned = ReturnedStates::default();
        for number in 0..2000_u32 {
            let now = u64::from(number) * NANOS_PER_SECOND / 4;
            let peer = number.wrapping_mul(2_654_435_761) >> 25;
            tracker
                .track_batch(&[tcp(peer, true, S, now), tcp(peer, number % 3 == 0, SA, now)], &mut returned);
            tracker
                .track(&tcp(peer, number % 5 == 0, if number % 7 == 0 { RA } else { A }, now), &mut returned);
            if let Some(id) = tracker.find(&tcp(peer / 2, true, S, 0).key)
                && number % 11 == 0
            {
                assert!(tracker.remove(id, &mut returned));
                assert!(!tracker.remove(id, &mut returned) && tracker.get(id).is_none());
            }
            let started_count = tracker.stats().started_count;
            assert_eq!(started_count - returned.count, tracker.len() as u64);
            assert_eq!(started_count, returned.shown.len() as u64);
            // Vacant entries of the flow table also have a state, and the table grows by 1024 entries at a time.
            assert_eq!(MADE.get() - DROPPED.get(), 1024);
        }
        let open = tracker.len() as u64;
        assert!(open > 10 && returned.count > 100);
        if is_finished {
            tracker.finish(&mut returned);
            assert_eq!((returned.count, returned.open.len()), (tracker.stats().started_count, 0));
            // The tracker can be used again after `finish`.
            tracker.track(&udp(1, true, u64::MAX), &mut returned);
        }
        drop(tracker);
        assert_eq!(DROPPED.get(), MADE.get());
    }
}

/// Returns the records of the packets under given timeouts, and checks that each packet is in exactly one record.
fn records_of_all(packets: &[Packet<'_>], timeouts: Timeouts, active: Option<Duration>) -> Vec<FlowRecord> {
    let mut config = TrackerConfig::default();
    (config.timeouts, config.active_timeout) = (timeouts, active);
    let mut tracker: Tracker<()> =
        Tracker::new(config, &Resources::default()).expect("a valid configuration");
    let mut list = RecordList::default();
    for packet in packets {
        tracker.track(packet, &mut list);
        tracker.advance(tracker.now(), &mut list);
        assert!(tracker.next_deadline().is_none_or(|deadline| deadline > tracker.now()));
        tracker.check_invariants();
    }
    tracker.finish(&mut list);
    let records = list.0;
    let counted: u64 = records.iter().map(FlowRecord::packet_count).sum();
    assert_eq!(counted, packets.len() as u64, "{timeouts:?} {active:?}");
    assert!(records.iter().all(|record| record.start <= record.end));
    records
}

#[test]
fn time_jumps_to_its_maximum_and_back() {
    let times = [0, u64::MAX, 5, u64::MAX - 1, u64::MAX, 0, u64::MAX / 2];
    let packets: Vec<_> = times
        .iter()
        .flat_map(|now| {
            [tcp(1, true, S, *now), tcp(1, false, SA, *now), udp(2, true, *now), tcp(3, true, A, *now)]
        })
        .collect();
    let durations = [None, Some(Duration::ZERO), Some(Duration::from_secs(60)), Some(Duration::MAX)];
    for idle in durations {
        for active in durations {
            let records = records_of_all(&packets, Timeouts::all(idle), active);
            if idle.is_none_or(|idle| idle == Duration::MAX)
                && active.is_none_or(|active| active == Duration::MAX)
            {
                assert_eq!(records.len(), 3, "{idle:?} {active:?}");
            }
        }
    }
    // At the maximum time no deadline can be reached.
    let packets: Vec<_> = (0..10).map(|_| udp(1, true, u64::MAX)).collect();
    for active in durations {
        let records = records_of_all(&packets, Timeouts::DEFAULT, active);
        assert!(records.len() == 1 || active == Some(Duration::ZERO), "{active:?}: {}", records.len());
    }
}

#[test]
fn extreme_timeouts_lose_no_packet() {
    let packets: Vec<_> = (0..20)
        .flat_map(|second| {
            let now = second * NANOS_PER_SECOND;
            [udp(1, true, now), udp(1, false, now), tcp(2, true, A, now), tcp(2, false, A, now)]
        })
        .collect();
    assert_eq!(records_of_all(&packets, Timeouts::all(None), None).len(), 2);
    assert_eq!(records_of_all(&packets, Timeouts::all(Some(Duration::MAX)), None).len(), 2);
    // With an idle timeout of zero each packet is a flow.
    assert_eq!(records_of_all(&packets, Timeouts::all(Some(Duration::ZERO)), None).len(), 80);
    assert_eq!(records_of_all(&packets, Timeouts::all(Some(Duration::from_nanos(1))), None).len(), 40);
    assert_eq!(records_of_all(&packets, Timeouts::all(None), Some(Duration::from_secs(5))).len(), 8);
    assert_eq!(records_of_all(&packets, Timeouts::all(None), Some(Duration::MAX)).len(), 2);
    records_of_all(&packets, Timeouts::all(None), Some(Duration::ZERO));
}

/// An attacker that knows the seeds can find flows with hashes that agree in the bits that select a table of the index.
/// These flows evict each other; other flows are not affected.
#[test]
fn flows_crafted_with_known_seeds_evict_each_other() {
    const SEEDS: [u64; 4] = [1, 2, 3, 4];
    let [a, b, c, d] = SEEDS;
    let hasher = ahash::RandomState::with_seeds(a, b, c, d);
    let resources = Resources::default().with_seeds(SEEDS);
    let budget = resources.budget.clone();
    let mut tracker =
        Tracker::<()>::new(TrackerConfig::default(), &resources).expect("a valid configuration");
    let (mut ends, mut count) = (EndList::default(), 0_u64);
    let legitimate_peer = udp(LEGITIMATE_PEERS, true, 0);
    tracker.track(&legitimate_peer, &mut ends);
    for peer in 0..LEGITIMATE_PEERS {
        let packet = udp(peer, true, count + 1);
        // More bits than a small index uses to select a table.
        if hasher.hash_one(packet.key) >> 54 != 0 {
            continue;
        }
        count += 1;
        tracker.track(&packet, &mut ends);
        if count == 5000 {
            break;
        }
    }
    let stats = *tracker.stats();
    assert_eq!((count, stats.started_count), (5000, 5001));
    assert!(stats.evicted_by_hash_count > 1000, "{stats:?}");
    assert_eq!(stats.evicted_count(), stats.evicted_by_hash_count);
    assert_eq!(tracker.len() as u64, 5001 - stats.evicted_by_hash_count);
    assert!(ends.0.iter().all(|(_, reason)| *reason == EndReason::LackOfResources));
    assert!(tracker.find(&legitimate_peer.key).is_some(), "flows in other tables stay");
    tracker.check_invariants();
    tracker.finish(&mut ends);
    assert_eq!(ends.0.len(), 5001);
    drop(tracker);
    assert_eq!(budget.held(), 0);
}
