//! Transactions that have not ended.

use std::fmt::{Display, Write as _};

use super::span::Span;
use crate::checkpoint::{Invalid, Saved, StateWriter};
use crate::codec::Reader;
use crate::session::Lack;
use crate::session::Text;

/// Maximum number of open transactions of a protocol in a flow. At the limit, the oldest one ends.
pub const OPEN_MAX: usize = 128;
/// Maximum length of a text in octets; longer ones are truncated.
pub const TEXT_LEN_MAX: usize = 4096;
/// Maximum length of the texts of the open transactions of a protocol in a flow, in octets.
const TEXTS_LEN_MAX: usize = 256 << 10;
/// Maximum memory of the texts of a transaction in a checkpoint.
const HEAP_LEN_MAX: usize = 4 << 20;
/// Maximum number of transactions for which memory is kept while none is open.
const SPARE_MAX: usize = 4;

/// Returns the memory in bytes that an allocation of this length takes, with what allocators add to it.
pub(super) const fn allocated(len: usize) -> usize {
    if len == 0 { 0 } else { (len + 8).next_multiple_of(16) }
}

/// Memory of the content of a transaction, in bytes.
pub(super) trait HeapLen {
    /// Returns the memory that was allocated for the content beside its texts, which a [`Copier`] counts.
    fn heap_len(&self) -> usize {
        0
    }
}

/// Copies texts, and counts their octets.
#[derive(Debug, Default)]
pub(super) struct Copier {
    len: usize,
    /// Memory of the texts in bytes.
    heap_len: usize,
    /// A text was longer than permitted.
    pub(super) is_truncated: bool,
}

impl Copier {
    pub(super) fn text(&mut self, text: Text<'_>) -> Box<str> {
        let end = text.0.len().min(TEXT_LEN_MAX);
        self.is_truncated |= end < text.0.len();
        let copy = String::from_utf8_lossy(text.0.get(..end).unwrap_or_default());
        self.len += copy.len();
        self.heap_len += allocated(copy.len());
        copy.into()
    }

    /// Counts a text that was copied before, and is copied again.
    pub(super) fn count(&mut self, text: Option<&str>) {
        let len = text.map_or(0, str::len);
        self.len += len;
        self.heap_len += allocated(len);
    }

    /// Counts a list of this many items of a type, beside the texts in it.
    pub(super) fn count_list<T>(&mut self, item_count: usize) {
        self.heap_len += allocated(item_count * size_of::<T>());
    }

    pub(super) fn optional(&mut self, text: Option<Text<'_>>) -> Option<Box<str>> {
        text.map(|text| self.text(text))
    }

    pub(super) fn display(&mut self, value: impl Display) -> Box<str> {
        let mut text = String::new();
        let _ = write!(text, "{value}");
        self.text(Text(text.as_bytes()))
    }
}

/// A transaction that has not ended.
#[derive(Debug)]
pub(super) struct Pending<T> {
    pub(super) number: u64,
    pub(super) span: Span,
    pub(super) lacks: Option<Lack>,
    pub(super) content: T,
    text_len: usize,
    /// Memory of the texts in bytes.
    heap_len: usize,
}

impl<T> Pending<T> {
    pub(super) fn new(number: u64, span: Span, content: T, copier: &Copier) -> Self {
        let lacks = copier.is_truncated.then_some(Lack::Limit);
        Self { number, span, lacks, content, text_len: copier.len, heap_len: copier.heap_len }
    }

    /// Adds what was copied for a later message of the transaction.
    pub(super) const fn add(&mut self, copier: &Copier) {
        self.text_len += copier.len;
        self.heap_len += copier.heap_len;
        if copier.is_truncated {
            self.lacks = Some(Lack::Limit);
        }
    }

    /// Replaces the content.
    pub(super) fn map<U>(self, with: impl FnOnce(T) -> U) -> Pending<U> {
        let Self { number, span, lacks, content, text_len, heap_len } = self;
        Pending { number, span, lacks, content: with(content), text_len, heap_len }
    }

    /// Notes that something is missing, unless something else is that is noted first.
    pub(super) fn lack(&mut self, lack: Lack) {
        self.lacks = Some(self.lacks.map_or(lack, |known| known.min(lack)));
    }
}

impl<T: HeapLen> Pending<T> {
    /// Returns the memory in bytes that was allocated for the transaction.
    pub(super) fn heap_len(&self) -> usize {
        self.heap_len + self.content.heap_len()
    }
}

/// The open transactions of a protocol, oldest first.
#[derive(Debug)]
pub(super) struct Open<T> {
    pending: Vec<Pending<T>>,
}

impl<T> Default for Open<T> {
    fn default() -> Self {
        Self { pending: Vec::new() }
    }
}

impl<T> Open<T> {
    /// Adds a transaction. Those that are too many end.
    pub(super) fn push(&mut self, pending: Pending<T>, out: &mut dyn FnMut(Pending<T>)) {
        let (len, capacity) = (self.pending.len(), self.pending.capacity());
        if len == capacity {
            // A transaction takes up to a KiB, and most flows have one at a time.
            self.pending.reserve_exact(len.div_ceil(2).max(1));
        }
        self.pending.push(pending);
        self.trim(out);
    }

    /// Frees the memory of many transactions when none is left.
    #[inline]
    fn shrink(&mut self) {
        if self.pending.is_empty() && self.pending.capacity() > SPARE_MAX {
            self.pending = Vec::new();
        }
    }

    /// Ends the oldest transactions if there are too many, or their texts are too long.
    pub(super) fn trim(&mut self, out: &mut dyn FnMut(Pending<T>)) {
        let mut text_len: usize = self.pending.iter().map(|pending| pending.text_len).sum();
        let mut excess = 0;
        for (index, pending) in self.pending.iter().enumerate() {
            let is_last = index + 1 == self.pending.len();
            if is_last || text_len <= TEXTS_LEN_MAX && self.pending.len() - index <= OPEN_MAX {
                break;
            }
            text_len -= pending.text_len;
            excess = index + 1;
        }
        for mut pending in self.pending.drain(..excess) {
            pending.lack(Lack::Limit);
            out(pending);
        }
    }

    pub(super) fn get(&mut self, number: u64) -> Option<&mut Pending<T>> {
        self.pending.iter_mut().rev().find(|pending| pending.number == number)
    }

    pub(super) fn take(&mut self, number: u64) -> Option<Pending<T>> {
        let index = self.pending.iter().rposition(|pending| pending.number == number)?;
        let pending = self.pending.remove(index);
        self.shrink();
        Some(pending)
    }

    /// Returns the oldest transaction for which a condition holds.
    pub(super) fn take_first(&mut self, is_wanted: impl Fn(&Pending<T>) -> bool) -> Option<Pending<T>> {
        let index = self.pending.iter().position(is_wanted)?;
        Some(self.pending.remove(index))
    }

    /// Returns the oldest transaction if there are at least `count`.
    pub(super) fn take_oldest(&mut self, count: usize) -> Option<Pending<T>> {
        (self.pending.len() >= count && !self.pending.is_empty()).then(|| self.pending.remove(0))
    }

    /// Returns all transactions, oldest first.
    pub(super) fn take_all(&mut self) -> Vec<Pending<T>> {
        std::mem::take(&mut self.pending)
    }
}

impl<T: HeapLen> Open<T> {
    /// Returns the memory in bytes that was allocated for the transactions.
    pub(super) fn heap_len(&self) -> usize {
        let contents: usize = self.pending.iter().map(Pending::heap_len).sum();
        allocated(self.pending.capacity() * size_of::<Pending<T>>()) + contents
    }
}

impl<T: Saved> Saved for Pending<T> {
    fn save(&self, writer: &mut StateWriter<'_>) -> Result<(), Invalid> {
        let Self { number, span, lacks, content, text_len, heap_len } = self;
        number.save(writer)?;
        span.save(writer)?;
        lacks.save(writer)?;
        content.save(writer)?;
        text_len.save(writer)?;
        heap_len.save(writer)
    }

    fn load(reader: &mut Reader<'_>) -> Result<Self, Invalid> {
        Ok(Self {
            number: Saved::load(reader)?,
            span: Saved::load(reader)?,
            lacks: Saved::load(reader)?,
            content: Saved::load(reader)?,
            // Longer ones have the same effect, and their sum could overflow.
            text_len: usize::load(reader)?.min(TEXTS_LEN_MAX + 1),
            heap_len: usize::load(reader)?.min(HEAP_LEN_MAX),
        })
    }
}

impl<T: Saved> Saved for Open<T> {
    fn save(&self, writer: &mut StateWriter<'_>) -> Result<(), Invalid> {
        self.pending.save(writer)
    }

    fn load(reader: &mut Reader<'_>) -> Result<Self, Invalid> {
        let count: usize = Saved::load(reader)?;
        if count > OPEN_MAX {
            return Err(Invalid::new("too many open transactions"));
        }
        let pending = (0..count).map(|_| Saved::load(reader)).collect::<Result<_, _>>()?;
        Ok(Self { pending })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::{Side, Timestamp};
    use crate::protocols::http1;

    /// Adds transactions with a text of this length, and returns the open ones and those that ended.
    fn filled(count: u64, text_len: usize) -> (Open<Box<str>>, Vec<Pending<Box<str>>>) {
        let time = Timestamp::ZERO;
        let span =
            Span { protocol: &http1::PROTOCOL, client: Side::A, start: time, end: time, received_len: 0 };
        let (mut open, mut ended) = (Open::default(), Vec::new());
        for number in 0..count {
            let mut copier = Copier::default();
            let text = copier.text(Text(&vec![b'x'; text_len]));
            open.push(Pending::new(number, span, text, &copier), &mut |pending| ended.push(pending));
        }
        (open, ended)
    }

    #[test]
    fn the_oldest_transactions_end_at_the_limits() {
        for (text_len, kept_count) in [(10, OPEN_MAX), (TEXT_LEN_MAX, TEXTS_LEN_MAX / TEXT_LEN_MAX)] {
            let (mut open, ended) = filled(1000, text_len);
            let kept = open.take_all();
            let is_in_order = ended.iter().chain(&kept).map(|pending| pending.number).eq(0..1000);
            assert!(is_in_order && kept.len() == kept_count, "{} kept", kept.len());
            assert!(ended.iter().all(|pending| pending.lacks == Some(Lack::Limit)));
            assert!(kept.iter().all(|pending| pending.lacks.is_none()));
        }
    }

    #[test]
    fn texts_of_later_messages_and_copies_count() {
        let (mut open, _) = filled(3, 10);
        let mut copier = Copier::default();
        copier.count(Some(&"x".repeat(TEXTS_LEN_MAX)));
        open.get(1).expect("a transaction").add(&copier);
        let mut ended = Vec::new();
        open.trim(&mut |pending| ended.push((pending.number, pending.lacks)));
        assert_eq!(ended, [(0, Some(Lack::Limit)), (1, Some(Lack::Limit))]);
        assert_eq!(open.take_all().len(), 1);
    }

    #[test]
    fn a_long_text_is_truncated_and_marked() {
        let (mut open, _) = filled(1, TEXT_LEN_MAX + 1);
        let pending = open.take(0).expect("a transaction");
        assert_eq!((pending.content.len(), pending.lacks), (TEXT_LEN_MAX, Some(Lack::Limit)));
        assert!(open.take(0).is_none());
    }

    #[test]
    fn what_is_lacking_first_remains() {
        let (mut open, _) = filled(1, 5);
        let pending = open.get(0).expect("a transaction");
        for (lack, expected) in
            [(Lack::Body, Lack::Body), (Lack::Response, Lack::Response), (Lack::End, Lack::Response)]
        {
            pending.lack(lack);
            assert_eq!(pending.lacks, Some(expected));
        }
    }
}
