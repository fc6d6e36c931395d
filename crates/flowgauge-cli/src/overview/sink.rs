//! The sink that collects facts.

use flowgauge::pipeline::TransactionSink;
use flowgauge::protocols::{ftp, http1, http2, smtp};
use flowgauge::session::MessageMeta;
use flowgauge::transaction::{Content, Transaction};
use flowgauge::{
    EndReason, Flow, FlowView, Interest, IpProtocol, Message, Packet, Protocols as _, Sessions, Sink,
    Standard,
};

use super::facts::{Conversation, Facts};

/// Collects facts from packets, records and transactions.
#[derive(Debug, Default)]
pub(super) struct Collecting {
    pub(super) facts: Facts,
}

/// Returns the kind of credentials in a message that are sent without encryption.
fn login(message: &Message<'_>) -> Option<&'static str> {
    let kind = match message {
        Message::Http1(http1::Message::Request(request)) => request.credentials,
        Message::Http2(http2::Message::Request(request)) => request.credentials,
        Message::Smtp(smtp::Message::Command(command)) => command.credentials,
        Message::Ftp(ftp::Message::Command(command)) => command.credentials,
        _ => None,
    };
    // A cookie is no login.
    kind.filter(|kind| *kind != "cookie")
}

/// Applications whose ports are negotiated or configured for each installation.
const ANY_PORT: [&str; 5] = ["bittorrent", "dcerpc", "rtcp", "rtp", "stun"];

/// Returns whether the responder's port is one of the application, or no evidence of anything.
fn is_known_port(view: &FlowView<'_>) -> bool {
    let (key, responder) = (view.key(), view.initiator().other());
    let Some((application, port)) = view.application().zip(key.port(responder)) else { return true };
    let name = application.name.as_str();
    if ANY_PORT.contains(&name) {
        return true;
    }
    let ports = |protocol: &'static flowgauge::Protocol| match key.protocol() {
        IpProtocol::TCP => protocol.stream_ports(),
        _ => protocol.datagram_ports(),
    };
    let own = Standard::TABLE.iter().find(|entry| entry.protocol.name() == name);
    // A protocol without ports of its own is on any, and so are data connections.
    own.is_none_or(|entry| {
        let all = ports(entry.protocol);
        all.is_empty() || all.contains(&port)
    }) || key
        .port(view.initiator())
        .is_some_and(|client| own.is_some_and(|entry| ports(entry.protocol).contains(&client)))
}

fn conversation(view: &FlowView<'_>) -> Conversation {
    let (key, side) = (view.key(), view.initiator());
    (key.address(side), key.address(side.other()), key.protocol().0, key.port(side.other()))
}

impl Sink for Collecting {
    type State = ();
    type Stage = Sessions<Standard>;

    fn interest(&self) -> Interest {
        Interest::PACKETS
    }

    fn packet(&mut self, _: &mut Flow<'_, ()>, packet: &Packet<'_>) {
        self.facts.packet(packet);
    }

    fn message(&mut self, flow: &mut Flow<'_, ()>, meta: &MessageMeta, message: &Message<'_>) {
        if let Some(kind) = login(message) {
            let server = flow.view.key().address(flow.view.initiator().other());
            self.facts.logins.entry((server, meta.protocol.name(), kind)).0 += 1;
        }
    }

    fn record(&mut self, flow: &mut Flow<'_, ()>, reason: EndReason) {
        let is_known = is_known_port(&flow.view);
        self.facts.record(&flow.view.record(reason), is_known);
    }
}

impl TransactionSink for Collecting {
    fn transaction(&mut self, view: &FlowView<'_>, (): &mut (), transaction: &Transaction) {
        // Further requests of a connection; its first one began with the flow.
        if let Content::Http(http) = &transaction.content
            && http.number > 0
        {
            self.facts.begun(conversation(view), transaction.start());
        }
        self.facts.transaction(transaction);
    }
}
