//! What no pipeline can be made with.

use std::fmt;

use crate::{dedup, fragment, reassembler, tracker};

/// A mistake in a configuration, by the layer that found it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConfigError {
    /// In what the tracker was to be made with.
    Tracker(tracker::ConfigError),
    /// In what the pool of fragments was to be made with.
    Fragments(fragment::ConfigError),
    /// In what the window of frames was to be made with.
    Dedup(dedup::ConfigError),
    /// In what the streams were to be put in order with.
    Streams(reassembler::ConfigError),
    /// Flows of all levels of tunnels cannot be linked across shards.
    LinkedTunnels,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tracker(error) => error.fmt(f),
            Self::Fragments(error) => error.fmt(f),
            Self::Dedup(error) => error.fmt(f),
            Self::Streams(error) => error.fmt(f),
            Self::LinkedTunnels => {
                f.write_str("flows of all levels of tunnels cannot be linked across shards")
            }
        }
    }
}

impl std::error::Error for ConfigError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Tracker(error) => Some(error),
            Self::Fragments(error) => Some(error),
            Self::Dedup(error) => Some(error),
            Self::Streams(error) => Some(error),
            Self::LinkedTunnels => None,
        }
    }
}

impl From<tracker::ConfigError> for ConfigError {
    fn from(error: tracker::ConfigError) -> Self {
        Self::Tracker(error)
    }
}

impl From<fragment::ConfigError> for ConfigError {
    fn from(error: fragment::ConfigError) -> Self {
        Self::Fragments(error)
    }
}

impl From<dedup::ConfigError> for ConfigError {
    fn from(error: dedup::ConfigError) -> Self {
        Self::Dedup(error)
    }
}

impl From<reassembler::ConfigError> for ConfigError {
    fn from(error: reassembler::ConfigError) -> Self {
        Self::Streams(error)
    }
}
