//! The rows of a flow: those that are open, and those that are complete.

use std::collections::VecDeque;
use std::time::Duration;

use super::head::ExchangeHead;
use super::log::LogFormat;
use super::message::{KitMessage, KitRow};
use crate::base::Timestamp;
use crate::checkpoint::{Invalid, Saved, StateWriter, state};
use crate::codec::Reader;
use crate::row::TableInfo;
use crate::session::{Lack, Piece, Role};

/// Maximum number of open rows that a protocol may declare, so that a search takes constant time.
pub(super) const OPEN_MAX: usize = 64;

/// Callback that receives the rows of a flow.
pub(super) type Deliver<'o> = &'o mut dyn for<'m> FnMut(KitMessage<'m>);

/// The rows of a protocol that may be open: a row, or an enum of them, declared by [`open!`](super::open!).
pub(crate) trait Open: Saved + 'static {
    /// The tables of all rows as messages.
    const TABLES: &'static [&'static TableInfo];
    /// The tables of all rows as transactions.
    const TRANSACTIONS: &'static [&'static TableInfo];

    /// Returns the tables of the rows in logs of other programs.
    fn logs() -> Vec<(&'static TableInfo, LogFormat)>;

    /// Returns the row.
    fn row(&self) -> &dyn KitRow;
    /// Returns the row.
    fn row_mut(&mut self) -> &mut dyn KitRow;
    /// Returns the number of the type of the row.
    fn kind(&self) -> u8;
    /// Returns the number of octets that are allocated for the row itself.
    fn boxed_len(&self) -> usize;
}

/// Says that a row is one of those that may be open.
pub(crate) trait Stored<T>: Open {
    /// Number of the type of the row.
    const KIND: u8;
    /// Number of octets that are allocated for the row itself.
    const BOXED_LEN: usize;
    /// Returns the row as one of those that may be open.
    fn of(row: T) -> Self;
    /// Returns the row, if it is of this type.
    fn get(&mut self) -> Option<&mut T>;
}

/// Declares the rows of a protocol that may be open, as an enum with their names. A rare row that is larger than the others is
/// declared `in Box`, so that the others are not as large.
macro_rules! open {
    (@type $row:ident) => { $row };
    (@type $row:ident Box) => { ::std::boxed::Box<$row> };
    (@boxed_len $row:ident) => { 0 };
    (@boxed_len $row:ident Box) => { ::std::mem::size_of::<$row>() };
    ($(#[$meta:meta])* pub(crate) enum $type:ident { $($number:literal = $row:ident $(in $box:ident)?),+ $(,)? }) => {
        $(#[$meta])*
        #[derive(Debug)]
        #[allow(clippy::large_enum_variant, reason = "few are open")]
        pub(crate) enum $type { $( $row($crate::session::kit::open!(@type $row $($box)?)), )+ }

        $crate::checkpoint::state! { enum $type { $($number = $row(row)),+ } }

        impl $crate::session::kit::Open for $type {
            const TABLES: &'static [&'static $crate::row::TableInfo] =
                &[$( <$row as $crate::session::kit::Declared>::MESSAGE ),+];
            const TRANSACTIONS: &'static [&'static $crate::row::TableInfo] =
                &[$( const { &$crate::row::TableInfo::of::<$row>() } ),+];

            fn logs() -> ::std::vec::Vec<(&'static $crate::row::TableInfo, $crate::session::kit::LogFormat)> {
                let mut logs = ::std::vec::Vec::new();
                $( logs.extend(<$row as $crate::session::kit::Declared>::LOGS.iter().map(|log| (log.table, log.format))); )+
                logs
            }

            fn row(&self) -> &dyn $crate::session::kit::KitRow {
                match self { $( Self::$row(row) => ::std::borrow::Borrow::<$row>::borrow(row), )+ }
            }

            fn row_mut(&mut self) -> &mut dyn $crate::session::kit::KitRow {
                match self { $( Self::$row(row) => ::std::borrow::BorrowMut::<$row>::borrow_mut(row), )+ }
            }

            fn kind(&self) -> u8 {
                match self { $( Self::$row(_) => $number, )+ }
            }

            fn boxed_len(&self) -> usize {
                match self { $( Self::$row(_) => <Self as $crate::session::kit::Stored<$row>>::BOXED_LEN, )+ }
            }
        }

        $(
            impl $crate::session::kit::Stored<$row> for $type {
                const KIND: u8 = $number;
                const BOXED_LEN: usize = $crate::session::kit::open!(@boxed_len $row $($box)?);

                #[allow(clippy::useless_conversion, reason = "some are boxed")]
                fn of(row: $row) -> Self {
                    Self::$row(row.into())
                }

                #[allow(unreachable_patterns, reason = "there may be one type of rows")]
                fn get(&mut self) -> Option<&mut $row> {
                    match self {
                        Self::$row(row) => Some(row),
                        _ => None,
                    }
                }
            }
        )+
    };
}
pub(crate) use open;

/// Whether further responses follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    /// The exchange is complete.
    Last,
    /// The exchange stays open.
    More,
    /// The row is delivered with this response, and again with each further one.
    Each,
}

/// What an open row waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Awaits {
    /// A response.
    #[default]
    Response,
    /// Further responses, or requests.
    More,
    /// The request, which may be captured later than its response.
    Request,
    /// The request, after a response that others may follow.
    RequestOfSeveral,
    /// The end of the flow.
    Flow,
    /// Further responses; the row was delivered with those before.
    Delivered,
}

state! { enum Awaits { 0 = Response, 1 = More, 2 = Request, 3 = Flow, 4 = Delivered, 5 = RequestOfSeveral } }

impl Awaits {
    const fn is_request(self) -> bool {
        matches!(self, Self::Request | Self::RequestOfSeveral)
    }

    /// Returns what a row lacks that ends now.
    const fn lack(self) -> Option<Lack> {
        match self {
            Self::Response => Some(Lack::Response),
            Self::More => Some(Lack::End),
            Self::Request | Self::RequestOfSeveral => Some(Lack::Request),
            Self::Flow | Self::Delivered => None,
        }
    }
}

/// A row that is not complete.
#[derive(Debug)]
struct Pending<R> {
    /// What the request and its responses have in common.
    key: u64,
    /// Digest of the request; zero if requests are not compared.
    digest: u32,
    awaits: Awaits,
    /// Number of octets that the row has allocated.
    heap_len: usize,
    row: R,
}

impl<R: Open> Saved for Pending<R> {
    fn save(&self, writer: &mut StateWriter<'_>) -> Result<(), Invalid> {
        self.key.save(writer)?;
        self.digest.save(writer)?;
        self.awaits.save(writer)?;
        self.row.save(writer)
    }

    fn load(reader: &mut Reader<'_>) -> Result<Self, Invalid> {
        let (key, digest) = (u64::load(reader)?, u32::load(reader)?);
        let (awaits, row) = (Awaits::load(reader)?, R::load(reader)?);
        let heap_len = row.boxed_len() + row.row().heap_len();
        Ok(Self { key, digest, awaits, heap_len, row })
    }
}

/// The open rows of a flow, oldest first.
#[derive(Debug)]
pub(super) struct Store<R> {
    pending: VecDeque<Pending<R>>,
    /// Number of octets that all rows have allocated.
    rows_len: usize,
}

impl<R> Default for Store<R> {
    fn default() -> Self {
        Self { pending: VecDeque::new(), rows_len: 0 }
    }
}

impl<R: Open> Store<R> {
    /// Returns the number of octets that were allocated for the rows.
    pub(super) fn heap_len(&self) -> usize {
        self.pending.capacity() * size_of::<Pending<R>>() + self.rows_len
    }

    fn push(&mut self, pending: Pending<R>, open_max: usize) {
        let len = self.pending.len();
        if len == self.pending.capacity() {
            // Twice as many, but never more than the protocol declares.
            self.pending.reserve_exact(len.clamp(1, open_max.saturating_sub(len).max(1)));
        }
        self.rows_len += pending.heap_len;
        self.pending.push_back(pending);
    }

    fn remove(&mut self, index: usize) -> Option<Pending<R>> {
        let pending = self.pending.remove(index)?;
        self.rows_len -= pending.heap_len;
        if self.pending.is_empty() && self.pending.capacity() > 2 {
            self.pending = VecDeque::new();
        }
        Some(pending)
    }

    /// Delivers a row, which lacks `lack` unless it lacks something else.
    fn deliver(&mut self, index: usize, lack: Option<Lack>, out: Deliver<'_>) {
        let Some(mut pending) = self.remove(index) else { return };
        if pending.awaits == Awaits::Delivered {
            return;
        }
        let head = pending.row.row_mut().head_mut();
        head.lacks = head.lacks.or(lack);
        out(KitMessage::of(pending.row.row()));
    }

    /// Delivers a row that stays open for further responses.
    fn deliver_open(&mut self, index: usize, out: Deliver<'_>) {
        let Some(pending) = self.pending.get_mut(index) else { return };
        out(KitMessage::of(pending.row.row()));
        pending.awaits = Awaits::Delivered;
        pending.row.row_mut().head_mut().responded = None;
    }

    /// Delivers the rows for which `is_over` returns true.
    fn close(&mut self, out: Deliver<'_>, is_over: impl Fn(&ExchangeHead, Awaits) -> bool) {
        let mut index = 0;
        while let Some(pending) = self.pending.get(index) {
            if is_over(pending.row.row().head(), pending.awaits) {
                let lack = pending.awaits.lack();
                self.deliver(index, lack, out);
            } else {
                index += 1;
            }
        }
    }

    /// Delivers the rows that have waited for too long.
    pub(super) fn age(&mut self, now: Timestamp, within: (Duration, Duration), out: Deliver<'_>) {
        let (answer_within, request_within) = within;
        self.close(out, |head, awaits| {
            let max = if awaits.is_request() { request_within } else { answer_within };
            awaits != Awaits::Flow && now.saturating_since(head.end) >= max
        });
    }

    /// Delivers the rows that wait for the side whose direction ended.
    pub(super) fn end(&mut self, from: Role, out: Deliver<'_>) {
        self.close(out, |head, awaits| {
            let awaited = if awaits.is_request() { head.from } else { head.from.other() };
            awaits != Awaits::Flow && awaited == from
        });
    }

    /// Delivers all rows.
    pub(super) fn finish(&mut self, out: Deliver<'_>) {
        self.close(out, |_, _| true);
    }

    pub(super) fn save(&self, writer: &mut StateWriter<'_>) -> Result<(), Invalid> {
        self.pending.save(writer)
    }

    pub(super) fn load(reader: &mut Reader<'_>, open_max: usize) -> Result<Self, Invalid> {
        let count = usize::load(reader)?;
        if count > open_max {
            return Err(Invalid::new("too many open rows"));
        }
        let mut store = Self::default();
        for _ in 0..count {
            store.push(Pending::load(reader)?, open_max);
        }
        Ok(store)
    }
}

/// The rows of a flow, while a PDU is processed.
pub(crate) struct Rows<'r, R> {
    pub(super) store: &'r mut Store<R>,
    pub(super) out: Deliver<'r>,
    pub(super) open_max: usize,
    pub(super) from: Role,
    pub(super) now: Timestamp,
    /// Time within which a request may be captured after its response: directions of datagrams are independent.
    pub(super) request_within: Option<Duration>,
}

impl<R: Open> Rows<'_, R> {
    /// Sets the role of the sender of the PDU, if the PDU states it.
    pub(crate) const fn acts_as(&mut self, role: Role) {
        self.from = role;
    }

    /// Returns the role of the sender.
    pub(crate) const fn from(&self) -> Role {
        self.from
    }

    /// Returns the time of the PDU.
    pub(crate) const fn now(&self) -> Timestamp {
        self.now
    }

    /// Returns whether the PDU is part of a stream, rather than a datagram.
    pub(crate) const fn is_in_stream(&self) -> bool {
        self.request_within.is_none()
    }

    /// Returns the open row of this type with a key, which a role requested: the latest one of datagrams, and the oldest one of
    /// a stream, in which messages have an order.
    fn find<T>(&self, key: u64, requester: Role) -> Option<usize>
    where
        R: Stored<T>,
    {
        let is_found = |pending: &Pending<R>| {
            let is_of = pending.key == key && pending.row.kind() == R::KIND && pending.awaits != Awaits::Flow;
            is_of && pending.row.row().head().from == requester
        };
        let mut pending = self.store.pending.iter();
        if self.is_in_stream() { pending.position(is_found) } else { pending.rposition(is_found) }
    }

    /// Returns the latest open row as [`find`](Self::find) does, unless it is over, in which case it is delivered.
    fn find_unless<T>(
        &mut self,
        (key, requester): (u64, Role),
        is_over: impl Fn(&Pending<R>) -> bool,
    ) -> Option<usize>
    where
        R: Stored<T>,
    {
        let index = self.find::<T>(key, requester)?;
        let pending = self.store.pending.get(index)?;
        if !is_over(pending) {
            return Some(index);
        }
        let lack = pending.awaits.lack();
        self.store.deliver(index, lack, self.out);
        None
    }

    /// Opens a row. If there are too many, the oldest one is delivered.
    fn open<T: KitRow>(&mut self, (key, digest): (u64, u32), awaits: Awaits, row: T)
    where
        R: Stored<T>,
    {
        if self.store.pending.len() >= self.open_max
            && let Some(index) = self.store.pending.iter().position(|pending| pending.awaits != Awaits::Flow)
        {
            let awaits = self.store.pending.get(index).map(|pending| pending.awaits);
            // What a response without a request lacks is known.
            let lack = if awaits.is_some_and(Awaits::is_request) { Lack::Request } else { Lack::Limit };
            self.store.deliver(index, Some(lack), self.out);
        }
        let heap_len = R::BOXED_LEN + row.heap_len();
        self.store.push(Pending { key, digest, awaits, heap_len, row: R::of(row) }, self.open_max);
    }

    /// Changes an open row, and counts what it has allocated.
    fn change<T: KitRow, A>(
        &mut self,
        index: usize,
        change: impl FnOnce(&mut T, &mut Awaits) -> A,
    ) -> Option<A>
    where
        R: Stored<T>,
    {
        let pending = self.store.pending.get_mut(index)?;
        let row = pending.row.get()?;
        let answer = change(row, &mut pending.awaits);
        let heap_len = R::BOXED_LEN + row.heap_len();
        self.store.rows_len += heap_len;
        self.store.rows_len -= std::mem::replace(&mut pending.heap_len, heap_len);
        Some(answer)
    }

    /// Opens the row of a request. In datagrams, it continues the open one with this key instead: a request that is repeated
    /// before a response is a retransmission, and the row of a response that was captured before is delivered with it. In a
    /// stream, requests with the same key are answered in their order.
    pub(crate) fn request<T: KitRow + Default>(&mut self, key: u64, fill: impl FnOnce(&mut T))
    where
        R: Stored<T>,
    {
        self.request_of(key, 0, fill);
    }

    /// As [`request`](Self::request), for keys that are used again: a request with another digest is not a retransmission. The
    /// open row with this key is delivered without a response.
    pub(crate) fn request_of<T: KitRow + Default>(&mut self, key: u64, digest: u32, fill: impl FnOnce(&mut T))
    where
        R: Stored<T>,
    {
        let (from, now, request_within) = (self.from, self.now, self.request_within);
        let is_over = |pending: &Pending<R>| match pending.awaits {
            Awaits::Response => pending.digest != digest,
            Awaits::Request | Awaits::RequestOfSeveral => {
                let waited = now.saturating_since(pending.row.row().head().end);
                request_within.is_none_or(|within| waited >= within)
            }
            Awaits::More | Awaits::Flow | Awaits::Delivered => false,
        };
        let open = if self.is_in_stream() { None } else { self.find_unless::<T>((key, from), is_over) };
        let Some(index) = open else {
            let mut row = T::default();
            *row.head_mut() = ExchangeHead::new(from, now);
            fill(&mut row);
            return self.open((key, digest), Awaits::Response, row);
        };
        let early = self.change(index, |row: &mut T, awaits| {
            fill(row);
            let head = row.head_mut();
            let early = awaits.is_request().then_some(*awaits);
            head.end = head.end.max(now);
            let is_repeated = *awaits == Awaits::Response;
            head.retransmission_count = head.retransmission_count.saturating_add(is_repeated.into());
            if early.is_some() {
                *awaits = Awaits::More;
            }
            if request_within.is_some() && head.lacks == Some(Lack::Request) {
                head.lacks = None;
            }
            early
        });
        match early.flatten() {
            Some(Awaits::RequestOfSeveral) => self.store.deliver_open(index, self.out),
            Some(_) => self.store.deliver(index, None, self.out),
            None => {}
        }
    }

    /// Continues the row of the request with this key, and delivers it unless further responses follow. Without a request,
    /// the row lacks it.
    pub(crate) fn response<T: KitRow + Default>(&mut self, key: u64, fill: impl FnOnce(&mut T) -> Reply)
    where
        R: Stored<T>,
    {
        let (requester, now) = (self.from.other(), self.now);
        // Two responses do not share a request.
        let is_over = |pending: &Pending<R>| pending.awaits.is_request();
        let Some(index) = self.find_unless::<T>((key, requester), is_over) else {
            let mut row = T::default();
            *row.head_mut() = ExchangeHead { responded: Some(now), ..ExchangeHead::new(requester, now) };
            let reply = fill(&mut row);
            return match reply {
                Reply::Last if self.request_within.is_some() => self.open((key, 0), Awaits::Request, row),
                Reply::Each if self.request_within.is_some() => {
                    self.open((key, 0), Awaits::RequestOfSeveral, row);
                }
                Reply::Last | Reply::Each => {
                    row.head_mut().lacks = Some(Lack::Request);
                    (self.out)(KitMessage::of(&row));
                }
                Reply::More => {
                    row.head_mut().lacks = Some(Lack::Request);
                    self.open((key, 0), Awaits::More, row);
                }
            };
        };
        self.answer(index, fill);
    }

    /// Completes the open row of the other side with this key, if there is one.
    pub(crate) fn complete<T: KitRow>(&mut self, key: u64, fill: impl FnOnce(&mut T))
    where
        R: Stored<T>,
    {
        if let Some(index) = self.find::<T>(key, self.from.other()) {
            self.answer(index, |row: &mut T| {
                fill(row);
                Reply::Last
            });
        }
    }

    /// Adds a response to an open row, and delivers it unless further ones follow.
    fn answer<T: KitRow>(&mut self, index: usize, fill: impl FnOnce(&mut T) -> Reply)
    where
        R: Stored<T>,
    {
        let now = self.now;
        let reply = self.change(index, |row: &mut T, awaits| {
            let reply = fill(row);
            let head = row.head_mut();
            head.end = now;
            head.responded.get_or_insert(now);
            let is_first = matches!(awaits, Awaits::Response | Awaits::Delivered);
            if is_first && head.lacks.is_none() {
                head.response_time = Some(now.saturating_since(head.start));
            }
            if is_first {
                *awaits = Awaits::More;
            }
            reply
        });
        match reply {
            Some(Reply::Last) => self.store.deliver(index, None, self.out),
            Some(Reply::Each) => self.store.deliver_open(index, self.out),
            Some(Reply::More) | None => {}
        }
    }

    /// Changes the row of the flow, which is opened by its first change, and delivered at the end of the flow.
    pub(crate) fn flow<T: KitRow + Default>(&mut self, fill: impl FnOnce(&mut T))
    where
        R: Stored<T>,
    {
        let (from, now) = (self.from, self.now);
        let is_found = |pending: &Pending<R>| pending.awaits == Awaits::Flow && pending.row.kind() == R::KIND;
        match self.store.pending.iter().position(is_found) {
            Some(index) => {
                self.change(index, |row: &mut T, _| {
                    fill(row);
                    row.head_mut().end = now;
                });
            }
            None => {
                let mut row = T::default();
                *row.head_mut() = ExchangeHead::new(from, now);
                fill(&mut row);
                self.open((0, 0), Awaits::Flow, row);
            }
        }
    }

    /// Delivers a piece of a file, with a row that describes the file.
    pub(crate) fn piece<T: KitRow>(&mut self, row: &T, piece: Piece<'_>) {
        (self.out)(KitMessage::of_piece(row, &piece));
    }

    /// Delivers a row that the parser kept itself.
    pub(crate) fn kept<T: KitRow>(&mut self, row: &T) {
        (self.out)(KitMessage::of(row));
    }

    /// Returns the head of a row that the parser keeps itself.
    pub(crate) const fn head(&self) -> ExchangeHead {
        ExchangeHead::new(self.from, self.now)
    }

    /// Delivers a row that is complete.
    pub(crate) fn single<T: KitRow>(&mut self, mut row: T) {
        *row.head_mut() = ExchangeHead::new(self.from, self.now);
        (self.out)(KitMessage::of(&row));
    }
}
