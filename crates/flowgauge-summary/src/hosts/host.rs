//! Hosts, and what was learned of each.

use std::cmp::Reverse;
use std::net::IpAddr;

use flowgauge::{IpProtocol, Timestamp};
use serde::{Deserialize, Serialize};

use crate::bounded::{Bounded, Weight};

/// Most names, users, services and operating systems of a host, and most characters of each text. Further ones are omitted.
const NAME_MAX: usize = 8;
const USER_MAX: usize = 16;
const SERVICE_MAX: usize = 32;
const SYSTEM_MAX: usize = 8;
const TEXT_LEN_MAX: usize = 255;

/// Where something is known from, the most reliable source of names first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Source {
    /// A lease of DHCP.
    Dhcp,
    /// An announcement of LLDP.
    Lldp,
    /// An announcement of CDP.
    Cdp,
    /// An authentication with NTLM.
    Ntlm,
    /// An exchange or connection of SMB.
    Smb,
    /// A request of Kerberos.
    Kerberos,
    /// A connection of RDP.
    Rdp,
    /// A name or an announcement of NetBIOS.
    Netbios,
    /// An answer of multicast DNS.
    Mdns,
    /// An answer of LLMNR.
    Llmnr,
    /// An answer of DNS.
    Dns,
    /// A certificate of the server.
    Certificate,
    /// The server name in a ClientHello.
    Sni,
    /// A header of HTTP.
    Http,
    /// A greeting of SMTP.
    Smtp,
    /// An identification line of SSH.
    Ssh,
    /// A command of FTP.
    Ftp,
    /// An accounting of RADIUS.
    Radius,
    /// Addresses of frames, or a message of ARP or neighbor discovery.
    Link,
    /// The options and fields of a TCP handshake.
    Tcp,
}

impl Source {
    /// Returns the name of the source.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Dhcp => "dhcp",
            Self::Lldp => "lldp",
            Self::Cdp => "cdp",
            Self::Ntlm => "ntlm",
            Self::Smb => "smb",
            Self::Kerberos => "kerberos",
            Self::Rdp => "rdp",
            Self::Netbios => "netbios",
            Self::Mdns => "mdns",
            Self::Llmnr => "llmnr",
            Self::Dns => "dns",
            Self::Certificate => "certificate",
            Self::Sni => "sni",
            Self::Http => "http",
            Self::Smtp => "smtp",
            Self::Ssh => "ssh",
            Self::Ftp => "ftp",
            Self::Radius => "radius",
            Self::Link => "link",
            Self::Tcp => "tcp",
        }
    }
}

/// A name of a host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct HostName {
    /// The name.
    pub name: String,
    /// Where it is known from.
    pub source: Source,
}

/// A user who was seen at a host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct HostUser {
    /// The name, with its domain or realm if that was stated.
    pub name: String,
    /// Where it is known from.
    pub source: Source,
}

/// A service that a host offers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct HostService {
    /// Number of the IP protocol.
    pub protocol: u8,
    /// Port of the host.
    pub port: u16,
    /// Name of the application; empty if it is not known.
    pub application: String,
    /// Software, as the host states it.
    pub software: Option<String>,
    /// Time of the first flow.
    pub first: Timestamp,
}

/// Evidence for the operating system of a host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct HostSystem {
    /// What was stated, or what it indicates.
    pub system: String,
    /// Where it is known from.
    pub source: Source,
    /// Weight of the evidence, up to 100: what a protocol states weighs more than what a handshake indicates.
    pub weight: u8,
}

/// What is known of a host.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Host {
    /// Times of the first and the last packet that the host sent; `None` if it is known only from others.
    pub seen: Option<(Timestamp, Timestamp)>,
    /// MAC address that a protocol states.
    pub mac: Option<[u8; 6]>,
    /// Source address of frames, which may be that of a router.
    pub(super) frame_mac: Option<[u8; 6]>,
    /// Number of different MAC addresses that were stated one after another.
    pub mac_change_count: u32,
    /// True if the host announced itself as a router.
    pub is_router: bool,
    record_count: u64,
    /// What only few hosts have: most addresses of a flood have nothing.
    details: Option<Box<Details>>,
}

/// What is learned of a host beside its addresses.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Details {
    names: Vec<HostName>,
    users: Vec<HostUser>,
    services: Vec<HostService>,
    systems: Vec<HostSystem>,
    port: Option<String>,
}

impl Weight for Host {
    /// Hosts that sent something, and of which something is known, are kept for longer than addresses in answers.
    fn weight(&self) -> u64 {
        let known = self.names().len() + self.users().len() + self.services().len();
        self.record_count + 16 * known as u64 * u64::from(self.seen.is_some())
    }

    fn heap_bytes(&self) -> usize {
        let Some(Details { names, users, services, systems, port }) = self.details.as_deref() else {
            return 0;
        };
        let names: usize = names.iter().map(|name| size_of::<HostName>() + name.name.capacity()).sum();
        let users: usize = users.iter().map(|user| size_of::<HostUser>() + user.name.capacity()).sum();
        let service = |service: &HostService| {
            size_of::<HostService>()
                + service.application.capacity()
                + service.software.as_ref().map_or(0, String::capacity)
        };
        let services: usize = services.iter().map(service).sum();
        let systems: usize =
            systems.iter().map(|system| size_of::<HostSystem>() + system.system.capacity()).sum();
        let port = port.as_ref().map_or(0, String::capacity);
        size_of::<Details>() + names + users + services + systems + port
    }
}

impl Host {
    /// Returns the names, in the order in which they were learned.
    #[must_use]
    pub fn names(&self) -> &[HostName] {
        self.details.as_ref().map_or(&[], |details| &details.names)
    }

    /// Returns the users who were seen at the host.
    #[must_use]
    pub fn users(&self) -> &[HostUser] {
        self.details.as_ref().map_or(&[], |details| &details.users)
    }

    /// Returns the services that the host offers.
    #[must_use]
    pub fn services(&self) -> &[HostService] {
        self.details.as_ref().map_or(&[], |details| &details.services)
    }

    /// Returns all evidence for the operating system.
    #[must_use]
    pub fn systems(&self) -> &[HostSystem] {
        self.details.as_ref().map_or(&[], |details| &details.systems)
    }

    /// Returns the name of the port by which a device announced itself.
    #[must_use]
    pub fn port(&self) -> Option<&str> {
        self.details.as_ref()?.port.as_deref()
    }

    fn details(&mut self) -> &mut Details {
        self.details.get_or_insert_default()
    }

    /// Notes the port by which a device announces itself; the first one remains.
    pub(super) fn note_port(&mut self, port: &str) {
        if let Some(port) = fitting(port) {
            self.details().port.get_or_insert_with(|| port.to_owned());
        }
    }

    /// Returns the most reliable name; of equally reliable ones, the first one.
    #[must_use]
    pub fn name(&self) -> Option<&HostName> {
        self.names().iter().min_by_key(|name| name.source)
    }

    /// Returns the evidence for the operating system with the greatest weight.
    #[must_use]
    pub fn system(&self) -> Option<&HostSystem> {
        // Of equal ones, the first.
        self.systems().iter().rev().max_by_key(|system| system.weight)
    }

    /// Notes that the host sent packets from one time to another.
    pub(super) fn note_seen(&mut self, first: Timestamp, last: Timestamp) {
        let (known_first, known_last) = self.seen.unwrap_or((first, last));
        self.seen = Some((known_first.min(first), known_last.max(last)));
        self.record_count += 1;
    }

    /// Notes a MAC address that a protocol states.
    pub(super) fn note_mac(&mut self, mac: [u8; 6]) {
        let is_host = mac != [0; 6] && mac[0] & 1 == 0;
        if is_host && self.mac.replace(mac).is_some_and(|known| known != mac) {
            self.mac_change_count += 1;
        }
    }

    pub(super) fn note_name(&mut self, name: &str, source: Source) {
        let Some(name) = fitting(name.trim_end_matches('.')) else { return };
        let is_known = |known: &HostName| known.source == source && known.name.eq_ignore_ascii_case(name);
        if self.names().iter().any(is_known) || name.parse::<IpAddr>().is_ok() {
            return;
        }
        let names = &mut self.details().names;
        make_room(names, NAME_MAX, |known| known.source, source);
        if names.len() < NAME_MAX {
            names.push(HostName { name: name.to_owned(), source });
        }
    }

    pub(super) fn note_user(&mut self, name: &str, source: Source) {
        let Some(name) = fitting(name) else { return };
        let is_known = |known: &HostUser| known.source == source && known.name.eq_ignore_ascii_case(name);
        let users = self.users();
        if users.len() < USER_MAX && !users.iter().any(is_known) {
            self.details().users.push(HostUser { name: name.to_owned(), source });
        }
    }

    pub(super) fn note_system(&mut self, system: &str, source: Source, weight: u8) {
        let Some(system) = fitting(system) else { return };
        let is_known = |known: &HostSystem| known.source == source && known.system == system;
        if self.systems().iter().any(is_known) {
            return;
        }
        let systems = &mut self.details().systems;
        make_room(systems, SYSTEM_MAX, |known| Reverse(known.weight), Reverse(weight));
        if systems.len() < SYSTEM_MAX {
            systems.push(HostSystem { system: system.to_owned(), source, weight });
        }
    }

    /// Returns the service at a port, which is added unless there are too many.
    pub(super) fn service(
        &mut self,
        protocol: IpProtocol,
        port: u16,
        first: Timestamp,
    ) -> Option<&mut HostService> {
        let is_it = |known: &HostService| (known.protocol, known.port) == (protocol.0, port);
        let services = &mut self.details().services;
        if let Some(index) = services.iter().position(is_it) {
            return services.get_mut(index);
        }
        if services.len() >= SERVICE_MAX {
            return None;
        }
        services.push(HostService {
            protocol: protocol.0,
            port,
            application: String::new(),
            software: None,
            first,
        });
        services.last_mut()
    }
}

/// If a list is full, removes the latest of its least reliable entries, unless a new one is no more reliable.
fn make_room<T, R: Ord>(all: &mut Vec<T>, len_max: usize, rank: impl Fn(&T) -> R, own: R) {
    if all.len() >= len_max
        && let Some(last) = (0..all.len()).max_by_key(|index| all.get(*index).map(&rank))
        && all.get(last).is_some_and(|worst| rank(worst) > own)
    {
        all.remove(last);
    }
}

/// Returns the part of a text that is kept: without surrounding space, and bounded; `None` if it is empty or has controls.
fn fitting(text: &str) -> Option<&str> {
    let text = text.trim();
    let end = text.char_indices().nth(TEXT_LEN_MAX).map_or(text.len(), |(end, _)| end);
    text.get(..end).filter(|text| !text.is_empty() && !text.chars().any(char::is_control))
}

/// Returns a text as it is kept.
pub(super) fn text(text: &str) -> Option<String> {
    fitting(text).map(str::to_owned)
}

/// The hosts of captures, which learn from records, messages, transactions and neighbors: up to 65,536, of which those remain
/// that sent something and are known best.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Hosts {
    pub(super) hosts: Bounded<IpAddr, Host>,
    /// What clients of DHCP stated, by MAC address, until a server grants an address.
    #[serde(default)]
    pub(super) leases: Bounded<String, Lease, 4096>,
    /// Number of notes since the memory was measured last, and the memory in bytes at that time.
    #[serde(skip)]
    noted_count: u64,
    #[serde(skip)]
    measured_len: usize,
}

/// Least number of notes between two measurements of the memory.
const NOTED_MIN: u64 = 256;

/// What a client of DHCP stated.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Lease {
    pub(super) name: Option<String>,
    pub(super) system: Option<String>,
    pub(super) count: u64,
}

impl Weight for Lease {
    fn weight(&self) -> u64 {
        self.count
    }

    fn heap_bytes(&self) -> usize {
        [&self.name, &self.system].into_iter().flatten().map(String::capacity).sum()
    }
}

impl Hosts {
    /// Returns what is known of a host, which is added. Addresses of groups, and those that say nothing, are no hosts.
    pub(super) fn host(&mut self, address: IpAddr) -> Option<&mut Host> {
        let is_none = address.is_unspecified() || crate::counts::is_group(&address);
        self.noted_count += 1;
        (!is_none).then(|| self.hosts.entry(address))
    }

    /// Returns what is known of a host.
    #[must_use]
    pub fn get(&self, address: &IpAddr) -> Option<&Host> {
        self.hosts.get(address)
    }

    /// Returns the most reliable name of a host.
    #[must_use]
    pub fn name(&self, address: &IpAddr) -> Option<&str> {
        Some(self.get(address)?.name()?.name.as_str())
    }

    /// Returns the hosts that sent something, in the order of their addresses.
    #[must_use]
    pub fn all(&self) -> Vec<(IpAddr, &Host)> {
        let mut all: Vec<_> = self
            .hosts
            .iter()
            .filter(|(_, host)| host.seen.is_some())
            .map(|(address, host)| (*address, host))
            .collect();
        all.sort_unstable_by_key(|(address, _)| *address);
        all
    }

    /// Returns the number of hosts that were removed because of their number.
    #[must_use]
    pub const fn removed_count(&self) -> u64 {
        self.hosts.removed_count()
    }

    /// Returns the memory of the hosts in bytes. Reads all of them.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        self.hosts.held_bytes(|_| 0) + self.leases.held_bytes(String::capacity)
    }

    /// Returns what a client of DHCP stated, which is added.
    pub(super) fn lease(&mut self, client: String) -> &mut Lease {
        self.noted_count += 1;
        self.leases.entry(client)
    }

    /// Returns the number of notes since the last call.
    pub(crate) fn take_noted_count(&mut self) -> u64 {
        std::mem::take(&mut self.noted_count)
    }

    /// Returns the memory of the hosts in bytes, which is measured after a number of notes. If it exceeds what `max` returns
    /// for it, half of the hosts are forgotten.
    pub fn keep_within(&mut self, max: impl Fn(usize) -> usize) -> usize {
        // Measuring reads all hosts, each of which takes some memory.
        if self.noted_count >= NOTED_MIN.max(self.measured_len as u64 / 8192) {
            self.measured_len = self.held_bytes();
            self.noted_count = 0;
        }
        if self.measured_len > max(self.measured_len) {
            self.halve();
            self.measured_len = self.held_bytes();
        }
        self.measured_len
    }

    /// Forgets half of the hosts, those of which the least is known, to free their memory; unless there are few.
    pub fn halve(&mut self) {
        self.hosts.halve();
        self.leases.halve();
    }
}
