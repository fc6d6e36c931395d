//! Names of flows.

use std::sync::Arc;

use flowgauge::Message;
use flowgauge::protocols::{ServerName, dns};

/// Returns the name of a flow that a message states, if it differs from the known one: the server that the first message
/// with a name requests, or the name of the latest query of DNS.
pub(super) fn of(message: &Message<'_>, known: Option<&str>) -> Option<Arc<str>> {
    let query = match message {
        Message::Dns(dns::Message::Query(query) | dns::Message::Response(query))
        | Message::Mdns(dns::Message::Query(query))
        | Message::Llmnr(dns::Message::Query(query)) => query,
        _ if known.is_some() => return None,
        _ => return ServerName::of(message).map(|server| server.name.into()),
    };
    let name = query.questions().next()?.name.to_string();
    (known != Some(&*name)).then(|| name.into())
}
