//! Sessions in a checkpoint.
//!
//! The protocol of a flow is saved, and the octets for which the probes are undecided. The state of a parser is saved with
//! the octets that it has not consumed, if it implements [`Parser::save`](super::Parser::save). Otherwise, a restored session has a new parser,
//! which continues in each direction as after a gap with the reason [`GapReason::Checkpoint`].

use super::context::FlowContext;
use super::datagram_probing::DatagramProbing;
use super::driver::{Driver, Turn};
use super::parser::{AfterGap, Fault};
use super::parsing::{Lane, Parsing, PortOwner};
use super::paused::Paused;
use super::probing::Found;
use super::protocol::{Protocol, Role};
use super::protocols::Protocols;
use super::receiver::Receiver;
use super::session::{Session, State};
use super::transition::Cause;
use crate::base::{Evidence, IpProtocol, Side, Timestamp};
use crate::checkpoint::{Invalid, Saved, StateWriter, checksum};
use crate::codec::{Prefix, Reader};
use crate::reassembler::{Chunk, Gap, GapReason};

/// Kinds of saved sessions.
const NEW: u8 = 0;
const OFF: u8 = 1;
const PARSING: u8 = 2;
const STREAM: u8 = 3;
const DATAGRAMS: u8 = 4;
const RESUMING: u8 = 5;
const PAUSED: u8 = 6;

impl<P: Protocols> Driver<P> {
    /// Writes the state of a session.
    pub(crate) fn save(&self, session: &Session<P>, out: &mut StateWriter<'_>) -> Result<(), Invalid> {
        let (protocol, evidence) = session.application().unzip();
        out.prefixed(Prefix::U8, protocol.map_or("", Protocol::name))?;
        out.bool(evidence == Some(Evidence::Port))?;
        out.bool(session.client == Side::B)?;
        match session.state() {
            // What waits for an announcement is not saved.
            State::Off | State::Awaiting(_) => Ok(out.be(OFF)?),
            State::Parsing(parsing) => {
                out.be(PARSING)?;
                out.prefixed(Prefix::U8, parsing.protocol.name())?;
                out.bool(parsing.is_expected)?;
                out.be(parsing.handover_count)?;
                let owner = parsing.port_owner;
                out.array(owner.map_or([0, 0], |owner| [owner.entry, owner.left]))?;
                out.varint(parsing.received_len)?;
                parsing.ticked.save(out)?;
                out.varint(parsing.quota.left())?;
                let len = out.reserve::<u32>()?;
                let start = out.len();
                let is_saved = parsing.parser.save(out)?;
                let parser_len = (out.len() - start) as u32;
                out.fill(len, parser_len);
                out.bool(is_saved)?;
                for lane in &parsing.lanes {
                    out.bool(lane.is_done)?;
                    out.bool(lane.is_ended)?;
                    out.varint(lane.offset)?;
                    out.varint(lane.rest().len() as u64)?;
                    out.prefixed(Prefix::U32, if is_saved { lane.rest() } else { &[] })?;
                }
                Ok(())
            }
            State::Stream(probing) => {
                out.be(STREAM)?;
                out.bool(probing.is_picked_up)?;
                out.bool(probing.expected.is_some())?;
                probing.expected.iter().try_for_each(|expected| expected.save(out))?;
                out.varint(probing.chunks().count() as u64)?;
                for (from, offset, bytes, timestamp) in probing.chunks() {
                    out.bool(from == Role::Server)?;
                    out.varint(offset)?;
                    out.be(timestamp.as_nanos())?;
                    out.prefixed(Prefix::U16, bytes)?;
                }
                Ok(())
            }
            State::Datagrams(probing) => {
                out.be(DATAGRAMS)?;
                probing.save(out)
            }
            State::Resuming(resuming) => {
                out.be(RESUMING)?;
                Ok(out.bool(resuming.is_picked_up)?)
            }
            State::Paused { entry, count, received, mark } => {
                out.be(PAUSED)?;
                let name = P::TABLE.get(usize::from(*entry)).map_or("", |entry| entry.protocol.name());
                out.prefixed(Prefix::U8, name)?;
                out.be(*count)?;
                out.be(*received)?;
                Ok(out.be(*mark)?)
            }
            State::New => Ok(out.be(NEW)?),
        }
    }

    /// Writes the state of all sessions together: the table of protocols, and the flows that are expected.
    pub(crate) fn save_all(&self, out: &mut StateWriter<'_>) -> Result<(), Invalid> {
        out.be(table_checksum::<P>())?;
        self.expected.save(out)
    }

    /// Reads the state of all sessions together.
    pub(crate) fn load_all(&mut self, reader: &mut Reader<'_>) -> Result<(), Invalid> {
        self.knows_entries = reader.be::<u32>()? == table_checksum::<P>();
        self.expected.load(reader)?;
        if !self.knows_entries {
            self.expected.clear();
        }
        Ok(())
    }

    /// Reads the state of a session into `session`, which is new.
    pub(crate) fn load(
        &mut self,
        reader: &mut Reader<'_>,
        session: &mut Session<P>,
        context: &FlowContext<'_>,
        receiver: &mut impl Receiver<P>,
    ) -> Result<(), Invalid> {
        let mut turn = Turn { driver: self, session, context, receiver };
        let result = turn.load(reader);
        turn.settle();
        result
    }
}

/// A saved direction of a parsed flow.
struct SavedLane<'r> {
    lane: Lane,
    /// Number of octets that the parser did not consume.
    rest_len: u64,
    /// These octets, if the state of the parser was saved.
    rest: &'r [u8],
}

impl<P: Protocols, R: Receiver<P>> Turn<'_, P, R> {
    fn load(&mut self, reader: &mut Reader<'_>) -> Result<(), Invalid> {
        let name = reader.prefixed_str(Prefix::U8)?;
        let evidence = if reader.bool()? { Evidence::Port } else { Evidence::Content };
        self.session.client = if reader.bool()? { Side::B } else { Side::A };
        // Unknown if the set of protocols has changed since.
        if let Some((_, protocol)) = entry_of::<P>(name) {
            self.session.set_application(protocol, evidence);
        }
        match reader.be::<u8>()? {
            OFF => {
                self.driver.turn_off(self.session, Cause::Closed);
                Ok(())
            }
            NEW => Ok(()),
            STREAM => self.load_stream(reader),
            DATAGRAMS => self.load_datagrams(reader),
            RESUMING => {
                self.resume(reader.bool()?);
                Ok(())
            }
            PARSING => self.load_parsing(reader),
            PAUSED => self.load_paused(reader),
            _ => Err(Invalid::new("a state of a session that is not known")),
        }
    }

    /// Probes the octets again that a session has buffered.
    fn load_stream(&mut self, reader: &mut Reader<'_>) -> Result<(), Invalid> {
        let client = self.session.client;
        let context = FlowContext { initiator: client, is_from_start: !reader.bool()?, ..*self.context };
        let expected = reader.bool()?.then(|| Found::load(reader)).transpose()?;
        let is_known = |found: &Found| self.driver.knows_entries && found.entry < P::TABLE.len();
        let expected = expected.filter(is_known);
        self.driver.expected.restore(expected);
        for _ in 0..reader.varint()? {
            let side = if reader.bool()? { client.other() } else { client };
            let (offset, timestamp) = (reader.varint()?, Timestamp::from_nanos(reader.be()?));
            let bytes = reader.prefixed(Prefix::U16)?;
            if offset > OFFSET_MAX || bytes.is_empty() {
                return Err(Invalid::new("octets of a stream that cannot be there"));
            }
            let context = FlowContext { timestamp, ..context };
            let Self { driver, session, receiver, .. } = self;
            let mut turn = Turn { driver, session, context: &context, receiver: *receiver };
            let _ = turn.chunk(side, &Chunk::new(offset, bytes).at(timestamp));
        }
        self.driver.expected.restore(None);
        Ok(())
    }

    fn load_datagrams(&mut self, reader: &mut Reader<'_>) -> Result<(), Invalid> {
        let probing = DatagramProbing::load(reader)?;
        // The session is new if the table has changed.
        if self.driver.knows_entries && self.driver.take_for_window(size_of::<DatagramProbing>()) {
            self.session.transition(State::Datagrams(Box::new(probing)), Cause::Undecided);
        }
        Ok(())
    }

    fn load_paused(&mut self, reader: &mut Reader<'_>) -> Result<(), Invalid> {
        let name = reader.prefixed_str(Prefix::U8)?;
        let (count, received, mark) = (reader.be()?, reader.be()?, reader.be()?);
        let entry = entry_of::<P>(name).filter(|(_, protocol)| protocol.repeated.is_some());
        let Some((entry, protocol)) = entry.filter(|_| !self.driver.is_naming_only()) else {
            self.driver.turn_off(self.session, Cause::Unparsed);
            return Ok(());
        };
        let parsing = Parsing::new(P::start(entry), protocol, self.session.client, self.context.timestamp);
        self.session.transition(State::Parsing(Box::new(parsing)), Cause::Recognized);
        let paused = Paused { entry: entry as u8, count, received, mark };
        self.session.transition(State::paused(paused), Cause::Paused);
        Ok(())
    }

    fn load_parsing(&mut self, reader: &mut Reader<'_>) -> Result<(), Invalid> {
        let name = reader.prefixed_str(Prefix::U8)?;
        let (is_expected, handover_count) = (reader.bool()?, reader.be()?);
        let [owner, left] = reader.array()?;
        let (received_len, ticked, quota_left) = (reader.varint()?, Saved::load(reader)?, reader.varint()?);
        let mut state = reader.section(Prefix::U32)?;
        let is_saved = reader.bool()?;
        let mut lane = || -> Result<SavedLane<'_>, Invalid> {
            let (is_done, is_ended) = (reader.bool()?, reader.bool()?);
            let (offset, rest_len) = (reader.varint()?, reader.varint()?);
            if offset > OFFSET_MAX || rest_len > OFFSET_MAX {
                return Err(Invalid::new("a stream that is too long"));
            }
            let mut lane = Lane::at(offset, is_ended);
            lane.is_done = is_done;
            Ok(SavedLane { lane, rest_len, rest: reader.prefixed(Prefix::U32)? })
        };
        let lanes = [lane()?, lane()?];
        let now = self.context.timestamp;
        let entry = entry_of::<P>(name)
            .filter(|(entry, _)| P::TABLE.get(*entry).is_some_and(|entry| entry.has_parser));
        let len = size_of::<Parsing<P>>() as u64;
        let Some((entry, protocol)) = entry else {
            self.driver.turn_off(self.session, Cause::Unparsed);
            return Ok(());
        };
        if self.driver.is_naming_only() || self.driver.allowance.take(len).is_err() {
            self.driver.turn_off(self.session, Cause::Refused);
            return Ok(());
        }
        if protocol.announces_streams {
            self.driver.announcers.insert(self.context.key);
        }
        let mut parsing = Parsing::new(P::start(entry), protocol, self.session.client, now);
        (parsing.charged, parsing.is_expected, parsing.handover_count) = (len, is_expected, handover_count);
        (parsing.received_len, parsing.ticked) = (received_len, ticked);
        parsing.quota = parsing.quota.with_left(quota_left);
        parsing.port_owner =
            (left > 0 && self.driver.knows_entries).then_some(PortOwner { entry: owner, left });
        let rest_lens =
            [0, 1].map(|index| lanes.get(index).map_or(0, |saved: &SavedLane<'_>| saved.rest_len));
        let rests = [0, 1].map(|index| lanes.get(index).map_or(&[][..], |saved| saved.rest));
        for (own, saved) in parsing.lanes.iter_mut().zip(lanes) {
            *own = saved.lane;
        }
        if is_saved {
            parsing.parser.load(&mut state)?;
            if !state.is_empty() {
                return Err(Invalid::new("the state of another parser"));
            }
        }
        let is_kept = !is_saved || parsing.keep_all(rests, &mut self.driver.allowance).is_ok();
        self.session.transition(State::Parsing(Box::new(parsing)), Cause::Recognized);
        if !is_kept {
            self.driver.turn_off(self.session, Cause::Refused);
            return Ok(());
        }
        if is_saved || self.context.key.protocol() != IpProtocol::TCP {
            return Ok(());
        }
        for (from, rest_len) in [Role::Client, Role::Server].into_iter().zip(rest_lens) {
            self.begin_anew(from, rest_len, now);
        }
        Ok(())
    }

    /// Passes a gap to a new parser in place of the octets that the previous one has seen.
    fn begin_anew(&mut self, from: Role, rest_len: u64, now: Timestamp) {
        let Some(parsing) = self.session.parsing_mut() else { return };
        let lane = from.of(&parsing.lanes);
        if lane.is_done || lane.is_ended {
            return;
        }
        let offset = lane.offset;
        let gap = Gap::new(offset, rest_len, GapReason::Checkpoint).at(now);
        let after = parsing.gap(&gap, from, now, &mut self.driver.allowance, self.receiver);
        self.driver.stats.count_suppressed(&mut parsing.quota);
        if after == AfterGap::Stop {
            self.stop(from, offset, Fault::GAP);
        }
    }
}

/// Maximum offset of a saved stream, so that sums with the length of a gap do not overflow.
const OFFSET_MAX: u64 = 1 << 60;

/// Returns the protocol with a name, and its index in the table of the set.
fn entry_of<P: Protocols>(name: &str) -> Option<(usize, &'static Protocol)> {
    let mut entries = P::TABLE.iter().map(|entry| entry.protocol).enumerate();
    entries.find(|(_, protocol)| protocol.name() == name)
}

/// Returns a checksum of the names of the protocols in the table of a set, whose order gives them their indexes.
fn table_checksum<P: Protocols>() -> u32 {
    checksum(P::TABLE.iter().map(|entry| entry.protocol.name()))
}
