//! The sink of each table.

use std::marker::PhantomData;
use std::ops::ControlFlow;

use flowgauge::features::{FeatureSet, Features, FlowFeatures};
use flowgauge::neighbor::Neighbor;
use flowgauge::pipeline::RecordReceiver;
use flowgauge::record::CommunityId;
use flowgauge::row::{Row, TableRow, Union};
use flowgauge::session::MessageHead;
use flowgauge::transaction::{Transaction, TransactionHead};
use flowgauge::{
    EndReason, Filter, Flow, FlowRecord, FlowView, Flows, Interest, Message, MessageMeta, Packet,
    SessionEvent, Sessions, Sink, Stage, Standard, TransactionSink,
};

use super::batches::Batches;
use super::config::Times;
use super::table::{InFile, Table};

/// What all sinks have in common.
pub(super) struct Rows<'r, 'b> {
    pub(super) batches: &'r mut Batches<'b>,
    pub(super) file: Option<&'r str>,
    pub(super) times: Times,
}

impl Rows<'_, '_> {
    /// Appends the row of a flow record, if its time is wanted.
    #[inline]
    pub(super) fn push_record(&mut self, record: &FlowRecord) {
        if self.times.contains(record.start) {
            self.batches.push(&(record, InFile(self.file)));
        }
    }
}

/// Rows of flow records.
impl RecordReceiver for Rows<'_, '_> {
    fn record(&mut self, view: &FlowView<'_>, reason: EndReason) {
        self.push_record(&view.record(reason));
    }

    fn batch_ended(&mut self) -> ControlFlow<()> {
        self.batches.flow()
    }
}

/// Rows of flow records with features.
pub(super) struct FeatureRows<'r, 'b, G> {
    rows: Rows<'r, 'b>,
    filter: Option<&'r Filter>,
    features: FeatureSet,
    /// Number of records of the file.
    record_count: u64,
    /// Memory of the features of open flows.
    held_bytes: u64,
    stage: PhantomData<fn() -> G>,
}

impl<'r, 'b, G> FeatureRows<'r, 'b, G> {
    pub(super) fn new(rows: Rows<'r, 'b>, filter: Option<&'r Filter>, features: FeatureSet) -> Self {
        Self { rows, filter, features, record_count: 0, held_bytes: 0, stage: PhantomData }
    }
}

impl<G: Stage> Sink for FeatureRows<'_, '_, G> {
    type State = FlowFeatures;
    type Stage = G;

    fn interest(&self) -> Interest {
        Interest::PACKETS | Interest::RECORDS
    }

    #[inline]
    fn packet(&mut self, flow: &mut Flow<'_, FlowFeatures>, packet: &Packet<'_>) {
        let before = flow.state.heap_len();
        flow.state.count(&self.features, packet);
        self.held_bytes = self.held_bytes + flow.state.heap_len() as u64 - before as u64;
    }

    fn record(&mut self, flow: &mut Flow<'_, FlowFeatures>, reason: EndReason) {
        // The next record begins again with its features.
        let features = std::mem::take(flow.state);
        self.held_bytes -= features.heap_len() as u64;
        let Rows { batches, file, times } = &mut self.rows;
        if self.filter.is_none_or(|filter| filter.matches_flow(&flow.view)) {
            let record = flow.view.record(reason);
            let number = self.record_count;
            self.record_count += 1;
            if times.contains(record.start) {
                let features = Features::new(&record, &features, Some(number));
                batches.push(&((&record, features), InFile(*file)));
            }
        }
    }

    fn ended(&mut self, _: &FlowView<'_>, _: EndReason, features: FlowFeatures) {
        self.held_bytes -= features.heap_len() as u64;
    }

    fn held_bytes(&mut self, _: u64) -> u64 {
        self.held_bytes
    }

    fn batch_ended(&mut self) -> ControlFlow<()> {
        self.rows.batches.flow()
    }
}

/// Rows of packets.
pub(super) struct PacketRows<'r, 'b>(pub(super) Rows<'r, 'b>);

impl Sink for PacketRows<'_, '_> {
    type State = ();
    type Stage = Flows;

    fn interest(&self) -> Interest {
        Interest::PACKETS
    }

    #[inline]
    fn packet(&mut self, _: &mut Flow<'_, ()>, packet: &Packet<'_>) {
        let Rows { batches, file, times } = &mut self.0;
        if times.contains(packet.timestamp) {
            batches.push(&(packet, InFile(*file)));
        }
    }

    fn batch_ended(&mut self) -> ControlFlow<()> {
        self.0.batches.flow()
    }
}

/// Rows of messages, or of transactions.
pub(super) struct SessionRows<'r, 'b> {
    rows: Rows<'r, 'b>,
    table: Table,
}

impl<'r, 'b> SessionRows<'r, 'b> {
    pub(super) const fn new(rows: Rows<'r, 'b>, table: Table) -> Self {
        Self { rows, table }
    }

    fn take(&mut self, flow: &mut Flow<'_, State>, meta: &MessageMeta, message: &impl Union) {
        if matches!(self.table, Table::Messages(_)) && self.rows.times.contains(meta.timestamp) {
            let row = message.row();
            let head = |id: CommunityId| MessageHead::new(&flow.view, id, meta, row.table);
            self.push(&flow.view, &mut flow.state.community_id, row, head);
        }
    }

    /// Appends a row of a table, preceded by its head, which is made of the Community ID of the flow.
    fn push<H: Row>(
        &mut self,
        view: &FlowView<'_>,
        known: &mut Option<CommunityId>,
        row: TableRow<'_>,
        head: impl FnOnce(CommunityId) -> H,
    ) {
        if self.table.has(row.table) {
            let head = head(*known.get_or_insert_with(|| view.community_id()));
            let Rows { batches, file, .. } = &mut self.rows;
            batches.push_of(row.table, &((head, row), InFile(*file)));
        }
    }
}

/// State of a flow.
#[derive(Debug, Default)]
pub(super) struct State {
    community_id: Option<CommunityId>,
}

impl Sink for SessionRows<'_, '_> {
    type State = State;
    type Stage = Sessions<Standard>;

    fn interest(&self) -> Interest {
        if self.table.is_of_neighbors() { Interest::NEIGHBORS } else { Interest::RECORDS }
    }

    fn neighbor(&mut self, neighbor: &Neighbor<'_>) {
        let row = neighbor.message.row();
        if self.table.has(row.table) && self.rows.times.contains(neighbor.head.timestamp) {
            let Rows { batches, file, .. } = &mut self.rows;
            batches.push_of(row.table, &((neighbor.head, row), InFile(*file)));
        }
    }

    fn message(&mut self, flow: &mut Flow<'_, State>, meta: &MessageMeta, message: &Message<'_>) {
        if !message.is_content() && !message.is_plain_end() {
            self.take(flow, meta, message);
        }
    }

    fn session(&mut self, flow: &mut Flow<'_, State>, event: &SessionEvent) {
        match event {
            SessionEvent::Recognized { protocol, .. } if !self.table.may_follow(protocol) => flow.mute(),
            SessionEvent::Stopped { meta, .. } | SessionEvent::Suppressed { meta } => {
                self.take(flow, meta, event);
            }
            _ => {}
        }
    }

    fn batch_ended(&mut self) -> ControlFlow<()> {
        self.rows.batches.flow()
    }
}

impl TransactionSink for SessionRows<'_, '_> {
    fn transaction(&mut self, flow: &FlowView<'_>, state: &mut State, transaction: &Transaction) {
        if self.rows.times.contains(transaction.start()) {
            let row = transaction.content.row();
            let head = |id: CommunityId| TransactionHead::new(flow, id, transaction, row.table);
            self.push(flow, &mut state.community_id, row, head);
        }
    }

    fn wants(&self, protocol: &'static flowgauge::Protocol) -> bool {
        self.table.may_follow(protocol)
    }
}
