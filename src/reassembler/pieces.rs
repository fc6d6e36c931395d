//! Held octets of one direction: pieces of segments in stream order, without overlap.

use std::collections::VecDeque;

use super::event::{Chunk, Conflict, Extent, Gap, GapReason, StreamEvent};
use super::policy::OverlapPolicy;
use super::store::{BLOCK_COST, BLOCK_LEN, NO_BLOCK, Store};
use super::stream::Peer;
use crate::base::{Allowance, SeqNum, Timestamp};

/// Range of stream offsets of a whole segment, regardless of how much of it is still held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Origin {
    /// Stream offset of the segment's first octet. Under the Linux policy, the offset of the first octet of the run of
    /// adjacent segments to which the segment was joined.
    pub(super) begin: u64,
    /// Stream offset after the segment's last octet.
    pub(super) end: u64,
    pub(super) timestamp: Timestamp,
}

impl Origin {
    fn place(&self) -> Extent {
        Extent { offset: self.begin, len: self.end - self.begin, timestamp: self.timestamp }
    }
}

/// Consecutive held octets of one segment.
#[derive(Clone, Copy, Debug)]
struct Piece {
    start: u64,
    origin: Origin,
    len: u32,
    /// Identifier of the block that contains the piece's octets; [`NO_BLOCK`] if the octets were truncated by the snap
    /// length.
    block: u32,
    /// Index of the piece's first octet in its block.
    at: u32,
    /// Acknowledgment number of the segment.
    ack: SeqNum,
}

impl Piece {
    const fn end(&self) -> u64 {
        self.start + self.len as u64
    }

    /// Returns the piece's bytes between two stream offsets; `None` if they were truncated by the snap length.
    fn bytes<'s>(&self, store: &'s Store, from: u64, to: u64) -> Option<&'s [u8]> {
        let at = self.at + (from - self.start) as u32;
        (self.block != NO_BLOCK).then(|| store.bytes(self.block, at, (to - from) as u32))
    }
}

/// Memory of one entry in the list of held pieces in bytes, without its octets.
const PIECE_COST: u64 = size_of::<Piece>() as u64;

/// Maximum number of pieces for which the allocated memory is kept when the held state of a stream is removed.
const KEPT_CAPACITY: usize = 16;

/// Result of reserving memory for the octets of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reservation {
    Reserved,
    /// The memory limit of one direction of a connection is reached.
    SideIsFull,
    /// The memory limit of all streams together is reached, or the memory budget is exhausted.
    NoMemory,
}

/// Under the Linux policy, joined held pieces that begin where a new segment begins.
#[derive(Clone, Copy, Debug, Default)]
struct Row {
    /// Stream offset after the last joined piece.
    end: u64,
    /// Stream offset up to which the held bytes are kept: the end of the last joined piece with a segment that ends no
    /// earlier than the new one.
    lost_end: u64,
}

/// The part of a new segment that was neither delivered nor skipped before: captured bytes, or octets truncated by the
/// snap length.
#[derive(Clone, Copy, Debug)]
pub(super) struct New<'a> {
    pub(super) start: u64,
    pub(super) end: u64,
    /// The bytes from `start` to `end`; `None` if they were truncated by the snap length.
    pub(super) bytes: Option<&'a [u8]>,
    pub(super) origin: Origin,
    /// Acknowledgment number of the segment.
    pub(super) ack: SeqNum,
}

impl<'a> New<'a> {
    fn part(&self, from: u64, to: u64) -> Option<&'a [u8]> {
        let range = (from - self.start) as usize..(to - self.start) as usize;
        self.bytes.map(|bytes| bytes.get(range).unwrap_or_default())
    }
}

/// Callback for stream events. Events are passed by reference because they are large and pass through several
/// functions.
pub(super) type Out<'o> = dyn FnMut(&StreamEvent<'_>) + 'o;

/// The held octets of one direction of a connection, as pieces in stream order.
#[derive(Debug)]
pub(super) struct Pieces {
    pieces: VecDeque<Piece>,
    /// Number of pieces for which memory is charged.
    capacity: usize,
    /// Identifier of the block that is being filled, or [`NO_BLOCK`].
    block: u32,
    used: u32,
    /// Number of blocks in use, including the one that is being filled.
    block_count: u32,
}

impl Pieces {
    pub(super) const fn new() -> Self {
        Self { pieces: VecDeque::new(), capacity: 0, block: NO_BLOCK, used: 0, block_count: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.pieces.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Returns the stream offset at which the first held piece begins.
    pub(super) fn first_start(&self) -> Option<u64> {
        self.pieces.front().map(|piece| piece.start)
    }

    /// Returns the capture time and the acknowledgment number of the segment of the first held piece.
    pub(super) fn first_segment(&self) -> Option<(Timestamp, SeqNum)> {
        self.pieces.front().map(|piece| (piece.origin.timestamp, piece.ack))
    }

    /// Returns the stream offset at which the last held piece ends.
    pub(super) fn last_end(&self) -> Option<u64> {
        self.pieces.back().map(Piece::end)
    }

    /// Returns the charged memory of the blocks and pieces, in bytes.
    pub(super) fn memory_bytes(&self) -> u64 {
        u64::from(self.block_count) * BLOCK_COST + self.capacity as u64 * PIECE_COST
    }

    /// Reserves memory for a segment in `range` (stream offset of the first octet, and after the last one), of which
    /// `len` octets were captured. The direction may use at most `side_bytes_max`. Returns which limit was reached if
    /// the reservation fails.
    pub(super) fn reserve(
        &mut self,
        store: &mut Store,
        memory: &mut Allowance,
        range: (u64, u64),
        len: usize,
        side_bytes_max: u64,
    ) -> Reservation {
        let free_len = if self.block == NO_BLOCK { 0 } else { BLOCK_LEN - self.used as usize };
        let block_count = len.saturating_sub(free_len).div_ceil(BLOCK_LEN);
        // One piece for each hole that is filled, one for each block, and the two ends of a replaced piece.
        let first = self.pieces.partition_point(|piece| piece.end() <= range.0);
        let behind = match self.pieces.get(first) {
            Some(next) if next.start < range.1 => self.pieces.partition_point(|piece| piece.start < range.1),
            _ => first,
        };
        let piece_count = self.pieces.len() + behind.saturating_sub(first) + block_count + 5;
        let mut grown = 0;
        if piece_count > self.capacity {
            grown = piece_count.max(self.capacity * 2) - self.capacity;
        }
        let more_bytes = block_count as u64 * BLOCK_COST + grown as u64 * PIECE_COST;
        if self.memory_bytes() + more_bytes > side_bytes_max {
            return Reservation::SideIsFull;
        }
        if !store.reserve(memory, block_count)
            || (grown > 0 && memory.take(grown as u64 * PIECE_COST).is_err())
        {
            return Reservation::NoMemory;
        }
        if grown > 0 {
            self.capacity += grown;
            self.pieces.reserve_exact(self.capacity - self.pieces.len());
        }
        Reservation::Reserved
    }

    /// Returns whether the bytes of the new segment replace those of the piece at `index`. `row` is the run of joined
    /// pieces that the preceding calls found, and is updated.
    fn new_wins(
        &self,
        store: &mut Store,
        index: usize,
        new: &New<'_>,
        policy: OverlapPolicy,
        row: &mut Row,
    ) -> bool {
        let Some(piece) = self.pieces.get(index) else { return true };
        if piece.block == NO_BLOCK || new.bytes.is_none() {
            return new.bytes.is_some();
        }
        let (held, end) = (piece.origin, new.origin.end);
        if policy == OverlapPolicy::Linux && held.begin == new.origin.begin {
            // The joined pieces count as one segment; each is visited once.
            if piece.start >= row.end {
                *row = Row { end: piece.end(), lost_end: 0 };
                let joined = self.pieces.range(index..);
                for next in joined.take_while(|next| next.origin.begin == held.begin && next.start <= new.end)
                {
                    row.end = next.end();
                    if next.origin.end >= end {
                        row.lost_end = next.end();
                    }
                    store.count_steps(1);
                }
            }
            return piece.start >= row.lost_end && end > held.end;
        }
        policy.new_wins((held.begin, held.end), (new.origin.begin, end))
    }

    /// Reports octets in `range` that the piece at `index` holds and that were received again. Also reports a conflict
    /// if the new bytes differ.
    fn report_overlap(
        &self,
        store: &Store,
        index: usize,
        range: (u64, u64),
        new: &New<'_>,
        is_new_kept: bool,
        out: &mut Out<'_>,
    ) {
        let Some(piece) = self.pieces.get(index) else { return };
        let held = piece.bytes(store, range.0, range.1);
        let differing = held.zip(new.part(range.0, range.1)).and_then(|(old, new)| difference(old, new));
        out(&StreamEvent::Repeated { offset: range.0, len: range.1 - range.0 });
        let Some((first, len)) = differing else { return };
        let (old, new) = (piece.origin.place(), new.origin.place());
        out(&StreamEvent::Conflict(Conflict { offset: range.0 + first, len, old, new, is_new_kept }));
    }

    /// Copies the new part of a segment into the held pieces; its memory was reserved before. Returns the number of
    /// octets that were not held before.
    pub(super) fn place(
        &mut self,
        store: &mut Store,
        mut new: New<'_>,
        policy: OverlapPolicy,
        out: &mut Out<'_>,
    ) -> u64 {
        let mut fresh_len = 0;
        let mut index = self.pieces.partition_point(|piece| piece.end() <= new.start);
        if policy == OverlapPolicy::Linux && new.bytes.is_some() {
            let row =
                index.checked_sub(1).and_then(|before| self.pieces.get(before)).map(|piece| piece.origin);
            let begin = new.origin.begin;
            let is_covered = self.pieces.get(index).is_some_and(|next| next.origin.begin <= begin);
            // The part is joined to the run of segments that ends where it begins, unless another segment already
            // continues there.
            if let Some(row) = row.filter(|row| row.end == begin && !is_covered) {
                new.origin.begin = row.begin;
            }
        }
        let (mut at, mut row) = (new.start, Row::default());
        while at < new.end {
            store.count_steps(1);
            match self.pieces.get(index) {
                Some(&piece) if piece.start <= at => {
                    let to = piece.end().min(new.end);
                    let is_new_kept = self.new_wins(store, index, &new, policy, &mut row);
                    self.report_overlap(store, index, (at, to), &new, is_new_kept, out);
                    index = if is_new_kept { self.replace(store, index, (at, to), &new) } else { index + 1 };
                    at = to;
                }
                next => {
                    let to = next.map_or(new.end, |piece| piece.start.min(new.end));
                    index = self.add(store, index, (at, to), &new);
                    fresh_len += to - at;
                    at = to;
                }
            }
        }
        fresh_len
    }

    /// Inserts pieces at `index` for a range of stream offsets that is not held yet. Returns the index after the
    /// inserted pieces.
    fn add(&mut self, store: &mut Store, mut index: usize, range: (u64, u64), new: &New<'_>) -> usize {
        let origin = new.origin;
        let Some(mut bytes) = new.part(range.0, range.1) else {
            let len = (range.1 - range.0) as u32;
            let piece = Piece { start: range.0, origin, len, block: NO_BLOCK, at: 0, ack: new.ack };
            self.insert(store, index, piece);
            return index + 1;
        };
        let mut start = range.0;
        while !bytes.is_empty() {
            if self.block == NO_BLOCK || self.used as usize == BLOCK_LEN {
                (self.block, self.used) = (store.obtain(), 0);
                self.block_count += 1;
            }
            let (here, rest) = bytes.split_at(bytes.len().min(BLOCK_LEN - self.used as usize));
            store.write_new(self.block, self.used, here);
            let (len, block, at) = (here.len() as u32, self.block, self.used);
            let piece = Piece { start, origin, len, block, at, ack: new.ack };
            self.insert(store, index, piece);
            index += 1;
            self.used += here.len() as u32;
            start += here.len() as u64;
            bytes = rest;
        }
        index
    }

    /// Replaces the octets in `range` of the piece at `index` with new bytes. Returns the index after the replaced
    /// part.
    fn replace(&mut self, store: &mut Store, index: usize, range: (u64, u64), new: &New<'_>) -> usize {
        let (Some(piece), Some(bytes)) = (self.pieces.get(index).copied(), new.part(range.0, range.1)) else {
            return index + 1;
        };
        let part = |start: u64, end: u64, origin: Origin| {
            let at = if piece.block == NO_BLOCK { 0 } else { piece.at + (start - piece.start) as u32 };
            Piece { start, origin, len: (end - start) as u32, at, ..piece }
        };
        let mut index = index;
        // The rest of the piece surrounds the replaced part. Usually the whole piece is replaced, and nothing moves.
        if piece.start < range.0 {
            self.insert(store, index, part(piece.start, range.0, piece.origin));
            index += 1;
        }
        if range.1 < piece.end() {
            self.insert(store, index + 1, part(range.1, piece.end(), piece.origin));
        }
        if piece.block == NO_BLOCK {
            store.count_steps(index.min(self.pieces.len() - index));
            let _ = self.pieces.remove(index);
            return self.add(store, index, range, new);
        }
        let middle = part(range.0, range.1, new.origin);
        store.write(middle.block, middle.at, bytes);
        if let Some(place) = self.pieces.get_mut(index) {
            *place = middle;
        }
        index + 1
    }

    fn insert(&mut self, store: &mut Store, index: usize, piece: Piece) {
        store.count_steps(index.min(self.pieces.len() - index));
        self.pieces.insert(index, piece);
    }

    /// Delivers the new part of a segment, which begins at the stream's offset. Where held pieces overlap it, the
    /// overlap policy decides which bytes are delivered.
    pub(super) fn deliver(
        &mut self,
        store: &mut Store,
        new: &New<'_>,
        policy: OverlapPolicy,
        out: &mut Out<'_>,
    ) {
        let (mut at, mut row) = (new.start, Row::default());
        while at < new.end {
            store.count_steps(1);
            match self.pieces.front() {
                Some(piece) if piece.start <= at => {
                    let to = piece.end().min(new.end);
                    let is_new_kept = self.new_wins(store, 0, new, policy, &mut row);
                    self.report_overlap(store, 0, (at, to), new, is_new_kept, out);
                    if is_new_kept {
                        emit_octets((at, to), new.part(at, to), new.origin.timestamp, out);
                        self.trim(store, to);
                    } else {
                        self.deliver_first(store, to, new.origin.timestamp, out);
                    }
                    at = to;
                }
                next => {
                    let to = next.map_or(new.end, |piece| piece.start.min(new.end));
                    emit_octets((at, to), new.part(at, to), new.origin.timestamp, out);
                    at = to;
                }
            }
        }
    }

    /// Delivers the held octets from a stream offset up to the next hole, a limit, or a segment that was sent after
    /// octets of the opposite direction that `peer` lacks. Returns the stream offset after the last delivered octet. `latest` is the capture time of the octets delivered before, and is set to the time of
    /// the last delivered piece.
    pub(super) fn drain(
        &mut self,
        store: &mut Store,
        (mut offset, limit): (u64, u64),
        peer: Peer,
        latest: &mut Timestamp,
        out: &mut Out<'_>,
    ) -> u64 {
        let is_next =
            |piece: &Piece, offset| piece.start == offset && offset < limit && !peer.is_before(piece.ack);
        while let Some(&piece) = self.pieces.front().filter(|piece| is_next(piece, offset)) {
            offset = piece.end().min(limit);
            *latest = self.deliver_first(store, offset, *latest, out);
        }
        offset
    }

    /// Returns the held octets from a stream offset up to the next hole, a limit, or octets that were truncated by the snap
    /// length, each part with its capture time.
    pub(super) fn next_octets<'s>(
        &'s self,
        store: &'s Store,
        (mut offset, limit): (u64, u64),
    ) -> impl Iterator<Item = (Timestamp, &'s [u8])> {
        self.pieces.iter().map_while(move |piece| {
            let to = piece.end().min(limit);
            let is_next = piece.start == offset && offset < to;
            let bytes = if is_next { piece.bytes(store, offset, to) } else { None };
            offset = to;
            bytes.map(|bytes| (piece.origin.timestamp, bytes))
        })
    }

    /// Delivers the octets of the first piece up to the stream offset `to`. Their time is the piece's capture time, but
    /// not before `earliest`. Returns this time.
    fn deliver_first(
        &mut self,
        store: &mut Store,
        to: u64,
        earliest: Timestamp,
        out: &mut Out<'_>,
    ) -> Timestamp {
        let Some(piece) = self.pieces.front() else { return earliest };
        let timestamp = piece.origin.timestamp.max(earliest);
        emit_octets((piece.start, to), piece.bytes(store, piece.start, to), timestamp, out);
        self.trim(store, to);
        timestamp
    }

    /// Subtracts `by` from the stream offsets of all pieces, and removes octets with offsets below zero. A negative
    /// `by` increases the offsets.
    pub(super) fn shift(&mut self, store: &mut Store, by: i64) {
        let begin = u64::try_from(by).unwrap_or(0);
        while let Some(piece) = self.pieces.front().filter(|piece| piece.start < begin) {
            let to = piece.end().min(begin);
            self.trim(store, to);
        }
        for piece in &mut self.pieces {
            let origin = &mut piece.origin;
            for offset in [&mut piece.start, &mut origin.begin, &mut origin.end] {
                *offset = offset.saturating_add_signed(-by);
            }
        }
    }

    /// Removes the octets of the first piece up to the stream offset `to`.
    fn trim(&mut self, store: &mut Store, to: u64) {
        let Some(piece) = self.pieces.front_mut() else { return };
        let (block, len) = (piece.block, (to - piece.start) as u32);
        if len == piece.len {
            self.pieces.pop_front();
        } else {
            piece.start = to;
            piece.len -= len;
            if block != NO_BLOCK {
                piece.at += len;
            }
        }
        self.forget(store, block, len);
    }

    fn forget(&mut self, store: &mut Store, block: u32, len: u32) {
        if block == NO_BLOCK || !store.forget(block, len) {
            return;
        }
        if block == self.block {
            // The block is reused from its start.
            self.used = 0;
        } else {
            store.put_back(block);
            self.block_count -= 1;
        }
    }

    /// Removes all pieces and releases their blocks; the memory of a short piece list is kept.
    pub(super) fn clear(&mut self, store: &mut Store, memory: &mut Allowance) {
        while let Some(piece) = self.pieces.pop_front() {
            self.forget(store, piece.block, piece.len);
        }
        if self.block != NO_BLOCK {
            store.put_back(self.block);
            self.block_count -= 1;
        }
        (self.block, self.used) = (NO_BLOCK, 0);
        debug_assert_eq!(self.block_count, 0, "all blocks were released");
        if self.capacity > KEPT_CAPACITY {
            self.pieces = VecDeque::new();
            memory.give(self.capacity as u64 * PIECE_COST);
            self.capacity = 0;
        }
    }

    /// Panics unless the pieces are in order. Returns the number of octets in blocks, and the number of blocks.
    pub(super) fn check_invariants(&self) -> (u64, u64) {
        let mut end = 0;
        for piece in &self.pieces {
            assert!(piece.len > 0, "a piece without octets");
            assert!(piece.start >= end, "pieces overlap");
            assert!(piece.origin.begin <= piece.start && piece.end() <= piece.origin.end);
            end = piece.end();
        }
        assert!(self.pieces.len() <= self.capacity, "what was not accounted was allocated");
        let live = self.pieces.iter().filter(|piece| piece.block != NO_BLOCK);
        (live.map(|piece| u64::from(piece.len)).sum(), u64::from(self.block_count))
    }
}

fn emit_octets((from, to): (u64, u64), bytes: Option<&[u8]>, timestamp: Timestamp, out: &mut Out<'_>) {
    match bytes {
        Some(bytes) => out(&StreamEvent::Chunk(Chunk { offset: from, bytes, timestamp })),
        None => out(&StreamEvent::Gap(Gap::new(from, to - from, GapReason::Truncated).at(timestamp))),
    }
}

/// Compares two slices of equal length. Returns the index of the first octet that differs, and the number of octets
/// from it to the last one that differs; `None` if the slices are equal.
pub(super) fn difference(old: &[u8], new: &[u8]) -> Option<(u64, u64)> {
    if old == new {
        return None;
    }
    let differs = |(old, new): (&u8, &u8)| old != new;
    let first = old.iter().zip(new).position(differs)?;
    let last = old.iter().zip(new).rposition(differs)?;
    Some((first as u64, (last - first + 1) as u64))
}
