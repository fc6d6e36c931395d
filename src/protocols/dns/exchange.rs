//! Matching of DNS responses to queries.

use std::time::Duration;

use super::numbers::RecordType;
use crate::base::Timestamp;
use crate::checkpoint::{COUNT_MAX, state};
use crate::session::Role;

/// Maximum number of DNS queries that are kept per flow for matching. At the limit, the query idle longest is evicted;
/// queries that were answered are evicted first.
pub const EXCHANGE_COUNT_MAX: usize = 256;

/// Nanoseconds without a response or a retransmission after which a DNS query counts as unanswered.
pub const UNANSWERED_NS: u64 = 10_000_000_000;

/// Nanoseconds for which the query of a response in a datagram may be captured later than the response, and a
/// retransmitted query later than the latest message of its exchange: the default of
/// [`skew_max`](crate::reassembler::ReassemblerConfig::skew_max).
pub(crate) const EARLY_NS: u64 = 50_000_000;

/// Bits of a rank below the kind of the exchange: its latest time, in units of four nanoseconds.
const RANK_TIME_BITS: u32 = 62;

/// Number of queries per flow that are kept without an allocation: the A and AAAA queries that a client sends together, and
/// two before them, which may be sent again.
const INLINE_COUNT: usize = 4;

crate::message! {
    /// A DNS query without a response.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    "dns.unanswered" pub struct Unanswered {
        /// Transaction number of the query in its flow.
        pub transaction: u64,
        /// Identifier in the DNS header of the query.
        pub id: u16,
        /// Role of the side that sent the query.
        pub querier: Role,
        /// Number of times the query was sent again.
        pub retransmission_count: u32 [sparse],
        /// Time from the first transmission of the query until this report.
        pub waited: Duration,
        /// Reason why the query is no longer outstanding.
        pub reason: UnansweredReason,
    }
}

/// Reason why an unanswered query is no longer outstanding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum UnansweredReason {
    /// Neither a response nor a retransmission occurred for [`UNANSWERED_NS`].
    Timeout,
    /// The flow ended, or the responder's direction of it.
    EndOfFlow,
    /// The query was evicted because [`EXCHANGE_COUNT_MAX`] queries were reached.
    Displaced,
}

crate::row::cells! {
    name UnansweredReason { Timeout => "timeout", EndOfFlow => "end_of_flow", Displaced => "displaced" }
}

/// Properties by which a message is assigned to an exchange, a DNS query with its responses.
#[derive(Clone, Copy, Debug)]
pub(super) struct Subject {
    pub(super) id: u16,
    pub(super) querier: Role,
    /// Hash of the first question of the message; `None` if there is no question.
    pub(super) question: Option<u64>,
    pub(super) is_transfer: bool,
    /// True if the message is a datagram, so that nothing states whether it was sent before another one.
    pub(super) is_datagram: bool,
}

#[derive(Clone, Copy, Debug)]
struct Exchange {
    question: u64,
    transaction: u64,
    queried: Timestamp,
    /// Capture time of the latest message of the exchange.
    latest: Timestamp,
    retransmission_count: u32,
    response_count: u32,
    id: u16,
    querier: Role,
    is_transfer: bool,
    /// True if a response was captured, and its query was not yet.
    is_early: bool,
}

state! { struct Exchange {
    question, transaction, queried, latest, retransmission_count, response_count, id, querier, is_transfer, is_early,
} }

impl Exchange {
    /// Returns whether a message with this subject belongs to the exchange. Some responses contain no question: errors,
    /// and the messages of a zone transfer after the first.
    fn is_of(&self, subject: &Subject) -> bool {
        self.id == subject.id
            && self.querier == subject.querier
            && subject.question.is_none_or(|question| question == self.question)
    }

    const fn is_answered(&self) -> bool {
        self.response_count > 0
    }

    /// Returns whether the query of a response may still be captured.
    fn awaits_query(&self, now: Timestamp) -> bool {
        self.is_early && since(self.queried, now) <= EARLY_NS
    }

    /// Adds a query with the subject of the exchange. Returns its retransmission count; `None` if it is the query of
    /// another exchange.
    fn add_query(&mut self, now: Timestamp, is_datagram: bool) -> Option<u32> {
        if self.is_early {
            return self.awaits_query(now).then(|| {
                (self.is_early, self.queried, self.latest) = (false, now, now);
                0
            });
        }
        if self.is_answered() && !(is_datagram && since(self.latest, now) <= EARLY_NS) {
            return None;
        }
        self.latest = now;
        self.retransmission_count = self.retransmission_count.saturating_add(1);
        Some(self.retransmission_count)
    }

    /// Returns whether one of the transmissions of the query or its response may still be captured: their numbers differ.
    fn awaits_more(&self, now: Timestamp) -> bool {
        let query_count = if self.is_early { 0 } else { self.retransmission_count.saturating_add(1) };
        self.response_count != query_count && since(self.latest, now) <= EARLY_NS
    }

    /// Returns the order in which exchanges are replaced: those in which nothing else is expected first (kind 0), and those
    /// without a response last. The one idle longest precedes others of the same kind.
    #[inline]
    fn rank(&self, now: Timestamp) -> u64 {
        let kind = if !self.is_answered() { 2 } else { u64::from(self.is_transfer || self.awaits_more(now)) };
        kind << RANK_TIME_BITS | self.latest.as_nanos() >> 2
    }

    fn unanswered(&self, now: Timestamp, reason: UnansweredReason) -> Unanswered {
        Unanswered {
            transaction: self.transaction,
            id: self.id,
            querier: self.querier,
            retransmission_count: self.retransmission_count,
            waited: Duration::from_nanos(since(self.queried, now)),
            reason,
        }
    }
}

fn since(then: Timestamp, now: Timestamp) -> u64 {
    now.as_nanos().saturating_sub(then.as_nanos())
}

/// Relation of a DNS response to its query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Answered {
    pub(super) transaction: u64,
    /// `None` if the response was captured before its query.
    pub(super) response_time_ns: Option<u64>,
    pub(super) earlier_response_count: u32,
}

/// DNS queries of a flow that are outstanding or may still receive responses.
#[derive(Debug, Default)]
pub(super) struct Exchanges {
    inline: [Option<Exchange>; INLINE_COUNT],
    more: Vec<Exchange>,
    next: u64,
}

state! {
    struct Exchanges { inline, more, next }
    if |all| all.more.len() + INLINE_COUNT <= EXCHANGE_COUNT_MAX && all.next < COUNT_MAX
}

impl Exchanges {
    fn all_mut(&mut self) -> impl Iterator<Item = &mut Exchange> {
        self.inline.iter_mut().flatten().chain(&mut self.more)
    }

    /// Adds a DNS query. Returns its transaction number and its retransmission count. `unanswered` receives the query
    /// that is evicted for it.
    ///
    /// A query with the same subject as an outstanding query is a retransmission of it. So is a datagram up to 50 ms
    /// after the latest message of an answered exchange: with a skew between both directions of a capture, the response
    /// to the first transmission precedes the second one. Later, such a query starts a new exchange.
    pub(super) fn add_query(
        &mut self,
        subject: &Subject,
        now: Timestamp,
        unanswered: impl FnMut(Unanswered),
    ) -> (u64, u32) {
        self.add(subject, now, false, unanswered)
    }

    /// Adds a DNS response without a query, which may be captured later. Returns its transaction number. `unanswered`
    /// receives the query that is evicted for it.
    #[cold]
    pub(super) fn add_early(
        &mut self,
        subject: &Subject,
        now: Timestamp,
        unanswered: impl FnMut(Unanswered),
    ) -> u64 {
        self.add(subject, now, true, unanswered).0
    }

    /// Adds a query, or a response without one (`is_early`).
    fn add(
        &mut self,
        subject: &Subject,
        now: Timestamp,
        is_early: bool,
        mut unanswered: impl FnMut(Unanswered),
    ) -> (u64, u32) {
        let question = subject.question.unwrap_or_default();
        let is_same = |known: &Exchange| {
            known.id == subject.id && known.question == question && known.querier == subject.querier
        };
        if !is_early {
            for known in self.inline.iter_mut().flatten() {
                if is_same(known)
                    && let Some(count) = known.add_query(now, subject.is_datagram)
                {
                    return (known.transaction, count);
                }
            }
            for known in &mut self.more {
                if is_same(known)
                    && let Some(count) = known.add_query(now, subject.is_datagram)
                {
                    return (known.transaction, count);
                }
            }
        }
        let transaction = self.next;
        self.next += 1;
        let exchange = Exchange {
            question,
            transaction,
            queried: now,
            latest: now,
            retransmission_count: 0,
            response_count: is_early.into(),
            id: subject.id,
            querier: subject.querier,
            is_transfer: subject.is_transfer,
            is_early,
        };
        if let Some(free) = self.inline.iter_mut().find(|place| place.is_none()) {
            *free = Some(exchange);
            return (transaction, 0);
        }
        let (rank, place) = self.first_replaced(now);
        let is_over = rank >> RANK_TIME_BITS == 0;
        if !is_over && self.more.len() + INLINE_COUNT < EXCHANGE_COUNT_MAX {
            self.more.push(exchange);
        } else if let Some(replaced) = self.all_mut().nth(place) {
            if !replaced.is_answered() {
                unanswered(replaced.unanswered(now, UnansweredReason::Displaced));
            }
            *replaced = exchange;
        }
        (transaction, 0)
    }

    /// Returns rank and index of the exchange that is replaced first.
    fn first_replaced(&self, now: Timestamp) -> (u64, usize) {
        let mut first = (u64::MAX, 0);
        for (place, known) in self.inline.iter().flatten().enumerate() {
            let rank = known.rank(now);
            if rank < first.0 {
                first = (rank, place);
            }
        }
        for (place, known) in self.more.iter().enumerate() {
            let rank = known.rank(now);
            if rank < first.0 {
                first = (rank, INLINE_COUNT + place);
            }
        }
        first
    }

    /// Assigns a DNS response to its query. Returns its relation to the query; `None` if no such query is kept.
    pub(super) fn answer(&mut self, subject: &Subject, now: Timestamp) -> Option<Answered> {
        // The latest of repeated queries with the same subject.
        let known =
            self.all_mut().filter(|known| known.is_of(subject)).max_by_key(|known| known.transaction)?;
        if known.is_early && !known.awaits_query(now) {
            return None;
        }
        let earlier_response_count = known.response_count;
        known.response_count = known.response_count.saturating_add(1);
        known.latest = now;
        Some(Answered {
            transaction: known.transaction,
            response_time_ns: (!known.is_early).then(|| since(known.queried, now)),
            earlier_response_count,
        })
    }

    /// Removes DNS queries that have timed out, and passes those without a response to `unanswered`.
    pub(super) fn age(&mut self, now: Timestamp, unanswered: impl FnMut(Unanswered)) {
        self.forget(now, UnansweredReason::Timeout, unanswered, |known| {
            since(known.latest, now) >= UNANSWERED_NS
        });
    }

    /// Removes the DNS queries that one side sent, and passes those without a response to `unanswered`.
    pub(super) fn end(&mut self, querier: Role, now: Timestamp, unanswered: impl FnMut(Unanswered)) {
        self.forget(now, UnansweredReason::EndOfFlow, unanswered, |known| known.querier == querier);
    }

    fn forget(
        &mut self,
        now: Timestamp,
        reason: UnansweredReason,
        mut unanswered: impl FnMut(Unanswered),
        is_over: impl Fn(&Exchange) -> bool,
    ) {
        let mut keeps = |known: &Exchange| {
            let is_over = is_over(known);
            if is_over && !known.is_answered() {
                unanswered(known.unanswered(now, reason));
            }
            !is_over
        };
        for place in &mut self.inline {
            *place = place.filter(&mut keeps);
        }
        if !self.more.is_empty() {
            self.more.retain(&mut keeps);
            if self.more.is_empty() {
                self.more = Vec::new();
            }
        }
    }

    pub(super) fn heap_len(&self) -> usize {
        self.more.capacity() * size_of::<Exchange>()
    }
}

/// Returns a hash of a DNS question that ignores the case of letters.
///
/// `octets` is a name without pointers; the first name of a message has none, because no name precedes it. A hash
/// collision merges two exchanges only if their identifiers are equal too.
pub(super) fn hash_question(octets: &[u8], record_type: RecordType, class: u16) -> u64 {
    const MULTIPLIER: u64 = 0x9E37_79B9_7F4A_7C15;
    /// Bits that convert capital letters to lower case in eight octets at once. They also make some other octets equal,
    /// which is harmless in a hash.
    const LOWER: u64 = 0x2020_2020_2020_2020;
    let mix = |hash: u64, word: u64| (hash.rotate_left(23) ^ word).wrapping_mul(MULTIPLIER);
    let mut hash = mix(u64::from(record_type.0) << 16 | u64::from(class), octets.len() as u64);
    let mut rest = octets;
    while let Some((word, after)) = rest.split_first_chunk::<8>() {
        hash = mix(hash, u64::from_le_bytes(*word) | LOWER);
        rest = after;
    }
    let last = rest.iter().fold(0, |word, octet| word << 8 | u64::from(*octet));
    let hash = mix(hash, last | LOWER);
    hash ^ hash >> 32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subject(id: u16) -> Subject {
        Subject { id, querier: Role::Client, question: Some(7), is_transfer: false, is_datagram: true }
    }

    fn at(milliseconds: u64) -> Timestamp {
        Timestamp::from_nanos(milliseconds * 1_000_000)
    }

    fn no_report(unanswered: Unanswered) {
        panic!("{unanswered:?}")
    }

    #[test]
    fn a_retransmitted_query_keeps_its_transaction_until_it_is_answered() {
        let mut exchanges = Exchanges::default();
        assert_eq!(exchanges.add_query(&subject(1), at(0), no_report), (0, 0));
        assert_eq!(exchanges.add_query(&subject(2), at(1), no_report), (1, 0));
        assert_eq!(exchanges.add_query(&subject(1), at(2), no_report), (0, 1));
        let answered = |transaction, milliseconds: u64, earlier_response_count| {
            let response_time_ns = Some(milliseconds * 1_000_000);
            Some(Answered { transaction, response_time_ns, earlier_response_count })
        };
        assert_eq!(exchanges.answer(&subject(2), at(3)), answered(1, 2, 0));
        assert_eq!(exchanges.answer(&subject(1), at(5)), answered(0, 5, 0));
        assert_eq!(exchanges.answer(&subject(1), at(6)), answered(0, 6, 1));
        assert_eq!(exchanges.answer(&Subject { question: None, ..subject(2) }, at(7)), answered(1, 6, 1));
        assert_eq!(exchanges.answer(&Subject { question: Some(8), ..subject(2) }, at(7)), None);
        assert_eq!(exchanges.answer(&Subject { querier: Role::Server, ..subject(2) }, at(7)), None);
        assert_eq!(exchanges.add_query(&subject(1), at(57), no_report), (2, 0), "51 ms after the response");
        assert_eq!(exchanges.answer(&subject(1), at(58)), answered(2, 1, 0));
        assert_eq!(exchanges.heap_len(), 0);
    }

    #[test]
    fn a_retransmitted_query_may_be_captured_after_the_response() {
        let mut exchanges = Exchanges::default();
        assert_eq!(exchanges.add_query(&subject(1), at(0), no_report), (0, 0));
        assert!(exchanges.answer(&subject(1), at(100)).is_some());
        assert_eq!(exchanges.add_query(&subject(1), at(150), no_report), (0, 1));
        let repeated =
            Answered { transaction: 0, response_time_ns: Some(160_000_000), earlier_response_count: 1 };
        assert_eq!(exchanges.answer(&subject(1), at(160)), Some(repeated));
        assert_eq!(exchanges.add_query(&subject(1), at(211), no_report), (1, 0), "too late");
        assert!(exchanges.answer(&subject(1), at(211)).is_some());
        // A stream states the order of its messages.
        let in_stream = Subject { is_datagram: false, ..subject(1) };
        assert_eq!(exchanges.add_query(&in_stream, at(212), no_report), (2, 0));
    }

    #[test]
    fn the_answered_query_idle_longest_is_replaced_first() {
        let mut exchanges = Exchanges::default();
        for id in 1..=4 {
            exchanges.add_query(&subject(id), at(0), no_report);
        }
        for (id, milliseconds) in [(3, 1), (1, 2), (2, 3), (4, 4)] {
            assert!(exchanges.answer(&subject(id), at(milliseconds)).is_some());
        }
        exchanges.add_query(&subject(5), at(10), no_report);
        let is_kept = [1, 2, 3, 4, 5].map(|id| exchanges.answer(&subject(id), at(11)).is_some());
        assert_eq!(is_kept, [true, true, false, true, true]);
        // The response to a second transmission is awaited.
        exchanges.add_query(&subject(1), at(12), no_report);
        exchanges.add_query(&subject(1), at(14), no_report);
        for id in 6..=10 {
            exchanges.add_query(&subject(id), at(15), no_report);
            exchanges.answer(&subject(id), at(16));
        }
        assert!(exchanges.answer(&subject(1), at(17)).is_some());
        assert_eq!(exchanges.heap_len(), 0);
    }

    #[test]
    fn a_query_may_be_captured_after_its_response() {
        let mut exchanges = Exchanges::default();
        assert_eq!(exchanges.add_early(&subject(1), at(0), no_report), 0);
        assert_eq!(exchanges.add_early(&subject(2), at(10), no_report), 1);
        let repeated = Answered { transaction: 0, response_time_ns: None, earlier_response_count: 1 };
        assert_eq!(exchanges.answer(&subject(1), at(20)), Some(repeated));
        assert_eq!(exchanges.add_query(&subject(3), at(30), no_report), (2, 0));
        assert_eq!(exchanges.add_query(&subject(1), at(50), no_report), (0, 0));
        assert_eq!(exchanges.add_query(&subject(1), at(51), no_report), (0, 1), "sent again");
        // Too late: other queries with the same identifiers.
        assert_eq!(exchanges.answer(&subject(2), at(61)), None);
        assert_eq!(exchanges.add_query(&subject(2), at(61), no_report), (3, 0));
        assert_eq!(exchanges.add_query(&subject(1), at(102), no_report), (4, 0));
    }

    #[test]
    fn an_unanswered_query_is_reported_once() {
        let mut exchanges = Exchanges::default();
        exchanges.add_query(&subject(1), at(0), no_report);
        exchanges.add_query(&subject(2), at(0), no_report);
        exchanges.answer(&subject(2), at(1));
        exchanges.add_query(&subject(1), at(5_000), no_report);
        exchanges.age(at(14_999), no_report);
        let mut unanswered = Vec::new();
        exchanges.age(at(15_000), |query| {
            unanswered.push((query.transaction, query.waited.as_nanos(), query.retransmission_count))
        });
        exchanges.end(Role::Client, at(15_000), no_report);
        assert_eq!(unanswered, [(0, 15_000_000_000, 1)]);
    }

    #[test]
    fn pending_queries_are_limited_and_their_memory_is_released() {
        let mut exchanges = Exchanges::default();
        let mut unanswered = Vec::new();
        for id in 0..1_000 {
            exchanges.add_query(&subject(id), at(u64::from(id)), |query| {
                unanswered.push((query.id, query.reason))
            });
        }
        let first: Vec<_> =
            (0..1_000 - EXCHANGE_COUNT_MAX as u16).map(|id| (id, UnansweredReason::Displaced)).collect();
        assert_eq!(unanswered, first);
        assert!(exchanges.heap_len() <= EXCHANGE_COUNT_MAX * size_of::<Exchange>());
        exchanges.end(Role::Server, at(1_000), no_report);
        exchanges.end(Role::Client, at(1_000), |query| unanswered.push((query.id, query.reason)));
        assert_eq!(unanswered.len(), 1_000);
        assert_eq!(exchanges.heap_len(), 0);
    }

    #[test]
    fn the_hash_of_a_question_ignores_case() {
        let hash = |name: &[u8]| hash_question(name, RecordType::A, 1);
        assert_eq!(hash(b"\x07ExAmPlE\x03cOm\0"), hash(b"\x07example\x03com\0"));
        assert_ne!(hash(b"\x07example\x03com\0"), hash(b"\x07example\x03con\0"));
        assert_ne!(hash(b"\x01a\0"), hash_question(b"\x01a\0", RecordType::AAAA, 1));
    }
}
