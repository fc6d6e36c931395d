//! Handwritten files, one per rule.

use super::*;
use crate::base::{FrameBatch, LinkType};
use crate::source::interfaces::Interfaces;
use crate::source::stats::Tally;

struct Maker {
    big: bool,
    file: Vec<u8>,
}

impl Maker {
    fn new(big: bool) -> Self {
        let mut maker = Self { big, file: Vec::new() };
        maker.section(big);
        maker
    }

    fn word(&self, word: u32) -> [u8; 4] {
        if self.big { word.to_be_bytes() } else { word.to_le_bytes() }
    }

    fn half(&self, half: u16) -> [u8; 2] {
        if self.big { half.to_be_bytes() } else { half.to_le_bytes() }
    }

    fn block(&mut self, block_type: u32, body: &[u8]) -> &mut Self {
        let padded = body.len().next_multiple_of(4);
        let len = self.word(padded as u32 + 12);
        let block_type = self.word(block_type);
        self.file.extend(block_type.into_iter().chain(len));
        self.file.extend(body);
        self.file.extend(vec![0; padded - body.len()]);
        self.file.extend(len);
        self
    }

    fn section(&mut self, big: bool) -> &mut Self {
        self.big = big;
        let mut body = self.word(BYTE_ORDER_MAGIC).to_vec();
        body.extend(self.half(1).into_iter().chain(self.half(0)).chain([0xff; 8]));
        self.block(0x0a0d_0d0a, &body)
    }

    fn interface(&mut self, link: u16, snap_len: u32, options: &[u8]) -> &mut Self {
        let mut body = self.half(link).to_vec();
        body.extend([0, 0].into_iter().chain(self.word(snap_len)).chain(options.iter().copied()));
        self.block(block_type::INTERFACE, &body)
    }

    fn packet(&mut self, words: [u32; 5], data: &[u8]) -> &mut Self {
        let mut body: Vec<u8> = words.into_iter().flat_map(|word| self.word(word)).collect();
        body.extend(data);
        self.block(block_type::ENHANCED_PACKET, &body)
    }
}

fn walked_with(file: &[u8], limits: Limits) -> (FrameBatch, Interfaces, SourceStats, (usize, Stop)) {
    let memory = Memory::new(&limits.into());
    let mut pcapng = Pcapng::new(&limits, &memory);
    let mut interfaces = Interfaces::new(limits.interface_count_max, &memory);
    let (mut batch, mut tally) = (FrameBatch::new(), Tally::default());
    batch.append(file);
    let (bytes, out) = batch.split();
    let end = pcapng.walk(bytes, 0, &mut Sinks { out, tally: &mut tally, interfaces: &mut interfaces });
    (batch, interfaces, tally.stats, end)
}

fn walked(file: &[u8]) -> (FrameBatch, Interfaces, SourceStats, (usize, Stop)) {
    walked_with(file, Limits::DEFAULT)
}

fn bad(file: &[u8]) -> BadBlock {
    match walked(file).3.1 {
        Stop::Bad(bad) => bad,
        other => panic!("{other:?}"),
    }
}

#[test]
fn both_byte_orders_in_one_file() {
    let mut maker = Maker::new(false);
    maker.interface(1, 0, &[]).packet([0, 0, 1_000_000, 3, 60], b"abc");
    maker.section(true).interface(101, 0, &[]).interface(113, 0, &[]).packet([1, 0, 2_000_000, 2, 2], b"de");
    let (batch, interfaces, stats, (at, stop)) = walked(&maker.file);
    assert_eq!((at, stop), (maker.file.len(), Stop::Need(12)));
    let frames: Vec<_> = batch.iter().map(|f| (f.data, f.wire_len, f.interface, f.link_type)).collect();
    let expected = [(&b"abc"[..], 60, 0, LinkType::ETHERNET), (&b"de"[..], 2, 2, LinkType::LINUX_SLL)];
    assert_eq!(frames, expected);
    assert_eq!(batch.get(1).unwrap().timestamp, Timestamp::from_parts(2, 0));
    assert_eq!((interfaces.as_slice().len(), stats.section_count), (3, 2));
}

#[test]
fn simple_packets_have_no_time_and_obey_the_snap_length() {
    let mut maker = Maker::new(true);
    maker.interface(1, 4, &[]);
    maker
        .block(block_type::SIMPLE_PACKET, b"\0\0\0\x09abcd")
        .block(block_type::SIMPLE_PACKET, b"\0\0\0\x02xy");
    let (batch, _, stats, _) = walked(&maker.file);
    let frames: Vec<_> = batch.iter().map(|f| (f.data, f.wire_len, f.timestamp)).collect();
    assert_eq!(frames, [(&b"abcd"[..], 9, Timestamp::ZERO), (&b"xy"[..], 2, Timestamp::ZERO)]);
    assert_eq!((stats.untimed_frame_count, stats.truncated_frame_count), (2, 1));
}

#[test]
fn the_obsolete_packet_block_is_read() {
    let mut maker = Maker::new(false);
    maker.interface(1, 0, &[]).interface(1, 0, &[]);
    let mut body = vec![1, 0, 0xff, 0xff];
    body.extend([0_u32, 5, 1, 1].into_iter().flat_map(u32::to_le_bytes));
    body.push(b'z');
    maker.block(block_type::OBSOLETE_PACKET, &body);
    let (batch, ..) = walked(&maker.file);
    let frame = batch.get(0).unwrap();
    assert_eq!((frame.data, frame.interface, frame.timestamp.as_nanos()), (&b"z"[..], 1, 5000));
}

#[test]
fn other_blocks_are_skipped_and_counted() {
    let mut maker = Maker::new(false);
    for block_type in [4, 5, 9, 10, 0xbad, 0x4000_0bad, 7, 0x8000_0001] {
        maker.block(block_type, b"whatever");
    }
    let (batch, _, stats, (at, _)) = walked(&maker.file);
    assert!(batch.is_empty());
    assert_eq!(at, maker.file.len());
    assert_eq!(
        [
            stats.name_resolution_block_count,
            stats.interface_statistics_block_count,
            stats.systemd_journal_block_count,
            stats.decryption_secrets_block_count,
            stats.custom_block_count,
            stats.unknown_block_count
        ],
        [1, 1, 1, 1, 2, 2]
    );
}

#[test]
fn bad_blocks_stop_reading_after_the_valid_ones() {
    let good = {
        let mut maker = Maker::new(false);
        maker.interface(1, 0, &[]).packet([0, 0, 0, 1, 1], b"a");
        maker.file
    };
    let with = |words: &[u32]| {
        let mut file = good.clone();
        file.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        let (batch, _, _, (at, _)) = walked(&file);
        assert_eq!((batch.len(), at), (1, good.len()));
        bad(&file)
    };
    assert_eq!(with(&[6, 8, 8]), BadBlock::TotalLen(8));
    assert_eq!(with(&[6, 34, 0]), BadBlock::TotalLen(34));
    assert_eq!(with(&[6, 1 << 30, 0]), BadBlock::TooLong(1 << 30));
    assert_eq!(with(&[5, 16, 0, 20]), BadBlock::Trailer { leading: 16, trailing: 20 });
    assert_eq!(with(&[6, 12, 12]), BadBlock::TotalLen(12));
    assert_eq!(with(&[1, 16, 0, 16]), BadBlock::TotalLen(16));
    assert_eq!(with(&[6, 32, 7, 0, 0, 0, 0, 32]), BadBlock::UnknownInterface(7));
    assert_eq!(with(&[6, 36, 0, 0, 0, 5, 5, 0, 36]), BadBlock::FrameLen { need: 5, have: 4 });
    assert_eq!(with(&[6, 32, 0, 0, 0, 1 << 20, 5, 32]), BadBlock::FrameTooLong(1 << 20));
    assert_eq!(with(&[3, 16, 9, 16]), BadBlock::FrameLen { need: 9, have: 0 });
    let section = u32::from_le_bytes(SECTION_TYPE);
    assert_eq!(with(&[section, 28, 5, 0]), BadBlock::ByteOrder(0x0500_0000));
    assert_eq!(with(&[section, 24, BYTE_ORDER_MAGIC, 1]), BadBlock::TotalLen(24));
    assert_eq!(with(&[section, 28, BYTE_ORDER_MAGIC, 2]), BadBlock::Version { major: 2, minor: 0 });
}

#[test]
fn a_simple_packet_without_an_interface_is_bad() {
    let mut maker = Maker::new(false);
    maker.block(block_type::SIMPLE_PACKET, &[0; 8]);
    assert_eq!(bad(&maker.file), BadBlock::UnknownInterface(0));
}

#[test]
fn interfaces_of_one_section_are_limited() {
    let limits = Limits { interface_count_max: 2, ..Limits::DEFAULT };
    let mut maker = Maker::new(false);
    maker.interface(1, 0, &[]).interface(1, 0, &[]).section(true).interface(1, 0, &[]);
    let (_, _, _, (at, stop)) = walked_with(&maker.file, limits);
    assert_eq!((at, stop), (maker.file.len(), Stop::Need(12)));
    maker.interface(1, 0, &[]).interface(1, 0, &[]);
    assert_eq!(walked_with(&maker.file, limits).3.1, Stop::Bad(BadBlock::TooManyInterfaces));
}

/// Checks concatenated pcapng files, in which each section describes its interfaces again.
#[test]
fn equally_described_interfaces_of_several_sections_are_one() {
    let mut maker = Maker::new(false);
    for number in 0..2000_u32 {
        maker.section(number % 2 == 0).interface(1, 96, &[]).interface(1, 96, &[]).interface(101, 96, &[]);
        maker.packet([number % 3, 0, number, 1, 1], b"x");
    }
    let (batch, interfaces, stats, (at, stop)) = walked(&maker.file);
    assert_eq!((at, stop), (maker.file.len(), Stop::Need(12)));
    // Two interfaces of one section remain two, even with the same description.
    let link_types: Vec<_> = interfaces.as_slice().iter().map(|interface| interface.link_type.0).collect();
    assert_eq!((link_types, stats.unnamed_interface_count), (vec![1, 1, 101], 0));
    assert!(batch.iter().zip(0..).all(|(frame, number)| frame.interface == number % 3));
}

#[test]
fn interfaces_beyond_the_limit_are_one_without_a_name() {
    let limits = Limits { interface_count_max: 3, ..Limits::DEFAULT };
    let mut maker = Maker::new(false);
    for number in 0..6_u32 {
        maker.section(false).interface(1, 100 + number, &[]).packet([0, 0, number, 1, 1], b"x");
    }
    let (batch, interfaces, stats, (at, _)) = walked_with(&maker.file, limits);
    assert_eq!((at, batch.len(), stats.unnamed_interface_count), (maker.file.len(), 6, 4));
    let numbers: Vec<_> = batch.iter().map(|frame| (frame.interface, frame.link_type)).collect();
    assert_eq!(numbers, [0, 1, 2, 2, 2, 2].map(|number| (number, LinkType::ETHERNET)));
    let snap_lens: Vec<_> = interfaces.as_slice().iter().map(|interface| interface.snap_len).collect();
    assert_eq!(snap_lens, [Some(100), Some(101), None]);
}

#[test]
fn truncated_input_needs_more_data_and_is_never_an_error() {
    let mut maker = Maker::new(true);
    maker.interface(1, 0, &[]).packet([0, 0, 0, 3, 3], b"abc");
    for len in 0..maker.file.len() {
        let (_, _, _, (at, stop)) = walked(&maker.file[..len]);
        assert!(matches!(stop, Stop::Need(need) if need > len - at), "{len}");
    }
}
