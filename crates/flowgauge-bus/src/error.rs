//! Errors of the bus.

use std::fmt;
use std::io;

/// Error of a publisher, a subscriber, a router or a pair.
#[derive(Debug)]
#[non_exhaustive]
pub enum BusError {
    /// The topic is empty or too long.
    Topic {
        /// Length of the name in octets.
        len: usize,
    },
    /// The endpoint cannot be parsed, or its transport is not supported.
    Endpoint {
        /// The endpoint as given.
        endpoint: String,
        /// The problem, as a clause.
        problem: String,
    },
    /// The endpoint is not a loopback address, and the configuration does not permit others.
    NotLoopback {
        /// The endpoint as given.
        endpoint: String,
    },
    /// The text is no key of CURVE.
    Key,
    /// The socket cannot be bound or connected.
    Socket {
        /// The endpoint as given.
        endpoint: String,
        /// The message of the socket.
        problem: String,
    },
    /// No publisher of this process has the name.
    NoPublisher {
        /// The name behind `inproc://`.
        name: String,
    },
    /// The publisher, router or peer was closed.
    Closed,
    /// The queue of requests or messages is full.
    Full,
    /// No answer arrived in time.
    Timeout,
    /// The other side sent a message that is not of this protocol.
    Malformed(&'static str),
    /// The router rejected the request.
    Rejected(String),
    /// A thread could not be started.
    Io(io::Error),
}

impl fmt::Display for BusError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Topic { len } => write!(f, "a topic has 1 to 63 octets, not {len}"),
            Self::Endpoint { endpoint, problem } => write!(f, "invalid endpoint `{endpoint}`: {problem}"),
            Self::NotLoopback { endpoint } => write!(
                f,
                "`{endpoint}` is reachable from other hosts; permit remote peers, or bind to a loopback address"
            ),
            Self::Key => f.write_str("a key has 40 characters of Z85"),
            Self::Socket { endpoint, problem } => write!(f, "{endpoint}: {problem}"),
            Self::NoPublisher { name } => {
                write!(f, "no publisher of this process is bound to inproc://{name}")
            }
            Self::Closed => f.write_str("the other end was closed"),
            Self::Full => f.write_str("the queue is full"),
            Self::Timeout => f.write_str("no answer arrived in time"),
            Self::Malformed(problem) => write!(f, "malformed message: {problem}"),
            Self::Rejected(reason) => write!(f, "the request was rejected: {reason}"),
            Self::Io(error) => write!(f, "cannot start a thread: {error}"),
        }
    }
}

impl std::error::Error for BusError {}

impl From<io::Error> for BusError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}
