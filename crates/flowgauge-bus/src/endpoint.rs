//! Endpoints, and the rule for addresses that other hosts can reach.

use omq_tokio::Endpoint as SocketEndpoint;
use omq_tokio::endpoint::Host;

use crate::error::BusError;

/// A parsed endpoint.
#[derive(Clone, Debug)]
pub(crate) enum Endpoint {
    /// `inproc://NAME`: a publisher or a pair of this process.
    Local(String),
    /// `tcp://HOST:PORT` or `ipc://PATH`.
    Socket(SocketEndpoint),
}

impl Endpoint {
    pub(crate) fn parse(text: &str) -> Result<Self, BusError> {
        if let Some(name) = text.strip_prefix("inproc://") {
            return match name {
                "" => Err(problem(text, "the name is empty".to_owned())),
                name => Ok(Self::Local(name.to_owned())),
            };
        }
        match text.parse() {
            Ok(endpoint @ (SocketEndpoint::Tcp { .. } | SocketEndpoint::Ipc(_))) => {
                Ok(Self::Socket(endpoint))
            }
            Ok(_) => Err(problem(text, "use tcp://HOST:PORT, ipc://PATH or inproc://NAME".to_owned())),
            Err(error) => Err(problem(text, error.to_string())),
        }
    }

    /// Returns an error if other hosts can reach the endpoint.
    pub(crate) fn check_is_loopback(&self, text: &str) -> Result<(), BusError> {
        let is_loopback = match self {
            Self::Socket(SocketEndpoint::Tcp { host, .. }) => match host {
                Host::Ip(address) => {
                    // An IPv4 address in an IPv6 address is not a loopback address of std.
                    address.to_canonical().is_loopback()
                }
                Host::Name(name) => name == "localhost",
                _ => false,
            },
            _ => true,
        };
        if is_loopback { Ok(()) } else { Err(BusError::NotLoopback { endpoint: text.to_owned() }) }
    }
}

fn problem(endpoint: &str, problem: String) -> BusError {
    BusError::Endpoint { endpoint: endpoint.to_owned(), problem }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_addresses_pass_the_check() {
        let check = |text: &str| Endpoint::parse(text).and_then(|endpoint| endpoint.check_is_loopback(text));
        for text in [
            "tcp://127.0.0.1:5556",
            "tcp://127.9.9.9:0",
            "tcp://[::1]:5556",
            "tcp://[::ffff:127.0.0.1]:1",
            "tcp://localhost:1",
            "ipc:///tmp/flows",
            "inproc://flows",
        ] {
            assert!(check(text).is_ok(), "{text}");
        }
        for text in
            ["tcp://0.0.0.0:5556", "tcp://*:5556", "tcp://[::]:1", "tcp://192.0.2.1:1", "tcp://example.com:1"]
        {
            assert!(matches!(check(text), Err(BusError::NotLoopback { .. })), "{text}");
        }
        for text in ["", "tcp://", "udp://127.0.0.1:1", "inproc://", "5556"] {
            assert!(matches!(check(text), Err(BusError::Endpoint { .. })), "{text}");
        }
    }
}
