//! The sink of a summary that continues from a checkpoint.

use std::collections::HashSet;
use std::fs::File;
use std::io;

use flowgauge::checkpoint::{Invalid, Reader, Writer};
use flowgauge::neighbor::Neighbor;
use flowgauge::pipeline::{TransactionSink, Transactions};
use flowgauge::session::MessageMeta;
use flowgauge::transaction::Transaction;
use flowgauge::{
    EndReason, Flow, FlowView, Interest, Message, Packet, PipelineStats, Sessions, Sink, Standard,
};
use flowgauge_summary::{Collector, CollectorState, Frames, Totals, Watch};
use serde::{Deserialize, Serialize};

use crate::checkpoint::Flush;

/// Collects facts, and continues with those of a checkpoint.
#[derive(Debug, Default)]
pub(super) struct Continued {
    pub(super) collector: Collector,
    /// Notes what the frames of this run are; `None` if it has none.
    pub(super) watch: Option<Watch>,
    /// Names of the captures of this run.
    pub(super) names: Vec<String>,
    /// What runs before this one counted.
    earlier: Earlier,
}

/// What earlier runs with the same checkpoint counted.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Earlier {
    pub(super) frames: Frames,
    pub(super) totals: Totals,
    /// Names of their captures, each once.
    pub(super) names: Vec<String>,
}

/// Name of the attachment of a checkpoint.
const ATTACHMENT: &str = "flowgauge.summary";

impl Continued {
    /// Creates the sink of a run.
    pub(super) fn new(watch: Watch, names: Vec<String>) -> Self {
        Self { watch: Some(watch), names, ..Self::default() }
    }

    /// Returns what this run, which has these counters, and the earlier ones counted.
    pub(super) fn counted(&self, stats: &PipelineStats) -> Earlier {
        let mut all = self.earlier.clone();
        if let Some(watch) = &self.watch {
            all.frames.add(&watch.frames());
        }
        all.totals.add(stats);
        let mut known: HashSet<&String> = self.earlier.names.iter().collect();
        all.names.extend(self.names.iter().filter(|name| known.insert(name)).cloned());
        all
    }
}

impl Flush for &mut Transactions<Continued> {
    fn flush(&mut self) -> bool {
        true
    }

    fn attach(&self, stats: &PipelineStats, writer: &mut Writer<File>) -> io::Result<()> {
        Transactions::attach(self, writer)?;
        let sink = self.inner();
        let octets = serde_json::to_vec(&(&sink.collector.facts, sink.counted(stats)))?;
        writer.attach(ATTACHMENT, &octets)
    }

    fn restore(&mut self, reader: &Reader<File>) -> Result<(), Invalid> {
        Transactions::restore(self, reader)?;
        let octets = reader.attachment(ATTACHMENT).unwrap_or_default();
        let saved = serde_json::from_slice(octets);
        let (facts, earlier) = saved.map_err(|_| Invalid::new("a summary that cannot be read"))?;
        let sink = self.inner_mut();
        (sink.collector.facts, sink.earlier) = (facts, earlier);
        Ok(())
    }
}

impl Sink for Continued {
    type State = CollectorState;
    type Stage = Sessions<Standard>;

    fn interest(&self) -> Interest {
        self.collector.interest()
    }

    fn packet(&mut self, flow: &mut Flow<'_, CollectorState>, packet: &Packet<'_>) {
        self.collector.packet(flow, packet);
    }

    fn neighbor(&mut self, neighbor: &Neighbor<'_>) {
        self.collector.neighbor(neighbor);
    }

    fn message(&mut self, flow: &mut Flow<'_, CollectorState>, meta: &MessageMeta, message: &Message<'_>) {
        self.collector.message(flow, meta, message);
    }

    fn held_bytes(&mut self, left: u64) -> u64 {
        Sink::held_bytes(&mut self.collector, left)
    }

    fn record(&mut self, flow: &mut Flow<'_, CollectorState>, reason: EndReason) {
        self.collector.record(flow, reason);
    }

    fn restored(&mut self, state: &mut CollectorState) {
        self.collector.restored(state);
    }

    fn ended(&mut self, view: &FlowView<'_>, reason: EndReason, state: CollectorState) {
        self.collector.ended(view, reason, state);
    }
}

impl TransactionSink for Continued {
    fn transaction(&mut self, view: &FlowView<'_>, state: &mut CollectorState, transaction: &Transaction) {
        self.collector.transaction(view, state, transaction);
    }

    #[inline]
    fn wants(&self, protocol: &'static flowgauge::Protocol) -> bool {
        self.collector.wants(protocol)
    }
}
