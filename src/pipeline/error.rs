//! Errors of building or running a pipeline.

use std::fmt;

use crate::base::ConfigError;
use crate::filter::FilterError;
use crate::source;

/// Error of building a pipeline, or of a run that ended early. For programs that return one error type from `main`.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Error {
    /// An invalid configuration.
    Config(ConfigError),
    /// An invalid filter expression.
    Filter(FilterError),
    /// A source of frames could not be opened or read.
    Source(source::Error),
    /// A limit was reached while a file was tracked in parts ([`Builder::run_parts`](super::Builder::run_parts)). Which flows
    /// are evicted depends on their order, which parts do not have.
    Parts,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Config(error) => error.fmt(f),
            Self::Filter(error) => error.fmt(f),
            Self::Source(error) => error.fmt(f),
            Self::Parts => f.write_str(
                "a limit on flows or on memory was reached, at which the records of parts would differ from those of a \
                 single pass",
            ),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Config(error) => error.source(),
            Self::Filter(error) => error.source(),
            Self::Source(error) => error.source(),
            Self::Parts => None,
        }
    }
}

impl From<ConfigError> for Error {
    fn from(error: ConfigError) -> Self {
        Self::Config(error)
    }
}

impl From<FilterError> for Error {
    fn from(error: FilterError) -> Self {
        Self::Filter(error)
    }
}

impl From<source::Error> for Error {
    fn from(error: source::Error) -> Self {
        Self::Source(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::StopHandle;
    use crate::filter::Filter;
    use crate::pipeline::Pipeline;

    #[test]
    fn errors_of_several_layers_are_one_type() {
        let build = |filter: &str, limit| -> Result<StopHandle, Error> {
            let filter = Filter::parse(filter)?;
            drop(Pipeline::builder().filter(filter).memory(limit).build(())?);
            Ok(StopHandle::new())
        };
        assert!(build("tcp port 80", 1 << 20).is_ok());
        let errors = [build("tcp prot 80", 1 << 20), build("tcp", 1)].map(Result::unwrap_err);
        assert!(matches!(errors, [Error::Filter(_), Error::Config(_)]), "{errors:?}");
        errors.iter().for_each(|error| assert_eq!(error.clone().to_string().lines().count(), 1));
    }
}
