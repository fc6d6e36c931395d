//! Any octets as a frame of any link type: no panic, and the fast path says what the general path says.
#![no_main]

use flowgauge::base::{Frame, LinkType, Timestamp};
use flowgauge::extractor::{Extractor, quoted_key};
use libfuzzer_sys::fuzz_target;

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

fuzz_target!(|input: (u8, u16, &[u8])| {
    let (link, extra_len, data) = input;
    // Most inputs are Ethernet, which alone has a fast path.
    let link_type = LINK_TYPES.get(usize::from(link)).copied().unwrap_or(LinkType::ETHERNET);
    let frame = Frame {
        timestamp: Timestamp::ZERO,
        link_type,
        data,
        wire_len: data.len() as u32 + u32::from(extra_len),
        interface: 0,
    };
    let extractor = Extractor::default();
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
});
