//! Addresses from which frames are received: mirror sessions, and captures over TCP.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use flowgauge::source::MirrorEncapsulation;

use crate::endpoint::Endpoint;

/// Address at which frames are received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Listener {
    Udp(Endpoint, MirrorEncapsulation),
    Gre(IpAddr),
    Pcap(Endpoint),
}

impl FromStr for Listener {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (address, content) = split(text)?;
        if let Some(address) = address.strip_prefix("ip://") {
            let address = address.trim_start_matches('[').trim_end_matches(']');
            let address = address.parse().map_err(|_| format!("`{address}` is not an IP address"))?;
            return match content {
                "gre" => Ok(Self::Gre(address)),
                _ => Err(format!("`{content}` is not received directly over IP; use gre")),
            };
        }
        match address.parse()? {
            endpoint @ Endpoint::Udp(_) => Ok(Self::Udp(endpoint, content.parse()?)),
            endpoint @ Endpoint::Tcp(_) => only_pcap(content).map(|()| Self::Pcap(endpoint)),
        }
    }
}

/// Address to which the command connects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Connection(pub(super) Endpoint);

impl FromStr for Connection {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (address, content) = split(text)?;
        match address.parse()? {
            Endpoint::Udp(_) => Err("must begin with tcp://, such as tcp://192.0.2.1:57012/pcap".to_owned()),
            endpoint @ Endpoint::Tcp(_) => only_pcap(content).map(|()| Self(endpoint)),
        }
    }
}

/// Splits an address with a scheme from the content that follows the last slash.
fn split(text: &str) -> Result<(&str, &str), String> {
    let after_scheme = text.find("://").map_or(0, |at| at + 3);
    match text[after_scheme..].rfind('/') {
        Some(at) => Ok((&text[..after_scheme + at], &text[after_scheme + at + 1..])),
        None => Err("must state the content behind the address, such as udp://127.0.0.1:4789/vxlan or \
                     tcp://127.0.0.1:57012/pcap"
            .to_owned()),
    }
}

fn only_pcap(content: &str) -> Result<(), String> {
    if content == "pcap" { Ok(()) } else { Err(format!("`{content}` is not received over TCP; use pcap")) }
}

impl fmt::Display for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Udp(endpoint, encapsulation) => write!(f, "{endpoint}/{encapsulation}"),
            Self::Gre(address) if address.is_ipv6() => write!(f, "ip://[{address}]/gre"),
            Self::Gre(address) => write!(f, "ip://{address}/gre"),
            Self::Pcap(endpoint) => write!(f, "{endpoint}/pcap"),
        }
    }
}
