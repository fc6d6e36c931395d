//! Flow records in columns: batches, Parquet and Arrow IPC.

#[path = "../../../benches/cases/per_item.rs"]
mod per_item;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use flowgauge::export::RecordWriter;
use flowgauge::{FileSource, FlowRecord, records};
use flowgauge_arrow::{BatchBuilder, IpcWriter, Options, ParquetWriter};
use per_item::PerItem as _;

/// Number of records of each benchmark.
const COUNT: usize = 10_000;

/// Returns records of real flows, repeated, each at a later time.
fn input() -> Vec<FlowRecord> {
    let files = ["web", "dns", "mail", "ssh"].map(|name| format!("../../examples/data/{name}.pcap"));
    let found = files.iter().filter_map(|path| FileSource::open(path).ok()).flat_map(records);
    let real: Vec<FlowRecord> = found.map(|record| record.expect("a complete capture")).collect();
    assert!(real.len() > 27, "{} records", real.len());
    let later = |(number, record): (usize, &FlowRecord)| {
        let shift = std::time::Duration::from_micros(number as u64 * 937);
        let mut record = record.clone();
        record.start = record.start.saturating_add(shift);
        record.end = record.end.saturating_add(shift);
        record
    };
    real.iter().cycle().take(COUNT).enumerate().map(later).collect()
}

/// Writes the records, and returns the number of octets.
fn parquet(records: &[FlowRecord]) -> usize {
    let mut writer = ParquetWriter::new::<FlowRecord>(Vec::new(), Options::default()).expect("columns");
    records.iter().for_each(|record| writer.write(record).expect("memory"));
    writer.into_inner().expect("memory").len()
}

fn ipc(records: &[FlowRecord]) -> usize {
    let mut writer = IpcWriter::stream::<FlowRecord>(Vec::new(), &Options::default()).expect("columns");
    records.iter().for_each(|record| writer.write(record).expect("memory"));
    writer.into_inner().expect("memory").len()
}

fn batch(criterion: &mut Criterion) {
    let records = input();
    let mut group = criterion.benchmark_group("batch");
    group.throughput(Throughput::Elements(1));
    let mut builder = BatchBuilder::new::<FlowRecord>(&Options::default());
    group.bench_function("flow_records", |bencher| {
        bencher.iter_items(COUNT as u64, || {
            records.iter().for_each(|record| builder.push(record));
            let batch = builder.finish().expect("rows of the table");
            assert_eq!(batch.num_rows(), COUNT);
            batch
        });
    });
    assert!(parquet(&records) > COUNT && ipc(&records) > COUNT * 100);
    group.bench_function("parquet", |bencher| bencher.iter_items(COUNT as u64, || parquet(&records)));
    group.bench_function("ipc", |bencher| bencher.iter_items(COUNT as u64, || ipc(&records)));
    group.finish();
}

criterion_group!(benches, batch);
criterion_main!(benches);
