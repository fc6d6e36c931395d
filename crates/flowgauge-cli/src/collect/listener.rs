//! Sockets that receive messages, each with a thread of its own.

use std::collections::HashMap;
use std::io::{self, ErrorKind};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use flowgauge::StopHandle;
use flowgauge::base::IpProtocol;
use flowgauge::ipfix::MessageReader;
use flowgauge::ipfix::collector::TransportSession;
use flowgauge::source::{Admission, DatagramSocket, SlotId, Slots};

use crate::endpoint::Endpoint;

/// Number of messages that wait for the collector, at most 16 MiB. Sockets are read no further when it is reached.
const QUEUE_LEN: usize = 256;

/// Length of the kernel's receive buffer of a UDP socket in octets, if the system permits it.
const BUFFER_LEN: usize = 16 << 20;

/// Number of simultaneous connections of all TCP sockets.
const CONNECTION_COUNT_MAX: usize = 64;

/// Time for which no connections are accepted after the system refused one.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Time for which a thread waits before it checks whether the command is stopped.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Time for which messages are received after the command is stopped.
const DRAIN_TIME: Duration = Duration::from_secs(1);

/// Event of a socket.
pub(super) enum Event {
    /// A message from an exporter.
    Message(TransportSession, Vec<u8>),
    /// The connection of an exporter was closed.
    Closed(TransportSession),
    /// The connection of an exporter was closed at once, because there are too many.
    Refused(SocketAddr),
    /// The kernel dropped this number of messages, because they arrived faster than they were read.
    Dropped(u64),
    /// A socket or a connection cannot be read further.
    Problem(String),
}

/// Opens sockets and begins to receive. All sockets are closed after `stop` is set, when what had arrived before was
/// received; the receiver then ends.
pub(super) fn listen(endpoints: &[Endpoint], stop: &StopHandle) -> Result<Receiver<Event>, String> {
    let (events, receiver) = sync_channel(QUEUE_LEN);
    let connections = Arc::new(Mutex::new(Connections::new()));
    for endpoint in endpoints {
        let context = Context {
            name: endpoint.to_string(),
            events: events.clone(),
            stop: stop.clone(),
            connections: Arc::clone(&connections),
        };
        let problem = |error: io::Error| format!("{endpoint}: {error}");
        match endpoint {
            Endpoint::Udp(_) => {
                let addresses = endpoint.resolve().map_err(problem)?;
                let socket = DatagramSocket::bind(&*addresses, BUFFER_LEN).map_err(problem)?;
                thread::spawn(move || context.receive(socket));
            }
            Endpoint::Tcp(_) => {
                let addresses = endpoint.resolve().map_err(problem)?;
                let listener = TcpListener::bind(&*addresses).map_err(problem)?;
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
    connections: Arc<Mutex<Connections>>,
}

/// Open connections of all TCP sockets.
struct Connections {
    slots: Slots,
    streams: HashMap<SlotId, TcpStream>,
}

impl Connections {
    fn new() -> Self {
        Self { slots: Slots::new(CONNECTION_COUNT_MAX), streams: HashMap::new() }
    }

    /// Closes the connection that has lost its slot. Its thread ends, and reports the end.
    fn close(&mut self, slot: SlotId) {
        if let Some(stream) = self.streams.remove(&slot) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

impl Context {
    /// Sends an event. The receiver exists for as long as the command runs.
    fn send(&self, event: Event) {
        let _ = self.events.send(event);
    }

    fn receive(&self, mut socket: DatagramSocket) {
        let mut drain = Drain::default();
        let mut drop_count = 0;
        while !drain.is_over(&self.stop) {
            let received = socket.receive(POLL_INTERVAL, |datagram| {
                self.send(Event::Message(datagram.sender.into(), datagram.payload.to_vec()));
            });
            let new_drop_count = socket.drop_count() - drop_count;
            if new_drop_count > 0 {
                drop_count += new_drop_count;
                self.send(Event::Dropped(new_drop_count));
            }
            match received {
                // Messages that arrived before the end were received first.
                Ok(0) if self.stop.is_stopped() => return,
                Ok(_) => {}
                Err(error) => return self.send(Event::Problem(format!("{}: {error}", self.name))),
            }
        }
    }

    fn accept(&self, listener: &TcpListener) {
        let mut drain = Drain::default();
        let mut is_reported = false;
        while !drain.is_over(&self.stop) {
            match listener.accept() {
                Ok((stream, exporter)) => self.connect(stream, exporter),
                // Connections that were established before the end are accepted first.
                Err(error) if is_pause(&error) && self.stop.is_stopped() => return,
                Err(error) if is_pause(&error) => thread::sleep(POLL_INTERVAL),
                Err(error) if error.kind() == ErrorKind::ConnectionAborted => {}
                Err(error) => {
                    // Too many open files, or too little memory: one connection less may help.
                    if !is_reported {
                        is_reported = true;
                        self.send(Event::Problem(format!("{}: connection refused: {error}", self.name)));
                    }
                    let mut connections = self.connections();
                    if let Some(slot) = connections.slots.release_inactive(None, Instant::now()) {
                        connections.close(slot);
                    }
                    drop(connections);
                    thread::sleep(ACCEPT_PAUSE);
                }
            }
        }
    }

    /// Returns the connections. A thread that panics changes them completely or not at all.
    fn connections(&self) -> MutexGuard<'_, Connections> {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn connect(&self, stream: TcpStream, exporter: SocketAddr) {
        let mut connections = self.connections();
        let admission = connections.slots.admit(exporter.ip(), Instant::now());
        let Some(Admission { slot, replaced }) = admission else {
            drop(connections);
            return self.send(Event::Refused(exporter));
        };
        if let Some(replaced) = replaced {
            connections.close(replaced);
        }
        if let Ok(handle) = stream.try_clone() {
            connections.streams.insert(slot, handle);
        }
        drop(connections);
        let context = self.clone();
        thread::spawn(move || {
            if let Err(error) = context.read(stream, exporter, slot) {
                context.send(Event::Problem(format!("{exporter}: {error}")));
            }
            context.send(Event::Closed(TransportSession::new(IpProtocol::TCP, exporter)));
            let mut connections = context.connections();
            connections.slots.release(slot);
            connections.streams.remove(&slot);
        });
    }

    /// Reads the messages of a connection until it is closed, or until no message arrives after the command is stopped.
    fn read(&self, stream: TcpStream, exporter: SocketAddr, slot: SlotId) -> io::Result<()> {
        stream.set_nonblocking(false)?;
        stream.set_read_timeout(Some(POLL_INTERVAL))?;
        let session = TransportSession::new(IpProtocol::TCP, exporter);
        let mut messages = MessageReader::new(stream);
        let mut drain = Drain::default();
        while !drain.is_over(&self.stop) {
            match messages.next() {
                Ok(Some(message)) => {
                    self.connections().slots.note_activity(slot, Instant::now());
                    self.send(Event::Message(session, message.to_vec()));
                }
                Ok(None) => return Ok(()),
                Err(error) if is_pause(&error) && self.stop.is_stopped() => return Ok(()),
                Err(error) if is_pause(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// Limits the time for which messages are received after the command is stopped: an exporter may never pause.
#[derive(Default)]
struct Drain {
    end: Option<Instant>,
}

impl Drain {
    /// Returns whether the time has passed.
    fn is_over(&mut self, stop: &StopHandle) -> bool {
        stop.is_stopped() && Instant::now() >= *self.end.get_or_insert_with(|| Instant::now() + DRAIN_TIME)
    }
}

/// Returns whether an error of a read is only the end of its wait.
fn is_pause(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}
