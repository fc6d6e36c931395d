//! Conditions on keys, which choose the packets that are tracked, on all captures.
//!
//! With `FLOWGAUGE_CORPUS`, the captures of the corpus are used too.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::{batches, capture, context, plan, rows};

/// Maximum length of a capture that is used, in octets.
const LEN_MAX: u64 = 500_000;

/// Maximum number of conditions on each column of a capture, on the most frequent values.
const VALUE_COUNT_MAX: usize = 2;

/// Keys, and the columns that packets of other flows could change: by time, by quotes in ICMP errors, by messages.
const KEYS: [&str; 5] =
    ["protocol", "source_address", "source_port", "destination_address", "destination_port"];
const OTHERS: &str =
    "start, \"end\", packet_count, reverse_packet_count, flow_end_reason, icmp_error_count, tcp_state,
    history, retransmitted_count, fragment_count, application, application_evidence, community_id";

fn collect(folder: &Path, paths: &mut Vec<PathBuf>) {
    let mut entries: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        let is_capture =
            path.extension().is_some_and(|name| name == "pcap" || name == "pcapng" || name == "cap");
        if path.is_dir() {
            collect(&path, paths);
        } else if is_capture && fs::metadata(&path).unwrap().len() <= LEN_MAX {
            paths.push(path);
        }
    }
}

/// Flows that a condition on keys chooses have the same values as without it, also those that depend on the clock and on ICMP
/// errors.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn values_of_flows_are_the_same_with_a_condition() {
    let mut paths = Vec::new();
    collect(Path::new(&capture("")), &mut paths);
    if let Some(corpus) = std::env::var_os("FLOWGAUGE_CORPUS") {
        collect(&Path::new(&corpus).join("captures"), &mut paths);
    }
    let context = context(1);
    let (mut query_count, mut error_count, mut reasons) = (0, 0, BTreeMap::<String, usize>::new());
    for path in &paths {
        let table = format!("flows('{}')", path.display());
        let all_query = format!("SELECT {}, {OTHERS} FROM {table}", KEYS.join(", "));
        // Not a capture that is read, or one without flows.
        if batches(&context, &format!("SELECT * FROM {table} LIMIT 1")).await.is_err() {
            continue;
        }
        let all = rows(&context, &all_query).await;
        for (index, key) in KEYS.iter().enumerate() {
            let value = |row: &str| row.split('|').nth(index).unwrap_or_default().to_owned();
            let mut counts = BTreeMap::<String, usize>::new();
            all.iter().for_each(|row| *counts.entry(value(row)).or_default() += 1);
            let mut frequent: Vec<_> = counts.into_iter().filter(|(value, _)| !value.is_empty()).collect();
            frequent.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
            for (chosen, _) in frequent.into_iter().take(VALUE_COUNT_MAX) {
                let quote = if key.ends_with("address") { "'" } else { "" };
                let query = format!("{all_query} WHERE {key} = {quote}{chosen}{quote}");
                let expected: Vec<_> = all.iter().filter(|row| value(row) == chosen).cloned().collect();
                assert_eq!(rows(&context, &query).await, expected, "{query}");
                if query_count % 100 == 0 {
                    assert!(plan(&context, &query).await.contains("packets="), "{query}");
                }
                query_count += 1;
                for row in expected {
                    let mut others = row.split('|').skip(KEYS.len() + 4);
                    *reasons.entry(others.next().unwrap().to_owned()).or_default() += 1;
                    error_count += usize::from(others.next() != Some("0"));
                }
            }
        }
    }
    println!(
        "{} captures, {query_count} conditions, {error_count} flows with ICMP errors, {reasons:?}",
        paths.len()
    );
    assert!(error_count > 0 && reasons.len() > 1, "{error_count}, {reasons:?}");
}
