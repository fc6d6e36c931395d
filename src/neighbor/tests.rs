//! Messages of all protocols: examples, each truncation, and octets that are changed.

use std::time::Duration;

use proptest::prelude::*;

use super::reading::v4;
use super::*;
use crate::row::{Row as _, Union as _};

/// Returns the octets of hexadecimal digits; spaces separate fields.
fn octets(hex: &str) -> Vec<u8> {
    let digits: Vec<u32> = hex.chars().filter_map(|digit| digit.to_digit(16)).collect();
    digits.chunks(2).map(|pair| (pair[0] << 4 | pair[1]) as u8).collect()
}

/// RFC 826: a request of 192.0.2.1 for 192.0.2.2.
const ARP: &str = "0001 0800 06 04 0001 020000000001 c0000201 000000000000 c0000202";
/// IEEE 802.1AB: MAC address, interface name, 120 s, name, capabilities, address, VLAN, end.
const LLDP: &str = "0207 04 020000000009  0404 05 312f33  0602 0078  0a03 737731  0e04 0014 0004  \
                    100c 05 01 c0000209 02 00000001 00  fe06 0080c2 01 0007  0000";
/// CDP: version 2, 180 s; name, port, capabilities, VLAN, addresses.
const CDP: &str = "02 b4 0000  0001 0007 723031  0003 0008 45743031  0004 0008 00000029  000a 0006 000c  \
                   0002 0011 00000001 01 01 cc 0004 c0000209  000b 0005 01";
/// IEEE 802.1Q: MSTP with a region of one further instance.
const MSTP: &str = "0000 03 02 7c  8000 020000000001  00000000  8000 020000000002  8001  0100 1400 0200 0f00  00  \
                    0050  00 726567696f6e0000000000000000000000000000000000000000000000000000 0001 \
                    00000000000000000000000000000000 00000000 8000020000000002 14  \
                    7c 8001020000000001 00000000 8 0 8 0 14";
/// The same of RSTP in a VLAN, as Cisco writes it.
const PVST: &str = "0000 02 02 3c  8064 020000000001  00000004  8064 020000000002  8001  0100 1400 0200 0f00  00  \
                    0000 0002 0064";
/// RFC 9568: version 3, one address, every second.
const VRRP: &str = "31 33 c8 01 0064 0000 c0000263";
/// RFC 2281: the active router of group 1, with the default password.
const HSRP: &str = "00 00 10 03 0a 78 01 00 636973636f000000 c0000263";
/// Version 2: the state of group 500, and a text.
const HSRP_2: &str = "01 28 02 00 06 04 01f4 020000000001 00000064 00000bb8 00002710 \
                      c0000263 000000000000000000000000  03 08 736563726574 0000";
/// RFC 3376: a report with two records.
const IGMP: &str = "22 00 0000 0000 0002  04 00 0000 ef010203  03 00 0001 ef010204 c0000201";
/// RFC 4861: an advertisement of a router with a prefix and a DNS server.
const NDP: &str = "86 00 0000 40 c8 0708 00000000 00000000  01 01 020000000001  05 01 0000 000005dc  \
                   03 04 40 c0 ffffffff 00015180 00000000 20010db8000000000000000000000000  \
                   19 03 0000 00000e10 20010db8000000000000000000000053";

/// Reads a message of a protocol that is not in IP, or the payload of an IP packet.
fn read(protocol: NeighborProtocol, octets: &[u8]) -> Neighbor<'_> {
    let len = octets.len() as u32;
    // An offset of zero means that the payload is not known.
    Neighbor::read(protocol, &Packet { frame: octets, payload_len: len, ..Packet::EMPTY })
}

/// Returns the columns of a message, without absent values and empty lists.
fn columns(protocol: NeighborProtocol, octets: &[u8]) -> Vec<String> {
    let neighbor = read(protocol, octets);
    let row = neighbor.message.row();
    let columns = row.own_columns();
    let values = row.values(&(0..columns.len()).collect());
    let texts = columns.iter().zip(values).map(|(column, value)| format!("{}={value}", column.name));
    texts.filter(|text| !text.ends_with('=') && !text.ends_with("=[]")).collect()
}

fn all() -> [(NeighborProtocol, &'static str); 10] {
    [
        (NeighborProtocol::Arp, ARP),
        (NeighborProtocol::Lldp, LLDP),
        (NeighborProtocol::Cdp, CDP),
        (NeighborProtocol::Stp, MSTP),
        (NeighborProtocol::Stp, PVST),
        (NeighborProtocol::Vrrp, VRRP),
        (NeighborProtocol::Hsrp, HSRP),
        (NeighborProtocol::Hsrp, HSRP_2),
        (NeighborProtocol::Igmp, IGMP),
        (NeighborProtocol::Ndp, NDP),
    ]
}

#[test]
fn examples_are_read() {
    for (protocol, hex) in all() {
        assert!(!read(protocol, &octets(hex)).head.is_malformed, "{}", protocol.name());
    }
    let of = |protocol, hex| columns(protocol, &octets(hex)).join(" ");
    assert_eq!(
        of(NeighborProtocol::Arp, ARP),
        "arp_operation=request hardware_type=1 protocol_type=2048 sender_mac=02:00:00:00:00:01 \
         sender_address=192.0.2.1 target_mac=00:00:00:00:00:00 target_address=192.0.2.2 is_probe=false \
         is_announcement=false"
    );
    let lldp = octets(LLDP);
    let NeighborMessage::Lldp(lldp) = read(NeighborProtocol::Lldp, &lldp).message else { panic!("LLDP") };
    assert_eq!(lldp.chassis_id.map(|id| id.to_string()).as_deref(), Some("02:00:00:00:00:09"));
    assert_eq!(lldp.port_id.map(|id| id.to_string()).as_deref(), Some("1/3"));
    assert_eq!((lldp.hold_time, lldp.port_vlan_id), (Some(Duration::from_secs(120)), Some(7)));
    assert_eq!(
        (lldp.system_capabilities, lldp.enabled_capabilities),
        (vec![Name("bridge"), Name("router")], vec![Name("bridge")])
    );
    assert_eq!(lldp.management_addresses, [v4([192, 0, 2, 9])]);
    let cdp = octets(CDP);
    let NeighborMessage::Cdp(cdp) = read(NeighborProtocol::Cdp, &cdp).message else { panic!("CDP") };
    assert_eq!((cdp.device_id, cdp.port_id), (Some("r01".into()), Some("Et01".into())));
    assert_eq!(cdp.system_capabilities, [Name("router"), Name("switch"), Name("igmp")]);
    assert_eq!((cdp.port_vlan_id, cdp.is_full_duplex), (Some(12), Some(true)));
    assert_eq!(cdp.port_addresses, [v4([192, 0, 2, 9])]);
    let hsrp = octets(HSRP_2);
    let NeighborMessage::Redundancy(hsrp) = read(NeighborProtocol::Hsrp, &hsrp).message else {
        panic!("HSRP")
    };
    assert_eq!((hsrp.router_group, hsrp.router_priority), (Some(500), Some(100)));
    assert_eq!(
        (hsrp.router_state.and_then(RedundancyState::name), hsrp.hello_time),
        (Some("active"), Some(Duration::from_secs(3)))
    );
    assert_eq!(
        (hsrp.virtual_addresses, hsrp.authentication),
        (vec![v4([192, 0, 2, 99])], Some(Name("text")))
    );
    let hsrp = octets(HSRP);
    let NeighborMessage::Redundancy(hsrp) = read(NeighborProtocol::Hsrp, &hsrp).message else {
        panic!("HSRP")
    };
    assert_eq!(
        (hsrp.router_state.and_then(RedundancyState::name), hsrp.hold_time),
        (Some("active"), Some(Duration::from_secs(10)))
    );
    assert_eq!(hsrp.authentication, Some(Name("text")));
    let vrrp = octets(VRRP);
    let NeighborMessage::Redundancy(vrrp) = read(NeighborProtocol::Vrrp, &vrrp).message else {
        panic!("VRRP")
    };
    assert_eq!(
        (vrrp.redundancy_version, vrrp.hello_time, vrrp.authentication),
        (3, Some(Duration::from_secs(1)), None)
    );
    let mstp = octets(MSTP);
    let NeighborMessage::Stp(mstp) = read(NeighborProtocol::Stp, &mstp).message else { panic!("MSTP") };
    assert_eq!((mstp.region_name, mstp.instance_count), (Some("region".into()), Some(1)));
    assert_eq!((mstp.port_role, mstp.age_max_time), (Some(PortRole(3)), Some(Duration::from_secs(20))));
    let pvst = octets(PVST);
    let NeighborMessage::Stp(pvst) = read(NeighborProtocol::Stp, &pvst).message else { panic!("PVST+") };
    assert_eq!((pvst.tree_vlan_id, pvst.root_path_cost), (Some(100), Some(4)));
    let igmp = octets(IGMP);
    let NeighborMessage::Membership(igmp) = read(NeighborProtocol::Igmp, &igmp).message else {
        panic!("IGMP")
    };
    let kinds: Vec<_> =
        igmp.group_records.iter().map(|record| (record.0.kind.0, record.0.sources.len())).collect();
    assert_eq!(kinds, [(4, 0), (3, 1)]);
    let ndp = octets(NDP);
    let NeighborMessage::Ndp(ndp) = read(NeighborProtocol::Ndp, &ndp).message else { panic!("NDP") };
    assert_eq!((ndp.router_time, ndp.link_mtu), (Some(Duration::from_secs(1800)), Some(1500)));
    assert_eq!((ndp.router_preference, ndp.is_managed), (Some(Name("high")), Some(true)));
    assert_eq!(ndp.prefixes[0].0.valid_seconds, u32::MAX);
    assert_eq!(ndp.router_dns_servers, ["2001:db8::53".parse::<IpAddr>().unwrap()]);
}

#[test]
fn a_message_that_ends_early_is_reported_with_what_was_read() {
    for (protocol, hex) in all() {
        let whole = octets(hex);
        let all = columns(protocol, &whole);
        for len in 0..whole.len() {
            let part = &whole[..len];
            let neighbor = read(protocol, part);
            let is_fixed_missing = matches!(neighbor.message, NeighborMessage::Malformed(_));
            // Elements end there, or the rest may be padding.
            let ends: &[usize] = match protocol {
                NeighborProtocol::Cdp => &[4, 11, 19, 27, 33, 50],
                NeighborProtocol::Stp if hex == PVST => &[35, 36, 37, 38, 39, 40, 41],
                NeighborProtocol::Hsrp if hex == HSRP_2 => &[42],
                NeighborProtocol::Ndp => &[16, 24, 32, 64],
                _ => &[],
            };
            assert_eq!(neighbor.head.is_malformed, !ends.contains(&len), "{hex} {len}");
            assert!(is_fixed_missing || columns(protocol, part).len() <= all.len() + 1, "{hex} {len}");
        }
    }
}

/// Messages that look like others, or like those with more fields.
#[test]
fn only_what_a_message_has_is_read() {
    let of = |protocol, hex: &str| {
        let octets = octets(hex);
        assert!(!read(protocol, &octets).head.is_malformed, "{hex}");
        columns(protocol, &octets).join(" ")
    };
    // CARP has the IP protocol and the first octet of VRRP; a message of VRRP with seven addresses is longer.
    let carp = format!("21 01 00 07 00 01 0000 {}", "01".repeat(28));
    assert_eq!(
        of(NeighborProtocol::Vrrp, &carp),
        "redundancy_version=2 redundancy_type=carp router_group=1 hello_time=1000000000"
    );
    let vrrp = format!("21 01 64 07 00 01 0000 {} 0000000000000000", "c0000201".repeat(7));
    assert!(of(NeighborProtocol::Vrrp, &vrrp).contains("redundancy_type=advertisement"));
    // Authentication of HSRP by MD5 follows the message of version 1.
    let md5 = format!("00 00 10 03 0a 78 01 00 0000000000000000 c0000263 04 1c {}", "00".repeat(28));
    assert!(of(NeighborProtocol::Hsrp, &md5).contains("authentication=md5"));
    // Routers that look for others (RFC 4286) state no group.
    assert_eq!(of(NeighborProtocol::Igmp, "30 14 0000 007d 0002"), "membership_type=router_advertisement");
    assert_eq!(of(NeighborProtocol::Igmp, "31 00 0000"), "membership_type=router_solicitation");
    // A DNS server without time left is withdrawn (RFC 8106 section 5.1).
    let withdrawn = NDP.replace("00000e10", "00000000");
    assert!(!of(NeighborProtocol::Ndp, &withdrawn).contains("router_dns_servers"));
}

#[test]
fn lists_are_bounded() {
    let mut report = octets("22 00 0000 0000 ffff");
    report.extend(octets("04 00 0000 ef010203").repeat(0xffff));
    let NeighborMessage::Membership(igmp) = read(NeighborProtocol::Igmp, &report).message else {
        panic!("IGMP")
    };
    assert_eq!(igmp.group_records.len(), ITEM_COUNT_MAX);
    let mut query = octets("11 00 0000 00000000 00 00 ffff");
    query.resize(12 + 4 * 0xffff, 1);
    let NeighborMessage::Membership(igmp) = read(NeighborProtocol::Igmp, &query).message else {
        panic!("IGMP")
    };
    assert_eq!(igmp.group_sources.len(), ITEM_COUNT_MAX);
}

#[test]
fn probes_and_announcements_of_arp_are_told_from_requests() {
    let of = |sender: &str, target: &str| {
        let message = octets(&format!("0001 0800 06 04 0001 020000000001 {sender} 000000000000 {target}"));
        let NeighborMessage::Arp(arp) = read(NeighborProtocol::Arp, &message).message else { panic!("ARP") };
        (arp.is_probe, arp.is_announcement)
    };
    assert_eq!(of("00000000", "c0000202"), (true, false));
    assert_eq!(of("c0000202", "c0000202"), (false, true));
    assert_eq!(of("c0000201", "c0000202"), (false, false));
    assert_eq!(of("00000000", "00000000"), (false, false));
}

proptest! {
    /// No octets cause a panic, and all values can be written.
    #[test]
    fn any_octets_are_read(
        protocol in proptest::sample::select(all().map(|(protocol, _)| protocol).to_vec()),
        example in 0..10_usize,
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..8),
        more in proptest::collection::vec(any::<u8>(), 0..40),
    ) {
        let mut message = octets(all()[example].1);
        for (index, value) in changes {
            let len = message.len();
            message[index.index(len)] = value;
        }
        message.extend(more);
        let _ = columns(protocol, &message);
    }
}
