//! What a session keeps of a flow of datagrams between conversations.

use super::protocols::Protocols;

/// What is known of a flow whose parser is done. In a session, it takes no memory of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Paused {
    /// Index of the table entry of the protocol.
    pub(super) entry: u8,
    pub(super) count: u8,
    /// Received octets of the flow in units of 64, rounded down.
    pub(super) received: u32,
    pub(super) mark: u64,
}

impl Paused {
    /// Returns whether a later conversation may begin with a datagram, by its first octet.
    #[inline]
    pub(super) fn may_precede<P: Protocols>(self, bytes: &[u8]) -> bool {
        let repeated =
            P::TABLE.get(usize::from(self.entry)).and_then(|entry| entry.protocol.repeated.as_ref());
        let (Some(repeated), Some(first)) = (repeated, bytes.first()) else { return false };
        let [mask, value] = repeated.first;
        first & mask == value
    }
}
