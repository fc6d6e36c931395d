//! The client of a router.

use std::fmt;
use std::time::{Duration, Instant};

use bytes::Bytes;
use omq_tokio::options::WorkloadProfile;
use omq_tokio::{Context, Message, Options, SocketType, blocking};

use super::request::Request;
use crate::config::ClientSecurity;
use crate::endpoint::Endpoint;
use crate::error::BusError;

/// Sends requests to a [`Router`](super::Router).
pub struct Requester {
    socket: blocking::Socket,
    next_id: u64,
    timeout: Duration,
    _context: Context,
}

impl Requester {
    /// Connects to a router. `identity` names this client at the router; `timeout` is the maximum duration of a request.
    ///
    /// # Errors
    ///
    /// Returns [`BusError::Endpoint`] or [`BusError::Socket`] for an endpoint that cannot be used.
    pub fn connect(
        endpoint: &str,
        identity: &str,
        timeout: Duration,
        security: &ClientSecurity,
    ) -> Result<Self, BusError> {
        let Endpoint::Socket(socket_endpoint) = Endpoint::parse(endpoint)? else {
            let problem = "a router has tcp:// or ipc://".to_owned();
            return Err(BusError::Endpoint { endpoint: endpoint.to_owned(), problem });
        };
        let mut options =
            Options::new().identity(identity.as_bytes().to_vec()).workload_profile(WorkloadProfile::Latency);
        options.mechanism = security.mechanism();
        let context = Context::new();
        let socket = context.blocking_socket(SocketType::Dealer, options);
        socket.connect(socket_endpoint).map_err(|error| BusError::Socket {
            endpoint: endpoint.to_owned(),
            problem: error.to_string(),
        })?;
        Ok(Self { socket, next_id: 0, timeout, _context: context })
    }

    /// Sends a request, and waits for its answer. Returns the content.
    ///
    /// # Errors
    ///
    /// Returns [`BusError::Timeout`] without an answer in time, [`BusError::Rejected`] with the message of the router,
    /// and [`BusError::Closed`] if the socket was closed.
    pub fn request(&mut self, request: &Request) -> Result<Bytes, BusError> {
        let deadline = Instant::now() + self.timeout;
        let id = self.next_id.to_be_bytes();
        self.next_id += 1;
        let text = Bytes::from(request.to_string());
        let message = Message::multipart([Bytes::copy_from_slice(&id), text]);
        self.socket.send_timeout(message, self.timeout).map_err(|error| failure(&error))?;
        loop {
            let rest = deadline.saturating_duration_since(Instant::now());
            let answer = self.socket.recv_timeout(rest).map_err(|error| failure(&error))?;
            // Answers to earlier requests, which took too long, are skipped.
            if answer.part_slice(0) != Some(&id) {
                continue;
            }
            let content = answer.part_bytes(2).ok_or(BusError::Malformed("an answer has three frames"))?;
            return match answer.part_slice(1) {
                Some(b"ok") => Ok(content),
                Some(b"timeout") => Err(BusError::Timeout),
                _ => Err(BusError::Rejected(String::from_utf8_lossy(&content).into_owned())),
            };
        }
    }
}

fn failure(error: &omq_tokio::Error) -> BusError {
    match error {
        omq_tokio::Error::Timeout | omq_tokio::Error::WouldBlock => BusError::Timeout,
        _ => BusError::Closed,
    }
}

impl fmt::Debug for Requester {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Requester").field("timeout", &self.timeout).finish_non_exhaustive()
    }
}
