//! IPFIX as a format of flow records.

use std::io;
use std::time::SystemTime;

use super::writer::{RecordWriter, Summary};
use crate::base::Timestamp;
use crate::ipfix::{Exporter, Transport};
use crate::record::FlowRecord;

/// Writes flow records as IPFIX messages (RFC 7011), with the current time as their export time.
impl<T: Transport> RecordWriter<FlowRecord> for Exporter<T> {
    fn write_if(&mut self, record: &FlowRecord, permits: &mut dyn FnMut(usize) -> bool) -> io::Result<bool> {
        let is_permitted = permits(0);
        if is_permitted {
            let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
            self.export(record, Timestamp::ZERO.saturating_add(since_epoch))?;
        }
        Ok(is_permitted)
    }

    fn flush(&mut self) -> io::Result<()> {
        Self::flush(self)?;
        self.transport_mut().flush()
    }

    fn finish(mut self: Box<Self>) -> io::Result<Summary> {
        RecordWriter::flush(&mut *self)?;
        Ok(Summary { row_count: self.stats().record_count })
    }
}
