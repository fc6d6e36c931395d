//! Events of a capture in Suricata's EVE format.

use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, Mutex};

use flowgauge::base::EndReason;
use flowgauge::export::eve::{EveConfig, Events};
use flowgauge::export::{FlowLog, LoggedFlow};
use flowgauge::pipeline::{Pipeline, RunOptions, Sessions, Sink, TransactionSink, Transactions};
use flowgauge::protocols::Standard;
use flowgauge::session::SessionEvent;
use flowgauge::source::FileSource;
use flowgauge::tracker::{Flow, FlowEvent, FlowView, Interest, TrackerConfig};
use flowgauge::transaction::{Transaction, TransactionConfig};
use serde_json::Value;

/// Output in memory.
#[derive(Clone, Default)]
struct Memory(Arc<Mutex<Vec<u8>>>);

impl Write for Memory {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("one thread").extend_from_slice(octets);
        Ok(octets.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Passes everything to a log.
struct Logged(Box<dyn FlowLog>);

impl Sink for Logged {
    type State = LoggedFlow;
    type Stage = Sessions<Standard>;

    fn interest(&self) -> Interest {
        Interest::STARTS | Interest::EVENTS
    }

    fn event(&mut self, flow: &mut Flow<'_, LoggedFlow>, event: &FlowEvent) {
        if let FlowEvent::Anomaly(anomaly) = event {
            self.0.anomaly(&flow.view, flow.state, *anomaly, &mut |_| true).expect("memory");
        }
    }

    fn session(&mut self, flow: &mut Flow<'_, LoggedFlow>, event: &SessionEvent) {
        match event {
            SessionEvent::Recognized { protocol, evidence } => {
                flow.state.recognized(protocol.name(), *evidence);
            }
            SessionEvent::Stopped { meta, fault, .. } => {
                let stop = (meta, fault.reason());
                self.0.fault(&flow.view, flow.state, stop, &mut |_| true).expect("memory");
            }
            _ => {}
        }
    }

    fn record(&mut self, flow: &mut Flow<'_, LoggedFlow>, reason: EndReason) {
        self.0.record(&flow.view, flow.state, reason, &mut |_| true).expect("memory");
    }

    fn ended(&mut self, view: &FlowView<'_>, _: EndReason, _: LoggedFlow) {
        self.0.ended(view).expect("memory");
    }
}

impl TransactionSink for Logged {
    fn transaction(&mut self, view: &FlowView<'_>, flow: &mut LoggedFlow, transaction: &Transaction) {
        self.0.transaction(view, flow, transaction, &mut |_| true).expect("memory");
    }
}

/// Returns the events of a capture.
///
/// # Panics
///
/// If a line is not JSON.
pub(crate) fn events_of(path: &Path, config: EveConfig, tracker: TrackerConfig) -> Vec<Value> {
    let memory = Memory::default();
    let mut transactions = TransactionConfig::default();
    (transactions.has_hashes, transactions.decodes) = (true, true);
    let log = Box::new(Events::stream(memory.clone(), config));
    let sink = Transactions::new(Logged(log)).config(transactions);
    let mut pipeline = Pipeline::builder().tracker(tracker).build(sink).expect("a valid configuration");
    // The corpus has files with the extension of captures that are none.
    let Ok(mut source) = FileSource::open(path) else { return Vec::new() };
    // Damaged captures have events too.
    let _ = pipeline.run(&mut source, &RunOptions::default());
    let row_count = pipeline.into_sink().into_inner().0.close().expect("memory");
    let text = String::from_utf8(std::mem::take(&mut *memory.0.lock().expect("one thread"))).expect("UTF-8");
    let events: Vec<Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"))).collect();
    assert_eq!(events.len() as u64, row_count);
    events
}
