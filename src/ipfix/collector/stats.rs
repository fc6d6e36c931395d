//! Counters of a collector.

/// Counters of a [`Collector`](super::Collector).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct CollectorStats {
    /// Messages that were received.
    pub message_count: u64,
    /// Octets of these messages.
    pub octet_count: u64,
    /// Flow records that were emitted.
    pub record_count: u64,
    /// Sampled packets that were emitted.
    pub packet_count: u64,
    /// Sampled packets of a link layer that is not supported, or without a header.
    pub unsupported_packet_count: u64,
    /// Samples of the counters of interfaces, in sFlow, which are skipped.
    pub counter_sample_count: u64,
    /// Notifications of packets that a device discarded, in sFlow, which are not samples.
    pub discarded_packet_count: u64,
    /// Samples of formats of vendors and other unknown ones, in sFlow, which are skipped.
    pub skipped_sample_count: u64,
    /// Data about sampled packets that are skipped, in sFlow: all formats but headers, addresses, extended switch data and
    /// extended gateway data.
    pub skipped_data_count: u64,
    /// Templates that were received, with repetitions.
    pub template_count: u64,
    /// Data records of options templates.
    pub options_record_count: u64,
    /// Data records without two addresses of one version of IP.
    pub unkeyed_record_count: u64,
    /// Values that a field cannot have. The fields are absent in their records.
    pub invalid_value_count: u64,
    /// Sets whose template is not known: it was lost, evicted, or refused.
    pub unknown_template_set_count: u64,
    /// Messages of an unknown version, or whose lengths contradict each other. Records before the contradiction were
    /// emitted.
    pub malformed_message_count: u64,
    /// Templates that were refused: malformed, or too large.
    pub refused_template_count: u64,
    /// Domains that were evicted with their templates.
    pub evicted_domain_count: u64,
    /// Data records (for NetFlow version 9, messages) that were lost according to the sequence numbers.
    pub lost_count: u64,
    /// Messages that arrived after a later one. Their records were counted as lost when the later one arrived.
    pub reordered_message_count: u64,
    /// Restarts of exporters according to the sequence numbers.
    pub restart_count: u64,
}
