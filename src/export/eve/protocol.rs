//! Names of protocols in events.

use std::borrow::Cow;

use crate::base::IpProtocol;
use crate::protocols::Standard;
use crate::session::Protocols as _;

/// Returns EVE's name of an IP protocol.
pub(super) fn ip_name(protocol: IpProtocol) -> Cow<'static, str> {
    match protocol.0 {
        1 => "ICMP".into(),
        2 => "IGMP".into(),
        6 => "TCP".into(),
        17 => "UDP".into(),
        47 => "GRE".into(),
        50 => "ESP".into(),
        51 => "AH".into(),
        58 => "IPv6-ICMP".into(),
        132 => "SCTP".into(),
        number => number.to_string().into(),
    }
}

/// Returns EVE's name of an application protocol; `None` for those that Suricata does not know.
pub(super) fn application_name(name: &str) -> Option<&'static str> {
    Standard::of_name(name)?.eve_name()
}
