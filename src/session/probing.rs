//! Calls of the probes while the protocol of a flow is undecided.

use super::index::{Entries, Index, Recognized, first, only};
use super::octets::Octets;
use super::preamble::Preamble;
use super::protocol::{DatagramOpening, PROBE_LEN_MAX, Protocol, Role, StreamOpening, Verdict};
use super::protocols::{Entry, Protocols};
use crate::base::{Evidence, Timestamp};
use crate::checkpoint::{Invalid, StateWriter, number};
use crate::codec::Reader;

/// Number of chunks of a stream after which the port identifies the protocol if no probe matched.
pub const PROBE_CHUNK_COUNT_MAX: u8 = 16;

/// The octets of one direction of a stream that are buffered while the probes are undecided.
#[derive(Debug, Default)]
pub(super) struct ProbedOctets {
    /// Stream offset of the first buffered octet; valid only if there are octets.
    pub(super) offset: u64,
    pub(super) bytes: Vec<u8>,
}

/// A chunk of a stream with octets that are buffered while the probes are undecided.
#[derive(Clone, Copy, Debug)]
struct Kept {
    from: Role,
    len: u32,
    timestamp: Timestamp,
}

/// A stream whose protocol is undecided after its first octets.
#[derive(Debug)]
pub(super) struct StreamProbing {
    refuted: Entries,
    pub(super) probed: [ProbedOctets; 2],
    /// The buffered chunks in the order of arrival, so that the parser receives them as if there had been no delay.
    kept: [Kept; PROBE_CHUNK_COUNT_MAX as usize],
    chunk_count: u8,
    /// True if chunks were joined because lines of a server arrive in many of them.
    is_joined: bool,
    pub(super) handover_count: u8,
    /// True if the octets of one of the sides begin in the middle of its stream.
    pub(super) is_picked_up: bool,
    /// True if the client's octets are known to begin without a PROXY protocol header, or the header was removed.
    is_past_preamble: bool,
    /// Length in octets of the PROXY protocol header at the start of the client's octets.
    preamble_len: u64,
    /// The protocol that parses the octets, whichever the probes find.
    pub(super) expected: Option<Found>,
    /// The PROXY protocol header of a stream with an expected protocol. Not charged: at most some hundred octets.
    header: Vec<u8>,
}

impl StreamProbing {
    pub(super) fn new() -> Self {
        let kept = Kept { from: Role::Client, len: 0, timestamp: Timestamp::ZERO };
        Self {
            refuted: 0,
            probed: Default::default(),
            kept: [kept; PROBE_CHUNK_COUNT_MAX as usize],
            chunk_count: 0,
            is_joined: false,
            handover_count: 0,
            is_picked_up: false,
            is_past_preamble: false,
            preamble_len: 0,
            expected: None,
            header: Vec::new(),
        }
    }

    /// Creates the state of a stream whose octets an expected protocol parses.
    pub(super) fn with_expected(expected: Option<Found>) -> Self {
        Self { expected, ..Self::new() }
    }

    /// Returns the stream offset of the application protocol's first octet in a direction: the length of the PROXY
    /// protocol header for the client, zero for the server.
    pub(super) fn start(&self, from: Role) -> u64 {
        if from == Role::Client { self.preamble_len } else { 0 }
    }

    /// Buffers octets of one direction, up to [`PROBE_LEN_MAX`]. Returns whether all of them were buffered.
    pub(super) fn push(&mut self, Octets { from, offset, bytes }: Octets<'_>, timestamp: Timestamp) -> bool {
        if let Some(kept) = self.kept.get_mut(usize::from(self.chunk_count)) {
            *kept = Kept { from, len: bytes.len() as u32, timestamp };
        }
        self.chunk_count = self.chunk_count.saturating_add(1);
        let probed = from.of_mut(&mut self.probed);
        if probed.bytes.is_empty() {
            probed.offset = offset;
        }
        probed.bytes.extend_from_slice(bytes);
        probed.bytes.len() <= PROBE_LEN_MAX && self.chunk_count < PROBE_CHUNK_COUNT_MAX
    }

    /// Joins chunks to make room for others, if the octets may be lines before a protocol. Returns whether there is room.
    #[cold]
    pub(super) fn continues_lines<P: Protocols>(&mut self) -> bool {
        let may_follow = Index::of::<P>().after_lines & !self.refuted != 0;
        let is_short = self.probed.iter().all(|probed| probed.bytes.len() <= PROBE_LEN_MAX);
        if !may_follow || !is_short {
            return false;
        }
        let mut count = 0;
        for place in 0..usize::from(self.chunk_count).min(self.kept.len()) {
            let Some(chunk) = self.kept.get(place).copied() else { break };
            let before = usize::checked_sub(count, 1).and_then(|last| self.kept.get_mut(last));
            if let Some(before) = before.filter(|before| before.from == chunk.from) {
                *before = Kept { len: before.len.saturating_add(chunk.len), ..chunk };
            } else {
                self.kept.iter_mut().skip(count).take(1).for_each(|free| *free = chunk);
                count += 1;
            }
        }
        self.chunk_count = count as u8;
        self.is_joined = true;
        self.chunk_count < PROBE_CHUNK_COUNT_MAX
    }

    /// Returns whether the latest octets are a part of a line in one of many chunks, for which probes are not called.
    pub(super) fn is_within_line(&self, bytes: &[u8]) -> bool {
        self.is_joined && !bytes.contains(&b'\n')
    }

    pub(super) fn run_probes<P: Protocols>(&mut self, ports: (u16, u16)) -> Answer {
        let [client, _] = &mut self.probed;
        if !self.is_past_preamble && !client.bytes.is_empty() {
            match Preamble::read(&client.bytes) {
                Preamble::Partial => {
                    self.join_last_chunks();
                    return Answer::Undecided;
                }
                Preamble::None => {}
                Preamble::Whole(len) => {
                    let header: Vec<u8> = client.bytes.drain(..len).collect();
                    // It is a part of a file.
                    if self.expected.is_some() {
                        self.header = header;
                    }
                    client.offset += len as u64;
                    self.preamble_len = client.offset;
                    self.drop_chunks(len);
                }
            }
            self.is_past_preamble = true;
        }
        let [client, server] = &self.probed;
        if client.bytes.is_empty() && server.bytes.is_empty() {
            return Answer::Undecided;
        }
        run_stream_probes::<P>(
            &mut self.refuted,
            &StreamOpening::new(&client.bytes, &server.bytes, ports.0, ports.1),
        )
    }

    /// Joins the last two buffered chunks if they have the same sender. The parser receives the same octets in the same
    /// order, and a PROXY protocol header in short segments does not use up the number of chunks.
    fn join_last_chunks(&mut self) {
        let Some(last) = usize::from(self.chunk_count).checked_sub(1) else { return };
        if let Some([before, after]) = self
            .kept
            .get_mut(last.saturating_sub(1)..=last)
            .and_then(|pair| <&mut [Kept; 2]>::try_from(pair).ok())
            && before.from == after.from
        {
            *before = Kept { len: before.len.saturating_add(after.len), ..*after };
            self.chunk_count -= 1;
        }
    }

    /// Removes the first `len` octets of the client from the list of buffered chunks.
    fn drop_chunks(&mut self, mut len: usize) {
        for kept in
            self.kept.iter_mut().take(self.chunk_count.into()).filter(|kept| kept.from == Role::Client)
        {
            let dropped_len = len.min(kept.len as usize);
            kept.len -= dropped_len as u32;
            len -= dropped_len;
        }
    }

    /// Returns the PROXY protocol header that was removed from the octets of an expected protocol, and its stream offset.
    pub(super) fn removed_header(&self) -> Option<(u64, &[u8], Timestamp)> {
        let start = self.preamble_len.checked_sub(self.header.len() as u64)?;
        let time = self.kept.first().map(|kept| kept.timestamp)?;
        (!self.header.is_empty()).then_some((start, &self.header, time))
    }

    /// Returns the buffered chunks in the order of arrival: sender, stream offset, octets and capture time.
    pub(super) fn chunks(&self) -> impl Iterator<Item = (Role, u64, &[u8], Timestamp)> {
        let mut passed = [0; 2];
        self.kept.iter().take(self.chunk_count.into()).filter_map(move |kept| {
            let probed = kept.from.of(&self.probed);
            let start = kept.from.of_mut(&mut passed);
            let bytes = probed.bytes.get(*start..*start + kept.len as usize)?;
            let offset = probed.offset + *start as u64;
            *start += bytes.len();
            (!bytes.is_empty()).then_some((kept.from, offset, bytes, kept.timestamp))
        })
    }

    pub(super) fn by_port<P: Protocols>(&self, ports: (u16, u16)) -> Option<Found> {
        stream_by_port::<P>(self.refuted, ports)
    }

    pub(super) fn allocated_len(&self) -> usize {
        size_of::<Self>() + self.probed.iter().map(|probed| probed.bytes.capacity()).sum::<usize>()
    }
}

/// An entry of the protocol table that was found, and the evidence for it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    pub(super) entry: usize,
    pub(super) evidence: Evidence,
    pub(super) is_reversed: bool,
    /// True if a probe before this entry in the table was still undecided when this entry matched.
    pub(super) is_early: bool,
    /// True if another flow announced this one. Such a protocol does not name the flow.
    pub(super) is_expected: bool,
    /// True if the end that listens is not an end of the announcing flow. Content of another protocol is preferred
    /// then: a server could hide the messages of a client to others.
    pub(super) is_foreign: bool,
}

impl Found {
    /// Writes the entry to a checkpoint.
    pub(super) fn save(&self, out: &mut StateWriter<'_>) -> Result<(), Invalid> {
        out.varint(self.entry as u64)?;
        for flag in [
            self.evidence == Evidence::Port,
            self.is_reversed,
            self.is_early,
            self.is_expected,
            self.is_foreign,
        ] {
            out.bool(flag)?;
        }
        Ok(())
    }

    /// Reads an entry from a checkpoint.
    pub(super) fn load(reader: &mut Reader<'_>) -> Result<Self, Invalid> {
        let entry = number(reader)?;
        if entry >= Entries::BITS as usize {
            return Err(Invalid::new("a protocol that is not in the table"));
        }
        Ok(Self {
            entry,
            evidence: if reader.bool()? { Evidence::Port } else { Evidence::Content },
            is_reversed: reader.bool()?,
            is_early: reader.bool()?,
            is_expected: reader.bool()?,
            is_foreign: reader.bool()?,
        })
    }

    /// Returns an entry with the content as evidence.
    pub(super) const fn by_content(entry: usize, is_reversed: bool) -> Self {
        let evidence = Evidence::Content;
        Self { entry, evidence, is_reversed, is_early: false, is_expected: false, is_foreign: false }
    }
}

/// Combined result of the probes of all protocols.
#[derive(Clone, Copy, Debug)]
pub(super) enum Answer {
    Found(Found),
    /// No probe matches so far, but some probes need more octets.
    Undecided,
    /// No probe matches or needs more octets.
    Unknown,
}

/// Calls the probes of all entries that are not refuted for the first octets of a stream.
pub(super) fn run_stream_probes<P: Protocols>(refuted: &mut Entries, opening: &StreamOpening<'_>) -> Answer {
    let Index { streams, .. } = Index::of::<P>();
    let possible = || streams.beginning_with(opening.client) | streams.beginning_with(opening.server);
    run_probes::<P>((0, streams.probed), possible, refuted, |protocol| protocol.probe_stream(opening))
}

/// Calls the probes of all entries that are not refuted for a datagram.
#[inline]
pub(super) fn run_datagram_probes<P: Protocols>(
    refuted: &mut Entries,
    opening: &DatagramOpening<'_>,
) -> Answer {
    let Index { datagrams, first_parsed, .. } = Index::of::<P>();
    let possible = || datagrams.beginning_with(opening.bytes);
    let probed = (datagrams.probed & first_parsed, datagrams.probed & !first_parsed);
    run_probes::<P>(probed, possible, refuted, |protocol| protocol.probe_datagram(opening))
}

/// Calls the probes of those entries that are not refuted, in the order of the protocol table: the `first` ones, which are
/// before the `others`, then of the others those that are `possible`. While none is refuted, the others are refuted by the
/// first octets, without a call; later, few are left.
#[inline]
fn run_probes<P: Protocols>(
    (first, others): (Entries, Entries),
    possible: impl Fn() -> Entries,
    refuted: &mut Entries,
    probe: impl Fn(&Protocol) -> Verdict,
) -> Answer {
    let verdict =
        |place: usize| P::TABLE.get(place).map_or(Verdict::No, |entry: &Entry| probe(entry.protocol));
    let before = *refuted;
    let mut is_undecided = false;
    let (mut left, mut others) = (first & !before, others & !before);
    loop {
        while left != 0 {
            let place = left.trailing_zeros() as usize;
            let rest = left & (left - 1);
            let bit = left ^ rest;
            left = rest;
            let is_reversed = match verdict(place) {
                Verdict::No => {
                    *refuted |= bit;
                    continue;
                }
                Verdict::More => {
                    is_undecided = true;
                    continue;
                }
                Verdict::Match => false,
                Verdict::MatchReversed => true,
            };
            if others == 0 && before == 0 {
                // Entries after the one that was found are not examined.
                *refuted &= bit - 1;
            }
            let is_early = is_undecided;
            return Answer::Found(Found { is_early, ..Found::by_content(place, is_reversed) });
        }
        if others == 0 {
            break;
        }
        if before == 0 {
            let excluded = others & !possible();
            debug_assert!(
                (0..P::TABLE.len()).all(|place| excluded & only(place) == 0 || verdict(place) == Verdict::No),
                "a probe recognizes octets that its protocol does not declare to begin with"
            );
            *refuted |= excluded;
            others &= !excluded;
        }
        left = std::mem::take(&mut others);
    }
    if is_undecided { Answer::Undecided } else { Answer::Unknown }
}

/// Returns the first entry of the protocol table that was not refuted and has the server's TCP port, or else the
/// client's.
pub(super) fn stream_by_port<P: Protocols>(refuted: Entries, ports: (u16, u16)) -> Option<Found> {
    by_port(&Index::of::<P>().streams, ports, !refuted)
}

/// Returns the first entry of the protocol table that was not refuted and has the server's UDP port, or else the
/// client's.
pub(super) fn datagram_by_port<P: Protocols>(refuted: Entries, ports: (u16, u16)) -> Option<Found> {
    by_port(&Index::of::<P>().datagrams, ports, !refuted)
}

/// Returns the first of the given entries that has the server's port, or else the client's.
pub(super) fn by_port(
    recognized: &Recognized,
    (client, server): (u16, u16),
    among: Entries,
) -> Option<Found> {
    [(server, false), (client, true)].into_iter().find_map(|(port, is_reversed)| {
        let entry = first(recognized.of_port(port) & among)?;
        Some(Found { evidence: Evidence::Port, ..Found::by_content(entry, is_reversed) })
    })
}
