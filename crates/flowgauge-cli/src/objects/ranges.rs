//! Ranges of one entity, which are joined to one object (RFC 9110 section 14).

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;

use flowgauge::Role;
use flowgauge::transaction::{File, SNIFFED_LEN};
use sha2::{Digest as _, Sha256};

use super::flow::{FlowFacts, Incoming, Key, Request};
use super::folder::{Content, Folder, OPEN_LEN};
use crate::console::Failure;

/// Maximum number of entities that are not complete. At the limit, the first one is written with gaps.
const ENTITIES_MAX: usize = 256;

/// Maximum number of pieces of all entities. At the limit, the first entity is written with gaps.
const PIECES_MAX: usize = 4096;

/// Memory in bytes of a node of a tree with entries of this size. Nodes have at least five entries, except for the root.
const fn node_len(entry_len: usize) -> usize {
    11 * entry_len + 112
}

/// Maximum memory in bytes of a piece.
const PIECE_LEN: usize = node_len(size_of::<(u64, Content)>()) / 5 + SNIFFED_LEN + OPEN_LEN;

/// Memory in bytes of an entity without its pieces and texts: in the tree, in the table, of which half may be free, and the
/// root of the tree of pieces.
const ENTITY_LEN: usize = node_len(size_of::<(u64, (Identity, Entity))>()) / 5
    + 3 * size_of::<(Identity, u64)>()
    + node_len(size_of::<(u64, Content)>());

/// Memory in bytes that entities may always have, even if there is none.
const HELD_MIN: usize = 256 << 10;

/// Part of the memory that entities may have.
const MEMORY_PART: usize = 4;

/// Maximum number of ranges with gaps between them that a row lists.
const LISTED_MAX: usize = 64;

/// Octets of a row that another range permits.
pub(super) const RANGE_LEN: usize = 48;

/// Octets of a row without its texts.
const ROW_LEN: usize = 1024;

/// Identifies an entity by a digest.
pub(super) type Identity = [u8; 32];

/// The range of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Range {
    pub(super) start: u64,
    pub(super) len: u64,
    pub(super) complete_len: Option<u64>,
}

impl Range {
    pub(super) fn of_file(file: &File) -> Option<Self> {
        let (start, len) = (file.range_start?, file.range_len?);
        Some(Self { start, len, complete_len: file.complete_len })
    }

    /// Returns the range of a whole representation, of which the beginning may have been received.
    pub(super) fn of_whole(len: u64) -> Self {
        Self { start: 0, len, complete_len: Some(len) }
    }

    /// Returns the identity of the entity: host, target, validators, coding, complete length and direction. Without a host,
    /// the address of the server takes its place.
    pub(super) fn identity(
        &self,
        flow: &FlowFacts,
        (key, request): (Key, &Request),
        content_encoding: Option<&str>,
    ) -> Identity {
        let (address, port) =
            flow.end(if key.sender() == Role::Server { key.sender() } else { Role::Server });
        let server = || format!("{address} {}", port.unwrap_or_default());
        let texts = [
            Some(request.host.as_deref().map_or_else(server, str::to_ascii_lowercase)),
            request.target.as_deref().map(str::to_owned),
            request.validator.as_deref().map(str::to_owned),
            content_encoding.map(str::to_ascii_lowercase),
            self.complete_len.map(|len| len.to_string()),
            Some(key.sender().name().to_owned()),
        ];
        let mut digest = Sha256::new();
        for text in texts {
            let len = text.as_ref().map_or(u64::MAX, |text| text.len() as u64);
            digest.update(len.to_be_bytes());
            digest.update(text.unwrap_or_default());
        }
        digest.finalize().into()
    }
}

/// Texts of the description of an object.
#[derive(Clone, Debug, Default)]
pub(super) struct Texts {
    pub(super) name: Option<Box<str>>,
    pub(super) content_type: Option<Box<str>>,
    pub(super) content_encoding: Option<Box<str>>,
}

/// An entity of which ranges were received.
#[derive(Debug)]
pub(super) struct Entity {
    pub(super) key: Key,
    pub(super) flow: FlowFacts,
    /// The first range without its octets.
    pub(super) incoming: Incoming,
    pub(super) texts: Texts,
    /// Number of the transaction of the first range.
    pub(super) number: u64,
    /// True if the first range is the beginning of a body without a range.
    is_prefix: bool,
    pub(super) complete_len: Option<u64>,
    /// Octets by their positions. They do not overlap.
    pieces: BTreeMap<u64, Content>,
    /// Octets of all pieces.
    len: u64,
    pub(super) range_count: u64,
    /// Octets of the row that flows have paid for.
    pub(super) row_len_max: u64,
}

/// Gaps of an entity.
#[derive(Clone, Debug, Default)]
pub(super) struct Gaps {
    pub(super) start: u64,
    pub(super) count: u64,
    pub(super) missing_len: u64,
    /// The ranges that were received, if there are gaps, such as `0-19,40-59`.
    pub(super) ranges: Option<String>,
    /// True if octets are missing between others.
    pub(super) is_divided: bool,
}

impl Entity {
    pub(super) fn new(
        (key, flow, incoming): (Key, FlowFacts, Incoming),
        texts: Texts,
        (number, is_prefix): (u64, bool),
        complete_len: Option<u64>,
    ) -> Self {
        let pieces = BTreeMap::new();
        Self {
            key,
            flow,
            incoming,
            texts,
            number,
            is_prefix,
            complete_len,
            pieces,
            len: 0,
            range_count: 0,
            row_len_max: 0,
        }
    }

    /// Returns the length in octets that the row may have.
    pub(super) fn row_len(&self) -> usize {
        let Request { host, target, .. } = &self.incoming.request;
        let Texts { name, content_type, content_encoding } = &self.texts;
        let texts = [host, target, name, content_type, content_encoding];
        ROW_LEN + texts.into_iter().flatten().map(|text| text.len()).sum::<usize>()
    }

    /// Returns the memory of the entity in bytes without its pieces.
    fn held_len(&self) -> usize {
        let Texts { name, content_type, content_encoding } = &self.texts;
        let texts = [name, content_type, content_encoding].into_iter().flatten();
        ENTITY_LEN + self.incoming.request.heap_len() + texts.map(|text| text.len()).sum::<usize>()
    }

    fn is_complete(&self) -> bool {
        self.complete_len == Some(self.len)
    }

    /// Returns the gaps before, between and after the pieces.
    pub(super) fn gaps(&self) -> Gaps {
        let mut runs: Vec<(u64, u64)> = Vec::new();
        for (start, piece) in &self.pieces {
            match runs.last_mut() {
                Some((_, end)) if end == start => *end += piece.len,
                _ => runs.push((*start, start + piece.len)),
            }
        }
        let (start, end) = (runs.first().map_or(0, |run| run.0), runs.last().map_or(0, |run| run.1));
        let after_len = self.complete_len.map_or(0, |len| len.saturating_sub(end));
        let count = u64::from(start > 0) + u64::from(after_len > 0) + (runs.len() as u64).saturating_sub(1);
        let mut ranges = String::new();
        for (start, end) in runs.iter().take(LISTED_MAX) {
            let comma = if ranges.is_empty() { "" } else { "," };
            let _ = write!(ranges, "{comma}{start}-{}", end.saturating_sub(1));
        }
        Gaps {
            start,
            count,
            missing_len: (end + after_len).saturating_sub(self.len),
            ranges: (count > 0).then_some(ranges),
            is_divided: runs.len() > 1,
        }
    }

    /// Returns whether the only octets are those of a body without a range, which is cut.
    pub(super) fn is_body(&self) -> bool {
        self.is_prefix && self.range_count == 1
    }

    /// Takes the octets in the order of their positions.
    pub(super) fn take_pieces(&mut self) -> impl Iterator<Item = Content> + use<> {
        std::mem::take(&mut self.pieces).into_values()
    }

    /// Adds the octets of a range, or returns them if they contradict those of another range.
    fn add(&mut self, folder: &mut Folder, start: u64, content: Content) -> Result<Option<Content>, Failure> {
        let end = start.saturating_add(content.len);
        // The parts of the range between the pieces.
        let (mut free, mut position) = (Vec::new(), start);
        let before = self.pieces.range(..start).next_back();
        for (piece_start, piece) in before.into_iter().chain(self.pieces.range(start..end)) {
            let piece_end = piece_start + piece.len;
            let (from, to) = (position.max(*piece_start), end.min(piece_end));
            if from >= to {
                continue;
            }
            let [place, other] = [(&content, from - start), (piece, from - piece_start)];
            if !folder.is_same(place, other, to - from)? {
                return Ok(Some(content));
            }
            if position < from {
                free.push((position, from));
            }
            position = to;
        }
        if position < end {
            free.push((position, end));
        }
        self.range_count += 1;
        self.len += free.iter().map(|(from, to)| to - from).sum::<u64>();
        let is_adjacent = before.is_some_and(|(from, piece)| from + piece.len == start);
        if free == [(start, end)] && !is_adjacent {
            self.pieces.insert(start, content);
            return Ok(None);
        }
        for (from, to) in free {
            let mut preceding = self.pieces.range_mut(..from).next_back();
            let adjacent = preceding.as_mut().filter(|(start, piece)| *start + piece.len == from);
            match adjacent {
                Some((_, piece)) => folder.append_from(piece, (&content, from - start), to - from)?,
                None => {
                    let mut piece = folder.begin_another();
                    folder.append_from(&mut piece, (&content, from - start), to - from)?;
                    self.pieces.insert(from, piece);
                }
            }
        }
        folder.discard(&content);
        Ok(None)
    }
}

/// Entities of which ranges were received, and that are not complete.
#[derive(Debug, Default)]
pub(super) struct Ranges {
    numbers: HashMap<Identity, u64>,
    entities: BTreeMap<u64, (Identity, Entity)>,
    begun_count: u64,
    piece_count: usize,
    /// Memory in bytes of the entities without their pieces.
    entities_len: usize,
    /// Memory in bytes that the entities may have.
    held_max: usize,
}

impl Ranges {
    /// Returns the memory of all entities in bytes.
    pub(super) const fn held_len(&self) -> usize {
        self.entities_len + self.piece_count * PIECE_LEN
    }

    /// Notes how many bytes of memory are left.
    pub(super) fn set_left(&mut self, left: usize) {
        self.held_max = (self.held_len().saturating_add(left) / MEMORY_PART).max(HELD_MIN);
    }

    /// Returns the first entity if there are as many, or as many pieces, or as much memory of them, as permitted.
    pub(super) fn excess(&mut self, identity: &Identity) -> Option<Entity> {
        let is_new = !self.numbers.contains_key(identity);
        let is_full = is_new && self.entities.len() >= ENTITIES_MAX
            || self.piece_count >= PIECES_MAX
            || self.held_len() > self.held_max;
        if is_full { self.take_first() } else { None }
    }

    /// Returns the first entity.
    pub(super) fn take_first(&mut self) -> Option<Entity> {
        let (_, (identity, entity)) = self.entities.pop_first()?;
        self.numbers.remove(&identity);
        self.piece_count -= entity.pieces.len();
        self.entities_len -= entity.held_len();
        Some(entity)
    }

    /// Returns an entity, which is created if it is not known.
    pub(super) fn entity(&mut self, identity: Identity, create: impl FnOnce() -> Entity) -> &mut Entity {
        let number = *self.numbers.entry(identity).or_insert_with(|| {
            self.begun_count += 1;
            self.begun_count
        });
        let entry = self.entities.entry(number).or_insert_with(|| {
            let entity = create();
            self.entities_len += entity.held_len();
            (identity, entity)
        });
        &mut entry.1
    }

    /// Adds the octets of a range to its entity. Returns those that contradict others, and the entity if it is complete.
    pub(super) fn add(
        &mut self,
        folder: &mut Folder,
        identity: &Identity,
        (start, content): (u64, Content),
    ) -> Result<(Option<Content>, Option<Entity>), Failure> {
        let Some(number) = self.numbers.get(identity).copied() else { return Ok((Some(content), None)) };
        let Some((_, entity)) = self.entities.get_mut(&number) else { return Ok((Some(content), None)) };
        if !folder.has_room(entity.len, content.len) {
            return Ok((Some(content), None));
        }
        let count = entity.pieces.len();
        let refused = entity.add(folder, start, content)?;
        self.piece_count = self.piece_count + entity.pieces.len() - count;
        if !entity.is_complete() {
            return Ok((refused, None));
        }
        self.numbers.remove(identity);
        let entity = self.entities.remove(&number).map(|(_, entity)| entity);
        if let Some(entity) = &entity {
            self.piece_count -= entity.pieces.len();
            self.entities_len -= entity.held_len();
        }
        Ok((refused, entity))
    }
}
