//! Parser of the datagrams of a QUIC flow, up to the last Initial packet of the handshake.

use super::connection::{Connection, KeptId, MARK_BITS, mark_of};
use super::frames::{Frame, Frames};
use super::keys::{self, Opened};
use super::message::{
    ClientHello, Close, Message, Retry, ServerHello, UnsupportedVersion, VersionNegotiation,
};
use super::packet::{
    self, Body, ConnectionId, FIRST_DATAGRAM_LEN_MIN, FIRST_ID_LEN_MIN, Initial, LongHeader,
};
use super::probe::{may_be_short, older_header};
use super::transport_parameters::TransportParameters;
use super::version::{Version, Versions};
use crate::checkpoint::state;
use crate::protocols::tls;
use crate::session::{Datagram, DatagramOpening, Fault, Out, Parser, Progress, Remains, Role};

/// Number of consecutive datagrams without anything to parse after which parsing of the flow stops. 0-RTT packets
/// (early data) count as something to parse.
pub const SILENT_COUNT_MAX: u8 = 16;

/// Number of Initial packets of a flow that cannot be decrypted, after which parsing of the flow stops.
pub const FAILED_COUNT_MAX: u8 = 16;

/// Maximum number of successive connections of a flow, and attempts, that are parsed. After an established one, a packet that
/// could not be decrypted counts as one too.
pub const CONNECTION_COUNT_MAX: u8 = 64;

/// Maximum number of QUIC packets that are examined per datagram: one datagram may contain four types of packets.
const PACKET_COUNT_MAX: u32 = 8;

/// Handshake message type of ClientHello (RFC 8446 section 4).
const CLIENT_HELLO: u8 = 1;
/// Handshake message type of ServerHello (RFC 8446 section 4).
const SERVER_HELLO: u8 = 2;

/// Parser of the datagrams of one QUIC flow; see the [module](super).
#[derive(Debug, Default)]
pub struct QuicParser {
    connection: Option<Box<Connection>>,
    connection_count: u8,
    silent_count: u8,
    failed_count: u8,
    /// True if a connection with a version that is not parsed was reported.
    is_unsupported: bool,
    is_closed: bool,
}

// The keys of a connection are not saved.
state! {
    struct QuicParser { connection_count, silent_count, failed_count, is_unsupported, is_closed, .. connection }
}

/// Fields of an Initial packet that are copied to the messages parsed from it.
#[derive(Clone, Copy)]
struct At<'m> {
    transaction: u64,
    header: LongHeader<'m>,
    token_len: usize,
}

impl Parser for QuicParser {
    type Message<'m> = Message<'m>;

    crate::session::saved!();

    fn datagram(&mut self, datagram: &Datagram<'_>, out: Out<'_, Self>) -> Result<Progress, Fault> {
        if let Some((version, dcid)) = older_header(datagram.bytes).filter(|_| self.connection.is_none()) {
            let transaction = self.transaction();
            out(unsupported_version(transaction, version, dcid, &[]));
            return Ok(Progress::Done);
        }
        let mut rest = datagram.bytes;
        let mut is_silent = true;
        let mut count = 0;
        let (mut first_dcid, mut has_failed) = (None, false);
        while count < PACKET_COUNT_MAX
            && let Some(packet) = packet::next(&mut rest)
        {
            count += 1;
            // RFC 9000 section 12.2: packets whose destination id differs from that of the first are ignored.
            if *first_dcid.get_or_insert(packet.header.dcid) != packet.header.dcid {
                break;
            }
            let is_initial = matches!(packet.body, Body::Initial(_));
            // The keys that did not decrypt one packet do not decrypt the next one either.
            if is_initial && has_failed {
                continue;
            }
            let is_news = self.packet(&packet.header, &packet.body, datagram, out)?;
            has_failed |= is_initial && !is_news;
            is_silent &= !is_news;
        }
        if count == 0 && self.connection.is_none() && !may_be_quic(datagram) {
            return Err(Fault::new("not_quic"));
        }
        self.silent_count = if is_silent { self.silent_count.saturating_add(1) } else { 0 };
        let is_done = self.is_closed
            || self.silent_count >= SILENT_COUNT_MAX
            || self.failed_count >= FAILED_COUNT_MAX
            || self.connection_count > CONNECTION_COUNT_MAX
            || self.connection.as_ref().is_some_and(|connection| connection.is_done());
        // The keys of the server's packets are derived from the client's first packet, which may be captured later.
        let is_early = has_failed && datagram.from == Role::Server && self.connection.is_none();
        Ok(match (is_done, is_early) {
            (true, _) => Progress::Done,
            (false, true) => Progress::Early,
            (false, false) => Progress::Took(0),
        })
    }

    fn remains(&self) -> Option<Remains> {
        // Packets that cannot be decrypted, and a parser that found no connection, count too.
        let failed_count = self.failed_count.max(u8::from(self.connection.is_none()));
        let count = self.connection_count.saturating_add(failed_count);
        (count < CONNECTION_COUNT_MAX).then(|| Remains {
            count,
            mark: self.connection.as_ref().map_or(0, |connection| {
                let [client, server] = connection.source_marks;
                mark_of(connection.dcid()) << (2 * MARK_BITS) | client << MARK_BITS | server
            }),
        })
    }

    fn succeed(&mut self, remains: Remains) {
        self.connection_count = remains.count;
    }

    fn heap_len(&self) -> usize {
        self.connection.as_ref().map_or(0, |connection| size_of::<Connection>() + connection.heap_len())
    }
}

impl QuicParser {
    /// Returns the index of the current connection in its flow, starting at zero.
    fn transaction(&self) -> u64 {
        self.connection_count.saturating_sub(1).into()
    }

    /// Processes a packet. Returns whether the packet contained anything to parse, or the next datagram may.
    fn packet(
        &mut self,
        header: &LongHeader<'_>,
        body: &Body<'_>,
        datagram: &Datagram<'_>,
        out: Out<'_, Self>,
    ) -> Result<bool, Fault> {
        match body {
            Body::Initial(initial) => Ok(self.initial(header, initial, datagram, out)),
            Body::Retry { token, tagged, tag } => Ok(self.retry(header, token, tagged, *tag, out)),
            Body::VersionNegotiation(versions) => Ok(self.version_negotiation(header, versions, out)),
            Body::ZeroRtt => Ok(true),
            Body::Handshake => Ok(false),
            Body::UnsupportedVersion => {
                let is_long_enough = datagram.len >= FIRST_DATAGRAM_LEN_MIN && header.has_fair_ids();
                if self.connection.is_none() && !header.version.is_known() && !is_long_enough {
                    return Err(Fault::new("not_quic"));
                }
                let is_news = !self.is_unsupported && self.connection.is_none();
                if is_news {
                    self.is_unsupported = true;
                    // The server may reject it.
                    self.connection_count = self.connection_count.saturating_add(1);
                    let LongHeader { version, dcid, scid, .. } = *header;
                    out(unsupported_version(self.transaction(), version, dcid, scid));
                }
                Ok(is_news)
            }
        }
    }

    fn initial(
        &mut self,
        header: &LongHeader<'_>,
        initial: &Initial<'_>,
        datagram: &Datagram<'_>,
        out: Out<'_, Self>,
    ) -> bool {
        let from = datagram.from;
        let Some(opened) = self.open(header, initial, datagram) else {
            self.failed_count = self.failed_count.saturating_add(1);
            return false;
        };
        let at = At { transaction: self.transaction(), header: *header, token_len: initial.token.len() };
        let Some(connection) = self.connection.as_deref_mut() else { return false };
        let end = connection.end(from);
        *end.of_mut(&mut connection.source_marks) = mark_of(header.scid);
        for frame in Frames::new(opened.frames()) {
            match frame {
                Frame::Crypto { offset, bytes } => crypto(connection, from, offset, bytes, &at, out),
                Frame::Close { error_code, frame_type, reason } => {
                    let meta = (at.transaction, header.version);
                    out(Message::Close(Close::new(meta, (error_code, frame_type), reason)));
                    self.is_closed = true;
                }
            }
        }
        true
    }

    /// Decrypts an Initial packet of the current connection, or of a new connection, which it starts.
    fn open(
        &mut self,
        header: &LongHeader<'_>,
        initial: &Initial<'_>,
        datagram: &Datagram<'_>,
    ) -> Option<Opened> {
        let from = datagram.from;
        if let Some(connection) = self.connection.as_deref_mut() {
            let is_other = connection.is_refused && header.version != connection.version;
            if !is_other && let Some(opened) = connection.open(header, initial, from) {
                return Some(opened);
            }
            if connection.is_of_client(header, from) {
                return None;
            }
        }
        // RFC 9000 section 14.1: a server discards shorter datagrams. Decryption costs far more than their octets would
        // justify.
        if datagram.len < FIRST_DATAGRAM_LEN_MIN {
            return None;
        }
        let (connection, opened) = Connection::begin(header, initial, from)?;
        self.connection = Some(Box::new(connection));
        self.connection_count = self.connection_count.saturating_add(1);
        Some(opened)
    }

    fn retry(
        &mut self,
        header: &LongHeader<'_>,
        token: &[u8],
        tagged: &[u8],
        tag: [u8; packet::TAG_LEN],
        out: Out<'_, Self>,
    ) -> bool {
        let (transaction, rules) = (self.transaction(), header.version.rules());
        let mut is_genuine = None;
        if let Some(connection) = self.connection.as_deref_mut() {
            if connection.dcid() == header.scid {
                // Already reported: the server repeats it, as the client did.
                return true;
            }
            is_genuine =
                rules.and_then(|rules| keys::is_genuine_retry(rules, connection.dcid(), tagged, tag));
            if is_genuine != Some(false)
                && let Some(scid) = KeptId::new(header.scid)
            {
                connection.retry(scid);
            }
        }
        out(Message::Retry(Retry {
            transaction,
            quic_version: header.version,
            dcid: ConnectionId(header.dcid),
            scid: ConnectionId(header.scid),
            token_len: token.len(),
            is_genuine,
        }));
        true
    }

    fn version_negotiation(&mut self, header: &LongHeader<'_>, versions: &[u8], out: Out<'_, Self>) -> bool {
        if let Some(connection) = self.connection.as_deref_mut()
            && std::mem::replace(&mut connection.is_refused, true)
        {
            return true;
        }
        out(Message::VersionNegotiation(VersionNegotiation {
            transaction: self.transaction(),
            dcid: ConnectionId(header.dcid),
            scid: ConnectionId(header.scid),
            versions: Versions(versions),
        }));
        true
    }
}

/// Inserts octets of a CRYPTO frame at their offset into the handshake stream of the end that sent them, and reports
/// each hello message that is complete.
fn crypto(
    connection: &mut Connection,
    from: Role,
    offset: u64,
    bytes: &[u8],
    at: &At<'_>,
    out: Out<'_, QuicParser>,
) {
    let end = connection.end(from);
    let half = connection.half(end);
    half.stream.insert(offset, bytes);
    while let Some(message) = half.stream.message() {
        let then = match (end, message.first()) {
            (Role::Client, Some(&CLIENT_HELLO)) | (Role::Server, Some(&SERVER_HELLO)) => {
                hello(message, end, at, out)
            }
            _ => Then::More,
        };
        let len = message.len();
        half.stream.take(len);
        match then {
            Then::More => {}
            Then::Done => half.is_done = true,
            Then::Again => {
                connection.half(Role::Client).is_done = false;
                return;
            }
        }
    }
}

/// Messages to expect from the ends of a connection after a handshake message.
enum Then {
    More,
    /// The end that sent the message sends no more parseable messages in Initial packets.
    Done,
    /// The client sends another ClientHello, because the server requested it.
    Again,
}

/// Reports the hello of an end.
fn hello(message: &[u8], end: Role, at: &At<'_>, out: Out<'_, QuicParser>) -> Then {
    let Some((_, body)) = message.split_first_chunk::<4>() else { return Then::More };
    let LongHeader { version, dcid, scid, .. } = at.header;
    let (dcid, scid) = (ConnectionId(dcid), ConnectionId(scid));
    match end {
        Role::Client => {
            let Some(hello) = tls::ClientHello::parse(body, tls::Transport::Quic) else { return Then::Done };
            let parameters = hello.quic_transport_parameters();
            out(Message::ClientHello(ClientHello {
                transaction: at.transaction,
                quic_version: version,
                dcid,
                scid,
                token_len: at.token_len,
                hello,
                transport_parameters: parameters.and_then(|all| TransportParameters::of(all, version)),
            }));
            Then::Done
        }
        Role::Server => {
            let Some(hello) = tls::ServerHello::parse(body, None) else { return Then::Done };
            let then = if hello.is_hello_retry_request() { Then::Again } else { Then::Done };
            out(Message::ServerHello(ServerHello {
                transaction: at.transaction,
                quic_version: version,
                dcid,
                scid,
                hello,
            }));
            then
        }
    }
}

fn unsupported_version<'m>(
    transaction: u64,
    quic_version: Version,
    dcid: &'m [u8],
    scid: &'m [u8],
) -> Message<'m> {
    let (dcid, scid) = (ConnectionId(dcid), ConnectionId(scid));
    Message::UnsupportedVersion(UnsupportedVersion { transaction, quic_version, dcid, scid })
}

/// Returns whether a datagram begins another connection than the one with a mark: an Initial packet, in a datagram that is
/// long enough, to a connection id of neither end of that connection.
pub(super) fn begins_another(opening: &DatagramOpening<'_>, mark: u64) -> bool {
    let packet = packet::next(&mut &*opening.bytes).filter(|_| opening.len >= FIRST_DATAGRAM_LEN_MIN);
    packet.is_some_and(|packet| {
        let is_known =
            |own: u64| (0..3).any(|place| mark >> (place * MARK_BITS) & ((1 << MARK_BITS) - 1) == own);
        matches!(packet.body, Body::Initial(_))
            && packet.header.dcid.len() >= FIRST_ID_LEN_MIN
            && !is_known(mark_of(packet.header.dcid))
    })
}

/// Returns whether a datagram without a packet to parse may belong to a QUIC connection that began before the capture.
fn may_be_quic(datagram: &Datagram<'_>) -> bool {
    let Some(first) = datagram.bytes.first() else { return true };
    if packet::is_long(*first) { datagram.is_truncated() } else { may_be_short(*first) }
}
