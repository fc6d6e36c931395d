//! Transports of IPFIX messages.

use std::io::{self, Write};
use std::net::UdpSocket;

/// A transport of the messages of an [`Exporter`](super::Exporter).
pub trait Transport {
    /// Returns whether a message is a datagram, which can be lost: templates are then sent again from time to time. Constant
    /// for a transport.
    fn is_datagram(&self) -> bool;

    /// Sends a message.
    ///
    /// # Errors
    ///
    /// Returns the error of the socket or file. The message is then lost.
    fn send(&mut self, message: &[u8]) -> io::Result<()>;

    /// Writes what the transport holds back.
    ///
    /// # Errors
    ///
    /// Returns the error of the socket or file.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Sends each message as a datagram of a socket that is connected to a collector.
impl Transport for UdpSocket {
    fn is_datagram(&self) -> bool {
        true
    }

    fn send(&mut self, message: &[u8]) -> io::Result<()> {
        Self::send(self, message).map(drop)
    }
}

impl<T: Transport + ?Sized> Transport for &mut T {
    fn is_datagram(&self) -> bool {
        (**self).is_datagram()
    }

    fn send(&mut self, message: &[u8]) -> io::Result<()> {
        (**self).send(message)
    }

    fn flush(&mut self) -> io::Result<()> {
        (**self).flush()
    }
}

/// Transport over a reliable stream: a TCP connection, a file (RFC 5655), or a pipe. Writes the messages one after
/// another.
#[derive(Debug)]
pub struct StreamTransport<W>(W);

impl<W: Write> StreamTransport<W> {
    /// Creates a transport that writes messages to `writer`.
    pub const fn new(writer: W) -> Self {
        Self(writer)
    }
}

impl<W: Write> Transport for StreamTransport<W> {
    fn is_datagram(&self) -> bool {
        false
    }

    fn send(&mut self, message: &[u8]) -> io::Result<()> {
        self.0.write_all(message)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}
