//! State of a QUIC connection during its establishment, and selection of the keys that decrypt its packets.

use super::crypto_stream::CryptoStream;
use super::keys::{Keys, Opened};
use super::packet::{CONNECTION_ID_LEN_MAX, FIRST_ID_LEN_MIN, Initial, LongHeader};
use super::version::Version;
use crate::base::fnv1a;
use crate::session::Role;

/// A connection id, copied into a buffer of fixed size.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct KeptId {
    len: u8,
    octets: [u8; CONNECTION_ID_LEN_MAX],
}

impl KeptId {
    /// Copies a connection id; `None` if it is longer than [`CONNECTION_ID_LEN_MAX`] octets.
    pub(super) fn new(id: &[u8]) -> Option<Self> {
        let mut kept = Self { len: id.len() as u8, ..Self::default() };
        kept.octets.get_mut(..id.len())?.copy_from_slice(id);
        Some(kept)
    }

    pub(super) fn as_slice(&self) -> &[u8] {
        self.octets.get(..self.len.into()).unwrap_or_default()
    }
}

/// Maximum number of Retry packets per connection whose connection id is adopted for key derivation. A client accepts
/// only one (RFC 9000 section 17.2.5.2), but that one need not be the first in the capture.
const RETRY_COUNT_MAX: u8 = 2;

/// Number of bits of a mark; three marks are 63 bits.
pub(super) const MARK_BITS: u32 = 21;

/// Returns a hash of a connection id, by which later packets of a connection are recognized. It need not be keyed: whoever
/// chooses ids can repeat them.
pub(super) fn mark_of(id: &[u8]) -> u64 {
    fnv1a(id) >> (u64::BITS - MARK_BITS)
}

/// State of the Initial packets that one end of a connection sends.
#[derive(Debug, Default)]
pub(super) struct Half {
    keys: Option<Keys>,
    /// The last version tried that differs from the connection's version, and its keys for this end's packets; after a
    /// change, the version before.
    other_keys: Option<(Version, Keys)>,
    /// Highest packet number that was decrypted from this end so far.
    largest: Option<u64>,
    pub(super) stream: CryptoStream,
    /// True if the last expected hello message of this end was received.
    pub(super) is_done: bool,
}

/// A connection for which the client's first packet was decrypted.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) version: Version,
    /// Version of the client's first packet.
    first_version: Version,
    /// Connection id from which the keys are derived: the destination id of the client's first packet, or the source id
    /// of the server's Retry.
    dcid: KeptId,
    /// Session role of the end that is the QUIC client. It differs from `Role::Client` if the capture began late and
    /// the session reversed the roles.
    pub(super) client: Role,
    /// States of the two ends: first the client, then the server.
    halves: [Half; 2],
    /// [Marks](mark_of) of the source ids in the last Initial packets of both ends, client first; zero before.
    pub(super) source_marks: [u64; 2],
    /// True if the server sent a Version Negotiation packet.
    pub(super) is_refused: bool,
    /// True if one end changed to another version (RFC 9368), which is accepted once per connection.
    has_changed: bool,
    retry_count: u8,
}

impl Connection {
    /// Starts a connection with a client's first Initial packet. Returns the connection and the decrypted packet;
    /// `None` for any other packet.
    pub(super) fn begin(header: &LongHeader<'_>, packet: &Initial<'_>, from: Role) -> Option<(Self, Opened)> {
        if header.dcid.len() < FIRST_ID_LEN_MIN {
            return None;
        }
        let keys = Keys::derive(header.version.rules()?, header.dcid, Role::Client)?;
        let opened = keys.open(packet, None)?;
        let client = Half { keys: Some(keys), largest: Some(opened.number), ..Half::default() };
        let connection = Self {
            version: header.version,
            first_version: header.version,
            dcid: KeptId::new(header.dcid)?,
            client: from,
            halves: [client, Half::default()],
            source_marks: [0; 2],
            is_refused: false,
            has_changed: false,
            retry_count: 0,
        };
        Some((connection, opened))
    }

    /// Maps the session role of a sender to its role in the QUIC connection.
    pub(super) fn end(&self, from: Role) -> Role {
        if from == self.client { Role::Client } else { Role::Server }
    }

    pub(super) fn half(&mut self, end: Role) -> &mut Half {
        end.of_mut(&mut self.halves)
    }

    /// Returns whether no more handshake messages will arrive in Initial packets.
    pub(super) fn is_done(&self) -> bool {
        self.halves.iter().all(|half| half.is_done)
    }

    /// Returns whether a packet has a version and the destination of the client's first packets, so that it does not begin
    /// another connection.
    pub(super) fn is_of_client(&self, header: &LongHeader<'_>, from: Role) -> bool {
        [self.version, self.first_version].contains(&header.version)
            && self.dcid() == header.dcid
            && self.client == from
    }

    /// Decrypts a packet if it belongs to this connection. Either end may change once to a version that its peer
    /// supports too (RFC 9368); the connection id for key derivation remains. Packets with the version before may follow.
    ///
    /// Keys are derived once for each connection id and version, whether or not they decrypt the packet.
    pub(super) fn open(
        &mut self,
        header: &LongHeader<'_>,
        packet: &Initial<'_>,
        from: Role,
    ) -> Option<Opened> {
        let end = self.end(from);
        let is_changed = header.version != self.version;
        if is_changed && self.has_changed {
            let half = end.of_mut(&mut self.halves);
            let (_, keys) = half.other_keys.as_ref().filter(|(version, _)| *version == header.version)?;
            return keys.open(packet, half.largest);
        }
        let derive = || Keys::derive(header.version.rules()?, self.dcid.as_slice(), end);
        let half = end.of_mut(&mut self.halves);
        let known = match &half.other_keys {
            Some((version, keys)) if is_changed && *version == header.version => Some(keys),
            _ => half.keys.as_ref().filter(|_| !is_changed),
        };
        let keys = known.cloned().map_or_else(derive, Some)?;
        let opened = keys.open(packet, half.largest);
        match (is_changed, opened.is_some()) {
            (false, _) => half.keys = Some(keys),
            (true, false) => half.other_keys = Some((header.version, keys)),
            (true, true) => {
                let earlier = std::mem::replace(&mut self.version, header.version);
                self.has_changed = true;
                for half in &mut self.halves {
                    half.other_keys = half.keys.take().map(|keys| (earlier, keys));
                }
                end.of_mut(&mut self.halves).keys = Some(keys);
            }
        }
        let opened = opened?;
        let half = end.of_mut(&mut self.halves);
        half.largest = half.largest.max(Some(opened.number));
        Some(opened)
    }

    /// Returns the connection id from which keys are derived: the destination id of the client's first packet, or the
    /// source id of the server's last Retry.
    pub(super) fn dcid(&self) -> &[u8] {
        self.dcid.as_slice()
    }

    /// Processes a Retry packet with source id `dcid`, to which the client sends the same hello again: discards all
    /// keys, so that new ones are derived from `dcid`.
    pub(super) fn retry(&mut self, dcid: KeptId) {
        if self.retry_count >= RETRY_COUNT_MAX {
            return;
        }
        self.retry_count += 1;
        self.dcid = dcid;
        for half in &mut self.halves {
            (half.keys, half.other_keys) = (None, None);
        }
    }

    /// Returns the memory allocated for received CRYPTO data in octets, excluding the connection's own size.
    pub(super) fn heap_len(&self) -> usize {
        self.halves.iter().map(|half| half.stream.heap_len()).sum()
    }
}
