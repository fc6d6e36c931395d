//! A sink that joins messages to transactions, and passes them to another sink.

use std::io::{self, Read, Write};
use std::ops::ControlFlow;

use super::record_sink::RecordSink;
use super::sink::Sink;
use super::stage::Sessions;
use crate::base::{EndReason, Timestamp};
use crate::checkpoint::{Invalid, Reader, Saved, State, StateWriter, Writer};
use crate::codec::{self, Prefix};
use crate::decode::extractor::Packet;
use crate::neighbor::Neighbor;
use crate::protocols::{Message, Standard};
use crate::row::Union as _;
use crate::session::{Fault, MessageMeta, Protocol, SessionEvent};
use crate::tracker::{Flow, FlowEvent, FlowView, Interest};
use crate::transaction::{Content, FlowTransactions, Joins, Transaction, TransactionConfig};

/// A sink of the stage [`Sessions`] that also receives transactions.
pub trait TransactionSink: Sink<Stage = Sessions<Standard>> {
    /// Delivers a transaction when it ends: with its last message, or with the flow.
    fn transaction(&mut self, flow: &FlowView<'_>, state: &mut Self::State, transaction: &Transaction);

    /// Returns whether transactions of a protocol are wanted, or of one that it announces, as FTP does. Messages of others are
    /// not joined. Called with each message.
    #[inline]
    fn wants(&self, _protocol: &'static Protocol) -> bool {
        true
    }
}

/// Records do not depend on transactions.
impl TransactionSink for RecordSink<'_, Sessions<Standard>> {
    fn transaction(&mut self, _: &FlowView<'_>, (): &mut (), _: &Transaction) {}

    fn wants(&self, _: &'static Protocol) -> bool {
        false
    }
}

/// A sink that joins the messages of each flow to transactions for a [`TransactionSink`]. All callbacks are passed on.
///
/// Transactions of a flow that ends are delivered before its last [`record`](Sink::record). The memory of open transactions
/// is charged to the budget. If it is short, transactions end before their time, with
/// [`Lack::Limit`](crate::transaction::Lack::Limit): those of a session or flow that is evicted, and those of a flow with a
/// message that allocates more than is left.
#[derive(Debug)]
pub struct Transactions<K> {
    inner: K,
    joins: Joins,
    /// Memory of the transactions in bytes up to which they may grow before the pipeline charges it.
    held_max: u64,
}

/// Memory in bytes by which transactions may grow between two charges, even if there is none.
const UNCHARGED_MAX: u64 = 256 << 10;

/// Part of the memory that is left by which transactions may grow between two charges.
const LEFT_PART: u64 = 16;

/// The state of a flow: of the transactions, and of the inner sink.
#[derive(Debug, Default)]
pub struct TransactionState<S> {
    open: FlowTransactions,
    /// Time of the first packet of the flow, as soon as a message or an active timeout precedes others.
    start: Option<Timestamp>,
    inner: S,
}

/// Name of the attachment of a checkpoint with what flows have in common.
const ATTACHMENT: &str = "flowgauge.transactions";

/// The state of the inner sink is written first.
impl<S: State> State for TransactionState<S> {
    fn save(&self, writer: &mut StateWriter<'_>) -> Result<(), Invalid> {
        let Self { open, start, inner } = self;
        let len = writer.reserve::<u32>()?;
        let before = writer.len();
        inner.save(writer)?;
        let inner_len = (writer.len() - before) as u32;
        writer.fill(len, inner_len);
        Saved::save(start, writer)?;
        Saved::save(open, writer)
    }

    fn load(reader: &mut codec::Reader<'_>) -> Result<Self, Invalid> {
        // The inner state may read all octets.
        let mut fields = reader.section(Prefix::U32)?;
        let inner = S::load(&mut fields)?;
        if !fields.is_empty() {
            return Err(Invalid::new("the state of another sink"));
        }
        Ok(Self { inner, start: Saved::load(reader)?, open: Saved::load(reader)? })
    }
}

impl<K> Transactions<K> {
    /// Creates a sink that passes transactions to another one.
    pub fn new(sink: K) -> Self {
        Self { inner: sink, joins: Joins::default(), held_max: u64::MAX }
    }

    /// Returns the sink with another configuration.
    #[must_use]
    pub fn config(mut self, config: TransactionConfig) -> Self {
        self.joins = self.joins.config(config);
        self
    }

    /// Attaches what flows have in common to a checkpoint: data connections of FTP, requests of TFTP, exchanges of DHCP. Must be
    /// called before [`Pipeline::checkpoint`](super::Pipeline::checkpoint), which writes the open transactions of each flow.
    ///
    /// # Errors
    ///
    /// The error of the inner writer.
    pub fn attach<W: Write>(&self, writer: &mut Writer<W>) -> io::Result<()> {
        let mut octets = Vec::new();
        self.joins
            .save(&mut StateWriter::growing(&mut octets))
            .map_err(|invalid| io::Error::new(io::ErrorKind::InvalidData, invalid))?;
        writer.attach(ATTACHMENT, &octets)
    }

    /// Continues with what was [attached](Self::attach) to a checkpoint, if anything was.
    ///
    /// # Errors
    ///
    /// [`Invalid`] if the attachment has a content that no sink writes.
    pub fn restore<R: Read>(&mut self, reader: &Reader<R>) -> Result<(), Invalid> {
        if let Some(octets) = reader.attachment(ATTACHMENT) {
            let mut fields = codec::Reader::new(octets);
            self.joins.load(&mut fields)?;
            if !fields.is_empty() {
                return Err(Invalid::new("octets behind what flows have in common"));
            }
        }
        Ok(())
    }

    /// Returns the inner sink.
    pub const fn inner(&self) -> &K {
        &self.inner
    }

    /// Returns the inner sink.
    pub const fn inner_mut(&mut self) -> &mut K {
        &mut self.inner
    }

    /// Returns the inner sink.
    pub fn into_inner(self) -> K {
        self.inner
    }
}

/// A sink that calls a function with each transaction; created by [`on_transaction`].
#[derive(Clone, Debug)]
pub struct OnTransaction<F> {
    call: F,
}

/// Returns a sink that calls a function with each transaction.
///
/// ```
/// use flowgauge::transaction::Content;
/// use flowgauge::{FileSource, Pipeline, RunOptions, on_transaction};
///
/// let mut statuses = Vec::new();
/// let sink = on_transaction(|_, transaction| {
///     if let Content::Http(http) = &transaction.content {
///         statuses.extend(http.status);
///     }
/// });
/// let mut source = FileSource::open("examples/data/web.pcap")?;
/// Pipeline::builder().build(sink)?.run(&mut source, &RunOptions::default())?;
/// assert!(statuses.contains(&200) && statuses.contains(&404));
/// # Ok::<(), flowgauge::Error>(())
/// ```
pub fn on_transaction<F: FnMut(&FlowView<'_>, &Transaction)>(call: F) -> Transactions<OnTransaction<F>> {
    Transactions::new(OnTransaction { call })
}

impl<F: FnMut(&FlowView<'_>, &Transaction)> Sink for OnTransaction<F> {
    type State = ();
    type Stage = Sessions<Standard>;

    fn interest(&self) -> Interest {
        Interest::RECORDS
    }
}

impl<F: FnMut(&FlowView<'_>, &Transaction)> TransactionSink for OnTransaction<F> {
    fn transaction(&mut self, flow: &FlowView<'_>, (): &mut (), transaction: &Transaction) {
        (self.call)(flow, transaction);
    }
}

impl<K: TransactionSink> Transactions<K> {
    /// Ends the open transactions of a flow to release their memory.
    #[cold]
    fn evict(&mut self, flow: &mut Flow<'_, TransactionState<K::State>>) {
        let TransactionState { open, inner, .. } = &mut *flow.state;
        let view = &flow.view;
        open.evict(&mut self.joins, |transaction| self.inner.transaction(view, inner, &transaction));
    }
}

impl<K: TransactionSink> Sink for Transactions<K> {
    type State = TransactionState<K::State>;
    type Stage = Sessions<Standard>;

    #[inline]
    fn interest(&self) -> Interest {
        self.inner.interest()
    }

    #[inline]
    fn started(&mut self, flow: &mut Flow<'_, Self::State>) {
        flow.project(|state| &mut state.inner, |flow| self.inner.started(flow));
    }

    #[inline]
    fn packet(&mut self, flow: &mut Flow<'_, Self::State>, packet: &Packet<'_>) {
        flow.project(|state| &mut state.inner, |flow| self.inner.packet(flow, packet));
    }

    #[inline]
    fn event(&mut self, flow: &mut Flow<'_, Self::State>, event: &FlowEvent) {
        flow.project(|state| &mut state.inner, |flow| self.inner.event(flow, event));
    }

    fn message(&mut self, flow: &mut Flow<'_, Self::State>, meta: &MessageMeta, message: &Message<'_>) {
        debug_assert!(
            meta.protocol.may_lead_to(message.row().table.prefix()),
            "{} does not declare its table {}",
            meta.protocol.name(),
            message.row().table.name
        );
        flow.project(|state| &mut state.inner, |flow| self.inner.message(flow, meta, message));
        if !self.inner.wants(meta.protocol) {
            return;
        }
        let TransactionState { open, start, inner } = &mut *flow.state;
        let view = &flow.view;
        let of = (view.key(), *start.get_or_insert(view.start()));
        open.message(&mut self.joins, of, meta, message, |transaction| {
            debug_assert!(
                matches!(transaction.content, Content::File(_))
                    || transaction.protocol().may_lead_to(transaction.content.row().table.kind()),
                "{} does not declare its table {}",
                transaction.protocol().name(),
                transaction.content.row().table.name
            );
            self.inner.transaction(view, inner, &transaction);
        });
        if self.joins.flows_len() as u64 > self.held_max {
            self.evict(flow);
        }
    }

    fn session(&mut self, flow: &mut Flow<'_, Self::State>, event: &SessionEvent) {
        if let SessionEvent::Stopped { fault: Fault::EVICTED | Fault::NO_MEMORY, .. } = event {
            self.evict(flow);
        }
        flow.project(|state| &mut state.inner, |flow| self.inner.session(flow, event));
    }

    fn record(&mut self, flow: &mut Flow<'_, Self::State>, reason: EndReason) {
        // The next record has another start.
        flow.state.start.get_or_insert(flow.view.start());
        if reason == EndReason::LackOfResources {
            self.evict(flow);
        } else if reason != EndReason::ActiveTimeout {
            let TransactionState { open, inner, .. } = &mut *flow.state;
            let view = &flow.view;
            open.end(&mut self.joins, |transaction| self.inner.transaction(view, inner, &transaction));
        }
        flow.project(|state| &mut state.inner, |flow| self.inner.record(flow, reason));
    }

    fn ended(&mut self, flow: &FlowView<'_>, reason: EndReason, state: Self::State) {
        let TransactionState { mut open, mut inner, .. } = state;
        open.end(&mut self.joins, |transaction| self.inner.transaction(flow, &mut inner, &transaction));
        self.inner.ended(flow, reason, inner);
    }

    #[inline]
    fn neighbor(&mut self, neighbor: &Neighbor<'_>) {
        self.inner.neighbor(neighbor);
    }

    fn restored(&mut self, state: &mut Self::State) {
        state.open.restored(&mut self.joins);
        self.inner.restored(&mut state.inner);
    }

    #[inline]
    fn held_bytes(&mut self, left: u64) -> u64 {
        let growth_max = (left / LEFT_PART).max(UNCHARGED_MAX);
        self.held_max = self.joins.flows_len() as u64 + growth_max;
        self.joins.heap_len() as u64 + self.inner.held_bytes(left)
    }

    #[inline]
    fn batch_ended(&mut self) -> ControlFlow<()> {
        self.inner.batch_ended()
    }
}
