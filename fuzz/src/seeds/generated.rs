//! Seeds from generators: conversations in all tunnels, random calls, and files of all formats.

use std::io::Write as _;

use flowgauge::base::{Frame, LinkType, Timestamp};

use super::random::Random;
use super::scripts::SCRIPTED;
use super::store::Seeds;
use crate::differential::condition::PARTS;
use crate::targets::rig::SETUP_LEN;

const FILTERS: [&str; 24] = [
    "tcp",
    "udp port 53",
    "host 10.0.0.1",
    "net 10.0.0.0/8 and not port 22",
    "src host 10.0.0.1 or dst port 443",
    "ip6 and tcp",
    "vlan 5",
    "vlan and (udp or icmp)",
    "portrange 1000-2000",
    "tcp port 80 or 443",
    "host 2001:db8::1",
    "net 2001:db8::/32",
    "proto 47",
    "ip proto \\sctp",
    "icmp6",
    "not (tcp or udp)",
    "((((tcp))))",
    "src net 192.0.2.0 mask 255.255.255.0",
    "dst portrange 1-65535",
    "tcp and src port 80 and dst host 10.0.0.2",
    "arp",
    "! udp && tcp || icmp",
    "ip host 10.0.0.1 and ip6 host ::1",
    "port http or domain",
];

/// Conditions, as the parts that the target joins.
const CONDITIONS: [&[&str]; 8] = [
    &["octet_count", ">", "1", " and ", "protocol", "=", "'text'"],
    &["a", "=", "b", " or ", " not ", "a", "<=", "2.5", "*", "-1", "+", "b", "/", "1e3"],
    &["id.orig_h", " not in (", "'10.0.0.0/8'", ",", "null", ")"],
    &["a", " not between 1 and 2", " and ", "b", " between ", "1", " and ", "2.5"],
    &["a", " not like ", "'text'", " escape ", "'!'", " or ", "b", " ilike ", "\"name\""],
    &["(", "a", "=", "1", ")", " is not unknown", " or ", "`a b`", " is not null"],
    &["-1", "<", "a", "==", "true"],
    &["(", "(", "(", "not a", ")", " is true", ")", " is null", ")"],
];

/// Number of rounds of random calls per target.
const ROUND_COUNT: u64 = 24;

pub(super) fn add(seeds: &mut Seeds) {
    for filter in FILTERS {
        seeds.add("filter", filter.as_bytes().to_vec());
    }
    for condition in CONDITIONS {
        let place = |part: &&str| PARTS.iter().position(|known| known == part).expect("a part");
        seeds.add("condition", condition.iter().map(|part| place(part) as u8).collect());
    }
    add_scripts(seeds);
    add_dialogues(seeds);
    add_calls(seeds);
    add_examples(seeds);
}

/// Returns the step of a packet of a conversation with a given phrase.
fn packet(conversation: u8, how: u8, tunnels: u8, fragment: u8, phrase: u8) -> [u8; 11] {
    // The kind of the step and the fields of a packet in their order: no shift, a short wait, no damage.
    [2, conversation, how, 0, 9, tunnels, fragment, 0, 0, 0, phrase + 1]
}

fn add_scripts(seeds: &mut Seeds) {
    // Conversations that match their port: the first phrase of the client, and the number of phrases in turn.
    let conversations: [(u8, u8, u8, bool); 9] = [
        (0x00, 0, 4, false),
        (0x10, 15, 4, false),
        (0x28, 19, 2, false),
        (0x20, 21, 1, false),
        (0x30, 24, 8, true),
        (0x40, 22, 2, false),
        (0x50, 32, 5, true),
        (0x00, 8, 7, false),
        (0x18, 37, 3, false),
    ];
    for (number, (conversation, first, count, is_server_first)) in conversations.into_iter().enumerate() {
        for tunnels in [0, 1 << 4, 2 << 4, 3 << 4 | 1, 4 << 4, 5 << 4, 7 << 4, 8 << 4, 0x0f, 0x1f, 0x2f, 0x3f]
        {
            for (is_ipv6, fragment) in [(false, 0), (true, 0), (false, 3), (true, 130)] {
                let conversation = conversation | if is_ipv6 { 4 } else { 0 };
                let mut script = vec![0; SETUP_LEN];
                for turn in 0..count {
                    let is_server = (turn % 2 == 1) != is_server_first;
                    script.extend(packet(conversation, is_server.into(), tunnels, fragment, first + turn));
                }
                // FINs of both sides, and a clock step.
                script.extend(packet(conversation, 0x10, tunnels, 0, 48));
                script.extend(packet(conversation, 0x11, tunnels, 0, 48));
                script.extend([12, 140]);
                for target in SCRIPTED.iter().skip((number + usize::from(tunnels)) % 2).step_by(2) {
                    seeds.add(target, script.clone());
                }
            }
        }
    }
    // Random conversations under random configurations.
    for round in 1..=4 * ROUND_COUNT {
        let mut random = Random(round.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let mut script = random.octets(SETUP_LEN);
        if round % 2 == 0 {
            script.fill(0);
        }
        for _ in 0..40 {
            match random.below(12) {
                0 => script.extend([11, random.below(4) as u8, 3]),
                1 => script.extend([12, 128 + random.below(20) as u8]),
                2 => script.extend([13, random.below(8) as u8]),
                3 => script.push(14 + random.below(2) as u8),
                _ => {
                    let mut step = packet(
                        random.below(256) as u8 & 0x77,
                        random.below(2) as u8 | (random.below(8) as u8) << 4 & 0x50,
                        if random.below(3) == 0 { random.next() as u8 } else { 0 },
                        if random.below(4) == 0 { random.below(20) as u8 } else { 0 },
                        random.below(48) as u8,
                    );
                    if random.below(6) == 0 {
                        step[3] = random.next() as u8;
                    }
                    if random.below(8) == 0 {
                        (step[7], step[8]) = (random.below(60) as u8, random.next() as u8);
                    }
                    script.extend(step);
                }
            }
        }
        seeds.add_all(&SCRIPTED, &script);
    }
}

/// Adds random words of each parser.
fn add_dialogues(seeds: &mut Seeds) {
    let targets = [
        "session_http1",
        "session_http2",
        "session_tls",
        "session_dns",
        "session_ssh",
        "session_smtp",
        "session_ftp",
        "session_standard",
    ];
    for target in targets {
        for round in 1..=ROUND_COUNT {
            let mut random = Random(round.wrapping_mul(0xd1b5_4a32_d192_ed03));
            let choice = random.next() as u8;
            let mut seed = vec![random.next() as u8, if round % 2 == 0 { 0 } else { choice }];
            for _ in 0..30 {
                let from = random.below(2) as u8;
                match random.below(10) {
                    0 => seed.extend([8 + from, random.below(40) as u8, 0]),
                    1 => seed.extend([11, random.below(30) as u8]),
                    _ => seed.extend([2 + from, random.below(64) as u8]),
                }
            }
            seeds.add(target, seed);
        }
    }
    // QUIC: PING and PADDING, ACK, CRYPTO, CONNECTION_CLOSE in sealed packets.
    let frames: [&[u8]; 4] =
        [&[1, 0, 0], &[2, 0, 0, 0, 0], &[6, 0, 4, 1, 0, 0, 0], &[0x1c, 0, 0, 4, b'o', b'o', b'p', b's']];
    for (number, frame) in frames.into_iter().enumerate() {
        for kind in [2, 3, 2 | 16, 3 | 16] {
            let mut seed = vec![0, kind, number as u8];
            crate::targets::input::put_octets(&mut seed, frame);
            seeds.add("session_quic", seed);
        }
    }
}

/// Adds the header blocks of RFC 7541, Appendix C, and an Initial packet of QUIC with ids and a token.
fn add_examples(seeds: &mut Seeds) {
    use crate::targets::input::put_octets;
    // C.2.1 to C.2.4; C.3; C.4; C.6. The blocks of the last three follow one another on a connection.
    let connections: [&[&[u8]]; 4] = [
        &[
            b"\x40\x0acustom-key\x0dcustom-header",
            b"\x04\x0c/sample/path",
            b"\x10\x08password\x06secret",
            b"\x82",
        ],
        &[
            b"\x82\x86\x84\x41\x0fwww.example.com",
            b"\x82\x86\x84\xbe\x58\x08no-cache",
            b"\x82\x87\x85\xbf\x40\x0acustom-key\x0ccustom-value",
        ],
        &[
            b"\x82\x86\x84\x41\x8c\xf1\xe3\xc2\xe5\xf2\x3a\x6b\xa0\xab\x90\xf4\xff",
            b"\x82\x86\x84\xbe\x58\x86\xa8\xeb\x10\x64\x9c\xbf",
            b"\x82\x87\x85\xbf\x40\x88\x25\xa8\x49\xe9\x5b\xa9\x7d\x7f\x89\x25\xa8\x49\xe9\x5b\xb8\xe8\xb4\xbf",
        ],
        &[
            b"\x3f\xe1\x01\x48\x82\x64\x02\x58\x85\xae\xc3\x77\x1a\x4b",
            b"\x48\x83\x64\x0e\xff\xc1\xc0\xbf",
            b"\x20\x88\x3f\xe1\x1f",
        ],
    ];
    for blocks in connections {
        let mut seed = Vec::new();
        blocks.iter().for_each(|block| put_octets(&mut seed, block));
        seeds.add("hpack", seed);
    }
    for kind in [1, 3] {
        let mut seed = vec![kind, 0];
        put_octets(&mut seed, b"8octets!");
        put_octets(&mut seed, b"abc");
        put_octets(&mut seed, b"token");
        seeds.add("quic_header", seed);
    }
    seeds.add("quic_header", b"\x02\x80\0\0\0\0\x04abcd\x08efghijkl\0\0\0\x01\x6b\x33\x43\xcf".to_vec());
    let retry = [&b"\x02\xf0\0\0\0\x01\x04abcd\x08efghijkl"[..], b"token", &[7; 16]].concat();
    seeds.add("quic_header", retry);
}

/// Adds random calls for the targets with steps of small numbers.
fn add_calls(seeds: &mut Seeds) {
    for round in 1..=ROUND_COUNT {
        let mut random = Random(round.wrapping_mul(0xa24b_aed4_963e_e407));
        let limit_choice = if round % 2 == 0 { 0 } else { random.next() as u8 };
        let mut tracker = vec![random.next() as u8, limit_choice, 1 + random.below(40) as u8];
        for _ in 0..60 {
            let flags = [2, 2, 0x12, 0x10, 0x10, 0x18, 0x11, 0x14, 4][random.below(9)];
            let choice = random.below(if round % 3 == 0 { 256 } else { 32 }) as u8;
            let numbers = random.below(8) as u8 | (random.below(8) as u8) << 4;
            tracker.extend([
                choice,
                flags,
                numbers,
                random.next() as u8,
                random.next() as u8,
                random.next() as u8,
            ]);
        }
        seeds.add("tracker", tracker);

        let mut fragment = vec![random.next() as u8];
        let mut reassembler = random.octets(5);
        if round % 2 == 0 {
            reassembler[1..].fill(0);
        }
        for _ in 0..50 {
            fragment.extend([
                random.next() as u8,
                random.below(128) as u8,
                random.next() as u8,
                random.below(64) as u8,
            ]);
            let flags = (5 + random.below(26) as u8) | (random.below(4) as u8) << 6;
            let choice = if random.below(3) == 0 { random.next() as u8 } else { random.below(4) as u8 };
            reassembler.extend([
                choice,
                random.next() as u8,
                0,
                random.below(64) as u8,
                flags,
                random.below(200) as u8,
            ]);
        }
        seeds.add("fragment", fragment);
        seeds.add("reassembler", reassembler);
        seeds.add("neighbor", random.octets(1 + 8 * 40));

        let mut dedup = vec![0, 0, 0, random.below(20) as u8, 0, 0, 0];
        for number in 0..40 {
            // An earlier frame or octets, link type, interface, length on the wire, and time.
            if number > 0 && random.below(2) == 0 {
                dedup.extend([1, random.below(number.min(6)) as u8]);
            } else {
                dedup.push(0);
            }
            let octets = random.octets(20);
            crate::targets::input::put_octets(&mut dedup, &octets);
            dedup.extend([random.below(8) as u8, random.next() as u8, 0, random.below(30) as u8]);
        }
        seeds.add("dedup", dedup);
    }
    add_reads(seeds);
    let mut random = Random(77);
    for link in 0..29 {
        seeds.add("extractor", [&[link, 0, 0, 0][..], &random.octets(100)].concat());
    }
    for choice in 0..=255 {
        let mut seed = vec![200];
        seed.extend(&packet(choice, choice & 1, choice.rotate_left(3), choice & 7, choice % 48)[1..]);
        seeds.add("headers", seed);
    }
}

/// Adds scripts of reads, with short lengths so that most reads succeed.
fn add_reads(seeds: &mut Seeds) {
    /// Number of kinds of reads, and of prefixes.
    const KINDS: [usize; 2] = [11, 4];
    /// Kinds with a length of one octet, and the first kind with a prefix.
    const WITH_LEN: [usize; 3] = [4, 5, 6];
    const WITH_PREFIX: [usize; 3] = [7, 8, 9];
    let mut random = Random(78);
    for _ in 0..40 {
        // A choice among `count` is a number of 32 bits, of which it is the part.
        let choice = |choice: usize, count: usize| (((choice as u64) << 32) / count as u64 + 1) as u32;
        let mut script = Vec::new();
        for _ in 0..20 {
            let kind = random.below(KINDS[0]);
            script.extend(choice(kind, KINDS[0]).to_le_bytes());
            if WITH_LEN.contains(&kind) {
                script.push(random.below(6) as u8);
            } else if WITH_PREFIX.contains(&kind) {
                script.extend(choice(random.below(KINDS[1]), KINDS[1]).to_le_bytes());
            }
        }
        let octets =
            random.octets(400).iter().map(|octet| if octet & 3 == 0 { *octet } else { octet & 7 }).collect();
        seeds.add("codec", [vec![script.len() as u8], script, octets].concat());
    }
}

/// Adds the start of a capture file, uncompressed and compressed, and in the formats of classic pcap.
pub(super) fn add_file(seeds: &mut Seeds, file: &[u8]) {
    const FILE_LEN_MAX: usize = 6000;
    let file = &file[..file.len().min(FILE_LEN_MAX)];
    let head = [255, 0xff, 0xff];
    let seed = |octets: &[u8]| [&head[..], octets].concat();
    seeds.add("source", seed(file));
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(file).expect("writing to a vector succeeds");
    seeds.add("source", seed(&gzip.finish().expect("writing to a vector succeeds")));
    seeds.add("source", seed(&zstd::encode_all(file, 1).expect("writing to a vector succeeds")));
    for magic in [0xa1b2_c3d4_u32, 0xa1b2_3c4d, 0xa1b2_cd34] {
        for is_big in [false, true] {
            seeds.add("source", seed(&classic(magic, is_big)));
        }
    }
    seeds.add("source", seed(&written()));
}

/// A file of classic pcap with three frames in a given byte order.
fn classic(magic: u32, is_big: bool) -> Vec<u8> {
    let mut file = Vec::new();
    let put = |file: &mut Vec<u8>, number: u32| {
        file.extend(if is_big { number.to_be_bytes() } else { number.to_le_bytes() });
    };
    put(&mut file, magic);
    let version = [2_u16, 4].map(|number| if is_big { number.to_be_bytes() } else { number.to_le_bytes() });
    file.extend(version.concat());
    for number in [0, 0, 65_535, 1] {
        put(&mut file, number);
    }
    for len in [60, 20, 0] {
        for number in [1_700_000_000, 999_999, len, len + 4] {
            put(&mut file, number);
        }
        if magic == 0xa1b2_cd34 {
            file.extend([0, 0, 0, 1, 0, 8, 0, 0]);
        }
        file.extend(vec![7; len as usize]);
    }
    file
}

/// A pcapng file with two interfaces.
fn written() -> Vec<u8> {
    use flowgauge::source::{Interface, PcapngWriter};
    let interfaces = [Interface::new(LinkType::ETHERNET), Interface::new(LinkType::RAW)];
    let mut writer = PcapngWriter::new(Vec::new()).expect("writing to a vector succeeds");
    for number in 0..4_u32 {
        let link_type = interfaces[number as usize % 2].link_type;
        let timestamp = Timestamp::from_nanos(u64::from(number) * 1_000_000_007);
        let frame = Frame { timestamp, link_type, data: &[9; 50], wire_len: 60, interface: number % 2 };
        writer.write(&frame, &interfaces).expect("writing to a vector succeeds");
    }
    writer.finish().expect("writing to a vector succeeds")
}
