//! Requests about open flows, as text, and their answers.

use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;

use bytes::Bytes;
use flowgauge::base::FlowKey;
use flowgauge::record::SortKey;

/// Maximum number of flows in an answer.
const TOP_COUNT_MAX: usize = 65_536;

/// A request about the open flows of a pipeline. Its text is the form in which clients send it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Request {
    /// The flow with a key: `key tcp 192.0.2.1:40000 198.51.100.7:443` or `key udp …`.
    Key(FlowKey),
    /// The flow with a Community ID of version 1 and seed 0: `community_id 1:…`.
    CommunityId(String),
    /// The first flows of an order: `top 10 octets`.
    Top {
        /// Number of flows.
        count: usize,
        /// The order.
        key: SortKey,
    },
    /// The counters of the pipeline: `counters`.
    Counters,
    /// The packets of a flow that the packet ring contains: `slice 1:…`.
    Slice(String),
}

impl FromStr for Request {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let words: Vec<_> = text.split(' ').collect();
        match *words.as_slice() {
            ["key", protocol, source, destination] => {
                let address =
                    |text: &str| text.parse::<SocketAddr>().map_err(|_| format!("invalid address `{text}`"));
                let (source, destination) = (address(source)?, address(destination)?);
                if source.is_ipv4() != destination.is_ipv4() {
                    return Err("the addresses are of different IP versions".to_owned());
                }
                match protocol {
                    "tcp" => Ok(Self::Key(FlowKey::tcp(source, destination).0)),
                    "udp" => Ok(Self::Key(FlowKey::udp(source, destination).0)),
                    _ => Err(format!("unknown protocol `{protocol}`; use tcp or udp")),
                }
            }
            ["community_id", id] => Ok(Self::CommunityId(id.to_owned())),
            ["top", count, key] => {
                let count = count.parse().ok().filter(|count| (1..=TOP_COUNT_MAX).contains(count));
                let count =
                    count.ok_or_else(|| format!("the number of flows must be 1 to {TOP_COUNT_MAX}"))?;
                let key = SortKey::ALL.into_iter().find(|known| known.name() == key);
                Ok(Self::Top { count, key: key.ok_or("unknown order")? })
            }
            ["counters"] => Ok(Self::Counters),
            ["slice", id] => Ok(Self::Slice(id.to_owned())),
            _ => Err("unknown request; use key, community_id, top, counters or slice".to_owned()),
        }
    }
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use flowgauge::base::Side::{A, B};
        match self {
            Self::Key(key) => {
                let address = |side| SocketAddr::new(key.address(side), key.port(side).unwrap_or(0));
                let protocol = key.protocol().to_string().to_ascii_lowercase();
                write!(f, "key {protocol} {} {}", address(A), address(B))
            }
            Self::CommunityId(id) => write!(f, "community_id {id}"),
            Self::Top { count, key } => write!(f, "top {count} {}", key.name()),
            Self::Counters => f.write_str("counters"),
            Self::Slice(id) => write!(f, "slice {id}"),
        }
    }
}

/// A request on its way to the pipeline, with its number.
pub(crate) type Numbered = (u64, Request);

/// Answer of the pipeline: its status and content.
pub(crate) type Answer = (&'static str, Bytes);

pub(super) fn not_found() -> Answer {
    ("error", Bytes::from_static(b"no open flow matches"))
}
