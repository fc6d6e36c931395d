//! Messages of exporters: data records, and messages that cause more work than their octets.

use std::hint::black_box;
use std::net::{Ipv4Addr, SocketAddr};

use flowgauge::Timestamp;
use flowgauge::ipfix::collector::{Collector, CollectorConfig};

use super::feed::INPUT_LEN;

/// Length of a message at most, as over UDP.
const MESSAGE_LEN: usize = 1400;

/// Messages with the addresses of their exporters.
type Messages = Vec<(SocketAddr, Vec<u8>)>;

/// A collector, and messages.
pub(crate) struct Collecting {
    collector: Collector,
    messages: Messages,
}

pub(crate) fn collecting(make: fn() -> Messages) -> Collecting {
    let collector = Collector::new(CollectorConfig::default()).expect("a valid configuration");
    Collecting { collector, messages: make() }
}

impl Collecting {
    pub(crate) fn collect(mut self) -> Self {
        for (exporter, message) in &self.messages {
            self.collector.message(*exporter, black_box(message), Timestamp::ZERO, |one| {
                black_box(one.record());
            });
        }
        self
    }

    pub(crate) fn collected(self) {
        assert_eq!(self.collector.stats().message_count, self.messages.len() as u64);
    }
}

fn words(numbers: &[u16]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_be_bytes()).collect()
}

fn set(id: u16, body: &[u8]) -> Vec<u8> {
    [&words(&[id, 4 + body.len() as u16]), body].concat()
}

fn message(number: u32, sets: &[u8]) -> Vec<u8> {
    let mut message = words(&[10, 16 + sets.len() as u16, 0x6553, 0xf100]);
    message.extend(number.to_be_bytes().into_iter().chain([0, 0, 0, 1]));
    message.extend(sets);
    message
}

/// Returns as many messages as fit the input. The first of them has the given sets.
fn filled(first: &[u8], mut make: impl FnMut(u32) -> (bool, Vec<u8>)) -> Messages {
    let exporter = |number: u32| SocketAddr::from((Ipv4Addr::from(0x0a00_0000 + number), 4739));
    let mut messages = vec![(exporter(0), message(0, first))];
    let mut len = messages[0].1.len();
    for number in 0.. {
        let (is_new_exporter, sets) = make(number);
        let message = message(number, &sets);
        len += message.len();
        if len > INPUT_LEN {
            break;
        }
        messages.push((exporter(u32::from(is_new_exporter) * number), message));
    }
    messages
}

/// Fills a message with repetitions.
fn repeated(id: u16, record: &[u8]) -> Vec<u8> {
    set(id, &record.repeat((MESSAGE_LEN - 20) / record.len()))
}

/// Addresses, ports, protocol, times, counts: 13 fields in 52 octets.
pub(crate) fn benign() -> Messages {
    let template = words(&[
        256, 13, 8, 4, 12, 4, 7, 2, 11, 2, 4, 1, 6, 1, 152, 8, 153, 8, 2, 8, 1, 8, 10, 2, 5, 1, 136, 1,
    ]);
    let mut record = vec![192, 0, 2, 1, 192, 0, 2, 2, 0x9c, 0x40, 1, 0xbb, 6, 0x1b];
    record.extend(1_700_000_000_000_u64.to_be_bytes());
    record.extend(1_700_000_001_000_u64.to_be_bytes());
    record.extend(10_u64.to_be_bytes());
    record.extend(5000_u64.to_be_bytes());
    record.extend([0, 3, 0, 3]);
    filled(&set(2, &template), |_| (false, repeated(256, &record)))
}

/// Records of two addresses only, the shortest ones.
pub(crate) fn short_records() -> Messages {
    let template = words(&[256, 2, 8, 4, 12, 4]);
    filled(&set(2, &template), |_| (false, repeated(256, &[192, 0, 2, 1, 192, 0, 2, 2])))
}

/// Records of one octet, which describe no flow.
pub(crate) fn one_octet_records() -> Messages {
    filled(&set(2, &words(&[256, 1, 4, 1])), |_| (false, repeated(256, &[6])))
}

/// Messages without sets.
pub(crate) fn empty_messages() -> Messages {
    filled(&[], |_| (false, Vec::new()))
}

/// Each message from another exporter, with a short template.
pub(crate) fn new_exporters() -> Messages {
    filled(&[], |_| (true, set(2, &words(&[256, 1, 8, 4]))))
}

/// Short templates with distinct identifiers.
pub(crate) fn new_templates() -> Messages {
    filled(&[], |number| {
        let first = 256 + (number as u16 % 100) * 150;
        let templates: Vec<u8> = (first..first + 150).flat_map(|id| words(&[id, 1, 8, 4])).collect();
        (false, set(2, &templates))
    })
}

/// A template of many fields, compiled for one record in each message.
pub(crate) fn long_templates() -> Messages {
    filled(&[], |number| {
        let mut template = words(&[256, 300, 8, 4, 12, 4]);
        // Each template differs from the one before.
        template
            .extend((0..298_u16).flat_map(|field| words(&[85 + field % 2, 1 + (number as u16 + field) % 2])));
        let record = [0; 1000];
        (false, [set(2, &template), set(256, &record)].concat())
    })
}

/// Type records that exchange the identifiers of two elements, so that a template is compiled again for each record.
pub(crate) fn type_records() -> Messages {
    let template = words(&[256, 2, 8, 4, 12, 4]);
    let options = words(&[257, 3, 1, 346, 4, 303, 2, 341, 65_535]);
    filled(&[set(2, &template), set(3, &options)].concat(), |number| {
        let mut sets = Vec::new();
        for id in 0..20_u16 {
            let mut record = words(&[0, 9999, id + (number % 2) as u16]);
            record.extend([5].into_iter().chain(*b"scope"));
            sets.extend(set(257, &record));
            sets.extend(set(256, &[192, 0, 2, 1, 192, 0, 2, 2]));
        }
        (false, sets)
    })
}

/// Long templates that were used once, and type records that change the meaning of an element before each record.
pub(crate) fn long_templates_again() -> Messages {
    let options = words(&[257, 3, 1, 346, 4, 303, 2, 341, 65_535]);
    let mut long = words(&[256, 340, 8, 4, 12, 4]);
    long.extend((0..338_u16).flat_map(|field| words(&[210 + field % 2, 0])));
    filled(&[set(2, &long), set(3, &options)].concat(), |number| {
        let mut sets = Vec::new();
        for id in 0..20_u16 {
            let mut record = words(&[0, 9999, id + (number % 2) as u16]);
            record.extend([5].into_iter().chain(*b"scope"));
            sets.extend(set(257, &record));
            sets.extend(set(256, &[192, 0, 2, 1, 192, 0, 2, 2]));
        }
        (false, sets)
    })
}

/// Withdrawals of all options templates, while many data templates are known, and a new options template now and then.
pub(crate) fn withdrawals() -> Messages {
    let templates: Vec<u8> = (256..600).flat_map(|id| words(&[id, 1, 8, 4])).collect();
    filled(&set(2, &templates), |_| {
        let options = set(3, &words(&[700, 1, 1, 346, 4]));
        (false, [options, set(3, &words(&[3, 0]).repeat(300))].concat())
    })
}

/// Sections of one octet, each from another interface.
pub(crate) fn sampled_packets() -> Messages {
    let mut interface = 0_u16;
    filled(&set(2, &words(&[256, 2, 10, 2, 313, 1])), |_| {
        let records = (0..460).flat_map(|_| {
            interface = interface.wrapping_add(1);
            let [high, low] = interface.to_be_bytes();
            [high, low, 0x45]
        });
        (false, set(256, &records.collect::<Vec<u8>>()))
    })
}
