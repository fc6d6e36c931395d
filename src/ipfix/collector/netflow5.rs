//! NetFlow version 5, whose records have a fixed format.

use std::net::IpAddr;

use super::steps::finish_icmp;
use super::times::BootTime;
use super::{Collected, CollectorStats};
use crate::base::{IpProtocol, TcpFlags, Timestamp};
use crate::codec::{ReadError, Reader};
use crate::record::{Draft, EXPORTED, FieldSet, field_set};

/// Version number of a NetFlow message of version 5.
pub(super) const VERSION: u16 = 5;

/// Length of a record in octets.
const RECORD_LEN: usize = 48;

/// Fields that a record contains, or that follow from those.
const FIELDS: FieldSet = field_set(&[
    "protocol",
    "source_address",
    "source_port",
    "destination_address",
    "destination_port",
    "start",
    "end",
    "duration",
    "packet_count",
    "ip_octet_count",
    "tcp_flags",
    "dscp",
    "community_id",
    "icmp_type",
    "icmp_code",
    "interface",
])
.union(EXPORTED);

/// A message with its header.
pub(super) struct Message<'a> {
    boot_time: BootTime,
    pub(super) sequence_number: u32,
    pub(super) record_count: u32,
    /// Type and slot of the switching engine, which have their own sequence numbers.
    pub(super) engine: u16,
    /// Number of packets of which one is sampled, or zero.
    interval: u32,
    records: Reader<'a>,
}

impl<'a> Message<'a> {
    /// Parses the header of a message after its version; `None` if it is truncated.
    pub(super) fn parse(mut reader: Reader<'a>) -> Option<Self> {
        let record_count = reader.be::<u16>().ok()?;
        let uptime_ms = reader.be::<u32>().ok()?;
        let seconds = reader.be::<u32>().ok()?;
        let nanos = reader.be::<u32>().ok()?;
        let sequence_number = reader.be::<u32>().ok()?;
        let engine = reader.be::<u16>().ok()?;
        // The highest two bits are the method.
        let interval = u32::from(reader.be::<u16>().ok()? & 0x3fff);
        let boot_time = BootTime::new(Timestamp::from_parts(seconds.into(), nanos.into()), uptime_ms);
        let record_count = record_count.into();
        Some(Self { boot_time, sequence_number, record_count, engine, interval, records: reader })
    }

    /// Decodes all records in `draft`, which is empty; returns `None` if there are fewer than the header states.
    pub(super) fn records(
        mut self,
        draft: &mut Draft,
        stats: &mut CollectorStats,
        emit: &mut impl FnMut(Collected<'_>),
    ) -> Option<()> {
        // Filled again for each record, because all records have the same fields.
        let mut known = FIELDS;
        if self.interval > 0 {
            draft.record.sampling_interval = Some(self.interval);
            known = FIELDS.union(const { field_set(&["sampling_interval"]) });
        }
        for _ in 0..self.record_count {
            self.record(draft).ok()?;
            let record = &mut draft.record;
            record.known = known;
            if record.end < record.start {
                stats.invalid_value_count += 1;
                record.end = record.start;
                record.known = known.difference(const { field_set(&["end", "duration"]) });
            }
            record.complete_counts();
            if let Ok(record) = draft.finish() {
                stats.record_count += 1;
                emit(Collected::Record(record));
            }
        }
        Some(())
    }

    /// Sets all fields of a record of this version in `draft`.
    #[inline(always)]
    fn record(&mut self, draft: &mut Draft) -> Result<(), ReadError> {
        let mut record = Reader::new(self.records.bytes(RECORD_LEN)?);
        draft.source.0 = Some(IpAddr::from(record.array::<4>()?));
        draft.destination.0 = Some(IpAddr::from(record.array::<4>()?));
        let _next_hop: u32 = record.be()?;
        draft.record.interface = record.be::<u16>()?.into();
        draft.exported().egress_interface = Some(record.be::<u16>()?.into());
        let counters = &mut draft.record.forward.counters;
        counters.packet_count = record.be::<u32>()?.into();
        counters.ip_octet_count = record.be::<u32>()?.into();
        draft.record.start = self.boot_time.time(record.be()?);
        draft.record.end = self.boot_time.time(record.be()?);
        draft.source.1 = Some(record.be()?);
        draft.destination.1 = Some(record.be()?);
        let _padding: u8 = record.be()?;
        draft.record.forward.tcp_flags = TcpFlags(record.be::<u8>()?.into());
        draft.protocol = IpProtocol(record.be()?);
        draft.record.forward.dscp = Some(record.be::<u8>()? >> 2);
        let exported = draft.exported();
        (exported.source_as, exported.destination_as) =
            (Some(record.be::<u16>()?.into()), Some(record.be::<u16>()?.into()));
        // The version has no elements for ICMP: type and code are in the destination port. Sets or removes both.
        finish_icmp(draft, true);
        Ok(())
    }
}
