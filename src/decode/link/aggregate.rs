//! Aggregates of 802.11 (A-MSDU): several Ethernet frames in one frame.

use super::encapsulation::Unrecorded;
use super::walk::{Stop, Walk, WalkSettings};
use super::{Decapsulation, TunnelPorts, Unsupported, Walked};
use crate::base::{Frame, Limits, LinkType};
use crate::wire::ieee80211;

/// Iterator over the frames in an 802.11 aggregate; see [`aggregated`].
#[derive(Clone, Debug)]
pub struct Aggregated<'a> {
    frame: Frame<'a>,
    /// Octets from the start of the whole frame to the next part.
    at: usize,
    /// End of the last part in the whole frame, at most.
    end: usize,
    /// Number of octets of the whole frame, on the wire, before those that the next part counts.
    counted_len: usize,
}

/// Returns the Ethernet frames in an 802.11 frame that aggregates several (A-MSDU, IEEE 802.11, clause 9.3.2.2.2); `None`
/// for all other frames.
///
/// [`Extractor::extract`](crate::decode::extractor::Extractor::extract) and [`decapsulate`](super::decapsulate) return
/// [`Unsupported::WlanAggregate`] for such a frame, because they return one packet. A
/// [`Pipeline`](crate::pipeline::Pipeline) processes each part as a frame of its own. The lengths on the wire of all parts
/// add up to that of the whole frame: a part counts its padding, the first one the headers before it, and the last one
/// what follows. Does not allocate.
///
/// ```
/// use flowgauge::decode::link::aggregated;
/// use flowgauge::{Frame, LinkType, Timestamp};
///
/// let header = [0x88, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x80, 0];
/// let part = [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0, 2, 0xaa, 0xaa];
/// let data = [&header[..], &part, &part].concat();
/// let frame = Frame { link_type: LinkType::IEEE802_11, ..Frame::ethernet(Timestamp::ZERO, &data) };
/// let parts: Vec<_> = aggregated(&frame).unwrap().map(|part| (part.data, part.wire_len)).collect();
/// assert_eq!(parts, [(&part[..], 26 + 16), (&part[..], 16)]);
/// ```
#[must_use]
pub fn aggregated<'a>(frame: &Frame<'a>) -> Option<Aggregated<'a>> {
    let mut walked = Walked::new(Unrecorded);
    let settings = WalkSettings {
        decapsulation: Decapsulation::Outermost,
        tunnel_ports: &TunnelPorts::NONE,
        limits: &Limits::DEFAULT,
    };
    let mut walk = Walk::new(frame, None, &settings, &mut walked);
    let stop = walk.link_layer(frame.link_type);
    matches!(stop, Err(Stop::Unsupported(Unsupported::WlanAggregate))).then_some(Aggregated {
        frame: *frame,
        at: walk.at,
        end: walk.end,
        counted_len: 0,
    })
}

/// Returns the length in octets of the first part of an aggregate that `len` octets on the wire belong to, of which
/// `data` was captured: the whole part, and the part with its padding, which is missing behind the last one. `None` if no
/// part begins there.
pub(super) fn first_part(data: &[u8], len: usize) -> Option<(usize, usize)> {
    let part_len = ieee80211::aggregated_len(data)?.min(len);
    Some((part_len, ieee80211::aggregated_padded_len(part_len)))
}

impl<'a> Iterator for Aggregated<'a> {
    type Item = Frame<'a>;

    fn next(&mut self) -> Option<Frame<'a>> {
        let data = self.frame.data.get(self.at..self.end.min(self.frame.data.len()))?;
        let (part_len, padded_len) = first_part(data, self.end.saturating_sub(self.at))?;
        let next_at = self.at + padded_len;
        let after = self.frame.data.get(next_at..self.end.min(self.frame.data.len())).unwrap_or_default();
        let wire_len = (self.frame.wire_len as usize).max(self.frame.data.len());
        let counted_end = if ieee80211::aggregated_len(after).is_some() { next_at } else { wire_len };
        let counted_len = counted_end - std::mem::replace(&mut self.counted_len, counted_end);
        self.at = if counted_end == wire_len { self.end } else { next_at };
        Some(Frame {
            link_type: LinkType::ETHERNET,
            data: data.get(..part_len).unwrap_or(data),
            wire_len: counted_len as u32,
            ..self.frame
        })
    }
}
