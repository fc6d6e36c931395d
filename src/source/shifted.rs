//! Other times for the frames of one direction of a capture.

use super::error::Error;
use super::source::{Next, Source, forward_source};
use crate::base::{Frame, FrameBatch, LinkType, Timestamp};

/// Frames whose times are shifted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ShiftedFrames {
    /// The frames of an interface, by its index.
    Interface(u32),
    /// The frames of Ethernet with a source address.
    SourceMac([u8; 6]),
}

impl ShiftedFrames {
    fn contains(self, frame: &Frame<'_>) -> bool {
        match self {
            Self::Interface(interface) => frame.interface == interface,
            Self::SourceMac(mac) => {
                frame.link_type == LinkType::ETHERNET && frame.data.get(6..12) == Some(&mac[..])
            }
        }
    }
}

/// A source that shifts the times of frames of another one, to correct a constant skew between two directions of a capture.
///
/// The order of the frames remains: the times of a corrected capture are not in order. Requests and responses are put in order
/// by the reassembler ([`skew_max`](crate::reassembler::ReassemblerConfig::skew_max)).
#[derive(Debug)]
pub struct Shifted<S> {
    source: S,
    shifts: Vec<(ShiftedFrames, i64)>,
}

impl<S: Source> Shifted<S> {
    /// Creates a source. Each shift has the frames and the time in nanoseconds that is added to theirs; a negative one
    /// makes them earlier, but not earlier than the epoch. The first shift that applies to a frame counts.
    #[must_use]
    pub const fn new(source: S, shifts: Vec<(ShiftedFrames, i64)>) -> Self {
        Self { source, shifts }
    }
}

impl<S: Source> Source for Shifted<S> {
    fn next_batch(&mut self, batch: &mut FrameBatch) -> Result<Next, Error> {
        let next = self.source.next_batch(batch);
        let shifts = &self.shifts;
        batch.set_times(|frame| {
            let shift = shifts.iter().find(|(frames, _)| frames.contains(frame));
            let nanos =
                frame.timestamp.as_nanos().saturating_add_signed(shift.map_or(0, |(_, nanos)| *nanos));
            Timestamp::from_nanos(nanos)
        });
        next
    }

    forward_source!(source);
}
