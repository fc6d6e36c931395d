//! Errors of building or running a pipeline.

use std::fmt;

use crate::base::ConfigError;
use crate::source;

/// Error of building a pipeline, or of a run that ended early. For programs that return one error type from `main`.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// An invalid configuration.
    Config(ConfigError),
    /// A source of frames could not be opened or read.
    Source(source::Error),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Config(error) => error.fmt(f),
            Self::Source(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Config(error) => error.source(),
            Self::Source(error) => error.source(),
        }
    }
}

impl From<ConfigError> for Error {
    fn from(error: ConfigError) -> Self {
        Self::Config(error)
    }
}

impl From<source::Error> for Error {
    fn from(error: source::Error) -> Self {
        Self::Source(error)
    }
}
