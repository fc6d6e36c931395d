//! Merging of records of the same flow: those of active timeouts, of rotated files, or of parts of a capture.

use std::fmt;
use std::time::Duration;

use super::encapsulation::EncapsulationRecord;
use super::flow_record::{FieldSet, FlowRecord, SideRecord};
use super::schema::{EXPORTED, field_index};
use crate::base::{Application, ConnState, EndReason, Evidence, History, IpProtocol, TcpState};
use crate::row::{ColumnSide, Table as _};

/// Two records have different Flow Keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DifferentFlows;

impl fmt::Display for DifferentFlows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the records are of different flows")
    }
}

impl std::error::Error for DifferentFlows {}

/// Index of the column of the history.
const HISTORY: usize = field_index("history");

/// Time by which the records of one flow may overlap, because two interfaces, or two queues of one interface, are read in
/// turn.
const OVERLAP_MAX: Duration = Duration::from_millis(100);

impl FlowRecord {
    /// Returns whether a later record is of the same flow, as one tracker with all packets would have decided, according to
    /// what the records contain. The records are those of a tracker in their order, or of two trackers of which the second
    /// one has the packets after those of the first one.
    ///
    /// The pause between the records must be shorter than `pause_max`, the idle timeout of the flow
    /// ([`Timeouts::of_record`](crate::tracker::Timeouts::of_record)), and this record must be of a flow that was still open
    /// at its end: because of an active timeout, the end of the input, or a lack of memory. A closed TCP connection is
    /// continued by late segments, but not by a SYN; an established one is not continued by another handshake. Records that
    /// overlap by more than 100 ms are of two captures of the same packets, for example, and do not continue each other.
    #[must_use]
    pub fn is_continued_by(&self, later: &Self, pause_max: Duration) -> bool {
        let pause = later.start.saturating_since(self.end);
        let overlap = self.end.saturating_since(later.start);
        if self.key != later.key || pause >= pause_max || overlap > OVERLAP_MAX {
            return false;
        }
        if later.sequence_number > 0 && later.sequence_number <= self.sequence_number {
            return false;
        }
        let has = |letter| later.history.has(letter);
        let has_handshake = (has('S') && has('h')) || (has('s') && has('H'));
        let first_letter = later.history.letters().find(|letter| *letter != '^');
        let is_attempt = first_letter.is_some_and(|letter| "SHsh".contains(letter));
        match self.flow_end_reason {
            EndReason::IdleTimeout => false,
            // The tracker of the later record knew an earlier one.
            _ if later.sequence_number > 0 => true,
            EndReason::EndOfFlow if !self.tcp_state.is_closed() => false,
            _ if self.tcp_state.is_closed() => !is_attempt,
            _ if self.tcp_state >= TcpState::Established => !(is_attempt && has_handshake),
            _ => true,
        }
    }

    /// Merges a later record of the same flow into this one, as [`Column::merge`](crate::row::Column::merge) of each column
    /// states.
    ///
    /// The records must be of different packets. Whether two records with the same key are of one flow is for the caller to
    /// decide: by [`sequence_number`](Self::sequence_number), [`flow_end_reason`](Self::flow_end_reason) and the pause
    /// between them.
    ///
    /// Records in the order of their packets may be merged in any grouping: the operation is associative, except for
    /// [`open_end`](Self::open_end) of a connection of which each record has only one FIN or RST, and for a history beyond
    /// its capacity. Sums, minima, maxima and unions are the same in any order too.
    ///
    /// The initiator is that of the record with the stronger evidence; the sides of the other record are exchanged if
    /// necessary. If the records differ in sampling interval or scale, both are [scaled](Self::scale) first, so that the sum
    /// is an estimate of one kind. A column that may be absent is known if one of the records knows it, any other column if
    /// both do.
    ///
    /// The records that active timeouts create become the record without these timeouts. Records of parts of a capture that
    /// were tracked separately lack what no part knows, as `docs/design/record.md` describes.
    ///
    /// Allocates only for encapsulation.
    ///
    /// ```
    /// use flowgauge::{FlowKey, FlowRecord, IpProtocol, Timestamp};
    ///
    /// let client = ([192, 0, 2, 1].into(), 40_000);
    /// let (key, initiator) = FlowKey::new(IpProtocol::UDP, client, ([192, 0, 2, 2].into(), 53));
    /// let mut record = FlowRecord::new(key, initiator, Timestamp::from_parts(1_700_000_000, 0));
    /// record.forward.counters.packet_count = 2;
    /// let mut later = FlowRecord::new(key, initiator, Timestamp::from_parts(1_700_000_060, 0));
    /// later.forward.counters.packet_count = 3;
    /// record.merge(&later)?;
    /// assert_eq!((record.packet_count(), record.duration().as_secs()), (5, 60));
    /// # Ok::<(), flowgauge::record::DifferentFlows>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns an error if the Flow Keys differ. The record is unchanged then.
    pub fn merge(&mut self, later: &Self) -> Result<(), DifferentFlows> {
        if self.key != later.key {
            return Err(DifferentFlows);
        }
        let mut later = later.clone();
        let sampling = |record: &Self| (record.sampling_interval, record.counter_scale);
        if sampling(self) != sampling(&later) {
            self.scale();
            later.scale();
        }
        if self.initiator != later.initiator {
            let is_later_surer = later.direction_evidence > self.direction_evidence;
            let turned = if is_later_surer { &mut *self } else { &mut later };
            turned.turn();
        }
        self.append(later);
        Ok(())
    }

    /// Exchanges the initiator and the responder.
    fn turn(&mut self) {
        self.initiator = self.initiator.other();
        std::mem::swap(&mut self.forward, &mut self.reverse);
        self.history = self.history.turned_over();
        self.encapsulation = self.encapsulation.take().map(|part| Box::new(part.turned()));
        if let Some(exported) = self.exported.as_deref_mut() {
            *exported = exported.turned();
        }
        self.known = self.known.turned();
        if self.exported.is_some() {
            self.known = self.known.union(EXPORTED);
        }
        self.conn_state = self.outcome().unwrap_or(self.conn_state);
    }

    /// Appends a later record with the same initiator.
    fn append(&mut self, later: Self) {
        // The tracker of both repeats the letters of earlier records.
        let mut letters = later.history.letters();
        let is_repeated = self.known.intersection(later.known).contains(HISTORY)
            && self.history.letters().all(|letter| letters.next() == Some(letter));
        if !self.is_over() {
            self.open_end = later.open_end;
        }
        self.start = self.start.min(later.start);
        self.end = self.end.max(later.end);
        self.forward.append(later.forward);
        self.reverse.append(later.reverse);
        self.history = if is_repeated { later.history } else { self.history.united(later.history) };
        self.tcp_state = self.tcp_state.max(later.tcp_state);
        if !is_repeated && self.history.has('F') && self.history.has('f') {
            // Neither tracker saw both FINs; their acknowledgments usually follow.
            self.tcp_state = self.tcp_state.max(TcpState::TimeWait);
        }
        let is_evicted = later.flow_end_reason == EndReason::LackOfResources;
        let has_ended = self.tcp_state.is_closed() && !is_evicted;
        self.flow_end_reason = if has_ended { EndReason::EndOfFlow } else { later.flow_end_reason };
        self.handshake_rtt = self.handshake_rtt.or(later.handshake_rtt);
        self.direction_evidence = self.direction_evidence.max(later.direction_evidence);
        self.icmp = self.icmp.or(later.icmp);
        self.icmp_error_count = self.icmp_error_count.saturating_add(later.icmp_error_count);
        self.fragment_count = self.fragment_count.saturating_add(later.fragment_count);
        self.application = strongest(self.application, later.application);
        self.sampling_interval = self.sampling_interval.max(later.sampling_interval);
        self.counter_scale = self.counter_scale.max(later.counter_scale);
        self.known = self.known.merged(later.known);
        match (&mut self.encapsulation, later.encapsulation) {
            (Some(earlier), Some(later)) => earlier.append(*later),
            (earlier @ None, later) => *earlier = later,
            (Some(_), None) => {}
        }
        match (&mut self.exported, later.exported) {
            (Some(earlier), Some(later)) => earlier.append(&later),
            (earlier @ None, later) => *earlier = later,
            (Some(_), None) => {}
        }
        self.conn_state = match self.outcome() {
            _ if is_repeated => later.conn_state,
            Some(outcome) => outcome,
            // The later state is that of the connection, if it has a meaning.
            None if later.conn_state == ConnState::Oth => self.conn_state,
            None => later.conn_state,
        };
    }

    /// Returns the outcome of the flow by its history; `None` if it is a TCP connection without one.
    fn outcome(&self) -> Option<ConnState> {
        match self.protocol() {
            IpProtocol::TCP => self.known.contains(HISTORY).then(|| connection_outcome(self.history)),
            IpProtocol::UDP => Some(self.exchange()),
            _ => Some(ConnState::Oth),
        }
    }

    /// Returns whether both ends of a TCP connection have closed it.
    fn is_over(&self) -> bool {
        let has_any = |of_end: &str| of_end.chars().any(|letter| self.history.has(letter));
        self.tcp_state.is_closed() && has_any("FRI") && has_any("fri")
    }

    /// Returns the outcome of an exchange of datagrams.
    fn exchange(&self) -> ConnState {
        let has_sent = |side: &SideRecord, letter| !side.counters.is_empty() || self.history.has(letter);
        match (has_sent(&self.forward, 'D'), has_sent(&self.reverse, 'd')) {
            (true, true) => ConnState::Sf,
            (true, false) => ConnState::S0,
            (false, true) => ConnState::Shr,
            (false, false) => ConnState::Oth,
        }
    }
}

/// Returns the application with the stronger evidence, or the first one.
fn strongest(earlier: Option<Application>, later: Option<Application>) -> Option<Application> {
    let is_proven = |application: Application| application.evidence == Evidence::Content;
    match (earlier, later) {
        (Some(earlier), Some(later)) if !is_proven(earlier) && is_proven(later) => Some(later),
        (earlier, later) => earlier.or(later),
    }
}

impl SideRecord {
    fn append(&mut self, later: Self) {
        let is_first = self.counters.is_empty() && !later.counters.is_empty();
        if is_first {
            // Until the side sends, its MAC address is the destination of the other side's first frame.
            (self.vlan_ids, self.dscp, self.mac) = (later.vlan_ids, later.dscp, later.mac);
        } else if self.counters.is_empty() {
            self.vlan_ids = if self.vlan_ids.is_empty() { later.vlan_ids } else { self.vlan_ids };
            self.dscp = self.dscp.or(later.dscp);
            self.mac = self.mac.or(later.mac);
        }
        self.hop_limits = match (self.hop_limits, later.hop_limits) {
            (Some((min, max)), Some((later_min, later_max))) => {
                Some((min.min(later_min), max.max(later_max)))
            }
            (earlier, later) => earlier.or(later),
        };
        let (counters, more) = (&mut self.counters, later.counters);
        counters.packet_count = counters.packet_count.saturating_add(more.packet_count);
        counters.octet_count = counters.octet_count.saturating_add(more.octet_count);
        counters.ip_octet_count = counters.ip_octet_count.saturating_add(more.ip_octet_count);
        counters.payload_octet_count = counters.payload_octet_count.saturating_add(more.payload_octet_count);
        let (tcp, more) = (&mut self.tcp, later.tcp);
        tcp.retransmitted_count = tcp.retransmitted_count.saturating_add(more.retransmitted_count);
        tcp.out_of_order_count = tcp.out_of_order_count.saturating_add(more.out_of_order_count);
        tcp.zero_window_count = tcp.zero_window_count.saturating_add(more.zero_window_count);
        self.tcp_flags.0 |= later.tcp_flags.0;
    }
}

impl EncapsulationRecord {
    fn append(&mut self, later: Self) {
        if self.encapsulation.is_empty() {
            self.encapsulation = later.encapsulation;
        }
        if self.reverse_encapsulation.is_empty() {
            self.reverse_encapsulation = later.reverse_encapsulation;
        }
        self.outer_flow = self.outer_flow.or(later.outer_flow);
        self.reverse_outer_flow = self.reverse_outer_flow.or(later.reverse_outer_flow);
        for (sum, more) in [
            (&mut self.encapsulation_changed_count, later.encapsulation_changed_count),
            (&mut self.reverse_encapsulation_changed_count, later.reverse_encapsulation_changed_count),
            (&mut self.inner_flow_count, later.inner_flow_count),
        ] {
            *sum = sum.saturating_add(more);
        }
        self.carried_packet_count = self.carried_packet_count.saturating_add(later.carried_packet_count);
        self.carried_octet_count = self.carried_octet_count.saturating_add(later.carried_octet_count);
    }
}

impl History {
    fn has(self, letter: char) -> bool {
        self.letters().any(|known| known == letter)
    }

    /// Returns the letters of both histories in the order of their first occurrence.
    fn united(self, later: Self) -> Self {
        let mut united = self;
        // The exchange of initiator and responder is an event of one record.
        for letter in later.letters().filter(|letter| *letter != '^') {
            if !united.has(letter) {
                united.push(letter as u8);
            }
        }
        united
    }
}

impl FieldSet {
    /// Columns whose value may be absent.
    const NULLABLE: Self = {
        let (mut set, mut index) = (Self::EMPTY, 0);
        while index < FlowRecord::COLUMNS.len() {
            if FlowRecord::COLUMNS[index].is_nullable {
                set = set.with(index);
            }
            index += 1;
        }
        set
    };

    /// Returns the known fields of a merged record. Formats that omit absent values do not distinguish them from unknown
    /// ones, so that a value that may be absent is known if one of the records knows it.
    const fn merged(self, later: Self) -> Self {
        self.intersection(later).union(self.union(later).intersection(Self::NULLABLE))
    }

    /// Returns the set with forward and reverse fields exchanged.
    fn turned(self) -> Self {
        if self == Self::ALL {
            return self;
        }
        let columns = FlowRecord::COLUMNS.iter().enumerate();
        let shared = columns.filter(|(_, column)| column.side == ColumnSide::Shared);
        let shared = shared.fold(Self::EMPTY, |set, (index, _)| set.with(index));
        self.intersection(shared).union(self.turned_sides())
    }

    /// Returns the forward and reverse fields of the set exchanged, without the shared ones.
    pub(crate) fn turned_sides(self) -> Self {
        let of = |side| {
            let columns = FlowRecord::COLUMNS.iter().enumerate();
            columns.filter(move |(_, column)| column.side == side).map(|(index, _)| index)
        };
        of(ColumnSide::Forward).zip(of(ColumnSide::Reverse)).fold(Self::EMPTY, |set, (forward, reverse)| {
            let set = if self.contains(forward) { set.with(reverse) } else { set };
            if self.contains(reverse) { set.with(forward) } else { set }
        })
    }
}

/// What one end of a connection did last, by the letters of the history.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Silent,
    /// It sent segments in the middle of a connection.
    Partial,
    Syn,
    SynAck,
    Established,
    Closed,
    Reset,
}

/// Returns the outcome of a TCP connection by the letters of its history.
fn connection_outcome(history: History) -> ConnState {
    let has = |letter| history.has(letter);
    let is_without_payload = !has('D') && !has('d');
    // After both FINs, a reset changes nothing.
    let is_reset = |letters: [char; 2]| {
        let before = || history.letters().take_while(|known| !letters.contains(known));
        letters.into_iter().any(has) && !['F', 'f'].iter().all(|fin| before().any(|known| known == *fin))
    };
    let is_established =
        (has('h') && (has('S') || has('A') || has('D'))) || (has('H') && (has('s') || has('a') || has('d')));
    let end = |letters: [char; 7]| {
        let [reset, both, fin, syn, syn_ack, ack, data] = letters;
        if is_reset([reset, both]) {
            End::Reset
        } else if has(fin) {
            End::Closed
        } else if is_established {
            End::Established
        } else if has(syn) {
            End::Syn
        } else if has(syn_ack) {
            End::SynAck
        } else if has(ack) || has(data) {
            End::Partial
        } else {
            End::Silent
        }
    };
    let ends = (end(['R', 'I', 'F', 'S', 'H', 'A', 'D']), end(['r', 'i', 'f', 's', 'h', 'a', 'd']));
    let is_attempt = has('S') && !"HAFQhad".chars().any(has);
    let is_passive = |end: End| matches!(end, End::Silent | End::Partial);
    match ends {
        (End::Syn | End::SynAck, End::Reset) => ConnState::Rej,
        (End::Reset, End::Reset) if is_without_payload => ConnState::Rej,
        (End::Silent | End::Partial, End::Reset) => ConnState::Rstrh,
        (_, End::Reset) => ConnState::Rstr,
        (End::Reset, responder) if is_passive(responder) && !is_established => {
            if is_attempt {
                ConnState::Rstos0
            } else {
                ConnState::Oth
            }
        }
        (End::Reset, _) => ConnState::Rsto,
        (End::Closed, End::Closed) => ConnState::Sf,
        (End::Closed, responder) if is_passive(responder) => ConnState::Sh,
        (End::Closed, _) => ConnState::S2,
        (initiator, End::Closed) if is_passive(initiator) => ConnState::Shr,
        (_, End::Closed) => ConnState::S3,
        (End::Syn, End::Silent) => ConnState::S0,
        (End::Established, End::Established) => ConnState::S1,
        _ => ConnState::Oth,
    }
}
