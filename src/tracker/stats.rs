//! What the tracker counts about itself.

use crate::base::EndReason;

/// Counts since the tracker was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct TrackerStats {
    /// Packets.
    pub packet_count: u64,
    /// Octets on the wire.
    pub octet_count: u64,
    /// Flows begun.
    pub started_count: u64,
    /// Flows that were open at once, at most.
    pub open_count_max: u64,
    /// Records that ended by an active timeout; the flows went on.
    pub active_timeout_count: u64,
    /// Flows ended for want of packets.
    pub idle_timeout_count: u64,
    /// Flows ended by their protocol.
    pub end_of_flow_count: u64,
    /// Flows ended by the caller or the end of input.
    pub forced_end_count: u64,
    /// Flows that made room: unanswered or half-open TCP.
    pub evicted_half_open_count: u64,
    /// Flows that made room: never answered.
    pub evicted_unanswered_count: u64,
    /// Flows that made room: closed ones that lingered.
    pub evicted_closed_count: u64,
    /// Flows that made room: answered ones.
    pub evicted_answered_count: u64,
    /// Flows that made room because the hashes of too many agree, which does not happen by chance: someone knows the seeds.
    pub evicted_by_hash_count: u64,
    /// Flows, of those before, that made room because the budget, not the number of flows, was exhausted.
    pub evicted_by_budget_count: u64,
    /// Packets whose flow the hot cache knew. The one number that depends on how packets are cut into batches.
    pub hot_hit_count: u64,
    /// Packets with a time before that of an earlier one.
    pub late_packet_count: u64,
    /// Directions turned over.
    pub direction_change_count: u64,
    /// Resets out of window.
    pub bad_reset_count: u64,
    /// SYNs with a new sequence number on open flows.
    pub syn_on_open_flow_count: u64,
    /// ICMP errors that quoted a packet of an open flow.
    pub icmp_error_matched_count: u64,
    /// ICMP errors that quoted a packet of no open flow, or too little to tell.
    pub icmp_error_unmatched_count: u64,
    /// Fragments, each a packet of a flow.
    pub fragment_count: u64,
    /// Packets of TCP, UDP and SCTP counted under their address pair because no ports were seen.
    pub without_ports_count: u64,
    /// Packets whose capture ends before the transport header does.
    pub cut_count: u64,
    /// Packets with a length field that contradicts what encloses its header: that of IP is zero or too large, or that of
    /// UDP or of a header around the packet is too large.
    pub bad_ip_len_count: u64,
    /// Packets whose payload is a tunnel nested deeper than [`Limits`](crate::base::Limits) allows; it was not looked into.
    pub too_deep_count: u64,
    /// Unusual segments not told apart because no memory was left for it.
    pub extra_refused_count: u64,
    /// Packets of which it is not known what enclosed or carried them because no memory was left for it.
    pub enclosure_refused_count: u64,
}

impl TrackerStats {
    pub(super) fn count_end(&mut self, reason: EndReason) {
        match reason {
            EndReason::IdleTimeout => self.idle_timeout_count += 1,
            EndReason::ActiveTimeout => self.active_timeout_count += 1,
            EndReason::EndOfFlow => self.end_of_flow_count += 1,
            EndReason::ForcedEnd => self.forced_end_count += 1,
            // Counted by the group that made room.
            EndReason::LackOfResources => {}
        }
    }

    /// What several trackers counted that each had a part of the flows. Of `open_count_max`, which each reached at a time of its
    /// own, the sum is an upper bound.
    pub(crate) fn add(&mut self, other: &Self) {
        let Self {
            packet_count,
            octet_count,
            started_count,
            open_count_max,
            active_timeout_count,
            idle_timeout_count,
            end_of_flow_count,
            forced_end_count,
            evicted_half_open_count,
            evicted_unanswered_count,
            evicted_closed_count,
            evicted_answered_count,
            evicted_by_hash_count,
            evicted_by_budget_count,
            hot_hit_count,
            late_packet_count,
            direction_change_count,
            bad_reset_count,
            syn_on_open_flow_count,
            icmp_error_matched_count,
            icmp_error_unmatched_count,
            fragment_count,
            without_ports_count,
            cut_count,
            bad_ip_len_count,
            too_deep_count,
            extra_refused_count,
            enclosure_refused_count,
        } = other;
        self.packet_count += packet_count;
        self.octet_count += octet_count;
        self.started_count += started_count;
        self.open_count_max += open_count_max;
        self.active_timeout_count += active_timeout_count;
        self.idle_timeout_count += idle_timeout_count;
        self.end_of_flow_count += end_of_flow_count;
        self.forced_end_count += forced_end_count;
        self.evicted_half_open_count += evicted_half_open_count;
        self.evicted_unanswered_count += evicted_unanswered_count;
        self.evicted_closed_count += evicted_closed_count;
        self.evicted_answered_count += evicted_answered_count;
        self.evicted_by_hash_count += evicted_by_hash_count;
        self.evicted_by_budget_count += evicted_by_budget_count;
        self.hot_hit_count += hot_hit_count;
        self.late_packet_count += late_packet_count;
        self.direction_change_count += direction_change_count;
        self.bad_reset_count += bad_reset_count;
        self.syn_on_open_flow_count += syn_on_open_flow_count;
        self.icmp_error_matched_count += icmp_error_matched_count;
        self.icmp_error_unmatched_count += icmp_error_unmatched_count;
        self.fragment_count += fragment_count;
        self.without_ports_count += without_ports_count;
        self.cut_count += cut_count;
        self.bad_ip_len_count += bad_ip_len_count;
        self.too_deep_count += too_deep_count;
        self.extra_refused_count += extra_refused_count;
        self.enclosure_refused_count += enclosure_refused_count;
    }

    /// Flows that made room.
    #[must_use]
    pub const fn evicted_count(&self) -> u64 {
        self.evicted_half_open_count
            + self.evicted_unanswered_count
            + self.evicted_closed_count
            + self.evicted_answered_count
            + self.evicted_by_hash_count
    }

    /// Flows that ended.
    #[must_use]
    pub const fn ended_count(&self) -> u64 {
        self.idle_timeout_count + self.end_of_flow_count + self.forced_end_count + self.evicted_count()
    }
}
