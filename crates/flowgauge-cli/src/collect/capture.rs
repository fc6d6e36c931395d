//! Messages in captures of the traffic between exporters and collectors.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;

use flowgauge::base::{EndReason, IpProtocol, Transport};
use flowgauge::ipfix::collector::TransportSession;
use flowgauge::pipeline::boxed;
use flowgauge::reassembler::{Chunk, StreamEvent};
use flowgauge::tracker::FlowView;
use flowgauge::{
    FileSource, Flow, Interest, Packet, Pipeline, Resources, RunOptions, Side, Sink, SourceConfig, Streams,
    Timestamp,
};
use lru::LruCache;

use super::framing::{Association, Framing, Piece};
use super::guess::{Kind, kind_of_datagram, kind_of_stream};
use crate::human::plural;
use crate::interrupt;

/// Ports that exporters use by default: NetFlow 2055, 9995 and 9996, IPFIX 4739, sFlow 6343.
const PORTS: [u16; 5] = [2055, 4739, 6343, 9995, 9996];

/// Number of connections and associations of which incomplete messages are kept, each with at most 64 KiB.
const INCOMPLETE_COUNT_MAX: NonZeroUsize = NonZeroUsize::new(64).unwrap();

/// Number of packets of a flow to another port that are examined.
const EXAMINED_COUNT: u8 = 4;

/// Number of other ports that are reported.
const OTHER_PORT_COUNT_MAX: usize = 16;

/// What a capture contains of a transport session.
#[derive(Clone, Copy, Debug)]
pub(super) enum Received<'m> {
    /// A message, and the time at which it arrived.
    Message(&'m [u8], Timestamp),
    /// The end of the session, and of its templates (RFC 7011 section 8).
    End,
}

/// Reads a capture, and passes on the messages of exporters to one of the ports, with their sender and their time: the
/// payload of each UDP datagram, and the messages in TCP streams and SCTP associations. Without ports, the default ones
/// are used. Returns lines about messages to other ports.
pub(super) fn read(
    input: impl Read + Send + 'static,
    ports: &[u16],
    resources: &Resources,
    receive: impl FnMut(TransportSession, Received<'_>),
) -> io::Result<Vec<String>> {
    let mut config = SourceConfig::default();
    config.stop = Some(interrupt::stop());
    let mut source = FileSource::from_reader_with(input, config).map_err(io::Error::other)?;
    let mut sink = Messages {
        ports: if ports.is_empty() { &PORTS } else { ports },
        flow_count: 0,
        framings: LruCache::new(INCOMPLETE_COUNT_MAX),
        associations: LruCache::new(INCOMPLETE_COUNT_MAX),
        used: Vec::new(),
        others: BTreeMap::new(),
        receive,
    };
    let builder = Pipeline::builder().resources(resources.clone());
    let mut pipeline = builder.build(boxed(&mut sink)).map_err(io::Error::other)?;
    let options = RunOptions::default().stop(interrupt::stop());
    pipeline.run(&mut source, &options).map_err(io::Error::other)?;
    drop(pipeline);
    Ok(sink.lines())
}

/// State of a flow.
#[derive(Clone, Copy, Debug, Default)]
struct Examined {
    /// Number of the flow.
    number: u64,
    packet_count: u8,
    is_message: bool,
}

/// Sink that passes messages to a function.
struct Messages<'p, F> {
    ports: &'p [u16],
    flow_count: u64,
    /// Incomplete messages of TCP connections, by the number of the flow and the sender.
    framings: LruCache<(u64, Side), Framing>,
    /// The same of SCTP associations.
    associations: LruCache<(u64, Side), Association>,
    /// Those of the ports to which messages were sent.
    used: Vec<u16>,
    /// Ports to which messages were sent that were not read, and their number.
    others: BTreeMap<(u16, Kind), u64>,
    receive: F,
}

impl<F: FnMut(TransportSession, Received<'_>)> Messages<'_, F> {
    /// Returns the port to which a side sends, if the messages to it are read.
    fn port(&self, view: &FlowView<'_>, side: Side) -> Option<u16> {
        view.key().port(side.other()).filter(|port| self.ports.contains(port))
    }

    fn note_use(&mut self, port: u16) {
        if !self.used.contains(&port) {
            self.used.push(port);
        }
    }

    /// Examines a packet to another port.
    fn examine(&mut self, flow: &mut Flow<'_, Examined>, packet: &Packet<'_>) {
        let Packet { key, side, .. } = packet;
        let kind = match packet.transport {
            Transport::Udp => kind_of_datagram(packet.payload()),
            Transport::Tcp => kind_of_stream(packet.payload()),
            _ => None,
        };
        let state = &mut *flow.state;
        state.packet_count = state.packet_count.saturating_add(1);
        state.is_message |= kind.is_some();
        if let (Some(kind), Some(port)) = (kind, key.port(side.other()))
            && (self.others.len() < OTHER_PORT_COUNT_MAX || self.others.contains_key(&(port, kind)))
        {
            *self.others.entry((port, kind)).or_default() += 1;
        }
        if !state.is_message && state.packet_count >= EXAMINED_COUNT {
            flow.mute();
        }
    }

    /// Returns the lines about messages to other ports.
    fn lines(&self) -> Vec<String> {
        let line = |(&(port, kind), &count): (&(u16, Kind), &u64)| {
            let ports = self.used.iter().chain(std::iter::once(&port));
            let options: Vec<_> = ports.map(|port| format!("--port {port}")).collect();
            let what = plural(count, kind.part());
            let (looks, them) = if count == 1 { ("looks", "it") } else { ("look", "them") };
            let (kind, options) = (kind.name(), options.join(" "));
            format!("{what} to port {port} {looks} like {kind}; `{options}` reads {them}")
        };
        self.others.iter().map(line).collect()
    }
}

fn session(view: &FlowView<'_>, side: Side) -> TransportSession {
    let exporter = SocketAddr::new(view.key().address(side), view.key().port(side).unwrap_or_default());
    TransportSession::new(view.key().protocol(), exporter)
}

impl<F: FnMut(TransportSession, Received<'_>)> Sink for Messages<'_, F> {
    type State = Examined;
    type Stage = Streams;

    fn interest(&self) -> Interest {
        Interest::STARTS | Interest::PACKETS
    }

    fn started(&mut self, flow: &mut Flow<'_, Examined>) {
        self.flow_count += 1;
        flow.state.number = self.flow_count;
        if !matches!(flow.view.key().protocol(), IpProtocol::UDP | IpProtocol::TCP | IpProtocol::SCTP) {
            flow.mute();
        }
    }

    fn packet(&mut self, flow: &mut Flow<'_, Examined>, packet: &Packet<'_>) {
        let payload = packet.payload();
        if payload.is_empty() {
            return;
        }
        let Some(port) = self.port(&flow.view, packet.side) else {
            // The other direction of a flow whose messages are read has none.
            if self.port(&flow.view, packet.side.other()).is_none() {
                self.examine(flow, packet);
            }
            return;
        };
        let (session, time) = (session(&flow.view, packet.side), packet.timestamp);
        match packet.transport {
            Transport::Udp => {
                self.note_use(port);
                (self.receive)(session, Received::Message(payload, time));
            }
            Transport::Sctp => {
                self.note_use(port);
                let Self { associations, receive, .. } = self;
                let place = (flow.state.number, packet.side);
                let association = associations.get_or_insert_mut(place, Association::default);
                association.packet(payload, |piece| match piece {
                    Piece::Message(octets) => receive(session, Received::Message(octets, time)),
                    Piece::Beginning => receive(session, Received::End),
                });
            }
            // The octets of TCP are delivered in their order.
            _ => {}
        }
    }

    fn stream(
        &mut self,
        flow: &mut Flow<'_, Examined>,
        side: Side,
        event: &StreamEvent<'_>,
    ) -> ControlFlow<()> {
        let Some(port) = self.port(&flow.view, side) else { return ControlFlow::Break(()) };
        let place = (flow.state.number, side);
        match event {
            StreamEvent::Chunk(Chunk { bytes, timestamp, .. }) => {
                self.note_use(port);
                let Self { framings, receive, .. } = self;
                let session = session(&flow.view, side);
                let framing = framings.get_or_insert_mut(place, Framing::default);
                framing.push(bytes, *timestamp, |octets| {
                    receive(session, Received::Message(octets, *timestamp));
                });
            }
            StreamEvent::Gap(_) => self.framings.get_or_insert_mut(place, Framing::default).lose(),
            _ => {}
        }
        ControlFlow::Continue(())
    }

    fn ended(&mut self, view: &FlowView<'_>, reason: EndReason, state: Examined) {
        for side in [Side::A, Side::B] {
            self.associations.pop(&(state.number, side));
            if let Some(mut framing) = self.framings.pop(&(state.number, side)) {
                framing.finish(|octets| {
                    (self.receive)(session(view, side), Received::Message(octets, view.end()));
                });
            }
            // A connection that was idle may go on.
            let is_over = reason == EndReason::EndOfFlow && view.key().protocol() == IpProtocol::TCP;
            if is_over && self.port(view, side).is_some() {
                (self.receive)(session(view, side), Received::End);
            }
        }
    }
}
