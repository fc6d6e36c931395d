//! A long capture, of the captures in `examples/data`.

use std::fs;
use std::path::Path;

/// The captures of Ethernet.
const NAMES: [&str; 6] = ["dns.pcap", "lossy.pcap", "mail.pcap", "ssh.pcap", "transfer.pcap", "web.pcap"];

/// Time of the first frame, and between the beginnings of two rounds, in nanoseconds.
const START_NS: u64 = 1_795_000_000_000_000_000;
const ROUND_NS: u64 = 20_000_000_000;

/// Header of a file: nanoseconds, snap length, Ethernet.
const HEADER: [u32; 6] = [0xa1b2_3c4d, 0x0004_0002, 0, 0, 0x0004_0000, 1];

/// Writes the captures, all at the same time, round by round, until the file is at least `len_min` octets long. Flows with
/// the same keys return in each round.
pub(crate) fn write(path: &Path, len_min: usize) {
    let mut frames = Vec::new();
    for name in NAMES {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/data");
        let octets = fs::read(folder.join(name)).unwrap();
        let word = |at: usize| u32::from_le_bytes(octets[at..at + 4].try_into().unwrap());
        let unit_ns = if word(0) == HEADER[0] { 1 } else { 1000 };
        let time_ns = |at| u64::from(word(at)) * 1_000_000_000 + u64::from(word(at + 4)) * unit_ns;
        let (mut at, first_ns) = (24, time_ns(24));
        while at < octets.len() {
            let end = at + 16 + word(at + 8) as usize;
            frames.push((time_ns(at) - first_ns, octets[at + 8..end].to_vec()));
            at = end;
        }
    }
    frames.sort_by_key(|(time_ns, _)| *time_ns);
    let mut file: Vec<u8> = HEADER.into_iter().flat_map(u32::to_le_bytes).collect();
    for start_ns in (0..).map(|round| START_NS + round * ROUND_NS) {
        for (time_ns, lengths_and_octets) in &frames {
            let time_ns = start_ns + time_ns;
            file.extend(((time_ns / 1_000_000_000) as u32).to_le_bytes());
            file.extend(((time_ns % 1_000_000_000) as u32).to_le_bytes());
            file.extend(lengths_and_octets);
        }
        if file.len() >= len_min {
            break;
        }
    }
    fs::write(path, file).unwrap();
}
