//! Serialization of records as ndjson and csv with the visitor, and as the same ndjson lines with serde_json for
//! comparison.

#[path = "cases/per_item.rs"]
mod per_item;

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use flowgauge::export::{Lines, RecordWriter, Style};
use flowgauge::{FileSource, FlowRecord, records};
use per_item::PerItem as _;

fn web_records() -> Vec<FlowRecord> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/data/web.pcap");
    records(FileSource::open(path).expect("a capture"))
        .collect::<Result<_, _>>()
        .expect("an undamaged capture")
}

fn export(criterion: &mut Criterion) {
    let records = web_records();
    let mut group = criterion.benchmark_group("export");
    let record_count = records.len() as u64;
    group.throughput(Throughput::Elements(1));
    let style = Style::default();
    for (id, mut lines) in
        [("ndjson", Lines::ndjson(Vec::new(), None, style)), ("csv", Lines::csv(Vec::new(), None, style))]
    {
        RecordWriter::<FlowRecord>::flush(&mut lines).expect("writing to a vector succeeds");
        lines.get_mut().clear();
        let mut write = || {
            lines.get_mut().clear();
            for record in &records {
                lines.write(black_box(record)).expect("writing to a vector succeeds");
            }
            lines.get_mut().len()
        };
        let len = write();
        group.bench_function(id, |bencher| bencher.iter_items(record_count, &mut write));
        let text = String::from_utf8(lines.into_inner().expect("writing to a vector succeeds"));
        let text = text.expect("a text");
        assert_eq!((text.len(), text.lines().count()), (len, records.len()));
    }
    #[cfg(feature = "serde")]
    group.bench_function("ndjson_by_serde_json", |bencher| {
        let mut out = Vec::with_capacity(1 << 20);
        bencher.iter_items(record_count, || {
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
