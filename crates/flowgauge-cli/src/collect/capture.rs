//! Messages in captures of the traffic between exporters and collectors.

use std::io::{self, Read};
use std::net::SocketAddr;

use flowgauge::base::IpProtocol;
use flowgauge::{
    FileSource, Flow, Flows, Interest, Packet, Pipeline, RunOptions, Sink, SourceConfig, Timestamp,
};

use crate::interrupt;

/// Ports that exporters use by default: NetFlow 2055, 9995 and 9996, IPFIX 4739, sFlow 6343.
const PORTS: [u16; 5] = [2055, 4739, 6343, 9995, 9996];

/// Reads a capture, and passes the payload of each UDP datagram to one of the ports to `message`, with its sender and its
/// time. Without ports, the default ones are used.
pub(super) fn read(
    input: impl Read + Send + 'static,
    ports: &[u16],
    message: impl FnMut(SocketAddr, &[u8], Timestamp),
) -> io::Result<()> {
    let mut config = SourceConfig::default();
    config.stop = Some(interrupt::stop());
    let mut source = FileSource::from_reader_with(input, config).map_err(io::Error::other)?;
    let ports = if ports.is_empty() { &PORTS } else { ports };
    let mut pipeline = Pipeline::builder().build(Datagrams { ports, message }).map_err(io::Error::other)?;
    let options = RunOptions::default().stop(interrupt::stop());
    pipeline.run(&mut source, &options).map(drop).map_err(io::Error::other)
}

/// Sink that passes datagrams to a function.
struct Datagrams<'p, F> {
    ports: &'p [u16],
    message: F,
}

impl<F: FnMut(SocketAddr, &[u8], Timestamp)> Sink for Datagrams<'_, F> {
    type State = ();
    type Stage = Flows;

    fn interest(&self) -> Interest {
        Interest::PACKETS
    }

    fn packet(&mut self, _: &mut Flow<'_, ()>, packet: &Packet<'_>) {
        let Packet { key, side, .. } = packet;
        let is_to_collector = key.protocol() == IpProtocol::UDP
            && key.port(side.other()).is_some_and(|port| self.ports.contains(&port));
        let payload = packet.payload();
        if is_to_collector && !payload.is_empty() {
            let sender = SocketAddr::new(key.address(*side), key.port(*side).unwrap_or_default());
            (self.message)(sender, payload, packet.timestamp);
        }
    }
}
