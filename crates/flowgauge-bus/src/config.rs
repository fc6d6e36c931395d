//! Settings.

use std::fmt;
use std::time::Duration;

use flowgauge::StopHandle;

use omq_tokio::proto::mechanism::{Authenticator, MechanismSetup};
use omq_tokio::{CurvePublicKey, CurveServerOptions};

use crate::curve::{PublicKey, SecretKey};
use crate::message::Encoding;

/// Behavior of a publisher when the queue of a subscriber is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Overflow {
    /// Messages for this subscriber are dropped and counted, and [`publish`](crate::Publisher::publish) never waits.
    Drop,
    /// The publisher waits for a subscriber for at most this time. A subscriber that receives nothing for so long
    /// loses its messages as with [`Drop`](Self::Drop), until it receives again. For captures from files.
    Wait(Duration),
}

/// Credentials of a bound socket (ZMTP).
#[derive(Clone, Default)]
#[non_exhaustive]
pub enum ServerSecurity {
    /// Any peer may connect, without encryption.
    #[default]
    None,
    /// Peers must send a user name and a password, without encryption (PLAIN).
    Plain {
        /// The user name.
        user: String,
        /// The password.
        password: String,
    },
    /// Peers need a key, and all messages are encrypted (CURVE).
    Curve {
        /// Secret key of the server.
        secret_key: SecretKey,
        /// Public keys of the peers that may connect; any peer that knows the key of the server if there are none.
        peers: Vec<PublicKey>,
    },
}

impl ServerSecurity {
    pub(crate) fn mechanism(&self) -> MechanismSetup {
        match self {
            Self::None => MechanismSetup::Null,
            Self::Plain { user, password } => MechanismSetup::PlainServer {
                authenticator: Authenticator::plain_credentials([(user.clone(), password.clone())]),
            },
            Self::Curve { secret_key, peers } => {
                let options = CurveServerOptions::new();
                let options = if peers.is_empty() {
                    options
                } else {
                    let peers = peers.clone();
                    options.authenticator(move |peer| peers.contains(&PublicKey(peer.public_key)))
                };
                MechanismSetup::CurveServer { our_keypair: secret_key.pair(), options }
            }
        }
    }
}

/// Credentials of a socket that connects (ZMTP).
#[derive(Clone, Default)]
#[non_exhaustive]
pub enum ClientSecurity {
    /// No credentials.
    #[default]
    None,
    /// User name and password, which are sent without encryption (PLAIN).
    Plain {
        /// The user name.
        user: String,
        /// The password.
        password: String,
    },
    /// A key, and encryption of all messages (CURVE).
    Curve {
        /// Secret key of this peer.
        secret_key: SecretKey,
        /// Public key of the server.
        server: PublicKey,
    },
}

impl ClientSecurity {
    pub(crate) fn mechanism(&self) -> MechanismSetup {
        match self {
            Self::None => MechanismSetup::Null,
            Self::Plain { user, password } => {
                MechanismSetup::PlainClient { username: user.clone(), password: password.clone() }
            }
            Self::Curve { secret_key, server } => MechanismSetup::CurveClient {
                our_keypair: secret_key.pair(),
                server_public: CurvePublicKey::from_bytes(server.0),
            },
        }
    }
}

impl fmt::Debug for ServerSecurity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "None",
            Self::Plain { .. } => "Plain",
            Self::Curve { .. } => "Curve",
        })
    }
}

impl fmt::Debug for ClientSecurity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "None",
            Self::Plain { .. } => "Plain",
            Self::Curve { .. } => "Curve",
        })
    }
}

flowgauge::configuration! {
    /// Limits of a bound socket.
    #[derive(Clone, Debug)]
    pub struct ServerConfig {
        /// Permits endpoints that other hosts can reach. Default: false, only loopback addresses, IPC and `inproc`.
        pub permits_remote: bool,
        /// Credentials. Default: none.
        pub security: ServerSecurity,
        /// Maximum number of connected peers. Default: 256. Further connections are closed and counted.
        pub peer_count_max: usize,
        /// Maximum length of a message from a peer in octets. Default: 4096. A peer that sends a longer one is
        /// disconnected and counted.
        pub message_len_max: usize,
        /// Maximum duration of the ZMTP handshake. Default: 5 s. A peer that needs longer is disconnected and counted.
        pub handshake_timeout: Duration,
        /// Maximum number of messages that wait for one peer (high-water mark). Default: 256.
        pub high_water_mark: usize,
    }
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            permits_remote: false,
            security: ServerSecurity::None,
            peer_count_max: 256,
            message_len_max: 4096,
            handshake_timeout: Duration::from_secs(5),
            high_water_mark: 256,
        }
    }
}

flowgauge::configuration! {
    /// Settings of a [`Publisher`](crate::Publisher).
    #[derive(Clone, Debug)]
    pub struct PublisherConfig {
        /// Encoding of flow records. Default: [`Encoding::Records`]. Other events are always lines of ndjson.
        pub encoding: Encoding,
        /// Length of a payload in octets from which a message is sent. Default: 64 KiB.
        pub payload_len: usize,
        /// Time after which an incomplete message is sent. Default: 10 ms.
        pub flush_interval: Duration,
        /// Maximum number of messages that wait for the thread of the sockets. Default: 256.
        pub queue_len: usize,
        /// Behavior when a queue is full. Default: [`Overflow::Drop`].
        pub overflow: Overflow,
        /// Maximum number of subscriptions of one subscriber. Default: 1024. A subscriber with more is disconnected and
        /// counted.
        pub subscription_count_max: usize,
        /// Maximum number of topics with an incomplete message. Default: 4096. When there are more, all are sent.
        pub topic_count_max: usize,
        /// Handle that ends waits: once it is set, the publisher waits for subscribers for one more second, all waits of
        /// [`Overflow::Wait`] and of [`close`](crate::Publisher::close) together. Default: none.
        pub stop: Option<StopHandle>,
        /// Limits of the bound sockets.
        pub server: ServerConfig,
    }
}

impl Default for PublisherConfig {
    fn default() -> Self {
        Self {
            encoding: Encoding::Records,
            payload_len: 64 << 10,
            flush_interval: Duration::from_millis(10),
            queue_len: 256,
            overflow: Overflow::Drop,
            subscription_count_max: 1024,
            topic_count_max: 4096,
            stop: None,
            server: ServerConfig::default(),
        }
    }
}

flowgauge::configuration! {
    /// Settings of a [`Subscriber`](crate::Subscriber).
    #[derive(Clone, Debug)]
    pub struct SubscriberConfig {
        /// Credentials. Default: none.
        pub security: ClientSecurity,
        /// Maximum number of received messages that wait for [`recv`](crate::Subscriber::recv). Default: 256. When they
        /// do, nothing more is read from the connection, and the publisher's queue fills.
        pub high_water_mark: usize,
        /// Maximum length of a message in octets. Default: 512 KiB, 8 times the payload of a publisher with default settings.
        /// The connection is closed after a longer one.
        pub message_len_max: usize,
        /// Maximum number of octets of received messages that wait. Default: 256 MiB. Fewer messages than
        /// [`high_water_mark`](Self::high_water_mark) wait if their maximum length requires it, but always one.
        pub queue_octets_max: usize,
        /// Time between attempts to connect again. Default: 100 ms.
        pub reconnect_interval: Duration,
    }
}

impl SubscriberConfig {
    /// Returns the number of messages that may wait at once.
    pub(crate) fn queue_len(&self) -> usize {
        let fitting = self.queue_octets_max / self.message_len_max.max(1);
        self.high_water_mark.min(fitting).max(1)
    }
}

impl Default for SubscriberConfig {
    fn default() -> Self {
        Self {
            security: ClientSecurity::None,
            high_water_mark: 256,
            message_len_max: 512 << 10,
            queue_octets_max: 256 << 20,
            reconnect_interval: Duration::from_millis(100),
        }
    }
}
