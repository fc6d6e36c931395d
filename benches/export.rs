//! Serialization of records as ndjson and csv with the visitor, and as the same ndjson lines with serde_json for
//! comparison.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use flowgauge::export::{Format, write_record};
use flowgauge::{FileSource, FlowRecord, records};

fn web_records() -> Vec<FlowRecord> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/data/web.pcap");
    records(FileSource::open(path).expect("a capture"))
        .collect::<Result<_, _>>()
        .expect("an undamaged capture")
}

fn export(criterion: &mut Criterion) {
    let records = web_records();
    let mut out = Vec::with_capacity(1 << 20);
    let mut group = criterion.benchmark_group("export");
    group.throughput(Throughput::Elements(records.len() as u64));
    for (id, format) in [("ndjson", Format::Ndjson), ("csv", Format::Csv)] {
        out.clear();
        records.iter().for_each(|record| write_record(&mut out, format, record));
        assert_eq!(out.iter().filter(|octet| **octet == b'\n').count(), records.len());
        group.bench_function(id, |bencher| {
            bencher.iter(|| {
                out.clear();
                records.iter().for_each(|record| write_record(&mut out, format, black_box(record)));
            });
        });
    }
    #[cfg(feature = "serde")]
    group.bench_function("ndjson_by_serde_json", |bencher| {
        bencher.iter(|| {
            out.clear();
            for record in &records {
                serde_json::to_writer(&mut out, black_box(record)).expect("writing to a vector succeeds");
                out.push(b'\n');
            }
        });
    });
    group.finish();
}

criterion_group!(benches, export);
criterion_main!(benches);
