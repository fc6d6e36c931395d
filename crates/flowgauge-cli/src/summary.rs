//! The summary on standard error: amount and rate of input, and omitted packets by reason.

use std::time::Duration;

use flowgauge::export::human::duration;
use flowgauge::pipeline::PipelineStats;
use flowgauge::session::FaultCounts;
use flowgauge::source::SourceStats;

use crate::console::write_line;
use crate::human::{plural, rate};

/// Writes the summary of a run to standard error; `result` describes the output of the run.
pub(crate) fn write(stats: &PipelineStats, source: &SourceStats, elapsed: Duration, result: &str) {
    lines(stats, source, elapsed, result).iter().for_each(|line| write_line(line));
}

fn lines(stats: &PipelineStats, source: &SourceStats, elapsed: Duration, result: &str) -> Vec<String> {
    let tracker = &stats.tracker;
    let seconds = elapsed.as_secs_f64().max(1e-9);
    let mut lines = vec![format!(
        "{} ({} octets) in {} ({}pps, {}bit/s): {result}",
        plural(stats.frame_count, "packet"),
        stats.octet_count,
        duration(elapsed),
        rate(stats.frame_count as f64 / seconds),
        rate(stats.octet_count as f64 * 8.0 / seconds),
    )];
    if stats.skipped.total() > 0 {
        let what = plural(stats.skipped.total(), "packet");
        lines.push(format!("{what} without a flow: {}", reasons(stats.skipped.reasons())));
    }
    let mut note = |count: u64, one: &str, what: &str| {
        if count > 0 {
            lines.push(format!("{} {what}", plural(count, one)));
        }
    };
    note(stats.dedup.duplicate_count, "duplicate packet", "skipped (--dedup)");
    note(
        stats.dedup.same_interface_count,
        "duplicate packet",
        "from the same interface kept (--dedup-between-interfaces)",
    );
    note(stats.outer_packet_count, "packet", "counted again for an outer flow (--tunnels both)");
    note(stats.filtered_count, "packet", "excluded by the filter");
    note(source.truncated_frame_count, "packet", "truncated in the capture");
    note(stats.checksums.dropped_count, "packet", "dropped because of a wrong checksum");
    for (name, counts) in
        [("IPv4", &stats.checksums.ipv4), ("TCP", &stats.checksums.tcp), ("UDP", &stats.checksums.udp)]
    {
        let offloaded_count = counts.zero_count + counts.partial_count;
        note(counts.wrong_count, "packet", &format!("with a wrong {name} checksum"));
        note(offloaded_count, "packet", &format!("with a {name} checksum offloaded to the network card"));
        note(
            counts.unknown_count,
            "packet",
            &format!("with an unverified {name} checksum (truncated or fragmented)"),
        );
    }
    note(stats.orphan_fragment_count, "orphan fragment", "without a flow (the first fragment is missing)");
    note(stats.fragments.abandoned_count(), "fragmented datagram", "not reassembled");
    note(
        tracker.without_ports_count,
        "packet",
        "without ports (fragmented or truncated), counted for their address pair",
    );
    note(
        tracker.too_deep_count,
        "packet",
        "nested too deep, counted for the innermost flow within the limit",
    );
    note(
        tracker.bad_ip_len_count,
        "packet",
        "with a length field that contradicts an outer header or the frame",
    );
    note(tracker.late_packet_count, "packet", "with a timestamp before that of an earlier packet");
    note(
        stats.doubted_time_count,
        "packet",
        "with a timestamp far ahead of all others, replaced by the latest earlier timestamp",
    );
    note(source.untimed_frame_count, "packet", "without a timestamp");
    note(
        source.contradicted_len_count,
        "packet",
        "with more captured octets than on the wire, counted with the octets on the wire",
    );
    note(
        source.unnamed_interface_count,
        "interface",
        "merged into one without a name (too many interfaces, or too little --memory)",
    );
    note(tracker.evicted_count(), "flow", "evicted early (limit of --max-flows or --memory)");
    note(tracker.extra_refused_count, "segment", "not classified because memory was short (--memory)");
    note(
        tracker.encapsulation_refused_count,
        "packet",
        "with an encapsulation that was not recorded because memory was short (--memory)",
    );
    note(stats.sessions.suppressed_message_count, "message", "suppressed by the output limit per flow");
    note(
        stats.sessions.stopped_count,
        "parser",
        &format!("stopped: {}", reasons(faults(&stats.sessions.faults))),
    );
    note(source.kernel_drop_count, "packet", "dropped by the kernel");
    note(source.interface_drop_count, "packet", "dropped by the interface");
    note(
        source.merged_frame_count,
        "packet",
        "longer than the interface permits: segments merged by GRO or TSO, each counted as one packet",
    );
    note(source.invalid_datagram_count, "datagram", "without a frame of the mirror session");
    note(source.refused_connection_count, "connection", "closed, because there were too many");
    note(source.failed_connection_count, "connection", "failed or closed without a capture");
    note(source.unknown_block_count, "pcapng block", "of unknown type skipped");
    lines
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
