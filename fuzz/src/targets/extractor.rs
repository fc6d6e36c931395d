//! Arbitrary octets as a frame of any link type with any key policy: the fast path and the general path agree, and the
//! reported positions lie in the frame.
use flowgauge::base::{Frame, Limits, LinkType, Timestamp};
use flowgauge::decode::extractor::{Direction, Extractor, KeyPolicy, Scope, quoted_key};
use flowgauge::decode::link::Decapsulation;

use super::input::structured;

const LINK_TYPES: [LinkType; 29] = [
    LinkType::ETHERNET,
    LinkType::LINUX_SLL,
    LinkType::LINUX_SLL2,
    LinkType::NULL,
    LinkType::LOOP,
    LinkType::RAW,
    LinkType::IPV4,
    LinkType::IPV6,
    LinkType::PPP,
    LinkType::PPP_WITH_DIR,
    LinkType::PPP_HDLC,
    LinkType::PPP_ETHER,
    LinkType::C_HDLC,
    LinkType::FRELAY,
    LinkType::ATM_RFC1483,
    LinkType::FDDI,
    LinkType::IEEE802_5,
    LinkType::IP_OVER_FC,
    LinkType::NFLOG,
    LinkType::IEEE802_11,
    LinkType::IEEE802_11_RADIOTAP,
    LinkType::IEEE802_11_PRISM,
    LinkType::IEEE802_11_AVS,
    LinkType::PPI,
    LinkType::RAW_DLT_12,
    LinkType::PPP_PPPD,
    LinkType::C_HDLC_WITH_DIR,
    LinkType::FRELAY_WITH_DIR,
    LinkType::MPLS,
];

/// Returns a policy; half of the choices are the default.
fn policy(choice: u8) -> KeyPolicy {
    let mut policy = KeyPolicy::DEFAULT;
    if choice & 1 != 0 {
        policy.ports = choice & 2 == 0;
        policy.vlan_ids = choice & 4 != 0;
        policy.vni = choice & 8 != 0;
        policy.echo_id = choice & 16 != 0;
        policy.direction = if choice & 32 == 0 { Direction::Biflow } else { Direction::Uniflow };
        policy.scope = if choice & 64 == 0 { Scope::Fixed(7) } else { Scope::Interface };
        policy.decapsulation =
            if choice & 128 == 0 { Decapsulation::Innermost } else { Decapsulation::Outermost };
    }
    policy
}

/// Returns limits; a quarter of the choices are narrow.
fn limits(choice: u8) -> Limits {
    let mut limits = Limits::DEFAULT;
    if choice & 3 == 2 {
        let count = u32::from(choice >> 2);
        limits.vlan_tag_count_max = count & 3;
        limits.mpls_label_count_max = count >> 1 & 3;
        limits.encapsulation_depth_max = count >> 2 & 3;
        limits.ip_extension_count_max = count >> 4;
    }
    limits
}

pub fn run(data: &[u8]) {
    let Some((link, extra_len, choice, data)) = structured::<(u8, u16, u8, &[u8])>(data) else { return };
    // Most inputs are Ethernet, the only link type with a fast path.
    let link_type = LINK_TYPES.get(usize::from(link)).copied().unwrap_or(LinkType::ETHERNET);
    let frame = Frame {
        timestamp: Timestamp::ZERO,
        link_type,
        data,
        wire_len: data.len() as u32 + u32::from(extra_len),
        interface: 0,
    };
    let extractor = Extractor::new(policy(choice)).with_limits(limits(choice));
    let fast = extractor.extract(&frame);
    let general = extractor.extract_general(&frame);
    assert_eq!(fast, general);
    if let Ok(packet) = fast {
        assert!(packet.payload().len() <= packet.payload_len as usize);
        assert!(
            packet.ip_offset <= packet.transport_offset && packet.transport_offset <= packet.payload_offset
        );
        let _ = quoted_key(&packet, extractor.policy());
    }
}
