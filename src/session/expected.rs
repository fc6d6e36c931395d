//! Flows that messages of other flows announce, such as the data connections of FTP.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::time::Duration;

use super::context::FlowContext;
use super::expectation::Expectation;
use super::probing::Found;
use super::protocol::Role;
use super::protocols::Protocols;
use crate::base::{FlowKey, IpProtocol, Side, Timestamp};
use crate::checkpoint::{Invalid, Saved, StateWriter, state};
use crate::codec::Reader;

/// Maximum number of flows that a driver expects. At the limit, the one that was announced first is forgotten.
pub const EXPECTED_MAX: usize = 256;

/// Time after which an announced flow is not expected any more.
pub const EXPECTED_TIME: Duration = Duration::from_secs(300);

/// Both ends of an announced flow, without the port of the one that opens it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AnnouncedEnds {
    /// Key of the announcing flow, which has the IP protocol and the encapsulation of the announced one.
    by: FlowKey,
    opener: IpAddr,
    /// The address that the message states, and the one in the announcing flow.
    listeners: [IpAddr; 2],
    port: u16,
}

state! { struct AnnouncedEnds { by, opener, listeners, port } }

impl AnnouncedEnds {
    /// Returns the ends of a flow that a side of the announcing flow opens.
    pub(crate) fn new(by: &FlowKey, opener: Side, address: Option<IpAddr>, port: u16) -> Self {
        let listener = by.address(opener.other());
        Self { by: *by, opener: by.address(opener), listeners: [address.unwrap_or(listener), listener], port }
    }

    /// Returns whether these are the ends of a flow that a side opens.
    pub(crate) fn are_of(&self, key: &FlowKey, opener: Side) -> bool {
        let scope = |key: &FlowKey| (key.protocol(), key.scope(), key.vni(), key.vlan_ids());
        key.raw_port(opener.other()) == self.port
            && key.address(opener) == self.opener
            && self.listeners.contains(&key.address(opener.other()))
            && scope(key) == scope(&self.by)
    }

    /// Returns whether the end of a flow that listens is not an end of the announcing flow.
    fn is_foreign(&self, key: &FlowKey, opener: Side) -> bool {
        let [_, known] = self.listeners;
        key.address(opener.other()) != known
    }
}

/// An expected flow.
#[derive(Clone, Copy, Debug)]
struct Expected {
    ends: AnnouncedEnds,
    opened_by: Role,
    /// Index of the protocol in the table of the set.
    entry: usize,
    announced: Timestamp,
}

state! { struct Expected { ends, opened_by, entry, announced } }

/// The flows that a driver expects, in the order in which they were announced.
#[derive(Debug, Default)]
pub(super) struct ExpectedFlows {
    flows: VecDeque<Expected>,
    /// The protocol of a flow that is read from a checkpoint and whose octets are probed again.
    restored: Option<Found>,
}

impl ExpectedFlows {
    /// Expects flows that messages of another one announced.
    #[cold]
    #[inline(never)]
    pub(super) fn announce<P: Protocols>(
        &mut self,
        context: &FlowContext<'_>,
        client: Side,
        announced: &mut Vec<Expectation>,
    ) {
        // The memory is released, because it is not charged.
        for expectation in std::mem::take(announced) {
            self.insert::<P>(context, client, expectation);
        }
    }

    /// Expects a flow that a message of another one announced.
    fn insert<P: Protocols>(
        &mut self,
        context: &FlowContext<'_>,
        client: Side,
        Expectation { protocol, opened_by, address, port }: Expectation,
    ) {
        let Some(entry) = P::TABLE.iter().position(|entry| entry.protocol == protocol) else { return };
        let opener = if opened_by == Role::Client { client } else { client.other() };
        let port = port.unwrap_or_else(|| context.key.raw_port(opener.other()));
        let ends = AnnouncedEnds::new(context.key, opener, address, port);
        // An announcement may be repeated.
        let is_same = |known: &Expected| known.ends.port == ends.port && known.ends == ends;
        if let Some(place) = self.flows.iter().rposition(is_same) {
            self.flows.remove(place);
        } else if self.flows.len() >= EXPECTED_MAX {
            self.flows.pop_front();
        }
        self.flows.push_back(Expected { ends, opened_by, entry, announced: context.timestamp });
    }

    /// Writes the flows to a checkpoint.
    pub(super) fn save(&self, out: &mut StateWriter<'_>) -> Result<(), Invalid> {
        self.flows.save(out)
    }

    /// Reads flows from a checkpoint.
    pub(super) fn load(&mut self, reader: &mut Reader<'_>) -> Result<(), Invalid> {
        self.flows = VecDeque::load(reader)?;
        if self.flows.len() > EXPECTED_MAX {
            return Err(Invalid::new("too many expected flows"));
        }
        Ok(())
    }

    pub(super) fn clear(&mut self) {
        self.flows.clear();
    }

    /// Removes a flow with its first octets from those that are expected, and returns its protocol. The roles are
    /// reversed if the initiator has not the role of the client in the announcing flow.
    #[inline]
    pub(super) fn take(&mut self, context: &FlowContext<'_>) -> Option<Found> {
        if self.flows.is_empty() && self.restored.is_none() { None } else { self.search(context) }
    }

    /// Expects a protocol for the flow whose first octets come next, until [`take`](Self::take) is called.
    pub(super) fn restore(&mut self, expected: Option<Found>) {
        self.restored = expected;
    }

    /// Removes a flow from those that were announced up to a time, and returns its protocol as [`take`](Self::take) does.
    pub(super) fn take_late(&mut self, context: &FlowContext<'_>, until: Timestamp) -> Option<Found> {
        self.find(context, |expected| expected.announced <= until)
    }

    #[cold]
    #[inline(never)]
    fn search(&mut self, context: &FlowContext<'_>) -> Option<Found> {
        if let Some(restored) = self.restored.take() {
            return Some(restored);
        }
        self.find(context, |_| true)
    }

    /// Removes the flow that was announced last and for which a condition holds.
    fn find(&mut self, context: &FlowContext<'_>, may_be: impl Fn(&Expected) -> bool) -> Option<Found> {
        let now = context.timestamp;
        while self.flows.front().is_some_and(|first| now.saturating_since(first.announced) > EXPECTED_TIME) {
            self.flows.pop_front();
        }
        // Without the SYN, the initiator is presumed only.
        let is_presumed = !context.is_from_start || context.key.protocol() != IpProtocol::TCP;
        let openers = [Some(context.initiator), is_presumed.then(|| context.initiator.other())];
        let (place, opener) = openers.into_iter().flatten().find_map(|opener| {
            let is_of = |expected: &Expected| may_be(expected) && expected.ends.are_of(context.key, opener);
            Some((self.flows.iter().rposition(is_of)?, opener))
        })?;
        let Expected { entry, opened_by, ends, .. } = self.flows.remove(place)?;
        let is_foreign = ends.is_foreign(context.key, opener);
        let is_reversed = (opened_by == Role::Client) != (opener == context.initiator);
        Some(Found { is_expected: true, is_foreign, ..Found::by_content(entry, is_reversed) })
    }
}
