//! Duplicates, encapsulation, capture files, filters.

use std::hint::black_box;
use std::io::{self, Read};

use flowgauge::base::{Frame, FrameBatch, Limits, LinkType, Resources, Timestamp};
use flowgauge::decode::link::{Decapsulated, Decapsulation, TunnelPorts, decapsulate};
use flowgauge::dedup::{DedupConfig, Mode, Window};
use flowgauge::filter::Filter;
use flowgauge::source::{FileSource, Next, PcapngWriter, Source};

use super::feed::INPUT_LEN;
use super::frames::Frames;
use crate::SEEDS;
use crate::cases::{CLIENT, SERVER, set_seq, tcp, udp};

/// A window, and frames to be checked.
pub(crate) struct Checking {
    window: Window,
    frames: Vec<&'static [u8]>,
    now: u64,
}

pub(crate) fn checking((make, mode, verifies): (fn() -> Frames, Mode, bool)) -> Checking {
    let mut config = DedupConfig::default();
    (config.mode, config.verifies) = (mode, verifies);
    let mut limits = Limits::DEFAULT;
    limits.dedup_frame_count_max = 256;
    limits.dedup_bytes_max = 64 << 10;
    let window =
        Window::new(config, &Resources::new(limits).with_seeds(SEEDS)).expect("a valid configuration");
    let checking = Checking { window, frames: make().leaked(), now: 0 };
    checking.check()
}

impl Checking {
    pub(crate) fn check(mut self) -> Self {
        self.now += 1_000_000_000;
        for data in &self.frames {
            self.now += 100;
            black_box(
                self.window.check(&Frame::ethernet(Timestamp::from_nanos(self.now), data)).is_duplicate(),
            );
        }
        self
    }

    pub(crate) fn checked(self) {
        assert_eq!(self.window.stats().frame_count, 2 * self.frames.len() as u64);
        self.window.check_invariants();
    }
}

/// Distinct frames of 150 octets.
pub(crate) fn distinct_frames() -> Frames {
    Frames::filled(|number| {
        let mut frame = tcp((CLIENT, 40_000), (SERVER, 443), &[0; 96]);
        set_seq(&mut frame, number);
        frame
    })
}

/// Frames of minimum length, each sent twice.
pub(crate) fn short_duplicates() -> Frames {
    Frames::filled(|number| {
        let mut frame = tcp((CLIENT, 40_000), (SERVER, 443), &[]);
        set_seq(&mut frame, number / 2);
        frame
    })
}

/// Frames that contain only VLAN tags.
pub(crate) fn vlan_tags() -> Frames {
    Frames::filled(|number| [&[2; 12][..], &[0x81, 0, 0, number as u8].repeat(300)].concat())
}

/// Frames to be decapsulated, and the number of packets found.
pub(crate) struct Walking {
    frames: Vec<&'static [u8]>,
    link_type: LinkType,
    packet_count: usize,
}

pub(crate) fn walking((make, link_type): (fn() -> Frames, LinkType)) -> Walking {
    Walking { frames: make().leaked(), link_type, packet_count: 0 }
}

impl Walking {
    pub(crate) fn walk(mut self) -> Self {
        let (ports, limits) = (TunnelPorts::default(), Limits::DEFAULT);
        for data in &self.frames {
            let frame =
                Frame { link_type: self.link_type, ..Frame::ethernet(Timestamp::ZERO, black_box(data)) };
            let found = decapsulate(&frame, Decapsulation::Innermost, &ports, &limits);
            self.packet_count += usize::from(matches!(black_box(&found), Decapsulated::Packet(_)));
        }
        self
    }

    pub(crate) fn all_found(self) {
        assert_eq!(self.packet_count, self.frames.len());
    }
}

/// Frames in VXLAN.
pub(crate) fn in_vxlan() -> Frames {
    let inner = tcp((CLIENT, 40_000), (SERVER, 443), &[0; 46]);
    let payload = [&[8, 0, 0, 0, 0, 0, 1, 0], &inner[..]].concat();
    Frames::filled(|_| udp((SERVER, 50_000), (CLIENT, 4789), &payload))
}

/// An IPv4 packet with a payload.
fn ipv4(protocol: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = udp((SERVER, 1), (CLIENT, 1), &[]);
    frame.truncate(34);
    frame[16..18].copy_from_slice(&((20 + payload.len()) as u16).to_be_bytes());
    frame[23] = protocol;
    [&frame[14..], payload].concat()
}

fn on_ethernet(packet: &[u8]) -> Vec<u8> {
    [&[2; 12][..], &[8, 0], packet].concat()
}

/// IPv4 in IPv4, nested up to the limit.
pub(crate) fn nested_ip() -> Frames {
    let packet = (0..7).fold(ipv4(17, &[0; 8]), |packet, _| ipv4(4, &packet));
    Frames::filled(|_| on_ethernet(&packet))
}

/// GRE in GRE with Ethernet in between, nested up to the limit.
pub(crate) fn nested_gre() -> Frames {
    let packet = (0..7).fold(ipv4(17, &[0; 8]), |packet, _| {
        ipv4(47, &[&[0, 0, 0x65, 0x58], &on_ethernet(&packet)[..]].concat())
    });
    Frames::filled(|_| on_ethernet(&packet))
}

/// L2TP version 3 without a cookie, which is recognized only by the headers that follow.
pub(crate) fn nested_l2tp() -> Frames {
    let packet = (0..7)
        .fold(ipv4(17, &[0; 8]), |packet, _| ipv4(115, &[&[0, 0, 0, 9], &on_ethernet(&packet)[..]].concat()));
    Frames::filled(|_| on_ethernet(&packet))
}

/// Extension headers of IPv6 up to the limit.
pub(crate) fn ipv6_extensions() -> Frames {
    let mut payload = Vec::new();
    for position in 0..15 {
        payload.extend([if position == 14 { 17 } else { 60 }, 0, 1, 4, 0, 0, 0, 0]);
    }
    payload.extend([0, 1, 0, 2, 0, 8, 0, 0]);
    let mut frame = [&[2; 12][..], &[0x86, 0xdd, 0x60, 0, 0, 0]].concat();
    frame.extend((payload.len() as u16).to_be_bytes());
    frame.extend([60, 64]);
    frame.extend([[1; 16], [2; 16]].concat());
    frame.extend(payload);
    Frames::filled(|_| frame.clone())
}

/// A stack of MPLS labels up to the limit.
pub(crate) fn mpls_labels() -> Frames {
    let mut stack = [0, 1, 0x20, 64].repeat(15);
    stack.extend([0, 1, 0x21, 64]);
    let frame = [&[2; 12][..], &[0x88, 0x47], &stack, &ipv4(17, &[0; 8])].concat();
    Frames::filled(|_| frame.clone())
}

/// A reader that returns at most `read_len` octets per call.
struct Slow {
    file: Vec<u8>,
    at: usize,
    read_len: usize,
}

impl Read for Slow {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let rest = &self.file[self.at..];
        let len = rest.len().min(to.len()).min(self.read_len);
        to[..len].copy_from_slice(&rest[..len]);
        self.at += len;
        Ok(len)
    }
}

/// A file to be read.
pub(crate) struct Reading {
    source: FileSource,
    batch: FrameBatch,
    frame_count: u64,
}

pub(crate) fn reading((make, read_len): (fn() -> Vec<u8>, usize)) -> Reading {
    let file = make();
    assert_eq!(file.len(), INPUT_LEN, "the input does not have INPUT_LEN octets");
    let opened = |batch| {
        let source =
            FileSource::from_reader(Slow { file: file.clone(), at: 0, read_len }).expect("a capture");
        Reading { source, batch, frame_count: 0 }
    };
    // Reads the file once, so that the batch has its final size.
    let before = opened(FrameBatch::new()).read();
    opened(before.batch)
}

impl Reading {
    pub(crate) fn read(mut self) -> Self {
        while self.source.next_batch(&mut self.batch).expect("a readable file") == Next::Frames {
            self.frame_count += self.batch.iter().map(|frame| u64::from(frame.wire_len > 0)).sum::<u64>();
        }
        self
    }

    pub(crate) fn all_read(self) {
        assert_eq!(self.source.progress(), INPUT_LEN as u64);
        assert!(self.frame_count > 0);
    }
}

/// A file of one frame, blocks, and a frame that fills it up to its length.
fn pcapng(mut block: impl FnMut(usize) -> Vec<u8>) -> Vec<u8> {
    let mut writer = PcapngWriter::new(Vec::new()).expect("writing to a vector succeeds");
    writer.write(&Frame::ethernet(Timestamp::ZERO, &[0; 60]), &[]).expect("writing to a vector succeeds");
    let mut file = writer.finish().expect("writing to a vector succeeds");
    for number in 0.. {
        let block = block(number);
        if file.len() + block.len() + 32 > INPUT_LEN {
            break;
        }
        file.extend(block);
    }
    let len = INPUT_LEN - file.len();
    file.extend(packet_block(&vec![0; len - 32]));
    file
}

fn block(block_type: u32, body: &[u8]) -> Vec<u8> {
    let len = (12 + body.len().next_multiple_of(4)) as u32;
    let mut block = [block_type.to_le_bytes(), len.to_le_bytes()].concat();
    block.extend(body);
    block.resize(len as usize - 4, 0);
    block.extend(len.to_le_bytes());
    block
}

fn packet_block(data: &[u8]) -> Vec<u8> {
    let len = (data.len() as u32).to_le_bytes();
    block(6, &[&[0; 12][..], &len, &len, data].concat())
}

/// Frames of 100 octets.
pub(crate) fn packets() -> Vec<u8> {
    pcapng(|_| packet_block(&[7; 100]))
}

/// Frames without octets.
pub(crate) fn empty_packets() -> Vec<u8> {
    pcapng(|_| packet_block(&[]))
}

/// Blocks of unknown types and without content.
pub(crate) fn empty_blocks() -> Vec<u8> {
    pcapng(|_| block(0x7000, &[]))
}

/// Interfaces without options.
pub(crate) fn interfaces() -> Vec<u8> {
    pcapng(|_| block(1, &[1, 0, 0, 0, 0, 0, 0, 0]))
}

/// Interfaces with names that are not UTF-8.
pub(crate) fn named_interfaces() -> Vec<u8> {
    pcapng(|_| block(1, &[&[1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 252, 0][..], &[0xff; 252]].concat()))
}

/// Sections with an interface and a frame each.
pub(crate) fn sections() -> Vec<u8> {
    let header =
        block(0x0a0d_0d0a, &[&0x1a2b_3c4d_u32.to_le_bytes()[..], &[1, 0, 0, 0], &[0xff; 8]].concat());
    let section = [header, block(1, &[1, 0, 0, 0, 0, 0, 0, 0]), packet_block(&[0; 4])].concat();
    pcapng(|_| section.clone())
}

/// Expressions to be parsed.
pub(crate) struct Parsing {
    expressions: Vec<String>,
    term_count: usize,
    error_count: usize,
}

/// Length of each expression.
const EXPRESSION_LEN: usize = 4096;

pub(crate) fn parsing(make: fn() -> String) -> Parsing {
    let mut expression = make();
    expression.push_str(&" ".repeat(EXPRESSION_LEN - expression.len()));
    let expressions = vec![expression; INPUT_LEN / EXPRESSION_LEN];
    assert_eq!(
        expressions.iter().map(String::len).sum::<usize>(),
        INPUT_LEN,
        "the input does not have INPUT_LEN octets"
    );
    Parsing { expressions, term_count: 0, error_count: 0 }
}

impl Parsing {
    pub(crate) fn parse(mut self) -> Self {
        for expression in &self.expressions {
            match black_box(expression).parse::<Filter>() {
                Ok(filter) => self.term_count += filter.term_count(),
                Err(error) => self.error_count += usize::from(!error.render(expression).is_empty()),
            }
        }
        self
    }

    pub(crate) fn parsed(self) {
        assert!(self.term_count + self.error_count >= self.expressions.len());
    }
}

/// Terms with hosts and ports.
pub(crate) fn hosts_and_ports() -> String {
    let terms = vec!["(src host 192.0.2.1 and tcp dst port 443)"; 85];
    terms.join(" or ")
}

/// Short terms in parentheses that are nested up to the limit.
pub(crate) fn parentheses() -> String {
    let term = format!("{}tcp{}", "(".repeat(60), ")".repeat(60));
    vec![term; 31].join(" or ")
}

/// As many negations as fit.
pub(crate) fn negations() -> String {
    format!("{}tcp", "!".repeat(4000))
}

/// Ports in the shortest form.
pub(crate) fn ports() -> String {
    format!("port {}", vec!["1"; 800].join(" or "))
}

/// An unknown word.
pub(crate) fn unknown_word() -> String {
    format!("tcp and {}", "x".repeat(4000))
}
