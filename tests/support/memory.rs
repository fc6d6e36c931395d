//! Output in memory.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

/// Output in memory, which all copies share.
#[derive(Clone, Default)]
pub(crate) struct Memory(Arc<Mutex<Vec<u8>>>);

impl Write for Memory {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("one thread").extend_from_slice(octets);
        Ok(octets.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Memory {
    /// Returns the text, which is removed.
    pub(crate) fn take(&self) -> String {
        String::from_utf8(std::mem::take(&mut *self.0.lock().expect("one thread"))).expect("UTF-8")
    }
}
