//! Conversations of datagrams that follow each other between the same ports.

use super::datagrams::opening;
use super::driver::Turn;
use super::octets::Payload;
use super::parser::Remains;
use super::paused::Paused;
use super::probing::Found;
use super::protocols::Protocols;
use super::receiver::Receiver;
use super::session::State;
use super::transition::Cause;
use crate::base::{IpProtocol, Side};

/// Number of octets of the unit of `Paused::received`.
const UNIT_LEN: u64 = 64;

impl<P: Protocols, R: Receiver<P>> Turn<'_, P, R> {
    /// Returns what remains of the current conversation; `None` if the rest of the flow is ignored.
    fn remains(&self) -> Option<Paused> {
        let State::Parsing(parsing) = self.session.state() else { return None };
        parsing.protocol.repeated.filter(|_| self.context.key.protocol() != IpProtocol::TCP)?;
        let Remains { count, mark } = parsing.parser.remains()?;
        let entry = P::TABLE.iter().position(|entry| entry.protocol == parsing.protocol)?;
        let received = u32::try_from(parsing.received_len / UNIT_LEN).unwrap_or(u32::MAX);
        Some(Paused { entry: entry as u8, count, received, mark })
    }

    /// Drops the parser of a flow of datagrams that is done or stops.
    #[cold]
    #[inline(never)]
    pub(super) fn end_conversation(&mut self) {
        match self.remains() {
            Some(paused) => {
                self.driver.release(self.session);
                self.session.transition(State::paused(paused), Cause::Paused);
            }
            None => self.driver.close(self.session),
        }
    }

    /// Starts a parser if a datagram begins a later conversation. Returns whether the datagram is to be parsed.
    #[cold]
    #[inline(never)]
    pub(super) fn begin_conversation(&mut self, side: Side, payload: Payload<'_>, paused: Paused) -> bool {
        let Paused { entry, count, received, mark } = paused;
        let entry = usize::from(entry);
        let repeated = P::TABLE.get(entry).and_then(|entry| entry.protocol.repeated.as_ref());
        let opening = opening(self.context, side, self.session.role(side), payload);
        if !repeated.is_some_and(|repeated| (repeated.begins)(&opening, mark)) {
            return false;
        }
        self.start(Found::by_content(entry, false));
        let Some(parsing) = self.session.parsing_mut() else { return false };
        parsing.received_len = u64::from(received) * UNIT_LEN;
        parsing.parser.succeed(Remains { count, mark });
        true
    }
}
