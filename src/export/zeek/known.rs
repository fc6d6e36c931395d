//! Rows of `known_hosts.log` and `known_services.log`.

use std::net::IpAddr;

use super::networks::LocalNetworks;
use super::once::Once;
use crate::base::{IpProtocol, TcpFlags, Timestamp};
use crate::row::{List, ListOf, Name};
use crate::tracker::FlowView;

/// A host in `known_hosts.log`.
#[derive(Clone, Copy, Debug)]
pub struct KnownHost {
    ts: Timestamp,
    host: IpAddr,
}

crate::table! {
    /// Local hosts that completed the handshake of a connection: each once per day.
    impl "zeek.known_hosts" for KnownHost as row {
        /// Start of the connection.
        "ts": Timestamp = row.ts;
        /// The host.
        "host": IpAddr = row.host;
    }
}

/// A service in `known_services.log`.
#[derive(Clone, Debug)]
pub struct KnownService {
    ts: Timestamp,
    host: IpAddr,
    port: u16,
    protocol: &'static str,
    services: Vec<String>,
}

crate::table! {
    /// Services of local hosts: each once per day, and again with another protocol.
    impl "zeek.known_services" for KnownService as row {
        /// Start of the flow.
        "ts": Timestamp = row.ts;
        /// The host.
        "host": IpAddr = row.host;
        /// Port of the host.
        "port_num": u16 = row.port;
        /// `tcp` or `udp`.
        "port_proto": Name = Name(row.protocol);
        /// Zeek's names of the protocols that content proves, in upper case.
        "service": ListOf<&str> [set] => List(row.services.iter().map(String::as_str));
    }
}

/// The hosts and services that were logged.
#[derive(Debug)]
pub(super) struct Known {
    hosts: Once<IpAddr>,
    services: Once<(IpAddr, u16, &'static str, String)>,
}

impl Known {
    pub(super) fn new() -> Self {
        // Names of protocols are short.
        Self { hosts: Once::new(0), services: Once::new(16) }
    }

    pub(super) fn heap_len(&self) -> usize {
        self.hosts.heap_len() + self.services.heap_len()
    }

    pub(super) fn free(&mut self, left: usize) {
        self.hosts.free(left);
        self.services.free(left);
    }

    /// Returns the hosts and the service of a flow that are to be logged. `services` are its protocols, joined by commas.
    pub(super) fn of(
        &mut self,
        view: &FlowView<'_>,
        services: &str,
        local: &LocalNetworks,
    ) -> (Vec<KnownHost>, Option<KnownService>) {
        let (initiator, ts) = (view.initiator(), view.start());
        let responder = initiator.other();
        let is_tcp = view.key().protocol() == IpProtocol::TCP;
        let is_accepted = view.tcp_flags(responder).contains(TcpFlags::SYN | TcpFlags::ACK);
        let mut hosts = Vec::new();
        if is_tcp && is_accepted && view.tcp_flags(initiator).contains(TcpFlags::SYN) {
            for host in [initiator, responder].map(|side| view.address(side)) {
                if local.contain(host) && !self.hosts.contains(&host, ts) {
                    self.hosts.insert(host, ts);
                    hosts.push(KnownHost { ts, host });
                }
            }
        }
        (hosts, self.service(view, services, local, is_tcp && is_accepted))
    }

    fn service(
        &mut self,
        view: &FlowView<'_>,
        services: &str,
        local: &LocalNetworks,
        is_accepted: bool,
    ) -> Option<KnownService> {
        let responder = view.initiator().other();
        let (host, port, ts) = (view.address(responder), view.key().port(responder)?, view.start());
        let protocol = match view.key().protocol() {
            IpProtocol::TCP => "tcp",
            IpProtocol::UDP => "udp",
            _ => return None,
        };
        let has_answered = view.counters(responder).payload_octet_count > 0;
        let is_tcp = protocol == "tcp";
        let is_service = is_accepted || has_answered && (is_tcp || !services.is_empty());
        if !is_service || services.contains("ftp-data") || !local.contain(host) {
            return None;
        }
        let names = services.to_ascii_uppercase();
        let key = (host, port, protocol, names.clone());
        if self.services.contains(&key, ts) {
            return None;
        }
        self.services.insert(key, ts);
        let services = names.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect();
        Some(KnownService { ts, host, port, protocol, services })
    }
}
