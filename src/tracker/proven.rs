//! The initiators that handshakes proved of connections whose idle timeout has passed.
//!
//! Later segments of such a connection are another flow, which has no handshake. It keeps the direction if it is still
//! known here: there is one entry for each value of twelve bits of a hash of the key, for the latest such connection.

use std::sync::LazyLock;

use ahash::RandomState;

use crate::base::{DirectionEvidence, FlowKey, Side};
use crate::checkpoint::{Invalid, StateWriter, number};
use crate::codec::Reader;

const ENTRY_COUNT: usize = 1 << 12;

/// The hash has no secret: an attacker can only make the tracker forget a direction. The same directions are known in each
/// run.
static HASHER: LazyLock<RandomState> = LazyLock::new(|| RandomState::with_seeds(1, 2, 3, 4));

/// A table of 16 KiB, allocated for the first entry.
#[derive(Debug, Default)]
pub(super) struct Proven(Vec<u32>);

/// Returns the place of a key in the table, and its entry: bits of the hash, of which one is set so that no entry is zero,
/// the side of the initiator, and whether the evidence is a SYN.
fn place_and_tag(key: &FlowKey) -> (usize, u32) {
    let hash = HASHER.hash_one(key);
    ((hash >> 52) as usize % ENTRY_COUNT, (hash as u32 | 4) & !3)
}

impl Proven {
    /// Records the initiator of a connection, if a handshake proved it.
    #[cold]
    pub(super) fn note(&mut self, key: &FlowKey, initiator: Side, evidence: DirectionEvidence) {
        if evidence < DirectionEvidence::SynAck {
            return;
        }
        if self.0.is_empty() {
            self.0 = vec![0; ENTRY_COUNT];
        }
        let (place, tag) = place_and_tag(key);
        let direction = initiator.index() as u32 | u32::from(evidence == DirectionEvidence::Syn) << 1;
        if let Some(entry) = self.0.get_mut(place) {
            *entry = tag | direction;
        }
    }

    /// Returns the initiator of an earlier connection with a key, and the evidence for it.
    #[inline]
    pub(super) fn get(&self, key: &FlowKey) -> Option<(Side, DirectionEvidence)> {
        if self.0.is_empty() { None } else { self.find(key) }
    }

    #[inline(never)]
    fn find(&self, key: &FlowKey) -> Option<(Side, DirectionEvidence)> {
        let (place, tag) = place_and_tag(key);
        let entry = self.0.get(place).copied().filter(|entry| entry & !3 == tag)?;
        let side = if entry & 1 == 0 { Side::A } else { Side::B };
        Some((side, if entry & 2 == 0 { DirectionEvidence::SynAck } else { DirectionEvidence::Syn }))
    }

    /// Writes the entries to a checkpoint.
    pub(super) fn save(&self, out: &mut StateWriter<'_>) -> Result<(), Invalid> {
        let entries = || self.0.iter().enumerate().filter(|(_, entry)| **entry != 0);
        out.varint(entries().count() as u64)?;
        for (place, entry) in entries() {
            out.varint(place as u64)?;
            out.be(*entry)?;
        }
        Ok(())
    }

    /// Reads entries from a checkpoint.
    pub(super) fn load(reader: &mut Reader<'_>) -> Result<Self, Invalid> {
        let mut proven = Self::default();
        for _ in 0..number::<u16>(reader)? {
            let (place, entry) = (number::<usize>(reader)?, reader.be()?);
            if proven.0.is_empty() {
                proven.0 = vec![0; ENTRY_COUNT];
            }
            *proven.0.get_mut(place).ok_or(Invalid::new("a direction at no place"))? = entry;
        }
        Ok(proven)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::IpProtocol;
    use crate::checkpoint::StateWriter;

    fn key(port: u16) -> FlowKey {
        FlowKey::new(IpProtocol::TCP, ([192, 0, 2, 1].into(), port), ([192, 0, 2, 2].into(), 443)).0
    }

    #[test]
    fn the_latest_directions_are_known_also_after_a_checkpoint() {
        let mut proven = Proven::default();
        assert_eq!(proven.get(&key(1)), None);
        proven.note(&key(1), Side::A, DirectionEvidence::ServicePort);
        assert_eq!(proven.get(&key(1)), None, "only a handshake is a proof");
        for (port, side, evidence) in [
            (1, Side::A, DirectionEvidence::Syn),
            (2, Side::B, DirectionEvidence::SynAck),
            (1, Side::B, DirectionEvidence::Syn),
        ] {
            proven.note(&key(port), side, evidence);
            assert_eq!(proven.get(&key(port)), Some((side, evidence)));
        }
        let mut octets = Vec::new();
        proven.save(&mut StateWriter::growing(&mut octets)).unwrap();
        let loaded = Proven::load(&mut Reader::new(&octets)).unwrap();
        for port in 1..4 {
            assert_eq!(loaded.get(&key(port)), proven.get(&key(port)));
        }
        // The memory is bounded, and no other key is taken for one of them.
        (0..60_000).for_each(|port| proven.note(&key(port), Side::A, DirectionEvidence::Syn));
        assert_eq!(proven.0.len(), ENTRY_COUNT);
        let known_count = (0..60_000).filter(|port| proven.get(&key(*port)).is_some()).count();
        assert!(known_count <= ENTRY_COUNT);
        let other = |port| {
            FlowKey::new(IpProtocol::TCP, ([192, 0, 2, 3].into(), port), ([192, 0, 2, 2].into(), 443)).0
        };
        assert!((0..60_000).all(|port| proven.get(&other(port)).is_none()));
    }
}
