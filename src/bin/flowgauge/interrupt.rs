//! SIGINT and SIGTERM: the first one ends the input, so that all rows are written; the second one ends the process.

use std::io;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

/// What the handlers set.
struct Interrupt {
    is_stopped: Arc<AtomicBool>,
    /// The signal; zero for none.
    signal: Arc<AtomicUsize>,
}

static INTERRUPT: OnceLock<Interrupt> = OnceLock::new();

/// Exit status of a process that a signal ended, in shells.
const STATUS_BASE: i32 = 128;

/// Installs the handlers.
pub(crate) fn install() -> io::Result<()> {
    let interrupt =
        INTERRUPT.get_or_init(|| Interrupt { is_stopped: Arc::default(), signal: Arc::default() });
    #[cfg(unix)]
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        use signal_hook::flag;
        let (is_stopped, number) = (Arc::clone(&interrupt.is_stopped), Arc::clone(&interrupt.signal));
        // Handlers are called in this order: the first signal finds the flag unset.
        flag::register_conditional_shutdown(signal, STATUS_BASE + signal, Arc::clone(&is_stopped))?;
        flag::register_usize(signal, number, signal as usize)?;
        flag::register(signal, is_stopped)?;
    }
    let _ = interrupt;
    Ok(())
}

/// The flag that the first signal sets.
pub(crate) fn flag() -> Option<Arc<AtomicBool>> {
    INTERRUPT.get().map(|interrupt| Arc::clone(&interrupt.is_stopped))
}

/// Whether a signal came.
pub(crate) fn is_set() -> bool {
    INTERRUPT.get().is_some_and(|interrupt| interrupt.is_stopped.load(Relaxed))
}

/// The exit status of a run that a signal ended.
pub(crate) fn status() -> Option<ExitCode> {
    let signal = INTERRUPT.get().map_or(0, |interrupt| interrupt.signal.load(Relaxed));
    let status = u8::try_from(STATUS_BASE as usize + signal).ok()?;
    (signal != 0).then(|| ExitCode::from(status))
}
