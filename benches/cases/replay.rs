//! Conversations from recordings of real programs, replayed to parsers.

#![allow(dead_code, reason = "each user needs some of the functions")]

use std::ops::ControlFlow;
use std::path::Path;

use flowgauge::base::{EndReason, FlowKey, IpProtocol, Resources, Side, Timestamp};
use flowgauge::decode::extractor::Packet;
use flowgauge::protocols::{Message, Standard};
use flowgauge::reassembler::{Chunk, StreamEvent};
use flowgauge::session::{
    Driver, DriverConfig, EndKind, FlowContext, MessageMeta, Payload, Receiver, Session, SessionEvent,
};
use flowgauge::tracker::{Flow, FlowView, Interest};
use flowgauge::transaction::{FlowTransactions, Joins};
use flowgauge::{FileSource, Pipeline, RunOptions, Sink, Streams};

/// Payload of one side.
type Turn = (Side, Timestamp, Vec<u8>);

/// All payload of a flow in order.
#[derive(Clone, Debug)]
pub(crate) struct Conversation {
    key: FlowKey,
    initiator: Side,
    turns: Vec<Turn>,
}

/// Counts messages, octets and stopped parsers.
#[derive(Debug, Default)]
pub(crate) struct Observed {
    pub(crate) message_count: u64,
    /// Octets that were passed to parsers; these exclude, for example, octets after the start of encryption.
    pub(crate) octet_count: u64,
    pub(crate) stopped_count: u64,
}

impl AsMut<Self> for Observed {
    fn as_mut(&mut self) -> &mut Self {
        self
    }
}

/// Joins the messages of one flow after another to transactions.
#[derive(Debug)]
pub(crate) struct Joined {
    pub(crate) observed: Observed,
    joins: Joins,
    open: FlowTransactions,
    /// Any key: only transactions of FTP depend on it.
    key: FlowKey,
    pub(crate) transaction_count: u64,
}

impl Default for Joined {
    fn default() -> Self {
        let end = ([10, 0, 0, 1].into(), 40_000);
        Self {
            observed: Observed::default(),
            joins: Joins::default(),
            open: FlowTransactions::default(),
            key: FlowKey::new(IpProtocol::TCP, end, end).0,
            transaction_count: 0,
        }
    }
}

impl Joined {
    /// Ends the flow.
    pub(crate) fn end(&mut self) {
        self.open.end(&mut self.joins, |_| self.transaction_count += 1);
    }
}

impl AsMut<Observed> for Joined {
    fn as_mut(&mut self) -> &mut Observed {
        &mut self.observed
    }
}

impl Receiver<Standard> for Joined {
    fn message(&mut self, meta: &MessageMeta, message: Message<'_>) {
        self.observed.message_count += 1;
        let flow = (&self.key, Timestamp::ZERO);
        self.open.message(&mut self.joins, flow, meta, &message, |transaction| {
            std::hint::black_box(&transaction);
            self.transaction_count += 1;
        });
    }

    fn event(&mut self, event: &SessionEvent) {
        self.observed.event(event);
    }
}

impl Receiver<Standard> for Observed {
    #[inline]
    fn message(&mut self, _: &MessageMeta, message: Message<'_>) {
        std::hint::black_box(&message);
        self.message_count += 1;
    }

    fn event(&mut self, event: &SessionEvent) {
        self.stopped_count += u64::from(matches!(event, SessionEvent::Stopped { .. }));
    }
}

impl Conversation {
    /// Creates a conversation over TCP to a port of the server. Each turn is whether the client sends it, and the
    /// payload.
    pub(crate) fn synthetic(port: u16, turns: &[(bool, &[u8])]) -> Self {
        Self::of(IpProtocol::TCP, port, turns)
    }

    /// Creates a conversation over TCP or UDP to a port of the server.
    pub(crate) fn of<T: AsRef<[u8]>>(protocol: IpProtocol, port: u16, turns: &[(bool, T)]) -> Self {
        let client = ([10, 0, 0, 1].into(), 40_000);
        let (key, initiator) = FlowKey::new(protocol, client, ([10, 0, 0, 2].into(), port));
        let turn = |(is_client, bytes): &(bool, T)| {
            let side = if *is_client { initiator } else { initiator.other() };
            (side, Timestamp::ZERO, bytes.as_ref().to_vec())
        };
        Self { key, initiator, turns: turns.iter().map(turn).collect() }
    }

    /// Sends the whole conversation to a driver.
    pub(crate) fn send(
        &self,
        driver: &mut Driver<Standard>,
        observed: &mut (impl Receiver<Standard> + AsMut<Observed>),
    ) -> Session<Standard> {
        let mut session = Session::default();
        let is_stream = self.key.protocol() == IpProtocol::TCP;
        let (mut offsets, mut wants) = ([0_u64; 2], [true; 2]);
        for (side, timestamp, bytes) in &self.turns {
            let context = FlowContext::new(&self.key, self.initiator, *timestamp);
            let at = side.index();
            observed.as_mut().octet_count += if wants[at] { bytes.len() as u64 } else { 0 };
            if !is_stream {
                driver.datagram(&mut session, &context, *side, Payload { bytes, len: bytes.len() }, observed);
            } else if wants[at] {
                let chunk = Chunk::new(offsets[at], bytes);
                wants[at] = driver.chunk(&mut session, &context, *side, &chunk, observed).is_continue();
            }
            offsets[at] += bytes.len() as u64;
        }
        let last = self.turns.last().map_or(Timestamp::ZERO, |(_, timestamp, _)| *timestamp);
        driver.finish(
            &mut session,
            &FlowContext::new(&self.key, self.initiator, last),
            EndKind::Flow,
            observed,
        );
        session
    }

    /// Returns the name of the application protocol.
    fn application(&self) -> Option<&'static str> {
        let mut config = DriverConfig::default();
        config.is_naming_only = true;
        let session = self.send(&mut Driver::new(config, &Resources::default()), &mut Observed::default());
        session.application().map(|(protocol, _)| protocol.name())
    }
}

#[derive(Default)]
struct Recorder(Vec<Conversation>);

impl Sink for Recorder {
    type State = Vec<Turn>;
    type Stage = Streams;

    fn interest(&self) -> Interest {
        Interest::DATAGRAMS
    }

    fn packet(&mut self, flow: &mut Flow<'_, Vec<Turn>>, packet: &Packet<'_>) {
        flow.state.push((packet.side, packet.timestamp, packet.payload().to_vec()));
    }

    fn ended(&mut self, view: &FlowView<'_>, _: EndReason, turns: Vec<Turn>) {
        self.0.push(Conversation { key: *view.key(), initiator: view.initiator(), turns });
    }

    fn stream(
        &mut self,
        flow: &mut Flow<'_, Vec<Turn>>,
        side: Side,
        event: &StreamEvent<'_>,
    ) -> ControlFlow<()> {
        if let StreamEvent::Chunk(chunk) = event {
            flow.state.push((side, flow.view.end(), chunk.bytes.to_vec()));
        }
        ControlFlow::Continue(())
    }
}

/// Returns the conversations of a protocol in a capture of this repository.
pub(crate) fn conversations(capture: &str, protocol: &str) -> Vec<Conversation> {
    // This file belongs to packages in several folders of the repository.
    let mut folders = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    let path = folders.find_map(|folder| Some(folder.join(capture)).filter(|path| path.is_file()));
    let path = path.expect("a capture of this repository");
    let mut pipeline = Pipeline::builder().build(Recorder::default()).expect("a valid configuration");
    let mut source = FileSource::open(path).expect("a capture");
    pipeline.run(&mut source, &RunOptions::default()).expect("an undamaged capture");
    let mut recorder = pipeline.into_sink();
    recorder.0.retain(|conversation| conversation.application() == Some(protocol));
    recorder.0
}
