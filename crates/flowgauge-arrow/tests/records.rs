//! Flow records of Parquet files are those that were written.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use flowgauge::export::{RecordWriter, Selection};
use flowgauge::row::RowType;
use flowgauge::{FieldSet, FileSource, FlowRecord, Frame, FrameBatch, Next, Pipeline, Records, Source as _};
use flowgauge_arrow::{Addresses, Options, ParquetRecords, ParquetWriter};

fn captures() -> impl Iterator<Item = PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/data");
    let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    paths.filter(|path| path.extension().is_some_and(|name| name == "pcap" || name == "pcapng"))
}

/// Returns the records of a capture, whose frames may be in VXLAN.
fn records(path: &Path, has_tunnel: bool) -> Vec<FlowRecord> {
    let mut records = Vec::new();
    let sink = Records::new(|record| records.push(record));
    let mut pipeline = Pipeline::builder().encapsulation(true).build(sink).unwrap();
    let mut source = FileSource::open(path).unwrap();
    let mut batch = FrameBatch::new();
    while source.next_batch(&mut batch).unwrap() == Next::Frames {
        for frame in batch.iter() {
            let data = if has_tunnel { in_vxlan(frame.data) } else { frame.data.to_vec() };
            let wire_len = frame.wire_len + (data.len() - frame.data.len()) as u32;
            pipeline.frame(&Frame { data: &data, wire_len, ..frame });
        }
    }
    pipeline.finish();
    drop(pipeline);
    records
}

/// Returns a frame of Ethernet in a datagram to the port of VXLAN.
fn in_vxlan(frame: &[u8]) -> Vec<u8> {
    let len = frame.len() as u16;
    let mut data = vec![2, 0, 0, 0, 1, 1, 2, 0, 0, 0, 1, 2, 8, 0, 0x45, 0];
    data.extend((20 + 8 + 8 + len).to_be_bytes());
    data.extend([0, 0, 0, 0, 64, 17, 0, 0, 203, 0, 113, 1, 203, 0, 113, 2]);
    for field in [50_000, 4789, 8 + 8 + len, 0] {
        data.extend(field.to_be_bytes());
    }
    data.extend([8, 0, 0, 0, 0, 0, 7, 0]);
    data.extend_from_slice(frame);
    data
}

/// Writes rows to a file, and returns the records that are read.
fn read<R: RowType>(name: &str, rows: &[R], options: Options) -> Vec<io::Result<FlowRecord>> {
    let path = std::env::temp_dir().join(format!("flowgauge-records-{name}-{}", std::process::id()));
    let mut writer = Box::new(ParquetWriter::new::<R>(File::create(&path).unwrap(), options).unwrap());
    rows.iter().for_each(|row| writer.write(row).unwrap());
    let writer: Box<dyn RecordWriter<R>> = writer;
    writer.finish().unwrap();
    let records = ParquetRecords::new(File::open(&path).unwrap()).unwrap().collect();
    fs::remove_file(&path).unwrap();
    records
}

#[test]
fn records_survive_a_parquet_file() {
    for (addresses, has_tunnel) in [
        (Addresses::Octets, false),
        (Addresses::Text, false),
        (Addresses::Octets, true),
        (Addresses::Text, true),
    ] {
        for capture in captures().filter(|path| !has_tunnel || path.ends_with("web.pcap")) {
            let mut written = records(&capture, has_tunnel);
            let found = read("all", &written, Options::default().addresses(addresses));
            let mut found: Vec<_> = found.into_iter().map(Result::unwrap).collect();
            // Absent values are not distinguished from unknown ones.
            found.iter_mut().for_each(|record| record.known = FieldSet::ALL);
            // The rows are sorted by the start.
            written.sort_by_key(|record| format!("{record:?}"));
            found.sort_by_key(|record| format!("{record:?}"));
            assert_eq!(written, found, "{}", capture.display());
            assert!(!has_tunnel || found.iter().any(|record| record.encapsulation.is_some()));
        }
    }
}

#[test]
fn long_files_and_few_columns_are_read() {
    let records = records(&captures().find(|path| path.ends_with("web.pcap")).unwrap(), false);
    let rows: Vec<_> = records.iter().cycle().take(5000).cloned().collect();
    let names = "packet_count,destination_address,source_address";
    let options = Options::default().selection(Some(Selection::of::<FlowRecord>(names.split(',')).unwrap()));
    let found = read("long", &rows, options);
    assert_eq!(found.len(), 5000);
    let sum = |records: &[FlowRecord]| -> u64 {
        records.iter().map(|record| record.forward.counters.packet_count).sum()
    };
    let found: Vec<_> = found.into_iter().map(Result::unwrap).collect();
    assert_eq!(sum(&found), sum(&rows));
    let known = FieldSet::of_names(names.split(',')).unwrap();
    assert!(found.iter().all(|record| record.known == known));
}

struct Other;

flowgauge::table! {
    /// A row that is no flow record.
    impl "other" for Other as _other {
        /// A text.
        "source_address": &'static str = "nowhere";
        /// A number.
        "packet_count": u64 = 3;
    }
}

#[test]
fn rows_that_are_no_records_are_errors() {
    let found = read("other", &[Other, Other], Options::default());
    assert_eq!(found.len(), 2);
    for error in found.into_iter().map(Result::unwrap_err) {
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        assert!(error.to_string().contains("IP address"), "{error}");
    }
    let path = std::env::temp_dir().join(format!("flowgauge-records-text-{}", std::process::id()));
    fs::write(&path, "PAR1 is not enough").unwrap();
    let error = ParquetRecords::new(File::open(&path).unwrap()).unwrap_err();
    fs::remove_file(&path).unwrap();
    assert!(error.to_string().contains("Parquet"), "{error}");
}
