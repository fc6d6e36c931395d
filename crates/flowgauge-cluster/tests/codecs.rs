//! Plans with tables of captures, encoded and decoded as client, scheduler and executors do.

use std::path::Path;
use std::sync::Arc;

use ballista_core::utils::default_session_builder;
use datafusion::catalog::default_table_source::source_as_provider;
use datafusion::common::tree_node::{TreeNode as _, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::GreedyMemoryPool;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::{ExecutionPlan, collect, displayable};
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion_proto::bytes::{
    logical_plan_from_bytes_with_extension_codec, logical_plan_to_bytes_with_extension_codec,
    physical_plan_from_bytes_with_extension_codec, physical_plan_to_bytes_with_extension_codec,
};
use datafusion_proto::logical_plan::LogicalExtensionCodec as _;
use datafusion_proto::physical_plan::{
    DefaultPhysicalProtoConverter, PhysicalExtensionCodec as _, PhysicalProtoConverterExtension,
};
use flowgauge_arrow::scan::{ScanConfig, Table};
use flowgauge_cluster::{Cluster, LogicalCodec, PhysicalCodec};
use flowgauge_sql::{Capture, CaptureScan, CaptureTable, ObjectVersion};

#[path = "../../flowgauge-sql/tests/duckdb/queries.rs"]
#[allow(dead_code, reason = "shared with other tests")]
mod queries;

/// Length of the envelope before its content: magic, version, checksum.
const HEAD_LEN: usize = 8;

const TABLES: [&str; 17] = [
    "SELECT * FROM flows('$DATA/web.pcap')",
    "SELECT * FROM flows(['$DATA/web.pcap', '$DATA/*.pcapng'], joined => true)",
    "SELECT * FROM flows('$DATA/web.pcap', features => 'cic_compat=e3+e18,nfstream=ip,splt=4,histogram,entropy=8,payload=9,tcp')",
    "SELECT * FROM flows('$DATA/web.pcap', features => 'cic')",
    "SELECT * FROM flows('$DATA/web.pcap', filter => 'src net 10.0.0.0/8 and not (vlan 5 or port 53)')",
    "SELECT * FROM flows('$DATA/web.pcap', idle_timeout => '1500ms', active_timeout => '1m 1ns')",
    "SELECT * FROM flows('$DATA/web.pcap', tunnels => 'outermost')",
    "SELECT * FROM flows('$DATA/web.pcap', tunnels => 'both')",
    "SELECT octet_count + packet_count AS sum, upper(source_address) FROM flows('$DATA/*.pcap') LIMIT 5",
    "SELECT octet_count FROM flows('$DATA/*.pcap') WHERE destination_port = 53 AND start > '2020-01-01T00:00:00Z'",
    "SELECT * FROM packets('$DATA/dns.pcap') WHERE timestamp < '2030-01-01T00:00:00Z' LIMIT 10",
    "SELECT * FROM messages('dns', '$DATA/dns.pcap')",
    "SELECT * FROM messages('http.request', '$DATA/web.pcap')",
    "SELECT * FROM transactions('http', '$DATA/web.pcap')",
    "SELECT * FROM transactions('file', '$DATA/*.pcap')",
    "SELECT * FROM findings('$DATA/*.pcap')",
    "SELECT community_id(source_address, source_port, destination_address, destination_port, protocol),
     cidr_contains('10.0.0.0/8', source_address), application_of_port(destination_port, protocol) FROM flows('$DATA/web.pcap')",
];

fn context(partition_count: usize) -> SessionContext {
    let config = Cluster::config().with_target_partitions(partition_count);
    let context = SessionContext::new_with_state(default_session_builder(config).unwrap());
    flowgauge_sql::register(&context).unwrap();
    context
}

fn filled(query: &str) -> String {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/data").canonicalize().unwrap();
    query.replace("$DATA", data.to_str().unwrap())
}

/// Returns what the tables of captures in a plan are.
fn tables(plan: &LogicalPlan) -> Vec<String> {
    let mut tables = Vec::new();
    plan.apply(|node| {
        if let LogicalPlan::TableScan(scan) = node {
            let provider = source_as_provider(&scan.source).unwrap();
            let table = provider.downcast_ref::<CaptureTable>().unwrap();
            tables.push(format!("{:?} {:?} {:?}", table.table(), table.patterns(), table.config()));
        }
        Ok(TreeNodeRecursion::Continue)
    })
    .unwrap();
    tables
}

#[tokio::test]
async fn logical_plans_keep_each_table_and_option() {
    let context = context(4);
    let codec = LogicalCodec::default();
    for query in TABLES {
        let plan = context.sql(&filled(query)).await.unwrap().into_optimized_plan().unwrap();
        let octets = logical_plan_to_bytes_with_extension_codec(&plan, &codec).unwrap();
        let other =
            logical_plan_from_bytes_with_extension_codec(&octets, &context.task_ctx(), &codec).unwrap();
        // The encoding has no limit of a table. The node above it has the limit, and the scheduler optimizes the plan again.
        let text = |plan: &LogicalPlan| plan.display_indent_schema().to_string().replace(", fetch=5", "");
        assert_eq!(text(&other), text(&plan));
        assert_eq!(tables(&other), tables(&plan), "{query}");
        assert!(!tables(&plan).is_empty(), "{query}");
    }
}

#[tokio::test]
async fn relative_patterns_are_those_of_the_client() {
    let codec = LogicalCodec::default();
    let context = context(1);
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    assert_eq!(std::env::current_dir().unwrap(), folder);
    let query = "SELECT * FROM flows('../../examples/data/*.pcap', '../../examples/data/dns.pcap')";
    let plan = context.sql(query).await.unwrap().into_optimized_plan().unwrap();
    let octets = logical_plan_to_bytes_with_extension_codec(&plan, &codec).unwrap();
    let other = logical_plan_from_bytes_with_extension_codec(&octets, &context.task_ctx(), &codec).unwrap();
    let expected = tables(&plan)[0].replace("../../", &format!("{}/../../", folder.display()));
    assert_eq!(tables(&other), [expected]);
}

/// Returns the scans of captures in a plan as text.
fn scans(plan: &Arc<dyn ExecutionPlan>) -> Vec<String> {
    let mut scans = Vec::new();
    plan.apply(|node| {
        scans.extend(CaptureScan::of(node.as_ref()).map(|scan| format!("{scan:?}")));
        Ok(TreeNodeRecursion::Continue)
    })
    .unwrap();
    scans
}

async fn rows(plan: Arc<dyn ExecutionPlan>, context: &SessionContext) -> Vec<String> {
    let types: Vec<_> = plan.schema().fields().iter().map(|field| field.data_type().clone()).collect();
    queries::rows(&collect(plan, context.task_ctx()).await.unwrap(), &types)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn physical_plans_keep_their_captures_columns_and_rows() {
    let codec = PhysicalCodec::default();
    for partition_count in [1, 4] {
        let context = context(partition_count);
        for query in TABLES {
            let plan = context.sql(&filled(query)).await.unwrap().create_physical_plan().await.unwrap();
            let octets = physical_plan_to_bytes_with_extension_codec(Arc::clone(&plan), &codec).unwrap();
            let other =
                physical_plan_from_bytes_with_extension_codec(&octets, &context.task_ctx(), &codec).unwrap();
            // An executor decides how many threads read a capture.
            let text = |plan: &Arc<dyn ExecutionPlan>| {
                displayable(plan.as_ref()).indent(true).to_string().replace(", threads=4", "")
            };
            assert_eq!(text(&other), text(&plan), "{query}");
            assert_eq!(scans(&other), scans(&plan), "{query}");
            assert!(!scans(&plan).is_empty(), "{query}");
            if !query.contains("LIMIT") {
                assert_eq!(rows(other, &context).await, rows(plan, &context).await, "{query}");
            }
        }
    }
}

/// The executor decides what a pipeline may hold.
#[tokio::test]
async fn pipelines_have_the_memory_of_the_executor() {
    let context = context(1);
    let query = filled(TABLES[0]);
    let plan = context.sql(&query).await.unwrap().create_physical_plan().await.unwrap();
    let octets = physical_plan_to_bytes_with_extension_codec(plan, &PhysicalCodec::default()).unwrap();
    for (limit, is_enough) in [(1 << 10, false), (64 << 20, true)] {
        let codec = PhysicalCodec::default().with_memory(Arc::new(GreedyMemoryPool::new(limit)), 16 << 20);
        let plan =
            physical_plan_from_bytes_with_extension_codec(&octets, &context.task_ctx(), &codec).unwrap();
        assert!(scans(&plan)[0].contains(&format!("memory: {}", 16 << 20)));
        assert_eq!(collect(plan, context.task_ctx()).await.is_ok(), is_enough, "{limit}");
    }
}

/// A generator of numbers (xorshift), so that each run has the same ones.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % end as u64) as usize
    }
}

/// Returns the octets with a checksum that fits.
fn checked(mut octets: Vec<u8>) -> Vec<u8> {
    let checksum = crc32fast::hash(&octets[HEAD_LEN..]).to_le_bytes();
    octets[4..HEAD_LEN].copy_from_slice(&checksum);
    octets
}

/// Decodes truncated, changed and hostile octets. Those without a fitting checksum are errors; the others must not panic.
fn attack(octets: &[u8], decode: impl Fn(&[u8]) -> Result<()>) {
    decode(octets).unwrap();
    for len in 0..octets.len() {
        assert!(decode(&octets[..len]).is_err(), "{len} octets");
    }
    for index in 0..octets.len() {
        for bit in 0..8 {
            let mut octets = octets.to_vec();
            octets[index] ^= 1 << bit;
            assert!(decode(&octets).is_err(), "bit {bit} of octet {index}");
        }
    }
    let mut numbers = Numbers(0x5eed);
    let (mut error_count, mut count) = (0, 0);
    for len in HEAD_LEN..octets.len() {
        error_count += usize::from(decode(&checked(octets[..len].to_vec())).is_err());
        count += 1;
    }
    for _ in 0..5000 {
        let mut octets = octets.to_vec();
        for _ in 0..=numbers.next(4) {
            let index = HEAD_LEN + numbers.next(octets.len() - HEAD_LEN);
            octets[index] = numbers.next(256) as u8;
        }
        if numbers.next(4) == 0 {
            let index = HEAD_LEN + numbers.next(octets.len() - HEAD_LEN);
            octets.splice(index..index, [0xff; 9]);
        }
        error_count += usize::from(decode(&checked(octets)).is_err());
        count += 1;
    }
    assert!(error_count > count / 4, "{error_count} of {count}");
}

#[tokio::test]
async fn damaged_tables_are_errors() {
    let context = context(2);
    let codec = LogicalCodec::default();
    let query = filled(TABLES[5]).replace("*", "octet_count");
    let plan = context.sql(&query).await.unwrap().into_unoptimized_plan();
    let mut found = None;
    plan.apply(|node| {
        if let LogicalPlan::TableScan(scan) = node {
            found = Some((scan.table_name.clone(), source_as_provider(&scan.source)?));
        }
        Ok(TreeNodeRecursion::Continue)
    })
    .unwrap();
    let (name, table) = found.unwrap();
    let schema = table.schema();
    let mut octets = Vec::new();
    codec.try_encode_table_provider(&name, table, &mut octets).unwrap();
    let task = context.task_ctx();
    attack(&octets, |octets| {
        codec.try_decode_table_provider(octets, &name, Arc::clone(&schema), &task).map(|_| ())
    });
    octets[3] = 2;
    let error = codec.try_decode_table_provider(&octets, &name, schema, &task).unwrap_err();
    assert!(error.to_string().contains("must be of one version"), "{error}");
}

/// Decodes the node of a scan.
fn decode_scan(codec: &PhysicalCodec, octets: &[u8], task: &TaskContext) -> Result<()> {
    let converter: &dyn PhysicalProtoConverterExtension = &DefaultPhysicalProtoConverter {};
    codec.try_decode(octets, &[], task, converter).map(|_| ())
}

#[tokio::test]
async fn damaged_scans_are_errors() {
    let context = context(2);
    let codec = PhysicalCodec::default();
    let query = filled("SELECT octet_count + 1 AS more, file FROM flows('$DATA/*.pcap') WHERE protocol = 6");
    let plan = context.sql(&query).await.unwrap().create_physical_plan().await.unwrap();
    let mut found = None;
    plan.apply(|node| {
        found = found.take().or_else(|| CaptureScan::of(node.as_ref()).map(|_| Arc::clone(node)));
        Ok(TreeNodeRecursion::Continue)
    })
    .unwrap();
    let mut octets = Vec::new();
    codec.try_encode(found.unwrap(), &mut octets, &DefaultPhysicalProtoConverter {}).unwrap();
    attack(&octets, |octets| decode_scan(&codec, octets, &context.task_ctx()));
}

/// A scan of an object, of a file that has the name of a URL, and of an object without ETag.
fn scan_of_objects(context: &SessionContext) -> Arc<dyn ExecutionPlan> {
    let captures = [
        ("s3://bucket/day/a.pcap", ObjectVersion::new(Some("\"0123abc\"".to_owned()), None)),
        (
            "https://host:8443/b%20c.pcap.gz",
            ObjectVersion::new(Some("W/\"1\"".to_owned()), Some("7".to_owned())),
        ),
        ("s3://bucket/c.pcap", ObjectVersion::default()),
    ];
    let captures = captures.map(|(url, version)| Capture::in_storage(url, 1 << 40, version).unwrap());
    let groups = vec![captures.to_vec(), vec![Capture::new("s3:/bucket/c.pcap", 7)]];
    let environment = context.runtime_env();
    let (pool, stores) =
        (Arc::clone(&environment.memory_pool), Arc::clone(&environment.object_store_registry));
    CaptureScan::new(Table::Packets, ScanConfig::default(), groups).into_plan(pool, stores, None).unwrap()
}

#[tokio::test]
async fn scans_keep_their_objects() {
    let context = context(2);
    let codec = PhysicalCodec::default();
    let plan = scan_of_objects(&context);
    let octets = physical_plan_to_bytes_with_extension_codec(Arc::clone(&plan), &codec).unwrap();
    let other = physical_plan_from_bytes_with_extension_codec(&octets, &context.task_ctx(), &codec).unwrap();
    assert_eq!(scans(&other), scans(&plan));
    let (scan, other) = (CaptureScan::of(plan.as_ref()).unwrap(), CaptureScan::of(other.as_ref()).unwrap());
    assert_eq!(other.groups, scan.groups);
    assert_eq!(other.groups.iter().flatten().filter(|capture| capture.object.is_some()).count(), 3);
}

#[tokio::test]
async fn damaged_urls_are_errors() {
    let context = context(2);
    let codec = PhysicalCodec::default();
    let mut octets = Vec::new();
    codec.try_encode(scan_of_objects(&context), &mut octets, &DefaultPhysicalProtoConverter {}).unwrap();
    attack(&octets, |octets| decode_scan(&codec, octets, &context.task_ctx()));
    let url = b"s3://bucket/day/a.pcap";
    let at = octets.windows(url.len()).position(|octets| octets == url).unwrap();
    for (other, problem) in [
        (&b"folder/ket/day/a.pcap "[..], "is not the URL of an object"),
        (b"file://x/buck/day/a.pc", "a file is on this machine"),
        (b"S3://bucket/day/a.pcap", "lower-case"),
        (b"s3://a:b@ket/day/a.pca", "must not contain credentials"),
        (b"s3://\xff\xfe\xfd\xfcet/day/a.pcap", "is not UTF-8"),
    ] {
        let mut octets = octets.clone();
        octets[at..at + url.len()].copy_from_slice(other);
        let error = decode_scan(&codec, &checked(octets), &context.task_ctx()).unwrap_err().to_string();
        assert!(error.contains(problem), "{error}");
    }
}

/// Tables in the memory of the client cannot be read by others.
#[tokio::test]
async fn tables_of_the_client_are_errors() {
    let context = SessionContext::new_with_config(SessionConfig::new());
    context.sql("CREATE TABLE known AS SELECT 1 AS one").await.unwrap().collect().await.unwrap();
    let plan = context.sql("SELECT one FROM known").await.unwrap().into_optimized_plan().unwrap();
    let error = logical_plan_to_bytes_with_extension_codec(&plan, &LogicalCodec::default()).unwrap_err();
    assert!(error.to_string().contains("known is in the memory of the client"), "{error}");
}
