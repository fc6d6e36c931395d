//! What the caller decides about a tracker.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::class::{Timeouts, USER_CLASS_COUNT_MAX, UserClass};
use crate::base::{Budget, FlowKey, Limits};
use crate::extractor::KeyPolicy;

/// Chooses a class of the caller's for a new flow, or leaves it in its natural one.
pub(super) type Classifier = Arc<dyn Fn(&FlowKey) -> Option<UserClass> + Send + Sync>;

/// Timeouts, limits and seeds of a [`Tracker`](super::Tracker). Clones share the budget, and so one account of memory.
///
/// ```
/// use std::time::Duration;
/// use flowgauge::base::{IpProtocol, Side};
/// use flowgauge::tracker::TrackerConfig;
///
/// let mut config = TrackerConfig::default();
/// config.active_timeout = Some(Duration::from_secs(1800));
/// let dns = config.add_class(Some(Duration::from_secs(10)))?;
/// config.classify(move |key| {
///     // Which side is A follows from the addresses, so either may be the server.
///     let has_port = [Side::A, Side::B].into_iter().any(|side| key.port(side) == 53);
///     (key.protocol() == IpProtocol::UDP && has_port).then_some(dns)
/// });
/// # Ok::<(), flowgauge::tracker::ConfigError>(())
/// ```
#[derive(Clone)]
#[non_exhaustive]
pub struct TrackerConfig {
    /// Idle timeouts.
    pub timeouts: Timeouts,
    /// After how long a record of a flow that goes on is made; `None` (the default) for never.
    pub active_timeout: Option<Duration>,
    /// Caps. Of these, the tracker looks at `flow_count_max`, `tcp_extra_count_max` and `enclosure_count_max`.
    pub limits: Limits,
    /// The account of memory; shared with other layers by cloning the handle.
    pub budget: Budget,
    /// Seeds of the keyed hash, for runs that must be repeatable; drawn at random (the default) if `None`. Records do
    /// not depend on them.
    pub seeds: Option<[u64; 4]>,
    /// The policy under which packets were extracted, so that quoted packets in ICMP errors find their flow.
    pub key_policy: KeyPolicy,
    /// Open flows from which on [`track_batch`](super::Tracker::track_batch) looks a batch up in stages, which hides the
    /// latency of memory, if more than half of the batch before was of flows that were not used lately; zero for always. Fewer
    /// flows, or few at a time, fit the caches, and what the stages cost is more than what they hide. Records do not depend
    /// on it. Default 32,768: measured, flows at random gain a factor of three with 50,000 open ones, and a trace with as many in
    /// which the same flows come again soon neither gains nor loses.
    pub staged_flow_count_min: u32,
    pub(super) user_timeouts: Vec<Option<Duration>>,
    pub(super) classifier: Option<Classifier>,
}

/// A mistake in a [`TrackerConfig`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConfigError {
    /// More classes than [`USER_CLASS_COUNT_MAX`].
    TooManyClasses,
    /// A cap of zero flows.
    NoFlows,
    /// More flows than can be numbered: 2^31.
    TooManyFlows,
    /// A budget in which there is no room for the first segment of the flow table.
    BudgetTooSmall {
        /// Bytes that it would have to hold.
        needed_bytes: u64,
    },
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooManyClasses => write!(f, "at most {USER_CLASS_COUNT_MAX} classes can be defined"),
            Self::NoFlows => f.write_str("a tracker needs room for at least one flow"),
            Self::TooManyFlows => f.write_str("a tracker holds at most 2147483648 flows"),
            Self::BudgetTooSmall { needed_bytes } => {
                write!(f, "the memory budget must hold at least {needed_bytes} bytes for flows")
            }
        }
    }
}

impl std::error::Error for ConfigError {}

impl TrackerConfig {
    /// Defines a class with an idle timeout of its own, for flows that [`classify`](Self::classify) names.
    ///
    /// # Errors
    ///
    /// [`ConfigError::TooManyClasses`] beyond [`USER_CLASS_COUNT_MAX`].
    pub fn add_class(&mut self, idle_timeout: Option<Duration>) -> Result<UserClass, ConfigError> {
        if self.user_timeouts.len() >= USER_CLASS_COUNT_MAX {
            return Err(ConfigError::TooManyClasses);
        }
        self.user_timeouts.push(idle_timeout);
        Ok(UserClass(self.user_timeouts.len() as u8 - 1))
    }

    /// Sets what decides the class of each new flow; called once per flow. TCP handshakes and closed connections keep
    /// their built-in classes whatever it says.
    pub fn classify(&mut self, classifier: impl Fn(&FlowKey) -> Option<UserClass> + Send + Sync + 'static) {
        self.classifier = Some(Arc::new(classifier));
    }

    pub(super) fn check(&self) -> Result<(), ConfigError> {
        match self.limits.flow_count_max {
            0 => Err(ConfigError::NoFlows),
            count if count > 1 << 31 => Err(ConfigError::TooManyFlows),
            _ => Ok(()),
        }
    }
}

impl Default for TrackerConfig {
    fn default() -> Self {
        let limits = Limits::DEFAULT;
        Self {
            timeouts: Timeouts::DEFAULT,
            active_timeout: None,
            limits,
            budget: Budget::new(limits.total_bytes_max),
            seeds: None,
            key_policy: KeyPolicy::DEFAULT,
            staged_flow_count_min: 1 << 15,
            user_timeouts: Vec::new(),
            classifier: None,
        }
    }
}

impl fmt::Debug for TrackerConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The seeds stay unsaid: who knows them can choose colliding flows.
        f.debug_struct("TrackerConfig")
            .field("timeouts", &self.timeouts)
            .field("active_timeout", &self.active_timeout)
            .field("limits", &self.limits)
            .field("key_policy", &self.key_policy)
            .field("staged_flow_count_min", &self.staged_flow_count_min)
            .field("user_timeouts", &self.user_timeouts)
            .finish_non_exhaustive()
    }
}
