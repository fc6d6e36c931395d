//! Writes events.

use std::fmt;
use std::io::{self, Write};
use std::time::Duration;

use super::anomaly::Anomaly;
use super::arp::Arp;
use super::dns::Dns;
use super::fileinfo::Fileinfo;
use super::flow::Flow;
use super::ftp::Ftp;
use super::ftp_data::FtpData;
use super::head::Head;
use super::held::Held;
use super::http::Http;
use super::netflow::Netflow;
use super::protocol::application_name;
use super::quic::Quic;
use super::smtp::Smtp;
use super::ssh::Ssh;
use super::stats::Stats;
use super::tls::Tls;
use crate::base::{EndReason, Evidence, Side, Timestamp};
use crate::export::Uid;
use crate::export::{FlowLog, LogFiles, LoggedFlow, Nulls, Permits, Style, TimeFormat, write_json};
use crate::neighbor::Neighbor;
use crate::protocols::{ftp_data, smb, tftp};
use crate::record::FlowRecord;
use crate::row::{DynRow, Table, TableInfo};
use crate::session::kit::LogFormat;
use crate::session::{MessageMeta, Role};
use crate::tracker::{self, FlowView};
use crate::transaction::{Content, Transaction};

crate::base::configuration! {
    /// Which events are written.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct EveConfig {
        /// Number from which identifiers of flows are derived. Programs that compare them need the same seed.
        pub seed: u64,
        /// Whether only events of type `flow` are written, and the others that this configuration requests.
        pub has_flows_only: bool,
        /// Whether events of type `netflow` are written too.
        pub has_netflow: bool,
        /// Whether an event of type `stats` is written at the end.
        pub has_stats: bool,
        /// Time of the capture after which an event of type `stats` is written; none before the end if absent.
        pub stats_interval: Option<Duration>,
    }
}

/// How events are written: without unset keys.
const JSON: Style = Style { time: TimeFormat::Rfc3339, nulls: Nulls::Omit, has_sensitive: false };

/// Name of the log.
const LOG: &str = "eve";

/// A [`FlowLog`] that writes events of EVE to one destination. Lines are written whole.
pub struct Events<W> {
    config: EveConfig,
    destination: Destination<W>,
    held: Held,
    line: Vec<u8>,
    stats: Stats,
    /// The first time of all events.
    start: Option<Timestamp>,
    /// The latest time of all events.
    now: Timestamp,
    /// The time of the next event of type `stats`.
    next_stats: Option<Timestamp>,
    row_count: u64,
}

/// Returns the type of the events of a table.
fn event_type<R: Table>() -> &'static str {
    let table = const { &TableInfo::of::<R>() };
    table.kind()
}

enum Destination<W> {
    Stream(W),
    /// Opened for its first event.
    Files(Box<dyn LogFiles<Out = W> + Send>, Option<W>),
}

impl<W: Write> Events<W> {
    /// Creates events that are written to one destination.
    #[must_use]
    pub fn stream(out: W, config: EveConfig) -> Self {
        Self::new(Destination::Stream(out), config)
    }

    /// Creates events that are written to a series of destinations, one after another: those of the log `eve`.
    pub fn each(files: impl LogFiles<Out = W> + Send + 'static, config: EveConfig) -> Self {
        Self::new(Destination::Files(Box::new(files), None), config)
    }

    fn new(destination: Destination<W>, config: EveConfig) -> Self {
        Self {
            config,
            destination,
            held: Held::default(),
            line: Vec::new(),
            stats: Stats::NONE,
            start: None,
            now: Timestamp::ZERO,
            next_stats: None,
            row_count: 0,
        }
    }

    /// Returns the head of an event of a flow with one side as the source.
    fn head<R: Table>(
        &self,
        flow: &mut LoggedFlow,
        (view, source): (&FlowView<'_>, Side),
        timestamp: Timestamp,
    ) -> Head {
        let uid = flow.uid(view, self.config.seed);
        Head::new(event_type::<R>(), timestamp, uid, (view, source)).with_parent(flow.parent())
    }

    /// Writes an event.
    fn write(&mut self, time: Timestamp, row: &dyn DynRow, permits: Permits<'_>) -> io::Result<bool> {
        self.advance(time)?;
        self.start.get_or_insert(time);
        if let Some(interval) = self.config.stats_interval
            && self.now >= *self.next_stats.get_or_insert(time.saturating_add(interval))
        {
            self.next_stats = Some(self.now.saturating_add(interval));
            self.write_stats()?;
        }
        self.write_line(row, permits)
    }

    /// Writes the events of a record. `head` is that of the event of type `flow`.
    fn write_record(&mut self, head: Head, record: &FlowRecord, permits: Permits<'_>) -> io::Result<bool> {
        self.stats.add(record);
        let mut is_written = self.write(head.timestamp, &(head, Flow::new(record)), &mut *permits)?;
        if !self.config.has_netflow {
            return Ok(is_written);
        }
        let app_proto = head.app_proto.or(Some("unknown"));
        let (event_type, has_version) = (event_type::<Netflow>(), false);
        let there = Head { event_type, app_proto, app_proto_orig: None, has_version, ..head };
        let back = Some(there.turned(record.reverse.vlan_ids));
        let back = back.filter(|_| record.reverse.counters.packet_count > 0);
        for (head, direction) in [(Some(there), &record.forward), (back, &record.reverse)] {
            let Some(head) = head else { continue };
            let row = (Head { response_icmp: None, ..head }, Netflow::new(record, direction));
            is_written &= self.write(head.timestamp, &row, &mut *permits)?;
        }
        Ok(is_written)
    }

    /// Writes the event of a file, with the exchange or mail to which it belongs.
    fn write_file(
        &mut self,
        view: &FlowView<'_>,
        flow: &mut LoggedFlow,
        (transaction, of): (&Transaction, Option<&Content>),
        permits: Permits<'_>,
    ) -> io::Result<bool> {
        let Content::File(file) = &transaction.content else { return Ok(true) };
        // The text of a mail is no file.
        if file.part.is_some() && file.name.is_none() {
            return Ok(true);
        }
        let (client, end, name) = (transaction.client(), transaction.end(), transaction.protocol().name());
        let sender = if file.role == Some(Role::Client) { client } else { client.other() };
        let tx_id = Some(file.number).filter(|_| !["http2", "ftp_data", "smb"].contains(&name));
        let head = self.head::<Fileinfo<'_>>(flow, (view, sender), end);
        let head = Head { tx_id, ..head.with_application(name) };
        self.write(end, &(head, Fileinfo::new(file, tx_id, of)), permits)
    }

    /// Writes the events of the files of an exchange or mail.
    fn write_files(
        &mut self,
        view: &FlowView<'_>,
        flow: &mut LoggedFlow,
        (transaction, number): (&Transaction, u64),
        permits: Permits<'_>,
    ) -> io::Result<bool> {
        let mut is_written = true;
        for file in self.held.take_files(view.id(), (transaction.protocol(), number)) {
            let file = (&file, Some(&transaction.content));
            is_written &= self.write_file(view, flow, file, &mut *permits)?;
        }
        Ok(is_written)
    }

    fn write_stats(&mut self) -> io::Result<()> {
        let Some(start) = self.start else { return Ok(()) };
        let stats = self.stats.at(start, self.now);
        self.write_line(&stats, &mut |_| true).map(drop)
    }

    fn write_line(&mut self, row: &dyn DynRow, permits: Permits<'_>) -> io::Result<bool> {
        let Self { destination, line, now, row_count, .. } = self;
        line.clear();
        write_json(line, row, JSON);
        line.push(b'\n');
        if !permits(line.len()) {
            return Ok(false);
        }
        let out = match destination {
            Destination::Stream(out) => out,
            Destination::Files(_, Some(out)) => out,
            Destination::Files(files, none) => none.insert(files.open(LOG, *now)?),
        };
        out.write_all(line)?;
        *row_count += 1;
        Ok(true)
    }
}

impl<W: Write> FlowLog for Events<W> {
    fn held_bytes(&mut self, _: u64) -> u64 {
        self.held.heap_len() as u64
    }

    /// Writes an event of type `flow`, of which a flow has several with an active timeout, and those of type `netflow`.
    fn record(
        &mut self,
        view: &FlowView<'_>,
        flow: &mut LoggedFlow,
        reason: EndReason,
        permits: Permits<'_>,
    ) -> io::Result<bool> {
        let mut is_written = true;
        if reason != EndReason::ActiveTimeout {
            for file in self.held.take_all_files(view.id()) {
                is_written &= self.write_file(view, flow, (&file, None), &mut *permits)?;
            }
        }
        let [mut first, mut last] = [None; 2];
        flow.for_each_service(view, |name| {
            last = application_name(name);
            first = first.or(last);
        });
        let record = view.record(reason);
        let head = self.head::<Flow>(flow, (view, view.initiator()), view.clock().max(record.end));
        let head = Head { app_proto: last, app_proto_orig: first.filter(|_| first != last), ..head };
        Ok(self.write_record(head, &record, permits)? && is_written)
    }

    /// Writes the same events for a record that another program made, with the time of its end.
    fn collected(&mut self, record: &FlowRecord, permits: Permits<'_>) -> io::Result<bool> {
        let uid = Uid::of_flow(&record.key, record.start, self.config.seed);
        let proven = record.application.filter(|application| application.evidence == Evidence::Content);
        let app_proto = proven.and_then(|application| application_name(application.name.as_str()));
        let head = Head::of_record(event_type::<Flow>(), uid, record);
        self.write_record(Head { app_proto, ..head }, record, permits)
    }

    fn ended(&mut self, view: &FlowView<'_>) -> io::Result<()> {
        self.held.release(view.id());
        Ok(())
    }

    fn transaction(
        &mut self,
        view: &FlowView<'_>,
        flow: &mut LoggedFlow,
        transaction: &Transaction,
        permits: Permits<'_>,
    ) -> io::Result<bool> {
        if self.config.has_flows_only {
            return Ok(true);
        }
        let (client, end, name) = (transaction.client(), transaction.end(), transaction.protocol().name());
        let ends = (view, client);
        let numbered = |head: Head, tx_id| Head { tx_id, ..head.with_application(name) };
        match &transaction.content {
            Content::Http(http) => {
                let is_written = self.write_files(view, flow, (transaction, http.number), &mut *permits)?;
                let number = Some(http.number).filter(|_| name != "http2");
                let head = numbered(self.head::<Http<'_>>(flow, ends, end), number);
                Ok(self.write(end, &(head, Http::new(http)), permits)? && is_written)
            }
            Content::Dns(_) if name != "dns" => Ok(true),
            Content::Dns(dns) => {
                let mut is_written = true;
                if dns.query_flags.is_some() {
                    let start = transaction.start();
                    let head = numbered(self.head::<Dns<'_>>(flow, ends, start), dns.number);
                    is_written &= self.write(start, &(head, Dns::request(dns)), &mut *permits)?;
                }
                if dns.response_flags.is_some() {
                    let ends = (view, client.other());
                    let head = numbered(self.head::<Dns<'_>>(flow, ends, end), dns.number);
                    is_written &= self.write(end, &(head, Dns::response(dns)), &mut *permits)?;
                }
                Ok(is_written)
            }
            Content::Tls(tls) => {
                let certificates = self.held.take_certificates(view.id());
                let mut from_proto = None;
                flow.for_each_service(view, |name| from_proto = from_proto.or(Some(application_name(name))));
                let from_proto = from_proto.flatten().filter(|name| *name != "tls");
                let head = numbered(self.head::<Tls<'_>>(flow, ends, end), None);
                let tls = Tls::new(tls, certificates.each_ref().map(Option::as_ref), from_proto);
                self.write(end, &(head, tls), permits)
            }
            Content::Quic(quic) => {
                let hellos = [
                    (Role::Client, transaction.start(), quic.tls.offered_version),
                    (Role::Server, end, quic.tls.version),
                ];
                let mut is_written = true;
                for (from, time, _) in hellos.into_iter().filter(|(_, _, version)| version.is_some()) {
                    let head = numbered(self.head::<Quic<'_>>(flow, ends, time), None);
                    is_written &= self.write(time, &(head, Quic::new(quic, from)), &mut *permits)?;
                }
                Ok(is_written)
            }
            Content::X509(x509) => {
                self.held.hold_certificate(view.id(), x509);
                Ok(true)
            }
            Content::Ssh(ssh) => {
                let head = numbered(self.head::<Ssh<'_>>(flow, ends, end), None);
                self.write(end, &(head, Ssh::new(ssh)), permits)
            }
            Content::Mail(mail) => {
                let is_written = self.write_files(view, flow, (transaction, mail.number), &mut *permits)?;
                let head = numbered(self.head::<Smtp<'_>>(flow, ends, end), Some(mail.number));
                Ok(self.write(end, &(head, Smtp::new(mail)), permits)? && is_written)
            }
            Content::Ftp(ftp) => {
                let head = numbered(self.head::<Ftp<'_>>(flow, ends, end), Some(ftp.number));
                self.write(end, &(head, Ftp::new(ftp)), permits)
            }
            Content::Kit(exchange) => exchange.logs(LogFormat::Eve, &mut |log| {
                let sender = if log.from == Role::Client { client } else { client.other() };
                let uid = flow.uid(view, self.config.seed);
                let head = Head::new(log.table.kind(), log.timestamp, uid, (view, sender));
                let head = numbered(head.with_parent(flow.parent()), None);
                self.write(log.timestamp, &(head, log.row), &mut *permits)
            }),
            Content::File(file) if name == ftp_data::PROTOCOL.name() => {
                let mut is_written = true;
                if let Some(transfer) = &file.transfer {
                    flow.announced_by(&transfer.control, self.config.seed);
                    let head = numbered(self.head::<FtpData<'_>>(flow, ends, end), None);
                    is_written = self.write(end, &(head, FtpData::new(transfer)), &mut *permits)?;
                }
                Ok(self.write_file(view, flow, (transaction, None), permits)? && is_written)
            }
            // Suricata writes no event of such a file.
            Content::File(_) if name == tftp::PROTOCOL.name() => Ok(true),
            Content::File(_) if name == smb::PROTOCOL.name() => {
                self.write_file(view, flow, (transaction, None), permits)
            }
            Content::File(_) => match self.held.hold_file(view.id(), transaction) {
                Some(oldest) => self.write_file(view, flow, (&oldest, None), permits),
                None => Ok(true),
            },
        }
    }

    fn anomaly(
        &mut self,
        view: &FlowView<'_>,
        flow: &mut LoggedFlow,
        anomaly: tracker::Anomaly,
        permits: Permits<'_>,
    ) -> io::Result<bool> {
        let Some(row) = Anomaly::of_tracker(anomaly).filter(|_| !self.config.has_flows_only) else {
            return Ok(true);
        };
        let head = self.head::<Anomaly>(flow, (view, view.initiator()), view.end());
        self.write(view.end(), &(head, row), permits)
    }

    fn fault(
        &mut self,
        view: &FlowView<'_>,
        flow: &mut LoggedFlow,
        (meta, reason): (&MessageMeta, &'static str),
        permits: Permits<'_>,
    ) -> io::Result<bool> {
        if self.config.has_flows_only {
            return Ok(true);
        }
        let head = self.head::<Anomaly>(flow, (view, view.initiator()), meta.timestamp);
        let head = head.with_application(meta.protocol.name());
        self.write(meta.timestamp, &(head, Anomaly::of_fault(reason)), permits)
    }

    fn neighbor(&mut self, neighbor: &Neighbor<'_>, permits: Permits<'_>) -> io::Result<bool> {
        match Arp::of(neighbor) {
            Some(arp) if !self.config.has_flows_only => self.write(neighbor.head.timestamp, &arp, permits),
            _ => Ok(true),
        }
    }

    fn advance(&mut self, time: Timestamp) -> io::Result<()> {
        self.now = self.now.max(time);
        if let Destination::Files(files, current) = &mut self.destination
            && let Some(out) = current.take_if(|out| files.is_over(out, self.now))
        {
            files.close(LOG, out)?;
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.destination {
            Destination::Stream(out) => out.flush(),
            Destination::Files(_, out) => out.as_mut().map_or(Ok(()), Write::flush),
        }
    }

    fn close(mut self: Box<Self>) -> io::Result<u64> {
        let written = if self.config.has_stats { self.write_stats() } else { Ok(()) };
        let Self { destination, row_count, .. } = *self;
        let closed = match destination {
            Destination::Stream(mut out) => out.flush(),
            Destination::Files(mut files, out) => out.map_or(Ok(()), |out| files.close(LOG, out)),
        };
        written.and(closed).map(|()| row_count)
    }
}

impl<W> fmt::Debug for Events<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Events").field("config", &self.config).field("row_count", &self.row_count).finish()
    }
}
