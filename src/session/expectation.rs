//! What a message states of a flow that it announces.

use std::net::IpAddr;

use super::protocol::{Protocol, Role};

/// A flow that a message announces. Both ends are those of the announcing flow, whose roles they keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expectation {
    /// Protocol of the flow. It is expected if the set of the driver contains it.
    pub protocol: &'static Protocol,
    /// Role of the end that opens the flow.
    pub opened_by: Role,
    /// Address of the end that listens, if the message states one. The address of the announcing flow is expected too,
    /// because an address behind a translator (NAT) is not the one in the message.
    pub address: Option<IpAddr>,
    /// Port of the end that listens; `None` if it is the port of that end in the announcing flow.
    pub port: Option<u16>,
}
