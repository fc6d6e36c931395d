//! Tells QUIC from whatever else is sent in datagrams.

use super::packet::{self, Body, FIRST_DATAGRAM_LEN_MIN, FIRST_ID_LEN_MIN, FIXED_BIT};
use super::version::Version;
use crate::base::Reader;
use crate::session::{DatagramOpening, Role, Verdict};

/// The port of HTTP/3.
const PORT: u16 = 443;

/// The fewest octets of a packet with a short header: an octet, a packet number, and what masks the header.
const SHORT_LEN_MIN: usize = 21;

const UDP: u8 = 17;

/// A long header of a known version whose parts have fair lengths is QUIC. Short headers look like noise: on the port of HTTP/3
/// they may be, elsewhere they are not.
pub(super) fn probe(opening: &DatagramOpening<'_>) -> Verdict {
    let Some(first) = opening.bytes.first().filter(|_| opening.ip_protocol == UDP) else {
        return Verdict::No;
    };
    if google_version(opening.bytes).is_some() {
        return sent_by(opening, Role::Client);
    }
    if !packet::is_long(*first) {
        let may_be = first & FIXED_BIT != 0 && opening.len >= SHORT_LEN_MIN && opening.has_port(PORT);
        return if may_be { Verdict::More } else { Verdict::No };
    }
    let Some(packet) = packet::next(&mut &*opening.bytes) else { return cut(opening) };
    let header = packet.header;
    if !header.has_fair_ids() {
        return Verdict::No;
    }
    if let Body::VersionNegotiation(versions) = packet.body {
        let (versions, rest) = versions.as_chunks::<4>();
        let is_known = versions.iter().any(|version| Version(u32::from_be_bytes(*version)).is_known());
        return if is_known && rest.is_empty() { sent_by(opening, Role::Server) } else { Verdict::No };
    }
    if first & FIXED_BIT == 0 || !header.version.is_known() {
        return Verdict::No;
    }
    let is_long_enough = opening.len >= FIRST_DATAGRAM_LEN_MIN;
    match packet.body {
        // Who sends it is not said; the port may tell. A server answers without a token.
        Body::Initial(initial) => {
            let may_be_client = is_long_enough && header.dcid.len() >= FIRST_ID_LEN_MIN;
            if !may_be_client && !initial.token.is_empty() {
                return Verdict::No;
            }
            let is_server = !may_be_client
                || initial.token.is_empty()
                    && opening.source_port == PORT
                    && opening.destination_port != PORT;
            sent_by(opening, if is_server { Role::Server } else { Role::Client })
        }
        Body::Retry { .. } => sent_by(opening, Role::Server),
        Body::ZeroRtt => sent_by(opening, Role::Client),
        Body::Handshake => by_port(opening),
        Body::Unread if is_long_enough => by_port(opening),
        Body::Unread | Body::VersionNegotiation(_) => Verdict::No,
    }
}

/// What a packet that ends early says: a snap length may have cut it.
fn cut(opening: &DatagramOpening<'_>) -> Verdict {
    let header = packet::LongHeader::read(&mut Reader::new(opening.bytes));
    let is_fair = header.is_some_and(|header| {
        header.has_fair_ids() && header.version.is_read() && header.first & FIXED_BIT != 0
    });
    if is_fair && opening.bytes.len() < opening.len { by_port(opening) } else { Verdict::No }
}

/// A match; its roles are turned over if the sender is not whom the session takes it for.
fn sent_by(opening: &DatagramOpening<'_>, role: Role) -> Verdict {
    if opening.from == role { Verdict::Match } else { Verdict::MatchReversed }
}

/// A match of which the port tells who is the server.
fn by_port(opening: &DatagramOpening<'_>) -> Verdict {
    match (opening.source_port, opening.destination_port) {
        (PORT, PORT) => Verdict::Match,
        (PORT, _) => sent_by(opening, Role::Server),
        (_, PORT) => sent_by(opening, Role::Client),
        _ => Verdict::Match,
    }
}

/// The version and the connection id, if it is a client's packet in the header that Google had up to version 43: eight octets
/// of connection id, then the version.
pub(super) fn google_version(bytes: &[u8]) -> Option<(Version, &[u8])> {
    const HAS_VERSION: u8 = 0x01;
    const HAS_ID: u8 = 0x08;
    let mut reader = Reader::new(bytes);
    let flags = reader.u8()?;
    let id = reader.bytes(8)?;
    let version = Version(reader.u32()?);
    let is_first = flags & (HAS_VERSION | HAS_ID) == HAS_VERSION | HAS_ID && flags & 0xc0 == 0;
    (is_first && version.is_google()).then_some((version, id))
}
