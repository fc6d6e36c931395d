//! What the octets of the first packet of a flow say about its sender, before or without a session.

#[cfg(feature = "protocols")]
use super::context::FlowContext;
#[cfg(feature = "protocols")]
use super::datagrams::opening;
use super::index::Entries;
#[cfg(feature = "protocols")]
use super::octets::Payload;
#[cfg(feature = "protocols")]
use super::probing::run_datagram_probes;
use super::probing::{Answer, run_stream_probes, stream_by_port};
use super::protocol::{Role, Search, StreamOpening};
use super::protocols::Protocols;
use super::searching::resumable;
use crate::base::Packet;
#[cfg(feature = "protocols")]
use crate::base::Transport;

/// Returns whether the first packet of a flow is an answer: its sender is the server of the protocol whose probe matches.
/// Calls the probes of protocols that may begin with the first octet, once, and keeps nothing.
#[cfg(feature = "protocols")]
#[cold]
#[inline(never)]
pub(crate) fn is_answer<P: Protocols>(packet: &Packet<'_>) -> bool {
    if packet.payload().is_empty() {
        return false;
    }
    let answer = match packet.transport {
        Transport::Tcp => probe_segment::<P>(packet, &mut 0),
        Transport::Icmp => Answer::Unknown,
        _ => {
            let context = FlowContext::new(&packet.key, packet.side, packet.timestamp);
            let payload = Payload { bytes: packet.payload(), len: packet.payload_len as usize };
            run_datagram_probes::<P>(&mut 0, &opening(&context, packet.side, Role::Client, payload))
        }
    };
    matches!(answer, Answer::Found(found) if found.is_reversed)
}

/// Returns whether a segment with the first captured octets of a connection without its SYN may have an answer: according to
/// the probes, because a message of the protocol on its port begins in it, or because a parser takes what it does not know.
#[cold]
#[inline(never)]
pub(crate) fn may_answer<P: Protocols>(packet: &Packet<'_>) -> bool {
    if packet.payload().is_empty() {
        // The snap length truncated all octets.
        return false;
    }
    let mut refuted = 0;
    match probe_segment::<P>(packet, &mut refuted) {
        Answer::Found(found) => found.is_reversed,
        Answer::Undecided => true,
        Answer::Unknown => {
            let (server_port, client_port) = ports(packet);
            let ports = (client_port, server_port);
            let is_found = |search: super::StreamSearch| {
                matches!(search(Role::Server, packet.payload()), Search::Found(_))
            };
            let has_parser = |entry: usize| P::TABLE.get(entry).is_some_and(|entry| entry.has_parser);
            resumable::<P>(ports, true).is_some_and(|(found, search)| !found.is_reversed && is_found(search))
                || stream_by_port::<P>(refuted, ports).is_some_and(|found| has_parser(found.entry))
        }
    }
}

/// Calls the probes for a segment as if its sender were the client.
fn probe_segment<P: Protocols>(packet: &Packet<'_>, refuted: &mut Entries) -> Answer {
    let (source_port, destination_port) = ports(packet);
    run_stream_probes::<P>(refuted, &StreamOpening::new(packet.payload(), &[], source_port, destination_port))
}

/// Returns the ports of the sender and of the receiver.
fn ports(packet: &Packet<'_>) -> (u16, u16) {
    (packet.key.raw_port(packet.side), packet.key.raw_port(packet.side.other()))
}
