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
        if UdpSocket::bind(("127.0.0.1", port)).is_ok() && TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}
