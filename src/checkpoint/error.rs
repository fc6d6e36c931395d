//! Errors of reading a checkpoint.

use std::error;
use std::fmt;
use std::io;

use super::block::VERSION;
use crate::base::ConfigError;
use crate::codec::{ReadError, WriteError};

/// Error of reading a checkpoint, or of restoring a pipeline from it. Nothing was restored.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The checkpoint could not be read.
    Io(io::Error),
    /// The octets do not begin as a checkpoint does.
    NoCheckpoint,
    /// The checkpoint has a newer version than this program knows.
    NewerVersion(u16),
    /// The checkpoint ends before its last block.
    Truncated {
        /// Number of octets of the checkpoint that were read.
        offset: u64,
    },
    /// The checksum of a block is wrong: the checkpoint was changed after it was written.
    Damaged {
        /// Offset of the block in the checkpoint, in octets.
        offset: u64,
    },
    /// A block has a correct checksum and a content that no tracker writes.
    Invalid {
        /// Offset of the block in the checkpoint, in octets.
        offset: u64,
        /// What is wrong with the content of the block.
        invalid: Invalid,
    },
    /// The checkpoint is of a pipeline with another setting that determines which packets belong to a flow, or which
    /// state a flow has.
    OtherPipeline {
        /// Name of the setting.
        setting: &'static str,
        /// Its value in the checkpoint.
        saved: String,
        /// Its value in the pipeline to which the checkpoint was to be restored.
        current: String,
    },
    /// The flows exceed the limit of the pipeline, or its memory budget.
    TooManyFlows {
        /// Number of flows in the checkpoint.
        flow_count: u64,
    },
    /// The configuration of the pipeline is invalid.
    Config(ConfigError),
}

/// Content that cannot be in a checkpoint: what is wrong, as a phrase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Invalid(&'static str);

impl Invalid {
    /// Creates the error from a phrase, such as `a state that is not known`.
    #[must_use]
    pub const fn new(what: &'static str) -> Self {
        Self(what)
    }
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl error::Error for Invalid {}

impl From<ReadError> for Invalid {
    fn from(_: ReadError) -> Self {
        Self("a block that ends within an entry")
    }
}

impl From<WriteError> for Invalid {
    fn from(_: WriteError) -> Self {
        Self("a value that is longer than its length prefix can express")
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => write!(f, "checkpoint not readable: {error}"),
            Self::NoCheckpoint => f.write_str("not a checkpoint"),
            Self::NewerVersion(version) => write!(
                f,
                "checkpoint of format version {version}, but this program reads versions up to {VERSION}; use the \
                 program that wrote it, or a newer one"
            ),
            Self::Truncated { offset } => write!(f, "checkpoint ends early, after {offset} octets"),
            Self::Damaged { offset } => {
                write!(f, "checkpoint damaged: wrong checksum of the block at offset {offset}")
            }
            Self::Invalid { offset, invalid } => {
                write!(f, "invalid checkpoint: {invalid}, in the block at offset {offset}")
            }
            Self::OtherPipeline { setting, saved, current } => {
                write!(f, "checkpoint of a pipeline with the {setting} {saved}, but this one has {current}")
            }
            Self::TooManyFlows { flow_count } => write!(
                f,
                "checkpoint with {flow_count} open flows, which exceed the maximum number of flows or the memory budget"
            ),
            Self::Config(error) => error.fmt(f),
        }
    }
}

impl error::Error for Error {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match self {
            Self::Io(error) => Some(error),
            Self::Invalid { invalid, .. } => Some(invalid),
            Self::Config(error) => error.source(),
            _ => None,
        }
    }
}

impl From<ConfigError> for Error {
    fn from(error: ConfigError) -> Self {
        Self::Config(error)
    }
}
