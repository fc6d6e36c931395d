//! Packets and octets of flows, hosts and protocols.

use std::cell::Cell;
use std::ops::AddAssign;
use std::time::Duration;

use flowgauge::{FlowView, Side};

/// Packets and octets in one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Volume {
    pub(super) packet_count: u64,
    pub(super) octet_count: u64,
}

impl AddAssign for Volume {
    fn add_assign(&mut self, other: Self) {
        self.packet_count += other.packet_count;
        self.octet_count += other.octet_count;
    }
}

impl Volume {
    /// Returns what was counted since an earlier count.
    const fn since(self, earlier: Self) -> Self {
        Self {
            packet_count: self.packet_count.saturating_sub(earlier.packet_count),
            octet_count: self.octet_count.saturating_sub(earlier.octet_count),
        }
    }

    pub(super) fn bits_per_second(self, interval: Duration) -> f64 {
        8.0 * self.octet_count as f64 / seconds(interval)
    }

    pub(super) fn packets_per_second(self, interval: Duration) -> f64 {
        self.packet_count as f64 / seconds(interval)
    }
}

/// Returns the seconds of an interval by which counts can be divided.
pub(super) fn seconds(interval: Duration) -> f64 {
    interval.as_secs_f64().max(1e-3)
}

/// Traffic that the initiator of a flow, or a host, sent and received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Traffic {
    pub(super) sent: Volume,
    pub(super) received: Volume,
}

impl AddAssign for Traffic {
    fn add_assign(&mut self, other: Self) {
        self.sent += other.sent;
        self.received += other.received;
    }
}

impl Traffic {
    /// Returns the traffic of a flow so far from the view of a side.
    fn of(view: &FlowView<'_>, side: Side) -> Self {
        let volume = |side| {
            let counters = view.counters(side);
            Volume { packet_count: counters.packet_count, octet_count: counters.octet_count }
        };
        Self { sent: volume(side), received: volume(side.other()) }
    }

    /// Returns what was counted since an earlier count.
    const fn since(self, earlier: Self) -> Self {
        Self { sent: self.sent.since(earlier.sent), received: self.received.since(earlier.received) }
    }

    /// Returns the traffic from the view of the other end.
    const fn turned(self) -> Self {
        Self { sent: self.received, received: self.sent }
    }

    /// Returns the traffic of side A from the view of another side.
    pub(super) const fn seen_by(self, side: Side) -> Self {
        match side {
            Side::A => self,
            Side::B => self.turned(),
        }
    }

    /// Returns the sum of both directions.
    pub(super) fn both(self) -> Volume {
        let mut both = self.sent;
        both += self.received;
        both
    }
}

/// Traffic in total, and in the last complete interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Activity {
    pub(super) total: Traffic,
    pub(super) recent: Traffic,
}

/// Traffic of many flows: in total, in the last complete interval, and in the current one.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sum {
    pub(super) activity: Activity,
    current: Traffic,
}

impl Sum {
    pub(super) fn add(&mut self, new: Traffic) {
        self.activity.total += new;
        self.current += new;
    }

    /// Begins a new interval.
    pub(super) fn end_interval(&mut self) {
        self.activity.recent = std::mem::take(&mut self.current);
    }
}

/// Traffic of a flow, from the view of side A, that is part of the totals.
#[derive(Debug, Default)]
pub(super) struct Counted {
    traffic: Cell<Traffic>,
    /// Traffic in the last complete interval, less than 4 GiB in each direction.
    recent: Cell<[u32; 4]>,
}

impl Counted {
    /// Counts the traffic of a flow since the last count. Returns the new traffic.
    pub(super) fn count(&self, view: &FlowView<'_>) -> Traffic {
        let now = Traffic::of(view, Side::A);
        now.since(self.traffic.replace(now))
    }

    /// Continues with a flow that counts from zero again.
    pub(super) fn begin_record(&self) {
        self.traffic.set(Traffic::default());
    }

    /// Keeps the traffic of the last complete interval.
    pub(super) fn end_interval(&self, recent: Traffic) {
        let Traffic { sent, received } = recent;
        let counts = [sent.packet_count, sent.octet_count, received.packet_count, received.octet_count];
        self.recent.set(counts.map(|count| u32::try_from(count).unwrap_or(u32::MAX)));
    }

    /// Returns the counted traffic of a flow from the view of its initiator.
    pub(super) fn activity(&self, initiator: Side) -> Activity {
        let [sent_packets, sent_octets, received_packets, received_octets] = self.recent.get().map(u64::from);
        let recent = Traffic {
            sent: Volume { packet_count: sent_packets, octet_count: sent_octets },
            received: Volume { packet_count: received_packets, octet_count: received_octets },
        };
        Activity { total: self.traffic.get().seen_by(initiator), recent: recent.seen_by(initiator) }
    }
}
