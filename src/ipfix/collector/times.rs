//! Times of records, absolute or relative to the message, the record or the exporter.

use super::sampling::{Samplers, Sampling};
use crate::base::{NANOS_PER_SECOND, Timestamp};
use crate::record::{Draft, ExportedRecord, FieldSet, FlowRecord, field_index, field_set};

/// Unit of a time, and the point to which it refers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TimeUnit {
    /// A time that depends on nothing else.
    Absolute(AbsoluteUnit),
    /// Microseconds before the message was exported.
    MicrosecondsBeforeExport,
    /// Milliseconds since the exporter was started.
    Uptime,
}

/// Unit of a time since an epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum AbsoluteUnit {
    /// Seconds since 1970.
    Seconds,
    /// Milliseconds since 1970.
    Milliseconds,
    /// The NTP timestamp format, without the lowest eleven bits of the fraction (RFC 7011 section 6.1.9).
    NtpMicroseconds,
    /// The NTP timestamp format (RFC 7011 section 6.1.10).
    #[default]
    NtpNanoseconds,
}

impl AbsoluteUnit {
    /// Returns the time of a value.
    #[inline(always)]
    pub(super) fn time(self, value: u64) -> Timestamp {
        match self {
            Self::Seconds => Timestamp::from_parts(value, 0),
            Self::Milliseconds => Timestamp::from_nanos(value.saturating_mul(1_000_000)),
            Self::NtpMicroseconds => ntp_microsecond(value),
            Self::NtpNanoseconds => Timestamp::from_ntp(value),
        }
    }
}

const NANOS_PER_MILLISECOND: u64 = NANOS_PER_SECOND / 1000;

/// The first or the last packet of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Moment {
    Start,
    End,
}

/// Times of a message and samplers of its domain, to which its records refer.
#[derive(Clone, Copy, Debug)]
pub(super) struct DataContext<'d> {
    pub(super) export_time: Timestamp,
    pub(super) boot_time: Option<BootTime>,
    pub(super) init_time_ms: Option<u64>,
    pub(super) samplers: &'d Samplers,
    /// Exporter of the message.
    pub(super) exported: &'d ExportedRecord,
}

/// Time at which an exporter was started, to which times in milliseconds of its uptime refer.
#[derive(Clone, Copy, Debug)]
pub(super) struct BootTime {
    /// A time in nanoseconds near those of the records: that of the message.
    near_ns: u64,
    /// Uptime at that time; wraps after 49.7 days.
    uptime_ms: u32,
}

impl BootTime {
    pub(super) const fn new(export_time: Timestamp, uptime_ms: u32) -> Self {
        Self { near_ns: export_time.as_nanos(), uptime_ms }
    }

    /// Creates the boot time of an exporter that sends the time of its start, in milliseconds since 1970. The uptime at
    /// the time of the message follows from it, unless the message was sent before that start.
    pub(super) const fn of_init(export_time: Timestamp, init_time_ms: u64) -> Self {
        let init_ns = init_time_ms.saturating_mul(NANOS_PER_MILLISECOND);
        match export_time.as_nanos().checked_sub(init_ns) {
            Some(uptime_ns) => {
                let uptime_ms = uptime_ns / NANOS_PER_MILLISECOND;
                Self {
                    near_ns: init_ns.saturating_add(uptime_ms * NANOS_PER_MILLISECOND),
                    uptime_ms: uptime_ms as u32,
                }
            }
            None => Self { near_ns: init_ns, uptime_ms: 0 },
        }
    }

    /// Returns the time at which the uptime had a value, which may be shortly after the message.
    pub(super) const fn time(self, uptime_ms: u32) -> Timestamp {
        let age_ms = self.uptime_ms.wrapping_sub(uptime_ms).cast_signed();
        let age_ns = age_ms.unsigned_abs() as u64 * NANOS_PER_MILLISECOND;
        Timestamp::from_nanos(if age_ms < 0 {
            self.near_ns.saturating_add(age_ns)
        } else {
            self.near_ns.saturating_sub(age_ns)
        })
    }
}

/// Values of a record that refer to other fields or to options records.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Related {
    pub(super) times: RelativeTimes,
    pub(super) sampling: Sampling,
}

/// Times of a record that refer to other fields.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RelativeTimes {
    pub(super) start_uptime_ms: Option<u32>,
    pub(super) end_uptime_ms: Option<u32>,
    pub(super) init_time_ms: Option<u64>,
    pub(super) duration_ns: Option<u64>,
}

impl RelativeTimes {
    /// Sets the times of a record that refer to other fields. Returns the fields that cannot be computed because the
    /// exporter's start is not known.
    pub(super) fn resolve(self, draft: &mut Draft, context: &DataContext<'_>) -> FieldSet {
        let init_time_ms = self.init_time_ms.or(context.init_time_ms);
        let boot_time = context.boot_time.or_else(|| {
            init_time_ms.map(|init_time_ms| BootTime::of_init(context.export_time, init_time_ms))
        });
        let time = |uptime_ms: u32| boot_time.map(|boot_time| boot_time.time(uptime_ms));
        let record = &mut draft.record;
        let mut absent = FieldSet::EMPTY;
        for (uptime_ms, target, field) in [
            (self.start_uptime_ms, &mut record.start, const { field_set(&["start"]) }),
            (self.end_uptime_ms, &mut record.end, const { field_set(&["end"]) }),
        ] {
            match uptime_ms.map(time) {
                Some(Some(time)) => *target = time,
                Some(None) => absent = absent.union(field),
                None => {}
            }
        }
        if let Some(duration_ns) = self.duration_ns {
            let end = record.start.as_nanos().saturating_add(duration_ns);
            // An end that the exporter sent is more precise.
            record.end = record.end.max(Timestamp::from_nanos(end));
        }
        absent
    }
}

/// Completes the times of a record of which `known` are known: an end before the start is the start, and a time that is
/// not known is the other one, or that of the message. Returns the times that are known and invalid.
#[cold]
pub(super) fn complete_times(record: &mut FlowRecord, known: FieldSet, export_time: Timestamp) -> FieldSet {
    let has = |index| known.contains(index);
    match (has(const { field_index("start") }), has(const { field_index("end") })) {
        (true, true) if record.end < record.start => {
            record.end = record.start;
            return const { field_set(&["end"]) };
        }
        (true, true) => {}
        (true, false) => record.end = record.end.max(record.start),
        (false, true) => record.start = record.end,
        (false, false) => (record.start, record.end) = (export_time, export_time),
    }
    FieldSet::EMPTY
}

/// Sets a time of a record, or keeps it until the exporter's start is known.
#[inline]
pub(super) fn set_time(
    moment: Moment,
    unit: TimeUnit,
    value: u64,
    draft: &mut Draft,
    times: &mut RelativeTimes,
    context: &DataContext<'_>,
) {
    let time = match unit {
        TimeUnit::Absolute(unit) => unit.time(value),
        TimeUnit::MicrosecondsBeforeExport => {
            let age_ns = value.saturating_mul(1000);
            Timestamp::from_nanos(context.export_time.as_nanos().saturating_sub(age_ns))
        }
        TimeUnit::Uptime => {
            let uptime_ms = Some(value as u32);
            match moment {
                Moment::Start => times.start_uptime_ms = uptime_ms,
                Moment::End => times.end_uptime_ms = uptime_ms,
            }
            return;
        }
    };
    match moment {
        Moment::Start => draft.record.start = time,
        Moment::End => draft.record.end = time,
    }
}

/// Decodes a time in the NTP timestamp format of which the lowest eleven bits are ignored: half a microsecond. The
/// exporter rounded a whole number of microseconds down, so that the time is the only one in the interval of the other
/// bits; if there is none, it is the beginning of the interval.
#[inline]
fn ntp_microsecond(value: u64) -> Timestamp {
    const MICROS_PER_SECOND: u64 = 1_000_000;
    const IGNORED: u64 = 0x7ff;
    let fraction = value & 0xffff_ffff & !IGNORED;
    let microsecond = (fraction * MICROS_PER_SECOND).div_ceil(1 << 32);
    let is_in_interval = microsecond << 32 < (fraction + IGNORED + 1) * MICROS_PER_SECOND;
    if is_in_interval {
        let whole = Timestamp::from_ntp(value & !0xffff_ffff).as_nanos();
        Timestamp::from_nanos(whole.saturating_add(microsecond * (NANOS_PER_SECOND / MICROS_PER_SECOND)))
    } else {
        Timestamp::from_ntp(value & !IGNORED)
    }
}
