//! Protocols that are recognized by content, but not parsed.
//!
//! Each file contains a family of protocols: one `pub static` per protocol, and its probe. [`ALL`] lists them in probe
//! order. Several dozen probes run on the first octets of each flow, so each rejects by the first octet or two if
//! possible, and none allocates.
//!
//! A protocol that gets a parser keeps its place in [`ALL`]: `docs/adding-a-protocol.md` shows the steps. A parser of an
//! application needs only one line in a set that extends [`Standard`](super::Standard): `extends Standard; parsers { Rtsp: MyRtsp =
//! &recognizers::RTSP }`.
//!
//! Each static documents the criteria of its probe. If the octets of a protocol resemble too many others, its port is
//! required in addition, and the evidence is still content: the port alone never matches contradicting octets.
//!
//! A program can use them to report which protocols a network uses. Flow records contain the name of a recognized
//! protocol:
//!
//! ```
//! use flowgauge::{FileSource, Pipeline, Records, RunOptions, Sessions, Standard};
//!
//! let (mut imap_count, mut pop3_count) = (0, 0);
//! let sink = Records::new(|record| match record.application.as_ref().map(|application| application.name.as_str()) {
//!     Some("imap") => imap_count += 1,
//!     Some("pop3") => pop3_count += 1,
//!     _ => {}
//! });
//! let mut source = FileSource::open("examples/data/mail.pcap")?;
//! Pipeline::builder().build(sink.with_stage::<Sessions<Standard>>())?.run(&mut source, &RunOptions::default())?;
//! assert_eq!((imap_count, pop3_count), (3, 3));
//! # Ok::<(), flowgauge::Error>(())
//! ```

mod applications;
mod database;
mod files;
mod industry;
mod messaging;
mod monitoring;
mod network;
pub(super) mod octets;
mod routing;
#[cfg(test)]
pub(super) mod samples;
mod sharing;
mod terminal;
mod tunnel;
mod voice;

use super::{
    dcerpc, dhcp, dhcpv6, imap, irc, kerberos, ldap, modbus, mqtt, nbdgm, nbns, ntp, pop3, radius, rdp, rfb,
    rtp, sip, smb, snmp, socks, stun, syslog,
};
use crate::session::Protocol;

pub use applications::{DROPBOX, SPOTIFY, WHATSAPP};
pub use database::{CASSANDRA, MEMCACHED, MONGODB, MYSQL, POSTGRESQL, REDIS, TDS};
pub use files::{GIT, NFS, RSYNC, SUNRPC};
pub use industry::{BACNET, DNP3, ENIP, IEC104, S7COMM, SOMEIP};
pub use messaging::{AMQP, COAP, XMPP};
pub use monitoring::{IPFIX, NETFLOW, SFLOW};
pub use network::SSDP;
pub use routing::{BGP, OPENFLOW, RIP};
pub use sharing::BITTORRENT;
pub use terminal::{TELNET, WHOIS, X11};
pub use tunnel::{IPSEC, L2TP, OPENVPN, TEREDO, WIREGUARD};
pub use voice::RTSP;

/// All protocols that are recognized only, and those that the [kit](super::Kit) parses, in probe order: those recognized by a few octets first; those that
/// need the port in addition, or a pattern over several datagrams, last.
pub const ALL: &[&Protocol] = &[
    // By an IP protocol number that no other protocol uses.
    &IPSEC,
    // By a magic number, or a word with which no other protocol starts.
    &BITTORRENT,
    &smb::PROTOCOL,
    &stun::PROTOCOL,
    &sip::PROTOCOL,
    &RTSP,
    &SSDP,
    &dhcp::PROTOCOL,
    &mqtt::PROTOCOL,
    &AMQP,
    &rfb::PROTOCOL,
    &XMPP,
    &BGP,
    &RSYNC,
    &GIT,
    &DNP3,
    &DROPBOX,
    &SPOTIFY,
    &WHATSAPP,
    &imap::PROTOCOL,
    &pop3::PROTOCOL,
    &REDIS,
    &irc::PROTOCOL,
    &TELNET,
    &POSTGRESQL,
    &rdp::PROTOCOL,
    &S7COMM,
    &CASSANDRA,
    &TDS,
    &dcerpc::PROTOCOL,
    // By consistent lengths and types.
    &snmp::PROTOCOL,
    &ldap::PROTOCOL,
    &kerberos::PROTOCOL,
    &radius::PROTOCOL,
    &nbns::PROTOCOL,
    &nbdgm::PROTOCOL,
    &MYSQL,
    &MONGODB,
    &NETFLOW,
    &IPFIX,
    &ENIP,
    &BACNET,
    &SOMEIP,
    &NFS,
    &SUNRPC,
    &L2TP,
    &rtp::RTCP,
    // By the port in addition.
    &ntp::PROTOCOL,
    &dhcpv6::PROTOCOL,
    &syslog::PROTOCOL,
    &modbus::PROTOCOL,
    &IEC104,
    &SFLOW,
    &RIP,
    &OPENFLOW,
    &X11,
    &MEMCACHED,
    &TEREDO,
    &WHOIS,
    &COAP,
    // By several datagrams, or by the response.
    &WIREGUARD,
    &OPENVPN,
    &socks::PROTOCOL,
    // A quarter of all first octets match the version of RTP.
    &rtp::PROTOCOL,
];
