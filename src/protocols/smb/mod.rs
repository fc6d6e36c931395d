//! SMB 1, 2 and 3: who opened, read, wrote, renamed or deleted which file of which share.
//!
//! | row | when |
//! |---|---|
//! | [`Exchange`] | a request with its response |
//! | [`Transfer`] | a file that was read or written, at its end; its octets are passed on in pieces |
//! | [`Connection`] | a connection, as it was negotiated, at its end |
//! | [`ntlm::Authentication`](super::ntlm::Authentication) | a logon with NTLM, with the answer of the server |
//! | [`kerberos::Exchange`](super::kerberos::Exchange) | a logon with a ticket of Kerberos |
//! | [`dcerpc::Call`](super::dcerpc::Call), [`dcerpc::Binding`](super::dcerpc::Binding), [`dcerpc::Endpoint`](super::dcerpc::Endpoint) | calls over a pipe, as over TCP |
//!
//! Requests of a compound and of a chain have a row each. An interim response is no response. Encrypted messages are counted.
//!
//! Standards: [MS-SMB2], [MS-CIFS], [MS-SMB], [MS-FSCC], RFC 1002 section 4.3 (sessions of NetBIOS).

mod connection;
mod contents;
mod known;
mod one;
mod rows;
mod status;
#[cfg(test)]
mod tests;
mod two;

pub use contents::Transfer;
pub use rows::{Connection, Exchange};
pub use status::{Cipher, Command, CreateAction, Dialect, Disposition, Function, ShareType, Status};

use std::time::Duration;

use super::recognizers::octets::{begins_with, either_in_role, once};
use crate::session::framing::{AfterPdu, Framing, Pdu, Width};
use crate::session::kit::{Malformed, PduParser, Rows};
use crate::session::{OctetSet, Protocol, Verdict};
pub(crate) use connection::Smb;
use connection::{Octets, Row};

/// SMB 1, 2 and 3, recognized by the magic number after a NetBIOS session header, or by a NetBIOS session request.
pub static PROTOCOL: Protocol = Protocol::new("smb")
    .in_zeek("smb")
    .in_eve("smb")
    .over_streams(&[445, 139], Some(|opening| either_in_role(opening, probe, is_answer)))
    .streams_begin_with(OctetSet::of(b"\0\x81"))
    .with_kinds(&["smb", "smb_connection", "smb_file", "ntlm", "kerberos", "dcerpc", "dcerpc_binding", "dcerpc_endpoint"])
    .with_limits(
        "64 open requests, 64 files, 16 of which are read or written, 32 shares, 8 sessions, 8 pipes; messages of 8 KiB, of longer ones the beginning",
    )
    .with_standards("MS-SMB2, MS-CIFS, MS-SMB, MS-FSCC; MS-NLMP; RFC 1002");

fn probe(octets: &[u8]) -> Verdict {
    match octets {
        [] => Verdict::More,
        [0, ..] => begins_with(
            octets.get(4..).unwrap_or_default(),
            &[b"\xFESMB", b"\xFFSMB", b"\xFDSMB", b"\xFCSMB"],
        ),
        // A session request (RFC 1002 section 4.3.2): two encoded names. Only SMB follows it in practice.
        [0x81, ..] => once(octets, 6, || matches!(octets, [_, 0, 0, 0x44, 0x20, b'A'..=b'P', ..])),
        _ => Verdict::No,
    }
}

/// Returns whether a message is a response, by the flags of its version.
fn is_answer(octets: &[u8]) -> Option<bool> {
    match (octets.first()?, octets.get(4..8)) {
        (0x81, _) => Some(false),
        (_, Some(b"\xFFSMB")) => octets.get(13).map(|flags| flags & 0x80 != 0),
        (_, Some(b"\xFESMB")) => octets.get(20).map(|flags| flags & 1 != 0),
        _ => None,
    }
}

impl PduParser for Smb {
    const PROTOCOL: &'static Protocol = &PROTOCOL;
    const FRAMING: Option<Framing> = Some(
        Framing::length(1, Width::U24)
            .plus(4)
            .keep(8 << 10)
            .with_rest()
            .resync(|_, octets| two::search(octets)),
    );
    const OPEN_MAX: usize = 64;
    const ANSWER_WITHIN: Duration = Duration::from_secs(60);
    type Row = Row;

    fn heap_len(&self) -> usize {
        self.allocated_len()
    }

    fn pdu(&mut self, pdu: &Pdu<'_>, rows: &mut Rows<'_, Row>) -> Result<AfterPdu, Malformed> {
        self.contents.set_direction(pdu.from);
        self.contents.next(rows);
        self.contents.tail_len = pdu.len.saturating_sub(pdu.bytes.len() as u64);
        // Requests, responses and keepalives of NetBIOS sessions contain no message.
        if let [0, _, _, _, message @ ..] = pdu.bytes {
            let octets = Octets(message);
            match message {
                [0xFE, b'S', b'M', b'B', ..] => two::messages(self, octets, rows)?,
                [0xFF, b'S', b'M', b'B', ..] => one::message(self, octets, rows)?,
                [0xFD, b'S', b'M', b'B', ..] => {
                    rows.flow(|row: &mut Connection| {
                        row.encrypted_message_count = row.encrypted_message_count.saturating_add(1);
                    });
                }
                [0xFC, b'S', b'M', b'B', ..] => {
                    rows.flow(|row: &mut Connection| {
                        row.compressed_message_count = row.compressed_message_count.saturating_add(1);
                    });
                }
                _ if pdu.is_truncated() => {}
                _ => return Err(Malformed),
            }
        }
        Ok(AfterPdu::More)
    }

    fn rest(&mut self, pdu: &Pdu<'_>, rows: &mut Rows<'_, Row>) {
        self.contents.set_direction(pdu.from);
        self.contents.octets(pdu.bytes, pdu.len, rows);
    }

    fn end(&mut self, rows: &mut Rows<'_, Row>) {
        self.contents.set_direction(rows.from());
        self.contents.ended(rows);
    }

    fn finish(&mut self, rows: &mut Rows<'_, Row>) {
        self.contents.finish(rows);
    }
}

#[cfg(test)]
pub(super) mod samples {
    use super::super::recognizers::samples::{Sample, client, server};
    use super::PROTOCOL;

    pub(in super::super) const SAMPLES: &[Sample] = &[
        client(&PROTOCOL, 445, b"\x00\x00\x00\x45\xFFSMB\x72\x00\x00\x00"),
        client(&PROTOCOL, 445, b"\x00\x00\x00\x68\xFESMB\x40\x00\x00\x00"),
        client(&PROTOCOL, 139, b"\x81\x00\x00\x44\x20CKFDENECFDEFFCFGEFFCCACACACACACA"),
        server(&PROTOCOL, 445, b"\x00\x00\x00\x45\xFDSMBabcd"),
    ];

    pub(in super::super) const LOOK_ALIKES: &[Sample] = &[
        client(&PROTOCOL, 445, b"\x00\x00\x00\x45\xFFSMC\x72\x00\x00\x00"),
        client(&PROTOCOL, 139, b"\x81\x00\x00\x44\x21CKFDEN"),
    ];
}
