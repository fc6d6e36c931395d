//! Protocols that are recognised by what they say, and only named.
//!
//! One file per family, one `pub static` per protocol with its probe beside it, and [`ALL`] in the order in which they are
//! asked. Several dozen probes run on the first octets of each flow, so that each says no by the first octet or two where that
//! can be, and none allocates.
//!
//! How one becomes parsed: it gets a folder of its own beside this one, `src/session/mqtt/`, with `PROTOCOL` (the static and the
//! probe move there as they are) and a [`Parser`](super::Parser); its line leaves [`ALL`], and joins the `parsers` of the set.
//! One's own parser needs no more than a line: `parsers { Mqtt: MyMqtt = &recognised::MQTT }` comes before `ALL` and counts.
//!
//! What the probes go by is said at each; where the octets of a protocol look like too much else, its port is asked for as
//! well, and the evidence is still content: the port alone never matches octets that contradict.

mod applications;
mod database;
mod files;
mod industry;
mod mail;
mod messaging;
mod monitoring;
mod network;
mod octets;
mod routing;
#[cfg(test)]
mod samples;
mod sharing;
mod terminal;
mod tunnel;
mod voice;
mod windows;

use super::protocol::Protocol;

pub use applications::{DROPBOX, SPOTIFY, WHATSAPP};
pub use database::{CASSANDRA, MEMCACHED, MONGODB, MYSQL, POSTGRESQL, REDIS, TDS};
pub use files::{GIT, NFS, RSYNC, SUNRPC, TFTP};
pub use industry::{BACNET, DNP3, ENIP, IEC104, MODBUS, S7COMM, SOMEIP};
pub use mail::{IMAP, POP3};
pub use messaging::{AMQP, COAP, IRC, MQTT, XMPP};
pub use monitoring::{IPFIX, NETFLOW, SFLOW, SNMP, SYSLOG};
pub use network::{DHCP, DHCPV6, NTP, RADIUS, SSDP};
pub use routing::{BGP, OPENFLOW, RIP};
pub use sharing::BITTORRENT;
pub use terminal::{TELNET, VNC, WHOIS, X11};
pub use tunnel::{IPSEC, L2TP, OPENVPN, SOCKS, TEREDO, WIREGUARD};
pub use voice::{RTCP, RTP, RTSP, SIP, STUN};
pub use windows::{DCERPC, KERBEROS, LDAP, NBDGM, NBNS, RDP, SMB};

/// All of them, in the order in which their probes are asked: those of which few octets are sure first, those that go by a
/// pattern over several datagrams, or by the port besides, last.
pub const ALL: &[&Protocol] = &[
    // By a protocol of IP, which nothing else is.
    &IPSEC,
    // By a magic number, or a word that nothing else begins with.
    &BITTORRENT,
    &SMB,
    &STUN,
    &SIP,
    &RTSP,
    &SSDP,
    &DHCP,
    &MQTT,
    &AMQP,
    &VNC,
    &XMPP,
    &BGP,
    &RSYNC,
    &GIT,
    &DNP3,
    &DROPBOX,
    &SPOTIFY,
    &WHATSAPP,
    &IMAP,
    &POP3,
    &REDIS,
    &IRC,
    &TELNET,
    &POSTGRESQL,
    &RDP,
    &S7COMM,
    &CASSANDRA,
    &TDS,
    &DCERPC,
    // By lengths and types that agree.
    &SNMP,
    &LDAP,
    &KERBEROS,
    &RADIUS,
    &NBNS,
    &NBDGM,
    &MYSQL,
    &MONGODB,
    &NETFLOW,
    &IPFIX,
    &ENIP,
    &BACNET,
    &SOMEIP,
    &NFS,
    &SUNRPC,
    &TFTP,
    &L2TP,
    &RTCP,
    // By the port besides.
    &NTP,
    &DHCPV6,
    &SYSLOG,
    &MODBUS,
    &IEC104,
    &SFLOW,
    &RIP,
    &OPENFLOW,
    &X11,
    &MEMCACHED,
    &TEREDO,
    &WHOIS,
    &COAP,
    // By several datagrams, or by what is answered.
    &WIREGUARD,
    &OPENVPN,
    &SOCKS,
    // A quarter of all datagrams have the version of RTP.
    &RTP,
];
