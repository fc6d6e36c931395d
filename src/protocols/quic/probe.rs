//! Recognition of QUIC.

use super::packet::{self, Body, CONNECTION_ID_LEN_MAX, FIRST_DATAGRAM_LEN_MIN, FIRST_ID_LEN_MIN, FIXED_BIT};
use super::version::Version;
use crate::codec::Reader;
use crate::session::{DatagramOpening, Role, Verdict};

/// UDP port of HTTP/3.
const PORT: u16 = 443;

/// Minimum length in octets of a packet with a short header: first octet, packet number, and the sample for header
/// protection.
const SHORT_LEN_MIN: usize = 21;

/// Number of consecutive equal octets that are not expected in encrypted data.
const RUN_LEN: usize = 5;

const UDP: u8 = 17;

/// Bits of the first octet in Google's older QUIC header that contain the length of the packet number.
const GOOGLE_NUMBER_LEN: u8 = 0x30;
/// Bits of the first octet in Google's older QUIC header that indicate a connection id of eight octets.
const GOOGLE_ID: u8 = 0x0c;

/// Recognizes QUIC by its first datagram. A long header of a known version whose fields have plausible lengths is QUIC.
/// Short headers resemble random data: on the port of HTTP/3 they are accepted as inconclusive, so that the port
/// decides; on other ports they are rejected.
pub(super) fn probe(opening: &DatagramOpening<'_>) -> Verdict {
    let Some(first) = opening.bytes.first().filter(|_| opening.ip_protocol == UDP) else {
        return Verdict::No;
    };
    if older_header(opening.bytes).is_some() {
        return if packet::is_long(*first) { by_port(opening) } else { sent_by(opening, Role::Client) };
    }
    if !packet::is_long(*first) {
        let is_short = if first & FIXED_BIT != 0 { opening.has_port(PORT) } else { is_google_short(opening) };
        let may_be = is_short && opening.len >= SHORT_LEN_MIN && may_be_encrypted(opening.bytes);
        return if may_be { Verdict::More } else { Verdict::No };
    }
    let Some(packet) = packet::next(&mut &*opening.bytes) else { return of_truncated(opening) };
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
        // The packet does not identify its sender, but the port may. A server responds without a token.
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
        Body::UnsupportedVersion if is_long_enough => by_port(opening),
        Body::UnsupportedVersion | Body::VersionNegotiation(_) => Verdict::No,
    }
}

/// Returns whether the octets of a datagram after the first one look random, as encrypted data and connection ids do:
/// in the first 64 octets of the datagram, they are not text alone, and contain no five equal octets in a row. Random
/// data fail this test rarely, even in thousands of connections.
fn may_be_encrypted(bytes: &[u8]) -> bool {
    let octets = bytes.get(1..64).or(bytes.get(1..)).unwrap_or_default();
    let has_run = octets.windows(RUN_LEN).any(|run| run.iter().all(|octet| Some(octet) == run.first()));
    let is_text = octets.iter().all(|octet| octet.is_ascii_graphic() || octet.is_ascii_whitespace());
    !has_run && !is_text
}

/// Returns whether `first` may be the first octet of a packet without a version field, as in a connection that began
/// before the capture.
pub(super) const fn may_be_short(first: u8) -> bool {
    !packet::is_long(first) && (first & FIXED_BIT != 0 || matches!(first & !GOOGLE_NUMBER_LEN, GOOGLE_ID | 0))
}

/// Returns the verdict for an incomplete packet, which the snap length may have truncated.
fn of_truncated(opening: &DatagramOpening<'_>) -> Verdict {
    let header = packet::LongHeader::read(&mut Reader::new(opening.bytes));
    let is_fair = header.is_some_and(|header| {
        header.has_fair_ids() && header.version.is_read() && header.first & FIXED_BIT != 0
    });
    if is_fair && opening.bytes.len() < opening.len { by_port(opening) } else { Verdict::No }
}

/// Returns a match for a packet that only `role` sends. The match reverses the roles of the session if they assign
/// another role to the sender.
fn sent_by(opening: &DatagramOpening<'_>, role: Role) -> Verdict {
    if opening.from == role { Verdict::Match } else { Verdict::MatchReversed }
}

/// Returns a match in which the end on port 443 is the server.
fn by_port(opening: &DatagramOpening<'_>) -> Verdict {
    match (opening.source_port, opening.destination_port) {
        (PORT, PORT) => Verdict::Match,
        (PORT, _) => sent_by(opening, Role::Server),
        (_, PORT) => sent_by(opening, Role::Client),
        _ => Verdict::Match,
    }
}

/// Returns whether a datagram may be a packet without a version field in one of Google's older versions: from the
/// client with a connection id of eight octets, from the server without an id.
fn is_google_short(opening: &DatagramOpening<'_>) -> bool {
    match opening.bytes.first().map(|first| first & !GOOGLE_NUMBER_LEN) {
        Some(GOOGLE_ID) => opening.destination_port == PORT,
        Some(0) => opening.source_port == PORT,
        _ => false,
    }
}

/// Returns the version and the destination connection id of a packet in a version that is not parsed and has a header
/// of its own. Google's versions up to 43: a connection id of eight octets, then the version, which only the client's
/// packets contain. Google's up to 46, drafts up to 21, and the first version of mvfst: a long header with both id
/// lengths in one octet. Google's later ones: the current format.
pub(super) fn older_header(bytes: &[u8]) -> Option<(Version, &[u8])> {
    const HAS_VERSION: u8 = 0x01;
    const HAS_ID: u8 = 0x08;
    let mut reader = Reader::new(bytes);
    let first = reader.be::<u8>().ok()?;
    if packet::is_long(first) {
        let version = Version(reader.be::<u32>().ok()?);
        let len = reader.be::<u8>().ok()?;
        let is_short = version.has_short_lengths();
        let len = if is_short && len >> 4 != 0 { (len >> 4) + 3 } else { len };
        let is_older = is_short || version.is_google();
        let is_fair = first & FIXED_BIT != 0 && is_older && usize::from(len) <= CONNECTION_ID_LEN_MAX;
        return is_fair.then_some((version, reader.bytes(len.into()).ok()?));
    }
    let id = reader.bytes(8).ok()?;
    let version = Version(reader.be::<u32>().ok()?);
    let has_both = first & (HAS_VERSION | HAS_ID) == HAS_VERSION | HAS_ID;
    (has_both && first & FIXED_BIT == 0 && version.is_google()).then_some((version, id))
}

#[cfg(test)]
mod tests {
    use super::super::vectors;
    use super::*;

    fn verdict(bytes: &[u8], ports: (u16, u16), from: Role) -> Verdict {
        probe(&DatagramOpening { from, ..DatagramOpening::first(bytes, ports.0, ports.1) })
    }

    #[test]
    fn each_end_is_identified_by_its_packets() {
        let client = vectors::octets(vectors::CLIENT_INITIAL_V2);
        let server = vectors::octets(vectors::SERVER_INITIAL_V2);
        let refusal = [&[0xc0, 0, 0, 0, 0, 0, 0][..], &[0, 0, 0, 1]].concat();
        let retry =
            vectors::octets("ff000000010008f067a5502a4262b5746f6b656e04a265ba2eff4d829058fb3f0f2496ba");
        for (bytes, sender) in [
            (&client, Role::Client),
            (&server, Role::Server),
            (&refusal, Role::Server),
            (&retry, Role::Server),
        ] {
            assert_eq!(verdict(bytes, (5000, 5001), sender), Verdict::Match, "{sender:?}");
            assert_eq!(verdict(bytes, (5000, 5001), sender.other()), Verdict::MatchReversed, "{sender:?}");
        }
        // A server also pads to 1200 octets; in that case the port decides.
        assert_eq!(verdict(&client, (443, 5001), Role::Client), Verdict::MatchReversed);
    }

    #[test]
    fn a_short_header_must_be_followed_by_random_octets() {
        let encrypted =
            b"\x45\x8f\xa0\x1c\x33\x92\x00\x00\x00\x00\x5e\x77\xd1\xb8\x0a\xc4\x29\xfe\x61\x13\x88\x2f";
        assert_eq!(verdict(encrypted, (5000, 443), Role::Client), Verdict::More);
        assert_eq!(verdict(encrypted, (5000, 5001), Role::Client), Verdict::No);
        // A DNS query whose identifier has the fixed bit: record type 0, for `example.com`.
        let query = b"\x41\x42\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x07example\x03com\x00\x00\x00\x00\x01";
        assert_eq!(verdict(query, (5000, 443), Role::Client), Verdict::No);
        assert_eq!(verdict(b"GET / of something over UDP", (5000, 443), Role::Client), Verdict::No);
    }

    #[test]
    fn each_part_of_the_header_is_checked() {
        let bytes = vectors::octets(vectors::CLIENT_INITIAL_V1);
        let with = |position: usize, octet: u8| {
            let mut changed = bytes.clone();
            changed[position] = octet;
            verdict(&changed, (5000, 5001), Role::Client)
        };
        assert_eq!(with(0, bytes[0]), Verdict::Match);
        // Header form bit, fixed bit, version, then the lengths of ids, token and packet.
        for (position, octet) in
            [(0, 0x40), (0, 0x80), (1, 7), (4, 2), (5, 21), (14, 200), (15, 0xff), (16, 0x7f)]
        {
            assert_eq!(with(position, octet), Verdict::No, "octet {position}");
        }
        let first = DatagramOpening::first(&bytes, 5000, 5001);
        assert_eq!(probe(&DatagramOpening { ip_protocol: 132, ..first }), Verdict::No);
        // A client's first datagram is long, but a snap length may have truncated it.
        let truncated = &bytes[..100];
        assert_eq!(probe(&DatagramOpening { bytes: truncated, len: bytes.len(), ..first }), Verdict::Match);
        assert_eq!(probe(&DatagramOpening { bytes: truncated, len: 100, ..first }), Verdict::No);
    }
}
