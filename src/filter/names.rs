//! Names of ports and protocols, and the words of pcap-filter(7) that are not supported here.

use crate::base::{IpProtocol, NeighborProtocol};

/// Version of IP: 4 or 6.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Family {
    V4,
    V6,
}

/// Returns the port number of a service name.
///
/// The names are those of the IANA service name registry, with common aliases. A name denotes the same port number
/// for every transport protocol.
pub(super) fn port_of(name: &str) -> Option<u16> {
    let at = SERVICES.binary_search_by_key(&name, |(known, _)| known).ok()?;
    SERVICES.get(at).map(|(_, port)| *port)
}

/// Service names with their port numbers, sorted by name for binary search.
const SERVICES: &[(&str, u16)] = &[
    ("amqp", 5672),
    ("amqps", 5671),
    ("auth", 113),
    ("bfd-control", 3784),
    ("bgp", 179),
    ("bootpc", 68),
    ("bootps", 67),
    ("coap", 5683),
    ("coaps", 5684),
    ("dhcpv6-client", 546),
    ("dhcpv6-server", 547),
    ("diameter", 3868),
    ("discard", 9),
    ("domain", 53),
    ("domain-s", 853),
    ("echo", 7),
    ("epmap", 135),
    ("epmd", 4369),
    ("finger", 79),
    ("ftp", 21),
    ("ftp-data", 20),
    ("ftps", 990),
    ("ftps-data", 989),
    ("geneve", 6081),
    ("git", 9418),
    ("gopher", 70),
    ("gtp-control", 2123),
    ("gtp-user", 2152),
    ("http", 80),
    ("http-alt", 8080),
    ("https", 443),
    ("imap", 143),
    ("imap2", 143),
    ("imaps", 993),
    ("ipfix", 4739),
    ("ipp", 631),
    ("ipsec-nat-t", 4500),
    ("irc", 194),
    ("ircs-u", 6697),
    ("isakmp", 500),
    ("iscsi-target", 3260),
    ("kerberos", 88),
    ("kpasswd", 464),
    ("l2tp", 1701),
    ("ldap", 389),
    ("ldaps", 636),
    ("ldp", 646),
    ("llmnr", 5355),
    ("mdns", 5353),
    ("memcache", 11211),
    ("microsoft-ds", 445),
    ("mongodb", 27017),
    ("mqtt", 1883),
    ("ms-sql-m", 1434),
    ("ms-sql-s", 1433),
    ("ms-wbt-server", 3389),
    ("mysql", 3306),
    ("netbios-dgm", 138),
    ("netbios-ns", 137),
    ("netbios-ssn", 139),
    ("nfs", 2049),
    ("nicname", 43),
    ("nntp", 119),
    ("nntps", 563),
    ("ntp", 123),
    ("openvpn", 1194),
    ("pop3", 110),
    ("pop3s", 995),
    ("postgresql", 5432),
    ("pptp", 1723),
    ("printer", 515),
    ("radius", 1812),
    ("radius-acct", 1813),
    ("redis", 6379),
    ("rfb", 5900),
    ("router", 520),
    ("rsync", 873),
    ("rtsp", 554),
    ("secure-mqtt", 8883),
    ("sip", 5060),
    ("sips", 5061),
    ("smtp", 25),
    ("snmp", 161),
    ("snmptrap", 162),
    ("socks", 1080),
    ("ssdp", 1900),
    ("ssh", 22),
    ("stun", 3478),
    ("stuns", 5349),
    ("submission", 587),
    ("submissions", 465),
    ("sunrpc", 111),
    ("svn", 3690),
    ("syslog", 514),
    ("syslog-tls", 6514),
    ("tacacs", 49),
    ("telnet", 23),
    ("telnets", 992),
    ("tftp", 69),
    ("time", 37),
    ("vxlan", 4789),
    ("whois", 43),
    ("www", 80),
    ("www-http", 80),
    ("x11", 6000),
    ("xmpp-client", 5222),
    ("xmpp-server", 5269),
];

/// A keyword that denotes an IP protocol: `(word, protocol, IP version if the word is limited to one)`.
pub(super) type ProtocolWord = (&'static str, IpProtocol, Option<Family>);

/// The protocol keywords that are terms by themselves. pcap-filter(7) limits ICMP, IGMP and VRRP to IPv4.
pub(super) const PROTOCOL_WORDS: [ProtocolWord; 11] = [
    ("tcp", IpProtocol::TCP, None),
    ("udp", IpProtocol::UDP, None),
    ("sctp", IpProtocol::SCTP, None),
    ("icmp", IpProtocol::ICMP, Some(Family::V4)),
    ("icmp6", IpProtocol::ICMPV6, Some(Family::V6)),
    ("igmp", IpProtocol::IGMP, Some(Family::V4)),
    ("esp", IpProtocol::ESP, None),
    ("ah", IpProtocol::AH, None),
    ("pim", IpProtocol::PIM, None),
    ("vrrp", IpProtocol::VRRP, Some(Family::V4)),
    // An extension: pcap-filter(7) has no such keyword. Everywhere else it is a name like any other.
    (GRE, IpProtocol::GRE, None),
];

/// The keywords of frames without an IP packet.
pub(super) const LINK_WORDS: [(&str, NeighborProtocol); 3] =
    [("arp", NeighborProtocol::Arp), ("rarp", NeighborProtocol::Rarp), ("stp", NeighborProtocol::Stp)];

/// Keyword of GRE, the only protocol keyword of this crate that pcap-filter(7) does not reserve.
pub(super) const GRE: &str = "gre";

/// Returns the IP protocol with this name, if the name is in the IANA registry and known to this crate.
pub(super) fn protocol_of(name: &str) -> Option<IpProtocol> {
    let known = |word: &&ProtocolWord| word.0 == name;
    PROTOCOL_WORDS
        .iter()
        .find(known)
        .map(|word| word.1)
        .or_else(|| (0..=u8::MAX).map(IpProtocol).find(|protocol| protocol.name() == Some(name)))
}

/// Returns whether a word of pcap-filter(7) refers to properties that a flow does not have: link-layer addresses,
/// lengths of single packets, the direction of capture, headers outside of the flow's own IP header.
pub(super) fn is_unsupported(word: &str) -> bool {
    UNSUPPORTED.contains(&word)
}

const UNSUPPORTED: &[&str] = &[
    "aarp",
    "action",
    "addr1",
    "addr2",
    "addr3",
    "addr4",
    "address1",
    "address2",
    "address3",
    "address4",
    "atalk",
    "bcc",
    "broadcast",
    "byte",
    "carp",
    "clnp",
    "connectmsg",
    "csnp",
    "decnet",
    "dir",
    "direction",
    "dpc",
    "es-is",
    "esis",
    "ether",
    "fddi",
    "fisu",
    "gateway",
    "geneve",
    "greater",
    "hfisu",
    "hlssu",
    "hmsu",
    "hopc",
    "hdpc",
    "hsio",
    "hsls",
    "hopcount",
    "icmptype",
    "ifindex",
    "ifname",
    "igrp",
    "iih",
    "ilmic",
    "inbound",
    "ipx",
    "is-is",
    "isis",
    "iso",
    "l1",
    "l2",
    "lane",
    "lat",
    "len",
    "length",
    "less",
    "link",
    "llc",
    "lssu",
    "metac",
    "mopdl",
    "moprc",
    "mpls",
    "msu",
    "multicast",
    "netbeui",
    "oam",
    "oamf4",
    "on",
    "opc",
    "outbound",
    "ppp",
    "pppoed",
    "pppoes",
    "protochain",
    "psnp",
    "reason",
    "rnr",
    "slip",
    "tr",
    "type",
    "vxlan",
    "wlan",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn services_are_sorted_for_binary_search() {
        assert!(SERVICES.is_sorted_by(|a, b| a.0 < b.0));
        assert_eq!(port_of("https"), Some(443));
        assert_eq!(port_of("amqp"), Some(5672));
        assert_eq!(port_of("xmpp-server"), Some(5269));
        assert_eq!(port_of("HTTPS"), None);
    }

    #[test]
    fn protocols_have_registered_names() {
        assert_eq!(protocol_of("icmp6"), Some(IpProtocol::ICMPV6));
        assert_eq!(protocol_of("ipv6-icmp"), Some(IpProtocol::ICMPV6));
        assert_eq!(protocol_of("ospf"), Some(IpProtocol::OSPF));
        assert_eq!(protocol_of("gre"), Some(IpProtocol::GRE));
        assert_eq!(protocol_of("nothing"), None);
    }

    #[test]
    fn no_word_is_both_supported_and_unsupported() {
        for (word, ..) in PROTOCOL_WORDS {
            assert!(!is_unsupported(word), "{word}");
        }
    }
}
