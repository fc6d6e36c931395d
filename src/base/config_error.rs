//! Errors in a configuration.

use std::fmt;

/// A configuration with which a layer cannot be created. The error names the layer, the field, and the problem.
///
/// ```
/// use flowgauge::base::{Limits, Resources};
/// use flowgauge::tracker::{Tracker, TrackerConfig};
///
/// let mut limits = Limits::DEFAULT;
/// limits.flow_count_max = 0;
/// let error = Tracker::<()>::new(TrackerConfig::default(), &Resources::new(limits)).unwrap_err();
/// assert_eq!((error.layer, error.field), ("tracker", "flow_count_max"));
/// assert_eq!(error.to_string(), "tracker: flow_count_max must be from 1 to 2147483648");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConfigError {
    /// Name of the module of the layer that cannot be created.
    pub layer: &'static str,
    /// Name of the configuration field or setting that has the problem.
    pub field: &'static str,
    /// The problem with the field.
    pub problem: ConfigProblem,
}

/// Problem with a field of a configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConfigProblem {
    /// The value of the field is outside of its inclusive range.
    OutOfRange {
        /// The smallest value allowed.
        min: u64,
        /// The largest value allowed.
        max: u64,
    },
    /// A memory cap, or the budget, is smaller than the memory that the layer needs at the start.
    TooSmall {
        /// Minimum size of the cap or budget in bytes.
        needed_bytes: u64,
    },
    /// The sink's stage does not include the layer, so the setting would have no effect.
    StageAbsent,
    /// The setting cannot be combined with another setting.
    Conflict {
        /// Name of the setting that conflicts with the field.
        with: &'static str,
    },
}

impl ConfigError {
    pub(crate) const fn new(layer: &'static str, field: &'static str, problem: ConfigProblem) -> Self {
        Self { layer, field, problem }
    }

    pub(crate) const fn out_of_range(
        layer: &'static str,
        field: &'static str,
        (min, max): (u64, u64),
    ) -> Self {
        Self::new(layer, field, ConfigProblem::OutOfRange { min, max })
    }

    pub(crate) const fn too_small(layer: &'static str, field: &'static str, needed_bytes: u64) -> Self {
        Self::new(layer, field, ConfigProblem::TooSmall { needed_bytes })
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { layer, field, problem } = self;
        match problem {
            ConfigProblem::OutOfRange { min, max: u64::MAX } => {
                write!(f, "{layer}: {field} must be at least {min}")
            }
            ConfigProblem::OutOfRange { min, max } => {
                write!(f, "{layer}: {field} must be from {min} to {max}")
            }
            ConfigProblem::TooSmall { needed_bytes } => {
                write!(f, "{layer}: {field} must be at least {needed_bytes} bytes")
            }
            ConfigProblem::StageAbsent => {
                write!(f, "{layer}: {field} is set, but the stage of the sink does not include this layer")
            }
            ConfigProblem::Conflict { with } => write!(f, "{layer}: {field} cannot be combined with {with}"),
        }
    }
}

impl std::error::Error for ConfigError {}
