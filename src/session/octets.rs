//! Input of a session: octets of a stream, and the payload of a datagram.

use super::protocol::Role;

/// Octets of a stream that were received together.
#[derive(Clone, Copy, Debug)]
pub(super) struct Octets<'a> {
    /// The sender.
    pub(super) from: Role,
    /// Offset of the first octet in the stream.
    pub(super) offset: u64,
    pub(super) bytes: &'a [u8],
}

/// Payload of a datagram.
#[derive(Clone, Copy, Debug)]
pub struct Payload<'a> {
    /// The captured octets.
    pub bytes: &'a [u8],
    /// Length of the payload on the wire.
    pub len: usize,
}
