//! The clock of sources that receive frames live.

#[cfg(any(feature = "net", feature = "tun"))]
use std::time::Duration;
use std::time::SystemTime;

use crate::base::Timestamp;

/// Maximum time for which a live source waits for frames.
#[cfg(any(feature = "net", feature = "tun"))]
pub(super) const IDLE_INTERVAL: Duration = Duration::from_millis(100);

/// Returns the time of the system clock, which is also the clock of frames that are received live.
pub(crate) fn now() -> Timestamp {
    let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_nanos(u64::try_from(since_epoch.as_nanos()).unwrap_or(u64::MAX))
}
