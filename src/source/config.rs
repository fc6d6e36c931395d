//! What the caller decides about a source.

use crate::base::{Budget, Limits};

/// Limits and the account of memory of a source. Made of [`Limits`] alone, it has an account of its own.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SourceConfig {
    /// Caps. Of these, a source looks at `frame_len_max`, `batch_len`, `block_len_max`, `interface_count_max`,
    /// `source_bytes_max`, `zstd_window_len_max` and `open_file_count_max`.
    pub limits: Limits,
    /// The account of memory; shared with other layers by cloning the handle.
    pub budget: Budget,
}

impl Default for SourceConfig {
    fn default() -> Self {
        Self::from(Limits::DEFAULT)
    }
}

impl From<Limits> for SourceConfig {
    fn from(limits: Limits) -> Self {
        Self { limits, budget: Budget::new(limits.total_bytes_max) }
    }
}
