//! Hosts as rows.

use std::collections::HashMap;
use std::net::IpAddr;

use flowgauge::Timestamp;
use flowgauge::row::{Group, List, ListOf, Name};

use super::host::{Host, HostName, HostService, HostSystem, HostUser, Hosts};
use super::vendor::vendor;
use crate::counts::Traffic;

/// A host as a row.
#[derive(Clone, Copy, Debug)]
pub struct HostRow<'h> {
    address: IpAddr,
    host: &'h Host,
    mac: Option<[u8; 6]>,
    traffic: Traffic,
}

impl<'h> HostRow<'h> {
    /// Returns the address of the host.
    #[must_use]
    pub const fn address(&self) -> IpAddr {
        self.address
    }

    /// Returns what is known of the host.
    #[must_use]
    pub const fn host(&self) -> &'h Host {
        self.host
    }

    /// Returns the traffic of the host.
    #[must_use]
    pub const fn traffic(&self) -> Traffic {
        self.traffic
    }

    /// Returns the MAC address that a protocol states, or that all frames of only this host have.
    #[must_use]
    pub const fn mac(&self) -> Option<[u8; 6]> {
        self.mac
    }

    fn name(&self) -> Option<&'h HostName> {
        self.host.name()
    }

    fn system(&self) -> Option<&'h HostSystem> {
        self.host.system()
    }
}

impl Hosts {
    /// Returns the rows of all hosts that sent something, in the order of their addresses. `traffic` returns that of a host.
    pub(crate) fn rows(&self, traffic: impl Fn(&IpAddr) -> Option<Traffic>) -> Vec<HostRow<'_>> {
        let all = self.all();
        // A host has an address of each scope.
        let scope = |address: &IpAddr| match address {
            IpAddr::V4(_) => 0,
            IpAddr::V6(address) => 1 + u8::from(address.is_unicast_link_local()),
        };
        let mut counts: HashMap<([u8; 6], u8), u32> = HashMap::new();
        for (address, host) in &all {
            let mac = host.mac.or(host.frame_mac);
            mac.into_iter().for_each(|mac| *counts.entry((mac, scope(address))).or_default() += 1);
        }
        all.into_iter()
            .map(|(address, host)| {
                // Frames of several addresses are forwarded by a router, one of which may be that of the router.
                let own = host.frame_mac.filter(|mac| counts.get(&(*mac, scope(&address))) == Some(&1));
                HostRow {
                    address,
                    host,
                    mac: host.mac.or(own),
                    traffic: traffic(&address).unwrap_or_default(),
                }
            })
            .collect()
    }
}

flowgauge::table! {
    /// A host that sent something, and what is known of it.
    impl['h] "host" for HostRow<'h> as row {
        /// Address.
        "address": IpAddr = row.address;
        /// MAC address that a protocol states, or else the source of the host's frames if no other host has it.
        "mac": Option<[u8; 6]> = row.mac;
        /// Vendor of the MAC address in the registry of IEEE.
        "mac_vendor": Option<&'static str> = row.mac.and_then(vendor);
        /// The most reliable name.
        "name": Option<&'h str> = row.name().map(|name| name.name.as_str());
        /// Where the name is known from.
        "name_source": Option<Name> = row.name().map(|name| Name(name.source.name()));
        /// All names.
        "names": ListOf<Group<HostName>> => List(row.host.names().iter().map(Group));
        /// The operating system for which there is the best evidence.
        "system": Option<&'h str> = row.system().map(|system| system.system.as_str());
        /// Where the operating system is known from.
        "system_source": Option<Name> = row.system().map(|system| Name(system.source.name()));
        /// All evidence for operating systems.
        "systems": ListOf<Group<HostSystem>> => List(row.host.systems().iter().map(Group));
        /// Services that the host offers.
        "services": ListOf<Group<HostService>> => List(row.host.services().iter().map(Group));
        /// Users who were seen at the host.
        "users": ListOf<Group<HostUser>> => List(row.host.users().iter().map(Group));
        /// True if the host announced itself as a router.
        "is_router": bool = row.host.is_router;
        /// Port by which a device announced itself.
        "device_port": Option<&'h str> = row.host.port();
        /// Number of times at which another MAC address was stated for the address.
        "mac_change_count": u32 = row.host.mac_change_count;
        /// Time of the first packet that the host sent.
        "start": Option<Timestamp> = row.host.seen.map(|(first, _)| first);
        /// Time of the last packet that the host sent.
        "end": Option<Timestamp> = row.host.seen.map(|(_, last)| last);
        /// Number of flow records.
        "flow_count": u64 = row.traffic.flow_count;
        /// Octets that the host sent.
        "sent_octet_count": u64 [octets] = row.traffic.sent;
        /// Octets that the host received.
        "received_octet_count": u64 [octets] = row.traffic.received;
    }
}

flowgauge::table! {
    /// A name of a host.
    impl "host.name" for HostName as row {
        /// The name.
        "name": &str => row.name.as_str();
        /// Where it is known from.
        "source": Name = Name(row.source.name());
    }
}

flowgauge::table! {
    /// A user.
    impl "host.user" for HostUser as row {
        /// The name.
        "name": &str => row.name.as_str();
        /// Where it is known from.
        "source": Name = Name(row.source.name());
    }
}

flowgauge::table! {
    /// Evidence for an operating system.
    impl "host.system" for HostSystem as row {
        /// What was stated, or what it indicates.
        "system": &str => row.system.as_str();
        /// Where it is known from.
        "source": Name = Name(row.source.name());
        /// Weight of the evidence, up to 100.
        "weight": u8 = row.weight;
    }
}

flowgauge::table! {
    /// A service.
    impl "host.service" for HostService as row {
        /// IP protocol number.
        "protocol": u8 = row.protocol;
        /// Port.
        "port": u16 = row.port;
        /// Application; null if it is not known.
        "application": Option<&str> => Some(row.application.as_str()).filter(|name| !name.is_empty());
        /// Software, as the host states it.
        "software": Option<&str> => row.software.as_deref();
        /// Time of the first flow.
        "start": Timestamp = row.first;
    }
}
