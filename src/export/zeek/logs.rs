//! Writes rows to logs.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::io::{self, Write};

use ahash::RandomState;

use super::conn::Conn;
use super::dns::Dns;
use super::files::{Files, Sender};
use super::ftp::{self, Ftp};
use super::head::{CrossingHead, FileHead, Head};
use super::http::{self, Http};
use super::known::Known;
use super::line;
use super::networks::{LocalNetworks, Network};
use super::once::{Once, is_excess};
use super::quic::Quic;
use super::service::{record_services, services};
use super::smtp::{self, Smtp};
use super::ssh::Ssh;
use super::ssl::Ssl;
use super::tunnel::Tunnel;
use super::weird::Weird;
use super::x509::X509;
use crate::base::hash_state;
use crate::base::{EndReason, FlowKey, Side, Timestamp};
use crate::export::Uid;
use crate::export::{FlowLog, LogFiles, LoggedFlow, Nulls, Permits, Style, TimeFormat, write_json};
use crate::protocols::{ftp_data, smb, tftp};
use crate::record::FlowRecord;
use crate::row::{Name, Row, Table, TableInfo, TableRow};
use crate::session::kit::LogFormat;
use crate::session::{MessageMeta, Role};
use crate::tracker::{Anomaly, FlowView};
use crate::transaction::{self, Content, Transaction};

crate::base::configuration! {
    /// How logs are written.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct ZeekConfig {
        /// JSON objects instead of TSV.
        pub is_json: bool,
        /// Number from which identifiers of connections are derived. Programs that compare them need the same seed.
        pub seed: u64,
        /// Networks that are local; the private ranges if empty.
        pub local_networks: Vec<Network>,
        /// Only `conn.log`.
        pub has_connections_only: bool,
        /// Whether the run tracks tunnels beside the flows inside of them, so that flows have parents.
        pub has_tunnels: bool,
    }
}

/// How JSON is written: times in seconds, without unset columns.
const JSON: Style = {
    let mut style = Style { time: TimeFormat::Unix, nulls: Nulls::Omit, has_sensitive: false };
    style.has_sensitive = false;
    style
};

/// A [`FlowLog`] that writes the logs of Zeek: each log to a destination of its own, or all to one. Lines are written whole.
pub struct Logs<W> {
    config: ZeekConfig,
    local: LocalNetworks,
    destinations: Destinations<W>,
    carriers: Option<Carriers>,
    certificates: Once<Certificate>,
    known: Known,
    line: Vec<u8>,
    /// The latest time of all rows.
    now: Timestamp,
    row_count: u64,
}

enum Destinations<W> {
    /// One for all logs. In TSV, a header precedes the rows of another log; in JSON, each row states its log as `_path`.
    One(Log<W>),
    /// One for each log, opened for its first row.
    Each(Box<dyn LogFiles<Out = W> + Send>, Vec<Log<W>>),
}

/// The destination of a log.
struct Log<W> {
    name: &'static str,
    out: W,
}

impl<W: Write> Log<W> {
    /// Writes the last line of a log in TSV.
    fn write_footer(&mut self, time: Timestamp, is_json: bool) -> io::Result<()> {
        if is_json || self.name.is_empty() {
            return Ok(());
        }
        let mut line = Vec::new();
        line::write_footer(&mut line, time);
        self.out.write_all(&line)
    }
}

/// Maximum number of flows that ended, but are known as carriers of others: at the end of the input, a flow may end before
/// those inside of it.
const ENDED_MAX: usize = 1 << 16;

/// The starts of all open flows, any of which may carry others: with its key, the start determines the identifier of a flow.
#[derive(Debug)]
struct Carriers {
    starts: HashMap<FlowKey, Timestamp, RandomState>,
    ended: VecDeque<(FlowKey, Timestamp)>,
}

impl Carriers {
    fn heap_len(&self) -> usize {
        let entry_len = size_of::<(FlowKey, Timestamp)>();
        // A hash table has an octet for each place beside the entry, and an eighth of them is free.
        self.starts.capacity() * (entry_len + 1) / 7 * 8 + self.ended.capacity() * entry_len
    }

    fn ended(&mut self, key: FlowKey) {
        let Some(start) = self.starts.get(&key) else { return };
        self.ended.push_back((key, *start));
        if self.ended.len() > ENDED_MAX {
            self.forget();
        }
    }

    /// Forgets the flow that ended first.
    fn forget(&mut self) {
        if let Some((key, start)) = self.ended.pop_front()
            && self.starts.get(&key) == Some(&start)
        {
            self.starts.remove(&key);
        }
    }

    /// Forgets the older half of the flows that ended if they are most of all, and take too much memory.
    fn free(&mut self, left: usize) {
        if !is_excess(self.heap_len(), left) || self.ended.len() <= self.starts.len() / 2 {
            return;
        }
        (0..self.ended.len().div_ceil(2)).for_each(|_| self.forget());
        self.starts.shrink_to_fit();
        self.ended.shrink_to_fit();
    }

    /// Returns the identifier of a flow.
    fn uid(&self, key: &FlowKey, seed: u64) -> Option<Uid> {
        self.starts.get(key).map(|start| Uid::of_flow(key, *start, seed))
    }
}

/// A certificate that was logged: by fingerprint, as the first one of a chain or another one, and by the role that sent it.
type Certificate = (Box<str>, bool, Role);

/// Memory of a fingerprint in bytes, which has 64 digits.
const FINGERPRINT_LEN: usize = 80;

fn certificate(x509: &transaction::X509) -> Certificate {
    (x509.sha256.clone(), x509.position == 0, x509.role)
}

/// The name of a log in a row.
struct Path(&'static str);

crate::table! {
    /// The name of a log.
    impl "zeek.path" for Path as path {
        /// Name of the log.
        "_path": Name = Name(path.0);
    }
}

impl<W: Write> Logs<W> {
    /// Creates logs that are written to one destination. In TSV, a header precedes the rows of another log than before; in
    /// JSON, the first column is `_path`, the name of the log.
    #[must_use]
    pub fn stream(out: W, config: ZeekConfig) -> Self {
        Self::new(Destinations::One(Log { name: "", out }), config)
    }

    /// Creates logs that are written to a destination each.
    pub fn each(files: impl LogFiles<Out = W> + Send + 'static, config: ZeekConfig) -> Self {
        Self::new(Destinations::Each(Box::new(files), Vec::new()), config)
    }

    fn new(destinations: Destinations<W>, config: ZeekConfig) -> Self {
        Self {
            local: LocalNetworks::new(&config.local_networks),
            carriers: config
                .has_tunnels
                .then(|| Carriers { starts: HashMap::with_hasher(hash_state(None)), ended: VecDeque::new() }),
            certificates: Once::new(FINGERPRINT_LEN),
            known: Known::new(),
            config,
            destinations,
            line: Vec::new(),
            now: Timestamp::ZERO,
            row_count: 0,
        }
    }

    /// Returns the identifiers of the flows that carry another one, in either direction.
    fn parents(&self, view: &FlowView<'_>) -> Vec<Uid> {
        let Some((carriers, record)) = self.carriers.as_ref().zip(view.encapsulation()) else {
            return Vec::new();
        };
        let outer = [record.outer_flow, record.reverse_outer_flow].into_iter().flatten();
        let mut parents: Vec<_> =
            outer.filter_map(|outer| carriers.uid(&outer.key, self.config.seed)).collect();
        parents.dedup();
        parents
    }

    /// Returns what is known of the sender of a file.
    fn sender(&self, view: &FlowView<'_>, client: Side, role: Role) -> Sender {
        let side = if role == Role::Client { client } else { client.other() };
        Sender { is_orig: side == view.initiator(), is_local: self.local.contain(view.address(side)) }
    }

    /// Writes a row to the log that its last part names.
    fn write<R: LogRow>(&mut self, time: Timestamp, row: R, permits: Permits<'_>) -> io::Result<bool> {
        self.write_row(time, &TableRow::new(R::table(), &row), permits)
    }

    fn write_row(&mut self, time: Timestamp, row: &TableRow<'_>, permits: Permits<'_>) -> io::Result<bool> {
        let name = row.table.kind();
        if self.config.has_connections_only && name != "conn" {
            return Ok(true);
        }
        self.advance(time)?;
        let Self { config, destinations, line, now, .. } = self;
        line.clear();
        match destinations {
            _ if !config.is_json => line::write_row(line, row),
            Destinations::One(_) => write_json(line, &(Path(name), row), JSON),
            Destinations::Each(..) => write_json(line, row, JSON),
        }
        if config.is_json {
            line.push(b'\n');
        }
        // Nothing is opened, and no header is written, for a row that is not.
        if !permits(line.len()) {
            return Ok(false);
        }
        let (log, is_begun) = match destinations {
            Destinations::One(log) => {
                let is_begun = log.name == name;
                log.name = name;
                (log, is_begun)
            }
            Destinations::Each(files, logs) => {
                let known = logs.iter().position(|log| log.name == name);
                if known.is_none() {
                    logs.push(Log { name, out: files.open(name, *now)? });
                }
                let index = known.unwrap_or(logs.len() - 1);
                let Some(log) = logs.get_mut(index) else { return Ok(false) };
                (log, known.is_some())
            }
        };
        if !is_begun && !config.is_json {
            let mut header = Vec::new();
            line::write_header(&mut header, name, *now, &row.own_columns());
            log.out.write_all(&header)?;
        }
        log.out.write_all(line)?;
        self.row_count += 1;
        Ok(true)
    }
}

impl<W: Write> FlowLog for Logs<W> {
    fn held_bytes(&mut self, left: u64) -> u64 {
        let left = usize::try_from(left).unwrap_or(usize::MAX);
        self.certificates.free(left);
        self.known.free(left);
        let carriers = self.carriers.as_mut().map_or(0, |carriers| {
            carriers.free(left);
            carriers.heap_len()
        });
        (carriers + self.certificates.heap_len() + self.known.heap_len()) as u64
    }

    fn started(&mut self, view: &FlowView<'_>, _: &mut LoggedFlow) {
        if let Some(carriers) = &mut self.carriers {
            carriers.starts.insert(*view.key(), view.start());
        }
    }

    /// Writes the row of a flow to `conn.log`, of which it has several with an active timeout, and if it carries others, to
    /// `tunnel.log`.
    fn record(
        &mut self,
        view: &FlowView<'_>,
        flow: &mut LoggedFlow,
        reason: EndReason,
        permits: Permits<'_>,
    ) -> io::Result<bool> {
        let uid = flow.uid(view, self.config.seed);
        let previous = flow.previous(view);
        let tunnel = self.carriers.as_ref().and_then(|_| Tunnel::of(view, previous.is_tunnel));
        let head = Head::new(view.start(), uid, view);
        self.advance(view.end())?;
        if let Some(tunnel) = &tunnel {
            if !previous.is_tunnel {
                self.write(head.ts, (head, tunnel), &mut |_| true)?;
            }
            if reason != EndReason::ActiveTimeout {
                let end = Head { ts: view.end(), ..head };
                self.write(end.ts, (end, &tunnel.closed()), &mut |_| true)?;
            }
        }
        let services =
            tunnel.as_ref().and_then(Tunnel::service).map_or_else(|| services(flow, view), Into::into);
        let mut is_written = true;
        if !self.config.has_connections_only {
            let (hosts, service) = self.known.of(view, &services, &self.local);
            for host in &hosts {
                is_written &= self.write(head.ts, host, &mut *permits)?;
            }
            if let Some(service) = &service {
                is_written &= self.write(head.ts, service, &mut *permits)?;
            }
        }
        let conn = Conn::new((view, previous), &services, &self.local, self.parents(view));
        Ok(self.write(head.ts, (head, &conn), permits)? && is_written)
    }

    /// Writes the row of a record to `conn.log`. `orig_bytes` and `resp_bytes` are the payload that it counted.
    fn collected(&mut self, record: &FlowRecord, permits: Permits<'_>) -> io::Result<bool> {
        let uid = Uid::of_flow(&record.key, record.start, self.config.seed);
        let services = record_services(record);
        let conn = Conn::of_record(record, &services, &self.local);
        self.advance(record.end)?;
        let head = Head::of_record(uid, record);
        self.write(head.ts, (head, &conn), permits)
    }

    fn ended(&mut self, view: &FlowView<'_>) -> io::Result<()> {
        if let Some(carriers) = &mut self.carriers {
            carriers.ended(*view.key());
        }
        Ok(())
    }

    fn transaction(
        &mut self,
        view: &FlowView<'_>,
        flow: &mut LoggedFlow,
        transaction: &Transaction,
        permits: Permits<'_>,
    ) -> io::Result<bool> {
        self.advance(transaction.end())?;
        let uid = flow.uid(view, self.config.seed);
        let (client, ts) = (transaction.client(), transaction.start());
        let head = Head::new(ts, uid, view);
        let (orig, resp) = (head.orig.0, head.resp.0);
        match &transaction.content {
            Content::Http(http) => self.write(ts, (head, &Http::new(http, uid)), permits),
            Content::Dns(dns) => self.write(ts, (head, &Dns::new(dns, view.key().protocol())), permits),
            Content::Tls(tls) => self.write(ts, (head, &Ssl::new(tls)), permits),
            Content::Quic(quic) => {
                let is_written = self.write(ts, (head, &Quic::new(quic)), &mut *permits)?;
                let has_hello = quic.tls.offered_version.is_some();
                Ok(is_written && (!has_hello || self.write(ts, (head, &Ssl::new(&quic.tls)), permits)?))
            }
            Content::X509(x509) => {
                let key = certificate(x509);
                if self.certificates.contains(&key, ts) {
                    return Ok(true);
                }
                let is_written = self.write(ts, &X509::new(x509, ts), permits)?;
                if is_written {
                    self.certificates.insert(key, ts);
                }
                Ok(is_written)
            }
            Content::Ssh(ssh) => {
                let is_local = [orig, resp].map(|address| self.local.contain(address));
                self.write(ts, (head, &Ssh::new(ssh, is_local)), permits)
            }
            Content::Mail(mail) => {
                let smtp = Smtp::new(mail, (orig, resp), uid, flow.has_tls());
                self.write(ts, (head, &smtp), permits)
            }
            Content::Ftp(ftp) => {
                let ends = (view.address(client), view.address(client.other()));
                let Some(row) = Ftp::new(ftp, ends, self.config.seed) else { return Ok(true) };
                self.write(ts, (head, &row), permits)
            }
            // Zeek does not read TFTP.
            Content::File(_) if transaction.protocol() == &tftp::PROTOCOL => Ok(true),
            Content::Kit(exchange) => exchange.logs(LogFormat::Zeek, &mut |log| {
                let time = log.timestamp;
                if transaction.flows().is_empty() {
                    let row = (Head::new(time, uid, view), log.row);
                    return self.write_row(time, &TableRow::new(log.table, &row), &mut *permits);
                }
                let row = (CrossingHead::new(time, transaction.flows(), self.config.seed), log.row);
                self.write_row(time, &TableRow::new(log.table, &row), &mut *permits)
            }),
            Content::File(file) => {
                let role = file.role.unwrap_or(Role::Server);
                let duration = transaction.end().saturating_since(ts);
                let (source, fuid) = match file.part {
                    Some(part) => ("SMTP", smtp::fuid(uid, file.number, part)),
                    None if transaction.protocol() == &ftp_data::PROTOCOL => {
                        ("FTP_DATA", ftp::fuid(uid, role))
                    }
                    None if transaction.protocol() == &smb::PROTOCOL => {
                        ("SMB", uid.of_file("SMB", file.number << 1 | role.index() as u64))
                    }
                    None => ("HTTP", http::fuid(uid, file.number, role)),
                };
                let row = Files::of_file(file, source, self.sender(view, client, role), duration);
                let head = FileHead::new(head, fuid);
                self.write(ts, (head, &row), permits)
            }
        }
    }

    fn anomaly(
        &mut self,
        view: &FlowView<'_>,
        flow: &mut LoggedFlow,
        anomaly: Anomaly,
        permits: Permits<'_>,
    ) -> io::Result<bool> {
        let head = Head::new(view.end(), flow.uid(view, self.config.seed), view);
        self.write(head.ts, (head, &Weird::of_anomaly(anomaly)), permits)
    }

    fn fault(
        &mut self,
        view: &FlowView<'_>,
        flow: &mut LoggedFlow,
        (meta, reason): (&MessageMeta, &'static str),
        permits: Permits<'_>,
    ) -> io::Result<bool> {
        let head = Head::new(meta.timestamp, flow.uid(view, self.config.seed), view);
        self.write(head.ts, (head, &Weird::of_fault(meta.protocol.name(), reason)), permits)
    }

    fn advance(&mut self, time: Timestamp) -> io::Result<()> {
        let Self { config, destinations, now, .. } = self;
        *now = (*now).max(time);
        if let Destinations::Each(files, logs) = destinations {
            while let Some(index) = logs.iter().position(|log| files.is_over(&log.out, *now)) {
                let mut log = logs.swap_remove(index);
                let written = log.write_footer(*now, config.is_json);
                let closed = files.close(log.name, log.out);
                written.and(closed)?;
            }
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.destinations {
            Destinations::One(log) => log.out.flush(),
            Destinations::Each(_, logs) => logs.iter_mut().try_for_each(|log| log.out.flush()),
        }
    }

    fn close(self: Box<Self>) -> io::Result<u64> {
        let Self { config: ZeekConfig { is_json, .. }, destinations, now, row_count, .. } = *self;
        let mut outcome = Ok(row_count);
        match destinations {
            Destinations::One(mut log) => {
                log.write_footer(now, is_json)?;
                log.out.flush()?;
            }
            Destinations::Each(mut files, logs) => {
                for mut log in logs {
                    let written = log.write_footer(now, is_json);
                    let closed = files.close(log.name, log.out);
                    if let Err(error) = written.and(closed) {
                        outcome = Err(error);
                    }
                }
            }
        }
        outcome
    }
}

impl<W> fmt::Debug for Logs<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Logs").field("config", &self.config).field("row_count", &self.row_count).finish()
    }
}

/// A row of a log: a table, or a head and a table.
trait LogRow: Row {
    fn table() -> &'static TableInfo;
}

impl<T: Table> LogRow for &T {
    fn table() -> &'static TableInfo {
        const { &TableInfo::of::<T>() }
    }
}

impl<H: Row, T: Table> LogRow for (H, &T) {
    fn table() -> &'static TableInfo {
        const { &TableInfo::of::<T>() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::IpProtocol;

    fn carriers(count: u32) -> Carriers {
        let mut carriers =
            Carriers { starts: HashMap::with_hasher(hash_state(None)), ended: VecDeque::new() };
        for number in 0..count {
            let [_, a, b, c] = number.to_be_bytes();
            let (key, _) =
                FlowKey::new(IpProtocol::UDP, ([10, a, b, c].into(), 1000), ([192, 0, 2, 1].into(), 2000));
            carriers.starts.insert(key, Timestamp::ZERO);
            carriers.ended(key);
            carriers.free(1 << 20);
            assert!(!is_excess(carriers.heap_len(), 1 << 20), "{number}: {} bytes", carriers.heap_len());
        }
        carriers
    }

    /// Flows that end take a part of the memory that is left, or a minimum.
    #[test]
    fn what_is_kept_for_ended_flows_is_within_its_part_of_the_memory() {
        let carriers = carriers(50_000);
        assert!(carriers.ended.len() > 500 && carriers.starts.len() == carriers.ended.len());
    }
}
