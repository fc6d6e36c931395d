//! Ports for servers of tests.

use std::net::{TcpListener, UdpSocket};
use std::sync::atomic::{AtomicU16, Ordering::Relaxed};

/// Returns a port on loopback that no socket uses. Each call returns another one.
///
/// The ports are lower than those that the kernel assigns to sockets without a port, so that no client of a test that runs
/// at the same time can get the port before the server does.
pub(crate) fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    const RANGE: std::ops::Range<u16> = 20_000..32_000;
    let start = (std::process::id() % u32::from(RANGE.end - RANGE.start)) as u16;
    loop {
        let offset = (start + NEXT.fetch_add(1, Relaxed)) % (RANGE.end - RANGE.start);
        let port = RANGE.start + offset;
        if !is_used(port) {
            return port;
        }
    }
}

/// Returns whether a socket has a port. The port is not bound for this where the kernel lists its sockets: a process that
/// another test starts would have a copy of the socket until it executes its program.
fn is_used(port: u16) -> bool {
    let lists =
        ["tcp", "tcp6", "udp", "udp6"].map(|name| std::fs::read_to_string(format!("/proc/net/{name}")));
    if lists.iter().all(Result::is_err) {
        let address = ("127.0.0.1", port);
        return UdpSocket::bind(address).is_err() || TcpListener::bind(address).is_err();
    }
    let end = format!(":{port:04X}");
    let mut sockets = lists.iter().flatten().flat_map(|list| list.lines());
    sockets.any(|socket| socket.split_whitespace().nth(1).is_some_and(|local| local.ends_with(&end)))
}
