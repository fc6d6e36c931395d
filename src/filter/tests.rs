//! Filter expressions and their results for a few conversations.

use super::*;
use crate::base::{IpProtocol, VlanIds};

/// Returns flow keys with the side of their source, each with a name for the assertions.
fn subjects() -> Vec<(&'static str, FlowKey, Side)> {
    let end = |text: &str, port| (text.parse().unwrap(), port);
    let (client, server) = ("10.0.0.9", "192.168.1.1");
    let (client6, server6) = ("fe80::9", "2001:db8::1");
    [
        ("web", IpProtocol::TCP, end(client, 40_000), end(server, 80)),
        ("answer", IpProtocol::TCP, end(server, 80), end(client, 40_000)),
        ("tls6", IpProtocol::TCP, end(client6, 50_000), end(server6, 443)),
        ("dns", IpProtocol::UDP, end(client, 6_001), end("10.0.0.53", 53)),
        ("dns6", IpProtocol::UDP, end(client6, 6_008), end(server6, 53)),
        ("sctp", IpProtocol::SCTP, end(client, 80), end("10.0.0.53", 3_868)),
        ("ping", IpProtocol::ICMP, end(client, 8), end(server, 0)),
        ("ping6", IpProtocol::ICMPV6, end(client6, 128), end(server6, 129)),
        ("gre", IpProtocol::GRE, end("172.16.0.1", 0), end("172.16.0.2", 0)),
    ]
    .map(|(name, protocol, source, destination)| {
        let (mut key, side) = FlowKey::new(protocol, source, destination);
        if matches!(protocol, IpProtocol::ICMP | IpProtocol::ICMPV6) {
            key = key.with_icmp(false, None);
        }
        (name, key, side)
    })
    .into()
}

/// Returns the names of the subjects that match, separated by spaces.
fn matching(expression: &str) -> String {
    let filter = Filter::parse(expression).unwrap_or_else(|error| panic!("{}", error.render(expression)));
    let mut names = Vec::new();
    for (name, key, source) in subjects() {
        if filter.matches(&Subject::new(&key, source)) {
            assert!(filter.may_match(&key), "{expression}: {name}");
            names.push(name);
        } else if filter.is_final() {
            assert!(!filter.may_match(&key), "{expression}: {name}");
        }
    }
    assert_eq!(Filter::parse(&filter.to_string()).as_ref(), Ok(&filter), "{expression}");
    names.join(" ")
}

const ALL: &str = "web answer tls6 dns dns6 sctp ping ping6 gre";

#[test]
fn expressions_match_the_expected_subjects() {
    let cases = [
        ("", ALL),
        (" \t\n", ALL),
        ("host 10.0.0.9", "web answer dns sctp ping"),
        ("host fe80::9", "tls6 dns6 ping6"),
        ("src host 10.0.0.9", "web dns sctp ping"),
        ("src 10.0.0.9", "web dns sctp ping"),
        ("dst 10.0.0.9", "answer"),
        ("src or dst 10.0.0.9", "web answer dns sctp ping"),
        ("dst or src host 10.0.0.9", "web answer dns sctp ping"),
        ("src and dst net 10.0.0.0/8", "dns sctp"),
        ("src && dst net 10", "dns sctp"),
        ("dst net 10/8", "answer dns sctp"),
        ("net 10.0", "web answer dns sctp ping"),
        ("net 192.168.1", "web answer ping"),
        ("net 192.168.0.0 mask 255.255.0.0", "web answer ping"),
        ("net 172.16.0.0/12", "gre"),
        ("net 0.0.0.0/0", "web answer dns sctp ping gre"),
        ("net ::/0", "tls6 dns6 ping6"),
        ("net fe80::/10", "tls6 dns6 ping6"),
        ("dst net 2001:db8::/32", "tls6 dns6 ping6"),
        ("dst net fe80::/10", ""),
        ("port 80", "web answer sctp"),
        ("port http", "web answer sctp"),
        ("tcp port 80", "web answer"),
        ("tcp dst port 80", "web"),
        ("tcp src port http", "answer"),
        ("udp port domain", "dns dns6"),
        ("udp src port 53", ""),
        ("sctp port 80", "sctp"),
        ("src port 80", "answer sctp"),
        ("portrange 6000-6008", "dns dns6"),
        ("udp src portrange 6008-6002", "dns6"),
        ("portrange domain-http", "web answer dns dns6 sctp"),
        ("src and dst portrange 50-4000", "sctp"),
        ("ip", "web answer dns sctp ping gre"),
        ("ip6", "tls6 dns6 ping6"),
        ("tcp", "web answer tls6"),
        ("udp or sctp", "dns dns6 sctp"),
        ("icmp", "ping"),
        ("icmp6", "ping6"),
        ("gre", "gre"),
        ("proto 47", "gre"),
        ("proto gre or 17", "dns dns6 gre"),
        ("ip proto \\tcp", "web answer"),
        ("ip6 proto \\udp or 6", "tls6 dns6"),
        ("ip proto gre", "gre"),
        ("ip proto 17 or gre", "dns gre"),
        ("proto tcp or udp", "web answer tls6 dns dns6"),
        ("ip6 and tcp", "tls6"),
        ("ip host 10.0.0.9 and ip6 host fe80::9", ""),
        ("ip src net 10 and not dst port 53", "web sctp ping"),
        ("igmp or esp or ah or pim or vrrp", ""),
        ("vlan", ""),
        ("not vlan 7", ALL),
    ];
    for (expression, wanted) in cases {
        assert_eq!(matching(expression), wanted, "{expression}");
    }
}

#[test]
fn operators_have_the_documented_precedence() {
    let cases = [
        // From the left: (tcp or udp) and ip6.
        ("tcp or udp and ip6", "tls6 dns6"),
        ("tcp or (udp and ip6)", "web answer tls6 dns6"),
        ("udp and ip6 or tcp", "web answer tls6 dns6"),
        ("udp and (ip6 or tcp)", "dns6"),
        ("not tcp or udp", "dns dns6 sctp ping ping6 gre"),
        ("not (tcp or udp)", "sctp ping ping6 gre"),
        ("!tcp&&!udp", "sctp ping ping6 gre"),
        ("not not tcp", "web answer tls6"),
        ("! not ! tcp", "dns dns6 sctp ping ping6 gre"),
        ("((tcp))", "web answer tls6"),
    ];
    for (expression, wanted) in cases {
        assert_eq!(matching(expression), wanted, "{expression}");
    }
}

#[test]
fn qualifiers_carry_over_to_later_operands() {
    let cases = [
        ("port 80 or 443", "web answer tls6 sctp"),
        ("tcp port 80 or 443", "web answer tls6"),
        ("tcp dst port http or https or 22", "web tls6"),
        ("host 172.16.0.1 or fe80::9", "tls6 dns6 ping6 gre"),
        ("src 172.16.0.1 or 192.168.1.1", "answer gre"),
        ("net 172.16.0.0/12 or 2001:db8::/32", "tls6 dns6 ping6 gre"),
        ("port (80 or 443)", "web answer tls6 sctp"),
        ("port (80)", "web answer sctp"),
        ("tcp port (80 or 443) and not host 10.0.0.9", "tls6"),
        ("udp or port (80 and (not 3868))", "web answer dns dns6"),
        // Everything except port 80, with ports or without.
        ("port not 80", "tls6 dns dns6 ping ping6 gre"),
        ("tcp and port 80 or (443 and ip6)", "web answer tls6"),
        ("port 80 or (host 172.16.0.1) or 443", "web answer tls6 sctp gre"),
        ("not port 80 and 53", "dns dns6"),
        ("portrange 1-52 or 54-100", "web answer sctp"),
    ];
    for (expression, wanted) in cases {
        assert_eq!(matching(expression), wanted, "{expression}");
    }
}

#[test]
fn vlan_conditions_match_the_ids_of_a_packet() {
    let (_, key, source) = subjects().swap_remove(0);
    let stack = VlanIds::NONE.push(100).push(7);
    let matches =
        |expression: &str, subject: &Subject<'_>| Filter::parse(expression).unwrap().matches(subject);
    let tagged = Subject::new(&key, source).with_vlan_ids(stack);
    for expression in ["vlan", "vlan 100", "vlan 7 and tcp", "vlan 100 and vlan 7", "tcp port 80 and vlan"] {
        assert!(matches(expression, &tagged), "{expression}");
        let in_key = key.with_vlan_ids(stack);
        assert!(matches(expression, &Subject::new(&in_key, source)), "{expression}");
        assert!(!matches(expression, &Subject::new(&key, source)), "{expression}");
    }
    assert!(!matches("vlan 10", &tagged));
    assert!(matches("not vlan 10 and host 10.0.0.9", &tagged));
}

#[test]
fn protocols_without_an_ip_packet_are_selected_by_their_name_only() {
    let selected =
        ["arp", "not not arp", "arp or tcp", "arp and vlan 3", "not (tcp or not arp)", "not stp and arp"];
    for expression in selected {
        assert!(Filter::parse(expression).unwrap().selects_link(), "{expression}");
    }
    for expression in ["", "tcp", "not arp", "not arp and not stp", "arp and tcp", "not (arp or udp)"] {
        assert!(!Filter::parse(expression).unwrap().selects_link(), "{expression}");
    }
}

#[test]
fn keys_that_cannot_match_are_excluded_early() {
    let (_, key, source) = subjects().swap_remove(0);
    let may = |expression: &str, key: &FlowKey| Filter::parse(expression).unwrap().may_match(key);
    assert!(may("src host 10.0.0.9", &key) && may("dst host 10.0.0.9", &key));
    assert!(!may("src host 10.0.0.9 and src port 80", &key));
    assert!(may("vlan 9 and tcp", &key) && may("not vlan and tcp", &key) && !may("vlan 9 and udp", &key));
    let in_key = key.with_vlan_ids(VlanIds::NONE.push(9));
    assert!(may("vlan 9", &in_key) && !may("vlan 8", &in_key) && !may("not vlan", &in_key));
    let properties = |expression: &str| {
        let filter = Filter::parse(expression).unwrap();
        (filter.is_directional(), filter.has_vlan(), filter.is_final(), filter.term_count())
    };
    assert_eq!(properties("tcp port 80 or 443"), (false, false, true, 2));
    assert_eq!(properties("tcp dst port 80"), (true, false, false, 1));
    assert_eq!(properties("src or dst port 80 and vlan"), (false, true, false, 2));
    assert_eq!(properties(""), (false, false, true, 0));
    assert!(Filter::default().matches(&Subject::new(&key, source)));
}

#[test]
fn expressions_have_a_canonical_form() {
    let cases = [
        ("tcp dst port http or https", "tcp dst port 80 or tcp dst port 443"),
        ("!(host 10.0.0.1||net 10)", "not (host 10.0.0.1 or net 10.0.0.0/8)"),
        ("src or dst port (80 or 90)", "port 80 or port 90"),
        ("dst and src net 10.1 mask 255.255.0.0", "src and dst net 10.1.0.0/16"),
        ("net 10.0.0.9 mask 255.0.255.255", "net 10.0.0.9 mask 255.0.255.255"),
        ("net 10.0.0.9/32 or 2001:DB8:0::1/128", "host 10.0.0.9 or host 2001:db8::1"),
        ("proto tcp or gre or 132", "tcp or proto 47 or sctp"),
        ("ip proto \\tcp or \\icmp", "ip proto 6 or icmp"),
        ("ip6 proto 58 or 1", "icmp6 or ip6 proto 1"),
        ("gre", "proto 47"),
        ("ip6 or vlan 5 and (vlan)", "ip6 or vlan 5 and vlan"),
        ("portrange 9-7 or 5-5", "portrange 7-9 or port 5"),
        ("tcp and ((udp and ip) and not (ip6))", "tcp and udp and ip and not ip6"),
        ("arp or (rarp and not stp)", "arp or (rarp and not stp)"),
        ("  ", ""),
    ];
    for (expression, wanted) in cases {
        let filter = Filter::parse(expression).unwrap();
        assert_eq!(filter.to_string(), wanted);
        assert_eq!(Filter::parse(wanted), Ok(filter));
    }
}

#[test]
fn errors_report_the_reason_and_the_column() {
    use FilterErrorKind as Kind;
    let cases = [
        ("tcp[13] & 2 != 0", Kind::PacketBytes, 1, "tcp["),
        ("udp and len > 100", Kind::Unsupported, 9, "len"),
        ("ether host 00:11:22:33:44:55", Kind::Unsupported, 1, "ether"),
        ("tcp or broadcast", Kind::Unsupported, 8, "broadcast"),
        ("ip multicast", Kind::Unsupported, 4, "multicast"),
        ("less 100", Kind::Unsupported, 1, "less"),
        ("greater 100", Kind::Unsupported, 1, "greater"),
        ("gateway 10.0.0.1", Kind::Unsupported, 1, "gateway"),
        ("(inbound)", Kind::Unsupported, 2, "inbound"),
        ("src gateway 10.0.0.1", Kind::Unsupported, 5, "gateway"),
        ("rnr", Kind::Unsupported, 1, "rnr"),
        ("arp host 192.0.2.1", Kind::Unexpected, 5, "host"),
        ("host 10.0.0.1 and 1 + 1 = 2", Kind::PartialAddress, 19, "1"),
        ("tcp & udp", Kind::PacketBytes, 5, "&"),
        ("10.0.0.1", Kind::BareValue, 1, "10.0.0.1"),
        ("tcp and 80", Kind::BareValue, 9, "80"),
        ("tcp 80", Kind::Unexpected, 5, "80"),
        ("(port 80) or 443", Kind::BareValue, 14, "443"),
        ("vlan 100 or 200", Kind::BareValue, 13, "200"),
        ("TCP", Kind::UnknownWord, 1, "TCP"),
        ("nonsense", Kind::UnknownWord, 1, "nonsense"),
        ("host www.example.org", Kind::HostName, 6, "www.example.org"),
        ("src somewhere", Kind::HostName, 5, "somewhere"),
        ("host 00:11:22:33:44:55", Kind::Address, 6, "00:11:22:33:44:55"),
        ("host 10.0.0.256", Kind::Address, 6, "10.0.0.256"),
        ("host 10.1", Kind::PartialAddress, 6, "10.1"),
        ("src 10", Kind::PartialAddress, 5, "10"),
        ("ip host ::1", Kind::AddressFamily, 9, "::1"),
        ("ip6 net 10/8", Kind::AddressFamily, 9, "10"),
        ("host 10.0.0.0/8", Kind::MaskWithoutNet, 14, "/"),
        ("src 10.0.0.0 mask 255.0.0.0", Kind::MaskWithoutNet, 14, "mask"),
        ("net 10.0.0.0/33", Kind::Mask, 14, "33"),
        ("net ::/129", Kind::Mask, 8, "129"),
        ("net 10 mask fe80::", Kind::Mask, 13, "fe80::"),
        ("net 10/", Kind::UnexpectedEnd, 8, ""),
        ("net 10.0.0.1/8", Kind::HostBits, 5, "10.0.0.1"),
        ("net fe80::1/10", Kind::HostBits, 5, "fe80::1"),
        ("port 65536", Kind::Port, 6, "65536"),
        ("port nosuchservice", Kind::Port, 6, "nosuchservice"),
        ("port host 10.0.0.1", Kind::Unexpected, 6, "host"),
        ("portrange 1-x", Kind::PortRange, 11, "1-x"),
        ("portrange 1 - 2", Kind::PacketBytes, 13, "-"),
        ("proto 256", Kind::Protocol, 7, "256"),
        ("proto nothing", Kind::Protocol, 7, "nothing"),
        ("ip proto tcp or udp", Kind::UnescapedProtocol, 10, "tcp"),
        ("src proto 6", Kind::DirectedProtocol, 1, "src"),
        ("tcp host 10.0.0.1", Kind::Modifier, 1, "tcp"),
        ("udp or tcp src 10.0.0.1", Kind::Modifier, 8, "tcp"),
        ("ip port 80", Kind::Modifier, 1, "ip"),
        ("icmp src port 80", Kind::Modifier, 1, "icmp"),
        ("vlan 4096", Kind::VlanId, 6, "4096"),
        ("vlan 0", Kind::VlanId, 6, "0"),
        ("tcp and (udp or ip", Kind::UnclosedParenthesis, 9, "("),
        ("tcp)", Kind::Unexpected, 4, ")"),
        ("()", Kind::Unexpected, 2, ")"),
        ("tcp and", Kind::UnexpectedEnd, 8, ""),
        ("not", Kind::UnexpectedEnd, 4, ""),
        ("port", Kind::UnexpectedEnd, 5, ""),
        ("src", Kind::UnexpectedEnd, 4, ""),
        ("src or", Kind::Unexpected, 5, "or"),
        ("tcp or or udp", Kind::Unexpected, 8, "or"),
        ("tcp udp", Kind::Unexpected, 5, "udp"),
        ("tcp ; udp", Kind::Unexpected, 5, ";"),
        ("port (80 or host)", Kind::Unexpected, 13, "host"),
        ("host tcp", Kind::Unexpected, 6, "tcp"),
        ("\\tcp", Kind::UnknownWord, 1, "\\tcp"),
    ];
    for (expression, kind, column, excerpt) in cases {
        let error = Filter::parse(expression).expect_err(expression);
        assert_eq!((error.kind(), error.column(), error.excerpt()), (kind, column, excerpt), "{expression}");
        assert!(!error.to_string().contains('\n'));
    }
    assert_eq!(
        Filter::parse("tcp or broadcast").unwrap_err().to_string(),
        "column 8: `broadcast`: not supported: a flow does not have this property"
    );
    assert_eq!(Filter::parse("tcp and").unwrap_err().to_string(), "column 8: the expression is incomplete");
}

#[test]
fn limits_are_enforced() {
    let nested = |depth| format!("{}tcp{}", "(".repeat(depth), ")".repeat(depth));
    assert!(Filter::parse(&nested(DEPTH_MAX)).is_ok());
    let error = Filter::parse(&nested(DEPTH_MAX + 1)).unwrap_err();
    assert_eq!((error.kind(), error.column()), (FilterErrorKind::TooDeep, DEPTH_MAX + 1));
    assert_eq!(Filter::parse(&"(".repeat(1_000_000)).unwrap_err().kind(), FilterErrorKind::TooDeep);
    let values = format!("port {}80", "(".repeat(1_000_000));
    assert_eq!(Filter::parse(&values).unwrap_err().kind(), FilterErrorKind::TooDeep);
    assert_eq!(Filter::parse(&format!("{} tcp", "not ".repeat(1_000_001))).unwrap().to_string(), "not tcp");

    let long = |count: usize| format!("tcp{}", " or port 1 and vlan".repeat(count / 2));
    let filter = Filter::parse(&long(TERM_COUNT_MAX - 1)).unwrap();
    assert_eq!(filter.term_count(), TERM_COUNT_MAX - 1);
    assert_eq!(Filter::parse(&filter.to_string()), Ok(filter));
    assert_eq!(Filter::parse(&long(TERM_COUNT_MAX + 1)).unwrap_err().kind(), FilterErrorKind::TooLong);
    // The maximum nesting and the maximum number of terms together.
    let mut deep = String::from("tcp");
    for _ in 0..DEPTH_MAX {
        deep = format!("not ({deep} or udp and ip)");
    }
    let filter = Filter::parse(&deep).unwrap();
    assert_eq!(filter.to_string(), deep);
}

#[test]
fn filters_are_send_and_sync() {
    fn send<T: Send + Sync + 'static>() {}
    send::<Filter>();
    send::<FilterError>();
}
