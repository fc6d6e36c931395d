//! Joins the messages of one flow to transactions.

use super::content::Transaction;
use super::dns::DnsOpen;
use super::ftp::FtpOpen;
use super::ftp_data::DataOpen;
use super::http::{Ended, HttpOpen};
use super::joins::Joins;
use super::smtp::{Ended as EndedMail, MailOpen};
use super::ssh::SshOpen;
use super::tftp::TftpOpen;
use super::tls::{QuicOpen, TlsOpen};
use super::transfer::FlowOrigin;
use crate::base::{FlowKey, Timestamp};
use crate::checkpoint::state;
use crate::protocols::Message;
use crate::session::MessageMeta;

/// Joins the messages of one flow to transactions, as part of the state of the flow. One pointer; its memory is allocated
/// with the first message of a flow, and released at its end.
#[derive(Debug, Default)]
pub struct FlowTransactions {
    open: Option<Box<Open>>,
}

/// The open transactions of a flow, whose protocol may change.
#[derive(Debug, Default)]
struct Open {
    http: HttpOpen,
    dns: DnsOpen,
    tls: TlsOpen,
    quic: QuicOpen,
    ssh: SshOpen,
    mail: MailOpen,
    ftp: FtpOpen,
    ftp_data: DataOpen,
    tftp: TftpOpen,
    /// The flow; known with its first message.
    flow: Option<FlowOrigin>,
}

state! { struct FlowTransactions { open } }

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
        if !matches!(message, Message::Mdns(_)) {
            let open = self.open.get_or_insert_default();
            let flow = *open.flow.get_or_insert(FlowOrigin { key: *key, start });
            open.message((joins, flow), meta, message, &mut out);
        }
    }

    /// Ends all transactions of the flow, and passes them to `out`: the flow ended.
    pub fn end(&mut self, joins: &mut Joins, mut out: impl FnMut(Transaction)) {
        if let Some(mut open) = self.open.take() {
            open.finish(joins, &mut out);
        }
    }
}

state! { struct Open { http, dns, tls, quic, ssh, mail, ftp, ftp_data, tftp, flow } }

impl Open {
    fn message(
        &mut self,
        (joins, flow): (&mut Joins, FlowOrigin),
        meta: &MessageMeta,
        message: &Message<'_>,
        out: &mut dyn FnMut(Transaction),
    ) {
        let config = joins.config;
        let has_hashes = config.has_hashes;
        match message {
            Message::Http1(message) => {
                self.http.message1(meta, (message, config), &mut |ended| out(ended.into()));
            }
            Message::Http2(message) => {
                self.http.message2(meta, (message, config), &mut |ended| out(ended.into()));
            }
            Message::Dns(message) | Message::Llmnr(message) => {
                self.dns.message(meta, message, &mut |ended| out(ended.into()));
            }
            Message::Tls(message) | Message::Dtls(message) => {
                let certificates = self.tls.message(meta, message, &mut |ended| out(ended.into()));
                certificates.into_iter().for_each(|certificate| out(certificate.into()));
            }
            Message::Quic(message) => self.quic.message(meta, message, &mut |ended| out(ended.into())),
            Message::Ssh(message) => self.ssh.message(meta, message, &mut |ended| out(ended.into())),
            Message::Smtp(message) => {
                self.mail.message(meta, (message, has_hashes), &mut |ended| out(ended.into()));
            }
            Message::Ftp(message) => {
                let connections = (&mut joins.connections, flow);
                self.ftp.message(connections, meta, message, &mut |ended| out(ended.into()));
            }
            Message::FtpData(message) => {
                self.ftp_data.message((joins, flow), meta, message, &mut |ended| out(ended.into()));
            }
            Message::Tftp(message) => {
                self.tftp.message((joins, flow), meta, message, &mut |ended| out(ended.into()));
            }
            Message::Mdns(_) => {}
        }
    }

    fn finish(&mut self, joins: &mut Joins, out: &mut dyn FnMut(Transaction)) {
        self.http.finish(&mut |ended| out(ended.into()));
        self.dns.finish(&mut |ended| out(ended.into()));
        self.tls.finish(&mut |ended| out(ended.into()));
        self.quic.finish(&mut |ended| out(ended.into()));
        self.ssh.finish(&mut |ended| out(ended.into()));
        self.mail.finish(&mut |ended| out(ended.into()));
        self.tftp.finish(&mut |ended| out(ended.into()));
        if let Some(flow) = self.flow {
            self.ftp.finish((&mut joins.connections, flow), &mut |ended| out(ended.into()));
            self.ftp_data.finish((joins, flow), &mut |ended| out(ended.into()));
        }
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
