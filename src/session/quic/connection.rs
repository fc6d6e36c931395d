//! What is known of a connection's beginning, and which keys open its packets.

use super::crypto_stream::CryptoStream;
use super::keys::{Keys, Opened};
use super::packet::{CONNECTION_ID_LEN_MAX, FIRST_ID_LEN_MIN, Initial, LongHeader};
use super::version::Version;
use crate::session::Role;

/// A connection id that is kept.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct KeptId {
    len: u8,
    octets: [u8; CONNECTION_ID_LEN_MAX],
}

impl KeptId {
    /// None if it is longer than the versions allow.
    pub(super) fn new(id: &[u8]) -> Option<Self> {
        let mut kept = Self { len: id.len() as u8, ..Self::default() };
        kept.octets.get_mut(..id.len())?.copy_from_slice(id);
        Some(kept)
    }

    pub(super) fn as_slice(&self) -> &[u8] {
        self.octets.get(..self.len.into()).unwrap_or_default()
    }
}

/// Retry packets that a connection follows. A client follows one (RFC 9000 section 17.2.5.2), which need not be the first that was
/// captured.
const RETRY_COUNT_MAX: u8 = 2;

/// One end's Initial packets.
#[derive(Debug, Default)]
pub(super) struct Half {
    keys: Option<Keys>,
    /// Those of another version, if it was asked for.
    other_keys: Option<(Version, Keys)>,
    /// The highest packet number so far.
    largest: Option<u64>,
    pub(super) stream: CryptoStream,
    /// Whether its last hello was seen.
    pub(super) is_done: bool,
}

/// A connection whose client's first packet was opened.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) version: Version,
    /// The id that the keys are derived from: the client's first, or the one that a Retry gave.
    dcid: KeptId,
    /// Who of the session's roles is the client: the session may take it for the server if the capture began late.
    pub(super) client: Role,
    /// What the client and the server send.
    halves: [Half; 2],
    /// Whether the server asked for another version.
    pub(super) is_refused: bool,
    /// Whether an end changed to another version, which happens once.
    has_changed: bool,
    retry_count: u8,
}

impl Connection {
    /// The connection that a client begins with this packet, and the packet opened; none if it is no such packet.
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

    /// Which end one of the session's roles is.
    pub(super) fn end(&self, from: Role) -> Role {
        if from == self.client { Role::Client } else { Role::Server }
    }

    pub(super) fn half(&mut self, end: Role) -> &mut Half {
        end.of_mut(&mut self.halves)
    }

    /// Whether nothing in the clear is to come.
    pub(super) fn is_done(&self) -> bool {
        self.halves.iter().all(|half| half.is_done)
    }

    /// The packet opened, if it is of this connection. Either end may change to a version that the other one speaks too
    /// (RFC 9368), once: the id that the keys are derived from stays.
    ///
    /// Keys are derived once for an id and a version, whether they open the packet or not.
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

    /// The client's first id, or the one that the last Retry gave.
    pub(super) fn dcid(&self) -> &[u8] {
        self.dcid.as_slice()
    }

    /// The client begins again with another id, and says the same.
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

    /// Octets allocated beside the state itself.
    pub(super) fn heap_len(&self) -> usize {
        self.halves.iter().map(|half| half.stream.heap_len()).sum()
    }
}
