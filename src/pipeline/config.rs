//! Settings of a pipeline, collected by a builder.

use crate::decode::DecoderConfig;
use crate::dedup::DedupConfig;
use crate::filter::Filter;
use crate::reassembler::ReassemblerConfig;
use crate::session::DriverConfig;
use crate::tracker::TrackerConfig;

/// Settings of all layers of a pipeline.
#[derive(Clone, Debug)]
pub struct Config {
    pub(super) tracker: TrackerConfig,
    pub(super) filter: Option<Filter>,
    pub(super) dedup: Option<DedupConfig>,
    pub(super) decoder: DecoderConfig,
    pub(super) is_time_checked: bool,
    /// Settings of the TCP reassembler; `None` if the caller did not set them, as required for sinks without streams.
    pub(super) streams: Option<ReassemblerConfig>,
    /// Settings of the session driver; `None` if the caller did not set them, as required for sinks without sessions.
    pub(super) sessions: Option<DriverConfig>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            tracker: TrackerConfig::default(),
            filter: None,
            dedup: None,
            decoder: DecoderConfig::default(),
            is_time_checked: true,
            streams: None,
            sessions: None,
        }
    }
}
