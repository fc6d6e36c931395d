//! What a plan reads, how much of it after it was dropped, and how joins are planned.

use std::fs;
use std::sync::Arc;
use std::time::{Duration, Instant};

use datafusion::common::stats::Precision;
use datafusion::physical_plan::{ExecutionPlan, StatisticsArgs, StatisticsContext, execute_stream};
use flowgauge_sql::{CaptureScan, ScanProgress};
use futures::StreamExt as _;

use super::parts::LongCapture;
use super::{capture, context, plan};

/// Time after which the threads of a dropped query must have ended. It is a hundred times the usual one.
const STOP_MAX: Duration = Duration::from_secs(5);

/// Returns the first plan without inputs in a plan.
fn leaf(plan: &Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
    plan.children().first().map_or_else(|| Arc::clone(plan), |child| leaf(child))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dropped_query_stops_reading() {
    let capture = LongCapture::new("dropped", 24 << 20);
    let path = capture.path();
    for (partition_count, table) in [(1, "packets("), (1, "flows("), (4, "flows("), (2, "messages('http', ")]
    {
        let context = context(partition_count);
        let pool = Arc::clone(&context.runtime_env().memory_pool);
        let query = format!("SELECT protocol, count(*) FROM {table}'{path}') GROUP BY 1");
        let frame = context.sql(&query).await.unwrap();
        let task = Arc::new(frame.task_ctx());
        let plan = frame.create_physical_plan().await.unwrap();
        let scan = leaf(&plan);
        let progress = || ScanProgress::of(scan.as_ref()).unwrap();
        // A plan has the tasks that it has started, so that it must not be kept.
        let mut stream = execute_stream(plan, task).unwrap();
        // The memory of a scan is charged until its threads have ended.
        while progress().octet_count == 0 || pool.reserved() == 0 {
            let next = tokio::time::timeout(Duration::from_millis(1), stream.next()).await;
            assert!(next.is_err(), "{query}: all was read before the query was dropped");
        }
        let before = progress();
        let started = Instant::now();
        drop(stream);
        while pool.reserved() > 0 {
            assert!(started.elapsed() < STOP_MAX, "{query}: a thread did not end");
            tokio::time::sleep(Duration::from_micros(100)).await;
        }
        let (elapsed, after) = (started.elapsed(), progress());
        println!(
            "{table}...), {partition_count} threads: {elapsed:?}, {} octets",
            after.octet_count - before.octet_count
        );
        assert!(after.octet_count < after.len, "{query}: {before:?} {after:?}");
        tokio::time::sleep(Duration::from_millis(200)).await;
        assert_eq!(progress(), after, "{query}");
    }
}

/// The number of rows is not known, so that the lengths of the captures determine the sides of a join.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_smaller_capture_is_the_build_side_of_a_join() {
    let context = context(4);
    for (first, second) in [("web.pcap", "dns.pcap"), ("dns.pcap", "web.pcap")] {
        for columns in ["count(*)", "a.*, b.*", "a.start, b.octet_count"] {
            let query = format!(
                "SELECT {columns} FROM flows('$DATA/{first}') a JOIN flows('$DATA/{second}') b
                 ON a.source_address = b.source_address AND a.source_port = b.source_port"
            );
            let plan = plan(&context, &query).await;
            let (_, inputs) = plan.split_once("HashJoinExec").unwrap_or_else(|| panic!("{plan}"));
            let (dns, web) = (inputs.find("dns.pcap").unwrap(), inputs.find("web.pcap").unwrap());
            assert!(dns < web, "the first input is the build side:\n{plan}");
        }
    }
    let query = format!("SELECT protocol, start FROM flows('{0}', '{0}')", capture("web.pcap"));
    let plan = context.sql(&query).await.unwrap().create_physical_plan().await.unwrap();
    assert!(CaptureScan::of(plan.as_ref()).is_some());
    let statistics = StatisticsContext::new().compute(plan.as_ref(), &StatisticsArgs::new()).unwrap();
    let len = 2 * fs::metadata(capture("web.pcap")).unwrap().len() as usize;
    assert_eq!(
        (statistics.num_rows, statistics.total_byte_size),
        (Precision::Absent, Precision::Inexact(len))
    );
}
