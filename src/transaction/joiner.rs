//! Joins the messages of one flow to transactions.

use super::content::Transaction;
use super::dns::DnsOpen;
use super::file::{BodyHead, FilesOpen};
use super::ftp::FtpOpen;
use super::ftp_data::DataOpen;
use super::http::{Ended, HttpOpen};
use super::joins::Joins;
use super::open::{Copier, allocated};
use super::smtp::{Ended as EndedMail, MailOpen};
use super::ssh::SshOpen;
use super::tftp::TftpOpen;
use super::tls::{QuicOpen, TlsOpen};
use super::transfer::{FlowOrigin, last_part};
use crate::base::{FlowKey, Timestamp};
use crate::checkpoint::state;
use crate::protocols::{CrossingRow, Message, smb};
use crate::session::Lack;
use crate::session::kit::KitMessage;
use crate::session::{MessageMeta, PieceContent};

/// Joins the messages of one flow to transactions, as part of the state of the flow. One pointer; its memory is allocated
/// with the first message of a flow, and released at its end.
#[derive(Debug, Default)]
pub struct FlowTransactions {
    open: Option<Box<OpenFlow>>,
}

/// A flow with open transactions.
#[derive(Debug)]
struct OpenFlow {
    flow: FlowOrigin,
    open: Open,
    /// Memory of the flow in bytes that [`Joins`] has counted.
    counted_len: usize,
}

/// The open transactions of the protocol of a flow. The first message of another protocol ends them.
#[derive(Debug)]
enum Open {
    Http(HttpOpen),
    Dns(DnsOpen),
    Tls(TlsOpen),
    Quic(QuicOpen),
    Ssh(SshOpen),
    Mail(Box<MailOpen>),
    Ftp(Box<FtpOpen>),
    FtpData(DataOpen),
    Tftp(TftpOpen),
    /// Those across flows are in [`Joins`].
    Across,
    /// Files of a protocol of the kit.
    KitFiles(FilesOpen),
}

state! { struct FlowTransactions { open } }
// What is counted belongs to the process.
state! { struct OpenFlow { flow, open, .. counted_len } }
state! { enum Open {
    0 = Http(http), 1 = Dns(dns), 2 = Tls(tls), 3 = Quic(quic), 4 = Ssh(ssh), 5 = Mail(mail), 6 = Ftp(ftp),
    7 = FtpData(ftp_data), 8 = Tftp(tftp), 9 = Across,
    10 = KitFiles(files),
} }

impl FlowTransactions {
    /// Adds a message of the flow with this key and start. Passes the transactions that end with it to `out`. Messages of
    /// multicast DNS, which has no exchanges, have no effect.
    #[inline]
    pub fn message(
        &mut self,
        joins: &mut Joins,
        (key, start): (&FlowKey, Timestamp),
        meta: &MessageMeta,
        message: &Message<'_>,
        mut out: impl FnMut(Transaction),
    ) {
        if let Message::Kit(kit) = message
            && !self.kit_message(joins, meta, kit, &mut out)
        {
            return;
        }
        let Some(empty) = Open::of(message) else { return };
        let flow = self.open.get_or_insert_with(|| {
            Box::new(OpenFlow { flow: FlowOrigin { key: *key, start }, open: empty(), counted_len: 0 })
        });
        if !flow.open.takes(message) {
            flow.finish(joins, &mut out);
            flow.open = empty();
        }
        if flow.message(joins, meta, message, &mut out) {
            flow.count(joins);
        }
        debug_assert_eq!(flow.counted_len, flow.heap_len(), "all memory is counted");
    }

    /// Passes on the row of a message of the kit. Returns whether the message is a part of another transaction, too.
    fn kit_message(
        &mut self,
        joins: &mut Joins,
        meta: &MessageMeta,
        message: &KitMessage<'_>,
        out: &mut dyn FnMut(Transaction),
    ) -> bool {
        let piece = message.piece();
        if piece.is_none_or(|piece| !piece.is_content()) {
            out(Transaction::of_kit(meta, message));
        }
        if piece.is_some() || CrossingRow::has(message) {
            return true;
        }
        // Transactions of another protocol, which led to this one, are over; files are not.
        if self.open.as_ref().is_some_and(|flow| !matches!(flow.open, Open::KitFiles(_))) {
            self.end(joins, out);
        }
        false
    }

    /// Ends all transactions of the flow, and passes them to `out`: the flow ended.
    pub fn end(&mut self, joins: &mut Joins, mut out: impl FnMut(Transaction)) {
        if let Some(mut flow) = self.open.take() {
            joins.flows_len = joins.flows_len.saturating_sub(flow.counted_len);
            flow.finish(joins, &mut out);
        }
    }

    /// Ends all transactions of the flow as [`end`](Self::end) does, to release their memory: they lack something because
    /// of a [limit](Lack::Limit).
    #[cold]
    pub fn evict(&mut self, joins: &mut Joins, mut out: impl FnMut(Transaction)) {
        self.end(joins, |mut transaction| {
            transaction.lacks = Some(Lack::Limit);
            out(transaction);
        });
    }

    /// Returns the memory in bytes that was allocated for the flow. Takes time linear in the number of open transactions, at
    /// most [`OPEN_MAX`](super::OPEN_MAX) and as many bodies.
    #[must_use]
    pub fn heap_len(&self) -> usize {
        self.open.as_deref().map_or(0, OpenFlow::heap_len)
    }

    /// Counts the memory of a flow that was read from a checkpoint.
    pub(crate) fn restored(&mut self, joins: &mut Joins) {
        if let Some(flow) = &mut self.open {
            flow.count(joins);
        }
    }
}

impl OpenFlow {
    fn heap_len(&self) -> usize {
        let Self { open, .. } = self;
        let open_len = match open {
            Open::Http(http) => http.heap_len(),
            Open::Dns(dns) => dns.heap_len(),
            Open::Tls(tls) => tls.heap_len(),
            Open::Quic(quic) => quic.heap_len(),
            Open::Ssh(ssh) => ssh.heap_len(),
            Open::Mail(mail) => allocated(size_of::<MailOpen>()) + mail.heap_len(),
            Open::Ftp(ftp) => allocated(size_of::<FtpOpen>()) + ftp.heap_len(),
            Open::FtpData(files) => files.heap_len(),
            Open::Tftp(files) => files.heap_len(),
            Open::Across => 0,
            Open::KitFiles(files) => files.heap_len(),
        };
        allocated(size_of::<Self>()) + open_len
    }

    /// Counts the memory of the flow.
    #[inline]
    fn count(&mut self, joins: &mut Joins) {
        let len = self.heap_len();
        let counted_len = std::mem::replace(&mut self.counted_len, len);
        joins.flows_len = (joins.flows_len + len).saturating_sub(counted_len);
    }

    /// Adds a message. Returns whether the memory of the flow may have changed.
    fn message(
        &mut self,
        joins: &mut Joins,
        meta: &MessageMeta,
        message: &Message<'_>,
        out: &mut dyn FnMut(Transaction),
    ) -> bool {
        let Self { flow, open, .. } = self;
        let (flow, config) = (*flow, joins.config);
        match (open, message) {
            (Open::Http(open), Message::Http1(message)) => {
                return open.message1(meta, (message, config), &mut |ended| out(ended.into()));
            }
            (Open::Http(open), Message::Http2(message)) => {
                return open.message2(meta, (message, config), &mut |ended| out(ended.into()));
            }
            (Open::Dns(open), Message::Dns(message) | Message::Llmnr(message)) => {
                open.message(meta, message, &mut |ended| out(ended.into()));
            }
            (Open::Tls(open), Message::Tls(message) | Message::Dtls(message)) => {
                let certificates = open.message(meta, message, &mut |ended| out(ended.into()));
                certificates.into_iter().for_each(|certificate| out(certificate.into()));
            }
            (Open::Quic(open), Message::Quic(message)) => {
                open.message(meta, message, &mut |ended| out(ended.into()));
            }
            (Open::Ssh(open), Message::Ssh(message)) => {
                open.message(meta, message, &mut |ended| out(ended.into()));
            }
            (Open::Mail(open), Message::Smtp(message)) => {
                open.message(meta, (message, config.has_hashes), &mut |ended| out(ended.into()));
            }
            (Open::Ftp(open), Message::Ftp(message)) => {
                joins.is_changed = true;
                let connections = (&mut joins.connections, flow);
                open.message(connections, meta, message, &mut |ended| out(ended.into()));
            }
            (Open::FtpData(open), Message::FtpData(message)) => {
                joins.is_changed = true;
                open.message((joins, flow), meta, message, &mut |ended| out(ended.into()));
            }
            (Open::Tftp(open), Message::Tftp(message)) => {
                joins.is_changed = true;
                open.message((joins, flow), meta, message, &mut |ended| out(ended.into()));
            }
            (Open::KitFiles(files), Message::Kit(message)) => {
                let Some(piece) = message.piece() else { return false };
                // A file may be closed long after its last octets.
                if let PieceContent::End { is_complete } = piece.content {
                    files.close((piece.file, meta.from), is_complete, &mut |ended| out(ended.into()));
                    return true;
                }
                return files.add(meta, (piece, config), || head_of(message), &mut |ended| out(ended.into()));
            }
            (Open::Across, Message::Kit(message)) => {
                joins.is_changed = true;
                joins.exchanges.message(flow, meta, message, out);
            }
            _ => {}
        }
        true
    }

    fn finish(&mut self, joins: &mut Joins, out: &mut dyn FnMut(Transaction)) {
        let flow = self.flow;
        match &mut self.open {
            Open::Http(open) => open.finish(&mut |ended| out(ended.into())),
            Open::Dns(open) => open.finish(&mut |ended| out(ended.into())),
            Open::Tls(open) => open.finish(&mut |ended| out(ended.into())),
            Open::Quic(open) => open.finish(&mut |ended| out(ended.into())),
            Open::Ssh(open) => open.finish(&mut |ended| out(ended.into())),
            Open::Mail(open) => open.finish(&mut |ended| out(ended.into())),
            Open::Tftp(open) => open.finish(&mut |ended| out(ended.into())),
            Open::KitFiles(files) => files.finish(&mut |ended| out(ended.into())),
            Open::Ftp(open) => {
                joins.is_changed = true;
                open.finish((&mut joins.connections, flow), &mut |ended| out(ended.into()));
            }
            Open::FtpData(open) => {
                joins.is_changed = true;
                open.finish((joins, flow), &mut |ended| out(ended.into()));
            }
            Open::Across => {
                joins.is_changed = true;
                joins.exchanges.finish(flow, out);
            }
        }
    }
}

/// Returns what the row of a piece states about its file.
fn head_of(message: &KitMessage<'_>) -> BodyHead {
    let Some(transfer) = message.get::<smb::Transfer>() else { return BodyHead::default() };
    let name = transfer.file_name.as_ref().map(|name| name.text().to_str_lossy().into_owned());
    let name = name.as_deref().and_then(last_part).map(|name| Copier::default().display(name));
    let declared_len = transfer.file_len.filter(|_| !transfer.is_written);
    BodyHead { name, declared_len, ..BodyHead::default() }
}

impl Open {
    /// Returns the constructor of the transactions of a message's protocol, none of which is open; `None` if the protocol has
    /// none.
    #[inline]
    fn of(message: &Message<'_>) -> Option<fn() -> Self> {
        Some(match message {
            Message::Http1(_) | Message::Http2(_) => || Self::Http(HttpOpen::default()),
            Message::Dns(_) | Message::Llmnr(_) => || Self::Dns(DnsOpen::default()),
            Message::Tls(_) | Message::Dtls(_) => || Self::Tls(TlsOpen::default()),
            Message::Quic(_) => || Self::Quic(QuicOpen::default()),
            Message::Ssh(_) => || Self::Ssh(SshOpen::default()),
            Message::Smtp(_) => || Self::Mail(Box::default()),
            Message::Ftp(_) => || Self::Ftp(Box::default()),
            Message::FtpData(_) => || Self::FtpData(DataOpen::default()),
            Message::Tftp(_) => || Self::Tftp(TftpOpen::default()),
            Message::Kit(message) if message.piece().is_some() => || Self::KitFiles(FilesOpen::default()),
            Message::Kit(_) => || Self::Across,
            Message::Mdns(_) => return None,
        })
    }

    /// Returns whether these are transactions of the protocol of a message.
    #[inline]
    fn takes(&self, message: &Message<'_>) -> bool {
        matches!(
            (self, message),
            (Self::Http(_), Message::Http1(_) | Message::Http2(_))
                | (Self::Dns(_), Message::Dns(_) | Message::Llmnr(_))
                | (Self::Tls(_), Message::Tls(_) | Message::Dtls(_))
                | (Self::Quic(_), Message::Quic(_))
                | (Self::Ssh(_), Message::Ssh(_))
                | (Self::Mail(_), Message::Smtp(_))
                | (Self::Ftp(_), Message::Ftp(_))
                | (Self::FtpData(_), Message::FtpData(_))
                | (Self::Tftp(_), Message::Tftp(_))
                // No protocol has both.
                | (Self::Across | Self::KitFiles(_), Message::Kit(_))
        )
    }
}

impl From<Ended> for Transaction {
    fn from(ended: Ended) -> Self {
        match ended {
            Ended::Http(http) => http.into(),
            Ended::File(file) => file.into(),
        }
    }
}

impl From<EndedMail> for Transaction {
    fn from(ended: EndedMail) -> Self {
        match ended {
            EndedMail::Mail(mail) => mail.into(),
            EndedMail::File(file) => file.into(),
        }
    }
}
