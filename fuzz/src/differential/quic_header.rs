//! The first packet of a datagram, read by the parser of QUIC and by `quinn-proto`: Version Negotiation, Retry, and
//! Initial packets with a ClientHello, with arbitrary connection ids and tokens.

use arbitrary::{Arbitrary, Result, Unstructured};
use bytes::BytesMut;
use flowgauge::base::Timestamp;
use flowgauge::protocols::quic::{Message, QuicParser};
use flowgauge::session::{Datagram, Parser, Role};
use quinn_proto::{FixedLengthConnectionIdParser, PartialDecode, ProtectedHeader};

use crate::targets::input::{Octets, structured};
use crate::targets::session_quic::{Sealing, seal};

enum Input<'a> {
    Any { from: Role, octets: &'a [u8] },
    Initial { is_v2: bool, number: u8, dcid: &'a [u8], scid: &'a [u8], token: &'a [u8] },
}

impl<'a> Arbitrary<'a> for Input<'a> {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        let kind = u8::arbitrary(u)?;
        if kind & 1 == 0 {
            let from = if kind & 2 == 0 { Role::Client } else { Role::Server };
            let len = u.len();
            return Ok(Self::Any { from, octets: u.bytes(len)? });
        }
        let number = u8::arbitrary(u)?;
        let mut id = || -> Result<&'a [u8]> {
            let Octets(octets) = Octets::arbitrary(u)?;
            Ok(&octets[..octets.len().min(20)])
        };
        // The id that a client generates has at least eight octets (RFC 9000 section 7.2); packets with shorter ids are
        // not decrypted.
        let (dcid, scid) = (id()?, id()?);
        let dcid = if dcid.len() < 8 { b"8octets!" } else { dcid };
        let Octets(token) = Octets::arbitrary(u)?;
        Ok(Self::Initial { is_v2: kind & 2 != 0, number, dcid, scid, token: &token[..token.len().min(300)] })
    }
}

/// A ClientHello with one cipher suite and without extensions.
const HELLO: [u8; 45] = {
    let mut hello = [b'r'; 45];
    let head = [1, 0, 0, 41, 3, 3];
    let tail = [0, 0, 2, 0x13, 1, 1, 0];
    let mut at = 0;
    while at < head.len() {
        hello[at] = head[at];
        at += 1;
    }
    at = 0;
    while at < tail.len() {
        hello[38 + at] = tail[at];
        at += 1;
    }
    hello
};

/// Compared fields of a packet.
#[derive(Debug, PartialEq)]
enum Facts {
    Negotiation { dcid: Vec<u8>, scid: Vec<u8> },
    Retry { version: u32, dcid: Vec<u8>, scid: Vec<u8> },
    Initial { version: u32, dcid: Vec<u8>, scid: Vec<u8>, token_len: usize },
}

fn ours(from: Role, octets: &[u8]) -> Vec<Facts> {
    let mut all = Vec::new();
    let mut take = |message: Message<'_>| match message {
        Message::VersionNegotiation(it) => {
            all.push(Facts::Negotiation { dcid: it.dcid.0.to_vec(), scid: it.scid.0.to_vec() });
        }
        Message::Retry(it) => all.push(Facts::Retry {
            version: it.quic_version.0,
            dcid: it.dcid.0.to_vec(),
            scid: it.scid.0.to_vec(),
        }),
        Message::ClientHello(it) => all.push(Facts::Initial {
            version: it.quic_version.0,
            dcid: it.dcid.0.to_vec(),
            scid: it.scid.0.to_vec(),
            token_len: it.token_len,
        }),
        _ => {}
    };
    let _ = QuicParser::default().datagram(&Datagram::new(octets, from, Timestamp::ZERO), &mut take);
    all
}

/// Returns the first packet and its length if its header is valid. Packets of other kinds have no compared fields.
fn theirs(octets: &[u8]) -> Option<(Option<Facts>, usize)> {
    let ids = FixedLengthConnectionIdParser::new(8);
    let mut cursor = std::io::Cursor::new(BytesMut::from(octets));
    let header = ProtectedHeader::decode(&mut cursor, &ids, &[1], true).ok()?;
    let (packet, _) = PartialDecode::new(BytesMut::from(octets), &ids, &[1], true).ok()?;
    let facts = match header {
        ProtectedHeader::VersionNegotiate { dst_cid, src_cid, .. } => {
            Some(Facts::Negotiation { dcid: dst_cid.to_vec(), scid: src_cid.to_vec() })
        }
        ProtectedHeader::Retry { dst_cid, src_cid, version } => {
            Some(Facts::Retry { version, dcid: dst_cid.to_vec(), scid: src_cid.to_vec() })
        }
        ProtectedHeader::Initial(initial) => Some(Facts::Initial {
            version: initial.version,
            dcid: initial.dst_cid.to_vec(),
            scid: initial.src_cid.to_vec(),
            token_len: initial.token_pos.len(),
        }),
        _ => None,
    };
    Some((facts, packet.len()))
}

pub fn run(data: &[u8]) {
    match structured::<Input<'_>>(data) {
        Some(Input::Any { from, octets }) => any(from, octets),
        Some(Input::Initial { is_v2, number, dcid, scid, token }) => {
            let crypto = [&[6, 0, HELLO.len() as u8][..], &HELLO].concat();
            let sealing = Sealing { is_server: false, is_v2, number, key_cid: dcid, dcid, scid, token };
            let datagram = seal(&sealing, &crypto);
            let version = if is_v2 { 0x6b33_43cf } else { 1 };
            let (dcid, scid) = (dcid.to_vec(), scid.to_vec());
            let expected = Facts::Initial { version, dcid, scid, token_len: token.len() };
            assert_eq!(ours(Role::Client, &datagram).first(), Some(&expected));
            if !is_v2 {
                assert_eq!(theirs(&datagram), Some((Some(expected), datagram.len())));
            }
        }
        None => {}
    }
}

fn any(from: Role, octets: &[u8]) {
    // By design: the parser reads or skips versions other than 1; quinn-proto stops at the first one.
    if !matches!(octets.get(1..5), Some([0, 0, 0, 0 | 1])) {
        return;
    }
    let ours = ours(from, octets);
    match theirs(octets) {
        // Packets that cannot be decrypted, and those after them in the datagram, are not compared.
        Some((None | Some(Facts::Initial { .. }), _)) => {}
        // By design: the parser requires the tag of 16 octets at the end of a Retry, which quinn-proto checks later.
        Some((Some(Facts::Retry { .. }), _)) if ours.is_empty() => {}
        Some((Some(facts), _)) => assert_eq!(ours.first(), Some(&facts), "{octets:02x?}"),
        None => {
            // By design: the parser accepts ids of any length in Version Negotiation (RFC 8999 section 5.1).
            let is_read = |facts: &Facts| match facts {
                Facts::Negotiation { dcid, scid } => dcid.len() <= 20 && scid.len() <= 20,
                Facts::Retry { version, .. } | Facts::Initial { version, .. } => *version == 1,
            };
            assert!(!ours.first().is_some_and(is_read), "{ours:?} of {octets:02x?}");
        }
    }
}
