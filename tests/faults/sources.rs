//! Readers that fail, return short reads, are interrupted, or end, at every octet of a small capture.

use std::io::{self, Read};

use flowgauge::base::Limits;
use flowgauge::source::{Error, FileSource};

use super::Fault;
use super::captures::{self, Delivered, PCAP_HEADER_LEN, PCAP_RECORD_LEN, drain};

const COUNT: u32 = 24;

/// The behavior of a reader at an octet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FaultKind {
    /// It fails at each call.
    AlwaysFails,
    /// It fails once.
    FailsOnce,
    /// It ends.
    Ends,
}

/// The maximum length of each read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReadLength {
    Whole,
    Octets,
    /// Between one octet and a hundred.
    Random,
    /// One octet, with an interruption before each.
    Interrupted,
}

#[derive(Debug)]
struct Faulty {
    octets: Vec<u8>,
    at: usize,
    fault: Option<(usize, FaultKind)>,
    reads: ReadLength,
    random: u64,
    is_interrupted: bool,
}

impl Faulty {
    fn new(octets: &[u8], fault: Option<(usize, FaultKind)>, reads: ReadLength) -> Self {
        Self {
            octets: octets.to_vec(),
            at: 0,
            fault,
            reads,
            random: 0x9e37_79b9_7f4a_7c15,
            is_interrupted: false,
        }
    }
}

impl Read for Faulty {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.is_interrupted = !self.is_interrupted;
        if self.reads == ReadLength::Interrupted && self.is_interrupted {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let mut end = self.octets.len();
        if let Some((position, kind)) = self.fault {
            if self.at == position && kind != FaultKind::Ends {
                if kind == FaultKind::FailsOnce {
                    self.fault = None;
                }
                return Err(io::Error::other("injected"));
            }
            end = position;
        }
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        let len_max = match self.reads {
            ReadLength::Whole => usize::MAX,
            ReadLength::Octets | ReadLength::Interrupted => 1,
            ReadLength::Random => 1 + (self.random % 100) as usize,
        };
        let len = (end - self.at).min(buffer.len()).min(len_max);
        buffer[..len].copy_from_slice(&self.octets[self.at..self.at + len]);
        self.at += len;
        Ok(len)
    }
}

/// Reads a capture through a reader. Returns an error if it cannot be opened.
fn read(octets: &[u8], fault: Option<(usize, FaultKind)>, reads: ReadLength) -> Result<Delivered, Error> {
    let _fault = Fault(format!("{fault:?} of {} octets, {reads:?}", octets.len()));
    let mut limits = Limits::DEFAULT;
    // Several batches, none of which ends with a record.
    limits.batch_len = 150;
    let mut source = FileSource::from_reader_with(Faulty::new(octets, fault, reads), limits)?;
    Ok(drain(&mut source, 1, || {}))
}

/// Returns the capture in each format.
fn formats() -> Vec<(&'static str, Vec<u8>)> {
    #[cfg_attr(not(feature = "compression"), expect(unused_mut, reason = "no format is compressed"))]
    let mut formats = vec![("pcap", captures::pcap(0, COUNT)), ("pcapng", captures::pcapng(0, COUNT))];
    #[cfg(feature = "compression")]
    for (name, compress) in [("gzip", captures::gzip as fn(&[u8]) -> Vec<u8>), ("zstd", captures::zstd)] {
        let plain = captures::pcap(0, COUNT);
        formats.push((name, compress(&plain)));
        // Two concatenated members or frames.
        let (head, tail) = plain.split_at(plain.len() / 2);
        formats.push((name, [compress(head), compress(tail)].concat()));
    }
    formats
}

#[test]
fn short_and_interrupted_reads_lose_nothing() {
    for (name, octets) in formats() {
        for reads in [ReadLength::Whole, ReadLength::Octets, ReadLength::Random, ReadLength::Interrupted] {
            let delivered = read(&octets, None, reads).expect(name);
            assert_eq!(delivered.counts, [COUNT], "{name}, {reads:?}");
            assert!(delivered.errors.is_empty() && delivered.warning_count == 0, "{name}: {delivered:?}");
        }
    }
}

#[test]
fn a_reader_that_fails_at_any_octet_loses_nothing_before_it() {
    for (name, octets) in formats() {
        for position in 0..octets.len() {
            for kind in [FaultKind::AlwaysFails, FaultKind::FailsOnce] {
                for reads in [ReadLength::Whole, ReadLength::Random] {
                    check(name, &octets, (position, kind), reads);
                }
            }
        }
    }
}

#[test]
fn a_capture_that_ends_at_any_octet_loses_nothing_before_it() {
    for (name, octets) in formats() {
        for position in 0..octets.len() {
            for reads in [ReadLength::Whole, ReadLength::Octets] {
                check(name, &octets, (position, FaultKind::Ends), reads);
            }
        }
    }
}

fn check(name: &str, octets: &[u8], (position, kind): (usize, FaultKind), reads: ReadLength) {
    let what = format!("{name}, {kind:?} at {position} of {}, {reads:?}", octets.len());
    let delivered = match read(octets, Some((position, kind)), reads) {
        Ok(delivered) => delivered,
        Err(Error::Empty { .. }) => {
            assert!(position == 0 && kind == FaultKind::Ends, "{what}");
            return;
        }
        Err(error) => {
            if kind != FaultKind::Ends {
                assert!(error.to_string().contains("injected"), "{what}: {error}");
            }
            assert!(name != "pcap" || position < PCAP_HEADER_LEN, "{what}: {error}");
            return;
        }
    };
    let [count] = delivered.counts[..] else { panic!("one file") };
    let whole_count = position.saturating_sub(PCAP_HEADER_LEN) / PCAP_RECORD_LEN;
    let is_between = (position.saturating_sub(PCAP_HEADER_LEN)).is_multiple_of(PCAP_RECORD_LEN);
    if name == "pcap" {
        // Each frame that is complete before the fault, and no other.
        assert_eq!(count as usize, whole_count, "{what}: {delivered:?}");
    }
    let report_count = delivered.errors.len() + delivered.warning_count;
    if kind == FaultKind::Ends {
        assert!(delivered.errors.is_empty(), "{what}: {delivered:?}");
        // A capture that ends between two records is complete.
        if name == "pcap" {
            assert_eq!(delivered.warning_count, usize::from(!is_between), "{what}: {delivered:?}");
        } else if name != "pcapng" {
            assert!(report_count > 0 || count == COUNT / 2 || count == COUNT, "{what}: {delivered:?}");
        }
    } else {
        assert!(report_count > 0, "{what}: {delivered:?}");
        // An error of the reader is not reported as damage of the file.
        let is_reported = delivered.errors.iter().any(|error| error.to_string().contains("injected"));
        assert!(is_reported, "{what}: {delivered:?}");
    }
}
