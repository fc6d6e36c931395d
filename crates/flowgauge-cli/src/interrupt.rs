//! Handling of SIGINT and SIGTERM: the first signal ends the input, so that all rows are written; the second ends the
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
    /// Number of the signal that was received; zero for none.
    signal: Arc<AtomicUsize>,
}

static INTERRUPT: OnceLock<Interrupt> = OnceLock::new();

fn interrupt() -> &'static Interrupt {
    INTERRUPT.get_or_init(Interrupt::default)
}

/// Base of the exit status that shells assign to a process ended by a signal; the signal number is added.
const STATUS_BASE: i32 = 128;

/// Installs the handlers for SIGINT and SIGTERM.
pub(crate) fn install() -> io::Result<()> {
    #[cfg(unix)]
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        use signal_hook::flag;
        let Interrupt { stop, signal: number } = interrupt();
        // Handlers are called in this order: the first signal finds the flag unset.
        flag::register_conditional_shutdown(signal, STATUS_BASE + signal, stop.flag())?;
        flag::register_usize(signal, Arc::clone(number), signal as usize)?;
        flag::register(signal, stop.flag())?;
    }
    Ok(())
}

/// Returns the handle that the first signal sets, which ends the input.
pub(crate) fn stop() -> StopHandle {
    interrupt().stop.clone()
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
    let signal = interrupt().signal.load(Relaxed);
    let status = u8::try_from(STATUS_BASE as usize + signal).ok()?;
    (signal != 0).then(|| ExitCode::from(status))
}
