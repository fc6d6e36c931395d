//! State of the beginning of a connection, and selection of the keys that decrypt its packets.

use super::crypto_stream::CryptoStream;
use super::keys::{Keys, Opened};
use super::packet::{CONNECTION_ID_LEN_MAX, FIRST_ID_LEN_MIN, Initial, LongHeader};
use super::version::Version;
use crate::session::Role;

/// A stored connection id.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct KeptId {
    len: u8,
    octets: [u8; CONNECTION_ID_LEN_MAX],
}

impl KeptId {
    /// Stores an id; `None` if it is longer than the versions allow.
    pub(super) fn new(id: &[u8]) -> Option<Self> {
        let mut kept = Self { len: id.len() as u8, ..Self::default() };
        kept.octets.get_mut(..id.len())?.copy_from_slice(id);
        Some(kept)
    }

    pub(super) fn as_slice(&self) -> &[u8] {
        self.octets.get(..self.len.into()).unwrap_or_default()
    }
}

/// Maximum number of Retry packets that a connection follows. A client follows one (RFC 9000 section 17.2.5.2), which
/// need not be the first that was captured.
const RETRY_COUNT_MAX: u8 = 2;

/// State of the Initial packets of one end.
#[derive(Debug, Default)]
pub(super) struct Half {
    keys: Option<Keys>,
    /// Keys of the last other version that was tried.
    other_keys: Option<(Version, Keys)>,
    /// Highest packet number so far.
    largest: Option<u64>,
    pub(super) stream: CryptoStream,
    /// True if its last hello was received.
    pub(super) is_done: bool,
}

/// A connection for which the client's first packet was decrypted.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) version: Version,
    /// Connection id from which the keys are derived: the client's first, or the one of a Retry.
    dcid: KeptId,
    /// Role of the client in the session, which may be reversed if the capture began late.
    pub(super) client: Role,
    /// State of the client and of the server.
    halves: [Half; 2],
    /// True if the server requested another version.
    pub(super) is_refused: bool,
    /// True if an end changed to another version, which happens once.
    has_changed: bool,
    retry_count: u8,
}

impl Connection {
    /// Starts a connection with a client's first packet. Returns it with the decrypted packet; `None` for any other
    /// packet.
    pub(super) fn begin(header: &LongHeader<'_>, packet: &Initial<'_>, from: Role) -> Option<(Self, Opened)> {
        if header.dcid.len() < FIRST_ID_LEN_MIN {
            return None;
        }
        let keys = Keys::derive(header.version.rules()?, header.dcid, Role::Client)?;
        let opened = keys.open(packet, None)?;
        let client = Half { keys: Some(keys), largest: Some(opened.number), ..Half::default() };
        let connection = Self {
            version: header.version,
            dcid: KeptId::new(header.dcid)?,
            client: from,
            halves: [client, Half::default()],
            is_refused: false,
            has_changed: false,
            retry_count: 0,
        };
        Some((connection, opened))
    }

    /// Maps a role of the session to an end of the connection.
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

    /// Decrypts a packet if it belongs to this connection. Either end may change once to a version that its peer
    /// supports too (RFC 9368); the connection id for key derivation remains.
    ///
    /// Keys are derived once for an id and a version, whether or not they decrypt the packet.
    pub(super) fn open(
        &mut self,
        header: &LongHeader<'_>,
        packet: &Initial<'_>,
        from: Role,
    ) -> Option<Opened> {
        let end = self.end(from);
        let is_changed = header.version != self.version;
        if is_changed && self.has_changed {
            return None;
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
                (half.keys, self.version, self.has_changed) = (Some(keys), header.version, true);
                end.other().of_mut(&mut self.halves).keys = None;
            }
        }
        let opened = opened?;
        let half = end.of_mut(&mut self.halves);
        half.largest = half.largest.max(Some(opened.number));
        Some(opened)
    }

    /// Returns the client's first id, or the one of the last Retry.
    pub(super) fn dcid(&self) -> &[u8] {
        self.dcid.as_slice()
    }

    /// Processes a Retry: the client starts again with another id and the same hello.
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

    /// Returns the octets allocated in addition to the state itself.
    pub(super) fn heap_len(&self) -> usize {
        self.halves.iter().map(|half| half.stream.heap_len()).sum()
    }
}
