//! Configuration of a source.

use std::sync::Arc;

use super::storage::Storage;
use crate::base::{Limits, Resources, StopHandle};

crate::base::configuration! {
    /// Resources and stop handle of a source. A configuration that is created from [`Limits`] alone has its own
    /// memory budget.
    #[derive(Clone, Debug, Default)]
    pub struct SourceConfig {
        /// Limits and memory budget of the source. A source uses `frame_len_max`, `batch_len`, `block_len_max`,
        /// `interface_count_max`, `source_bytes_max`, `zstd_window_len_max` and `open_file_count_max`.
        pub resources: Resources,
        /// Handle that ends the input early. Once the handle is set, the source ends before the next batch, and
        /// within 100 ms if a pipe, a device or standard input has no data. The source waits for a pending read
        /// of a caller-supplied reader.
        pub stop: Option<StopHandle>,
        /// Inputs that are not files of the operating system. A path that they do not find is that of a file.
        pub storage: Option<Arc<dyn Storage>>,
    }
}

impl From<Limits> for SourceConfig {
    fn from(limits: Limits) -> Self {
        Resources::new(limits).into()
    }
}

impl From<Resources> for SourceConfig {
    fn from(resources: Resources) -> Self {
        Self { resources, stop: None, storage: None }
    }
}
