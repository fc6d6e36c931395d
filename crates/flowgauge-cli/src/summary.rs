//! The summary on standard error: amount and time of the input, the result, the speed, and omitted packets by reason.

use std::time::Duration;

use clap::{Args, ValueEnum};
use flowgauge::decode::ChecksumCounts;
use flowgauge::export::human::duration;
use flowgauge::pipeline::PipelineStats;
use flowgauge::session::FaultCounts;
use flowgauge::source::SourceStats;
use serde_json::{Map, Value};

use crate::console::write_line;
use crate::human::{plural, rate};

/// Form of the summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Form {
    Text,
    Json,
}

/// Options of the summary.
#[derive(Debug, Args)]
pub(crate) struct SummaryLineArgs {
    /// Write the summary as text, or as a JSON object with all counts
    #[arg(long, hide_short_help = true, value_enum, value_name = "FORMAT", default_value_t = Form::Text)]
    #[arg(hide_possible_values = true, conflicts_with = "quiet")]
    summary: Form,
}

impl SummaryLineArgs {
    pub(crate) fn is_json(&self) -> bool {
        self.summary == Form::Json
    }

    /// Writes the summary of a run to standard error; `result` describes the output of the run.
    pub(crate) fn write(&self, stats: &PipelineStats, source: &SourceStats, elapsed: Duration, result: &str) {
        match self.summary {
            Form::Text => write(stats, source, elapsed, result),
            Form::Json => write_line(&json(stats, source, elapsed, result).to_string()),
        }
    }
}

/// Writes the summary of a run to standard error as text; `result` describes the output of the run.
pub(crate) fn write(stats: &PipelineStats, source: &SourceStats, elapsed: Duration, result: &str) {
    lines(stats, source, elapsed, result).iter().for_each(|line| write_line(line));
}

/// A number that needs attention if it is not zero.
struct Counter {
    /// Name in JSON.
    name: &'static str,
    count: u64,
    /// What is counted, in the singular.
    one: &'static str,
    what: &'static str,
}

/// Returns the time from the first packet to the latest one.
fn capture_time(stats: &PipelineStats) -> Option<Duration> {
    stats.times.map(|(first, latest)| latest.saturating_since(first))
}

fn lines(stats: &PipelineStats, source: &SourceStats, elapsed: Duration, result: &str) -> Vec<String> {
    let seconds = elapsed.as_secs_f64().max(1e-9);
    let captured = capture_time(stats).map(|time| format!(", {} of capture", duration(time)));
    let mut lines = vec![format!(
        "{} ({} octets{}): {result}; processed in {} ({}pps, {}bit/s)",
        plural(stats.frame_count, "packet"),
        stats.octet_count,
        captured.unwrap_or_default(),
        duration(elapsed),
        rate(stats.frame_count as f64 / seconds),
        rate(stats.octet_count as f64 * 8.0 / seconds),
    )];
    if stats.skipped.total() > 0 {
        let what = plural(stats.skipped.total(), "packet");
        lines.push(format!("{what} without a flow: {}", reasons(stats.skipped.reasons())));
    }
    for Counter { count, one, what, .. } in counters(stats, source) {
        if count > 0 {
            lines.push(format!("{} {what}", plural(count, one)));
        }
    }
    if stats.sessions.stopped_count > 0 {
        let what = plural(stats.sessions.stopped_count, "parser");
        lines.push(format!("{what} stopped: {}", reasons(faults(&stats.sessions.faults))));
    }
    lines
}

fn json(stats: &PipelineStats, source: &SourceStats, elapsed: Duration, result: &str) -> Value {
    let nanoseconds = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    let by_reason = |reasons: Vec<(String, u64)>| -> Map<String, Value> {
        reasons.into_iter().map(|(reason, count)| (reason, count.into())).collect()
    };
    let mut object = Map::new();
    let mut put = |name: &str, value: Value| drop(object.insert(name.to_owned(), value));
    put("packet_count", stats.frame_count.into());
    put("octet_count", stats.octet_count.into());
    put("start", stats.times.map(|(first, _)| first.as_nanos()).into());
    put("end", stats.times.map(|(_, latest)| latest.as_nanos()).into());
    put("capture_time", capture_time(stats).map(nanoseconds).into());
    put("processing_time", nanoseconds(elapsed).into());
    put("flow_count", stats.tracker.started_count.into());
    put("result", result.into());
    put("without_flow_count", stats.skipped.total().into());
    put("without_flow", by_reason(stats.skipped.reasons()).into());
    for Counter { name, count, .. } in counters(stats, source) {
        put(name, count.into());
    }
    put("stopped_parser_count", stats.sessions.stopped_count.into());
    put("stopped_parsers", by_reason(faults(&stats.sessions.faults)).into());
    object.into()
}

/// Returns all numbers that need attention if they are not zero.
fn counters(stats: &PipelineStats, source: &SourceStats) -> Vec<Counter> {
    let PipelineStats { checksums, tracker, dedup, .. } = stats;
    let offloaded = |counts: &ChecksumCounts| counts.zero_count + counts.partial_count;
    let counter = |name, count, one, what| Counter { name, count, one, what };
    vec![
        counter("duplicate_count", dedup.duplicate_count, "duplicate packet", "skipped (--dedup)"),
        counter(
            "duplicate_of_same_interface_count",
            dedup.same_interface_count,
            "duplicate packet",
            "from the same interface kept (--dedup-between-interfaces)",
        ),
        counter(
            "outer_packet_count",
            stats.outer_packet_count,
            "packet",
            "counted again for an outer flow (--tunnels both)",
        ),
        counter("filtered_count", stats.filtered_count, "packet", "excluded by the filter"),
        counter("truncated_count", source.truncated_frame_count, "packet", "truncated in the capture"),
        counter(
            "dropped_checksum_count",
            checksums.dropped_count,
            "packet",
            "dropped because of a wrong checksum",
        ),
        counter(
            "wrong_ipv4_checksum_count",
            checksums.ipv4.wrong_count,
            "packet",
            "with a wrong IPv4 checksum",
        ),
        counter(
            "offloaded_ipv4_checksum_count",
            offloaded(&checksums.ipv4),
            "packet",
            "with a IPv4 checksum offloaded to the network card",
        ),
        counter(
            "unverified_ipv4_checksum_count",
            checksums.ipv4.unknown_count,
            "packet",
            "with an unverified IPv4 checksum (truncated or fragmented)",
        ),
        counter("wrong_tcp_checksum_count", checksums.tcp.wrong_count, "packet", "with a wrong TCP checksum"),
        counter(
            "offloaded_tcp_checksum_count",
            offloaded(&checksums.tcp),
            "packet",
            "with a TCP checksum offloaded to the network card",
        ),
        counter(
            "unverified_tcp_checksum_count",
            checksums.tcp.unknown_count,
            "packet",
            "with an unverified TCP checksum (truncated or fragmented)",
        ),
        counter("wrong_udp_checksum_count", checksums.udp.wrong_count, "packet", "with a wrong UDP checksum"),
        counter(
            "offloaded_udp_checksum_count",
            offloaded(&checksums.udp),
            "packet",
            "with a UDP checksum offloaded to the network card",
        ),
        counter(
            "unverified_udp_checksum_count",
            checksums.udp.unknown_count,
            "packet",
            "with an unverified UDP checksum (truncated or fragmented)",
        ),
        counter(
            "orphan_fragment_count",
            stats.orphan_fragment_count,
            "orphan fragment",
            "without a flow (the first fragment is missing)",
        ),
        counter(
            "abandoned_datagram_count",
            stats.fragments.abandoned_count(),
            "fragmented datagram",
            "not reassembled",
        ),
        counter(
            "without_ports_count",
            tracker.without_ports_count,
            "packet",
            "without ports (fragmented or truncated), counted for their address pair",
        ),
        counter(
            "too_deep_count",
            tracker.too_deep_count,
            "packet",
            "nested too deep, counted for the innermost flow within the limit",
        ),
        counter(
            "bad_ip_len_count",
            tracker.bad_ip_len_count,
            "packet",
            "with a length field that contradicts an outer header or the frame",
        ),
        counter(
            "late_packet_count",
            tracker.late_packet_count,
            "packet",
            "with a timestamp before that of an earlier packet",
        ),
        counter(
            "doubted_time_count",
            stats.doubted_time_count,
            "packet",
            "with a timestamp far ahead of all others, replaced by the latest earlier timestamp",
        ),
        counter("untimed_count", source.untimed_frame_count, "packet", "without a timestamp"),
        counter(
            "contradicted_len_count",
            source.contradicted_len_count,
            "packet",
            "with more captured octets than on the wire, counted with the octets on the wire",
        ),
        counter(
            "unnamed_interface_count",
            source.unnamed_interface_count,
            "interface",
            "merged into one without a name (too many interfaces, or too little --memory)",
        ),
        counter(
            "evicted_flow_count",
            tracker.evicted_count(),
            "flow",
            "evicted early (limit of --max-flows or --memory)",
        ),
        counter(
            "unclassified_segment_count",
            tracker.extra_refused_count,
            "segment",
            "not classified because memory was short (--memory)",
        ),
        counter(
            "unrecorded_encapsulation_count",
            tracker.encapsulation_refused_count,
            "packet",
            "with an encapsulation that was not recorded because memory was short (--memory)",
        ),
        counter(
            "suppressed_message_count",
            stats.sessions.suppressed_message_count,
            "message",
            "suppressed by the output limit per flow",
        ),
        counter("kernel_drop_count", source.kernel_drop_count, "packet", "dropped by the kernel"),
        counter("interface_drop_count", source.interface_drop_count, "packet", "dropped by the interface"),
        counter(
            "merged_count",
            source.merged_frame_count,
            "packet",
            "longer than the interface permits: segments merged by GRO or TSO, each counted as one packet",
        ),
        counter(
            "invalid_datagram_count",
            source.invalid_datagram_count,
            "datagram",
            "without a frame of the mirror session",
        ),
        counter(
            "refused_connection_count",
            source.refused_connection_count,
            "connection",
            "closed, because there were too many",
        ),
        counter(
            "failed_connection_count",
            source.failed_connection_count,
            "connection",
            "failed or closed without a capture",
        ),
        counter("unknown_block_count", source.unknown_block_count, "pcapng block", "of unknown type skipped"),
    ]
}

/// Returns the faults as text with their numbers of parsers, the most frequent fault first.
fn faults(counts: &FaultCounts) -> Vec<(String, u64)> {
    let mut faults: Vec<_> =
        counts.iter().map(|(protocol, reason, count)| (format!("{protocol} {reason}"), count)).collect();
    faults.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    faults
}

/// Formats reasons for omitted packets with their counts; only the first few are named.
fn reasons(mut reasons: Vec<(String, u64)>) -> String {
    const NAMED_COUNT: usize = 12;
    if reasons.len() > NAMED_COUNT {
        let rest: u64 = reasons.drain(NAMED_COUNT..).map(|(_, count)| count).sum();
        reasons.push(("other reasons".to_owned(), rest));
    }
    let texts: Vec<_> = reasons.iter().map(|(reason, count)| format!("{count} {reason}")).collect();
    texts.join(", ")
}
