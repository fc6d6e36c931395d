//! Anomalies of flows as rows.

use std::net::IpAddr;

use super::event::Anomaly;
use super::view::FlowView;
use crate::base::{IpProtocol, Timestamp};
use crate::row::Name;

/// An anomaly and its flow, as a row.
#[derive(Debug)]
pub struct FlowAnomaly<'v>(pub &'v FlowView<'v>, pub Anomaly);

crate::table! {
    /// Unusual traffic of a flow.
    impl['v] "anomaly" for FlowAnomaly<'v> as row {
        /// Name of the anomaly.
        "anomaly": Name = Name(row.1.name());
        /// Time of the packet that was unusual.
        "timestamp": Timestamp = row.0.end();
        /// Time of the first packet of the flow.
        "start": Timestamp = row.0.start();
        /// IP protocol number.
        "protocol": IpProtocol = row.0.key().protocol();
        /// Address of the initiator.
        "source_address": IpAddr = row.0.address(row.0.initiator());
        /// Port of the initiator; null for protocols without ports.
        "source_port": Option<u16> = row.0.key().port(row.0.initiator());
        /// Address of the responder.
        "destination_address": IpAddr = row.0.address(row.0.initiator().other());
        /// Port of the responder; null for protocols without ports.
        "destination_port": Option<u16> = row.0.key().port(row.0.initiator().other());
    }
}
