//! State of a collector that the decoders of all messages use.

use ahash::RandomState;

use super::stats::CollectorStats;
use crate::record::Draft;

/// State of a collector beside that of a domain.
pub(super) struct Shared<'c> {
    /// Keys of the numbers of observation points.
    pub(super) numbers: &'c RandomState,
    pub(super) stats: &'c mut CollectorStats,
    /// The latest record.
    pub(super) draft: &'c mut Draft,
}
