//! Recognition in flows of datagrams: the window in which the probes are undecided, and the later search for the
//! protocol to which the port belongs.

use super::context::FlowContext;
use super::datagram_probing::{
    DatagramProbing, Prefix, RESUME_DATAGRAM_COUNT_MAX, is_only_named, reads_previous,
};
use super::driver::Turn;
use super::octets::Payload;
use super::parser::Datagram;
use super::parsing::PortOwner;
use super::probing::{Answer, Found};
use super::protocol::{DatagramOpening, Role, Verdict};
use super::protocols::Protocols;
use super::receiver::Receiver;
use super::session::State;
use super::transition::Cause;
use crate::base::Side;

impl<P: Protocols, R: Receiver<P>> Turn<'_, P, R> {
    pub(super) fn probe_datagram(&mut self, side: Side, payload: Payload<'_>) {
        let opening = opening(self.context, side, self.session.role(side), payload);
        let mut fresh = DatagramProbing::default();
        let is_fresh = matches!(self.session.state(), State::New);
        let (is_named, ports) = (self.session.protocol.is_some(), self.context.ports(self.session.client));
        let probing = self.session.datagrams_mut().unwrap_or(&mut fresh);
        let answer = probing.run_probes::<P>(&opening, self.context.timestamp, is_named);
        let mut named = None;
        let found = match answer {
            // A protocol without a parser does not exclude one with a parser that may follow it, as DTLS follows STUN.
            Answer::Found(found)
                if is_only_named::<P>(found)
                    && !probing.is_over(is_named)
                    && (found.is_early || probing.owner.is_some()) =>
            {
                named = probing.set_aside(found);
                None
            }
            Answer::Found(found) => Some(found),
            Answer::Unknown if is_named => None,
            Answer::Unknown => probing.decide::<P>(ports),
            Answer::Undecided => None,
        };
        let is_waiting = match answer {
            Answer::Undecided => true,
            Answer::Found(_) => found.is_none(),
            Answer::Unknown => false,
        };
        if is_waiting {
            if is_fresh && self.driver.take_for_window(size_of::<DatagramProbing>()) {
                self.session.transition(State::Datagrams(Box::new(fresh)), Cause::Undecided);
            } else if is_fresh {
                named = named.or(fresh.held);
                self.driver.turn_off(self.session, Cause::Refused);
            }
            self.name(named);
            return;
        }
        let (owner, held, count) = (probing.owner, probing.held, probing.count);
        let previous = found.filter(reads_previous::<P>).map(|found| (probing.previous, found.is_reversed));
        self.driver.release(self.session);
        let Some(found) = found else {
            if is_fresh && self.await_datagram(side, payload, &opening) {
                return;
            }
            self.driver.turn_off(self.session, Cause::Unparsed);
            return;
        };
        let port_owner = owner.filter(|owner| *owner != found.entry);
        if port_owner.is_some() && held.is_some_and(|held| held.entry != found.entry) {
            // Neither has the port: the first one identifies the flow. Roles are those of the second one.
            let held = held.map(|held| Found { is_reversed: false, ..held });
            self.name(held);
        }
        self.start(found);
        if let Some(parsing) = self.session.parsing_mut() {
            let left = RESUME_DATAGRAM_COUNT_MAX.saturating_sub(count);
            parsing.port_owner =
                port_owner.filter(|_| left > 0).map(|entry| PortOwner { entry: entry as u8, left });
        }
        if let Some((previous, is_reversed)) = previous {
            self.pass_previous(previous, is_reversed);
        }
    }

    /// Passes the beginnings of the datagrams before the one by which the protocol was recognized to the parser.
    #[cold]
    fn pass_previous(&mut self, previous: [Prefix; 2], is_reversed: bool) {
        let roles = if is_reversed { [Role::Server, Role::Client] } else { [Role::Client, Role::Server] };
        let mut both: Vec<_> =
            roles.into_iter().zip(&previous).filter(|(_, prefix)| prefix.datagram_len > 0).collect();
        both.sort_by_key(|(_, prefix)| prefix.timestamp);
        let Some(parsing) = self.session.parsing_mut() else { return };
        for (from, prefix) in both {
            let (bytes, len) = (prefix.as_slice(), prefix.datagram_len as usize);
            let datagram = Datagram { bytes, len, from, timestamp: prefix.timestamp, is_announced: false };
            // What is wrong with memory shows with the next datagram.
            let _ = parsing.datagram(&datagram, &mut self.driver.allowance, self.receiver);
        }
    }

    /// Starts the parser of a flow that another one announced, unless it may be of another protocol: its content or its
    /// port would name the flow in a driver that did not process the announcement.
    #[cold]
    pub(super) fn probe_expected(&mut self, side: Side, payload: Payload<'_>, expected: Found) {
        let opening = opening(self.context, side, self.session.role(side), payload);
        let mut probing = DatagramProbing::default();
        let answer = probing.run_probes::<P>(&opening, self.context.timestamp, false);
        let is_nameless = matches!(answer, Answer::Unknown)
            && probing.decide::<P>(self.context.ports(self.session.client)).is_none();
        if is_nameless {
            self.start(expected);
        } else {
            self.probe_datagram(side, payload);
        }
    }

    /// Calls the probe of the protocol to which the port belongs, for a datagram of a flow that another protocol's
    /// parser processes. If the probe matches, its protocol replaces the other one.
    #[cold]
    pub(super) fn probe_port_owner(&mut self, side: Side, payload: Payload<'_>) {
        let from = self.session.role(side);
        let Some(parsing) = self.session.parsing_mut() else { return };
        let Some(PortOwner { entry, left }) = parsing.port_owner else { return };
        parsing.port_owner = (left > 1).then_some(PortOwner { entry, left: left.saturating_sub(1) });
        let entry = usize::from(entry);
        let Some(port_owner) = P::TABLE.get(entry) else { return };
        let is_reversed =
            match port_owner.protocol.probe_datagram(&opening(self.context, side, from, payload)) {
                Verdict::Match => false,
                Verdict::MatchReversed => true,
                Verdict::No | Verdict::More => return,
            };
        for role in [Role::Client, Role::Server] {
            parsing.end(role, super::EndKind::Flow, self.context.timestamp, self.receiver);
        }
        self.driver.stats.handover_count += 1;
        self.driver.release(self.session);
        let found = Found::by_content(entry, is_reversed);
        self.start(found);
    }

    /// Drops the parser of a flow that goes on with another protocol, which the probes must identify. That of the parser is not
    /// recognized again.
    #[cold]
    #[inline(never)]
    pub(super) fn hand_over_datagram(&mut self, side: Side, payload: Payload<'_>) {
        let Some(parsing) = self.session.parsing_mut() else { return };
        let protocol = parsing.protocol;
        self.driver.stats.handover_count += 1;
        self.driver.release(self.session);
        if !self.driver.take_for_window(size_of::<DatagramProbing>()) {
            self.driver.turn_off(self.session, Cause::Refused);
            return;
        }
        let probing = DatagramProbing::without::<P>(protocol);
        self.session.transition(State::Datagrams(Box::new(probing)), Cause::Handover);
        self.kept_datagram(side, payload);
    }

    /// Identifies the protocol of a flow of datagrams without starting a parser.
    pub(super) fn name(&mut self, found: Option<Found>) {
        let Some((entry, found)) = found.and_then(|found| Some((P::TABLE.get(found.entry)?, found))) else {
            return;
        };
        self.take_roles(found);
        self.recognized(entry.protocol, found.evidence);
    }
}

/// Returns a datagram as input for the probes, without previous datagrams.
pub(super) fn opening<'a>(
    context: &FlowContext<'_>,
    side: Side,
    from: Role,
    Payload { bytes, len }: Payload<'a>,
) -> DatagramOpening<'a> {
    let (source_port, destination_port) = (context.key.raw_port(side), context.key.raw_port(side.other()));
    DatagramOpening {
        len,
        from,
        ip_protocol: context.key.protocol().0,
        ..DatagramOpening::first(bytes, source_port, destination_port)
    }
}
