//! Writes traces as classic pcap with microseconds, which all programs read.

use std::io::{self, Write};

use flowgauge::base::{LinkType, NANOS_PER_SECOND};

/// Writes the header of a file with Ethernet frames.
pub(crate) fn write_header(out: &mut impl Write) -> io::Result<()> {
    write_words(out, [0xa1b2_c3d4, 2 | 4 << 16, 0, 0, 262_144, u32::from(LinkType::ETHERNET.0)])
}

/// Writes a packet with its capture time in nanoseconds since 1970.
pub(crate) fn write_packet(
    out: &mut impl Write,
    time_ns: u64,
    wire_len: u32,
    octets: &[u8],
) -> io::Result<()> {
    let (seconds, nanos) = (time_ns / NANOS_PER_SECOND, time_ns % NANOS_PER_SECOND);
    write_words(out, [seconds as u32, (nanos / 1000) as u32, octets.len() as u32, wire_len])?;
    out.write_all(octets)
}

fn write_words<const N: usize>(out: &mut impl Write, words: [u32; N]) -> io::Result<()> {
    words.iter().try_for_each(|word| out.write_all(&word.to_le_bytes()))
}
