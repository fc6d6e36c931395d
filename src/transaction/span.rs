//! Protocol, client and times of a transaction.

use crate::base::{Side, Timestamp};
use crate::checkpoint::state;
use crate::session::{MessageMeta, Protocol, Role};

/// Protocol, client and times of a transaction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    pub(super) protocol: &'static Protocol,
    pub(super) client: Side,
    pub(super) start: Timestamp,
    pub(super) end: Timestamp,
    /// Octets that the parsers of the flow had received with the last message.
    pub(super) received_len: u64,
}

state! { struct Span { protocol as known_protocol, client, start, end, received_len } }

/// The protocol of a transaction in a checkpoint, by its name.
mod known_protocol {
    use crate::checkpoint::{Invalid, StateWriter};
    use crate::codec::{Prefix, Reader};
    use crate::protocols::Standard;
    use crate::session::{Protocol, Protocols as _};

    pub(super) fn save(protocol: &Protocol, writer: &mut StateWriter<'_>) -> Result<(), Invalid> {
        Ok(writer.prefixed(Prefix::U8, protocol.name())?)
    }

    pub(super) fn load(reader: &mut Reader<'_>) -> Result<&'static Protocol, Invalid> {
        let name = reader.prefixed_str(Prefix::U8)?;
        let known = Standard::TABLE.iter().find(|entry| entry.has_parser && entry.protocol.name() == name);
        known.map(|entry| entry.protocol).ok_or(Invalid::new("a transaction of an unknown protocol"))
    }
}

impl Span {
    /// Returns the span of a message.
    pub(super) const fn of(meta: &MessageMeta) -> Self {
        let client = match meta.from {
            Role::Client => meta.side,
            Role::Server => meta.side.other(),
        };
        Self {
            protocol: meta.protocol,
            client,
            start: meta.timestamp,
            end: meta.timestamp,
            received_len: meta.received_len,
        }
    }

    pub(super) fn extend(&mut self, meta: &MessageMeta) {
        self.start = self.start.min(meta.timestamp);
        self.end = self.end.max(meta.timestamp);
        self.received_len = self.received_len.max(meta.received_len);
    }
}
