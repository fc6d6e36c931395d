//! Counters of a source.

use crate::base::Timestamp;

/// Counts of the frames, blocks and errors that a source has read so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct SourceStats {
    /// Number of frames that the source returned.
    pub frame_count: u64,
    /// Number of captured octets of all frames that the source returned.
    pub captured_octet_count: u64,
    /// Number of octets on the wire of all frames that the source returned.
    pub wire_octet_count: u64,
    /// Number of frames that were truncated by the capture.
    pub truncated_frame_count: u64,
    /// Number of frames with more captured octets than their length on the wire, which is counted in any case.
    pub contradicted_len_count: u64,
    /// Number of frames with a timestamp before that of the previous frame in the same file.
    pub time_step_back_count: u64,
    /// Number of frames that have no timestamp in the file (pcapng Simple Packet Blocks); their timestamp is
    /// `Timestamp::ZERO`.
    pub untimed_frame_count: u64,
    /// Number of sections of pcapng files that were read, each of which starts with a Section Header Block.
    pub section_count: u64,
    /// Number of interfaces that pcapng files describe beyond
    /// [`Limits::interface_count_max`](crate::base::Limits::interface_count_max), or for whose descriptions
    /// there was not enough memory: the frames of all these interfaces have the index of one interface
    /// without a name.
    pub unnamed_interface_count: u64,
    /// Number of pcapng Name Resolution Blocks that were skipped.
    pub name_resolution_block_count: u64,
    /// Number of pcapng Interface Statistics Blocks that were skipped.
    pub interface_statistics_block_count: u64,
    /// Number of pcapng Decryption Secrets Blocks that were skipped.
    pub decryption_secrets_block_count: u64,
    /// Number of pcapng systemd Journal Export Blocks that were skipped.
    pub systemd_journal_block_count: u64,
    /// Number of pcapng Custom Blocks that were skipped, both those that may be copied to another file and
    /// those that may not.
    pub custom_block_count: u64,
    /// Number of pcapng blocks of unknown types that were skipped.
    pub unknown_block_count: u64,
    /// Number of invalid records and blocks; reading of a file ends at the first invalid one.
    pub bad_block_count: u64,
    /// Number of files and streams that ended within a record.
    pub truncated_file_count: u64,
    /// Number of files and streams whose compressed data was damaged or truncated.
    pub damaged_compression_count: u64,
    /// Number of frames that the kernel dropped because its buffer was full (live capture).
    pub kernel_drop_count: u64,
    /// Number of frames that the network interface or its driver dropped (live capture).
    pub interface_drop_count: u64,
    /// Number of packets that were dropped because they exceed the buffer of a TUN or TAP device.
    pub oversized_frame_count: u64,
    /// Number of frames that are super-packets of segmentation offload (TUN and TAP devices).
    pub super_packet_count: u64,
    /// Number of frames that are longer than the interface sends or receives: segments that the kernel or the network
    /// card merged (GRO, TSO). Each is one frame, because the capture does not state the number of segments (live
    /// capture).
    pub merged_frame_count: u64,
    /// Number of times at which the network interface was found to be disabled (live capture).
    pub interface_down_count: u64,
    /// Number of datagrams that contain no frame in the encapsulation of the mirror session.
    pub invalid_datagram_count: u64,
    /// Number of connections that were closed because there were too many.
    pub refused_connection_count: u64,
    /// Number of connections that could not be made, ended with an error, or were closed because they did not send a
    /// capture.
    pub failed_connection_count: u64,
}

impl std::ops::AddAssign for SourceStats {
    /// Adds the counts of another file to this one.
    fn add_assign(&mut self, other: Self) {
        self.frame_count += other.frame_count;
        self.captured_octet_count += other.captured_octet_count;
        self.wire_octet_count += other.wire_octet_count;
        self.truncated_frame_count += other.truncated_frame_count;
        self.contradicted_len_count += other.contradicted_len_count;
        self.time_step_back_count += other.time_step_back_count;
        self.untimed_frame_count += other.untimed_frame_count;
        self.section_count += other.section_count;
        self.unnamed_interface_count += other.unnamed_interface_count;
        self.name_resolution_block_count += other.name_resolution_block_count;
        self.interface_statistics_block_count += other.interface_statistics_block_count;
        self.decryption_secrets_block_count += other.decryption_secrets_block_count;
        self.systemd_journal_block_count += other.systemd_journal_block_count;
        self.custom_block_count += other.custom_block_count;
        self.unknown_block_count += other.unknown_block_count;
        self.bad_block_count += other.bad_block_count;
        self.truncated_file_count += other.truncated_file_count;
        self.damaged_compression_count += other.damaged_compression_count;
        self.kernel_drop_count += other.kernel_drop_count;
        self.interface_drop_count += other.interface_drop_count;
        self.oversized_frame_count += other.oversized_frame_count;
        self.super_packet_count += other.super_packet_count;
        self.merged_frame_count += other.merged_frame_count;
        self.interface_down_count += other.interface_down_count;
        self.invalid_datagram_count += other.invalid_datagram_count;
        self.refused_connection_count += other.refused_connection_count;
        self.failed_connection_count += other.failed_connection_count;
    }
}

/// Counts the frames of one capture as they are read.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) stats: SourceStats,
    last: Timestamp,
}

impl Tally {
    #[inline]
    pub(super) fn timed_frame(&mut self, timestamp: Timestamp, captured_len: u32, wire_len: u32) {
        self.stats.time_step_back_count += u64::from(timestamp < self.last);
        self.last = timestamp;
        self.frame(captured_len, wire_len);
    }

    pub(super) fn untimed_frame(&mut self, captured_len: u32, wire_len: u32) {
        self.stats.untimed_frame_count += 1;
        self.frame(captured_len, wire_len);
    }

    #[inline]
    fn frame(&mut self, captured_len: u32, wire_len: u32) {
        self.stats.frame_count += 1;
        self.stats.captured_octet_count += u64::from(captured_len);
        self.stats.wire_octet_count += u64::from(wire_len);
        if captured_len != wire_len {
            self.stats.truncated_frame_count += u64::from(captured_len < wire_len);
            self.stats.contradicted_len_count += u64::from(captured_len > wire_len);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_step_back_in_time_is_counted_once() {
        let mut tally = Tally::default();
        for second in [5, 6, 4, 5, 6, 6] {
            tally.timed_frame(Timestamp::from_parts(second, 0), 60, 100);
        }
        let mut sum = tally.stats;
        sum += tally.stats;
        assert_eq!((sum.time_step_back_count, sum.frame_count, sum.truncated_frame_count), (2, 12, 12));
        assert_eq!((sum.captured_octet_count, sum.wire_octet_count), (720, 1200));
    }
}
