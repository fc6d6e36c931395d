//! What the caller decides about a source.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

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
    /// Ends the input once the flag is set, as if it had ended there: before the next batch, and within 100 ms where a pipe,
    /// a device or standard input has nothing to read. A signal handler may set it. A read of a reader of the caller's is
    /// waited for.
    pub stop: Option<Arc<AtomicBool>>,
}

impl Default for SourceConfig {
    fn default() -> Self {
        Self::from(Limits::DEFAULT)
    }
}

impl From<Limits> for SourceConfig {
    fn from(limits: Limits) -> Self {
        Self { limits, budget: Budget::new(limits.total_bytes_max), stop: None }
    }
}
