//! The codec: each kind of value, whole messages, throughput by message length, and payloads.
//!
//! Rows of single values write or read 64 of them per iteration, and report the rate of values. Messages have the mix
//! of integers, texts and octets of a game protocol; each decode reads every field.

mod cases;
#[path = "cases/per_item.rs"]
mod per_item;

use std::hint::black_box;
use std::io;
use std::net::{IpAddr, SocketAddr};

use cases::flow_records::{RECORD_COUNT, flow_records};
use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, Criterion, Throughput, criterion_group, criterion_main};
use flowgauge::Timestamp;
use flowgauge::codec::{Number, Prefix, ReadError, Reader, WriteError, Writer};
use flowgauge::export::FixedRecord;
use flowgauge::ipfix::collector::{Collector, CollectorConfig};
use flowgauge::ipfix::{Exporter, ExporterConfig, Transport};
use per_item::PerItem as _;

/// Number of values that an iteration writes or reads.
const COUNT: usize = 64;

fn numbers<N: Number + PartialEq>(group: &mut BenchmarkGroup<'_, WallTime>, name: &str, value: N) {
    let mut buffer = [0; COUNT * 8];
    let mut writer = Writer::new(&mut buffer);
    for _ in 0..COUNT {
        writer.be(value).expect("a buffer for all values");
    }
    let mut reader = Reader::new(&buffer);
    assert!((0..COUNT).all(|_| reader.be::<N>().is_ok_and(|found| found == value)));

    let mut out = [0; COUNT * 8];
    group.bench_function(format!("write/{name}"), |bencher| {
        bencher.iter_items(COUNT as u64, || {
            let mut writer = Writer::new(black_box(&mut out));
            for _ in 0..COUNT {
                writer.be(black_box(value)).expect("a buffer for all values");
            }
        });
    });
    group.bench_function(format!("read/{name}"), |bencher| {
        bencher.iter_items(COUNT as u64, || {
            let mut reader = Reader::new(black_box(&buffer));
            for _ in 0..COUNT {
                black_box(reader.be::<N>().expect("all values"));
            }
        });
    });
}

fn values(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("codec/values");
    group.throughput(Throughput::Elements(1));
    numbers(&mut group, "u8", 0x12_u8);
    numbers(&mut group, "u16", 0x1234_u16);
    numbers(&mut group, "u32", 0x1234_5678_u32);
    numbers(&mut group, "u64", 0x1234_5678_9abc_def0_u64);
    numbers(&mut group, "i64", -1_i64);
    numbers(&mut group, "f32", 0.5_f32);
    numbers(&mut group, "f64", 0.5_f64);

    let text = "a text of 24 octets, yes";
    let mut out = [0; COUNT * 32];
    let mut buffer = [0; COUNT * 32];
    let mut writer = Writer::new(&mut buffer);
    for _ in 0..COUNT {
        writer.prefixed(Prefix::U16, text).expect("a buffer for all texts");
    }
    let mut reader = Reader::new(&buffer);
    assert!((0..COUNT).all(|_| reader.prefixed_str(Prefix::U16) == Ok(text)));
    group.bench_function("write/text_of_24_octets", |bencher| {
        bencher.iter_items(COUNT as u64, || {
            let mut writer = Writer::new(black_box(&mut out));
            for _ in 0..COUNT {
                writer.prefixed(Prefix::U16, black_box(text)).expect("a buffer for all texts");
            }
        });
    });
    group.bench_function("read/text_of_24_octets", |bencher| {
        bencher.iter_items(COUNT as u64, || {
            let mut reader = Reader::new(black_box(&buffer));
            for _ in 0..COUNT {
                black_box(reader.prefixed_str(Prefix::U16).expect("all texts"));
            }
        });
    });
    group.finish();
}

/// 24 octets: an identifier, a kind, flags, and a position.
#[derive(Debug, PartialEq)]
struct Small {
    id: u64,
    kind: u16,
    is_urgent: bool,
    level: u8,
    position: [f32; 3],
}

/// 120 octets: numbers, two texts, and octets.
#[derive(Debug, PartialEq)]
struct Medium<'m> {
    small: Small,
    timestamp: u64,
    balance: i64,
    score: f64,
    name: &'m str,
    place: &'m str,
    digest: &'m [u8],
}

/// 856 octets: a medium message, a text, a list of numbers, and a payload.
#[derive(Debug, PartialEq)]
struct Large<'m> {
    medium: Medium<'m>,
    description: &'m str,
    samples: [u32; 32],
    payload: &'m [u8],
}

const SMALL: Small = Small { id: 7, kind: 3, is_urgent: true, level: 9, position: [1.0, 2.0, 3.0] };

const MEDIUM: Medium<'_> = Medium {
    small: SMALL,
    timestamp: 1_700_000_000,
    balance: -5,
    score: 0.25,
    name: "somebody with a name",
    place: "a place",
    digest: &[0xab; 39],
};

const LARGE: Large<'_> = Large {
    medium: MEDIUM,
    description: "a description of some length, as a person would write it into a field of a form, or not",
    samples: [0x0102_0304; 32],
    payload: &[0xcd; 517],
};

type FixedWriter<'b> = Writer<flowgauge::codec::Fixed<'b>>;

impl Small {
    #[inline]
    fn write(&self, writer: &mut FixedWriter<'_>) -> Result<(), WriteError> {
        writer.be(self.id)?;
        writer.be(self.kind)?;
        writer.bool(self.is_urgent)?;
        writer.be(self.level)?;
        self.position.iter().try_for_each(|number| writer.be(*number))
    }

    #[inline]
    fn read(reader: &mut Reader<'_>) -> Result<Self, ReadError> {
        Ok(Self {
            id: reader.be()?,
            kind: reader.be()?,
            is_urgent: reader.bool()?,
            level: reader.be()?,
            position: [reader.be()?, reader.be()?, reader.be()?],
        })
    }
}

impl<'m> Medium<'m> {
    #[inline]
    fn write(&self, writer: &mut FixedWriter<'_>) -> Result<(), WriteError> {
        self.small.write(writer)?;
        writer.be(self.timestamp)?;
        writer.be(self.balance)?;
        writer.be(self.score)?;
        writer.prefixed(Prefix::U16, self.name)?;
        writer.prefixed(Prefix::U16, self.place)?;
        writer.prefixed(Prefix::U16, self.digest)
    }

    #[inline]
    fn read(reader: &mut Reader<'m>) -> Result<Self, ReadError> {
        Ok(Self {
            small: Small::read(reader)?,
            timestamp: reader.be()?,
            balance: reader.be()?,
            score: reader.be()?,
            name: reader.prefixed_str(Prefix::U16)?,
            place: reader.prefixed_str(Prefix::U16)?,
            digest: reader.prefixed(Prefix::U16)?,
        })
    }
}

impl<'m> Large<'m> {
    #[inline]
    fn write(&self, writer: &mut FixedWriter<'_>) -> Result<(), WriteError> {
        self.medium.write(writer)?;
        writer.prefixed(Prefix::U16, self.description)?;
        self.samples.iter().try_for_each(|number| writer.be(*number))?;
        writer.prefixed(Prefix::U16, self.payload)
    }

    #[inline]
    fn read(reader: &mut Reader<'m>) -> Result<Self, ReadError> {
        let medium = Medium::read(reader)?;
        let description = reader.prefixed_str(Prefix::U16)?;
        let mut samples = [0; 32];
        for sample in &mut samples {
            *sample = reader.be()?;
        }
        Ok(Self { medium, description, samples, payload: reader.prefixed(Prefix::U16)? })
    }
}

macro_rules! cycle {
    ($group:expr, $name:literal, $message:ident, $type:ident, $len:literal) => {
        let mut out = [0; $len];
        let mut writer = Writer::new(&mut out);
        $message.write(&mut writer).expect("a buffer for the message");
        assert_eq!(writer.len(), $len);
        assert_eq!($type::read(&mut Reader::new(&out)), Ok($message));
        $group.bench_function($name, |bencher| {
            bencher.iter(|| {
                let mut writer = Writer::new(&mut out);
                black_box(&$message).write(&mut writer).expect("a buffer for the message");
                let message = $type::read(&mut Reader::new(black_box(&out))).expect("the message");
                black_box(&message);
            });
        });
    };
}

fn messages(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("codec/cycle");
    cycle!(group, "small", SMALL, Small, 24);
    cycle!(group, "medium", MEDIUM, Medium, 120);
    cycle!(group, "large", LARGE, Large, 856);
    group.finish();

    let mut group = criterion.benchmark_group("codec/payload");
    for (name, len) in [("1_kib", 1024_usize), ("10_kib", 10_240)] {
        let payload = vec![0x5a; len];
        let mut out = vec![0; len + 4];
        Writer::new(&mut out).prefixed(Prefix::U32, &payload).expect("a buffer for the payload");
        assert_eq!(Reader::new(&out).prefixed(Prefix::U32), Ok(&payload[..]));
        group.throughput(Throughput::Bytes(len as u64));
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                let mut writer = Writer::new(&mut out);
                writer.prefixed(Prefix::U32, black_box(&payload)).expect("a buffer for the payload");
                black_box(Reader::new(black_box(&out)).prefixed(Prefix::U32).expect("the payload").len());
            });
        });
    }
    group.finish();
}

/// Writes a message of numbers that fills the buffer.
fn fill(out: &mut [u8]) -> Result<(), WriteError> {
    let count = out.len() / 16;
    let mut writer = Writer::new(out);
    for number in 0..count as u32 {
        writer.be(u64::from(number))?;
        writer.be(number)?;
        writer.be(0x0102_u16)?;
        writer.be(0x0304_u16)?;
    }
    Ok(())
}

fn throughput(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("codec/throughput");
    for len in [64_usize, 512, 4096, 65_536] {
        let mut out = vec![0; len];
        fill(&mut out).expect("a buffer of the length");
        assert_eq!(Reader::new(&out[len - 8..]).be(), Ok(len as u32 / 16 - 1));
        group.throughput(Throughput::Bytes(len as u64));
        group.bench_function(format!("encode/{len}"), |bencher| {
            bencher.iter(|| fill(black_box(&mut out)));
        });
        group.bench_function(format!("encode_on_two_threads/{len}"), |bencher| {
            bencher.iter_custom(|count| {
                let half = count.div_ceil(2);
                let start = std::time::Instant::now();
                std::thread::scope(|scope| {
                    for _ in 0..2 {
                        scope.spawn(move || {
                            let mut out = vec![0; len];
                            for _ in 0..half {
                                fill(black_box(&mut out)).expect("a buffer of the length");
                            }
                        });
                    }
                });
                start.elapsed()
            });
        });
    }
    group.finish();
}

/// Transport that discards the messages.
struct Discard(u64);

impl Transport for Discard {
    fn is_datagram(&self) -> bool {
        true
    }

    fn send(&mut self, message: &[u8]) -> io::Result<()> {
        self.0 += black_box(message).len() as u64;
        Ok(())
    }
}

/// Transport that keeps the messages.
struct Messages<'m>(&'m mut Vec<Vec<u8>>);

impl Transport for Messages<'_> {
    fn is_datagram(&self) -> bool {
        true
    }

    fn send(&mut self, message: &[u8]) -> io::Result<()> {
        self.0.push(message.to_vec());
        Ok(())
    }
}

/// Export and collection of flow records with IPFIX: biflows with all elements of the IANA registry.
fn ipfix(criterion: &mut Criterion) {
    let records = flow_records();
    let mut messages = Vec::new();
    let mut exporter =
        Exporter::new(ExporterConfig::default(), Messages(&mut messages)).expect("a configuration");
    for record in &records {
        exporter.export(record, record.end).expect("a transport without errors");
    }
    exporter.flush().expect("a transport without errors");
    let address = SocketAddr::from(([192, 0, 2, 2], 4739));
    let mut collector = Collector::new(CollectorConfig::default()).expect("a configuration");
    let mut collected = Vec::new();
    for message in &messages {
        collector.message(address, message, Timestamp::ZERO, |one| collected.extend(one.record().cloned()));
    }
    assert_eq!(collected.len(), records.len());
    for (record, collected) in records.iter().zip(&collected) {
        assert_eq!((record.key, record.initiator), (collected.key, collected.initiator));
        assert_eq!((record.start, record.end), (collected.start, collected.end));
        assert_eq!((&record.forward, &record.reverse), (&collected.forward, &collected.reverse));
    }

    let mut group = criterion.benchmark_group("codec/ipfix");
    group.throughput(Throughput::Elements(1));
    group.bench_function("encode", |bencher| {
        let mut exporter = Exporter::new(ExporterConfig::default(), Discard(0)).expect("a configuration");
        bencher.iter_items(RECORD_COUNT.into(), || {
            for record in &records {
                exporter.export(black_box(record), record.end).expect("a transport without errors");
            }
        });
    });
    group.bench_function("decode", |bencher| {
        bencher.iter_items(RECORD_COUNT.into(), || {
            for message in &messages {
                collector.message(address, black_box(message), Timestamp::ZERO, |one| {
                    black_box(one.record());
                });
            }
        });
    });
    group.finish();
}

/// Returns a number that depends on every field of a record.
fn every_field(record: FixedRecord<'_>) -> u64 {
    let address = |address: IpAddr| match address {
        IpAddr::V4(v4) => u64::from(v4.to_bits()),
        IpAddr::V6(v6) => v6.to_bits() as u64 ^ (v6.to_bits() >> 64) as u64,
    };
    let (source, destination) = record.addresses();
    let (source_port, destination_port) = record.ports().unwrap_or_default();
    let (kind, code) = record.icmp().unwrap_or_default();
    let outcome = u64::from(record.conn_state() as u8) ^ u64::from(record.flow_end_reason() as u8);
    [
        address(source),
        address(destination),
        u64::from(record.protocol().0) ^ u64::from(source_port) ^ u64::from(destination_port),
        u64::from(kind) ^ u64::from(code) ^ outcome ^ u64::from(record.is_saturated()),
        record.start().as_nanos() ^ record.duration().as_nanos() as u64,
        record.packet_count() ^ record.octet_count(),
        record.reverse_packet_count() ^ record.reverse_octet_count(),
    ]
    .into_iter()
    .fold(0, |all, field| all ^ field)
}

/// Fixed records: encoding of flow records, and reading of every field.
fn fixed(criterion: &mut Criterion) {
    let records = flow_records();
    let encoded: Vec<u8> = records.iter().flat_map(FixedRecord::encode).collect();
    for (record, fixed) in records.iter().zip(FixedRecord::all(&encoded)) {
        let fixed = fixed.expect("a valid record");
        let decoded = fixed.to_record();
        assert_eq!(
            (decoded.key, decoded.initiator, decoded.start),
            (record.key, record.initiator, record.start)
        );
        assert_eq!((fixed.packet_count(), fixed.octet_count()), (10, 7000));
        assert_eq!((fixed.reverse_packet_count(), fixed.reverse_octet_count()), (14, 9800));
    }

    let mut group = criterion.benchmark_group("codec/fixed_record");
    group.throughput(Throughput::Elements(1));
    let mut out = encoded.clone();
    group.bench_function("encode", |bencher| {
        bencher.iter_items(RECORD_COUNT.into(), || {
            let (targets, _) = out.as_chunks_mut::<{ FixedRecord::LEN }>();
            for (target, record) in targets.iter_mut().zip(black_box(&records)) {
                *target = FixedRecord::encode(record);
            }
        });
    });
    group.bench_function("decode", |bencher| {
        bencher.iter_items(RECORD_COUNT.into(), || {
            let mut sum = 0_u64;
            for record in FixedRecord::all(black_box(&encoded)) {
                let record = record.expect("a valid record");
                sum = sum.wrapping_add(every_field(record));
            }
            black_box(sum);
        });
    });
    // The fields that a list of top talkers needs.
    group.bench_function("sum", |bencher| {
        bencher.iter_items(RECORD_COUNT.into(), || {
            let records = FixedRecord::all(black_box(&encoded)).flatten();
            let sum: u64 = records.map(|record| record.octet_count() + record.reverse_octet_count()).sum();
            black_box(sum);
        });
    });
    group.finish();
}

criterion_group!(benches, values, messages, throughput, fixed, ipfix);
criterion_main!(benches);
