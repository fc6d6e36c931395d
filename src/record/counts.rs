//! Counts that a record of another program does not have.

use super::flow_record::{FieldSet, FlowRecord, SideRecord};
use super::schema::{field_index, field_set};

/// Columns of the counts of one direction.
struct Columns {
    packet_count: usize,
    octet_count: usize,
    ip_octet_count: usize,
    payload_octet_count: usize,
}

const FORWARD: Columns = Columns {
    packet_count: field_index("packet_count"),
    octet_count: field_index("octet_count"),
    ip_octet_count: field_index("ip_octet_count"),
    payload_octet_count: field_index("payload_octet_count"),
};

const REVERSE: Columns = Columns {
    packet_count: field_index("reverse_packet_count"),
    octet_count: field_index("reverse_octet_count"),
    ip_octet_count: field_index("reverse_ip_octet_count"),
    payload_octet_count: field_index("reverse_payload_octet_count"),
};

/// Counts that sums and formats without absent values use.
const SUMMED: FieldSet = field_set(&[
    "packet_count",
    "octet_count",
    "ip_octet_count",
    "reverse_packet_count",
    "reverse_octet_count",
    "reverse_ip_octet_count",
]);

/// Returns whether a record with these fields has all counts of which sums are made.
pub(crate) fn has_summed_counts(known: FieldSet) -> bool {
    known.intersection(SUMMED) == SUMMED
}

impl FlowRecord {
    /// Sets counts that the record does not know to the nearest ones that it knows, so that sums and formats without
    /// absent values do not state zero: octets on the wire to those of IP packets, those that left the exporter, or those
    /// of payload, and packets to those that left the exporter. The columns remain unknown. Constant time.
    pub(crate) fn complete_counts(&mut self) {
        if !has_summed_counts(self.known) {
            self.complete_unknown_counts();
        }
    }

    fn complete_unknown_counts(&mut self) {
        let Self { known, forward, reverse, exported, .. } = self;
        let (egress, reverse_egress) = match exported.as_deref() {
            Some(part) => (
                (part.egress_packet_count, part.egress_octet_count),
                (part.reverse_egress_packet_count, part.reverse_egress_octet_count),
            ),
            None => ((None, None), (None, None)),
        };
        complete(*known, forward, &FORWARD, egress);
        complete(*known, reverse, &REVERSE, reverse_egress);
    }
}

/// Completes the counts of one direction, of which the exporter forwarded these packets and octets.
fn complete(known: FieldSet, side: &mut SideRecord, columns: &Columns, egress: (Option<u64>, Option<u64>)) {
    let counters = &mut side.counters;
    let of = |column, count| known.contains(column).then_some(count);
    let octets = of(columns.octet_count, counters.octet_count);
    let ip_octets = of(columns.ip_octet_count, counters.ip_octet_count);
    let payload = of(columns.payload_octet_count, counters.payload_octet_count);
    let ip_octets = ip_octets.or(egress.1).or(payload);
    counters.octet_count = octets.or(ip_octets).unwrap_or_default();
    counters.ip_octet_count = ip_octets.or(octets).unwrap_or_default();
    if !known.contains(columns.packet_count) {
        counters.packet_count = egress.0.unwrap_or_default();
    }
}
