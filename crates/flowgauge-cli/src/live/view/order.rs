//! Tables of the view, and the orders of their rows.

use std::time::Duration;

use super::traffic::Activity;

/// Tables of the view.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Tab {
    #[default]
    Flows,
    Hosts,
    Protocols,
}

impl Tab {
    pub(super) const ALL: [Self; 3] = [Self::Flows, Self::Hosts, Self::Protocols];

    pub(super) const fn title(self) -> &'static str {
        match self {
            Self::Flows => "Flows",
            Self::Hosts => "Hosts",
            Self::Protocols => "Protocols",
        }
    }

    pub(super) const fn next(self) -> Self {
        match self {
            Self::Flows => Self::Hosts,
            Self::Hosts => Self::Protocols,
            Self::Protocols => Self::Flows,
        }
    }
}

/// Orders of rows, the greatest value first unless the order is reversed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Order {
    #[default]
    Rate,
    Out,
    In,
    Octets,
    Packets,
    Rtt,
    Age,
}

/// Values of a row other than its traffic.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Times {
    pub(super) rtt: Option<Duration>,
    pub(super) age: Duration,
}

impl Order {
    const ALL: [Self; 7] =
        [Self::Rate, Self::Out, Self::In, Self::Octets, Self::Packets, Self::Rtt, Self::Age];

    /// Returns the name for the footer.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Rate => "rate",
            Self::Out => "rate out",
            Self::In => "rate in",
            Self::Octets => "octets",
            Self::Packets => "packets",
            Self::Rtt => "RTT",
            Self::Age => "age",
        }
    }

    /// Returns whether the rows of a table have the value.
    const fn is_in(self, tab: Tab) -> bool {
        matches!(tab, Tab::Flows) || !matches!(self, Self::Rtt | Self::Age)
    }

    /// Returns the order, or the default one if the rows of a table do not have the value.
    pub(super) fn or_default_in(self, tab: Tab) -> Self {
        if self.is_in(tab) { self } else { Self::default() }
    }

    /// Returns the next order of a table.
    pub(super) fn next(self, tab: Tab) -> Self {
        Self::ALL
            .into_iter()
            .cycle()
            .skip_while(|order| *order != self)
            .skip(1)
            .find(|order| order.is_in(tab))
            .unwrap_or_default()
    }

    /// Returns the value by which rows are sorted.
    pub(super) fn value(self, activity: &Activity, times: Times) -> u64 {
        let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        match self {
            Self::Rate => activity.recent.both().octet_count,
            Self::Out => activity.recent.sent.octet_count,
            Self::In => activity.recent.received.octet_count,
            Self::Octets => activity.total.both().octet_count,
            Self::Packets => activity.total.both().packet_count,
            Self::Rtt => times.rtt.map_or(0, nanos),
            Self::Age => nanos(times.age),
        }
    }
}
