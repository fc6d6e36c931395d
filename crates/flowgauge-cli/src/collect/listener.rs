//! Sockets that receive messages, each with a thread of its own.

use std::fmt;
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use flowgauge::StopHandle;
use flowgauge::codec::ipfix::MessageReader;

use crate::ipfix::{checked_address, resolve};

/// Number of messages that wait for the collector. Sockets are read no further when it is reached. The memory is at most
/// 16 MiB.
const QUEUE_LEN: usize = 256;

/// Number of simultaneous connections of all TCP sockets. Further connections are closed.
const CONNECTION_COUNT_MAX: usize = 64;

/// Time for which a thread waits before it checks whether the command is stopped.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Address at which messages are received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Endpoint {
    Udp(String),
    Tcp(String),
}

impl FromStr for Endpoint {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once("://") {
            Some(("udp", address)) => checked_address(address).map(Self::Udp),
            Some(("tcp", address)) => checked_address(address).map(Self::Tcp),
            _ => Err("must begin with udp:// or tcp://, such as udp://127.0.0.1:4739".to_owned()),
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

/// Event of a socket.
pub(super) enum Event {
    /// A message from an exporter.
    Message(SocketAddr, Vec<u8>),
    /// The connection of an exporter was closed.
    Closed(SocketAddr),
    /// A socket or a connection cannot be read further.
    Problem(String),
}

/// Opens sockets and begins to receive. All sockets are closed after `stop` is set, when what had arrived before was
/// received; the receiver then ends.
pub(super) fn listen(endpoints: &[Endpoint], stop: &StopHandle) -> Result<Receiver<Event>, String> {
    let (events, receiver) = sync_channel(QUEUE_LEN);
    let connection_count = Arc::new(AtomicUsize::new(0));
    for endpoint in endpoints {
        let context = Context {
            name: endpoint.to_string(),
            events: events.clone(),
            stop: stop.clone(),
            connection_count: Arc::clone(&connection_count),
        };
        let problem = |error: io::Error| format!("{endpoint}: {error}");
        match endpoint {
            Endpoint::Udp(address) => {
                let socket = UdpSocket::bind(&*resolve(address).map_err(problem)?).map_err(problem)?;
                socket.set_read_timeout(Some(POLL_INTERVAL)).map_err(problem)?;
                thread::spawn(move || context.receive(&socket));
            }
            Endpoint::Tcp(address) => {
                let listener = TcpListener::bind(&*resolve(address).map_err(problem)?).map_err(problem)?;
                listener.set_nonblocking(true).map_err(problem)?;
                thread::spawn(move || context.accept(&listener));
            }
        }
    }
    Ok(receiver)
}

/// What the threads of a socket share.
#[derive(Clone)]
struct Context {
    name: String,
    events: SyncSender<Event>,
    stop: StopHandle,
    connection_count: Arc<AtomicUsize>,
}

impl Context {
    /// Sends an event. The receiver exists for as long as the command runs.
    fn send(&self, event: Event) {
        let _ = self.events.send(event);
    }

    fn receive(&self, socket: &UdpSocket) {
        let mut buffer = vec![0; 1 << 16];
        let mut is_last = false;
        loop {
            match socket.recv_from(&mut buffer) {
                Ok((len, exporter)) => {
                    self.send(Event::Message(exporter, buffer.get(..len).unwrap_or_default().to_vec()));
                    continue;
                }
                Err(error) if is_pause(&error) => {}
                Err(error) => return self.send(Event::Problem(format!("{}: {error}", self.name))),
            }
            // Messages that arrived before the end are still in the buffer of the socket.
            if is_last {
                return;
            }
            if self.stop.is_stopped() {
                is_last = socket.set_nonblocking(true).is_ok();
            }
        }
    }

    fn accept(&self, listener: &TcpListener) {
        loop {
            match listener.accept() {
                Ok((stream, exporter)) => self.connect(stream, exporter),
                // Connections that were established before the end are accepted first.
                Err(error) if is_pause(&error) && self.stop.is_stopped() => return,
                Err(error) if is_pause(&error) => thread::sleep(POLL_INTERVAL),
                Err(error) => return self.send(Event::Problem(format!("{}: {error}", self.name))),
            }
        }
    }

    fn connect(&self, stream: TcpStream, exporter: SocketAddr) {
        if self.connection_count.fetch_add(1, Relaxed) >= CONNECTION_COUNT_MAX {
            self.connection_count.fetch_sub(1, Relaxed);
            let problem =
                format!("{exporter}: connection closed: there are {CONNECTION_COUNT_MAX} connections");
            return self.send(Event::Problem(problem));
        }
        let context = self.clone();
        thread::spawn(move || {
            if let Err(error) = context.read(stream, exporter) {
                context.send(Event::Problem(format!("{exporter}: {error}")));
            }
            context.send(Event::Closed(exporter));
            context.connection_count.fetch_sub(1, Relaxed);
        });
    }

    /// Reads the messages of a connection until it is closed, or until no message arrives after the command is stopped.
    fn read(&self, stream: TcpStream, exporter: SocketAddr) -> io::Result<()> {
        stream.set_nonblocking(false)?;
        stream.set_read_timeout(Some(POLL_INTERVAL))?;
        let mut messages = MessageReader::new(stream);
        loop {
            match messages.next() {
                Ok(Some(message)) => self.send(Event::Message(exporter, message.to_vec())),
                Ok(None) => return Ok(()),
                Err(error) if is_pause(&error) => {
                    if self.stop.is_stopped() {
                        return Ok(());
                    }
                }
                Err(error) => return Err(error),
            }
        }
    }
}

/// Returns whether an error of a read is only the end of its wait.
fn is_pause(error: &io::Error) -> bool {
    // Linux reports that a datagram which this socket never sent was refused.
    matches!(
        error.kind(),
        ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted | ErrorKind::ConnectionReset
    )
}
