//! Events of type `anomaly`.

use crate::row::{Group, Name};
use crate::tracker;

/// Unusual traffic of a flow in an event, behind its [`Head`](super::Head).
#[derive(Clone, Copy, Debug)]
pub struct Anomaly {
    finding: Finding,
}

/// The object `anomaly`.
#[derive(Clone, Copy, Debug)]
struct Finding {
    kind: &'static str,
    event: &'static str,
    layer: Option<&'static str>,
}

impl Anomaly {
    /// Returns the event of an anomaly of TCP; `None` for ICMP errors, which are regular traffic.
    pub(super) fn of_tracker(anomaly: tracker::Anomaly) -> Option<Self> {
        let is_error = anomaly == tracker::Anomaly::IcmpError;
        (!is_error)
            .then_some(Self { finding: Finding { kind: "stream", event: anomaly.name(), layer: None } })
    }

    /// Returns the event of a parser that stopped because of a fault.
    pub(super) const fn of_fault(fault: &'static str) -> Self {
        Self { finding: Finding { kind: "applayer", event: fault, layer: Some("proto_parser") } }
    }
}

crate::table! {
    /// Unusual traffic of flows.
    impl "eve.anomaly" for Anomaly as row {
        /// The anomaly.
        "anomaly": Group<Finding> = Group(row.finding);
    }
}

crate::table! {
    /// An anomaly.
    impl "eve.anomaly.anomaly" for Finding as row {
        /// `stream` for TCP, `applayer` for a parser that stopped.
        "type": Name = Name(row.kind);
        /// Name of the anomaly, or of the fault for which the parser stopped: those of flowgauge, not of Suricata.
        "event": Name = Name(row.event);
        /// `proto_parser`, for a parser.
        "layer": Option<Name> = row.layer.map(Name);
    }
}
