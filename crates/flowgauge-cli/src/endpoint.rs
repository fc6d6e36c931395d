//! Network addresses with a transport protocol, such as `udp://192.0.2.1:4739`.

use std::fmt;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::str::FromStr;

/// Transport protocol, host and port of a socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Endpoint {
    Udp(String),
    Tcp(String),
}

impl Endpoint {
    /// Looks up the addresses of the host; at least one.
    pub(crate) fn resolve(&self) -> io::Result<Vec<SocketAddr>> {
        let (Self::Udp(address) | Self::Tcp(address)) = self;
        let addresses: Vec<_> = address.to_socket_addrs()?.collect();
        if addresses.is_empty() { Err(io::Error::other("the host has no address")) } else { Ok(addresses) }
    }
}

impl FromStr for Endpoint {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let Some((scheme, address)) = text.split_once("://") else {
            return Err("must begin with udp:// or tcp://, such as udp://127.0.0.1:4739".to_owned());
        };
        let has_port = address
            .rsplit_once(':')
            .is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok());
        match scheme {
            "udp" | "tcp" if !has_port => {
                Err("must have a host and a port, such as 192.0.2.1:4739".to_owned())
            }
            "udp" => Ok(Self::Udp(address.to_owned())),
            "tcp" => Ok(Self::Tcp(address.to_owned())),
            _ => Err(format!("unknown scheme `{scheme}`; use udp:// or tcp://")),
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Udp(address) => write!(f, "udp://{address}"),
            Self::Tcp(address) => write!(f, "tcp://{address}"),
        }
    }
}
