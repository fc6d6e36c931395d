//! Values of each type in batches, files and streams.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use arrow_array::cast::AsArray as _;
use arrow_array::types::{Int32Type, Int64Type, TimestampNanosecondType, UInt16Type, UInt64Type};
use arrow_array::{Array as _, ArrayRef, RecordBatch};
use arrow_schema::DataType;
use flowgauge::base::Timestamp;
use flowgauge::export::{RecordWriter, Selection};
use flowgauge::row::{Column, Group, List, Name, Row, RowType, Visitor};
use flowgauge_arrow::{Addresses, BatchBuilder, IpcWriter, Options, ParquetWriter};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

/// A row with a column of each type.
#[derive(Clone, Debug)]
struct Sample {
    number: u64,
    is_known: bool,
}

/// A row inside of a row.
#[derive(Clone, Debug)]
struct Inner(u64);

flowgauge::table! {
    /// A row inside of a row.
    impl "inner" for Inner as inner {
        /// A number.
        "number": Option<u64> = Some(inner.0).filter(|number| number % 3 != 0);
        /// What is never written without a request.
        "secret": u64 [sensitive] = inner.0;
        /// Numbers.
        "numbers": List<Vec<u16>> = List((0..inner.0 as u16 % 4).collect());
    }
}

impl Sample {
    fn known<T>(&self, value: T) -> Option<T> {
        self.is_known.then_some(value)
    }
}

flowgauge::table! {
    /// A row with a column of each type.
    impl "sample" for Sample as sample {
        /// A flag.
        "flag": bool = sample.number % 2 == 1;
        /// A small number.
        "small": Option<u16> [octets] = sample.known(sample.number as u16);
        /// A number with a sign.
        "signed": i64 = -(sample.number as i64);
        /// A fraction.
        "fraction": Option<f64> = sample.known(sample.number as f64 / 4.0);
        /// A point in time.
        "time": Timestamp = Timestamp::from_nanos(1_000_000 - sample.number);
        /// A point in time that Arrow cannot express.
        "far": Timestamp = Timestamp::from_nanos(u64::MAX);
        /// A length of time.
        "delay": Option<Duration> = sample.known(Duration::from_nanos(sample.number));
        /// An address.
        "address": IpAddr = if sample.number & 1 == 0 { Ipv4Addr::new(10, 0, 0, 1).into() } else { Ipv6Addr::LOCALHOST.into() };
        /// A MAC address.
        "mac": Option<[u8; 6]> = sample.known([2, 0, 0, 0, 0, sample.number as u8]);
        /// A name.
        "name": Option<Name> = sample.known(Name(["even", "odd"][sample.number as usize % 2]));
        /// A text.
        "text": String = format!("row {}", sample.number);
        /// A secret.
        "secret": u64 [sensitive] = sample.number;
        /// Rows.
        "rows": List<Vec<Group<Inner>>> = List((0..sample.number % 3).map(|number| Group(Inner(number))).collect());
        /// A row.
        "row": Option<Group<Inner>> = sample.known(Group(Inner(sample.number)));
    }
}

/// Returns rows of which every third lacks its nullable values.
fn samples(count: u64) -> Vec<Sample> {
    (0..count).map(|number| Sample { number, is_known: number % 3 != 0 }).collect()
}

fn batch(options: &Options, samples: &[Sample]) -> RecordBatch {
    let mut builder = BatchBuilder::new::<Sample>(options);
    samples.iter().for_each(|sample| builder.push(sample));
    builder.finish().expect("rows of the table")
}

fn column<'b>(batch: &'b RecordBatch, name: &str) -> &'b ArrayRef {
    batch.column_by_name(name).unwrap_or_else(|| panic!("no column {name}"))
}

#[test]
fn each_type_has_its_values_and_absent_ones() {
    let samples = samples(100);
    let batch = batch(&Options::default().table("sample"), &samples);
    assert_eq!(batch.num_rows(), 100);
    assert_eq!(batch.schema().metadata()["flowgauge.table"], "sample");
    assert_eq!(batch.schema().field_with_name("small").unwrap().metadata()["unit"], "octets");
    assert!(batch.column_by_name("secret").is_none());
    for (index, sample) in samples.iter().enumerate() {
        let is_null = |name| column(&batch, name).is_null(index);
        for name in ["small", "fraction", "delay", "mac", "name", "row"] {
            assert_eq!(is_null(name), !sample.is_known, "{name} of {sample:?}");
        }
        let number = sample.number;
        assert_eq!(column(&batch, "flag").as_boolean().value(index), number % 2 == 1);
        assert_eq!(column(&batch, "signed").as_primitive::<Int64Type>().value(index), -(number as i64));
        let time = column(&batch, "time").as_primitive::<TimestampNanosecondType>();
        assert_eq!(time.value(index), 1_000_000 - number as i64);
        assert_eq!(column(&batch, "far").as_primitive::<TimestampNanosecondType>().value(index), i64::MAX);
        let address = column(&batch, "address").as_fixed_size_binary().value(index);
        let expected = [Ipv4Addr::new(10, 0, 0, 1).to_ipv6_mapped(), Ipv6Addr::LOCALHOST];
        assert_eq!(address, expected[number as usize % 2].octets());
        assert_eq!(column(&batch, "text").as_string::<i32>().value(index), format!("row {number}"));
        let rows = column(&batch, "rows").as_list::<i32>().value(index);
        assert_eq!(rows.len() as u64, number % 3);
        assert_eq!(rows.as_struct().num_columns(), 2, "without the secret");
        if sample.is_known {
            assert_eq!(column(&batch, "small").as_primitive::<UInt16Type>().value(index), number as u16);
            let name = column(&batch, "name").as_dictionary::<Int32Type>();
            let key = name.keys().value(index) as usize;
            assert_eq!(name.values().as_string::<i32>().value(key), ["even", "odd"][number as usize % 2]);
            let row = column(&batch, "row").as_struct();
            let inner = row.column_by_name("number").unwrap().as_primitive::<UInt64Type>();
            assert_eq!((inner.value(index), inner.is_null(index)), (number, number % 3 == 0));
            let numbers = row.column_by_name("numbers").unwrap().as_list::<i32>().value(index);
            assert_eq!(numbers.len() as u64, number % 4);
        }
    }
}

#[test]
fn options_choose_columns_types_and_sizes() {
    let selection = Selection::of::<Sample>(["text", "mac", "address", "secret"]).expect("columns");
    let options =
        Options::default().selection(Some(selection)).addresses(Addresses::Text).has_sensitive(true);
    let batch = batch(&options, &samples(3));
    let schema = batch.schema();
    let names: Vec<_> = schema.fields().iter().map(|field| field.name().as_str()).collect();
    assert_eq!(names, ["text", "mac", "address", "secret"]);
    assert_eq!(column(&batch, "address").as_string::<i32>().value(0), "10.0.0.1");
    assert_eq!(column(&batch, "mac").as_string::<i32>().value(1), "02:00:00:00:00:01");
    let none = Selection::of::<Sample>([]).expect("no columns");
    let mut rows = BatchBuilder::new::<Sample>(&Options::default().selection(Some(none.clone())));
    rows.push(&samples(1)[0]);
    assert_eq!(rows.finish().expect("a row without columns").num_rows(), 1);
    let refused = ParquetWriter::new::<Sample>(Vec::new(), Options::default().selection(Some(none)));
    assert_eq!(refused.unwrap_err().kind(), std::io::ErrorKind::InvalidInput);

    let mut small = BatchBuilder::new::<Sample>(&Options::default().limits(10, usize::MAX));
    let mut short = BatchBuilder::new::<Sample>(&Options::default().limits(usize::MAX, 1));
    for (index, sample) in samples(10).iter().enumerate() {
        assert_eq!(small.is_full(), index == 10);
        small.push(sample);
        short.push(sample);
        assert!(short.is_full(), "a batch has at least one row");
    }
    assert!(small.is_full());
}

/// A row whose values are not of the declared types.
struct Wrong;

impl RowType for Wrong {
    fn columns() -> Vec<&'static Column> {
        Sample::columns()
    }
}

impl Row for Wrong {
    fn own_columns(&self) -> Vec<&'static Column> {
        Self::columns()
    }

    fn visit(&self, visitor: &mut (impl Visitor + ?Sized)) {
        for column in Self::columns() {
            if visitor.wants(column) {
                visitor.text(column, "a text");
            }
        }
    }
}

#[test]
fn a_row_of_other_types_is_an_error_and_the_next_batch_is_not_affected() {
    let mut builder = BatchBuilder::new::<Sample>(&Options::default());
    builder.push(&Wrong);
    builder.push(&samples(1)[0]);
    let error = builder.finish().unwrap_err().to_string();
    assert!(error.contains("a value of the column flag is not of the type bool"), "{error}");
    builder.push(&samples(2)[1]);
    let batch = builder.finish().expect("rows of the table");
    assert_eq!((batch.num_rows(), column(&batch, "text").as_string::<i32>().value(0)), (1, "row 1"));
}

#[test]
fn a_parquet_file_is_the_batches_in_the_order_of_time() {
    let samples = samples(25);
    let options = Options::default().limits(10, usize::MAX);
    let mut writer = ParquetWriter::new::<Sample>(Vec::new(), options).expect("columns");
    samples.iter().for_each(|sample| writer.write(sample).expect("memory"));
    let file = writer.into_inner().expect("memory");
    let reader = ParquetRecordBatchReaderBuilder::try_new(bytes::Bytes::from(file)).expect("a Parquet file");
    assert_eq!(reader.metadata().num_row_groups(), 3);
    let sorting = reader.metadata().row_group(0).sorting_columns().expect("sorted").clone();
    assert_eq!(reader.parquet_schema().column(sorting[0].column_idx as usize).name(), "time");
    let batches: Vec<RecordBatch> =
        reader.build().expect("a reader").collect::<Result<_, _>>().expect("rows");
    let texts: Vec<String> = batches
        .iter()
        .flat_map(|batch| {
            column(batch, "text").as_string::<i32>().iter().map(|text| text.unwrap().to_owned())
        })
        .collect();
    // The time of a later row is earlier.
    let expected =
        [(0..10), (10..20), (20..25)].map(|group| group.rev().map(|number| format!("row {number}")));
    assert_eq!(texts, expected.into_iter().flatten().collect::<Vec<_>>());
    assert_eq!(*column(&batches[0], "delay").data_type(), DataType::Int64);
}

#[test]
fn streams_and_files_of_ipc_have_the_names_of_all_batches() {
    let samples = samples(25);
    let whole = batch(&Options::default(), &samples);
    let options = Options::default().limits(4, usize::MAX);
    let write = |mut writer: IpcWriter<Vec<u8>>| {
        samples.iter().for_each(|sample| writer.write(sample).expect("memory"));
        writer.into_inner().expect("memory")
    };
    let stream = write(IpcWriter::stream::<Sample>(Vec::new(), &options).expect("memory"));
    let file = write(IpcWriter::file::<Sample>(Vec::new(), &options).expect("memory"));
    let stream = arrow_ipc::reader::StreamReader::try_new(&stream[..], None).expect("a stream");
    let file = arrow_ipc::reader::FileReader::try_new(std::io::Cursor::new(file), None).expect("a file");
    let stream: Vec<RecordBatch> = stream.collect::<Result<_, _>>().expect("batches");
    let file: Vec<RecordBatch> = file.collect::<Result<_, _>>().expect("batches");
    for batches in [stream, file] {
        assert_eq!(batches.len(), 7);
        let all = arrow_select::concat::concat_batches(&whole.schema(), &batches).expect("one schema");
        for (name, array) in whole.schema().fields().iter().map(|field| field.name()).zip(all.columns()) {
            // Keys of names may differ.
            if name != "name" {
                assert_eq!(array, column(&whole, name), "{name}");
            }
        }
        let names = |batch: &RecordBatch| -> Vec<Option<String>> {
            let names = column(batch, "name").as_dictionary::<Int32Type>();
            let names = names.downcast_dict::<arrow_array::StringArray>().expect("texts");
            names.into_iter().map(|name| name.map(str::to_owned)).collect()
        };
        assert_eq!(names(&all), names(&whole));
    }
}

/// A row of another type, which begins with the columns of [`Inner`].
struct Other;

flowgauge::table! {
    /// A row with other columns.
    impl "other" for Other as _other {
        /// A number.
        "number": Option<u64> = Some(1);
        /// A text in place of a number.
        "secret": String = "text".to_owned();
    }
}

/// Writes rows of two types, and returns the error of the second and the destination.
fn write_both<W: RecordWriter<Sample> + RecordWriter<Other>>(mut writer: W) -> (std::io::Error, W) {
    for sample in samples(3) {
        RecordWriter::<Sample>::write(&mut writer, &sample).unwrap();
    }
    let error = RecordWriter::<Other>::write(&mut writer, &Other).expect_err("a row with other columns");
    assert!(error.to_string().contains("where the output has"), "{error}");
    // The rows before it, and those after it, are written.
    RecordWriter::<Sample>::write(&mut writer, &samples(1)[0]).unwrap();
    (error, writer)
}

#[test]
fn writers_refuse_rows_of_another_type() {
    let options = Options::default();
    let (error, stream) = write_both(IpcWriter::stream::<Sample>(Vec::new(), &options).unwrap());
    assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput);
    let octets = stream.into_inner().unwrap();
    let read = arrow_ipc::reader::StreamReader::try_new(&octets[..], None).unwrap();
    assert_eq!(read.map(|batch| batch.unwrap().num_rows()).sum::<usize>(), 4);
    let (error, file) = write_both(IpcWriter::file::<Sample>(Vec::new(), &options).unwrap());
    assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput);
    let octets = std::io::Cursor::new(file.into_inner().unwrap());
    let read = arrow_ipc::reader::FileReader::try_new(octets, None).unwrap();
    assert_eq!(read.map(|batch| batch.unwrap().num_rows()).sum::<usize>(), 4);
    let (error, file) = write_both(ParquetWriter::new::<Sample>(Vec::new(), options).unwrap());
    assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput);
    assert!(file.into_inner().unwrap().ends_with(b"PAR1"));
}

#[test]
fn a_builder_returns_an_error_for_rows_of_another_type() {
    let mut builder = BatchBuilder::new::<Sample>(&Options::default());
    builder.push(&samples(1)[0]);
    builder.push(&Other);
    assert_eq!(builder.row_count(), 1);
    let error = builder.finish().expect_err("a row with other columns").to_string();
    assert!(error.contains("where the output has"), "{error}");
    // The next batch begins anew; a reference is a row of the same columns.
    builder.push(&&samples(1)[0]);
    assert_eq!(builder.finish().unwrap().num_rows(), 1);
}
