//! Rows of `weird.log`.

use crate::tracker::Anomaly;

/// Unusual traffic of a connection in `weird.log`, behind its [`Head`](super::Head).
#[derive(Clone, Copy, Debug)]
pub struct Weird<'a> {
    name: &'static str,
    detail: Option<&'a str>,
    source: &'static str,
}

impl<'a> Weird<'a> {
    /// Returns the row of an anomaly: under Zeek's name if it has the same meaning, otherwise under the own one.
    pub(super) const fn of_anomaly(anomaly: Anomaly) -> Self {
        let (name, source) = match anomaly {
            Anomaly::SynOnOpenFlow => ("active_connection_reuse", "TCP"),
            Anomaly::IcmpError => (anomaly.name(), "ICMP"),
            _ => (anomaly.name(), "TCP"),
        };
        Self { name, detail: None, source }
    }

    /// Returns the row of a parser that stopped. `source` is the name of the protocol, and `detail` that of the fault.
    pub(super) const fn of_fault(source: &'static str, detail: &'a str) -> Self {
        Self { name: "parser_stopped", detail: Some(detail), source }
    }
}

crate::table! {
    /// Unusual traffic of connections.
    impl['a] "zeek.weird" for Weird<'a> as row {
        /// `active_connection_reuse` for a SYN on an open connection; other anomalies under the names of flowgauge, and
        /// `parser_stopped`.
        "name": &'a str = row.name;
        /// The fault for which a parser stopped.
        "addl": Option<&'a str> = row.detail;
        /// Always false.
        "notice": bool = false;
        /// Always `flowgauge`.
        "peer": Option<&'static str> = Some("flowgauge");
        /// `TCP`, `ICMP`, or the protocol of the parser.
        "source": Option<&'static str> = Some(row.source);
    }
}
