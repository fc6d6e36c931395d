//! Records of IPFIX messages.

use std::collections::VecDeque;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};

use super::problem::RecordProblemKind;
use crate::base::{ConfigError, Timestamp};
use crate::ipfix::MessageReader;
use crate::ipfix::collector::{Collected, Collector, CollectorConfig};
use crate::record::FlowRecord;

/// A file of IPFIX messages.
#[derive(Debug)]
pub(super) struct Messages<R> {
    pub(super) reader: MessageReader<R>,
    collector: Collector,
    records: VecDeque<FlowRecord>,
}

impl<R: io::Read> Messages<R> {
    pub(super) fn new(input: R) -> Result<Self, ConfigError> {
        Ok(Self {
            reader: MessageReader::new(input),
            collector: Collector::new(CollectorConfig::default())?,
            records: VecDeque::new(),
        })
    }

    /// Decodes messages up to the next record.
    pub(super) fn next(&mut self) -> io::Result<Option<FlowRecord>> {
        // The messages of a file have one exporter.
        let exporter = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
        let Self { reader, collector, records } = self;
        while records.is_empty() {
            let Some(message) = reader.next()? else { return Ok(None) };
            collector.message(exporter, message, Timestamp::ZERO, |collected| {
                if let Collected::Record(record) = collected {
                    records.push_back(record.clone());
                }
            });
        }
        Ok(records.pop_front())
    }

    /// Returns what had no record.
    pub(super) fn skipped(&self) -> impl Iterator<Item = RecordProblemKind> + use<R> {
        let stats = self.collector.stats();
        [
            (stats.malformed_message_count, "message", "malformed"),
            (stats.unknown_template_set_count, "data set", "skipped because the template is not known"),
            (stats.refused_template_count, "template", "refused (malformed or too large)"),
            (stats.unkeyed_record_count, "record", "without addresses skipped"),
            (stats.packet_count, "sampled packet", "skipped; `flowgauge collect` makes records of them"),
        ]
        .into_iter()
        .filter(|(count, ..)| *count > 0)
        .map(|(count, part, reason)| RecordProblemKind::Skipped { count, part, reason })
    }
}
