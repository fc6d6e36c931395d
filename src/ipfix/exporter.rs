//! Exporter of flow records.

use std::io;
use std::num::NonZeroUsize;
use std::time::Duration;

use lru::LruCache;

use super::element::{TYPE_RECORD, TYPE_RECORD_SCOPE_COUNT, TimePrecision, own_columns, write_type_record};
use super::layout::{Layout, Selection, write_record};
use super::transport::Transport;
use super::{HEADER_LEN, OPTIONS_TEMPLATE_SET_ID, SET_HEADER_LEN, TEMPLATE_ID_MIN, TEMPLATE_SET_ID, VERSION};
use crate::base::{ConfigError, NANOS_PER_SECOND, Ports, Side, Timestamp};
use crate::codec::{Fixed, WriteError, Writer};
use crate::record::{FlowDirection, FlowRecord, SideRecord};

/// The smallest permitted limit of a message: the limit of RFC 7011 section 10.3.3 for an unknown path MTU.
const MESSAGE_LEN_MIN: usize = 512;

/// The largest message that the length field of its header can express.
const MESSAGE_LEN_MAX: usize = u16::MAX as usize;

/// Number of templates that are in use at the same time. When it is reached, the least recently used one is withdrawn.
const TEMPLATE_COUNT_MAX: NonZeroUsize = NonZeroUsize::new(1024).expect("not zero");

/// Identifier of the options template of type records.
const TYPE_RECORD_TEMPLATE_ID: u16 = TEMPLATE_ID_MIN;

/// Length of a set that withdraws a template (RFC 7011 section 8.1), in octets.
const WITHDRAWAL_LEN: usize = 8;

crate::base::configuration! {
    /// Configuration of an [`Exporter`].
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct ExporterConfig {
        /// Identifier of the observation domain in each message. Default 1.
        pub observation_domain_id: u32,
        /// Private enterprise number of the elements that this crate defines, such as the Community ID and the counts of
        /// retransmissions. `None`, the default, exports only elements of the IANA registry. The numbers are assigned by
        /// IANA to organizations; 32473 is reserved for documentation (RFC 5612).
        pub enterprise_number: Option<u32>,
        /// Maximum length of a message in octets, from 512 to 65,535. Default 1400, which fits a path MTU of 1500 octets with
        /// some tunnels. Ignored by a transport that is a stream.
        pub message_len_max: usize,
        /// Exports two uniflows with flowDirection (IPFIX 61) for each record, for collectors that do not support biflows.
        /// Default `false`.
        pub is_uniflow: bool,
        /// Resolution of times. Default nanoseconds.
        pub time_precision: TimePrecision,
        /// Time after which templates and type records are sent again over a transport of datagrams. Default 60 seconds.
        pub template_refresh: Duration,
        /// Number of messages after which templates and type records are sent again over a transport of datagrams, from 1.
        /// Default 128.
        pub template_refresh_message_count: u32,
    }
}

impl Default for ExporterConfig {
    fn default() -> Self {
        Self {
            observation_domain_id: 1,
            enterprise_number: None,
            message_len_max: 1400,
            is_uniflow: false,
            time_precision: TimePrecision::Nanoseconds,
            template_refresh: Duration::from_secs(60),
            template_refresh_message_count: 128,
        }
    }
}

/// Counters of an [`Exporter`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExporterStats {
    /// Flow records that were exported.
    pub record_count: u64,
    /// Data records of flows: one per flow record for biflows, up to two for uniflows.
    pub data_record_count: u64,
    /// Messages that were sent.
    pub message_count: u64,
    /// Octets of the messages that were sent.
    pub octet_count: u64,
    /// Templates that were assigned an identifier; each layout of records has one.
    pub assigned_template_count: u64,
    /// Templates that were sent, with repetitions.
    pub template_count: u64,
    /// Flow records whose encapsulation was not exported because the record would exceed a message.
    pub shortened_record_count: u64,
}

/// Exporter of flow records in IPFIX messages (RFC 7011).
///
/// Keeps one message, and at most 1024 templates. Constant time per field; allocates nothing after the first records of
/// each kind, except for the reverse uniflow of a record with an encapsulation.
#[derive(Debug)]
pub struct Exporter<T> {
    transport: T,
    is_datagram: bool,
    selection: Selection,
    config: ExporterConfig,
    /// The message under construction, whose first `len` octets are complete, and space for the next record.
    buffer: Vec<u8>,
    len: usize,
    message_len_max: usize,
    /// Copy of a record that is moved.
    record: Vec<u8>,
    /// The last set of the message, to which data records with the same layout are appended.
    open_set: Option<OpenSet>,
    /// Data records in the message, including type records.
    pending_record_count: u32,
    /// Data records in all messages that were completed; wraps.
    sequence_number: u32,
    templates: LruCache<Layout, Template>,
    next_template_id: u16,
    /// Number of times at which all templates became due to be sent again.
    generation: u32,
    /// Time at which the current generation began.
    generation_start: Option<Timestamp>,
    /// Number of messages that were sent in the current generation.
    generation_message_count: u32,
    /// The latest time that the caller passed.
    now: Timestamp,
    stats: ExporterStats,
}

#[derive(Clone, Copy, Debug)]
struct OpenSet {
    layout: Layout,
    start: usize,
}

#[derive(Clone, Copy, Debug)]
struct Template {
    id: u16,
    /// Generation in which the template was last sent.
    sent_in: u32,
}

impl<T: Transport> Exporter<T> {
    /// Creates an exporter.
    ///
    /// # Errors
    ///
    /// Returns an error if [`ExporterConfig::message_len_max`] or
    /// [`ExporterConfig::template_refresh_message_count`] is out of range.
    pub fn new(config: ExporterConfig, transport: T) -> Result<Self, ConfigError> {
        let range = (MESSAGE_LEN_MIN, MESSAGE_LEN_MAX);
        if !(range.0..=range.1).contains(&config.message_len_max) {
            let range = (range.0 as u64, range.1 as u64);
            return Err(ConfigError::out_of_range("ipfix", "message_len_max", range));
        }
        if config.template_refresh_message_count == 0 {
            let range = (1, u64::MAX);
            return Err(ConfigError::out_of_range("ipfix", "template_refresh_message_count", range));
        }
        let is_datagram = transport.is_datagram();
        let message_len_max = if is_datagram { config.message_len_max } else { MESSAGE_LEN_MAX };
        Ok(Self {
            transport,
            is_datagram,
            selection: Selection {
                enterprise_number: config.enterprise_number,
                precision: config.time_precision,
                is_uniflow: config.is_uniflow,
            },
            config,
            buffer: vec![0; message_len_max * 2],
            len: HEADER_LEN,
            message_len_max,
            record: Vec::new(),
            open_set: None,
            pending_record_count: 0,
            sequence_number: 0,
            templates: LruCache::new(TEMPLATE_COUNT_MAX),
            next_template_id: TYPE_RECORD_TEMPLATE_ID,
            generation: 0,
            generation_start: None,
            generation_message_count: 0,
            now: Timestamp::ZERO,
            stats: ExporterStats::default(),
        })
    }

    /// Returns the counters of the exporter.
    #[must_use]
    pub const fn stats(&self) -> ExporterStats {
        self.stats
    }

    /// Returns the transport.
    pub const fn transport(&self) -> &T {
        &self.transport
    }

    /// Returns the transport.
    pub const fn transport_mut(&mut self) -> &mut T {
        &mut self.transport
    }

    /// Returns the transport. A message that was not [flushed](Self::flush) is discarded.
    #[must_use]
    pub fn into_transport(self) -> T {
        self.transport
    }

    /// Exports a flow record. `now` is the export time, which the header of the next message contains. The record is sent
    /// with the message that it completes, or with [`flush`](Self::flush).
    ///
    /// # Errors
    ///
    /// Returns an error of the transport, which lost the message before this record. The exporter can still be used; the
    /// sequence numbers show the loss to the collector.
    pub fn export(&mut self, record: &FlowRecord, now: Timestamp) -> io::Result<()> {
        self.now = now;
        self.stats.record_count += 1;
        if !self.selection.is_uniflow {
            return self.data_record(record, FlowDirection::Ingress);
        }
        let has_reverse = !record.reverse.counters.is_empty();
        let mut outcome = Ok(());
        if !has_reverse || !record.forward.counters.is_empty() {
            outcome = self.data_record(record, FlowDirection::Ingress);
        }
        if has_reverse {
            outcome = outcome.and(self.data_record(&reverse_uniflow(record), FlowDirection::Egress));
        }
        outcome
    }

    /// Sends the message under construction, if it contains anything. What the transport holds back, such as a
    /// `BufWriter`, is written by its own [`flush`](Transport::flush), or when it is dropped.
    ///
    /// # Errors
    ///
    /// Returns an error of the transport, which lost the message.
    pub fn flush(&mut self) -> io::Result<()> {
        self.send()
    }

    fn data_record(&mut self, record: &FlowRecord, direction: FlowDirection) -> io::Result<()> {
        // An error concerns the message before, not the record.
        let outcome = self.begin_generation();
        self.stats.data_record_count += 1;
        let (layout, record_len) = self.write_record(record, direction).map_err(io::Error::other)?;
        if self.open_set.is_some_and(|set| set.layout == layout)
            && self.len + record_len <= self.message_len_max
        {
            self.len += record_len;
            self.pending_record_count += 1;
            return outcome;
        }
        outcome.and(self.begin_set(layout, record_len))
    }

    /// Writes a record behind the message, and returns its layout and length.
    #[inline]
    fn write_record(
        &mut self,
        record: &FlowRecord,
        direction: FlowDirection,
    ) -> Result<(Layout, usize), WriteError> {
        let space = self.message_len_max - HEADER_LEN - SET_HEADER_LEN;
        let target = self.buffer.get_mut(self.len..self.len + space).unwrap_or_default();
        let written = write_record(target, record, self.selection, direction);
        if written.is_ok() { written } else { self.write_shortened_record(record, direction) }
    }

    /// Writes a record without its encapsulation, the only part that can have any length. The rest fits the smallest
    /// message.
    #[cold]
    fn write_shortened_record(
        &mut self,
        record: &FlowRecord,
        direction: FlowDirection,
    ) -> Result<(Layout, usize), WriteError> {
        self.stats.shortened_record_count += 1;
        let record = FlowRecord { encapsulation: None, ..record.clone() };
        let target = self.buffer.get_mut(self.len..).unwrap_or_default();
        write_record(target, &record, self.selection, direction)
    }

    /// Begins a set with the record behind the message, in this message or in the next one. Writes the template of the
    /// set before it if it is due.
    fn begin_set(&mut self, layout: Layout, record_len: usize) -> io::Result<()> {
        self.close_set();
        self.record.clear();
        self.record.extend_from_slice(self.buffer.get(self.len..self.len + record_len).unwrap_or_default());
        let mut outcome = self.ensure_template(layout);
        let data_len = SET_HEADER_LEN + record_len;
        let mut template_len;
        loop {
            template_len = self.write_due_template(layout);
            let fits = self.len + template_len + data_len <= self.message_len_max;
            if fits || self.len == HEADER_LEN {
                break;
            }
            outcome = outcome.and(self.send());
        }
        self.accept_template(layout, template_len);
        if self.len + data_len > self.message_len_max {
            // The smallest message may not have space for both.
            outcome = outcome.and(self.send());
        }
        let (start, id) = (self.len, self.template_id(layout));
        let record = std::mem::take(&mut self.record);
        self.append(|writer| {
            writer.be(id)?;
            writer.be(0_u16)?;
            writer.bytes(&record)
        });
        self.record = record;
        self.pending_record_count += 1;
        self.open_set = Some(OpenSet { layout, start });
        outcome
    }

    /// Writes to the space behind the message, and returns the number of octets.
    fn write_behind(
        &mut self,
        write: impl FnOnce(&mut Writer<Fixed<'_>>) -> Result<(), WriteError>,
    ) -> Option<usize> {
        let mut writer = Writer::new(self.buffer.get_mut(self.len..).unwrap_or_default());
        write(&mut writer).ok().map(|()| writer.len())
    }

    /// Appends to the message.
    fn append(&mut self, write: impl FnOnce(&mut Writer<Fixed<'_>>) -> Result<(), WriteError>) {
        let len = self.write_behind(write);
        debug_assert!(len.is_some(), "the buffer has space for two messages");
        self.len += len.unwrap_or_default();
    }

    /// Assigns an identifier to the template of a layout. Withdraws the least recently used template if there are too
    /// many.
    fn ensure_template(&mut self, layout: Layout) -> io::Result<()> {
        if self.templates.promote(&layout) {
            return Ok(());
        }
        let mut id = self.next_template_id;
        while id <= TYPE_RECORD_TEMPLATE_ID || self.templates.iter().any(|(_, template)| template.id == id) {
            id = id.checked_add(1).unwrap_or(TEMPLATE_ID_MIN);
        }
        self.next_template_id = id.checked_add(1).unwrap_or(TEMPLATE_ID_MIN);
        self.stats.assigned_template_count += 1;
        let evicted = self.templates.push(layout, Template { id, sent_in: 0 });
        // Templates are not withdrawn over UDP (RFC 7011 section 8.4).
        let Some((_, Template { id, .. })) = evicted.filter(|_| !self.is_datagram) else { return Ok(()) };
        let mut outcome = Ok(());
        if self.len + WITHDRAWAL_LEN > self.message_len_max {
            outcome = self.send();
        }
        self.append(|writer| {
            writer.be(TEMPLATE_SET_ID)?;
            writer.be(WITHDRAWAL_LEN as u16)?;
            writer.be(id)?;
            // A template without fields is a withdrawal (RFC 7011 section 8.1).
            writer.be(0_u16)
        });
        outcome
    }

    fn template_id(&self, layout: Layout) -> u16 {
        self.templates.peek(&layout).map_or(0, |template| template.id)
    }

    /// Writes the template of a layout behind the message if it is due, and returns its length.
    fn write_due_template(&mut self, layout: Layout) -> usize {
        let Some(&template) = self.templates.peek(&layout) else { return 0 };
        if template.sent_in == self.generation {
            return 0;
        }
        let selection = self.selection;
        self.write_behind(|writer| layout.write_template(writer, template.id, selection)).unwrap_or_default()
    }

    /// Appends the template that was written behind the message.
    fn accept_template(&mut self, layout: Layout, template_len: usize) {
        if template_len > 0 {
            self.len += template_len;
            self.stats.template_count += 1;
            if let Some(template) = self.templates.peek_mut(&layout) {
                template.sent_in = self.generation;
            }
        }
    }

    /// Begins a new generation of templates if it is due: at the first record, and over a transport of datagrams after
    /// a time and after a number of messages.
    #[inline]
    fn begin_generation(&mut self) -> io::Result<()> {
        let is_due = match self.generation_start {
            None => true,
            Some(start) => {
                self.is_datagram
                    && (self.generation_message_count >= self.config.template_refresh_message_count
                        || self.now.saturating_since(start) >= self.config.template_refresh)
            }
        };
        if is_due { self.send_type_records() } else { Ok(()) }
    }

    /// Begins a new generation of templates, and writes the type records of the elements that this crate defines (RFC
    /// 5610).
    #[cold]
    fn send_type_records(&mut self) -> io::Result<()> {
        let mut outcome = self.send();
        self.generation += 1;
        (self.generation_start, self.generation_message_count) = (Some(self.now), 0);
        let Some(enterprise_number) = self.selection.enterprise_number else { return outcome };
        self.stats.template_count += 1;
        self.append(write_type_record_template);
        let mut set_start = None;
        for (column, id) in own_columns() {
            let mut len =
                self.write_behind(|writer| write_type_record(writer, enterprise_number, id, column));
            if self.len + SET_HEADER_LEN + len.unwrap_or_default() > self.message_len_max {
                self.fill_set_len(set_start.take());
                outcome = outcome.and(self.send());
            }
            if set_start.is_none() {
                set_start = Some(self.len);
                self.append(|writer| {
                    writer.be(TYPE_RECORD_TEMPLATE_ID)?;
                    writer.be(0_u16)
                });
                len = self.write_behind(|writer| write_type_record(writer, enterprise_number, id, column));
            }
            self.len += len.unwrap_or_default();
            self.pending_record_count += 1;
        }
        self.fill_set_len(set_start);
        outcome
    }

    /// Completes the last set of the message.
    fn close_set(&mut self) {
        let start = self.open_set.take().map(|set| set.start);
        self.fill_set_len(start);
    }

    /// Writes the length of the set that begins at `start` and is the last one of the message.
    fn fill_set_len(&mut self, start: Option<usize>) {
        let Some(start) = start else { return };
        let len = u16::try_from(self.len - start).unwrap_or(u16::MAX);
        if let Some(field) = self.buffer.get_mut(start + 2..start + SET_HEADER_LEN) {
            field.copy_from_slice(&len.to_be_bytes());
        }
    }

    /// Completes the message and sends it.
    fn send(&mut self) -> io::Result<()> {
        self.close_set();
        let len = std::mem::replace(&mut self.len, HEADER_LEN);
        if len == HEADER_LEN {
            return Ok(());
        }
        let Some(message) = self.buffer.get_mut(..len) else { return Ok(()) };
        // Both wrap in 2106.
        let export_time = (self.now.as_nanos() / NANOS_PER_SECOND) as u32;
        let mut header = Writer::new(message);
        header
            .be(VERSION)
            .and_then(|()| header.be(len as u16))
            .and_then(|()| header.be(export_time))
            .and_then(|()| header.be(self.sequence_number))
            .and_then(|()| header.be(self.config.observation_domain_id))
            .map_err(io::Error::other)?;
        self.sequence_number = self.sequence_number.wrapping_add(self.pending_record_count);
        self.pending_record_count = 0;
        self.generation_message_count = self.generation_message_count.saturating_add(1);
        let outcome = self.transport.send(message);
        if outcome.is_ok() {
            self.stats.message_count += 1;
            self.stats.octet_count += len as u64;
        } else {
            // The message may have contained templates.
            self.generation += 1;
        }
        outcome
    }
}

/// Writes a set with the options template of type records (RFC 7011 section 3.4.2.2).
fn write_type_record_template(writer: &mut Writer<Fixed<'_>>) -> Result<(), WriteError> {
    let start = writer.len();
    writer.be(OPTIONS_TEMPLATE_SET_ID)?;
    let set_len = writer.reserve::<u16>()?;
    writer.be(TYPE_RECORD_TEMPLATE_ID)?;
    writer.be(TYPE_RECORD.len() as u16)?;
    writer.be(TYPE_RECORD_SCOPE_COUNT)?;
    TYPE_RECORD.iter().try_for_each(|element| element.write(writer))?;
    writer.fill(set_len, (writer.len() - start) as u16);
    Ok(())
}

/// Returns the uniflow of the responder's direction, with the responder as the source.
fn reverse_uniflow(record: &FlowRecord) -> FlowRecord {
    let encapsulation = record.encapsulation.clone();
    let sender = record.initiator.other();
    let icmp = match record.key.ports() {
        Ports::Icmp { kind, .. } if sender == Side::A => Some((kind, 0)),
        // The type of the reply; replies have the code 0.
        Ports::Icmp { counterpart, .. } if !record.key.is_one_way_icmp() => Some((counterpart, 0)),
        _ => record.icmp,
    };
    FlowRecord {
        initiator: sender,
        icmp,
        forward: record.reverse.clone(),
        reverse: SideRecord { mac: record.forward.mac, ..SideRecord::default() },
        history: record.history.turned_over(),
        encapsulation: encapsulation.map(|encapsulation| Box::new(encapsulation.turned())),
        exported: record.exported.as_deref().map(|exported| Box::new(exported.turned())),
        ..*record
    }
}
