//! Collection of flow records from IPFIX (RFC 7011), NetFlow version 9 (RFC 3954) and NetFlow version 5, and of packets
//! that exporters sampled: PSAMP (RFC 5476) and sFlow version 5.
//!
//! A [`Collector`] decodes the messages of exporters, and emits a [`FlowRecord`] for each data record. [`FlowRecord::known`]
//! marks the fields that the exporter sent. Reverse elements (RFC 5103) describe the responder's direction; elements that
//! this crate defines are recognized by their type records (RFC 5610); unknown elements are skipped. A
//! [`UniflowJoiner`] joins the two uniflows of a flow to a biflow.
//!
//! A data record that contains the beginning of a packet instead of addresses, and a sample of sFlow, is emitted as a
//! [`SampledPacket`]: a frame for a [`Pipeline`](crate::Pipeline), and its [`ObservationPoint`] with the sampling
//! interval. The intervals of options records apply to the records of their samplers, as
//! [`FlowRecord::sampling_interval`]; [`FlowRecord::scale`] estimates the counts of all packets.
//!
//! A program that receives messages passes each datagram, or each message of a stream
//! ([`MessageReader`](super::MessageReader)), to the collector:
//!
//! ```
//! use flowgauge::ipfix::collector::{Collector, CollectorConfig};
//! use flowgauge::ipfix::{Exporter, ExporterConfig, MessageReader, StreamTransport};
//! use flowgauge::{FileSource, Timestamp, records};
//!
//! let mut file = Vec::new();
//! let mut exporter = Exporter::new(ExporterConfig::default(), StreamTransport::new(&mut file))?;
//! for record in records(FileSource::open("examples/data/web.pcap")?) {
//!     let record = record?;
//!     exporter.export(&record, record.end)?;
//! }
//! exporter.flush()?;
//!
//! let mut collector = Collector::new(CollectorConfig::default())?;
//! let mut messages = MessageReader::new(&file[..]);
//! let (mut flow_count, mut packet_count) = (0, 0);
//! while let Some(message) = messages.next()? {
//!     collector.message("192.0.2.1:4739".parse()?, message, Timestamp::ZERO, |collected| {
//!         if let Some(record) = collected.record() {
//!             flow_count += 1;
//!             packet_count += record.packet_count();
//!         }
//!     });
//! }
//! assert_eq!((flow_count, packet_count), (27, 1284));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Every input is accepted: messages that cannot be decoded are counted in [`CollectorStats`]. Memory is bounded by
//! [`CollectorConfig`].
//!
//! [`FlowRecord`]: crate::FlowRecord
//! [`FlowRecord::known`]: crate::FlowRecord::known
//! [`FlowRecord::sampling_interval`]: crate::FlowRecord::sampling_interval
//! [`FlowRecord::scale`]: crate::FlowRecord::scale

mod action;
mod collected;
mod config;
mod domain;
mod domains;
mod family;
mod field;
mod netflow5;
mod own_elements;
mod packet;
mod sampling;
mod sequence;
mod session;
mod sflow;
mod shared;
mod stats;
mod steps;
mod template;
mod times;
mod uniflow;

use std::net::SocketAddr;

use ahash::RandomState;

use crate::base::{ConfigError, Frame, Timestamp, hash_state};
use crate::codec::Reader;
use crate::ipfix::{HEADER_LEN, VERSION};
use crate::record::{Draft, ExportedRecord};
use domain::{Domain, Sets};
use domains::{DomainKey, Domains};
use shared::Shared;
use times::BootTime;

pub use collected::Collected;
pub use config::CollectorConfig;
pub use packet::{ObservationPoint, SampledPacket};
pub use session::TransportSession;
pub use stats::CollectorStats;
pub use uniflow::UniflowJoiner;

/// Version number of a NetFlow message of version 9 (RFC 3954 section 5.1).
const NETFLOW9_VERSION: u16 = 9;

/// Version under which domains of sFlow are stored; no message has it in its first octets.
const SFLOW_VERSION: u16 = 0;

/// Collector of flow records and sampled packets.
///
/// Linear in the length of each message. Allocates for templates, and once for the part of records about the exporter.
#[derive(Debug)]
pub struct Collector {
    domains: Domains,
    /// Keys of the numbers of observation points.
    numbers: RandomState,
    stats: CollectorStats,
    /// The latest record.
    draft: Draft,
}

impl Collector {
    /// Creates a collector without templates.
    ///
    /// # Errors
    ///
    /// Returns an error if [`CollectorConfig::domain_count_max`] is zero.
    pub fn new(config: CollectorConfig) -> Result<Self, ConfigError> {
        Ok(Self {
            domains: Domains::new(config)?,
            numbers: hash_state(None),
            stats: CollectorStats::default(),
            draft: Draft::new(),
        })
    }

    /// Returns the counters of the collector.
    #[must_use]
    pub const fn stats(&self) -> CollectorStats {
        self.stats
    }

    /// Decodes a message from an exporter: a UDP datagram of any supported version, or an IPFIX message of a stream or a
    /// file. Emits its flow records and packets in order.
    ///
    /// The address identifies the exporter and its transport session: templates of one address do not apply to
    /// messages from another one. `now` is the time at which the message arrived; exporters that have sent records for
    /// longer are evicted later, and packets of sFlow have this time.
    pub fn message(
        &mut self,
        exporter: SocketAddr,
        message: &[u8],
        now: Timestamp,
        emit: impl FnMut(Collected<'_>),
    ) {
        self.session_message(exporter.into(), message, now, emit);
    }

    /// Decodes a message of a session, as [`message`](Self::message) does. Use it if messages arrive over several transport
    /// protocols: an exporter may use the same port of each, and templates are valid in their session only.
    pub fn session_message(
        &mut self,
        session: TransportSession,
        message: &[u8],
        now: Timestamp,
        mut emit: impl FnMut(Collected<'_>),
    ) {
        self.stats.message_count += 1;
        self.stats.octet_count += message.len() as u64;
        let is_well_formed = self.decode(Arrival { session, now }, message, &mut emit).is_some();
        self.stats.malformed_message_count += u64::from(!is_well_formed);
    }

    /// Removes the templates of an exporter whose connection was closed, over all transport protocols. Linear in the number
    /// of the domains of its address.
    pub fn disconnect(&mut self, exporter: SocketAddr) {
        self.domains.remove(exporter, |_| true);
    }

    /// Removes the templates of a session that has ended. Linear in the number of the domains of its address.
    pub fn end_session(&mut self, session: TransportSession) {
        self.domains.remove(session.exporter, |other| *other == session);
    }

    /// Decodes a message; returns `None` if it is malformed.
    fn decode(
        &mut self,
        arrival: Arrival,
        message: &[u8],
        emit: &mut impl FnMut(Collected<'_>),
    ) -> Option<()> {
        let mut reader = Reader::new(message);
        let version = reader.be::<u16>().ok()?;
        match version {
            VERSION => self.ipfix(arrival, message, reader, emit),
            NETFLOW9_VERSION => self.netflow9(arrival, reader, emit),
            netflow5::VERSION => {
                let message = netflow5::Message::parse(reader)?;
                let id = message.engine.into();
                self.with_domain(arrival, version, id, |domain, Shared { stats, draft, .. }| {
                    domain.sequence.check(message.sequence_number, message.record_count, stats);
                    draft.restart();
                    draft.set_exported(Some(&arrival.exported(id)));
                    message.records(draft, stats, emit)
                })
            }
            _ => {
                let mut reader = Reader::new(message);
                (reader.be::<u32>().ok()? == sflow::VERSION).then_some(())?;
                self.sflow(arrival, sflow::Datagram::parse(reader)?, emit)
            }
        }
    }

    fn ipfix(
        &mut self,
        arrival: Arrival,
        message: &[u8],
        mut reader: Reader<'_>,
        emit: &mut impl FnMut(Collected<'_>),
    ) -> Option<()> {
        let len = usize::from(reader.be::<u16>().ok()?);
        let export_seconds = reader.be::<u32>().ok()?;
        let sequence_number = reader.be::<u32>().ok()?;
        let id = reader.be::<u32>().ok()?;
        // A message that is longer than its header states has octets that belong to nothing; a shorter one is decoded up
        // to its end.
        let is_complete = len == message.len() && len >= HEADER_LEN;
        let export_time = Timestamp::from_parts(export_seconds.into(), 0);
        let outcome = self.with_domain(arrival, VERSION, id, |domain, shared| {
            let mut sets = Sets {
                domain,
                shared,
                exporter: arrival.session.exporter.ip(),
                exported: arrival.exported(id),
                domain_id: id,
                export_time,
                boot_time: None,
                is_ipfix: true,
            };
            let body = reader.bytes(len.checked_sub(HEADER_LEN)?.min(reader.remaining_len())).ok()?;
            let counted = sets.decode(Reader::new(body), emit);
            sets.domain.sequence.check_or_resume(sequence_number, counted.record_count, sets.shared.stats);
            counted.is_well_formed.then_some(())
        });
        outcome.filter(|()| is_complete)
    }

    fn netflow9(
        &mut self,
        arrival: Arrival,
        mut reader: Reader<'_>,
        emit: &mut impl FnMut(Collected<'_>),
    ) -> Option<()> {
        let _record_count = reader.be::<u16>().ok()?;
        let uptime_ms = reader.be::<u32>().ok()?;
        let export_seconds = reader.be::<u32>().ok()?;
        let sequence_number = reader.be::<u32>().ok()?;
        let id = reader.be::<u32>().ok()?;
        let export_time = Timestamp::from_parts(export_seconds.into(), 0);
        self.with_domain(arrival, NETFLOW9_VERSION, id, |domain, shared| {
            let boot_time = Some(BootTime::new(export_time, uptime_ms));
            let mut sets = Sets {
                domain,
                shared,
                exporter: arrival.session.exporter.ip(),
                exported: arrival.exported(id),
                domain_id: id,
                export_time,
                boot_time,
                is_ipfix: false,
            };
            let counted = sets.decode(reader, emit);
            // The sequence number counts messages (RFC 3954 section 5.1).
            sets.domain.sequence.check(sequence_number, 1, sets.shared.stats);
            counted.is_well_formed.then_some(())
        })
    }

    fn sflow(
        &mut self,
        arrival: Arrival,
        datagram: sflow::Datagram<'_>,
        emit: &mut impl FnMut(Collected<'_>),
    ) -> Option<()> {
        let Arrival { session: TransportSession { exporter, .. }, now } = arrival;
        let sub_agent = datagram.sub_agent;
        let exporter = Some(datagram.agent).filter(|agent| !agent.is_unspecified()).unwrap_or(exporter.ip());
        let mut exported = arrival.exported(sub_agent);
        exported.exporter_address = Some(exporter);
        self.with_domain(arrival, SFLOW_VERSION, sub_agent, |domain, Shared { stats, draft, numbers }| {
            domain.sequence.check(datagram.sequence_number, 1, stats);
            datagram.samples(stats, |sample, stats| match sample {
                sflow::Sample::Packet(sampled) => {
                    let point = ObservationPoint {
                        exporter,
                        domain: sub_agent,
                        interface: sampled.place.interface,
                        sampling_interval: Some(sampled.place.interval),
                        vlan_id: sampled.place.vlan_id,
                    };
                    stats.packet_count += 1;
                    let frame = Frame {
                        timestamp: now,
                        link_type: sampled.link_type,
                        data: sampled.octets,
                        wire_len: sampled.wire_len,
                        interface: point.number(numbers),
                    };
                    emit(Collected::Packet(SampledPacket {
                        frame,
                        point,
                        egress_interface: sampled.place.egress_interface,
                        source_as: sampled.place.systems.source,
                        destination_as: sampled.place.systems.destination,
                    }));
                }
                sflow::Sample::Record(described, place) => {
                    draft.set_exported(Some(&exported));
                    described.fill(place, draft, now);
                    if let Ok(record) = draft.finish() {
                        stats.record_count += 1;
                        emit(Collected::Record(record));
                    }
                }
            })
        })
    }

    /// Runs `decode` with the state of an observation domain.
    fn with_domain<R>(
        &mut self,
        arrival: Arrival,
        version: u16,
        id: u32,
        decode: impl FnOnce(&mut Domain, Shared<'_>) -> R,
    ) -> R {
        let Self { domains, numbers, stats, draft } = self;
        let key = DomainKey { session: arrival.session, version, id };
        domains.with(key, arrival.now, stats, |domain, stats| {
            let count = stats.record_count + stats.packet_count;
            let result = decode(domain, Shared { numbers, stats, draft });
            domain.has_records |= stats.record_count + stats.packet_count > count;
            result
        })
    }
}

/// Origin of a message, and the time at which it arrived.
#[derive(Clone, Copy, Debug)]
struct Arrival {
    session: TransportSession,
    now: Timestamp,
}

impl Arrival {
    /// Returns the part of all records of a message about their exporter. The messages of a file have no sender; without
    /// one, 0 is not the identifier of a domain (RFC 7011 section 3.1).
    fn exported(self, domain_id: u32) -> ExportedRecord {
        let sender = self.session.exporter.ip();
        ExportedRecord {
            exporter_address: (!sender.is_unspecified()).then_some(sender),
            observation_domain: Some(domain_id).filter(|id| *id != 0 || !sender.is_unspecified()),
            ..ExportedRecord::default()
        }
    }
}
