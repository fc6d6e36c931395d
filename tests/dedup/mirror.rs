//! Changes of frames by mirror ports and routers, and other differences.

use etherparse::{IpNumber, PacketBuilder};
use flowgauge::base::{Frame, LinkType, Resources, Timestamp};
use flowgauge::dedup::{DedupConfig, Mode, Window};

const TTL: usize = 22;
const DSCP: usize = 15;
const SUM: usize = 24;
const ID: usize = 18;

/// Returns true if two frames are duplicates of each other, apart from the changes of mirror ports.
fn are_duplicates(one: (LinkType, &[u8]), other: (LinkType, &[u8])) -> bool {
    let mut config = DedupConfig::default();
    (config.mode, config.verifies) = (Mode::IgnoreMirrorChanges, true);
    let mut window = Window::new(config, &Resources::default()).expect("a valid configuration");
    let verdicts = [one, other].map(|(link_type, data)| {
        let frame = Frame::ethernet(Timestamp::from_parts(1, 0), data);
        window.check(&Frame { link_type, ..frame }).is_duplicate()
    });
    assert!(!verdicts[0]);
    assert_eq!(window.stats().mismatch_count, 0, "hash and octets agree");
    verdicts[1]
}

fn on_ethernet(one: &[u8], other: &[u8]) -> bool {
    are_duplicates((LinkType::ETHERNET, one), (LinkType::ETHERNET, other))
}

fn v4() -> Vec<u8> {
    let mut frame = Vec::new();
    let step = PacketBuilder::ethernet2([2; 6], [4; 6]).ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64);
    step.udp(5, 53).write(&mut frame, b"question").expect("a valid packet");
    frame
}

fn v6() -> Vec<u8> {
    let mut frame = Vec::new();
    let step = PacketBuilder::ethernet2([2; 6], [4; 6]).ipv6([1; 16], [2; 16], 64);
    step.udp(5, 53).write(&mut frame, b"question").expect("a valid packet");
    frame
}

fn tagged(frame: &[u8], tags: &[[u8; 4]]) -> Vec<u8> {
    [&frame[..12], &tags.concat(), &frame[12..]].concat()
}

fn with(frame: &[u8], position: usize, octet: u8) -> Vec<u8> {
    let mut frame = frame.to_vec();
    assert_ne!(frame[position], octet);
    frame[position] = octet;
    frame
}

#[test]
fn changes_by_a_router_are_ignored() {
    let frame = v4();
    for position in [0, 6, DSCP, TTL, SUM, SUM + 1] {
        assert!(on_ethernet(&frame, &with(&frame, position, 0xa5)), "octet {position}");
    }
    for position in [ID, 20, 23, 26, 30, 34, 40, frame.len() - 1] {
        assert!(!on_ethernet(&frame, &with(&frame, position, 0xa5)), "octet {position}");
    }
    let frame = v6();
    let other_class = with(&with(&frame, 14, 0x6f), 15, 0xf0);
    assert!(on_ethernet(&frame, &other_class));
    assert!(on_ethernet(&frame, &with(&frame, 21, 1)), "hop limit");
    for position in [16, 20, 22, 38, 54, frame.len() - 1] {
        assert!(!on_ethernet(&frame, &with(&frame, position, 0xa5)), "octet {position}");
    }
    assert!(!on_ethernet(&frame, &with(&frame, 15, 1)), "the flow label");
}

#[test]
fn tags_padding_and_check_sequences_are_ignored() {
    for frame in [v4(), v6()] {
        let tags = [[0x88, 0xa8, 0, 7], [0x91, 0, 0, 9], [0x81, 0, 0x60, 8]];
        for count in 0..=3 {
            assert!(on_ethernet(&frame, &tagged(&frame, &tags[..count])), "{count} tags");
        }
        assert!(on_ethernet(&frame, &[&frame[..], &[0; 14]].concat()));
        assert!(on_ethernet(
            &[&tagged(&frame, &tags[..1])[..], &[0; 6]].concat(),
            &[&frame[..], b"fcs."].concat()
        ));
        assert!(!on_ethernet(&frame, &frame[..frame.len() - 1]), "another length");
    }
}

#[test]
fn the_link_type_of_an_ip_packet_is_ignored() {
    for (frame, family, protocol) in [(v4(), 2, 0x0021_u16), (v6(), 10, 0x0057)] {
        let packet = &frame[14..];
        let sll = [&[0, 0, 0, 1, 0, 6, 1, 2, 3, 4, 5, 6, 0, 0][..], &frame[12..]].concat();
        let sll2 = [&frame[12..14], &[0; 18], packet].concat();
        let null = [&[family, 0, 0, 0][..], packet].concat();
        let ppp = [&[0xff, 3][..], &protocol.to_be_bytes(), packet].concat();
        let pair = |link_type, data: &[u8]| are_duplicates((LinkType::ETHERNET, &frame), (link_type, data));
        assert!(pair(LinkType::LINUX_SLL, &sll));
        assert!(pair(LinkType::LINUX_SLL2, &sll2));
        assert!(pair(LinkType::NULL, &null) && pair(LinkType::LOOP, &null));
        assert!(pair(LinkType::RAW, packet));
        assert!(pair(LinkType::PPP, &ppp) && pair(LinkType::PPP_HDLC, &ppp));
        assert!(!pair(LinkType::FRELAY, &frame), "a link type that is not decoded");
    }
}

#[test]
fn ip_options_are_compared() {
    let mut frame = v4();
    frame.splice(34..34, [1, 1, 1, 0]);
    (frame[14], frame[17]) = (0x46, frame[17] + 4);
    assert!(on_ethernet(&frame, &with(&frame, TTL, 3)));
    assert!(!on_ethernet(&frame, &with(&frame, 36, 7)));
    let with_ah = {
        let mut frame = Vec::new();
        PacketBuilder::ethernet2([2; 6], [4; 6])
            .ipv4([10, 0, 0, 1], [10, 0, 0, 2], 9)
            .write(&mut frame, IpNumber(50), b"anything")
            .expect("a valid packet");
        frame
    };
    assert!(on_ethernet(&with_ah, &with(&with_ah, TTL, 3)));
}

#[test]
fn frames_without_ip_are_compared_from_their_type() {
    let arp = [&[0xff; 6][..], &[2; 6], &[8, 6, 0, 1, 8, 0, 6, 4, 0, 1], &[7; 20]].concat();
    assert!(on_ethernet(&arp, &with(&arp, 0, 1)));
    assert!(on_ethernet(&arp, &[&arp[..], &[0; 18]].concat()), "padding");
    assert!(on_ethernet(&arp, &tagged(&arp, &[[0x81, 0, 0, 7]])));
    assert!(!on_ethernet(&arp, &with(&arp, 41, 1)));
    assert!(!on_ethernet(&arp, &with(&arp, 13, 7)), "another type");
    let lldp = [&[1; 6][..], &[2; 6], &[0x88, 0xcc], &[5; 30]].concat();
    assert!(on_ethernet(&lldp, &with(&lldp, 6, 7)));
    assert!(!on_ethernet(&lldp, &[&lldp[..], &[0]].concat()));
    // IEEE 802.3: 9 octets, and padding.
    let spanning_tree = [&[1; 6][..], &[2; 6], &[0, 9], &[0x42; 9]].concat();
    assert!(on_ethernet(&spanning_tree, &[&spanning_tree[..], &[0; 37]].concat()));
    assert!(!on_ethernet(&spanning_tree, &with(&spanning_tree, 20, 1)));
}

#[test]
fn frames_with_false_headers_are_compared_completely() {
    let frame = v4();
    for broken in [with(&frame, 14, 0x44), with(&frame, 14, 0x55), with(&frame, 17, 19), frame[..20].to_vec()]
    {
        assert!(on_ethernet(&broken, &with(&broken, 0, 1)));
        let last = broken.len() - 1;
        assert!(!on_ethernet(&broken, &with(&broken, last, 0xa5)));
    }
    let broken = with(&v4(), 14, 0x44);
    assert!(!on_ethernet(&broken, &with(&broken, TTL, 1)), "no TTL without a valid header");
    // A length of zero was left to the network adapter: the whole frame is the packet.
    let whole = with(&v4(), 17, 0);
    assert!(on_ethernet(&whole, &with(&whole, TTL, 1)));
    assert!(!on_ethernet(&whole, &with(&whole, whole.len() - 1, 1)));
    for len in 0..frame.len() {
        let truncated = &frame[..len];
        assert!(on_ethernet(truncated, truncated), "{len}");
    }
}
