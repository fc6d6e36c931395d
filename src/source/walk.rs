//! Output of a walk over the records of a capture.

use super::interfaces::Interfaces;
use super::stats::Tally;
use crate::base::Descriptors;

/// Destinations to which the walk over a capture writes frames, counts and interfaces.
#[derive(Debug)]
pub(super) struct Sinks<'a, 'b> {
    pub(super) out: Descriptors<'b>,
    pub(super) tally: &'a mut Tally,
    pub(super) interfaces: &'a mut Interfaces,
}

/// A record that may begin at an offset.
pub(super) struct Candidate {
    pub(super) len: usize,
    /// Time in the unit of the file.
    pub(super) time: Option<u64>,
}
