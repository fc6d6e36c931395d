//! What a collector finds in messages.

use super::packet::SampledPacket;
use crate::record::FlowRecord;

/// Content of a message.
#[derive(Clone, Copy, Debug)]
pub enum Collected<'a> {
    /// A flow record.
    Record(&'a FlowRecord),
    /// A packet that the exporter sampled.
    Packet(SampledPacket<'a>),
}

impl<'a> Collected<'a> {
    /// Returns the flow record, if the content is one.
    #[must_use]
    pub const fn record(self) -> Option<&'a FlowRecord> {
        match self {
            Self::Record(record) => Some(record),
            Self::Packet(_) => None,
        }
    }
}
