//! Decision of the caller on each packet.

use crate::base::Frame;
use crate::pipeline::Sink;

/// Device from which a packet was received: one of the two devices of a forwarder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DeviceSide {
    /// The first device, passed as `left` to [`Forwarder::new`](super::Forwarder::new).
    Left,
    /// The second device, passed as `right`.
    Right,
}

impl DeviceSide {
    /// Returns 0 for the left device and 1 for the right device.
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }
}

/// Decision on a packet that a forwarder received.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ForwardAction {
    /// Sends the packet to the other device. A super-packet remains complete if that device accepts it.
    Pass,
    /// Discards the packet.
    Drop,
    /// Splits a super-packet, calls [`ForwardHandler::rewrite`] with each segment, and sends the results.
    Rewrite,
}

/// Decides on each packet of a [`Forwarder`](super::Forwarder). A closure with the parameters of
/// [`packet`](Self::packet) is a handler, and `()` is the handler that passes everything.
pub trait ForwardHandler<K: Sink>: Send {
    /// Decides on a packet after the pipeline has tracked it. `frame` is an IP packet from a TUN device or an Ethernet
    /// frame from a TAP device, or a super-packet according to its link type. Both devices use the same handler, one
    /// packet at a time; while it runs, the other direction waits.
    fn packet(&mut self, sink: &mut K, frame: &Frame<'_>, from: DeviceSide) -> ForwardAction;

    /// Changes a packet for which [`packet`](Self::packet) returned [`ForwardAction::Rewrite`]. `packet` is a single
    /// packet or a segment with complete checksums, and the function has to leave its lengths and checksums complete. It
    /// may change the length; an empty packet is not sent.
    fn rewrite(&mut self, sink: &mut K, packet: &mut Vec<u8>, from: DeviceSide) {
        let _ = (sink, packet, from);
    }
}

impl<K: Sink> ForwardHandler<K> for () {
    fn packet(&mut self, _: &mut K, _: &Frame<'_>, _: DeviceSide) -> ForwardAction {
        ForwardAction::Pass
    }
}

impl<K: Sink, F: FnMut(&mut K, &Frame<'_>, DeviceSide) -> ForwardAction + Send> ForwardHandler<K> for F {
    fn packet(&mut self, sink: &mut K, frame: &Frame<'_>, from: DeviceSide) -> ForwardAction {
        self(sink, frame, from)
    }
}
