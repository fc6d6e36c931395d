//! Exchanges of DHCP, whose messages may be in several flows.

use std::net::IpAddr;
use std::time::Duration;

use super::message::{Entry, Kind};
use crate::row::List;
use crate::session::kit::{Crossing, Kept, KeptList, TakeFrom as _, exchange};
use crate::session::{Lack, Role, Text};

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
        /// Address from which the client sends; if it has none, the one that it gets, or to which a server answers.
        pub client_address: Option<IpAddr>,
        /// Address from which the server sends that acknowledges or refuses, or else one that offers an address.
        pub server_address: Option<IpAddr>,
        /// Address that the client requests (option 50).
        pub requested_address: Option<IpAddr>,
        /// Address that the server assigns.
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
        /// Whether there is a message of the client.
        has_request: bool,
        /// Whether there is a message of a server.
        has_response: bool,
        /// Whether the last message of the client is answered by none.
        is_statement: bool,
        /// Whether a server acknowledged or refused.
        is_decided: bool,
    }
    /// Exchanges of DHCP.
    zeek "dhcp" ['a] as row {
        /// `client_address`.
        "client_addr": Option<IpAddr> = row.client_address;
        /// `server_address`, if it assigned an address.
        "server_addr": Option<IpAddr> = row.server_address.filter(|_| row.assigned_address.is_some());
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
        /// `assigned_address`.
        "assigned_addr": Option<IpAddr> = row.assigned_address;
        /// `lease_time`.
        "lease_time": Option<Duration> = row.lease_time;
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

    fn key(part: &Entry) -> u64 {
        // Clients choose their numbers independently of each other.
        let address = part.client_hardware_address.as_ref().map(Kept::text).unwrap_or_default();
        u64::from(part.identifier) << 32 | u64::from(crc32fast::hash(address.0))
    }

    fn add(&mut self, part: &Entry, [client, server]: [IpAddr; 2]) {
        let broadcast = IpAddr::from([255; 4]);
        let client = (!client.is_unspecified() && client != broadcast).then_some(client);
        self.identifier = part.identifier;
        self.client_hardware_address.take_from(&part.client_hardware_address);
        if part.exchange.from == Role::Client {
            self.has_request = true;
            self.is_statement = matches!(part.message_type, Some(Kind(4 | 7)));
            self.client_address.take_from(&client);
            self.host_name.take_from(&part.host_name);
            self.full_name.take_from(&part.full_name);
            self.vendor_class.take_from(&part.vendor_class);
            self.requested_address.take_from(&part.requested_address);
            self.client_text.take_from(&part.text);
        } else {
            self.has_response = true;
            self.client_address = self.client_address.or(part.assigned_address).or(client);
            let decides = matches!(part.message_type, Some(Kind(5 | 6)));
            if decides || !self.is_decided {
                self.server_address = Some(server);
                self.assigned_address.take_from(&part.assigned_address);
                self.lease_time.take_from(&part.lease_time);
            }
            self.is_decided |= decides;
            self.domain.take_from(&part.domain);
            self.server_text.take_from(&part.text);
        }
        if let Some(kind) = part.message_type {
            self.message_types.push(&kind.to_string());
        }
    }

    fn lack(&self) -> Option<Lack> {
        match (self.has_request, self.has_response) {
            (false, _) => Some(Lack::Request),
            (true, false) if !self.is_statement => Some(Lack::Response),
            _ => None,
        }
    }
}
