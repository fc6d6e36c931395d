//! Processing of one packet: look-up of its flow, and the changes to the flow.

use super::class::{Class, UNLISTED, is_handshake};
use super::direction;
use super::event::{Anomaly, CallbackChanges, FlowEvent};
use super::extras::Extras;
use super::flow::{Cold, FlowBits, Hot, NOT_STARTED, SideBits, started};
use super::lifecycle::{self, Changes, Ordinary};
use super::lists::Lists;
use super::observer::{Interest, Observer};
use super::table::{Full, Hint};
use super::tracker::Tracker;
use crate::base::{DirectionEvidence, EndReason, IpProtocol, TcpState};
use crate::base::{Packet, PacketMarks, Transport};
use crate::decode::extractor::quoted_key;

/// Packet marks with a counter in the statistics.
const COUNTED_MARKS: [PacketMarks; 5] = [
    PacketMarks::FRAGMENT,
    PacketMarks::WITHOUT_PORTS,
    PacketMarks::TRUNCATED,
    PacketMarks::BAD_IP_LEN,
    PacketMarks::TOO_DEEP,
];

/// Result of an attempt to count a packet as one that does not change the state of its flow.
enum Counted {
    /// The packet is not an ordinary one; nothing was changed.
    No,
    Yes,
    /// The packet was counted; its flow may be due to be moved to the most recent end of its recency list, and this
    /// letter, if any, is to be added to its history.
    AndMore(Option<u8>),
}

/// Counts a packet if it does not change the state of its flow.
///
/// Nearly all packets are counted here. Such a packet accesses the first cache line of the flow and the line of the
/// sender, and, if it has an acknowledgment that advances, the line of the receiver. The sweep that is next must be in
/// the future: a sweep ends only some flows at a time.
#[inline(always)]
fn count_ordinary(
    hot: &mut Hot,
    extras: &mut Extras,
    lists: &mut Lists,
    packet: &Packet<'_>,
    (now_ns, next_sweep_ns): (u64, u64),
) -> Counted {
    const ODD_FLOW: u8 = FlowBits::SUSPECT | FlowBits::LAG;
    let list = lists.of(hot.list);
    let own = &hot.sides[packet.side.index()];
    let is_ordinary = now_ns - hot.last_ns < list.timeout_ns
        && !is_handshake(hot.list)
        && !hot.bits.has(ODD_FLOW)
        && own.bits.is_under_way()
        && packet.marks.is_ordinary()
        && packet.timestamp.as_nanos() == now_ns
        // Otherwise, the active timeout of the flow may be due.
        && now_ns < next_sweep_ns;
    if !is_ordinary {
        return Counted::No;
    }
    let letter = match packet.transport {
        Transport::Tcp => match lifecycle::ordinary(hot, extras, packet) {
            Ordinary::Yes => None,
            Ordinary::First(letter) => Some(letter),
            Ordinary::No => return Counted::No,
        },
        Transport::Udp if lifecycle::has_sent(own) => None,
        // ICMP may quote a packet; a packet without ports may be a truncated one.
        _ => return Counted::No,
    };
    hot.last_ns = now_ns;
    hot.sides[packet.side.index()].count(packet);
    if letter.is_none() && hot.epoch == list.epoch(now_ns) { Counted::Yes } else { Counted::AndMore(letter) }
}

/// The properties of a flow that determine its recency list, in addition to its key.
#[derive(Clone, Copy, PartialEq, Eq)]
struct ClassBasis {
    state: TcpState,
    is_answered: bool,
    is_suspect: bool,
}

impl ClassBasis {
    fn of(hot: &Hot) -> Self {
        Self { state: hot.state, is_answered: hot.is_answered(), is_suspect: hot.bits.has(FlowBits::SUSPECT) }
    }
}

/// Records the time of a packet, before it is counted: as the latest one of the record, if it is. The latest timestamp of a
/// record may be behind the tracker's clock, because packets are late or the clock of the capture was set back.
fn note_time(hot: &mut Hot, extras: &mut Extras, is_first: bool, (own_ns, now_ns): (u64, u64)) {
    let mut end_ns = own_ns;
    if own_ns < now_ns && !is_first {
        let lag_ns =
            if hot.bits.has(FlowBits::LAG) { extras.get(hot).map_or(0, |extra| extra.lag_ns) } else { 0 };
        end_ns = end_ns.max(hot.last_ns.saturating_sub(lag_ns));
    }
    hot.last_ns = now_ns;
    hot.bits.set(FlowBits::LAG, false);
    if end_ns < now_ns
        && let Some(extra) = extras.of(hot)
    {
        extra.lag_ns = now_ns - end_ns;
        hot.bits.set(FlowBits::LAG, true);
    }
}

/// Records the properties of a side's first packet that the flow record contains.
fn first_of_side(hot: &mut Hot, packet: &Packet<'_>) {
    let is_new = !hot.sides.iter().any(|side| side.bits.has(SideBits::SEEN));
    let receiver = &mut hot.sides[packet.side.other().index()];
    if is_new && let Some(mac) = packet.mac_addresses.destination(packet.frame) {
        receiver.mac = mac;
    }
    let own = &mut hot.sides[packet.side.index()];
    own.bits.set(SideBits::SEEN);
    own.traffic_class = packet.traffic_class;
    own.set_vlan_ids(packet.vlan_ids);
    if let Some(mac) = packet.mac_addresses.source(packet.frame) {
        own.mac = mac;
    }
    if let Some((_, code)) = packet.icmp() {
        own.initial_seq.0 = code.into();
    }
}

/// Changes the initiator of a flow if the packet is a SYN or SYN-ACK, and this evidence is stronger than the known
/// evidence. Returns the evidence if the initiator is another one.
fn turn_over(hot: &mut Hot, cold: &mut Cold, packet: &Packet<'_>) -> Option<DirectionEvidence> {
    let (initiator, evidence) = direction::of_handshake(packet)?;
    // A SYN on an open flow may be forged, and proves nothing.
    if hot.state > TcpState::SynReceived || evidence <= DirectionEvidence::from_bits(hot.bits.evidence_bits())
    {
        return None;
    }
    let is_turned = hot.bits.initiator() != initiator;
    hot.bits.set_direction(initiator, evidence as u8);
    if !is_turned {
        return None;
    }
    cold.history = cold.history().reversed().to_halves();
    Some(evidence)
}

impl<S> Tracker<S> {
    /// Applies the changes to a flow that a callback made. Returns the event of a change of the direction.
    pub(super) fn change(&mut self, slot: u32, changes: CallbackChanges) -> Option<FlowEvent> {
        let (hot, cold, _) = self.table.parts(slot);
        if changes.is_muted() {
            hot.bits.set(FlowBits::MUTED, true);
        }
        let bits = changes.bits;
        if !changes.has_turned() || bits.initiator() == hot.bits.initiator() {
            return None;
        }
        let (initiator, evidence) = (bits.initiator(), DirectionEvidence::from_bits(bits.evidence_bits()));
        hot.bits.set_direction(initiator, evidence as u8);
        cold.history = cold.history().reversed().to_halves();
        self.stats.direction_change_count += 1;
        Some(FlowEvent::DirectionChanged { initiator, evidence })
    }
}

impl<S: Default> Tracker<S> {
    /// Finds or creates the flow of a packet, and counts the packet.
    #[inline(always)]
    pub(super) fn track_one<K: Observer<S> + ?Sized>(
        &mut self,
        packet: &Packet<'_>,
        hint: Hint,
        interest: Interest,
        observer: &mut K,
    ) {
        let own_ns = packet.timestamp.as_nanos();
        if own_ns < self.now_ns {
            // A fragment that waited for others is not out of order in the capture.
            self.stats.late_packet_count += u64::from(!packet.marks.contains(PacketMarks::FRAGMENT));
        } else {
            self.now_ns = own_ns;
        }
        if self.now_ns >= self.wake_ns {
            self.wake(observer);
        }
        self.stats.packet_count += 1;
        self.stats.octet_count += u64::from(packet.wire_len);
        let guess = hint.slot.or_else(|| self.table.guess(&packet.key));
        if let Some(slot) = guess {
            let (hot, extras) = self.table.hot_and_extras(slot);
            if hot.key == packet.key {
                self.stats.hot_hit_count += u64::from(hint.hash.is_none());
                let times_ns = (self.now_ns, self.next_sweep_ns);
                return match count_ordinary(hot, extras, &mut self.lists, packet, times_ns) {
                    Counted::Yes => self.deliver_packet(slot, packet, interest, observer),
                    Counted::AndMore(letter) => {
                        self.after_ordinary(slot, letter);
                        self.deliver_packet(slot, packet, interest, observer);
                    }
                    Counted::No => self.track_odd(slot, packet, interest, observer),
                };
            }
        }
        self.track_cold(hint.hash, packet, interest, observer);
    }

    /// Adds the history letter of a packet that was counted as an ordinary one, and moves its flow in the recency list
    /// if it is due.
    #[inline(never)]
    fn after_ordinary(&mut self, slot: u32, letter: Option<u8>) {
        if let Some(letter) = letter {
            self.table.cold_mut().at_mut(slot).push_history(letter);
        }
        self.touch(slot);
    }

    /// Tracks a packet whose flow is new or was not used recently.
    #[inline(never)]
    fn track_cold<K: Observer<S> + ?Sized>(
        &mut self,
        hash: Option<u64>,
        packet: &Packet<'_>,
        interest: Interest,
        observer: &mut K,
    ) {
        let hash = hash.unwrap_or_else(|| self.table.hash(&packet.key));
        let Some(slot) = self.table.find_and_note(hash, &packet.key) else {
            return self.track_new(hash, packet, interest, observer);
        };
        let (hot, extras) = self.table.hot_and_extras(slot);
        let times_ns = (self.now_ns, self.next_sweep_ns);
        match count_ordinary(hot, extras, &mut self.lists, packet, times_ns) {
            Counted::No => return self.track_odd(slot, packet, interest, observer),
            Counted::AndMore(letter) => self.after_ordinary(slot, letter),
            Counted::Yes => {}
        }
        self.deliver_packet(slot, packet, interest, observer);
    }

    /// Tracks a packet that changes the state of its flow, or ends the flow and begins another.
    #[inline(never)]
    fn track_odd<K: Observer<S> + ?Sized>(
        &mut self,
        slot: u32,
        packet: &Packet<'_>,
        interest: Interest,
        observer: &mut K,
    ) {
        if self.goes_on(slot, packet, observer) {
            let was_over = self.is_over(slot);
            self.count(slot, packet, interest, observer);
            self.deliver_packet(slot, packet, interest, observer);
            if self.records_close && !was_over && self.is_over(slot) {
                self.record_close(slot, observer);
            }
        } else {
            let hash = self.table.hash(&packet.key);
            self.track_new(hash, packet, interest, observer);
        }
    }

    /// Tracks the first packet of a flow.
    #[inline(never)]
    fn track_new<K: Observer<S> + ?Sized>(
        &mut self,
        hash: u64,
        packet: &Packet<'_>,
        interest: Interest,
        observer: &mut K,
    ) {
        let slot = self.start(packet, hash, interest, observer);
        self.count(slot, packet, interest, observer);
        self.deliver_packet(slot, packet, interest, observer);
        if self.records_close && self.is_over(slot) {
            self.record_close(slot, observer);
        }
    }

    /// Delivers a packet that was counted to the observer, if the observer requires it.
    #[inline(always)]
    fn deliver_packet<K: Observer<S> + ?Sized>(
        &mut self,
        slot: u32,
        packet: &Packet<'_>,
        interest: Interest,
        observer: &mut K,
    ) {
        if interest.wants_packets() && !self.table.hot(slot).bits.has(FlowBits::MUTED) {
            let mut flow = self.table.flow(slot);
            observer.packet(&mut flow, packet);
            let changes = flow.changes();
            if changes.is_some() {
                self.apply(slot, changes, interest, observer);
            }
            self.wake_ns = self.wake_ns.min(observer.next_due_ns());
        }
    }

    /// Applies the changes to a flow that a callback made.
    #[cold]
    #[inline(never)]
    pub(super) fn apply<K: Observer<S> + ?Sized>(
        &mut self,
        slot: u32,
        changes: CallbackChanges,
        interest: Interest,
        observer: &mut K,
    ) {
        if let Some(event) = self.change(slot, changes)
            && interest.contains(Interest::EVENTS)
        {
            self.deliver_event(slot, &event, observer);
        }
    }

    /// Returns whether a packet belongs to the open flow with the packet's key; if not, ends that flow.
    fn goes_on<K: Observer<S> + ?Sized>(&mut self, slot: u32, packet: &Packet<'_>, observer: &mut K) -> bool {
        self.active_timeout_if_due(slot, observer);
        if self.is_due(slot) {
            let reason = self.idle_reason(slot);
            self.end(slot, reason, observer);
            return false;
        }
        let view = self.table.view(slot);
        // Compared by the packet's own time: a late packet belongs to the flow that was open then.
        let silent_ns = packet.timestamp.as_nanos().saturating_sub(view.hot.last_ns);
        if packet.transport == Transport::Tcp
            && lifecycle::starts_anew(view.hot, view.extra, packet.side, &packet.tcp, silent_ns)
        {
            self.end(slot, EndReason::EndOfFlow, observer);
            return false;
        }
        true
    }

    /// Creates a flow for its first packet, and evicts another flow first if the table is full. The flow is in no
    /// recency list until the packet is counted.
    fn start<K: Observer<S> + ?Sized>(
        &mut self,
        packet: &Packet<'_>,
        hash: u64,
        interest: Interest,
        observer: &mut K,
    ) -> u32 {
        let slot = loop {
            let cold = Cold::new(packet.timestamp.as_nanos(), self.now_ns, packet.interface);
            match self.table.insert(hash, packet.key, self.now_ns, cold) {
                Ok(slot) => break slot,
                Err(Full::Index(other)) => {
                    self.stats.evicted_by_hash_count += 1;
                    self.end(other, EndReason::LackOfResources, observer);
                }
                Err(_) if self.sweep_overdue(observer) => {}
                Err(full) => {
                    self.stats.evicted_by_budget_count += u64::from(full == Full::Budget);
                    self.evict(observer);
                }
            }
        };
        self.stats.started_count += 1;
        self.stats.open_count_max = self.stats.open_count_max.max(u64::from(self.table.live_count()));
        let (mut initiator, mut evidence) = direction::of_first(packet);
        if packet.transport == Transport::Tcp
            && evidence < DirectionEvidence::SynAck
            && let Some(proven) = self.proven.get(&packet.key)
        {
            (initiator, evidence) = proven;
        }
        if evidence == DirectionEvidence::FirstSeen && observer.is_answer(packet) {
            (initiator, evidence) = (packet.side.other(), DirectionEvidence::Content);
        }
        let (hot, cold, _) = self.table.parts(slot);
        hot.bits.set_direction(initiator, evidence as u8);
        if initiator != packet.side {
            cold.push_history(b'^');
        }
        if self.active_ns != u64::MAX {
            self.active.add(slot, self.now_ns);
            self.sweep_by(self.now_ns.saturating_add(self.active_ns));
        }
        if interest.contains(Interest::STARTS) {
            let mut flow = self.table.flow(slot);
            observer.started(&mut flow);
            let is_muted = flow.is_muted();
            self.table.hot_mut(slot).bits.set(FlowBits::MUTED, is_muted);
        }
        slot
    }

    /// Counts a packet and updates the state of its flow.
    fn count<K: Observer<S> + ?Sized>(
        &mut self,
        slot: u32,
        packet: &Packet<'_>,
        interest: Interest,
        observer: &mut K,
    ) {
        let (own_ns, now_ns) = (packet.timestamp.as_nanos(), self.now_ns);
        let (hot, cold, extras) = self.table.parts(slot);
        let before = ClassBasis::of(hot);
        let silent_ns = now_ns - hot.last_ns;
        let is_first = cold.start_ns == NOT_STARTED || hot.list == UNLISTED;
        note_time(hot, extras, is_first, (own_ns, now_ns));
        let own = &mut hot.sides[packet.side.index()];
        own.count(packet);
        if !own.bits.has(SideBits::SEEN) {
            first_of_side(hot, packet);
        }
        if cold.start_ns == NOT_STARTED {
            self.begin_record(slot, own_ns);
        }
        if !packet.marks.is_ordinary() || packet.transport == Transport::Icmp {
            self.count_marks(slot, packet, interest, observer);
        }
        let (hot, cold, extras) = self.table.parts(slot);
        let turned = turn_over(hot, cold, packet);
        self.stats.direction_change_count += u64::from(turned.is_some());
        let changes = match packet.transport {
            Transport::Tcp => {
                if lifecycle::is_over(hot) {
                    cold.timing.pass_after_close(silent_ns);
                }
                lifecycle::segment(hot, cold, extras, packet, now_ns)
            }
            _ => {
                if packet.key.protocol() == IpProtocol::UDP {
                    lifecycle::note_datagram(hot, cold, packet.side);
                }
                Changes::default()
            }
        };
        self.after_change(slot, before, turned, changes, interest, observer);
    }

    /// Moves the flow in a slot to the most recent end of its recency list, if it was not moved in the current epoch.
    #[inline(always)]
    fn touch(&mut self, slot: u32) {
        let now_ns = self.now_ns;
        let hot = self.table.hot_mut(slot);
        let list = self.lists.of(hot.list);
        let epoch = list.epoch(now_ns);
        if hot.epoch != epoch {
            hot.epoch = epoch;
            list.touch(self.table.cold_mut(), slot);
        }
    }

    /// Sets the start of a record that is not the first of its flow to the timestamp of its first packet.
    fn begin_record(&mut self, slot: u32, own_ns: u64) {
        let (hot, cold, _) = self.table.parts(slot);
        cold.start_ns = started(own_ns);
        hot.sides.iter_mut().for_each(|side| side.bits.clear(SideBits::FRESH));
        if self.active_ns != u64::MAX {
            self.active.add(slot, self.now_ns);
            self.sweep_by(self.now_ns.saturating_add(self.active_ns));
        }
    }

    /// Returns whether the connection in a slot is closed, and its last acknowledgment was seen.
    fn is_over(&self, slot: u32) -> bool {
        matches!(self.table.hot(slot).state, TcpState::TimeWait | TcpState::Closed)
    }

    /// Counts the unusual properties of a packet, such as fragmentation or truncation, and an ICMP error on the flow
    /// that it quotes.
    fn count_marks<K: Observer<S> + ?Sized>(
        &mut self,
        slot: u32,
        packet: &Packet<'_>,
        interest: Interest,
        observer: &mut K,
    ) {
        let [is_fragment, is_without_ports, is_truncated, is_bad_ip_len, is_too_deep] =
            COUNTED_MARKS.map(|mark| packet.marks.contains(mark));
        self.stats.fragment_count += u64::from(is_fragment);
        self.stats.without_ports_count += u64::from(is_without_ports);
        self.stats.truncated_count += u64::from(is_truncated);
        self.stats.bad_ip_len_count += u64::from(is_bad_ip_len);
        self.stats.too_deep_count += u64::from(is_too_deep);
        if is_fragment && let Some(extra) = self.table.extra_mut(slot) {
            extra.fragment_count = extra.fragment_count.saturating_add(1);
        }
        if packet.marks.contains(PacketMarks::SUPER_PACKET) {
            self.table.hot_mut(slot).sides[packet.side.index()].count_segments(packet);
            self.stats.packet_count += u64::from(packet.segment_count()) - 1;
        }
        if packet.transport == Transport::Icmp {
            self.note_quoted(packet, interest, observer);
        }
    }

    /// Counts an ICMP error on the flow of the packet that the error quotes. A flow whose timeout has passed is not
    /// found, whether or not a sweep has ended it yet.
    pub(super) fn note_quoted<K: Observer<S> + ?Sized>(
        &mut self,
        packet: &Packet<'_>,
        interest: Interest,
        observer: &mut K,
    ) {
        let is_ipv6 = packet.key.is_ipv6();
        let is_error = packet.icmp().is_some_and(|(kind, _)| crate::wire::icmp::quotes_packet(is_ipv6, kind));
        if !is_error {
            return;
        }
        let key = quoted_key(packet, &self.config.key_policy).map(|(key, _)| key);
        if key.is_some_and(|key| !self.takes(&key)) {
            return;
        }
        let slot = key
            .and_then(|key| self.table.find(self.table.hash(&key), &key))
            .filter(|slot| !self.is_due(*slot));
        let Some(slot) = slot else {
            self.stats.icmp_error_unmatched_count += 1;
            return;
        };
        self.stats.icmp_error_matched_count += 1;
        self.active_timeout_if_due(slot, observer);
        match self.table.extra_mut(slot) {
            Some(extra) => extra.icmp_error_count = extra.icmp_error_count.saturating_add(1),
            None => self.stats.extra_refused_count += 1,
        }
        if interest.contains(Interest::EVENTS) {
            self.deliver_event(slot, &FlowEvent::Anomaly(Anomaly::IcmpError), observer);
        }
    }

    /// Moves a flow to the recency list of its new timeout class, and delivers the events of the change.
    #[inline(never)]
    fn after_change<K: Observer<S> + ?Sized>(
        &mut self,
        slot: u32,
        before: ClassBasis,
        turned: Option<DirectionEvidence>,
        changes: Changes,
        interest: Interest,
        observer: &mut K,
    ) {
        let hot = self.table.hot(slot);
        let list = if hot.list != UNLISTED && ClassBasis::of(hot) == before {
            hot.list
        } else {
            self.class_of(slot).list(hot.is_answered())
        };
        if list != hot.list {
            self.relist(slot, list);
        } else if !is_handshake(list) || changes.is_attempt {
            self.touch(slot);
        }
        match changes.anomaly {
            Some(Anomaly::ResetOutOfWindow) => self.stats.bad_reset_count += 1,
            Some(Anomaly::SynOnOpenFlow) => self.stats.syn_on_open_flow_count += 1,
            _ => {}
        }
        self.stats.extra_refused_count += u64::from(changes.is_extra_refused);
        if !interest.contains(Interest::EVENTS) || self.table.hot(slot).bits.has(FlowBits::MUTED) {
            return;
        }
        let hot = self.table.hot(slot);
        let initiator = hot.bits.initiator();
        let to = hot.state;
        let handshake_rtt = self.table.view(slot).handshake_rtt();
        let events = [
            turned.map(|evidence| FlowEvent::DirectionChanged { initiator, evidence }),
            (before.state != to).then_some(FlowEvent::StateChanged { from: before.state, to }),
            changes.is_established.then_some(FlowEvent::Established { handshake_rtt }),
            changes.anomaly.map(FlowEvent::Anomaly),
        ];
        for event in events.into_iter().flatten() {
            self.deliver_event(slot, &event, observer);
        }
    }

    /// Delivers an event of a flow to the observer, unless the flow is muted.
    pub(super) fn deliver_event<K: Observer<S> + ?Sized>(
        &mut self,
        slot: u32,
        event: &FlowEvent,
        observer: &mut K,
    ) {
        if self.table.hot(slot).bits.has(FlowBits::MUTED) {
            return;
        }
        let mut flow = self.table.flow(slot);
        observer.event(&mut flow, event);
        if flow.is_muted() {
            self.table.hot_mut(slot).bits.set(FlowBits::MUTED, true);
        }
    }

    /// Moves the flow in a slot to another recency list.
    pub(super) fn relist(&mut self, slot: u32, list: u8) {
        if self.table.hot(slot).list != UNLISTED {
            self.delist(slot);
        }
        self.enlist(slot, list);
    }

    /// Returns the current timeout class of the flow in a slot.
    pub(super) fn class_of(&self, slot: u32) -> Class {
        let hot = self.table.hot(slot);
        if hot.bits.has(FlowBits::SUSPECT) {
            return Class::Closing;
        }
        let natural = Class::natural(hot.protocol(), hot.state, hot.is_answered());
        if matches!(natural, Class::Unanswered | Class::HalfOpen | Class::Closing) {
            return natural;
        }
        match self.config.classifier.as_ref().and_then(|classify| classify(&hot.key)) {
            Some(class) => Class::User(class),
            None => natural,
        }
    }
}
