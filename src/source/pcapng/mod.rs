//! pcapng files (draft-ietf-opsawg-pcapng): reads their blocks and describes the frames in them without
//! copying.

mod interface;
mod options;
mod time;

use std::collections::HashMap;

use interface::Port;
use options::{half, word};
pub use time::TimeResolution;

use super::memory::{Charge, Memory};
use super::stats::SourceStats;
use super::walk::{Candidate, Sinks};
use super::warning::{BadBlock, Stop};
use crate::base::{Limits, Timestamp};

/// Type of a Section Header Block, which is the same in both byte orders.
pub(super) const SECTION_TYPE: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];

/// Byte-order magic of a section header, which follows the length field and is in the byte order of the
/// section.
const BYTE_ORDER_MAGIC: u32 = 0x1a2b_3c4d;

/// Length of the smallest possible block, in octets.
const BLOCK_LEN_MIN: u32 = 12;
const SECTION_LEN_MIN: u32 = 28;

/// Number of octets before the body of a block: the type and total length fields.
const BODY_START: usize = 8;

/// Memory of an interface of the current section, in bytes: its fields, and its entry in the map of
/// descriptions.
const PORT_BYTES: u64 = (size_of::<Port>() + 2 * size_of::<(u64, u32)>() + 2) as u64;

/// Number of interfaces of a section for which memory is allocated initially, and for which it is kept when
/// another section begins.
const PORT_COUNT_MIN: usize = 8;

mod block_type {
    pub(super) const INTERFACE: u32 = 1;
    pub(super) const OBSOLETE_PACKET: u32 = 2;
    pub(super) const SIMPLE_PACKET: u32 = 3;
    pub(super) const NAME_RESOLUTION: u32 = 4;
    pub(super) const INTERFACE_STATISTICS: u32 = 5;
    pub(super) const ENHANCED_PACKET: u32 = 6;
    pub(super) const SYSTEMD_JOURNAL: u32 = 9;
    pub(super) const DECRYPTION_SECRETS: u32 = 10;
    pub(super) const CUSTOM: u32 = 0xbad;
    pub(super) const CUSTOM_NOT_TO_COPY: u32 = 0x4000_0bad;
}

/// State of reading a pcapng file: the current section and its interfaces.
#[derive(Debug)]
pub(super) struct Pcapng {
    big_endian: bool,
    /// Interfaces of the current section, by their index in the section.
    ports: Vec<Port>,
    /// Number of interfaces of the current section with the same description, for each hash of a description.
    alike: HashMap<u64, u32>,
    charge: Charge,
    block_len_max: u32,
    frame_len_max: u32,
    interface_count_max: u32,
}

/// Reason that reading blocks in one byte order ended.
enum Pause {
    /// There is a section header at the returned offset, which may change the byte order.
    Section,
    Stop(Stop),
}

/// Fields of a pcapng block that contains a frame. The frame starts `data_at` octets after the start of the
/// block's body.
struct Packet {
    interface: u32,
    units: Option<u64>,
    captured_len: u32,
    wire_len: u32,
    data_at: usize,
}

/// Returns the byte order (true for big-endian) and the length of the section header at the start of `bytes`.
pub(super) fn section_head(bytes: &[u8]) -> Result<(bool, u32), Stop> {
    let (words, _) = bytes.as_chunks::<4>();
    let [_, len, magic, version, ..] = words else {
        return Err(Stop::Need(16));
    };
    let [a, b, c, d] = *version;
    let (big_endian, len, major, minor) = if u32::from_be_bytes(*magic) == BYTE_ORDER_MAGIC {
        (true, word::<true>(*len), half::<true>([a, b]), half::<true>([c, d]))
    } else if u32::from_le_bytes(*magic) == BYTE_ORDER_MAGIC {
        (false, word::<false>(*len), half::<false>([a, b]), half::<false>([c, d]))
    } else {
        return Err(Stop::Bad(BadBlock::ByteOrder(u32::from_be_bytes(*magic))));
    };
    if len < SECTION_LEN_MIN {
        return Err(Stop::Bad(BadBlock::TotalLen(len)));
    }
    // Some programs write minor version 2 instead of 0.
    if major != 1 || !matches!(minor, 0 | 2) {
        return Err(Stop::Bad(BadBlock::Version { major, minor }));
    }
    Ok((big_endian, len))
}

impl Pcapng {
    pub(super) fn new(limits: &Limits, memory: &Memory) -> Self {
        Self {
            big_endian: false,
            ports: Vec::new(),
            alike: HashMap::new(),
            charge: memory.charge(),
            block_len_max: limits.block_len_max,
            frame_len_max: limits.frame_len_max,
            interface_count_max: limits.interface_count_max,
        }
    }

    /// Implements [`Format::walk`](super::head::Format::walk) for pcapng: describes the frames of all
    /// complete blocks in `bytes` from the offset `at` on.
    pub(super) fn walk(&mut self, bytes: &[u8], mut at: usize, sinks: &mut Sinks<'_, '_>) -> (usize, Stop) {
        loop {
            let (position, pause) = if self.big_endian {
                self.blocks::<true>(bytes, at, sinks)
            } else {
                self.blocks::<false>(bytes, at, sinks)
            };
            let stop = match pause {
                Pause::Section => match self.section(bytes.get(position..).unwrap_or_default()) {
                    Ok(len) => {
                        sinks.tally.stats.section_count += 1;
                        at = position + len;
                        continue;
                    }
                    Err(stop) => stop,
                },
                Pause::Stop(stop) => stop,
            };
            return (position, stop);
        }
    }

    /// Starts the section whose header is at the start of `bytes`. Returns the length of the header in
    /// octets.
    fn section(&mut self, bytes: &[u8]) -> Result<usize, Stop> {
        let (big_endian, len) = section_head(bytes)?;
        if big_endian {
            self.whole_block::<true>(bytes, len)?;
        } else {
            self.whole_block::<false>(bytes, len)?;
        }
        self.big_endian = big_endian;
        self.ports.clear();
        self.alike.clear();
        // A section with many interfaces must not increase the cost of later sections.
        if self.ports.capacity() > PORT_COUNT_MIN {
            (self.ports, self.alike) = (Vec::new(), HashMap::new());
            self.charge.set(0).map_err(Stop::NoMemory)?;
        }
        Ok(len as usize)
    }

    /// Returns the body of the block of `len` octets at the start of `bytes`, if the block is complete and
    /// its two length fields are equal.
    #[inline]
    fn whole_block<'a, const BIG_ENDIAN: bool>(&self, bytes: &'a [u8], len: u32) -> Result<&'a [u8], Stop> {
        if len < BLOCK_LEN_MIN || !len.is_multiple_of(4) {
            return Err(Stop::Bad(BadBlock::TotalLen(len)));
        }
        if len > self.block_len_max {
            return Err(Stop::Bad(BadBlock::TooLong(len)));
        }
        let need = Stop::Need(len as usize);
        let body = bytes.get(BODY_START..len as usize).ok_or(need)?;
        let (body, trailer) = body.split_last_chunk::<4>().ok_or(need)?;
        let trailing = word::<BIG_ENDIAN>(*trailer);
        if trailing == len { Ok(body) } else { Err(Stop::Bad(BadBlock::Trailer { leading: len, trailing })) }
    }

    /// Implements [`Format::candidate`](super::head::Format::candidate) for pcapng.
    pub(super) fn candidate(&self, bytes: &[u8]) -> Option<Candidate> {
        if self.big_endian { self.candidate_in::<true>(bytes) } else { self.candidate_in::<false>(bytes) }
    }

    fn candidate_in<const BIG_ENDIAN: bool>(&self, bytes: &[u8]) -> Option<Candidate> {
        let (words, _) = bytes.as_chunks::<4>();
        let [block_type, len, ..] = words else { return None };
        let len = word::<BIG_ENDIAN>(*len);
        let body = match self.whole_block::<BIG_ENDIAN>(bytes, len) {
            Ok(body) => Some(body),
            // The window ends within the block.
            Err(Stop::Need(_)) => None,
            Err(_) => return None,
        };
        let candidate = |time| Some(Candidate { len: len as usize, time });
        match word::<BIG_ENDIAN>(*block_type) {
            block_type::ENHANCED_PACKET => {
                let Some(body) = body else { return candidate(None) };
                let packet = enhanced::<BIG_ENDIAN>(body)?;
                let is_complete = packet.data_at + packet.captured_len as usize <= body.len();
                let is_known = (packet.interface as usize) < self.ports.len();
                if is_complete && is_known { candidate(packet.units) } else { None }
            }
            block_type::INTERFACE..=block_type::INTERFACE_STATISTICS
            | block_type::DECRYPTION_SECRETS
            | block_type::CUSTOM
            | block_type::CUSTOM_NOT_TO_COPY => candidate(None),
            _ => None,
        }
    }

    /// Returns whether blocks are read in the same byte order and with the same interfaces.
    pub(super) fn agrees_with(&self, other: &Self) -> bool {
        self.big_endian == other.big_endian && self.ports == other.ports
    }

    fn blocks<const BIG_ENDIAN: bool>(
        &mut self,
        bytes: &[u8],
        mut at: usize,
        sinks: &mut Sinks<'_, '_>,
    ) -> (usize, Pause) {
        loop {
            let rest = bytes.get(at..).unwrap_or_default();
            let (words, _) = rest.as_chunks::<4>();
            let [block_type, len, _, ..] = words else {
                return (at, Pause::Stop(Stop::Need(BLOCK_LEN_MIN as usize)));
            };
            if *block_type == SECTION_TYPE {
                return (at, Pause::Section);
            }
            let len = word::<BIG_ENDIAN>(*len);
            let body = match self.whole_block::<BIG_ENDIAN>(rest, len) {
                Ok(body) => body,
                Err(stop) => return (at, Pause::Stop(stop)),
            };
            let packet = match word::<BIG_ENDIAN>(*block_type) {
                block_type::ENHANCED_PACKET => enhanced::<BIG_ENDIAN>(body),
                block_type::SIMPLE_PACKET => self.simple::<BIG_ENDIAN>(body),
                block_type::OBSOLETE_PACKET => obsolete::<BIG_ENDIAN>(body),
                block_type::INTERFACE => match self.interface::<BIG_ENDIAN>(body, len, sinks) {
                    Ok(()) => {
                        at += len as usize;
                        continue;
                    }
                    Err(stop) => return (at, Pause::Stop(stop)),
                },
                other => {
                    skip(other, &mut sinks.tally.stats);
                    at += len as usize;
                    continue;
                }
            };
            let described = packet
                .ok_or(BadBlock::TotalLen(len))
                .and_then(|packet| self.describe(&packet, at + BODY_START, body, sinks));
            if let Err(bad) = described {
                return (at, Pause::Stop(Stop::Bad(bad)));
            }
            at += len as usize;
        }
    }

    #[inline]
    fn describe(
        &self,
        packet: &Packet,
        body_at: usize,
        body: &[u8],
        Sinks { out, tally, .. }: &mut Sinks<'_, '_>,
    ) -> Result<(), BadBlock> {
        let &Packet { interface, units, captured_len, wire_len, data_at } = packet;
        let port = self.ports.get(interface as usize).ok_or(BadBlock::UnknownInterface(interface))?;
        if captured_len > self.frame_len_max {
            return Err(BadBlock::FrameTooLong(captured_len));
        }
        let have = body.len() - data_at.min(body.len());
        if captured_len as usize > have {
            return Err(BadBlock::FrameLen { need: captured_len, have: have as u32 });
        }
        let timestamp = match units {
            Some(units) => {
                let timestamp = port.clock.timestamp(units);
                tally.timed_frame(timestamp, captured_len, wire_len);
                timestamp
            }
            None => {
                tally.untimed_frame(captured_len, wire_len);
                Timestamp::ZERO
            }
        };
        out.push(body_at + data_at, captured_len, wire_len, timestamp, port.link_type, port.number);
        Ok(())
    }

    fn interface<const BIG_ENDIAN: bool>(
        &mut self,
        body: &[u8],
        len: u32,
        Sinks { tally, interfaces, .. }: &mut Sinks<'_, '_>,
    ) -> Result<(), Stop> {
        if self.ports.len() >= self.interface_count_max as usize {
            return Err(Stop::Bad(BadBlock::TooManyInterfaces));
        }
        let read = interface::read::<BIG_ENDIAN>(body);
        let (interface, mut port) = read.ok_or(Stop::Bad(BadBlock::TotalLen(len)))?;
        if self.ports.len() == self.ports.capacity() {
            let count = (self.ports.capacity() * 2).max(PORT_COUNT_MIN);
            self.charge.set(count as u64 * PORT_BYTES).map_err(Stop::NoMemory)?;
            self.ports.reserve_exact(count - self.ports.len());
        }
        let hash = interfaces.hash(&interface);
        let alike_count = self.alike.entry(hash).or_insert(0);
        let numbered = interfaces.number(interface, hash, *alike_count);
        *alike_count += 1;
        tally.stats.unnamed_interface_count += u64::from(!numbered.is_complete);
        port.number = numbered.number;
        self.ports.push(port);
        Ok(())
    }

    /// Reads the body of a Simple Packet Block (draft-ietf-opsawg-pcapng section 4.4), which has no
    /// timestamp, belongs to interface 0, and contains data up to the snap length of that interface.
    fn simple<const BIG_ENDIAN: bool>(&self, body: &[u8]) -> Option<Packet> {
        let wire_len = word::<BIG_ENDIAN>(*body.first_chunk::<4>()?);
        let snap_len = self.ports.first().map_or(u32::MAX, |port| port.snap_len);
        Some(Packet { interface: 0, units: None, captured_len: wire_len.min(snap_len), wire_len, data_at: 4 })
    }
}

/// Reads the body of an Enhanced Packet Block (draft-ietf-opsawg-pcapng section 4.3).
#[inline]
fn enhanced<const BIG_ENDIAN: bool>(body: &[u8]) -> Option<Packet> {
    let (words, _) = body.as_chunks::<4>();
    let [interface, high, low, captured_len, wire_len, ..] = words else {
        return None;
    };
    Some(Packet {
        interface: word::<BIG_ENDIAN>(*interface),
        units: Some(u64::from(word::<BIG_ENDIAN>(*high)) << 32 | u64::from(word::<BIG_ENDIAN>(*low))),
        captured_len: word::<BIG_ENDIAN>(*captured_len),
        wire_len: word::<BIG_ENDIAN>(*wire_len),
        data_at: 20,
    })
}

/// Reads the body of an obsolete Packet Block (draft-ietf-opsawg-pcapng appendix A), which was used before
/// 2004: as in an Enhanced Packet Block, but half of the interface field is a drop counter.
fn obsolete<const BIG_ENDIAN: bool>(body: &[u8]) -> Option<Packet> {
    let [a, b, ..] = *body.first_chunk::<4>()?;
    let interface = u32::from(half::<BIG_ENDIAN>([a, b]));
    enhanced::<BIG_ENDIAN>(body).map(|packet| Packet { interface, ..packet })
}

/// Counts a skipped block, which contains no frame, by its type.
fn skip(block_type: u32, stats: &mut SourceStats) {
    let counter = match block_type {
        block_type::NAME_RESOLUTION => &mut stats.name_resolution_block_count,
        block_type::INTERFACE_STATISTICS => &mut stats.interface_statistics_block_count,
        block_type::DECRYPTION_SECRETS => &mut stats.decryption_secrets_block_count,
        block_type::SYSTEMD_JOURNAL => &mut stats.systemd_journal_block_count,
        block_type::CUSTOM | block_type::CUSTOM_NOT_TO_COPY => &mut stats.custom_block_count,
        _ => &mut stats.unknown_block_count,
    };
    *counter += 1;
}

#[cfg(test)]
mod tests;
