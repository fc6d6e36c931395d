//! The bound sockets: accepted connections, their limits, and a bounded queue for each peer.
//!
//! The transports and the ZMTP connections are those of omq-tokio. Its sockets hide the peers of a socket from the
//! caller, and with them the number of messages that were dropped for each; a server therefore has a connection driver
//! of omq-tokio per peer, and a queue in front of each.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use omq_tokio::engine::driver::DriverStream;
use omq_tokio::engine::{ConnectionDriver, PeerDriverCommand, PeerDriverConfig, PeerDriverData, PeerEvent};
use omq_tokio::proto::connection::{ConnectionConfig, Role};
use omq_tokio::proto::{Command, Connection, Event};
use omq_tokio::transport::{IpcTransport, Listener, PeerIdent, TcpTransport, Transport};
use omq_tokio::{Endpoint, Message, SocketType};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tokio_util::sync::CancellationToken;

use crate::config::ServerConfig;
use crate::patience::Patience;

/// Interval of heartbeats to peers, and the time without any input after which a peer is disconnected.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(20);
const HEARTBEAT_TIMEOUT: Duration = Duration::from_secs(60);

/// Number of events that wait for the server.
const EVENT_COUNT_MAX: usize = 1024;

/// Number of control commands that wait for a connection driver.
const COMMAND_COUNT_MAX: usize = 8;

/// Pause after an error of a listener, for example because there are too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Counters of a bound socket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerStats {
    /// Number of accepted connections.
    pub accepted_count: u64,
    /// Number of connections that were closed at once because there were too many peers.
    pub refused_count: u64,
    /// Number of connections that ended before the handshake was complete: other protocols, wrong credentials, peers
    /// that sent nothing.
    pub failed_handshake_count: u64,
    /// Number of peers that were disconnected because they sent something malformed, too long or too much.
    pub violation_count: u64,
}

#[derive(Debug, Default)]
pub(crate) struct ServerCounters {
    accepted: AtomicU64,
    refused: AtomicU64,
    failed_handshake: AtomicU64,
    violation: AtomicU64,
}

impl ServerCounters {
    pub(crate) fn stats(&self) -> ServerStats {
        ServerStats {
            accepted_count: self.accepted.load(Relaxed),
            refused_count: self.refused.load(Relaxed),
            failed_handshake_count: self.failed_handshake.load(Relaxed),
            violation_count: self.violation.load(Relaxed),
        }
    }
}

/// Event of a peer.
#[derive(Debug)]
pub(crate) enum ServerEvent {
    Connected { peer: u64, name: String },
    Message { peer: u64, message: Message },
    Command { peer: u64, command: Command },
    Disconnected { peer: u64 },
}

/// Name and stream of an accepted connection.
type Accepted = (String, AcceptedStream);

/// Both ends of a channel: the server keeps a sender for the tasks that it will start.
type Channel<T> = (mpsc::Sender<T>, mpsc::Receiver<T>);

enum AcceptedStream {
    Tcp(TcpStream),
    Ipc(<IpcTransport as Transport>::Stream),
}

/// Stream of IPC, which omq-tokio drives only inside of its own sockets.
struct IpcConnection(<IpcTransport as Transport>::Stream);

impl DriverStream for IpcConnection {
    type Reader = tokio::io::ReadHalf<<IpcTransport as Transport>::Stream>;
    type Writer = tokio::io::WriteHalf<<IpcTransport as Transport>::Stream>;

    fn split(self, _: bool) -> (Self::Reader, Self::Writer) {
        tokio::io::split(self.0)
    }
}

/// A second descriptor of a connection.
///
/// libzmq discards what it has not read yet when both directions of a connection are closed while its queue is full. The
/// driver closes the direction to the peer; this descriptor keeps the other direction open until the peer closes it.
#[derive(Debug)]
enum Second {
    Tcp(TcpStream),
    #[cfg(unix)]
    Ipc(tokio::net::UnixStream),
}

impl Second {
    /// Waits until the peer has closed the connection.
    async fn closed(self) {
        let mut octets = [0; 1024];
        loop {
            let read = match &self {
                Self::Tcp(stream) => stream.readable().await.and_then(|()| stream.try_read(&mut octets)),
                #[cfg(unix)]
                Self::Ipc(stream) => stream.readable().await.and_then(|()| stream.try_read(&mut octets)),
            };
            match read {
                Ok(0) => return,
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => return,
            }
        }
    }
}

/// A connected peer.
#[derive(Debug)]
struct Peer {
    name: String,
    second: Option<Second>,
    commands: mpsc::Sender<PeerDriverCommand>,
    queue: mpsc::Sender<PeerDriverData>,
    cancel: CancellationToken,
    is_ready: bool,
    is_violating: bool,
}

/// What the driver of a connection receives from the server.
struct Inboxes {
    commands: mpsc::Receiver<PeerDriverCommand>,
    queued: mpsc::Receiver<PeerDriverData>,
    cancel: CancellationToken,
}

/// The bound sockets of a publisher or a router. It runs on one thread, in a runtime of tokio.
pub(crate) struct Server {
    config: ServerConfig,
    socket_type: SocketType,
    peers: HashMap<u64, Peer>,
    next_peer: u64,
    counters: Arc<ServerCounters>,
    accepted: Channel<Accepted>,
    events: Channel<(u64, PeerEvent)>,
    /// Tasks that accept connections.
    listeners: Vec<AbortHandle>,
    is_draining: bool,
    /// Connections whose drivers have ended while the server drains.
    seconds: Vec<Second>,
}

impl Server {
    pub(crate) fn new(config: ServerConfig, socket_type: SocketType, counters: Arc<ServerCounters>) -> Self {
        Self {
            config,
            socket_type,
            peers: HashMap::new(),
            next_peer: 0,
            counters,
            accepted: mpsc::channel(16),
            events: mpsc::channel(EVENT_COUNT_MAX),
            listeners: Vec::new(),
            is_draining: false,
            seconds: Vec::new(),
        }
    }

    /// Binds an endpoint, and accepts connections from then on. Returns the endpoint with its port.
    pub(crate) async fn bind(&mut self, endpoint: &Endpoint) -> omq_tokio::Result<Endpoint> {
        if let Endpoint::Ipc(_) = endpoint {
            let listener = IpcTransport::bind(endpoint).await?;
            Ok(self.listen(listener, AcceptedStream::Ipc))
        } else {
            let listener = TcpTransport::bind(endpoint).await?;
            Ok(self.listen(listener, AcceptedStream::Tcp))
        }
    }

    fn listen<L: Listener>(&mut self, mut listener: L, wrap: fn(L::Stream) -> AcceptedStream) -> Endpoint
    where
        L::Stream: 'static,
    {
        let endpoint = listener.local_endpoint().clone();
        let accepted = self.accepted.0.clone();
        let name = endpoint.to_string();
        let task = tokio::task::spawn_local(async move {
            loop {
                let Ok((stream, peer)) = listener.accept().await else {
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                    continue;
                };
                let name = match peer {
                    PeerIdent::Socket(address) => address.to_string(),
                    _ => name.clone(),
                };
                if accepted.send((name, wrap(stream))).await.is_err() {
                    return;
                }
            }
        });
        self.listeners.push(task.abort_handle());
        endpoint
    }

    /// Returns the next event. May be canceled without loss.
    pub(crate) async fn next(&mut self) -> ServerEvent {
        loop {
            tokio::select! {
                Some((name, stream)) = self.accepted.1.recv() => self.admit(name, stream),
                Some((peer, event)) = self.events.1.recv() => {
                    if let Some(event) = self.process(peer, event) {
                        return event;
                    }
                }
            }
        }
    }

    fn admit(&mut self, name: String, stream: AcceptedStream) {
        self.counters.accepted.fetch_add(1, Relaxed);
        if self.peers.len() >= self.config.peer_count_max {
            self.counters.refused.fetch_add(1, Relaxed);
            return;
        }
        let id = self.next_peer;
        self.next_peer += 1;
        let (commands, command_inbox) = mpsc::channel(COMMAND_COUNT_MAX);
        let (queue, queued) = mpsc::channel(self.config.high_water_mark.max(1));
        let cancel = CancellationToken::new();
        let inboxes = Inboxes { commands: command_inbox, queued, cancel: cancel.clone() };
        let second = match stream {
            AcceptedStream::Tcp(stream) => {
                let Ok((stream, second)) = duplicate_tcp(stream) else { return };
                self.drive(id, &name, stream, inboxes);
                Some(Second::Tcp(second))
            }
            AcceptedStream::Ipc(stream) => {
                #[cfg(unix)]
                let Ok((stream, second)) = duplicate_ipc(stream) else { return };
                self.drive(id, &name, IpcConnection(stream), inboxes);
                #[cfg(unix)]
                let second = Some(Second::Ipc(second));
                #[cfg(not(unix))]
                let second = None;
                second
            }
        };
        let peer = Peer { name, second, commands, queue, cancel, is_ready: false, is_violating: false };
        self.peers.insert(id, peer);
    }

    /// Starts the driver of a connection, which reports its end as an event.
    fn drive(&self, id: u64, name: &str, stream: impl DriverStream + 'static, inboxes: Inboxes) {
        let connection = ConnectionConfig::new(Role::Server, self.socket_type)
            .max_message_size(self.config.message_len_max)
            .mechanism(self.config.security.mechanism())
            .peer_address(name.to_owned());
        let config = PeerDriverConfig {
            handshake_timeout: Some(self.config.handshake_timeout),
            heartbeat_interval: Some(HEARTBEAT_INTERVAL),
            heartbeat_timeout: Some(HEARTBEAT_TIMEOUT),
            ..PeerDriverConfig::default()
        };
        let connection = Connection::new(connection);
        let events = self.events.0.clone();
        let Inboxes { commands, queued, cancel } = inboxes;
        let driver = ConnectionDriver::with_config(stream, connection, commands, events, id, cancel, config);
        tokio::task::spawn_local(driver.with_data_inbox(queued).run());
    }

    fn process(&mut self, id: u64, event: PeerEvent) -> Option<ServerEvent> {
        match event {
            PeerEvent::Event(Event::HandshakeSucceeded { peer_properties, .. }) => {
                let peer = self.peers.get_mut(&id)?;
                peer.is_ready = true;
                if let Some(identity) =
                    peer_properties.identity.as_ref().filter(|identity| !identity.is_empty())
                {
                    // Chosen by the peer; used in statistics only.
                    peer.name = identity.escape_ascii().to_string();
                }
                let _ = peer.commands.try_send(PeerDriverCommand::ActivateDataPlane);
                Some(ServerEvent::Connected { peer: id, name: peer.name.clone() })
            }
            PeerEvent::Event(Event::Message(message)) => Some(ServerEvent::Message { peer: id, message }),
            PeerEvent::Event(Event::Command(command)) => Some(ServerEvent::Command { peer: id, command }),
            PeerEvent::Closed { error } => {
                let peer = self.peers.remove(&id)?;
                if !peer.is_ready {
                    self.counters.failed_handshake.fetch_add(1, Relaxed);
                    return None;
                }
                if peer.is_violating || error.is_some_and(|error| is_violation(&error)) {
                    self.counters.violation.fetch_add(1, Relaxed);
                }
                if self.is_draining {
                    self.seconds.extend(peer.second);
                }
                Some(ServerEvent::Disconnected { peer: id })
            }
        }
    }

    /// Disconnects a peer because it violated the protocol or a limit.
    pub(crate) fn disconnect(&mut self, id: u64) {
        if let Some(peer) = self.peers.get_mut(&id) {
            peer.is_violating = true;
            peer.cancel.cancel();
        }
    }

    /// Returns the queue of a peer.
    pub(crate) fn queue(&self, id: u64) -> Option<&mpsc::Sender<PeerDriverData>> {
        self.peers.get(&id).map(|peer| &peer.queue)
    }

    /// Accepts no more connections, sends what the queues contain, and disconnects all peers until `deadline`, or before
    /// as `patience` permits.
    pub(crate) async fn drain(&mut self, deadline: Instant, patience: &Patience) {
        self.is_draining = true;
        self.listeners.iter().for_each(AbortHandle::abort);
        for peer in self.peers.values() {
            if peer.is_ready {
                let _ = peer.commands.try_send(PeerDriverCommand::DrainAndClose { deadline: Some(deadline) });
            } else {
                peer.cancel.cancel();
            }
        }
        while !self.peers.is_empty() {
            if patience.wait(deadline, self.next()).await.is_none() {
                break;
            }
        }
        self.peers.values().for_each(|peer| peer.cancel.cancel());
        for second in self.seconds.drain(..) {
            let _ = patience.wait(deadline, second.closed()).await;
        }
    }
}

fn duplicate_tcp(stream: TcpStream) -> io::Result<(TcpStream, TcpStream)> {
    let stream = stream.into_std()?;
    let second = stream.try_clone()?;
    Ok((TcpStream::from_std(stream)?, TcpStream::from_std(second)?))
}

#[cfg(unix)]
fn duplicate_ipc(
    stream: tokio::net::UnixStream,
) -> io::Result<(tokio::net::UnixStream, tokio::net::UnixStream)> {
    let stream = stream.into_std()?;
    let second = stream.try_clone()?;
    Ok((tokio::net::UnixStream::from_std(stream)?, tokio::net::UnixStream::from_std(second)?))
}

/// Returns whether a connection ended because of the content that the peer sent, not because of the network.
fn is_violation(error: &str) -> bool {
    ["protocol violation", "message too large", "handshake failed"]
        .iter()
        .any(|violation| error.contains(violation))
}
