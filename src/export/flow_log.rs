//! The interface of formats whose rows are about flows, their transactions and anomalies.

use std::io;

use super::uid::Uid;
use crate::base::{Application, EndReason, Evidence, SeqNum, Side, Timestamp};
use crate::neighbor::Neighbor;
use crate::record::FlowRecord;
use crate::session::MessageMeta;
use crate::tracker::{Anomaly, FlowView};
use crate::transaction::{FlowOrigin, Transaction};

/// Returns whether a row of this length may be written.
pub type Permits<'p> = &'p mut dyn FnMut(usize) -> bool;

/// Writes flows, their transactions and anomalies, such as the [logs of Zeek](super::zeek). Rows are written whole, and only if
/// `permits` returns true for the length of each; each method returns whether all of them were.
///
/// # Errors
///
/// All methods return any error of the destination. No further row should be written then.
pub trait FlowLog {
    /// Notes that a flow begins. Needed only for formats that relate flows in tunnels to those that carry them.
    fn started(&mut self, view: &FlowView<'_>, flow: &mut LoggedFlow) {
        let _ = (view, flow);
    }

    /// Writes the record of a flow.
    fn record(
        &mut self,
        view: &FlowView<'_>,
        flow: &mut LoggedFlow,
        reason: EndReason,
        permits: Permits<'_>,
    ) -> io::Result<bool>;

    /// Writes a record that another program made.
    fn collected(&mut self, record: &FlowRecord, permits: Permits<'_>) -> io::Result<bool>;

    /// Notes that a flow ended, so that what is held of it is released. Needed as [`started`](Self::started), and for formats that
    /// relate transactions of a flow, such as the [events of EVE](super::eve).
    fn ended(&mut self, view: &FlowView<'_>) -> io::Result<()> {
        let _ = view;
        Ok(())
    }

    /// Returns the memory in bytes that was allocated for open flows and for what is known of them all, beside the
    /// [`LoggedFlow`]s. Takes constant time. `left` is the memory in bytes by which the budget permits the log to grow: a log
    /// frees what it has for others than open flows if that takes more than a part of this.
    fn held_bytes(&mut self, left: u64) -> u64 {
        let _ = left;
        0
    }

    /// Writes a transaction of a flow.
    fn transaction(
        &mut self,
        view: &FlowView<'_>,
        flow: &mut LoggedFlow,
        transaction: &Transaction,
        permits: Permits<'_>,
    ) -> io::Result<bool>;

    /// Writes an anomaly of a flow.
    fn anomaly(
        &mut self,
        view: &FlowView<'_>,
        flow: &mut LoggedFlow,
        anomaly: Anomaly,
        permits: Permits<'_>,
    ) -> io::Result<bool>;

    /// Writes the reason for which a parser stopped.
    fn fault(
        &mut self,
        view: &FlowView<'_>,
        flow: &mut LoggedFlow,
        stop: (&MessageMeta, &'static str),
        permits: Permits<'_>,
    ) -> io::Result<bool>;

    /// Writes a message between neighbors, which belongs to no flow; formats without such rows ignore it.
    fn neighbor(&mut self, neighbor: &Neighbor<'_>, permits: Permits<'_>) -> io::Result<bool> {
        let _ = (neighbor, permits);
        Ok(true)
    }

    /// Sets the time, so that destinations that [are over](super::LogFiles::is_over) are closed.
    fn advance(&mut self, time: Timestamp) -> io::Result<()>;

    /// Writes what the destinations hold back.
    fn flush(&mut self) -> io::Result<()>;

    /// Completes and closes all destinations, even if one fails. Returns the number of rows.
    fn close(self: Box<Self>) -> io::Result<u64>;
}

/// Maximum number of protocols of a flow: recognition is repeated after a handover, such as STARTTLS.
const SERVICE_MAX: usize = 4;

/// What a [`FlowLog`] keeps of a flow: its identifier, the protocols that were recognized, and what its records stated. Part of
/// the state of the flow in a sink.
#[derive(Clone, Debug, Default)]
pub struct LoggedFlow {
    uid: Option<Uid>,
    /// The flow that announced this one.
    parent: Option<Uid>,
    services: Vec<&'static str>,
    /// Start and end of the current record, and the end of the one before it.
    record: Option<(Timestamp, RecordEnd)>,
    previous: RecordEnd,
}

/// The end of a record of a flow, behind which the next one begins.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RecordEnd {
    sequence_numbers: [Option<SeqNum>; 2],
    /// This record or an earlier one carries other flows.
    pub(super) is_tunnel: bool,
}

impl RecordEnd {
    /// Returns the next sequence number of a side.
    pub(super) const fn sequence_number(&self, side: Side) -> Option<SeqNum> {
        let [a, b] = self.sequence_numbers;
        match side {
            Side::A => a,
            Side::B => b,
        }
    }
}

impl LoggedFlow {
    /// Returns the memory in bytes that was allocated for the flow. Changes only with
    /// [`recognized`](Self::recognized).
    #[must_use]
    pub fn heap_len(&self) -> usize {
        self.services.capacity() * size_of::<&str>()
    }

    /// Returns the identifier of the flow, which is computed once: later records of the flow have another start.
    pub fn uid(&mut self, view: &FlowView<'_>, seed: u64) -> Uid {
        *self.uid.get_or_insert_with(|| Uid::of_flow(view.key(), view.start(), seed))
    }

    /// Notes that a protocol was recognized in the flow. Needed only for flows with several, such as SMTP and TLS.
    pub fn recognized(&mut self, name: &'static str, evidence: Evidence) {
        let is_proven = evidence == Evidence::Content;
        if is_proven && self.services.len() < SERVICE_MAX && !self.services.contains(&name) {
            self.services.push(name);
        }
    }

    /// Returns how the record before that of `view` ended. Several formats may need it for the same record.
    pub(super) fn previous(&mut self, view: &FlowView<'_>) -> RecordEnd {
        let start = view.start();
        if self.record.is_none_or(|(of, _)| of != start) {
            self.previous = self.record.map(|(_, end)| end).unwrap_or_default();
            let next = |side| view.sequence_numbers(side).map(|(_, next)| next);
            let carries = view.encapsulation().is_some_and(|record| record.carried_packet_count > 0);
            let end = RecordEnd {
                sequence_numbers: [Side::A, Side::B].map(next),
                is_tunnel: carries || self.previous.is_tunnel,
            };
            self.record = Some((start, end));
        }
        self.previous
    }

    /// Returns the identifier of the flow that announced this one, and notes it.
    pub(super) fn announced_by(&mut self, origin: &FlowOrigin, seed: u64) -> Uid {
        *self.parent.get_or_insert_with(|| Uid::of_origin(origin, seed))
    }

    /// Returns the identifier of the flow that announced this one, if it was noted.
    pub(super) const fn parent(&self) -> Option<Uid> {
        self.parent
    }

    /// Returns whether TLS was recognized.
    pub(super) fn has_tls(&self) -> bool {
        self.services.contains(&"tls")
    }

    /// Calls a function with the name of each protocol that the content of the flow proves, in the order in which they were
    /// recognized.
    pub(super) fn for_each_service(&self, view: &FlowView<'_>, mut call: impl FnMut(&str)) {
        match (&*self.services, view.application()) {
            ([], Some(Application { name, evidence: Evidence::Content })) => call(name.as_str()),
            (all, _) => all.iter().for_each(|name| call(name)),
        }
    }
}
