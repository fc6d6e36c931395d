//! Exchanges of DHCP, whose messages may be in several flows.

use std::net::IpAddr;
use std::time::Duration;

use super::message::{Entry, Kind};
use crate::row::List;
use crate::session::kit::{Crossing, Kept, KeptList, TakeFrom as _, Turn, exchange};
use crate::session::{Role, Text};

exchange! {
    /// The messages of a client with an identifier, and those of the servers that answer it, in all flows.
    "dhcp_exchange" pub struct Exchange {
        /// Number that the client chose for all messages.
        pub identifier: u32,
        /// Hardware address of the client, in Ethernet a MAC address.
        pub client_hardware_address: Option<Kept<48>>,
        /// Name that the client states (option 12).
        pub host_name: Option<Kept<255>>,
        /// Full name of the client (option 81).
        pub full_name: Option<Kept<255>>,
        /// Software of the client (option 60).
        pub vendor_class: Option<Kept<255>>,
        /// Address of the client: from which it sends, or else the one that it gets, or to which a server answers.
        pub client_address: Option<IpAddr>,
        /// Address of the server that acknowledges or refuses, or else of one that offers an address.
        pub server_address: Option<IpAddr>,
        /// Address of the relay between them.
        pub relay_address: Option<IpAddr>,
        /// Address that the client requests (option 50).
        pub requested_address: Option<IpAddr>,
        /// Address that the server assigns, or else offers; null after a refusal.
        pub assigned_address: Option<IpAddr>,
        /// Domain of the client (option 15).
        pub domain: Option<Kept<255>>,
        /// Length of the lease (option 51).
        pub lease_time: Option<Duration>,
        /// Why the client refuses the address (option 56).
        pub client_text: Option<Kept<255>>,
        /// Why the server refuses a request (option 56).
        pub server_text: Option<Kept<255>>,
        /// Kinds of the messages in their order.
        pub message_types: KeptList<700>,
        ..
        /// Whether the client sends from `client_address`.
        is_own_address: bool,
        /// Whether a server acknowledged or refused.
        is_decided: bool,
        /// Client, server, address and lease as Zeek has them: a relay is the client, and a refusal changes nothing.
        sender: Option<IpAddr>,
        /// Sender of the last message with an address.
        assigner: Option<IpAddr>,
        /// The last address that was assigned or offered.
        last_address: Option<IpAddr>,
        /// The last lease.
        last_lease: Option<Duration>,
    }
    /// Exchanges of DHCP.
    zeek "dhcp" ['a] as row {
        /// Address from which the client or its relay sends, or else the first one that a server assigns or offers.
        "client_addr": Option<IpAddr> = row.sender;
        /// Address from which the last message with an address was sent.
        "server_addr": Option<IpAddr> = row.assigner;
        /// `client_hardware_address`.
        "mac": Option<Text<'a>> = row.client_hardware_address.as_ref().map(Kept::text);
        /// `host_name`.
        "host_name": Option<Text<'a>> = row.host_name.as_ref().map(Kept::text);
        /// `full_name`.
        "client_fqdn": Option<Text<'a>> = row.full_name.as_ref().map(Kept::text);
        /// `domain`.
        "domain": Option<Text<'a>> = row.domain.as_ref().map(Kept::text);
        /// `requested_address`.
        "requested_addr": Option<IpAddr> = row.requested_address;
        /// The last address that a server assigned or offered.
        "assigned_addr": Option<IpAddr> = row.last_address;
        /// The last length of a lease.
        "lease_time": Option<Duration> = row.last_lease;
        /// `client_text`.
        "client_message": Option<Text<'a>> = row.client_text.as_ref().map(Kept::text);
        /// `server_text`.
        "server_message": Option<Text<'a>> = row.server_text.as_ref().map(Kept::text);
        /// `message_types` in capital letters.
        "msg_types": List<Vec<String>> =
            List(row.message_types.iter().map(|kind| kind.to_string().replace('_', "").to_uppercase()).collect());
        /// Time from the first message to the last one.
        "duration": Duration = row.exchange.end.saturating_since(row.exchange.start);
    }
}

impl Crossing for Exchange {
    type Part = Entry;

    fn key(part: &Entry) -> Option<u64> {
        // Clients choose their numbers independently of each other.
        let address = part.client_hardware_address.as_ref().map(Kept::text).unwrap_or_default();
        Some(u64::from(part.identifier) << 32 | u64::from(crc32fast::hash(address.0)))
    }

    fn turn(part: &Entry) -> Turn {
        match (part.exchange.from, part.message_type) {
            (Role::Client, Some(Kind(4 | 7))) => Turn::Statement,
            (Role::Client, kind) => Turn::Request(kind.map_or(0, |kind| kind.0)),
            (Role::Server, Some(Kind(9))) => Turn::Announcement,
            (Role::Server, Some(Kind(2))) => Turn::Answer,
            (Role::Server, _) => Turn::Decision,
        }
    }

    fn add(&mut self, part: &Entry, [client, server]: [IpAddr; 2]) {
        let broadcast = IpAddr::from([255; 4]);
        let client = (!client.is_unspecified() && client != broadcast).then_some(client);
        let is_relayed = part.relay_address.is_some();
        self.identifier = part.identifier;
        self.client_hardware_address.take_from(&part.client_hardware_address);
        self.relay_address.take_from(&part.relay_address);
        if let Some(kind) = part.message_type {
            self.message_types.push(&kind.to_string());
        }
        if part.exchange.from == Role::Client {
            let own = if is_relayed { part.client_address } else { client };
            self.is_own_address |= own.is_some();
            self.client_address.take_from(&own);
            self.sender.take_from(&client);
            self.host_name.take_from(&part.host_name);
            self.full_name.take_from(&part.full_name);
            self.vendor_class.take_from(&part.vendor_class);
            self.requested_address.take_from(&part.requested_address);
            self.client_text.take_from(&part.text);
            return;
        }
        self.domain.take_from(&part.domain);
        self.server_text.take_from(&part.text);
        self.last_lease.take_from(&part.lease_time);
        self.sender = self.sender.or(part.assigned_address).or(client);
        if part.assigned_address.is_some() {
            (self.last_address, self.assigner) = (part.assigned_address, Some(server));
        }
        let decides = matches!(part.message_type, Some(Kind(5 | 6)));
        if decides || !self.is_decided {
            let known = part.server_address.filter(|_| is_relayed);
            self.server_address = known.or(Some(server));
            (self.assigned_address, self.lease_time) = (part.assigned_address, part.lease_time);
            if !self.is_own_address {
                let target = client.filter(|_| !is_relayed && part.message_type != Some(Kind(6)));
                self.client_address = part.assigned_address.or(target);
            }
        }
        self.is_decided |= decides;
    }
}
