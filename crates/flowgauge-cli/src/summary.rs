//! The summary on standard error: amount and rate of input, and omitted packets by reason.

use std::time::Duration;

use flowgauge::pipeline::PipelineStats;
use flowgauge::source::SourceStats;

use crate::console::say;
use crate::human::{duration, plural, rate};

/// Writes the summary of a run; `result` describes its output.
pub(crate) fn write(stats: &PipelineStats, source: &SourceStats, elapsed: Duration, result: &str) {
    lines(stats, source, elapsed, result).iter().for_each(|line| say(line));
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
    note(stats.dedup.duplicate_count, "packet", "left out as captured twice (--dedup)");
    note(stats.dedup.same_interface_count, "packet", "repeated by the same interface, kept");
    note(stats.outer_packet_count, "packet", "counted once more for a tunnel");
    note(stats.filtered_count, "packet", "left out by the filter");
    note(source.truncated_frame_count, "packet", "captured in part");
    note(stats.checksums.dropped_count, "packet", "left out for a wrong checksum");
    for (name, counts) in
        [("IPv4", &stats.checksums.ipv4), ("TCP", &stats.checksums.tcp), ("UDP", &stats.checksums.udp)]
    {
        let offloaded_count = counts.zero_count + counts.partial_count;
        note(counts.wrong_count, "packet", &format!("with a wrong {name} checksum"));
        note(offloaded_count, "packet", &format!("with a {name} checksum that was left to the network card"));
        note(
            counts.unknown_count,
            "packet",
            &format!("too short to verify the {name} checksum, or in fragments"),
        );
    }
    note(stats.orphan_fragment_count, "fragment", "without the first part of their datagram, of no flow");
    note(stats.fragments.abandoned_count(), "datagram", "in fragments that never became whole");
    note(tracker.without_ports_count, "packet", "without their ports (fragments, cut), counted by addresses");
    note(tracker.too_deep_count, "packet", "nested too deep, counted for the innermost flow within the cap");
    note(tracker.bad_ip_len_count, "packet", "with a length field that contradicts the headers around it");
    note(tracker.late_packet_count, "packet", "with a time before that of an earlier one");
    note(
        stats.doubted_time_count,
        "packet",
        "with a time far ahead of all others, counted at the time before",
    );
    note(source.untimed_frame_count, "packet", "without a time");
    note(
        source.unnamed_interface_count,
        "interface",
        "read as one without a name (too many, or too little --memory)",
    );
    note(tracker.evicted_count(), "flow", "ended early to make room (--max-flows, --memory)");
    note(tracker.extra_refused_count, "segment", "not told apart for want of memory");
    note(tracker.encapsulation_refused_count, "packet", "of unknown encapsulation for want of memory");
    note(
        stats.sessions.suppressed_message_count,
        "message",
        "left out of flows that have more than their packets account for",
    );
    note(source.kernel_drop_count, "packet", "dropped by the kernel");
    note(source.interface_drop_count, "packet", "dropped by the interface");
    note(source.unknown_block_count, "block", "of unknown type in pcapng files, skipped");
    lines
}

/// Formats reasons with counts; only the first few by name.
fn reasons(mut reasons: Vec<(String, u64)>) -> String {
    const NAMED_COUNT: usize = 12;
    if reasons.len() > NAMED_COUNT {
        let rest: u64 = reasons.drain(NAMED_COUNT..).map(|(_, count)| count).sum();
        reasons.push(("others".to_owned(), rest));
    }
    let texts: Vec<_> = reasons.iter().map(|(reason, count)| format!("{count} {reason}")).collect();
    texts.join(", ")
}
