//! Resources that all layers of a pipeline share: limits, the memory budget and hash seeds.

use std::fmt;

use super::budget::Budget;
use super::limits::Limits;

/// Limits, memory budget and hash seeds, which a pipeline passes to each layer that it creates. A layer that is used
/// alone takes one too.
///
/// Clones share the budget, so their layers share one memory limit.
///
/// ```
/// use flowgauge::base::{Limits, Resources};
/// use flowgauge::tracker::{Tracker, TrackerConfig};
///
/// let mut limits = Limits::DEFAULT;
/// limits.flow_count_max = 1000;
/// let resources = Resources::new(limits);
/// let tracker: Tracker<()> = Tracker::new(TrackerConfig::default(), &resources)?;
/// assert!(resources.budget.held() > 0);
/// # Ok::<(), flowgauge::base::ConfigError>(())
/// ```
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct Resources {
    /// Limits of all layers.
    pub limits: Limits,
    /// The memory budget that all layers share.
    pub budget: Budget,
    /// Seeds of all keyed hashes, for runs that must be repeatable. If `None` (the default), each table draws random
    /// seeds. Results do not depend on the seeds, but an attacker who knows them can choose colliding keys.
    pub seeds: Option<[u64; 4]>,
}

impl Resources {
    /// Creates resources with a new budget of [`Limits::total_bytes_max`], and random seeds.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self { limits, budget: Budget::new(limits.total_bytes_max), seeds: None }
    }

    /// Returns the resources with another memory budget, for example one that is shared with other layers.
    #[must_use]
    pub fn with_budget(self, budget: Budget) -> Self {
        Self { budget, ..self }
    }

    /// Returns the resources with fixed hash seeds.
    #[must_use]
    pub fn with_seeds(self, seeds: [u64; 4]) -> Self {
        Self { seeds: Some(seeds), ..self }
    }
}

impl fmt::Debug for Resources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The seeds are omitted: an attacker who knows them can choose colliding keys.
        f.debug_struct("Resources")
            .field("limits", &self.limits)
            .field("budget", &self.budget)
            .finish_non_exhaustive()
    }
}
