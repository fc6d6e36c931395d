//! Handling of SIGINT, SIGTERM and SIGHUP: the first signal ends the input, so that all rows are written; the second ends the
//! process.

use std::io;
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

use flowgauge::StopHandle;

/// Values that the signal handlers set.
#[derive(Default)]
struct Interrupt {
    stop: StopHandle,
    /// Set by signals only, not by the end of a duration.
    signaled: StopHandle,
    /// Number of the signal that was received; zero for none.
    signal: Arc<AtomicUsize>,
}

static INTERRUPT: OnceLock<Interrupt> = OnceLock::new();

fn interrupt() -> &'static Interrupt {
    INTERRUPT.get_or_init(Interrupt::default)
}

/// Base of the exit status that shells assign to a process ended by a signal; the signal number is added.
const STATUS_BASE: i32 = 128;

/// Installs the handlers for SIGINT, SIGTERM and, unless it is ignored, SIGHUP.
pub(crate) fn install() -> io::Result<()> {
    #[cfg(unix)]
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM, signal_hook::consts::SIGHUP] {
        use signal_hook::flag;
        if is_ignored_hangup(signal) {
            continue;
        }
        let Interrupt { stop, signaled, signal: number } = interrupt();
        // Handlers are called in this order: the first signal finds the flag unset.
        flag::register_conditional_shutdown(signal, STATUS_BASE + signal, stop.flag())?;
        flag::register_usize(signal, Arc::clone(number), signal as usize)?;
        flag::register(signal, signaled.flag())?;
        flag::register(signal, stop.flag())?;
    }
    Ok(())
}

/// Returns whether a signal is SIGHUP and the process was started with it ignored, as by `nohup`. Known on Linux only.
#[cfg(unix)]
fn is_ignored_hangup(signal: i32) -> bool {
    signal == signal_hook::consts::SIGHUP
        && std::fs::read_to_string("/proc/self/status").is_ok_and(|status| ignores(&status, signal))
}

/// Returns whether the mask `SigIgn` of a process status, as in proc(5), contains a signal.
#[cfg(unix)]
fn ignores(status: &str, signal: i32) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

/// Returns the handle that the first signal sets, which ends the input.
pub(crate) fn stop() -> StopHandle {
    interrupt().stop.clone()
}

/// Returns the handle that the first signal sets, but not the end of a duration.
#[cfg(feature = "bus")]
pub(crate) fn signaled() -> StopHandle {
    interrupt().signaled.clone()
}

/// Returns whether the signal was SIGINT, which then counts as handled: another one is again the first.
#[cfg(feature = "sql")]
pub(crate) fn take_interrupt() -> bool {
    let Interrupt { stop, signaled, signal } = interrupt();
    #[cfg(unix)]
    if signal.load(Relaxed) != signal_hook::consts::SIGINT as usize {
        return false;
    }
    signal.store(0, Relaxed);
    signaled.flag().store(false, Relaxed);
    stop.flag().store(false, Relaxed);
    true
}

/// Sets the handle that ends the input after a time.
pub(crate) fn stop_after(duration: Duration) {
    thread::spawn(move || {
        thread::sleep(duration);
        stop().stop();
    });
}

/// Returns the exit status of a run that a signal ended.
pub(crate) fn status() -> Option<ExitCode> {
    code().map(ExitCode::from)
}

/// Returns the number of the exit status of a run that a signal ended.
pub(crate) fn code() -> Option<u8> {
    let signal = interrupt().signal.load(Relaxed);
    let code = u8::try_from(STATUS_BASE as usize + signal).ok()?;
    (signal != 0).then_some(code)
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn ignored_signals_are_read_from_the_status_of_the_process() {
        let status = "Name:\tflowgauge\nSigBlk:\tffffffffffffffff\nSigIgn:\t0000000000001001\nSigCgt:\t0\n";
        assert!(ignores(status, 1) && ignores(status, 13));
        assert!(!ignores(status, 2) && !ignores("SigIgn:\tx\n", 1) && !ignores("", 1));
    }
}
