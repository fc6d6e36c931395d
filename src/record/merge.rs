//! Merging of records of the same flow: those of active timeouts, or of parts of a capture.

use std::fmt;

use super::encapsulation::EncapsulationRecord;
use super::flow_record::{FieldSet, FlowRecord, SideRecord};
use crate::base::{Application, ConnState, Evidence, History, IpProtocol};
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

impl FlowRecord {
    /// Merges another record of the same flow into this one, as [`Column::merge`](crate::row::Column::merge) of each column
    /// states. The earlier record is the one that starts first, whichever of them that is.
    ///
    /// The records of one tracker, which active timeouts create, become the record without these timeouts. In records of
    /// parts of a capture that were tracked alone, what one part cannot know stays different: retransmissions and segments
    /// out of order of which the other segment is in another part, letters of the history that repeat at the 10th
    /// occurrence, and a handshake that the border divides. Whether two records with the same key are of one flow is for
    /// the caller to decide: by their times, and by [`flow_end_reason`](Self::flow_end_reason).
    ///
    /// Allocates only for encapsulation.
    ///
    /// # Errors
    ///
    /// Returns an error if the Flow Keys differ. The record is unchanged then.
    pub fn merge(&mut self, other: &Self) -> Result<(), DifferentFlows> {
        if self.key != other.key {
            return Err(DifferentFlows);
        }
        let place = |record: &Self| (record.start, record.sequence_number, record.end);
        let mut later = other.clone();
        if place(&later) < place(self) {
            std::mem::swap(self, &mut later);
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
        self.known = self.known.turned();
    }

    /// Appends a later record with the same initiator.
    fn append(&mut self, later: Self) {
        // The tracker of both repeats the letters of earlier records.
        let mut letters = later.history.letters();
        let is_continued = later.sequence_number > self.sequence_number
            && self.history.letters().all(|letter| letters.next() == Some(letter));
        let state = is_continued.then_some(later.conn_state);
        self.forward.append(later.forward);
        self.reverse.append(later.reverse);
        // Packets may be late, so that the last one has not the latest time.
        self.end = later.end.max(self.start);
        if !self.tcp_state.is_closed() {
            self.open_end = later.open_end;
        }
        self.tcp_state = later.tcp_state;
        self.flow_end_reason = later.flow_end_reason;
        self.history = self.history.united(later.history, is_continued);
        self.handshake_rtt = self.handshake_rtt.or(later.handshake_rtt);
        self.direction_evidence = self.direction_evidence.max(later.direction_evidence);
        self.icmp = self.icmp.or(later.icmp);
        self.icmp_error_count = self.icmp_error_count.saturating_add(later.icmp_error_count);
        self.fragment_count = self.fragment_count.saturating_add(later.fragment_count);
        self.sequence_number = self.sequence_number.min(later.sequence_number);
        self.application = strongest(self.application, later.application);
        self.sampling_interval = self.sampling_interval.or(later.sampling_interval);
        self.counter_scale = self.counter_scale.or(later.counter_scale);
        self.known = self.known.intersection(later.known);
        match (&mut self.encapsulation, later.encapsulation) {
            (Some(earlier), Some(later)) => earlier.append(*later),
            (earlier @ None, later) => *earlier = later,
            (Some(_), None) => {}
        }
        self.conn_state = state.unwrap_or_else(|| self.outcome());
    }

    /// Returns the outcome of the connection by its history, or of another flow by its packets.
    fn outcome(&self) -> ConnState {
        let has_sent = |side: &SideRecord| !side.counters.is_empty();
        match self.protocol() {
            IpProtocol::TCP => outcome(
                self.history,
                self.forward.counters.payload_octet_count + self.reverse.counters.payload_octet_count == 0,
            ),
            IpProtocol::UDP => match (has_sent(&self.forward), has_sent(&self.reverse)) {
                (true, true) => ConnState::Sf,
                (true, false) => ConnState::S0,
                (false, true) => ConnState::Shr,
                (false, false) => ConnState::Oth,
            },
            _ => ConnState::Oth,
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
        // The properties of the first frame are those of the later record if the earlier one has no frame.
        if self.counters.is_empty() {
            (self.vlan_ids, self.dscp) = (later.vlan_ids, later.dscp);
        }
        self.mac = self.mac.or(later.mac);
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
    /// Returns the letters of both histories in the order of their first occurrence. `is_continued` states that the later one
    /// begins with the letters of this one.
    fn united(self, later: Self, is_continued: bool) -> Self {
        if is_continued {
            return later;
        }
        let mut united = self;
        // The exchange of initiator and responder is an event of one record.
        for letter in later.letters().filter(|letter| *letter != '^') {
            if !united.letters().any(|known| known == letter) {
                united.push(letter as u8);
            }
        }
        united
    }
}

impl FieldSet {
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
fn outcome(history: History, is_without_payload: bool) -> ConnState {
    let has = |letter: char| history.letters().any(|known| known == letter);
    let is_established =
        (has('h') && (has('S') || has('A') || has('D'))) || (has('H') && (has('s') || has('a') || has('d')));
    let end = |letters: [char; 7]| {
        let [reset, both, fin, syn, syn_ack, ack, data] = letters;
        if has(reset) || has(both) {
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
