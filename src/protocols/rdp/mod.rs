//! RDP: the beginning of a connection, up to TLS, or to the parameters of a connection without it.
//!
//! A row is reported for each connection ([`Connection`]). After a negotiation of TLS, the parser of TLS follows, whose row has the
//! certificate. Without TLS, the client states its name, build, keyboard, desktop and channels. Connections over UDP are recognized
//! only.
//!
//! Standards: [MS-RDPBCGR] sections 2.2.1 and 5.4, ITU-T T.123, X.224, T.125 and T.124.

mod languages;

use languages::LANGUAGES;

use super::recognizers::octets::{begins_with, dialogue, once};
use super::tls;
use crate::checkpoint::state;
use crate::codec::ber::{self, Values, tag};
use crate::codec::{ReadError, Reader};
use crate::row::{Displayed, List, Name};
use crate::session::framing::{AfterPdu, Framing, Pdu, Width};
use crate::session::kit::{Kept, KeptItem, KeptList, Malformed, PduParser, Rows, exchange, names, open};
use crate::session::{DatagramOpening, OctetSet, Protocol, Role, StreamOpening, Text, Verdict};

/// Protocol `rdp`, recognized by an X.224 connection request with a cookie or a negotiation; over UDP by the handshake on port
/// 3389.
pub static PROTOCOL: Protocol = Protocol::new("rdp")
    .in_zeek_by_transport("rdp", "rdpeudp")
    .in_eve("rdp")
    .over_streams(&[3389], Some(probe_stream))
    .over_datagrams(&[3389], Some(probe_datagram))
    .streams_begin_with(OctetSet::of(b"\x03"))
    .datagrams_begin_with(OctetSet::of(b"\xFF"))
    .with_kinds(&["rdp"])
    .leading_on()
    .with_limits("messages of 8 KiB, of longer ones the beginning; 31 channels")
    .with_standards("MS-RDPBCGR sections 2.2.1 and 5.4; T.123, T.124, T.125, X.224");

fn probe_stream(opening: &StreamOpening<'_>) -> Verdict {
    let is_on_port = opening.has_port(3389);
    // TPKT (RFC 1006), then a connection request of class 0; its parameters distinguish RDP from other uses of ISO
    // transport.
    let request = |bytes: &[u8]| match bytes {
        [3, 0, _, len, indicator, 0xE0, 0, 0, _, _, 0, rest @ ..] if *len == indicator.wrapping_add(5) => {
            match (rest, *len) {
                (_, 11) => Verdict::of(is_on_port),
                ([], _) => Verdict::More,
                ([1, ..], _) => once(rest, 4, || matches!(rest, [1, _, 8, 0, ..])),
                _ => begins_with(rest, &[b"Cookie: mstshash=".as_slice(), b"Cookie: msts="]),
            }
        }
        [3, 0, ..] | [3] | [] if bytes.len() < 11 => Verdict::More,
        _ => Verdict::No,
    };
    dialogue(opening, request, |_| Verdict::No)
}

fn probe_datagram(opening: &DatagramOpening<'_>) -> Verdict {
    // SYN of the transport: no acknowledged sequence number yet, and the flag.
    let is_syn = matches!(opening.bytes, [0xFF, 0xFF, 0xFF, 0xFF, _, _, _, flags, ..] if flags & 1 != 0);
    Verdict::of(is_syn && opening.has_port(3389))
}

names! {
    /// Protocol that protects the connection (section 2.2.1.2.1).
    pub struct Security: u32 { 0 => "rdp", 1 => "ssl", 2 => "hybrid", 4 => "rdstls", 8 => "hybrid_ex", 16 => "rdsaad" }
}

names! {
    /// Reason for which the server refuses the negotiation (section 2.2.1.2.2).
    pub struct Failure: u32 {
        1 => "ssl_required_by_server", 2 => "ssl_not_allowed_by_server", 3 => "ssl_cert_not_on_server",
        4 => "inconsistent_flags", 5 => "hybrid_required_by_server", 6 => "ssl_with_user_auth_required_by_server",
    }
}

names! {
    /// Result of the creation of the conference (T.124).
    pub struct ConferenceResult: u8 {
        0 => "success", 1 => "user_rejected", 2 => "low_resources", 3 => "rejected_for_symmetry_breaking",
        4 => "locked_conference_not_supported",
    }
}

names! {
    /// Method of RDP's own encryption (section 2.2.1.4.3).
    pub struct EncryptionMethod: u32 { 0 => "none", 1 => "40bit", 2 => "128bit", 8 => "56bit", 16 => "fips" }
}

names! {
    /// Level of RDP's own encryption.
    pub struct EncryptionLevel: u32 { 0 => "none", 1 => "low", 2 => "client_compatible", 3 => "high", 4 => "fips" }
}

names! {
    /// Kind of the certificate for RDP's own encryption (section 2.2.1.4.3.1).
    pub struct CertificateKind: u32 { 1 => "proprietary", 2 => "x509" }
}

exchange! {
    /// The beginning of a connection.
    "rdp" pub struct Connection {
        /// Cookie of the request: mostly the beginning of the name of the user.
        pub cookie: Option<Kept<128>>,
        /// Protocols that the client offers besides RDP's own encryption.
        pub requested_security: KeptList<64> [sparse],
        /// Protocol that the server selects; `rdp` for RDP's own encryption.
        pub security: Option<Security>,
        /// Reason for which the server refuses the negotiation.
        pub failure: Option<Failure>,
        /// Result of the creation of the conference, without TLS.
        pub conference_result: Option<ConferenceResult>,
        /// Name of the client's host.
        pub client_host: Option<Kept<48>>,
        /// Build of the client, which identifies its version.
        pub client_build: Option<u32>,
        /// Identifier of the client's product.
        pub client_product: Option<Kept<96>>,
        /// Identifier of the keyboard layout; the lower 16 bits are that of the language.
        pub keyboard_layout: Option<u32>,
        /// Width of the desktop in pixels.
        pub desktop_width: Option<u16>,
        /// Height of the desktop in pixels.
        pub desktop_height: Option<u16>,
        /// Bits of a pixel that the client prefers.
        pub color_depth: Option<u8>,
        /// Channels that the client requests.
        pub channels: KeptList<310> [sparse],
        /// Method of RDP's own encryption.
        pub encryption_method: Option<EncryptionMethod>,
        /// Level of RDP's own encryption.
        pub encryption_level: Option<EncryptionLevel>,
        /// Kind of the certificate for RDP's own encryption.
        pub certificate_kind: Option<CertificateKind>,
        /// Number of certificates.
        pub certificate_count: Option<u32>,
        /// True if the certificate is issued permanently, by a license server.
        pub has_permanent_certificate: Option<bool>,
    }
    /// Beginnings of connections.
    zeek "rdp" ['a] as row {
        /// `cookie`.
        "cookie": Text<'a> = row.cookie.as_ref().map_or(Text(b""), Kept::text);
        /// `encrypted` if TLS follows; `failure`, or `conference_result`, by Zeek's names.
        "result": Option<Name> = row.result();
        /// `security`, by Zeek's names.
        "security_protocol": Option<Name> = row.security_name();
        /// `channels`.
        "client_channels": Option<List<Vec<KeptItem<'a>>>> =
            (!row.channels.is_empty()).then(|| List(row.channels.iter().collect()));
        /// Name of the language of `keyboard_layout`.
        "keyboard_layout": Option<Displayed<String>> = row.keyboard_layout.map(|layout| Displayed(keyboard(layout)));
        /// Version of `client_build`.
        "client_build": Option<Displayed<String>> = row.client_build.map(|build| Displayed(version(build)));
        /// `client_host`.
        "client_name": Option<Text<'a>> = row.client_host.as_ref().map(Kept::text);
        /// `client_product`.
        "client_dig_product_id": Option<Text<'a>> = row.client_product.as_ref().map(Kept::text);
        /// `desktop_width`.
        "desktop_width": Option<u16> = row.desktop_width;
        /// `desktop_height`.
        "desktop_height": Option<u16> = row.desktop_height;
        /// `color_depth`.
        "requested_color_depth": Option<Displayed<String>> = row.color_depth.map(|bits| Displayed(format!("{bits}bit")));
        /// `RSA` or `X.509`.
        "cert_type": Option<Name> = row.certificate_kind.map(|kind| Name(if kind.0 == 1 { "RSA" } else { "X.509" }));
        /// `certificate_count`.
        "cert_count": u32 = row.certificate_count.unwrap_or_default();
        /// `has_permanent_certificate`.
        "cert_permanent": Option<bool> = row.has_permanent_certificate;
        /// `encryption_level`, by Zeek's names.
        "encryption_level": Option<Displayed<String>> = row.encryption_level.map(|level| Displayed(level.in_zeek()));
        /// `encryption_method`, by Zeek's names.
        "encryption_method": Option<Displayed<String>> = row.encryption_method.map(|method| Displayed(method.in_zeek()));
    }
}

impl EncryptionLevel {
    fn in_zeek(self) -> String {
        let name = ["None", "Low", "Client compatible", "High", "FIPS"].get(self.0 as usize);
        name.map_or_else(|| format!("encryption_level-{}", self.0), |name| (*name).to_owned())
    }
}

impl EncryptionMethod {
    fn in_zeek(self) -> String {
        match self.0 {
            0 => "None".to_owned(),
            16 => "FIPS".to_owned(),
            number => self.name().map_or_else(|| format!("encryption_method-{number}"), str::to_owned),
        }
    }
}

impl Connection {
    fn result(&self) -> Option<Name> {
        if let Some(failure) = self.failure {
            return Some(Name(match failure.0 {
                1 => "SSL_REQUIRED_BY_SERVER",
                2 => "SSL_NOT_ALLOWED_BY_SERVER",
                3 => "SSL_CERT_NOT_ON_SERVER",
                4 => "INCONSISTENT_FLAGS",
                5 => "HYBRID_REQUIRED_BY_SERVER",
                6 => "SSL_WITH_USER_AUTH_REQUIRED_BY_SERVER",
                _ => "failure_code",
            }));
        }
        if self.security.is_some_and(|security| security.0 != 0) {
            return Some(Name("encrypted"));
        }
        Some(Name(match self.conference_result?.0 {
            0 => "Success",
            1 => "User rejected",
            2 => "Resources not available",
            3 => "Rejected for symmetry breaking",
            _ => "Locked conference",
        }))
    }

    fn security_name(&self) -> Option<Name> {
        Some(Name(match self.security?.0 {
            0 => "RDP",
            1 => "SSL",
            2 => "HYBRID",
            4 => "RDSTLS",
            8 => "HYBRID_EX",
            _ => "unknown",
        }))
    }

    /// Reads a connection request (section 2.2.1.1): a cookie or a token of a load balancer, and a negotiation.
    fn request(&mut self, mut rest: &[u8]) {
        if let Some(end) = rest.windows(2).position(|pair| pair == b"\r\n") {
            let (line, next) = rest.split_at(end);
            self.cookie = line.strip_prefix(b"Cookie: mstshash=").map(Kept::new);
            rest = next.get(2..).unwrap_or_default();
        }
        if let [1, _, 8, 0, protocols @ ..] = rest
            && let Some(protocols) = protocols.first_chunk()
        {
            let protocols = u32::from_le_bytes(*protocols);
            for bit in (0..5).map(|bit| 1 << bit).filter(|bit| protocols & bit != 0) {
                self.requested_security.push(&Security(bit).to_string());
            }
        }
    }

    /// Reads a connection confirm (sections 2.2.1.2 and 2.2.1.2.2).
    fn confirmation(&mut self, rest: &[u8]) {
        match (rest, rest.get(4..8).and_then(|number| number.first_chunk())) {
            ([2, ..], Some(number)) => self.security = Some(Security(u32::from_le_bytes(*number))),
            ([3, ..], Some(number)) => self.failure = Some(Failure(u32::from_le_bytes(*number))),
            // Servers without the negotiation.
            _ => self.security = Some(Security(0)),
        }
    }

    /// Reads a block of the client (section 2.2.1.3).
    fn client_block(&mut self, kind: u16, mut block: Reader<'_>) {
        match kind {
            CLIENT_CORE => drop(self.core(&mut block)),
            CLIENT_CHANNELS => {
                let count = block.le::<u32>().unwrap_or_default().min(31);
                for _ in 0..count {
                    let Ok(name) = block.bytes(12) else { return };
                    let name = name.get(..8).unwrap_or_default();
                    let name = name.split(|octet| *octet == 0).next().unwrap_or_default();
                    self.channels.push(&Text(name).to_str_lossy());
                }
            }
            _ => {}
        }
    }

    /// Reads the core data (section 2.2.1.3.2). Old clients send less of it.
    fn core(&mut self, block: &mut Reader<'_>) -> Result<(), ReadError> {
        block.bytes(4)?;
        self.desktop_width = Some(block.le()?);
        self.desktop_height = Some(block.le()?);
        let old_depth: u16 = block.le()?;
        self.color_depth = match old_depth {
            0xCA00 => Some(4),
            0xCA01 => Some(8),
            _ => None,
        };
        block.bytes(2)?;
        self.keyboard_layout = Some(block.le()?);
        self.client_build = Some(block.le()?);
        self.client_host = Some(Kept::of_utf16(block.bytes(32)?));
        // Kind and keys of the keyboard, the input method, the color depth again, product, serial number.
        block.bytes(12 + 64 + 2 + 2 + 4)?;
        self.color_depth = u8::try_from(block.le::<u16>()?).ok();
        block.bytes(2)?;
        let wants_32_bits = block.le::<u16>()? & 2 != 0;
        if wants_32_bits {
            self.color_depth = Some(32);
        }
        self.client_product = Some(Kept::of_utf16(block.bytes(64)?));
        Ok(())
    }

    /// Reads a block of the server (section 2.2.1.4).
    fn server_block(&mut self, kind: u16, mut block: Reader<'_>) {
        if kind != SERVER_SECURITY {
            return;
        }
        self.encryption_method = block.le().ok().map(EncryptionMethod);
        self.encryption_level = block.le().ok().map(EncryptionLevel);
        let (Ok(random_len), Ok(_)) = (block.le::<u32>(), block.le::<u32>()) else { return };
        if block.bytes(random_len as usize).is_err() {
            return;
        }
        let Ok(version) = block.le::<u32>() else { return };
        self.certificate_kind = Some(CertificateKind(version & 0x7FFF_FFFF));
        self.has_permanent_certificate = Some(version & 0x8000_0000 == 0);
        self.certificate_count = if version & 0x7FFF_FFFF == 2 { block.le().ok() } else { Some(1) };
    }
}

/// Returns the version of a client by its build.
fn version(build: u32) -> String {
    let name = match build {
        419 => "RDP 4.0",
        2195 | 2221 => "RDP 5.0",
        2600 => "RDP 5.1",
        3790 => "RDP 5.2",
        6000 => "RDP 6.0",
        6001 => "RDP 6.1",
        6002 => "RDP 6.2",
        7600 => "RDP 7.0",
        7601 => "RDP 7.1",
        9200 => "RDP 8.0",
        9600 => "RDP 8.1",
        25_189 | 25_282 => "RDP 8.0 (Mac)",
        _ => return format!("client_build-{build}"),
    };
    name.to_owned()
}

/// Returns the language of a keyboard layout.
fn keyboard(layout: u32) -> String {
    let language = |number: u32| {
        let number = u16::try_from(number).ok()?;
        let place = LANGUAGES.binary_search_by_key(&number, |(number, _)| *number).ok()?;
        LANGUAGES.get(place).map(|(_, name)| *name)
    };
    match (language(layout), language(layout & 0xFFFF)) {
        (Some(name), _) => name.to_owned(),
        (None, Some(name)) => format!("{name} (Best Guess for {layout})"),
        (None, None) => format!("keyboard-{layout}"),
    }
}

/// Kinds of blocks (section 2.2.1.3.1).
const CLIENT_CORE: u16 = 0xC001;
const CLIENT_CHANNELS: u16 = 0xC003;
const SERVER_SECURITY: u16 = 0x0C02;

/// Calls a function with the kind and the content of each block of user data: what follows the key of the conference and a
/// length in PER.
fn blocks(conference: &[u8], key: &[u8; 4], mut each: impl FnMut(u16, Reader<'_>)) {
    let Some(at) = conference.windows(4).position(|octets| octets == key) else { return };
    let rest = conference.get(at + 4..).unwrap_or_default();
    let len_len = if rest.first().is_some_and(|octet| octet & 0x80 != 0) { 2 } else { 1 };
    let mut reader = Reader::new(rest.get(len_len..).unwrap_or_default());
    while let (Ok(kind), Ok(len)) = (reader.le::<u16>(), reader.le::<u16>()) {
        let Some(len) = usize::from(len).checked_sub(4) else { return };
        let Ok(block) = reader.bytes(len.min(reader.remaining_len())) else { return };
        each(kind, Reader::new(block));
    }
}

open! {
    /// Rows of RDP.
    pub(crate) enum Row { 0 = Connection }
}

/// Parser of RDP.
#[derive(Debug, Default)]
pub(crate) struct Rdp {
    /// True if the client has stated what it supports, and the server has not answered.
    is_asked: bool,
}

state! { struct Rdp { is_asked } }

impl PduParser for Rdp {
    const PROTOCOL: &'static Protocol = &PROTOCOL;
    const FRAMING: Option<Framing> = Some(Framing::length(2, Width::U16).keep(8 << 10));
    type Row = Row;

    fn asked_for(&self) -> Option<&'static Protocol> {
        self.is_asked.then_some(&tls::PROTOCOL)
    }

    fn pdu(&mut self, pdu: &Pdu<'_>, rows: &mut Rows<'_, Row>) -> Result<AfterPdu, Malformed> {
        if !rows.is_in_stream() {
            return Ok(AfterPdu::Done);
        }
        let [3, _, _, _, _, kind, rest @ ..] = pdu.bytes else { return Err(Malformed) };
        let content = rest.get(4 + 1..).unwrap_or_default();
        match (kind, pdu.from) {
            (0xE0, Role::Client) => {
                self.is_asked = true;
                rows.flow(|row: &mut Connection| row.request(content));
            }
            (0xD0, Role::Server) => {
                self.is_asked = false;
                let mut is_encrypted = false;
                rows.flow(|row: &mut Connection| {
                    row.confirmation(content);
                    is_encrypted = row.security.is_some_and(|security| security.0 != 0);
                });
                if is_encrypted {
                    return Ok(AfterPdu::Handover(Some(&tls::PROTOCOL)));
                }
            }
            // Data of X.224, then a message of MCS, whose tag has two octets.
            (0xF0, from) => {
                let [_, 0x7F, message @ ..] = rest else { return Ok(AfterPdu::Done) };
                let (key, tag) = match from {
                    Role::Client => (b"Duca", 0x65),
                    Role::Server => (b"McDn", 0x66),
                };
                let fields = Values(message).open(tag).ok_or(Malformed)?;
                let is_text = |value: &ber::Value<'_>| value.tag == tag::OCTET_STRING;
                let conference = fields.captured_values().filter(is_text).last().ok_or(Malformed)?.content;
                rows.flow(|row: &mut Connection| {
                    if from == Role::Client {
                        blocks(conference, key, |kind, block| row.client_block(kind, block));
                        return;
                    }
                    let at = conference.windows(4).position(|octets| octets == key);
                    // Before the key: its length and the number of user data.
                    let result = at.and_then(|at| conference.get(at.checked_sub(4)?));
                    row.conference_result = result.copied().map(ConferenceResult);
                    blocks(conference, key, |kind, block| row.server_block(kind, block));
                });
                return Ok(AfterPdu::Done);
            }
            _ => return Err(Malformed),
        }
        Ok(AfterPdu::More)
    }
}

#[cfg(test)]
pub(super) mod samples {
    use super::super::recognizers::samples::{Sample, client, datagram};
    use super::PROTOCOL;

    pub(in super::super) const SAMPLES: &[Sample] = &[
        client(
            &PROTOCOL,
            3389,
            b"\x03\x00\x00\x13\x0E\xE0\x00\x00\x00\x00\x00\x01\x00\x08\x00\x03\x00\x00\x00",
        ),
        client(&PROTOCOL, 13_389, b"\x03\x00\x00\x22\x1D\xE0\x00\x00\x00\x00\x00Cookie: mstshash=nemo\r\n"),
        client(&PROTOCOL, 3389, b"\x03\x00\x00\x0B\x06\xE0\x00\x00\x00\x00\x00"),
        datagram(&PROTOCOL, 3389, b"\xFF\xFF\xFF\xFF\x04\x00\x00\x01\x12\x34"),
    ];

    pub(in super::super) const LOOK_ALIKES: &[Sample] = &[
        client(
            &PROTOCOL,
            102,
            b"\x03\x00\x00\x16\x11\xE0\x00\x00\x00\x01\x00\xC0\x01\x0A\xC1\x02\x01\x00\xC2\x02\x01\x02",
        ),
        datagram(&PROTOCOL, 3389, b"\x00\x01\x00\x00\x21\x12\xA4\x42abcdefghijkl"),
    ];
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::ber::encoded;
    use crate::session::kit::KitEntry;
    use crate::session::kit::suite::{Case, check_stream};

    const CLIENT: Role = Role::Client;
    const SERVER: Role = Role::Server;

    fn tpkt(content: &[u8]) -> Vec<u8> {
        [&[3, 0][..], &(content.len() as u16 + 4).to_be_bytes(), content].concat()
    }

    fn connection(kind: u8, rest: &[u8]) -> Vec<u8> {
        tpkt(&[&[rest.len() as u8 + 6, kind, 0, 0, 0, 0, 0][..], rest].concat())
    }

    fn negotiation(kind: u8, number: u8) -> Vec<u8> {
        vec![kind, 0, 8, 0, number, 0, 0, 0]
    }

    fn request(cookie: &str, offered: u8) -> Vec<u8> {
        let line = format!("Cookie: mstshash={cookie}\r\n");
        connection(0xE0, &[line.as_bytes(), &negotiation(1, offered)].concat())
    }

    fn block(kind: u16, content: &[u8]) -> Vec<u8> {
        [&kind.to_le_bytes()[..], &(content.len() as u16 + 4).to_le_bytes(), content].concat()
    }

    fn utf16(text: &str, len: usize) -> Vec<u8> {
        let mut octets: Vec<_> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
        octets.resize(len, 0);
        octets
    }

    /// User data of T.124 after the key, in a message of MCS.
    fn conference(tag: u8, before: &[u8], key: &[u8], blocks: &[u8], parameters: &[u8]) -> Vec<u8> {
        let len = (blocks.len() as u16 | 0x8000).to_be_bytes();
        let data = encoded(4, &[before, key, &len, blocks]);
        let message = encoded(tag, &[parameters, &data]);
        tpkt(&[&[2, 0xF0, 0x80, 0x7F][..], &message].concat())
    }

    /// Version, desktop, depth, keyboard, build, name.
    fn core() -> Vec<u8> {
        let mut core = vec![4, 0, 8, 0];
        core.extend([0x80, 7, 0x38, 4, 1, 0xCA, 3, 0xAA, 9, 4, 0, 0, 0x80, 0x25, 0, 0]);
        core.extend(utf16("DESK-7", 32));
        core
    }

    fn initial(core: &[u8]) -> Vec<u8> {
        let channels = [&[2, 0, 0, 0][..], b"rdpdr\0\0\0\0\0\0\0cliprdr\0\0\0\0\0"].concat();
        let blocks = [block(0xC001, core), block(0xC002, &[0; 8]), block(0xC003, &channels)].concat();
        let domains =
            [&[4, 1, 1, 4, 1, 1, 1, 1, 0xFF][..], &encoded(0x30, &[&[2, 1, 34]]).repeat(3)].concat();
        conference(0x65, b"\0\x05\0\x14\x7C\0\x01\0", b"Duca", &blocks, &domains)
    }

    fn answer(certificate: u32) -> Vec<u8> {
        let security = [
            &[2, 0, 0, 0, 2, 0, 0, 0, 4, 0, 0, 0, 8, 0, 0, 0][..],
            b"rand",
            &certificate.to_le_bytes(),
            &[2, 0, 0, 0],
        ]
        .concat();
        let blocks = [block(0x0C01, &[4, 0, 8, 0]), block(0x0C02, &security)].concat();
        let before = b"\0\x05\0\x14\x7C\0\x01\0\x14\x76\x0A\x01\x01\0\x01\xC0\0";
        let parameters = [&[0x0A, 1, 0, 2, 1, 0][..], &encoded(0x30, &[&[2, 1, 34]])].concat();
        conference(0x66, before, b"McDn", &blocks, &parameters)
    }

    #[test]
    fn cases_of_connections() {
        let full = [core(), vec![0; 12 + 64 + 6], vec![1, 0], vec![16, 0, 7, 0, 3, 0]].concat();
        let cases = [
            Case {
                name: "TLS, which follows",
                turns: vec![(CLIENT, request("nemo", 3)), (SERVER, connection(0xD0, &negotiation(2, 2)))],
                rows: &[
                    "rdp cookie=nemo requested_security=List([Text(\"ssl\"), Text(\"hybrid\")]) security=hybrid",
                ],
            },
            Case {
                name: "a refusal",
                turns: vec![(CLIENT, request("nemo", 1)), (SERVER, connection(0xD0, &negotiation(3, 5)))],
                rows: &[
                    "rdp cookie=nemo requested_security=List([Text(\"ssl\")]) failure=hybrid_required_by_server",
                ],
            },
            Case {
                name: "RDP's own encryption",
                turns: vec![
                    (CLIENT, connection(0xE0, b"")),
                    (SERVER, connection(0xD0, b"")),
                    (CLIENT, initial(&full)),
                    (SERVER, answer(0x8000_0002)),
                ],
                rows: &[
                    "rdp security=rdp conference_result=success client_host=DESK-7 client_build=9600 keyboard_layout=1033 \
                    desktop_width=1920 desktop_height=1080 color_depth=32 channels=List([Text(\"rdpdr\"), Text(\"cliprdr\")]) \
                    encryption_method=128bit encryption_level=client_compatible certificate_kind=x509 certificate_count=2",
                ],
            },
            Case {
                name: "an old client, and a certificate for ever",
                turns: vec![
                    (CLIENT, connection(0xE0, b"")),
                    (SERVER, connection(0xD0, b"")),
                    (CLIENT, initial(&core())),
                    (SERVER, answer(1)),
                ],
                rows: &[
                    "rdp security=rdp conference_result=success client_host=DESK-7 client_build=9600 keyboard_layout=1033 \
                    desktop_width=1920 desktop_height=1080 color_depth=8 channels=List([Text(\"rdpdr\"), Text(\"cliprdr\")]) \
                    encryption_method=128bit encryption_level=client_compatible certificate_kind=proprietary certificate_count=1 \
                    has_permanent_certificate=Bool(true)",
                ],
            },
        ];
        check_stream(&KitEntry::of::<Rdp>(), &cases);
    }

    #[test]
    fn keyboards_have_languages() {
        assert!(LANGUAGES.is_sorted_by_key(|(number, _)| number));
        let names = [1033, 263_198, 0xFFFF_FFFF].map(keyboard);
        assert_eq!(names, ["English - United States", "Thai (Best Guess for 263198)", "keyboard-4294967295"]);
    }
}
