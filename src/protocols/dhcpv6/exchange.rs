//! Exchanges of DHCPv6, whose messages are in several flows.

use std::net::IpAddr;
use std::time::Duration;

use super::message::{Entry, Kind, Status};
use crate::session::Role;
use crate::session::kit::{Crossing, Kept, KeptList, TakeFrom as _, Turn, exchange};

exchange! {
    /// A request of a client, and the replies of the servers, in all flows.
    "dhcpv6_exchange" pub struct Exchange {
        /// Number that the client chose.
        pub identifier: u32,
        /// Unique identifier of the client, as hexadecimal digits.
        pub client_duid: Option<Kept<260>>,
        /// Unique identifier of the last server, as hexadecimal digits.
        pub server_duid: Option<Kept<260>>,
        /// MAC address of the client, as its relay or its identifier states it.
        pub client_hardware_address: Option<Kept<48>>,
        /// Full name of the client.
        pub full_name: Option<Kept<255>>,
        /// Software of the client.
        pub vendor_class: Option<Kept<255>>,
        /// Address from which the client, or its relay, sends.
        pub client_address: Option<IpAddr>,
        /// Address from which the last server sends.
        pub server_address: Option<IpAddr>,
        /// Address of the relay that is nearest to the client, in the network of the client.
        pub relay_address: Option<IpAddr>,
        /// Addresses of the last reply with some; without one, those that the client has or requests.
        pub client_addresses: KeptList<288>,
        /// Prefixes of the last reply with some; without one, those that the client has or requests.
        pub client_prefixes: KeptList<304>,
        /// Longest time for which an address or a prefix of the last reply is valid.
        pub lease_time: Option<Duration>,
        /// Result that the last server states.
        pub lease_status: Option<Status>,
        /// Why the request failed.
        pub server_text: Option<Kept<255>>,
        /// Kinds of the messages in their order.
        pub message_types: KeptList<1000>,
    }
}

impl Crossing for Exchange {
    type Part = Entry;

    fn key(part: &Entry) -> Option<u64> {
        // Clients choose their numbers independently of each other.
        let client = part.client_duid.as_ref().map(Kept::text).unwrap_or_default();
        part.has_identifier().then(|| u64::from(part.identifier) << 32 | u64::from(crc32fast::hash(client.0)))
    }

    fn turn(part: &Entry) -> Turn {
        match (part.exchange.from, part.message_type) {
            (Role::Client, kind) => Turn::Request(kind.0),
            (Role::Server, Kind(10)) => Turn::Announcement,
            (Role::Server, Kind(2)) => Turn::Answer,
            (Role::Server, _) => Turn::Decision,
        }
    }

    fn add(&mut self, part: &Entry, [client, server]: [IpAddr; 2]) {
        self.identifier = part.identifier;
        self.client_duid.take_from(&part.client_duid);
        self.relay_address.take_from(&part.relay_address);
        self.message_types.push(&part.message_type.to_string());
        let is_unanswered = self.server_address.is_none();
        if part.exchange.from == Role::Client {
            self.client_address = Some(client);
            // A relay adds that of the client to its requests.
            self.client_hardware_address.take_from(&part.client_hardware_address);
            self.full_name.take_from(&part.full_name);
            self.vendor_class.take_from(&part.vendor_class);
        } else {
            if self.client_hardware_address.is_none() {
                self.client_hardware_address.take_from(&part.client_hardware_address);
            }
            self.server_address = Some(server);
            self.server_duid.take_from(&part.server_duid);
            self.lease_time = part.lease_time;
            self.lease_status = part.lease_status;
            self.server_text.clone_from(&part.text);
        }
        if part.exchange.from == Role::Server || is_unanswered {
            // The reply to a client that releases its addresses has none.
            if !part.client_addresses.is_empty() {
                self.client_addresses.clone_from(&part.client_addresses);
            }
            if !part.client_prefixes.is_empty() {
                self.client_prefixes.clone_from(&part.client_prefixes);
            }
        }
    }
}
