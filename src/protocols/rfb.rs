//! Remote framebuffer protocol (VNC): who shares which screen, and how the client authenticates.
//!
//! A row is reported for each connection ([`Session`]), up to the name of the desktop: the screen itself is not read.
//!
//! Standard: RFC 6143 section 7.1 to 7.3.

use super::recognizers::octets::{begins_with, either, once};
use crate::checkpoint::state;
use crate::codec::{Number, Reader};
use crate::row::{Displayed, Group, Name};
use crate::session::framing::{AfterPdu, Cut, Framing, Pdu};
use crate::session::kit::{Kept, Malformed, PduParser, Rows, exchange, names, open};
use crate::session::{OctetSet, Protocol, Role, Text, Verdict};

/// Protocol `vnc`, recognized by the version line that both sides send first.
pub static PROTOCOL: Protocol = Protocol::new("vnc")
    .in_zeek("rfb")
    .in_eve("rfb")
    .over_streams(&[5900, 5901], Some(|opening| either(opening, probe)))
    .streams_begin_with(OctetSet::of(b"R"))
    .with_kinds(&["rfb"])
    .with_limits("2 KiB of a direction before the other one; texts of 256 octets")
    .with_standards("RFC 6143");

fn probe(octets: &[u8]) -> Verdict {
    match begins_with(octets, &[b"RFB 00"]) {
        Verdict::Match => {
            once(octets, 12, || matches!(octets, [_, _, _, _, _, _, b'3'..=b'5', b'.', _, _, _, b'\n', ..]))
        }
        verdict => verdict,
    }
}

names! {
    /// Security type (RFC 6143 section 7.1.2, and the IANA registry).
    pub struct SecurityType: u32 {
        0 => "invalid", 1 => "none", 2 => "vnc", 5 => "ra2", 6 => "ra2ne", 16 => "tight", 17 => "ultra", 18 => "tls",
        19 => "vencrypt", 20 => "sasl", 21 => "md5", 22 => "xvp", 30 => "apple_remote_desktop", 129 => "tight_unix",
    }
}

exchange! {
    /// A connection.
    "rfb" pub struct Session {
        /// Version that the server states, such as `003.008`.
        pub server_version: Option<Kept<7>>,
        /// Version that the client selects.
        pub client_version: Option<Kept<7>>,
        /// Security type that is selected.
        pub security_type: Option<SecurityType>,
        /// True if the server accepts the client; null if it does not say so.
        pub is_accepted: Option<bool>,
        /// Why the server refuses the client.
        pub refusal: Option<Kept<256>>,
        /// True if the client leaves other clients connected.
        pub is_shared: Option<bool>,
        /// Width of the screen in pixels.
        pub width: Option<u16>,
        /// Height of the screen in pixels.
        pub height: Option<u16>,
        /// Name of the desktop.
        pub desktop_name: Option<Kept<256>>,
    }
    /// Connections.
    zeek "rfb" ['a] as row {
        /// Major version of `client_version`.
        "client_major_version": Option<Text<'a>> = part(row.client_version.as_ref(), 0);
        /// Minor version of `client_version`.
        "client_minor_version": Option<Text<'a>> = part(row.client_version.as_ref(), 1);
        /// Major version of `server_version`.
        "server_major_version": Option<Text<'a>> = part(row.server_version.as_ref(), 0);
        /// Minor version of `server_version`.
        "server_minor_version": Option<Text<'a>> = part(row.server_version.as_ref(), 1);
        /// `security_type` by Zeek's name.
        "authentication_method": Option<Displayed<String>> = row.security_type.map(|kind| Displayed(zeek_name(kind)));
        /// `is_accepted`.
        "auth": Option<bool> = row.is_accepted;
        /// `is_shared`.
        "share_flag": Option<bool> = row.is_shared;
        /// `desktop_name`.
        "desktop_name": Option<Text<'a>> = row.desktop_name.as_ref().map(Kept::text);
        /// `width`.
        "width": Option<u16> = row.width;
        /// `height`.
        "height": Option<u16> = row.height;
    }
    /// Connections.
    eve "rfb" ['a] as row {
        /// `server_version`.
        "server_protocol_version": Option<Group<Version<'a>>> = row.server_version.as_ref().map(|version| Group(Version(version)));
        /// `client_version`.
        "client_protocol_version": Option<Group<Version<'a>>> = row.client_version.as_ref().map(|version| Group(Version(version)));
        /// Security type with its result.
        "authentication": Option<Group<Security<'a>>> = row.security_type.map(|_| Group(Security(row)));
        /// `refusal`.
        "server_security_failure_reason": Option<Text<'a>> = row.refusal.as_ref().map(Kept::text);
        /// `is_shared`.
        "screen_shared": Option<bool> = row.is_shared;
        /// Size and name of the screen.
        "framebuffer": Option<Group<Screen<'a>>> = row.desktop_name.as_ref().map(|_| Group(Screen(row)));
    }
}

/// A version, as in events of EVE.
#[derive(Clone, Copy)]
struct Version<'a>(&'a Kept<7>);

crate::table! {
    /// Version of a side.
    impl['a] "eve.rfb.rfb.version" for Version<'a> as version {
        /// Major version.
        "major": Option<Text<'a>> = part(Some(version.0), 0);
        /// Minor version.
        "minor": Option<Text<'a>> = part(Some(version.0), 1);
    }
}

/// The security type, as in events of EVE.
#[derive(Clone, Copy)]
struct Security<'a>(&'a Session);

crate::table! {
    /// Security type with its result.
    impl['a] "eve.rfb.rfb.authentication" for Security<'a> as security {
        /// Number of the security type.
        "security_type": Option<u32> = security.0.security_type.map(|kind| kind.0);
        /// `OK` or `FAIL`.
        "security_result": Option<Name> =
            security.0.is_accepted.map(|is_accepted| Name(if is_accepted { "OK" } else { "FAIL" }));
    }
}

/// The screen, as in events of EVE.
#[derive(Clone, Copy)]
struct Screen<'a>(&'a Session);

crate::table! {
    /// Size and name of the screen.
    impl['a] "eve.rfb.rfb.framebuffer" for Screen<'a> as screen {
        /// `width`.
        "width": Option<u16> = screen.0.width;
        /// `height`.
        "height": Option<u16> = screen.0.height;
        /// `desktop_name`.
        "name": Option<Text<'a>> = screen.0.desktop_name.as_ref().map(Kept::text);
    }
}

/// Returns a part of a version.
fn part(version: Option<&Kept<7>>, index: usize) -> Option<Text<'_>> {
    version?.text().0.split(|octet| *octet == b'.').nth(index).map(Text)
}

fn zeek_name(kind: SecurityType) -> String {
    match kind.0 {
        0 => "Invalid".to_owned(),
        1 => "None".to_owned(),
        2 => "VNC".to_owned(),
        16 => "Tight".to_owned(),
        17 => "Ultra".to_owned(),
        18 => "TLS".to_owned(),
        19 => "VeNCrypt".to_owned(),
        20 => "GTK-VNC SASL".to_owned(),
        21 => "MD5 hash authentication".to_owned(),
        22 => "Colin Dean xvp".to_owned(),
        30 => "Apple Remote Desktop".to_owned(),
        number => format!("unknown-{number}"),
    }
}

open! {
    /// Rows of the protocol.
    pub(crate) enum Row { 0 = Session }
}

/// What comes next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    #[default]
    ServerVersion,
    ClientVersion,
    /// The security types of the server, or in version 3.3 the one that it selects.
    Types,
    Choice,
    Challenge,
    Response,
    Result,
    Refusal,
    ClientInit,
    ServerInit,
    Over,
}

state! {
    enum Phase {
        0 = ServerVersion, 1 = ClientVersion, 2 = Types, 3 = Choice, 4 = Challenge, 5 = Response, 6 = Result, 7 = Refusal,
        8 = ClientInit, 9 = ServerInit, 10 = Over,
    }
}

impl Phase {
    /// Returns the side that sends next.
    const fn sender(self) -> Role {
        match self {
            Self::ClientVersion | Self::Choice | Self::Response | Self::ClientInit => Role::Client,
            _ => Role::Server,
        }
    }
}

/// Number of octets of a side that may wait for the other one.
const WAITING_MAX: usize = 2048;

/// Parser of the protocol. Messages have no length of their own: that of the next one follows from those before.
#[derive(Debug, Default)]
pub(crate) struct Rfb {
    phase: Phase,
    waiting: [Box<[u8]>; 2],
    /// Minor version of both sides: 3, 7 or 8.
    minor: u16,
    security_type: u32,
    /// Length of a key of Apple's security type.
    key_len: u16,
}

state! {
    struct Rfb { phase, waiting, minor, security_type, key_len }
    if |parser| parser.waiting.iter().all(|octets| octets.len() <= WAITING_MAX)
}

impl PduParser for Rfb {
    const PROTOCOL: &'static Protocol = &PROTOCOL;
    // What arrives is passed on as it is.
    const FRAMING: Option<Framing> =
        Some(Framing::by(|_, octets| Cut::Pdu(octets.len() as u64)).keep(1 << 20));
    type Row = Row;

    fn heap_len(&self) -> usize {
        self.waiting.iter().map(|octets| octets.len()).sum()
    }

    fn pdu(&mut self, pdu: &Pdu<'_>, rows: &mut Rows<'_, Row>) -> Result<AfterPdu, Malformed> {
        if self.phase == Phase::Over {
            return Ok(AfterPdu::Done);
        }
        let waiting = pdu.from.of_mut(&mut self.waiting);
        // Longer than any message before the screen.
        let kept_len = pdu.bytes.len().min(WAITING_MAX - waiting.len());
        *waiting = [waiting, pdu.bytes.get(..kept_len).unwrap_or_default()].concat().into();
        rows.acts_as(Role::Client);
        while self.phase != Phase::Over {
            let from = self.phase.sender();
            let octets = std::mem::take(from.of_mut(&mut self.waiting));
            let Some(taken) = self.step(&octets, rows)? else {
                let is_stuck = octets.len() == WAITING_MAX;
                *from.of_mut(&mut self.waiting) = octets;
                return if is_stuck { Err(Malformed) } else { Ok(AfterPdu::More) };
            };
            *from.of_mut(&mut self.waiting) = octets.get(taken..).unwrap_or_default().into();
        }
        self.waiting = Default::default();
        Ok(AfterPdu::Done)
    }
}

/// Reads a number at an offset.
fn number<N: Number>(octets: &[u8], at: usize) -> Option<N> {
    Reader::new(octets.get(at..)?).be().ok()
}

/// Reads the version of a side: a line of 12 octets.
fn version(line: &[u8]) -> Result<Kept<7>, Malformed> {
    match line {
        [b'R', b'F', b'B', b' ', version @ .., b'\n'] if version.len() == 7 => Ok(Kept::new(version)),
        _ => Err(Malformed),
    }
}

impl Rfb {
    /// Processes the next message of a side, if it is complete. Returns its length.
    fn step(&mut self, octets: &[u8], rows: &mut Rows<'_, Row>) -> Result<Option<usize>, Malformed> {
        let taken = match self.phase {
            Phase::ServerVersion | Phase::ClientVersion => {
                let Some(line) = octets.get(..12) else { return Ok(None) };
                let version = version(line)?;
                let is_client = self.phase == Phase::ClientVersion;
                if is_client {
                    self.minor = match version.text().0.get(4..) {
                        Some(b"003" | b"005" | b"006") => 3,
                        Some(b"007") => 7,
                        _ => 8,
                    };
                }
                rows.flow(|row: &mut Session| {
                    *if is_client { &mut row.client_version } else { &mut row.server_version } =
                        Some(version);
                });
                self.phase = if is_client { Phase::Types } else { Phase::ClientVersion };
                12
            }
            Phase::Types if self.minor == 3 => {
                let Some(kind) = number(octets, 0) else { return Ok(None) };
                self.selected(kind, rows);
                4
            }
            Phase::Types => {
                let Some(count) = octets.first() else { return Ok(None) };
                let len = 1 + usize::from(*count);
                if octets.len() < len {
                    return Ok(None);
                }
                self.phase = if *count == 0 { Phase::Refusal } else { Phase::Choice };
                len
            }
            Phase::Choice => {
                let Some(kind) = octets.first() else { return Ok(None) };
                self.selected((*kind).into(), rows);
                1
            }
            Phase::Challenge => {
                let len = if self.security_type == 2 {
                    16
                } else {
                    let Some(key_len) = number::<u16>(octets, 2) else { return Ok(None) };
                    self.key_len = key_len;
                    4 + 2 * usize::from(key_len)
                };
                if octets.len() < len {
                    return Ok(None);
                }
                self.phase = Phase::Response;
                len
            }
            Phase::Response => {
                let len = if self.security_type == 2 { 16 } else { 128 + usize::from(self.key_len) };
                if octets.len() < len {
                    return Ok(None);
                }
                self.phase = Phase::Result;
                len
            }
            Phase::Result => {
                let Some(result) = number::<u32>(octets, 0) else { return Ok(None) };
                rows.flow(|row: &mut Session| row.is_accepted = Some(result == 0));
                self.phase = match result {
                    0 => Phase::ClientInit,
                    _ if self.minor == 8 => Phase::Refusal,
                    _ => Phase::Over,
                };
                4
            }
            Phase::Refusal => {
                let Some(len) = number::<u32>(octets, 0) else { return Ok(None) };
                let end = 4_usize.saturating_add(usize::try_from(len).unwrap_or(usize::MAX)).min(4 + 256);
                let Some(text) = octets.get(4..end) else { return Ok(None) };
                rows.flow(|row: &mut Session| row.refusal = Some(Kept::new(text)));
                self.phase = Phase::Over;
                end
            }
            Phase::ClientInit => {
                let Some(flag) = octets.first() else { return Ok(None) };
                rows.flow(|row: &mut Session| row.is_shared = Some(*flag != 0));
                self.phase = Phase::ServerInit;
                1
            }
            Phase::ServerInit => {
                let Some(len) = number::<u32>(octets, 20) else { return Ok(None) };
                let end = 24_usize.saturating_add(usize::try_from(len).unwrap_or(usize::MAX)).min(24 + 256);
                let Some(name) = octets.get(24..end) else { return Ok(None) };
                rows.flow(|row: &mut Session| {
                    (row.width, row.height) = (number(octets, 0), number(octets, 2));
                    row.desktop_name = Some(Kept::new(name));
                });
                self.phase = Phase::Over;
                end
            }
            Phase::Over => 0,
        };
        Ok(Some(taken))
    }

    /// Continues with the messages of a security type.
    fn selected(&mut self, kind: u32, rows: &mut Rows<'_, Row>) {
        self.security_type = kind;
        rows.flow(|row: &mut Session| row.security_type = Some(SecurityType(kind)));
        self.phase = match kind {
            0 => Phase::Refusal,
            1 if self.minor == 8 => Phase::Result,
            1 => Phase::ClientInit,
            2 | 30 => Phase::Challenge,
            // Encrypted, or not registered.
            _ => Phase::Over,
        };
    }
}

#[cfg(test)]
pub(super) mod samples {
    use super::super::recognizers::samples::{Sample, server};
    use super::PROTOCOL;

    pub(in super::super) const SAMPLES: &[Sample] = &[server(&PROTOCOL, 5900, b"RFB 003.008\n")];

    pub(in super::super) const LOOK_ALIKES: &[Sample] = &[server(&PROTOCOL, 5900, b"RFB 009.008\n")];
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::kit::KitEntry;
    use crate::session::kit::suite::{Case, check_stream};

    const CLIENT: Role = Role::Client;
    const SERVER: Role = Role::Server;

    fn screen(name: &[u8]) -> Vec<u8> {
        let format = [32, 24, 0, 1, 0, 255, 0, 255, 0, 255, 16, 8, 0, 0, 0, 0];
        [&[5, 0, 3, 32][..], &format, &[0, 0, 0, name.len() as u8], name].concat()
    }

    #[test]
    fn cases_of_connections() {
        let line = |version: &str| format!("RFB {version}\n").into_bytes();
        let apple = [&[0, 2, 0, 8][..], &[7; 16]].concat();
        let cases = [
            Case {
                name: "a password, and the name of the desktop",
                turns: vec![
                    (SERVER, line("003.008")),
                    (CLIENT, line("003.008")),
                    (SERVER, vec![2, 2, 16]),
                    (CLIENT, vec![2]),
                    (SERVER, vec![9; 16]),
                    (CLIENT, vec![8; 16]),
                    (SERVER, vec![0; 4]),
                    (CLIENT, vec![1]),
                    (SERVER, screen(b"desk")),
                    (CLIENT, vec![3, 0, 0, 0, 0, 0, 5, 0, 3, 32]),
                    (SERVER, vec![0, 0, 0, 1]),
                ],
                rows: &[
                    "rfb server_version=003.008 client_version=003.008 security_type=vnc is_accepted=Bool(true) \
                    is_shared=Bool(true) width=1280 height=800 desktop_name=desk",
                ],
            },
            Case {
                name: "a refusal after a password of Apple's type",
                turns: vec![
                    (SERVER, line("003.889")),
                    (CLIENT, line("003.889")),
                    (SERVER, vec![1, 30]),
                    (CLIENT, vec![30]),
                    (SERVER, apple),
                    (CLIENT, vec![6; 136]),
                    (SERVER, [&[0, 0, 0, 1, 0, 0, 0, 3][..], b"bad"].concat()),
                ],
                rows: &[
                    "rfb server_version=003.889 client_version=003.889 security_type=apple_remote_desktop refusal=bad",
                ],
            },
            Case {
                name: "version 3.3 without authentication, and a server without types",
                turns: vec![
                    (SERVER, line("003.003")),
                    (CLIENT, line("003.003")),
                    (SERVER, vec![0, 0, 0, 1]),
                    (CLIENT, vec![0]),
                    (SERVER, screen(b"")),
                ],
                rows: &[
                    "rfb server_version=003.003 client_version=003.003 security_type=none width=1280 height=800 desktop_name=",
                ],
            },
            Case {
                name: "a server that refuses all clients",
                turns: vec![
                    (SERVER, line("003.008")),
                    (CLIENT, line("003.008")),
                    (SERVER, [&[0, 0, 0, 0, 4][..], b"full"].concat()),
                ],
                rows: &["rfb server_version=003.008 client_version=003.008 refusal=full"],
            },
        ];
        check_stream(&KitEntry::of::<Rfb>(), &cases);
    }
}
