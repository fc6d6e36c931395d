//! Long captures, whose flows several threads track.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use datafusion::physical_plan::{ExecutionPlan, collect};

use super::{context, plan, rows};

#[path = "../../../flowgauge-arrow/tests/support/long_capture.rs"]
mod long_capture;

/// A long capture that is removed at the end.
pub(super) struct LongCapture(PathBuf);

impl LongCapture {
    pub(super) fn new(name: &str, len: usize) -> Self {
        let path = std::env::temp_dir().join(format!("flowgauge-sql-{name}-{}.pcap", std::process::id()));
        long_capture::write(&path, len);
        Self(path)
    }

    pub(super) fn path(&self) -> String {
        self.0.to_str().unwrap().to_owned()
    }
}

impl Drop for LongCapture {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// Returns the sum of a metric of all scans of a plan.
pub(super) fn metric(plan: &Arc<dyn ExecutionPlan>, name: &str) -> usize {
    let own = plan.metrics().and_then(|metrics| metrics.sum_by_name(name)).map_or(0, |sum| sum.as_usize());
    own + plan.children().into_iter().map(|child| metric(child, name)).sum::<usize>()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_rows_of_one_large_capture_do_not_depend_on_threads() {
    let capture = LongCapture::new("threads", 9 << 20);
    let long = capture.path();
    let (one, four, eight) = (context(1), context(4), context(8));
    for query in [
        "SELECT * FROM flows('LONG')",
        "SELECT application, application_evidence, count(*), sum(octet_count) FROM flows('LONG') GROUP BY 1, 2",
        "SELECT * FROM flows('LONG', active_timeout => '1s') WHERE protocol = 6 AND destination_port IN (80, 443)",
        "SELECT flow_end_reason, count(*) FROM flows('LONG', filter => 'src port 443 or udp') GROUP BY 1",
        "SELECT community_id FROM flows('LONG') WHERE application = 'dns' ORDER BY start LIMIT 7",
        "SELECT count(*) FROM (SELECT * FROM flows('LONG') LIMIT 50)",
        "SELECT * FROM flows('LONG', '$DATA/vlan.pcapng', joined => true)",
        "SELECT * FROM flows('LONG', features => 'splt=4')",
        "SELECT f.application, count(*) FROM flows('LONG') f JOIN messages('http.request', 'LONG') m USING (community_id)
         GROUP BY 1",
        "SELECT * FROM transactions('dns', 'LONG')",
        "SELECT protocol, count(*), sum(wire_len) FROM packets('LONG') GROUP BY 1",
    ] {
        let query = query.replace("LONG", &long);
        let expected = rows(&one, &query).await;
        assert!(!expected.is_empty(), "{query}");
        assert!(rows(&four, &query).await == expected, "{query}");
    }
    // Threads are divided among the captures.
    let two = format!("SELECT * FROM flows('{long}', '{long}')");
    assert!(rows(&eight, &two).await == rows(&one, &two).await);
    assert!(plan(&eight, &two).await.contains("threads=4"));
    assert!(!plan(&one, &two).await.contains("threads"));
}

/// The metrics of a plan count each frame once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn metrics_count_frames_and_octets() {
    let capture = LongCapture::new("metrics", 9 << 20);
    let long = capture.path();
    let len = fs::metadata(&long).unwrap().len() as usize;
    let mut found = Vec::new();
    for (partition_count, files) in [(1, vec![&long]), (4, vec![&long]), (1, vec![&long; 2])] {
        let context = context(partition_count);
        let list = files.iter().map(|file| format!("'{file}'")).collect::<Vec<_>>().join(", ");
        let frame = context.sql(&format!("SELECT protocol FROM flows({list})")).await.unwrap();
        let task = Arc::new(frame.task_ctx());
        let plan = frame.create_physical_plan().await.unwrap();
        collect(Arc::clone(&plan), task).await.unwrap();
        found.push((metric(&plan, "frames"), metric(&plan, "octets")));
    }
    let (frame_count, _) = found[0];
    assert!(frame_count > 3000);
    assert_eq!(found, [(frame_count, len), (frame_count, len), (2 * frame_count, 2 * len)]);
}
