//! Captures that other programs send over TCP connections (pcap-over-IP).

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::thread;
use std::time::{Duration, Instant};

use super::capture::{Advanced, Capture, NewStream};
#[cfg(unix)]
use super::clock::IDLE_INTERVAL;
use super::config::SourceConfig;
use super::datagram::is_pause;
use super::error::{Error, resolve, socket_error};
#[cfg(unix)]
use super::input;
use super::interfaces::Interfaces;
use super::memory::Memory;
use super::slots::{SlotId, Slots};
use super::stats::SourceStats;
use super::warning::{Warning, WarningKind};
use super::{End, Interface, Next, Source};
use crate::base::FrameBatch;

/// Number of warnings that a source keeps; later ones are only counted.
const WARNING_COUNT_MAX: usize = 64;

/// Time for which no connections are accepted after the system refused one, for example because there are too many open
/// files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Time after which an attempt to connect fails.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

crate::base::configuration! {
    /// Configuration of a [`StreamSource`].
    #[derive(Clone, Debug)]
    pub struct StreamConfig {
        /// Limits and stop handle, as for a capture file. Compressed streams are not read.
        pub source: SourceConfig,
        /// Maximum number of simultaneous connections, half of them from one address if that is more than four. Beyond it, a new connection replaces
        /// the one that has sent no frame for the longest time, at least ten seconds, or it is closed; both are counted
        /// ([`SourceStats::refused_connection_count`]). The default is 16.
        pub connection_count_max: usize,
        /// Time within which a connection must have sent the header of its capture, or it is closed. The default is 10 s.
        pub header_timeout: Duration,
        /// Time between the end of a connection and the attempt to connect again. The default is 1 s.
        pub reconnect_interval: Duration,
    }
}

impl Default for StreamConfig {
    fn default() -> Self {
        Self {
            source: SourceConfig::default(),
            connection_count_max: 16,
            header_timeout: Duration::from_secs(10),
            reconnect_interval: Duration::from_secs(1),
        }
    }
}

/// Frames of captures that arrive over TCP connections, in pcap or pcapng format (pcap-over-IP).
///
/// [`listen`](Self::listen) accepts connections; [`connect`](Self::connect) makes one, and makes it again whenever it
/// ends. A connection that sends anything else than a capture is closed, counted
/// ([`SourceStats::failed_connection_count`]), and described by one of the first 64 [warnings](Source::warnings); the
/// others continue. Frames are delivered in the order in which they arrive, not merged by time. Equal interfaces of all
/// connections are one.
///
/// The source never ends unless its stop handle is set. It returns [`Next::Frames`] with an empty batch while nothing
/// arrives, because the clock of the frames is that of the sender. Memory is limited as for capture files.
#[derive(Debug)]
pub struct StreamSource {
    origin: Origin,
    connections: Vec<Connection>,
    slots: Slots,
    /// Time until which no connections are accepted.
    paused_until: Option<Instant>,
    /// Index of the connection that is examined first, so that none is preferred.
    first: usize,
    interfaces: Interfaces,
    memory: Memory,
    config: StreamConfig,
    /// Counts of the connections that ended, and of those that were refused.
    ended: SourceStats,
    ended_octet_count: u64,
    warnings: Vec<Warning>,
}

impl StreamSource {
    /// Accepts connections at an address.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Io`] if the address cannot be bound.
    pub fn listen(address: impl ToSocketAddrs, config: StreamConfig) -> Result<Self, Error> {
        let addresses = resolve("tcp", address)?;
        let listen = || {
            let listener = TcpListener::bind(&*addresses)?;
            listener.set_nonblocking(true)?;
            Ok(listener)
        };
        let listener = listen().map_err(|error| socket_error("tcp", &addresses, error))?;
        Ok(Self::new(Origin::Listener(listener), config))
    }

    /// Connects to an address. Later, whenever the connection ends, it is made again.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Io`] if the first attempt fails.
    pub fn connect(address: impl ToSocketAddrs, config: StreamConfig) -> Result<Self, Error> {
        let addresses = resolve("tcp", address)?;
        let stream = connect(&addresses).map_err(|error| socket_error("tcp", &addresses, error))?;
        let mut source = Self::new(Origin::Peer(Peer { addresses, state: PeerState::Connected }), config);
        source.add(stream);
        Ok(source)
    }

    fn new(origin: Origin, config: StreamConfig) -> Self {
        let memory = Memory::new(&config.source);
        let interfaces = Interfaces::new(config.source.resources.limits.interface_count_max, &memory);
        Self {
            origin,
            connections: Vec::new(),
            slots: Slots::new(config.connection_count_max),
            paused_until: None,
            first: 0,
            interfaces,
            memory,
            config,
            ended: SourceStats::default(),
            ended_octet_count: 0,
            warnings: Vec::new(),
        }
    }

    /// Returns the address at which the source accepts connections, or the local address of its connection.
    ///
    /// # Errors
    ///
    /// Returns the error of the operating system, and [`io::ErrorKind::NotConnected`] between two connections.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        match (&self.origin, self.connections.first()) {
            (Origin::Listener(listener), _) => listener.local_addr(),
            (Origin::Peer(_), Some(connection)) => connection.stream.local_addr(),
            (Origin::Peer(_), None) => Err(io::ErrorKind::NotConnected.into()),
        }
    }

    /// Returns the number of open connections.
    #[must_use]
    pub const fn connection_count(&self) -> usize {
        self.connections.len()
    }

    /// Adds a connection, if there is a slot for it. One that the peer has already reset is only counted.
    fn add(&mut self, stream: TcpStream) {
        let now = Instant::now();
        let Ok(peer) = stream.peer_addr() else {
            self.ended.failed_connection_count += 1;
            return;
        };
        let Some(admission) = self.slots.admit(peer.ip(), now) else {
            self.ended.refused_connection_count += 1;
            return;
        };
        if let Some(replaced) = admission.replaced {
            self.close(replaced, "it sent no frame while another connection waited");
        }
        match Connection::new(stream, peer, admission.slot, &self.memory) {
            Ok(connection) => self.connections.push(connection),
            Err(_) => {
                self.slots.release(admission.slot);
                self.ended.failed_connection_count += 1;
            }
        }
    }

    /// Closes the connection that has lost its slot.
    fn close(&mut self, slot: SlotId, reason: &'static str) {
        if let Some(index) = self.connections.iter().position(|connection| connection.slot == slot) {
            self.ended.refused_connection_count += 1;
            let path = self.connections.get(index).map(|connection| connection.path.clone());
            let kind = WarningKind::Connection(reason);
            self.warn(Warning { path: path.unwrap_or_default(), offset: 0, frame_number: 1, kind });
            self.end(index, None);
        }
    }

    /// Accepts waiting connections, or continues to connect.
    fn open_connections(&mut self) {
        if self.paused_until.is_some_and(|until| Instant::now() < until) {
            return;
        }
        self.paused_until = None;
        // As many as fit, so that connections that are refused do not delay the others.
        for _ in 0..self.config.connection_count_max.max(1) {
            match self.origin.next(self.connections.is_empty(), self.config.reconnect_interval) {
                Ok(Some(stream)) => self.add(stream),
                Ok(None) => break,
                Err(Attempt::Failed) => self.ended.failed_connection_count += 1,
                Err(Attempt::Refused) => {
                    // Too many open files, or too little memory: one connection less may help.
                    self.ended.refused_connection_count += 1;
                    let now = Instant::now();
                    if let Some(slot) = self.slots.release_inactive(None, now) {
                        self.close(slot, "the system permits no further connections");
                    }
                    self.paused_until = Some(now + ACCEPT_PAUSE);
                    break;
                }
            }
        }
    }

    /// Counts a connection that ended, and keeps its warnings.
    fn end(&mut self, index: usize, problem: Option<WarningKind>) {
        let connection = self.connections.swap_remove(index);
        self.slots.release(connection.slot);
        if let Some(kind) = problem {
            self.ended.failed_connection_count += 1;
            self.warn(Warning { path: connection.path, offset: 0, frame_number: 1, kind });
        }
        if let State::Open(capture) = connection.state {
            self.ended += capture.stats();
            self.ended_octet_count += capture.progress();
            capture.warnings().iter().for_each(|warning| self.warn(warning.clone()));
        }
    }

    fn warn(&mut self, warning: Warning) {
        if self.warnings.len() < WARNING_COUNT_MAX {
            self.warnings.push(warning);
        }
    }

    fn captures(&self) -> impl Iterator<Item = &Capture> {
        self.connections.iter().filter_map(|connection| match &connection.state {
            State::Open(capture) => Some(&**capture),
            State::New(..) | State::Closed => None,
        })
    }
}

impl Source for StreamSource {
    fn next_batch(&mut self, batch: &mut FrameBatch) -> Result<Next, Error> {
        batch.clear();
        if self.memory.stop().is_stopped() {
            return Ok(Next::End(End::Stopped));
        }
        let is_accepting = self.paused_until.is_none();
        wait(is_accepting.then_some(&self.origin), &self.connections);
        self.open_connections();
        let mut examined_count = 0;
        while examined_count < self.connections.len() {
            let index = (self.first + examined_count) % self.connections.len();
            let Some(connection) = self.connections.get_mut(index) else { break };
            match connection.read(batch, &mut self.interfaces, &self.config, &self.memory) {
                Ok(Next::Frames) if !batch.is_empty() => {
                    self.slots.note_activity(connection.slot, Instant::now());
                    self.first = index + 1;
                    break;
                }
                Ok(Next::Frames | Next::Idle(_)) => examined_count += 1,
                Ok(Next::End(_)) => self.end(index, None),
                Err(kind) => {
                    self.end(index, Some(kind));
                    // The batch may contain the frames before the error.
                    if !batch.is_empty() {
                        break;
                    }
                }
            }
        }
        Ok(Next::Frames)
    }

    fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    fn stats(&self) -> SourceStats {
        self.captures().fold(self.ended, |mut sum, capture| {
            sum += capture.stats();
            sum
        })
    }

    fn interfaces(&self) -> &[Interface] {
        self.interfaces.as_slice()
    }

    fn progress(&self) -> u64 {
        self.ended_octet_count + self.captures().map(Capture::progress).sum::<u64>()
    }
}

/// Origin of connections.
#[derive(Debug)]
enum Origin {
    Listener(TcpListener),
    Peer(Peer),
}

/// Address to which the source connects.
#[derive(Debug)]
struct Peer {
    addresses: Vec<SocketAddr>,
    state: PeerState,
}

#[derive(Debug)]
enum PeerState {
    Connected,
    /// Waits for an attempt in another thread.
    Connecting(Receiver<io::Result<TcpStream>>),
    /// Waits for the time of the next attempt.
    Disconnected(Instant),
}

/// Reason that no connection was made.
enum Attempt {
    /// The attempt failed, and another one may succeed.
    Failed,
    /// The system refused the connection for lack of resources.
    Refused,
}

impl Origin {
    /// Returns the next connection; `None` if there is none at present. `is_unconnected` states that all connections
    /// have ended.
    fn next(&mut self, is_unconnected: bool, interval: Duration) -> Result<Option<TcpStream>, Attempt> {
        let peer = match self {
            Self::Listener(listener) => {
                return match listener.accept() {
                    Ok((stream, _)) => Ok(Some(stream)),
                    Err(error) if is_pause(&error) => Ok(None),
                    // The peer reset the connection before it was accepted.
                    Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => Err(Attempt::Failed),
                    Err(_) => Err(Attempt::Refused),
                };
            }
            Self::Peer(peer) => peer,
        };
        match &peer.state {
            PeerState::Connected if is_unconnected => {
                peer.state = PeerState::Disconnected(Instant::now() + interval);
            }
            PeerState::Disconnected(time) if Instant::now() >= *time => {
                let (sender, receiver) = channel();
                let addresses = peer.addresses.clone();
                // The receiver may have been dropped when the attempt ends.
                thread::spawn(move || drop(sender.send(connect(&addresses))));
                peer.state = PeerState::Connecting(receiver);
            }
            PeerState::Connecting(attempt) => match attempt.try_recv() {
                Ok(Ok(stream)) => {
                    peer.state = PeerState::Connected;
                    return Ok(Some(stream));
                }
                Err(TryRecvError::Empty) => {}
                Ok(Err(_)) | Err(TryRecvError::Disconnected) => {
                    peer.state = PeerState::Disconnected(Instant::now() + interval);
                    return Err(Attempt::Failed);
                }
            },
            PeerState::Connected | PeerState::Disconnected(_) => {}
        }
        Ok(None)
    }
}

/// Connects to the first of the addresses that accepts.
fn connect(addresses: &[SocketAddr]) -> io::Result<TcpStream> {
    let mut result = Err(io::Error::other("the host has no address"));
    for address in addresses {
        result = TcpStream::connect_timeout(address, CONNECT_TIMEOUT);
        if result.is_ok() {
            break;
        }
    }
    result
}

/// A connection and the capture that arrives on it.
#[derive(Debug)]
struct Connection {
    stream: TcpStream,
    path: PathBuf,
    slot: SlotId,
    state: State,
}

#[derive(Debug)]
enum State {
    /// The header of the capture is incomplete. Contains the time at which the connection was made.
    New(NewStream, Instant),
    Open(Box<Capture>),
    Closed,
}

impl Connection {
    fn new(stream: TcpStream, peer: SocketAddr, slot: SlotId, memory: &Memory) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        let path = PathBuf::from(format!("tcp {peer}"));
        let new = NewStream::new(stream.try_clone()?, &path, memory);
        Ok(Self { stream, path, slot, state: State::New(new, Instant::now()) })
    }

    /// Reads what has arrived. Returns the reason to close the connection as an error.
    fn read(
        &mut self,
        batch: &mut FrameBatch,
        interfaces: &mut Interfaces,
        config: &StreamConfig,
        memory: &Memory,
    ) -> Result<Next, WarningKind> {
        if matches!(self.state, State::New(..)) {
            self.advance(interfaces, config, memory)?;
        }
        match &mut self.state {
            State::New(..) => Ok(Next::Frames),
            State::Open(capture) => capture.fill(batch, interfaces).map_err(problem),
            State::Closed => Ok(Next::End(End::Complete)),
        }
    }

    /// Reads the header of a connection that has sent no frame yet.
    fn advance(
        &mut self,
        interfaces: &mut Interfaces,
        config: &StreamConfig,
        memory: &Memory,
    ) -> Result<(), WarningKind> {
        let State::New(new, opened_at) = std::mem::replace(&mut self.state, State::Closed) else {
            return Ok(());
        };
        if opened_at.elapsed() > config.header_timeout {
            return Err(WarningKind::Connection("the header of a capture did not arrive in time"));
        }
        self.state = match new.advance(&config.source.resources.limits, memory).map_err(problem)? {
            Advanced::Waiting(new) => State::New(new, opened_at),
            Advanced::Open(mut capture) => {
                capture.number_interfaces(interfaces);
                State::Open(capture)
            }
            Advanced::End => State::Closed,
        };
        Ok(())
    }
}

/// Describes the error of a connection.
fn problem(error: Error) -> WarningKind {
    match error {
        Error::NotACapture { looks_like, .. } => WarningKind::NotACapture(looks_like),
        Error::Version { .. } => WarningKind::NotACapture("a capture of an unsupported version"),
        Error::Memory { .. } => WarningKind::Connection("too little memory remained"),
        Error::Io { error, .. } => WarningKind::Io(error.kind()),
        _ => WarningKind::Connection("it could not be read"),
    }
}

/// Waits until data arrives, or a connection if `origin` is not `None`, at most [`IDLE_INTERVAL`].
#[cfg(unix)]
fn wait(origin: Option<&Origin>, connections: &[Connection]) {
    use rustix::event::{PollFd, PollFlags, poll};
    let mut sockets: Vec<_> =
        connections.iter().map(|connection| PollFd::new(&connection.stream, PollFlags::IN)).collect();
    if let Some(Origin::Listener(listener)) = origin {
        sockets.push(PollFd::new(listener, PollFlags::IN));
    }
    // An error, for example by a signal, only ends the wait.
    let _ = poll(&mut sockets, Some(&input::time_spec(IDLE_INTERVAL)));
}

/// Waits a short time, because the system has no function that waits for several sockets.
#[cfg(not(unix))]
fn wait(_: Option<&Origin>, _: &[Connection]) {
    thread::sleep(Duration::from_millis(5));
}
