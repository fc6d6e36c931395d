//! Sockets that receive many datagrams per call, with the time at which the kernel received each of them.

use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs, UdpSocket};
use std::time::Duration;

use crate::base::{IpProtocol, Timestamp};
use crate::wire::ipv4;

use super::now;

/// Maximum number of datagrams that are received per call of the operating system.
pub(super) const RECEIVE_COUNT: usize = if cfg!(target_os = "linux") { 32 } else { 1 };

/// Length of the buffer for a datagram in octets: no datagram of UDP or IP is longer.
const DATAGRAM_LEN_MAX: usize = 1 << 16;

/// A datagram that was received.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ReceivedDatagram<'a> {
    /// Address of the sender; the port is zero if the transport protocol is not UDP.
    pub sender: SocketAddr,
    /// Time at which the kernel received the datagram; on systems other than Linux, the time at which it was read.
    pub timestamp: Timestamp,
    /// Payload of UDP, or of IP for a [raw](DatagramSocket::raw) socket.
    pub payload: &'a [u8],
}

/// Socket that receives datagrams of UDP, or of another transport protocol.
///
/// On Linux, one call of the operating system receives up to 32 datagrams (`recvmmsg`), each with the time at which the
/// kernel received it (`SO_TIMESTAMPNS`), and the datagrams that the kernel dropped because the receive buffer was full
/// are counted (`SO_RXQ_OVFL`). Other systems receive one datagram per call and count nothing. Allocates 2 MiB when it
/// is created, and on Linux some small blocks per call.
#[derive(Debug)]
pub struct DatagramSocket {
    socket: UdpSocket,
    buffer: Box<[u8]>,
    has_ipv4_header: bool,
    drop_count: u64,
    /// Last value of the kernel's counter of dropped datagrams, which wraps.
    last_overflow: u32,
}

impl DatagramSocket {
    /// Binds a UDP socket to the first of the addresses that can be bound, with a receive buffer of `buffer_len`
    /// octets. The kernel may limit the buffer; [`buffer_len`](Self::buffer_len) returns its length.
    ///
    /// # Errors
    ///
    /// Returns the error of the operating system, for example if the port is in use.
    pub fn bind(addresses: impl ToSocketAddrs, buffer_len: usize) -> io::Result<Self> {
        Self::new(UdpSocket::bind(addresses)?, buffer_len, false)
    }

    /// Opens a raw socket, which receives the datagrams of a transport protocol that are sent to a local address. Needs
    /// the capability `CAP_NET_RAW`.
    ///
    /// # Errors
    ///
    /// Returns the error of the operating system, for example [`io::ErrorKind::PermissionDenied`].
    pub fn raw(address: IpAddr, protocol: IpProtocol, buffer_len: usize) -> io::Result<Self> {
        use socket2::{Domain, Protocol, Socket, Type};
        let address = SocketAddr::new(address, 0);
        let protocol = Protocol::from(i32::from(protocol.0));
        let socket = Socket::new(Domain::for_address(address), Type::from(RAW), Some(protocol))?;
        socket.bind(&address.into())?;
        Self::new(socket.into(), buffer_len, address.is_ipv4())
    }

    fn new(socket: UdpSocket, buffer_len: usize, has_ipv4_header: bool) -> io::Result<Self> {
        system::configure(&socket, buffer_len)?;
        let buffer = vec![0; RECEIVE_COUNT * DATAGRAM_LEN_MAX].into_boxed_slice();
        Ok(Self { socket, buffer, has_ipv4_header, drop_count: 0, last_overflow: 0 })
    }

    /// Returns the address to which the socket is bound.
    ///
    /// # Errors
    ///
    /// Returns the error of the operating system.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Returns the length of the kernel's receive buffer in octets, of which each datagram takes its length and an
    /// overhead.
    ///
    /// # Errors
    ///
    /// Returns the error of the operating system.
    pub fn buffer_len(&self) -> io::Result<usize> {
        socket2::SockRef::from(&self.socket).recv_buffer_size()
    }

    /// Returns the number of datagrams that the kernel dropped before the last datagram that was received.
    #[must_use]
    pub const fn drop_count(&self) -> u64 {
        self.drop_count
    }

    /// Waits up to `wait` for datagrams, and calls `each` for those that have arrived, at most 32. Returns their
    /// number; zero if none arrived, or if a signal ended the wait.
    ///
    /// # Errors
    ///
    /// Returns the error of the operating system.
    pub fn receive(
        &mut self,
        wait: Duration,
        mut each: impl FnMut(&ReceivedDatagram<'_>),
    ) -> io::Result<usize> {
        // A socket that is busy is read without waiting.
        match self.receive_arrived(&mut each)? {
            0 if wait > Duration::ZERO && system::is_readable(&self.socket, wait)? => {
                self.receive_arrived(&mut each)
            }
            count => Ok(count),
        }
    }

    /// Receives the datagrams that have arrived.
    fn receive_arrived(&mut self, each: &mut impl FnMut(&ReceivedDatagram<'_>)) -> io::Result<usize> {
        let has_ipv4_header = self.has_ipv4_header;
        let mut overflow = None;
        let result = system::receive(&self.socket, &mut self.buffer, |mut datagram, drops| {
            overflow = drops.or(overflow);
            if has_ipv4_header {
                datagram.payload = without_ipv4_header(datagram.payload);
            }
            each(&datagram);
        });
        if let Some(overflow) = overflow {
            self.drop_count += u64::from(overflow.wrapping_sub(self.last_overflow));
            self.last_overflow = overflow;
        }
        match result {
            Err(error) if is_pause(&error) => Ok(0),
            result => result,
        }
    }
}

/// Socket type of raw sockets (`SOCK_RAW`), which has the same value on all supported systems.
const RAW: i32 = 3;

/// Returns the payload of an IPv4 packet, as a raw socket delivers it.
fn without_ipv4_header(packet: &[u8]) -> &[u8] {
    ipv4::header_len(packet).and_then(|len| packet.get(len..)).unwrap_or_default()
}

/// Returns whether an error means that a call was interrupted, or that nothing has arrived.
pub(super) fn is_pause(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted)
}

#[cfg(target_os = "linux")]
mod system {
    use std::io::{self, IoSliceMut};
    use std::net::{SocketAddr, UdpSocket};
    use std::os::fd::AsRawFd as _;
    use std::time::Duration;

    use nix::sys::socket::{
        ControlMessageOwned, MsgFlags, MultiHeaders, SockaddrStorage, recvmmsg, setsockopt, sockopt,
    };
    use nix::sys::time::TimeSpec;

    use super::{DATAGRAM_LEN_MAX, RECEIVE_COUNT, ReceivedDatagram};
    use crate::base::Timestamp;

    pub(super) fn configure(socket: &UdpSocket, buffer_len: usize) -> io::Result<()> {
        // The kernel's type of the length is a signed number of 32 bits.
        let buffer_len = buffer_len.min(i32::MAX as usize);
        socket.set_nonblocking(true)?;
        setsockopt(socket, sockopt::ReceiveTimestampns, &true)?;
        setsockopt(socket, sockopt::RxqOvfl, &1)?;
        // A process with CAP_NET_ADMIN may exceed net.core.rmem_max.
        setsockopt(socket, sockopt::RcvBufForce, &buffer_len)
            .or_else(|_| setsockopt(socket, sockopt::RcvBuf, &buffer_len))?;
        Ok(())
    }

    pub(super) fn is_readable(socket: &UdpSocket, wait: Duration) -> io::Result<bool> {
        super::super::input::is_readable(socket, wait)
    }

    /// Receives datagrams. `each` also gets the kernel's counter of dropped datagrams, if the datagram has it.
    pub(super) fn receive(
        socket: &UdpSocket,
        buffer: &mut [u8],
        mut each: impl FnMut(ReceivedDatagram<'_>, Option<u32>),
    ) -> io::Result<usize> {
        let mut slices: Vec<_> =
            buffer.chunks_exact_mut(DATAGRAM_LEN_MAX).map(|chunk| [IoSliceMut::new(chunk)]).collect();
        // The kernel overwrites the lengths in the headers, so they cannot be used again.
        let control = nix::cmsg_space!(TimeSpec, u32);
        let mut headers = MultiHeaders::<SockaddrStorage>::preallocate(RECEIVE_COUNT, Some(control));
        let messages =
            recvmmsg(socket.as_raw_fd(), &mut headers, slices.iter_mut(), MsgFlags::MSG_DONTWAIT, None)?;
        let mut count = 0;
        for message in messages {
            count += 1;
            let (mut timestamp, mut overflow) = (None, None);
            for control in message.cmsgs()? {
                match control {
                    ControlMessageOwned::ScmTimestampns(time) => timestamp = Some(of_time_spec(&time)),
                    ControlMessageOwned::RxqOvfl(count) => overflow = Some(count),
                    _ => {}
                }
            }
            let datagram = ReceivedDatagram {
                sender: message.address.as_ref().and_then(of_storage).unwrap_or(super::UNKNOWN),
                timestamp: timestamp.unwrap_or_else(super::now),
                payload: message.iovs().next().unwrap_or_default(),
            };
            each(datagram, overflow);
        }
        Ok(count)
    }

    fn of_time_spec(time: &TimeSpec) -> Timestamp {
        let seconds = u64::try_from(time.tv_sec()).unwrap_or(0);
        Timestamp::from_parts(seconds, u64::try_from(time.tv_nsec()).unwrap_or(0))
    }

    fn of_storage(address: &SockaddrStorage) -> Option<SocketAddr> {
        let v4 = address.as_sockaddr_in().map(|address| SocketAddr::V4((*address).into()));
        v4.or_else(|| address.as_sockaddr_in6().map(|address| SocketAddr::V6((*address).into())))
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use std::io;
    use std::net::UdpSocket;
    use std::time::Duration;

    use super::ReceivedDatagram;

    pub(super) fn configure(socket: &UdpSocket, buffer_len: usize) -> io::Result<()> {
        // Larger values than the system's limit may be refused; the default then remains.
        let _ = socket2::SockRef::from(socket).set_recv_buffer_size(buffer_len);
        socket.set_nonblocking(true)
    }

    pub(super) fn is_readable(socket: &UdpSocket, wait: Duration) -> io::Result<bool> {
        socket.set_nonblocking(false)?;
        socket.set_read_timeout(Some(wait.max(Duration::from_millis(1))))?;
        let result = socket.peek(&mut [0]);
        socket.set_nonblocking(true)?;
        // Windows reports a datagram that is longer than the buffer as an error.
        Ok(!result.is_err_and(|error| super::is_pause(&error)))
    }

    pub(super) fn receive(
        socket: &UdpSocket,
        buffer: &mut [u8],
        mut each: impl FnMut(ReceivedDatagram<'_>, Option<u32>),
    ) -> io::Result<usize> {
        let (len, sender) = socket.recv_from(buffer)?;
        let payload = buffer.get(..len).unwrap_or_default();
        each(ReceivedDatagram { sender, timestamp: super::now(), payload }, None);
        Ok(1)
    }
}

/// Address of a sender that the operating system did not report.
#[cfg(target_os = "linux")]
const UNKNOWN: SocketAddr = SocketAddr::new(IpAddr::V4(std::net::Ipv4Addr::UNSPECIFIED), 0);
