//! State of a session whose datagrams have not identified a protocol yet.

use super::index::{Entries, Index, first, only};
use super::probing::{Answer, Found, datagram_by_port, run_datagram_probes};
use super::protocol::{DatagramOpening, Protocol};
use super::protocols::Protocols;
use crate::base::Timestamp;
use crate::checkpoint::{Invalid, StateWriter, number};
use crate::codec::{self, Reader};

/// Number of datagrams of a flow after which the port identifies the protocol if no probe matched.
pub const PROBE_DATAGRAM_COUNT_MAX: u8 = 8;

/// Number of datagrams of a flow within which the protocol to which the port belongs is searched for, although the
/// first datagrams were of another protocol. Applies to ports of protocols with a parser, and on any port to DTLS after STUN
/// (RFC 7983) in a set of protocols without it.
pub const RESUME_DATAGRAM_COUNT_MAX: u8 = 64;

/// Number of octets of a datagram that are kept for the probes of later datagrams.
const PREFIX_LEN: usize = 64;

/// A flow of datagrams whose protocol is undecided, or may still turn out to be the one to which the port belongs.
#[derive(Debug, Default)]
pub(super) struct DatagramProbing {
    refuted: Entries,
    /// Table entries to which the port belongs, but which a datagram refuted. Their probes are called for the next
    /// datagrams too, because one damaged datagram does not exclude the protocol. The port alone does not identify
    /// these protocols.
    doubted: Entries,
    pub(super) previous: [Prefix; 2],
    /// True after another protocol of the flow.
    pub(super) is_handover: bool,
    pub(super) count: u8,
    /// Index of the table entry that has a parser and one of the flow's ports.
    pub(super) owner: Option<usize>,
    /// A table entry without a parser that matched a datagram on the port of `owner`. It identifies the flow unless a
    /// later datagram matches `owner`.
    pub(super) held: Option<Found>,
}

/// The beginning of a datagram.
#[derive(Clone, Copy, Debug)]
pub(super) struct Prefix {
    len: u8,
    bytes: [u8; PREFIX_LEN],
    /// Length of the datagram on the wire.
    pub(super) datagram_len: u32,
    pub(super) timestamp: Timestamp,
}

impl Default for Prefix {
    fn default() -> Self {
        Self { len: 0, bytes: [0; PREFIX_LEN], datagram_len: 0, timestamp: Timestamp::ZERO }
    }
}

impl Prefix {
    pub(super) fn as_slice(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.len)).unwrap_or_default()
    }

    fn set(&mut self, bytes: &[u8]) {
        let len = bytes.len().min(PREFIX_LEN);
        if let (Some(to), Some(from)) = (self.bytes.get_mut(..len), bytes.get(..len)) {
            to.copy_from_slice(from);
            self.len = len as u8;
        }
    }
}

/// Returns whether a protocol was found whose parser reads earlier datagrams.
pub(super) fn reads_previous<P: Protocols>(found: &Found) -> bool {
    P::TABLE.get(found.entry).is_some_and(|entry| entry.has_parser && entry.protocol.reads_previous)
}

impl DatagramProbing {
    /// Creates the state of a flow that goes on after a protocol.
    pub(super) fn without<P: Protocols>(protocol: &Protocol) -> Self {
        let entry = P::TABLE.iter().position(|entry| entry.protocol == protocol);
        Self { refuted: entry.map_or(0, only), is_handover: true, ..Self::default() }
    }

    /// Writes the state to a checkpoint. Entries are indexes of the protocol table.
    pub(super) fn save(&self, out: &mut StateWriter<'_>) -> Result<(), Invalid> {
        for entries in [self.refuted, self.doubted] {
            out.array(entries.to_be_bytes())?;
        }
        for previous in &self.previous {
            out.prefixed(codec::Prefix::U8, previous.as_slice())?;
            out.be(previous.datagram_len)?;
            out.be(previous.timestamp.as_nanos())?;
        }
        out.be(self.count)?;
        out.bool(self.is_handover)?;
        out.varint(self.owner.map_or(0, |owner| owner as u64 + 1))?;
        out.bool(self.held.is_some())?;
        self.held.map_or(Ok(()), |held| held.save(out))
    }

    /// Reads the state from a checkpoint.
    pub(super) fn load(reader: &mut Reader<'_>) -> Result<Self, Invalid> {
        let mut probing = Self {
            refuted: Entries::from_be_bytes(reader.array()?),
            doubted: Entries::from_be_bytes(reader.array()?),
            ..Self::default()
        };
        for previous in &mut probing.previous {
            previous.set(reader.prefixed(codec::Prefix::U8)?);
            previous.datagram_len = reader.be()?;
            previous.timestamp = Timestamp::from_nanos(reader.be()?);
        }
        probing.count = reader.be()?;
        probing.is_handover = reader.bool()?;
        probing.owner = number::<usize>(reader)?.checked_sub(1);
        if probing.owner.is_some_and(|owner| owner >= Entries::BITS as usize) {
            return Err(Invalid::new("a protocol that is not in the table"));
        }
        probing.held = if reader.bool()? { Some(Found::load(reader)?) } else { None };
        Ok(probing)
    }

    /// Passes one more datagram of the flow to the probes. `opening` need not contain previous datagrams.
    /// `is_named` is true if a protocol without a parser was recognized, which another one may follow.
    pub(super) fn run_probes<P: Protocols>(
        &mut self,
        opening: &DatagramOpening<'_>,
        now: Timestamp,
        is_named: bool,
    ) -> Answer {
        let (from, bytes, len) = (opening.from, opening.bytes, opening.len);
        let opening = DatagramOpening {
            previous: from.of(&self.previous).as_slice(),
            answered: from.other().of(&self.previous).as_slice(),
            ..*opening
        };
        // After the general window, only the owner of the port is still searched for.
        let is_late = self.count >= PROBE_DATAGRAM_COUNT_MAX && (self.owner.is_some() || !is_named);
        let mut refuted = if is_late { !self.owner.map_or(0, only) } else { self.refuted };
        let before = refuted;
        let mut answer = run_datagram_probes::<P>(&mut refuted, &opening);
        if self.count == 0 && !is_of_port::<P>(&answer, &opening) {
            self.owner = owner::<P>(&opening);
        }
        if !matches!(answer, Answer::Found(_)) {
            if refuted != before {
                let again = refuted & !before & of_ports::<P>(&opening);
                self.doubted |= again;
                refuted &= !again;
            }
            if self.doubted & !refuted != 0 {
                answer = Answer::Undecided;
            }
        }
        if !is_late {
            self.refuted = refuted;
        }
        self.count = self.count.saturating_add(1);
        // The one by which the protocol is recognized is passed to the parser as a whole.
        if !matches!(&answer, Answer::Found(found) if reads_previous::<P>(found)) {
            let previous = from.of_mut(&mut self.previous);
            previous.set(bytes);
            (previous.datagram_len, previous.timestamp) = (u32::try_from(len).unwrap_or(u32::MAX), now);
        }
        match answer {
            Answer::Undecided if self.is_over(is_named) => Answer::Unknown,
            answer => answer,
        }
    }

    /// Returns whether enough datagrams were probed, so that the port identifies the protocol. If datagrams of another
    /// protocol arrived on the port of `owner`, or a protocol without a parser was recognized, the window is longer.
    pub(super) fn is_over(&self, is_named: bool) -> bool {
        let is_doubted = self.owner.is_some_and(|owner| self.doubted & only(owner) != 0);
        self.count
            >= if is_doubted || is_named { RESUME_DATAGRAM_COUNT_MAX } else { PROBE_DATAGRAM_COUNT_MAX }
    }

    /// Excludes a table entry that matched but has no parser from further probing, and waits for a match of `owner`.
    /// Returns the entry if there is no `owner`, so that the entry identifies the flow at once.
    pub(super) fn set_aside(&mut self, found: Found) -> Option<Found> {
        self.refuted |= only(found.entry);
        self.doubted &= !only(found.entry);
        let Some(owner) = self.owner else { return Some(found) };
        // A datagram of another protocol has refuted the owner, or arrived before its first message.
        self.refuted &= !only(owner);
        self.doubted |= only(owner);
        self.held = self.held.or(Some(found));
        None
    }

    /// Returns the table entry that identifies a flow that is still undecided: the one that matched, or else the one to
    /// which the port belongs.
    pub(super) fn decide<P: Protocols>(&self, ports: (u16, u16)) -> Option<Found> {
        let refuted = self.refuted | self.doubted;
        self.held.or_else(|| datagram_by_port::<P>(refuted, ports))
    }
}

/// Returns the table entries to which one of the ports of a datagram belongs.
fn of_ports<P: Protocols>(opening: &DatagramOpening<'_>) -> Entries {
    let datagrams = &Index::of::<P>().datagrams;
    datagrams.of_port(opening.source_port) | datagrams.of_port(opening.destination_port)
}

/// Returns whether the table entry that was found has a parser and one of the ports of the datagram. In this common
/// case, no other entry is probed.
fn is_of_port<P: Protocols>(answer: &Answer, opening: &DatagramOpening<'_>) -> bool {
    let Answer::Found(found) = answer else { return false };
    let is_owner = |ports: &[u16]| ports.iter().any(|port| opening.has_port(*port));
    !is_only_named::<P>(*found)
        && P::TABLE.get(found.entry).is_some_and(|entry| is_owner(entry.protocol.datagram_ports()))
}

/// Returns the index of the table entry with a parser and a probe that has the receiver's port, or else the sender's
/// port.
fn owner<P: Protocols>(opening: &DatagramOpening<'_>) -> Option<usize> {
    let Index { datagrams, parsed, .. } = Index::of::<P>();
    let owners = |port| first(datagrams.of_port(port) & parsed & datagrams.probed);
    owners(opening.destination_port).or_else(|| owners(opening.source_port))
}

/// Returns whether the table entry that was found has no parser, so that the flow is only identified.
pub(super) fn is_only_named<P: Protocols>(found: Found) -> bool {
    P::TABLE.get(found.entry).is_none_or(|entry| !entry.has_parser)
}
