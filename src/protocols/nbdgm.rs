//! NetBIOS datagram service: messages between names, among them the announcements of hosts in a network neighborhood.
//!
//! Each datagram has a row ([`Datagram`]). Of mailslots of SMB 1, that of browsers is read: it states names of hosts and groups with
//! versions of Windows and comments.
//!
//! Standards: RFC 1001, 1002 section 4.4; MS-MAIL section 2.2, MS-BRWS section 2.2.

use std::net::{IpAddr, Ipv4Addr};

use super::nbns::{NameKind, name};
use crate::checkpoint::state;
use crate::codec::Reader;
use crate::session::framing::{AfterPdu, Pdu};
use crate::session::kit::{Kept, Malformed, PduParser, Rows, Wire, exchange, names, open, wire};
use crate::session::{DatagramOpening, OctetSet, Protocol, Verdict};

/// Protocol `nbdgm`, recognized by port 138, message type and length.
pub static PROTOCOL: Protocol = Protocol::new("nbdgm")
    .over_datagrams(&[138], Some(probe))
    .datagrams_begin_with(OctetSet::range(0x10..=0x16))
    .with_kinds(&["nbdgm"])
    .with_message_len_min(11)
    .with_limits("names of 16 octets, comments of 64")
    .with_standards("RFC 1001, 1002 section 4.4; MS-MAIL, MS-BRWS");

fn probe(opening: &DatagramOpening<'_>) -> Verdict {
    // Port of the sender, which some implementations omit.
    let [kind @ 0x10..=0x16, _, _, _, _, _, _, _, 0, 0 | 138, ..] = opening.bytes else { return Verdict::No };
    if !opening.has_port(138) {
        return Verdict::No;
    }
    // Data messages contain their own length, and the rest of the header.
    let len = opening.bytes.get(10..).and_then(|len| len.first_chunk()).map(|len| u16::from_be_bytes(*len));
    let is_filled = len.is_some_and(|len| usize::from(len) + 14 <= opening.len);
    Verdict::of(*kind > 0x12 || is_filled)
}

names! {
    /// Type of a message (RFC 1002 section 4.4.1).
    pub struct DatagramType: u8 {
        0x10 => "direct_unique", 0x11 => "direct_group", 0x12 => "broadcast", 0x13 => "error", 0x14 => "query",
        0x15 => "positive_response", 0x16 => "negative_response",
    }
}

names! {
    /// Code of an error (RFC 1002 section 4.4.3).
    pub struct DatagramError: u8 { 0x82 => "no_destination", 0x83 => "bad_source_name", 0x84 => "bad_destination_name" }
}

names! {
    /// Command between browsers (MS-BRWS section 2.2).
    pub struct BrowserCommand: u8 {
        1 => "host_announcement", 2 => "announcement_request", 8 => "election", 9 => "backup_list_request",
        10 => "backup_list", 11 => "become_backup", 12 => "domain_announcement", 13 => "master_announcement",
        14 => "reset", 15 => "local_master_announcement",
    }
}

exchange! {
    /// A datagram.
    "nbdgm" pub struct Datagram {
        /// Type of the message.
        pub datagram_type: DatagramType,
        /// Number of the message.
        pub identifier: u16,
        /// Address of the sender, as it states it.
        pub stated_address: Option<IpAddr>,
        /// Name of the sender, without the spaces that fill it.
        pub source_name: Option<Kept<16>>,
        /// What the name of the sender stands for.
        pub source_name_kind: Option<NameKind>,
        /// Name of the receiver: a host or a group.
        pub destination_name: Option<Kept<16>>,
        /// What the name of the receiver stands for.
        pub destination_name_kind: Option<NameKind>,
        /// Code of an error.
        pub error: Option<DatagramError>,
        /// Name of the mailslot.
        pub mailslot: Option<Kept<64>>,
        /// Command between browsers.
        pub browser_command: Option<BrowserCommand>,
        /// Name of the host, or of the group of a domain announcement.
        pub announced_name: Option<Kept<16>>,
        /// Version of Windows that the host states: major and minor version.
        pub announced_version: Option<Kept<8>>,
        /// Comment of the host; of a domain announcement, the name of its master browser.
        pub comment: Option<Kept<64>>,
    }
}

open! {
    /// Rows of the datagram service.
    pub(crate) enum Row { 0 = Datagram }
}

wire! {
    /// RFC 1002 section 4.4.1.
    struct Head { datagram_type: u8, flags: u8, identifier: u16, address: [u8; 4], port: u16 }
}

/// Parser of the datagram service.
#[derive(Debug, Default)]
pub(crate) struct Nbdgm;

state! { struct Nbdgm {} }

impl PduParser for Nbdgm {
    const PROTOCOL: &'static Protocol = &PROTOCOL;
    type Row = Row;

    fn pdu(&mut self, pdu: &Pdu<'_>, rows: &mut Rows<'_, Row>) -> Result<AfterPdu, Malformed> {
        let mut reader = Reader::new(pdu.bytes);
        let head = Head::read(&mut reader)?;
        let mut row = Datagram::default();
        (row.datagram_type, row.identifier) = (DatagramType(head.datagram_type), head.identifier);
        row.stated_address = Some(IpAddr::V4(Ipv4Addr::from(head.address)));
        match head.datagram_type {
            0x10..=0x12 => {
                // Length, and the offset of a further fragment, which begins with other octets.
                let (_, offset): (u16, u16) = (reader.be()?, reader.be()?);
                (row.source_name, row.source_name_kind) = kept(name(&mut reader)?);
                (row.destination_name, row.destination_name_kind) = kept(name(&mut reader)?);
                if offset == 0 {
                    row.mail(reader.rest());
                }
            }
            0x13 => row.error = Some(DatagramError(reader.be()?)),
            0x14..=0x16 => (row.destination_name, row.destination_name_kind) = kept(name(&mut reader)?),
            _ => return Err(Malformed),
        }
        rows.single(row);
        Ok(AfterPdu::More)
    }
}

fn kept(name: Option<([u8; 15], u8)>) -> (Option<Kept<16>>, Option<NameKind>) {
    name.map(|(name, kind)| (Kept::new(name.trim_ascii_end()), NameKind(kind))).unzip()
}

/// Returns octets up to the first null.
fn text<const N: usize>(octets: &[u8]) -> Option<Kept<N>> {
    let end = octets.iter().position(|octet| *octet == 0).unwrap_or(octets.len());
    octets.get(..end).filter(|text| !text.is_empty()).map(Kept::new)
}

impl Datagram {
    /// Reads a transaction of SMB 1 that writes into a mailslot. What is missing or of another format is left out.
    fn mail(&mut self, message: &[u8]) -> Option<()> {
        const WORDS_AT: usize = 33;
        let [0xFF, b'S', b'M', b'B', 0x25, ..] = message else { return None };
        let words_len = 2 * usize::from(*message.get(WORDS_AT - 1)?);
        let number =
            |at: usize| Some(usize::from(u16::from_le_bytes(*message.get(WORDS_AT + at..)?.first_chunk()?)));
        self.mailslot = text(message.get(WORDS_AT + words_len + 2..)?);
        let (len, at) = (number(22)?, number(24)?);
        let data = message.get(at..)?;
        let is_of_browsers = self
            .mailslot
            .as_ref()
            .is_some_and(|name| name.text().0.eq_ignore_ascii_case(b"\\MAILSLOT\\BROWSE"));
        if is_of_browsers { self.browser(data.get(..len).unwrap_or(data)) } else { None }
    }

    fn browser(&mut self, frame: &[u8]) -> Option<()> {
        let command = *frame.first()?;
        self.browser_command = Some(BrowserCommand(command));
        match command {
            1 | 12 | 15 => {
                self.announced_name = text(frame.get(6..22)?);
                // A group states the version of its browsers.
                if command != 12
                    && let [major, minor] = frame.get(22..24)?
                {
                    self.announced_version = Some(Kept::new(format!("{major}.{minor}").as_bytes()));
                }
                self.comment = text(frame.get(32..)?);
            }
            2 => self.announced_name = text(frame.get(2..)?),
            8 => self.announced_name = text(frame.get(14..)?),
            13 => self.announced_name = text(frame.get(1..)?),
            _ => {}
        }
        Some(())
    }
}

#[cfg(test)]
pub(super) mod samples {
    use super::super::recognizers::samples::{Sample, datagram};
    use super::PROTOCOL;

    pub(in super::super) const SAMPLES: &[Sample] =
        &[datagram(&PROTOCOL, 138, b"\x11\x0A\x12\x34\x0A\x00\x00\x01\x00\x8A\x00\x02\x00\x00 A")];

    pub(in super::super) const LOOK_ALIKES: &[Sample] =
        &[datagram(&PROTOCOL, 138, b"\x11\x0A\x12\x34\x0A\x00\x00\x01\x00\x8A\x01\x02\x00\x00 A")];
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocols::nbns::encoded;
    use crate::session::Role;
    use crate::session::kit::KitEntry;
    use crate::session::kit::suite::{Case, check};

    const CLIENT: Role = Role::Client;

    fn head(datagram_type: u8, identifier: u8) -> Vec<u8> {
        vec![datagram_type, 0x1A, 0, identifier, 192, 0, 2, 7, 0, 138]
    }

    fn data(datagram_type: u8, identifier: u8, to: Vec<u8>, message: &[u8]) -> Vec<u8> {
        let rest = [encoded("DESK-7", 0), to, message.to_vec()].concat();
        let len = (rest.len() as u16).to_be_bytes();
        [head(datagram_type, identifier), len.to_vec(), vec![0, 0], rest].concat()
    }

    /// A transaction that writes into a mailslot.
    fn mail(name: &[u8], frame: &[u8]) -> Vec<u8> {
        let mut octets = b"\xFFSMB\x25".to_vec();
        octets.resize(32, 0);
        let at = 33 + 34 + 2 + name.len() + 1;
        let mut words = vec![0; 34];
        (words[22], words[24], words[26]) = (frame.len() as u8, at as u8, 3);
        let count = (name.len() + 1 + frame.len()) as u8;
        [&octets[..], &[17], &words, &[count, 0], name, &[0], frame].concat()
    }

    #[test]
    fn cases_of_datagrams() {
        let announcement = |command: u8, name: &[u8], comment: &[u8]| {
            let mut frame = vec![command, 0, 0x60, 0xEA, 0, 0];
            frame.extend_from_slice(name);
            frame.resize(22, 0);
            frame.extend([10, 0, 3, 0x10, 0, 0, 15, 1, 0x55, 0xAA]);
            [&frame[..], comment, &[0]].concat()
        };
        let election = [&[8, 1, 0x0F, 0x01, 0x04, 0, 0x10, 0, 0, 0, 0, 0, 0, 0][..], b"DESK-7\0"].concat();
        let cases = [
            Case {
                name: "announcements of a host and of its group",
                turns: vec![
                    (
                        CLIENT,
                        data(
                            0x11,
                            1,
                            encoded("CORP", 0x1D),
                            &mail(b"\\MAILSLOT\\BROWSE", &announcement(1, b"DESK-7", b"third floor")),
                        ),
                    ),
                    (
                        CLIENT,
                        data(
                            0x11,
                            2,
                            encoded("\x01\x02__MSBROWSE__\x02", 1),
                            &mail(b"\\MAILSLOT\\BROWSE", &announcement(12, b"CORP", b"FILES")),
                        ),
                    ),
                    (CLIENT, data(0x11, 3, encoded("CORP", 0x1E), &mail(b"\\MAILSLOT\\BROWSE", &election))),
                ],
                rows: &[
                    "nbdgm datagram_type=direct_group identifier=1 stated_address=Address(192.0.2.7) source_name=DESK-7 \
                    source_name_kind=workstation destination_name=CORP destination_name_kind=master_browser \
                    mailslot=\\MAILSLOT\\BROWSE browser_command=host_announcement announced_name=DESK-7 \
                    announced_version=10.0 comment=third floor",
                    "nbdgm datagram_type=direct_group identifier=2 stated_address=Address(192.0.2.7) source_name=DESK-7 \
                    source_name_kind=workstation destination_name=\u{1}\u{2}__MSBROWSE__\u{2} \
                    destination_name_kind=master_browser_list mailslot=\\MAILSLOT\\BROWSE browser_command=domain_announcement \
                    announced_name=CORP comment=FILES",
                    "nbdgm datagram_type=direct_group identifier=3 stated_address=Address(192.0.2.7) source_name=DESK-7 \
                    source_name_kind=workstation destination_name=CORP destination_name_kind=browser_elections \
                    mailslot=\\MAILSLOT\\BROWSE browser_command=election announced_name=DESK-7",
                ],
            },
            Case {
                name: "another mailslot, a query, and an error",
                turns: vec![
                    (
                        CLIENT,
                        data(0x10, 4, encoded("FILES", 0x20), &mail(b"\\MAILSLOT\\NET\\NETLOGON", &[7, 0])),
                    ),
                    (CLIENT, [head(0x14, 5), encoded("FILES", 0x20)].concat()),
                    (CLIENT, [head(0x13, 6), vec![0x82]].concat()),
                ],
                rows: &[
                    "nbdgm datagram_type=direct_unique identifier=4 stated_address=Address(192.0.2.7) source_name=DESK-7 \
                    source_name_kind=workstation destination_name=FILES destination_name_kind=file_server \
                    mailslot=\\MAILSLOT\\NET\\NETLOGON",
                    "nbdgm datagram_type=query identifier=5 stated_address=Address(192.0.2.7) destination_name=FILES \
                    destination_name_kind=file_server",
                    "nbdgm datagram_type=error identifier=6 stated_address=Address(192.0.2.7) error=no_destination",
                ],
            },
        ];
        check(&KitEntry::of::<Nbdgm>(), &cases);
    }
}
