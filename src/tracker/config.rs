//! Configuration of a flow tracker.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::class::{Timeouts, USER_CLASS_COUNT_MAX, UserClass};
use crate::base::{ConfigError, FlowKey};
use crate::decode::extractor::KeyPolicy;

/// Function that assigns a flow to a class of the caller, or leaves it in its built-in class (`None`).
pub(super) type Classifier = Arc<dyn Fn(&FlowKey) -> Option<UserClass> + Send + Sync>;

crate::base::configuration! {
    /// Timeouts and classes of a [`Tracker`](super::Tracker). Limits, budget and seeds are in its
    /// [`Resources`](crate::base::Resources); of the limits it uses `flow_count_max`, `tcp_extra_count_max` and
    /// `encapsulation_count_max`.
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
    ///     let has_port = [Side::A, Side::B].into_iter().any(|side| key.port(side) == Some(53));
    ///     (key.protocol() == IpProtocol::UDP && has_port).then_some(dns)
    /// });
    /// # Ok::<(), flowgauge::base::ConfigError>(())
    /// ```
    #[derive(Clone)]
    pub struct TrackerConfig {
        /// Idle timeouts of the built-in classes.
        pub timeouts: Timeouts,
        /// Interval after which a record of a flow that continues is created; `None` (the default) for no such records.
        pub active_timeout: Option<Duration>,
        /// The key policy with which packets were extracted, so that packets quoted in ICMP errors are matched to their
        /// flow.
        pub key_policy: KeyPolicy,
        /// Number of open flows from which [`track_batch`](super::Tracker::track_batch) looks up a batch in stages, which
        /// hides the latency of memory. It does so only if more than half of the packets in the previous batch were of
        /// flows that were not used recently. Zero for always. Fewer flows, or few at a time, fit the caches, so that the
        /// stages cost more than the latency that they hide. Records do not depend on this setting. Default 8192.
        pub staged_flow_count_min: u32,
        /// Whether the flow table and its index are placed in huge pages of 2 MiB, if the system has them (on Linux,
        /// `/sys/kernel/mm/transparent_hugepage/enabled` must be `madvise` or `always`). For millions of open flows, packets
        /// of random flows then take up to a third less time. About the first 256 KiB of each of the at most six parts of
        /// the table are in ordinary pages; a larger part takes up to 2 MiB and 0.5 % more memory than is charged to the
        /// budget.
        /// Growth pauses while the kernel clears a page: for 0.1 ms, or for more than 10 ms if a virtual machine must first
        /// obtain the memory from its host. Records do not depend on this setting. Default false.
        pub huge_pages: bool,
        pub(super) user_timeouts: Vec<Option<Duration>>,
        pub(super) classifier: Option<Classifier>,
    }
}

impl TrackerConfig {
    /// Defines a class with its own idle timeout, for flows that [`classify`](Self::classify) assigns to it.
    ///
    /// # Errors
    ///
    /// Returns a [`ConfigError`] if there are [`USER_CLASS_COUNT_MAX`] classes already.
    pub fn add_class(&mut self, idle_timeout: Option<Duration>) -> Result<UserClass, ConfigError> {
        if self.user_timeouts.len() >= USER_CLASS_COUNT_MAX {
            return Err(ConfigError::out_of_range(
                "tracker",
                "class count",
                (0, USER_CLASS_COUNT_MAX as u64),
            ));
        }
        self.user_timeouts.push(idle_timeout);
        Ok(UserClass(self.user_timeouts.len() as u8 - 1))
    }

    /// Sets the function that chooses the class of a flow. It must always return the same class for a key, because the
    /// tracker calls it again when the state of a flow changes. TCP handshakes and closed connections keep their
    /// built-in classes regardless of its result.
    pub fn classify(&mut self, classifier: impl Fn(&FlowKey) -> Option<UserClass> + Send + Sync + 'static) {
        self.classifier = Some(Arc::new(classifier));
    }
}

impl Default for TrackerConfig {
    fn default() -> Self {
        Self {
            timeouts: Timeouts::DEFAULT,
            active_timeout: None,
            key_policy: KeyPolicy::DEFAULT,
            staged_flow_count_min: 1 << 13,
            huge_pages: false,
            user_timeouts: Vec::new(),
            classifier: None,
        }
    }
}

impl fmt::Debug for TrackerConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TrackerConfig")
            .field("timeouts", &self.timeouts)
            .field("active_timeout", &self.active_timeout)
            .field("key_policy", &self.key_policy)
            .field("staged_flow_count_min", &self.staged_flow_count_min)
            .field("huge_pages", &self.huge_pages)
            .field("user_timeouts", &self.user_timeouts)
            .finish_non_exhaustive()
    }
}
