//! The hardware addresses of a frame.

use crate::base::MacAddresses;
use crate::wire::ethernet;

impl MacAddresses {
    /// Returns the hardware address of the sender from the frame, if it was captured.
    #[must_use]
    pub fn source(self, frame: &[u8]) -> Option<[u8; 6]> {
        match (self.ethernet_offset(), self.source_offset()) {
            (Some(offset), _) => frame.get(offset..).and_then(ethernet::source),
            (None, Some(offset)) => frame.get(offset..).and_then(ethernet::address),
            (None, None) => None,
        }
    }

    /// Returns the hardware address of the receiver from the frame, if the frame has one and it was captured.
    #[must_use]
    pub fn destination(self, frame: &[u8]) -> Option<[u8; 6]> {
        frame.get(self.ethernet_offset()?..).and_then(ethernet::destination)
    }
}
