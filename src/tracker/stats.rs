//! Counters of the flow tracker.

use crate::base::EndReason;

/// Counters since the tracker was created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct TrackerStats {
    /// Number of tracked packets.
    pub packet_count: u64,
    /// Number of octets of the tracked packets on the wire.
    pub octet_count: u64,
    /// Number of flows that began.
    pub started_count: u64,
    /// Number of flows that were open in the checkpoint from which the tracker was restored.
    pub restored_count: u64,
    /// Maximum number of flows that were open at the same time.
    pub open_count_max: u64,
    /// Number of records that ended by an active timeout; their flows continued.
    pub active_timeout_count: u64,
    /// Number of records that ended when their connection closed, with a [linger timeout](super::Timeouts::linger) of
    /// zero; their flows were kept for late segments.
    pub close_record_count: u64,
    /// Number of flows that ended by the idle timeout.
    pub idle_timeout_count: u64,
    /// Number of flows that were ended by their protocol.
    pub end_of_flow_count: u64,
    /// Number of flows that were ended by the caller or the end of the input.
    pub forced_end_count: u64,
    /// Number of evicted TCP flows that were unanswered or half-open.
    pub evicted_half_open_count: u64,
    /// Number of evicted flows without a reply, other than incomplete TCP handshakes.
    pub evicted_unanswered_count: u64,
    /// Number of evicted TCP flows that were closed and kept for late segments.
    pub evicted_closed_count: u64,
    /// Number of evicted flows with a reply that were neither in a handshake nor closed.
    pub evicted_answered_count: u64,
    /// Number of flows that were evicted because too many hashes collide, which does not happen by chance: an attacker
    /// knows the seeds.
    pub evicted_by_hash_count: u64,
    /// Number of evicted flows that were evicted because the memory budget, not the number of flows, was exhausted.
    /// They are included in the counters of evicted flows by kind.
    pub evicted_by_budget_count: u64,
    /// Number of packets with a flow that was found in the hot cache. The only counter that depends on how packets are
    /// divided into batches.
    pub hot_hit_count: u64,
    /// Number of packets with a timestamp before that of an earlier packet.
    pub late_packet_count: u64,
    /// Number of times that stronger evidence reversed the direction of a flow.
    pub direction_change_count: u64,
    /// Number of RST segments outside the window, which are possibly forged.
    pub bad_reset_count: u64,
    /// Number of SYNs with a new sequence number on open flows.
    pub syn_on_open_flow_count: u64,
    /// Number of ICMP errors that quoted a packet of an open flow.
    pub icmp_error_matched_count: u64,
    /// Number of ICMP errors that quoted a packet of no open flow, or too little of it to identify the flow.
    pub icmp_error_unmatched_count: u64,
    /// Number of IP fragments, each counted as a packet of a flow.
    pub fragment_count: u64,
    /// Number of packets of TCP, UDP and SCTP that were counted under their address pair because their ports are
    /// unknown.
    pub without_ports_count: u64,
    /// Number of packets that were truncated before the end of the transport header.
    pub truncated_count: u64,
    /// Number of packets with a length field that contradicts the outer data: the IP length is zero or too large, or
    /// the length in UDP or in an outer header is too large.
    pub bad_ip_len_count: u64,
    /// Number of packets with a payload that is a tunnel nested deeper than [`Limits`](crate::base::Limits) allows; the
    /// tunnel was not parsed.
    pub too_deep_count: u64,
    /// Number of unusual segments that were not classified because no memory was left for the additional state.
    pub extra_refused_count: u64,
    /// Number of packets for which the encapsulation, or the flow that carries them, is not recorded because no memory
    /// was left.
    pub encapsulation_refused_count: u64,
}

impl TrackerStats {
    pub(super) fn count_end(&mut self, reason: EndReason) {
        match reason {
            EndReason::IdleTimeout => self.idle_timeout_count += 1,
            EndReason::ActiveTimeout => self.active_timeout_count += 1,
            EndReason::EndOfFlow => self.end_of_flow_count += 1,
            EndReason::ForcedEnd => self.forced_end_count += 1,
            // Counted by the group of the evicted flow.
            EndReason::LackOfResources => {}
        }
    }

    /// Adds the counters of another tracker that tracked a different part of the flows. The sum of `open_count_max`
    /// is an upper bound, because each tracker reached its own maximum at a different time.
    pub(crate) fn add(&mut self, other: &Self) {
        let Self {
            packet_count,
            octet_count,
            started_count,
            restored_count,
            open_count_max,
            active_timeout_count,
            close_record_count,
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
            truncated_count,
            bad_ip_len_count,
            too_deep_count,
            extra_refused_count,
            encapsulation_refused_count,
        } = other;
        self.packet_count += packet_count;
        self.octet_count += octet_count;
        self.started_count += started_count;
        self.restored_count += restored_count;
        self.open_count_max += open_count_max;
        self.active_timeout_count += active_timeout_count;
        self.close_record_count += close_record_count;
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
        self.truncated_count += truncated_count;
        self.bad_ip_len_count += bad_ip_len_count;
        self.too_deep_count += too_deep_count;
        self.extra_refused_count += extra_refused_count;
        self.encapsulation_refused_count += encapsulation_refused_count;
    }

    /// Replaces the counters of packets by those of `other`, and keeps the counters of flows.
    pub(super) const fn keep_packets_of(&mut self, other: &Self) {
        *self = Self {
            started_count: self.started_count,
            restored_count: self.restored_count,
            open_count_max: self.open_count_max,
            active_timeout_count: self.active_timeout_count,
            close_record_count: self.close_record_count,
            idle_timeout_count: self.idle_timeout_count,
            end_of_flow_count: self.end_of_flow_count,
            forced_end_count: self.forced_end_count,
            evicted_half_open_count: self.evicted_half_open_count,
            evicted_unanswered_count: self.evicted_unanswered_count,
            evicted_closed_count: self.evicted_closed_count,
            evicted_answered_count: self.evicted_answered_count,
            evicted_by_hash_count: self.evicted_by_hash_count,
            evicted_by_budget_count: self.evicted_by_budget_count,
            extra_refused_count: self.extra_refused_count,
            encapsulation_refused_count: self.encapsulation_refused_count,
            ..*other
        };
    }

    /// Returns whether a limit has changed a record.
    pub(crate) const fn is_limited(&self) -> bool {
        self.evicted_count() + self.extra_refused_count + self.encapsulation_refused_count > 0
    }

    /// Removes a flow that ended, and that another tracker has also counted.
    pub(crate) fn uncount(&mut self, reason: EndReason) {
        let count = match reason {
            EndReason::IdleTimeout => &mut self.idle_timeout_count,
            EndReason::ActiveTimeout => &mut self.active_timeout_count,
            EndReason::EndOfFlow => &mut self.end_of_flow_count,
            EndReason::ForcedEnd => &mut self.forced_end_count,
            EndReason::LackOfResources => return,
        };
        *count = count.saturating_sub(1);
    }

    /// Returns the number of evicted flows.
    #[must_use]
    pub const fn evicted_count(&self) -> u64 {
        self.evicted_half_open_count
            + self.evicted_unanswered_count
            + self.evicted_closed_count
            + self.evicted_answered_count
            + self.evicted_by_hash_count
    }

    /// Returns the number of flows that ended.
    #[must_use]
    pub const fn ended_count(&self) -> u64 {
        self.idle_timeout_count + self.end_of_flow_count + self.forced_end_count + self.evicted_count()
    }
}
