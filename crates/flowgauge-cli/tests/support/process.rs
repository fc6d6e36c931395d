//! Processes that tests start, and conditions that they wait for.

use std::process::{Child, Command};
use std::time::{Duration, Instant};

/// Maximum time that a test waits for a condition.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(300);

/// Waits until a condition is true.
pub(crate) fn wait_for(condition: &str, mut is_true: impl FnMut() -> bool) {
    let started = Instant::now();
    while !is_true() {
        assert!(started.elapsed() < TIMEOUT, "timeout while waiting for {condition}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A process that ends with the test.
pub(crate) struct Process(pub(crate) Child);

impl Process {
    pub(crate) fn start(command: &mut Command) -> Self {
        Self(command.spawn().unwrap())
    }

    /// Sends a signal, such as `INT`.
    pub(crate) fn signal(&self, name: &str) {
        let args = [format!("-{name}"), self.0.id().to_string()];
        assert!(Command::new("kill").args(args).status().unwrap().success(), "the process has ended");
    }

    pub(crate) fn has_ended(&mut self) -> bool {
        self.0.try_wait().unwrap().is_some()
    }

    /// Waits for the end of the process. Returns its exit status.
    pub(crate) fn end(&mut self) -> Option<i32> {
        wait_for("the end of a process", || self.has_ended());
        self.0.wait().unwrap().code()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
