//! Waits for peers that an interrupt shortens.

use std::cell::Cell;
use std::pin::pin;
use std::time::{Duration, Instant};

use flowgauge::StopHandle;
use tokio::time::timeout_at;

/// Time that all waits together may take after the interrupt.
pub(crate) const STOPPED_WAIT: Duration = Duration::from_secs(1);

/// Interval at which a wait tests for the interrupt.
const POLL: Duration = Duration::from_millis(50);

/// Limit of the waits of one thread.
#[derive(Debug, Default)]
pub(crate) struct Patience {
    stop: Option<StopHandle>,
    /// Time until which waits may last once the interrupt was seen.
    stopped_until: Cell<Option<Instant>>,
}

impl Patience {
    pub(crate) fn new(stop: Option<StopHandle>) -> Self {
        Self { stop, stopped_until: Cell::new(None) }
    }

    /// Returns the time until which a wait may last that began with the limit `deadline`.
    fn until(&self, deadline: Instant) -> Instant {
        if self.stopped_until.get().is_none() && self.stop.as_ref().is_some_and(StopHandle::is_stopped) {
            self.stopped_until.set(Some(Instant::now() + STOPPED_WAIT));
        }
        self.stopped_until.get().map_or(deadline, |until| until.min(deadline))
    }

    /// Waits for a future until `deadline` at most. Returns `None` if it did not complete.
    pub(crate) async fn wait<T>(&self, deadline: Instant, future: impl Future<Output = T>) -> Option<T> {
        let mut future = pin!(future);
        loop {
            let until = self.until(deadline);
            let slice = until.min(Instant::now() + POLL);
            match timeout_at(slice.into(), &mut future).await {
                Ok(output) => return Some(output),
                Err(_) if slice >= until => return None,
                Err(_) => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interrupt_shortens_all_waits_together() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let stop = StopHandle::new();
            let patience = Patience::new(Some(stop.clone()));
            let soon = Instant::now() + Duration::from_millis(120);
            assert_eq!(patience.wait(soon, std::future::pending::<()>()).await, None);
            assert!(Instant::now() >= soon);
            let late = Instant::now() + Duration::from_secs(3600);
            assert_eq!(patience.wait(late, std::future::ready(7)).await, Some(7));
            stop.stop();
            for _ in 0..3 {
                assert_eq!(patience.wait(late, std::future::pending::<()>()).await, None);
            }
            assert_eq!(patience.wait(late, std::future::ready(7)).await, Some(7));
        });
    }
}
