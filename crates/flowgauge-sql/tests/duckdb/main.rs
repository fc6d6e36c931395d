//! Queries over captures, compared with those of DuckDB over Parquet files of the same captures, which are written without
//! the code of scans.
//!
//! The test runs the Python interpreter of the variable `FLOWGAUGE_PYTHON`, or `python3`. Without the package `duckdb`, it
//! prints a note and passes. If `FLOWGAUGE_READERS` is set to `required`, it fails instead. With `FLOWGAUGE_CORPUS`, its small
//! captures are read too.

mod queries;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::DataType;
use datafusion::parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use datafusion::prelude::{SessionConfig, SessionContext};
use flowgauge::export::RecordWriter;
use flowgauge::row::{Row, Union as _};
use flowgauge::session::MessageHead;
use flowgauge::transaction::{Transaction, TransactionHead};
use flowgauge::{
    EndReason, FileSource, Flow, FlowView, FragmentHandling, Interest, Message, MessageMeta, Packet,
    Pipeline, RunOptions, SessionEvent, Sessions, Sink, Standard, TransactionSink, Transactions,
};
use flowgauge_arrow::{Addresses, Durations, Names, Options, ParquetWriter};

use queries::{queries, replaced, rows};

/// Longest capture of the corpus that is read, in octets, and their number.
const CORPUS_LEN_MAX: u64 = 200_000;
const CORPUS_COUNT: usize = 200;

/// The capture of a row.
struct InFile<'f>(&'f str);

flowgauge::table! {
    /// The capture of a row.
    impl['f] "file" for InFile<'f> as row {
        /// Path of the capture.
        "file": &'f str = row.0;
    }
}

/// Writes each table of all captures to a Parquet file.
struct Tables {
    folder: PathBuf,
    writers: BTreeMap<String, ParquetWriter<File>>,
}

impl Tables {
    fn write<R: Row>(&mut self, name: &str, row: &R) {
        let writer = self.writers.entry(name.to_owned()).or_insert_with(|| {
            let options = Options::default().addresses(Addresses::Text).durations(Durations::Integers);
            let file = File::create(self.folder.join(format!("{name}.parquet"))).unwrap();
            ParquetWriter::of_columns(row.own_columns(), file, options.names(Names::Text)).unwrap()
        });
        RecordWriter::<R>::write(writer, row).unwrap();
    }
}

/// Sink of flow records, messages and transactions of a capture.
struct Written<'t> {
    tables: &'t mut Tables,
    file: &'t str,
}

impl Sink for Written<'_> {
    type State = ();
    type Stage = Sessions<Standard>;

    fn record(&mut self, flow: &mut Flow<'_, ()>, reason: EndReason) {
        self.tables.write("flows", &(flow.view.record(reason), InFile(self.file)));
    }

    fn message(&mut self, flow: &mut Flow<'_, ()>, meta: &MessageMeta, message: &Message<'_>) {
        if !message.is_content() && !message.is_plain_end() {
            let row = message.row();
            let head = MessageHead::new(&flow.view, flow.view.community_id(), meta, row.table);
            self.tables.write(&format!("messages.{}", row.table.name), &((head, row), InFile(self.file)));
        }
    }

    fn session(&mut self, _: &mut Flow<'_, ()>, _: &SessionEvent) {}
}

impl TransactionSink for Written<'_> {
    fn transaction(&mut self, view: &FlowView<'_>, (): &mut (), transaction: &Transaction) {
        let row = transaction.content.row();
        let head = TransactionHead::new(view, view.community_id(), transaction, row.table);
        let name = format!("transactions.{}", row.table.kind());
        self.tables.write(&name, &((head, row), InFile(self.file)));
    }
}

/// Sink of packets.
struct Packets<'t>(Written<'t>);

impl Sink for Packets<'_> {
    type State = ();
    type Stage = flowgauge::Flows;

    fn interest(&self) -> Interest {
        Interest::PACKETS
    }

    fn packet(&mut self, _: &mut Flow<'_, ()>, packet: &Packet<'_>) {
        self.0.tables.write("packets", &(packet, InFile(self.0.file)));
    }
}

/// Writes all tables of captures.
fn write(folder: &Path, captures: &[String]) -> Vec<String> {
    let mut tables = Tables { folder: folder.to_owned(), writers: BTreeMap::new() };
    for file in captures {
        let sink = Transactions::new(Written { tables: &mut tables, file });
        let mut source = FileSource::open(file).unwrap();
        let builder = Pipeline::builder().encapsulation(true);
        builder.build(sink).unwrap().run(&mut source, &RunOptions::default()).unwrap();
        let sink = Packets(Written { tables: &mut tables, file });
        let mut source = FileSource::open(file).unwrap();
        let builder = Pipeline::builder().fragments(FragmentHandling::AsTheyCome);
        builder.build(sink).unwrap().run(&mut source, &RunOptions::default()).unwrap();
    }
    let names = tables.writers.keys().cloned().collect();
    for writer in tables.writers.into_values() {
        writer.into_inner().unwrap();
    }
    names
}

fn captures() -> Vec<String> {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/data").canonicalize().unwrap();
    let mut captures: Vec<_> = fs::read_dir(data).unwrap().map(|entry| entry.unwrap().path()).collect();
    captures.retain(|path| path.extension().is_some_and(|name| name == "pcap" || name == "pcapng"));
    if let Some(corpus) = std::env::var_os("FLOWGAUGE_CORPUS") {
        let corpus = PathBuf::from(corpus);
        let manifest = fs::read_to_string(corpus.join("MANIFEST.tsv")).unwrap();
        let paths = manifest.lines().filter_map(|line| Some(corpus.join(line.split('\t').next()?)));
        let is_small =
            |path: &PathBuf| path.is_file() && path.metadata().is_ok_and(|file| file.len() <= CORPUS_LEN_MAX);
        captures
            .extend(paths.filter(is_small).filter(|path| FileSource::open(path).is_ok()).take(CORPUS_COUNT));
    }
    captures.sort();
    captures.iter().map(|path| path.to_str().unwrap().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn results_are_those_of_duckdb() {
    let python = std::env::var_os("FLOWGAUGE_PYTHON").unwrap_or_else(|| "python3".into());
    let has_duckdb =
        Command::new(&python).args(["-c", "import duckdb"]).output().is_ok_and(|run| run.status.success());
    if !has_duckdb {
        assert_ne!(
            std::env::var("FLOWGAUGE_READERS").as_deref(),
            Ok("required"),
            "the package duckdb is missing"
        );
        eprintln!("skipped: Python has no package duckdb");
        return;
    }
    let folder = std::env::temp_dir().join(format!("flowgauge-duckdb-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let captures = captures();
    let files = write(&folder, &captures);
    let queries = queries();
    assert!(queries.len() >= 40, "{}", queries.len());

    // DuckDB reads the Parquet files of all kinds of a protocol by the names of their columns.
    let parquet = |name: &str, kind: Option<&str>| {
        let name = kind.map_or_else(|| name.to_owned(), |kind| format!("{name}.{kind}"));
        let is_in = |file: &&String| **file == name || file.starts_with(&format!("{name}."));
        let paths: Vec<_> = files
            .iter()
            .filter(is_in)
            .map(|file| format!("'{}'", folder.join(format!("{file}.parquet")).display()))
            .collect();
        assert!(!paths.is_empty(), "no rows of {name}");
        format!("read_parquet([{}], union_by_name = true)", paths.join(", "))
    };
    let mut script = String::new();
    for (index, query) in queries.iter().enumerate() {
        let out = folder.join(format!("result.{index}.parquet"));
        let query = replaced(query, parquet).replace('\n', " ");
        script += &format!("COPY ({query}) TO '{}' (FORMAT parquet);\n", out.display());
    }
    fs::write(folder.join("script.sql"), script).unwrap();
    let run = "import duckdb, sys\nconnection = duckdb.connect()\nconnection.execute(\"SET TimeZone = 'UTC'\")\n\
               for line in open(sys.argv[1]):\n    try:\n        connection.execute(line)\n    \
               except Exception as error:\n        sys.exit(f'{line}: {error}')\n";
    let output = Command::new(&python).args(["-c", run]).arg(folder.join("script.sql")).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));

    let list = captures.iter().map(|path| format!("'{path}'")).collect::<Vec<_>>().join(", ");
    let mut row_count = 0;
    for partition_count in [1, 4] {
        let config = SessionConfig::new().with_target_partitions(partition_count);
        let context = SessionContext::new_with_config(config);
        flowgauge_sql::register(&context).unwrap();
        for (index, query) in queries.iter().enumerate() {
            let own = replaced(query, |name, kind| {
                let kind = kind.map_or_else(String::new, |kind| format!("'{kind}', "));
                format!("{name}({kind}[{list}])")
            });
            let batches = context.sql(&own).await.unwrap_or_else(|error| panic!("{query}: {error}"));
            let batches = batches.collect().await.unwrap_or_else(|error| panic!("{query}: {error}"));
            let types: Vec<DataType> = match batches.first() {
                Some(batch) => {
                    batch.schema().fields().iter().map(|field| field.data_type().clone()).collect()
                }
                None => Vec::new(),
            };
            let file = File::open(folder.join(format!("result.{index}.parquet"))).unwrap();
            let reader = ParquetRecordBatchReaderBuilder::try_new(file).unwrap().build().unwrap();
            let expected: Vec<RecordBatch> = reader.map(Result::unwrap).collect();
            let (own, expected) = (rows(&batches, &types), rows(&expected, &types));
            assert_eq!(own.len(), expected.len(), "{partition_count}: {query}");
            for (own, expected) in own.iter().zip(&expected) {
                assert_eq!(own, expected, "{partition_count}: {query}");
            }
            row_count += own.len();
        }
    }
    assert!(row_count > 1000, "{row_count}");
    fs::remove_dir_all(&folder).unwrap();
}
