//! Recognition of exported messages by their content.

/// Kind of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    NetFlow5,
    NetFlow9,
    Ipfix,
    SFlow,
    /// IPFIX over TCP.
    IpfixStream,
}

impl Kind {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::NetFlow5 => "NetFlow version 5",
            Self::NetFlow9 => "NetFlow version 9",
            Self::Ipfix | Self::IpfixStream => "IPFIX",
            Self::SFlow => "sFlow version 5",
        }
    }

    /// Returns the name of what is counted.
    pub(super) const fn part(self) -> &'static str {
        match self {
            Self::IpfixStream => "segment",
            _ => "datagram",
        }
    }
}

fn number(octets: &[u8], offset: usize) -> Option<u16> {
    octets.get(offset..)?.first_chunk().copied().map(u16::from_be_bytes)
}

fn word(octets: &[u8], offset: usize) -> Option<u32> {
    octets.get(offset..)?.first_chunk().copied().map(u32::from_be_bytes)
}

/// Returns whether octets from an offset are the header of a set that ends within `len` octets. `is_ipfix` states which
/// identifiers are those of templates.
fn is_set(octets: &[u8], offset: usize, len: usize, is_ipfix: bool) -> bool {
    let (Some(id), Some(set_len)) = (number(octets, offset), number(octets, offset + 2)) else {
        return false;
    };
    let is_template = if is_ipfix { matches!(id, 2 | 3) } else { matches!(id, 0 | 1) };
    (is_template || id >= 256) && set_len >= 4 && offset + usize::from(set_len) <= len
}

/// Returns the kind of message that a UDP datagram is by all lengths that its headers state.
pub(super) fn kind_of_datagram(datagram: &[u8]) -> Option<Kind> {
    const NETFLOW5: u16 = 5;
    const SFLOW: u32 = 5;
    let len = datagram.len();
    match number(datagram, 0)? {
        NETFLOW5 => {
            let count = usize::from(number(datagram, 2)?);
            ((1..=30).contains(&count) && len == 24 + 48 * count).then_some(Kind::NetFlow5)
        }
        9 => (number(datagram, 2)? > 0 && is_set(datagram, 20, len, false)).then_some(Kind::NetFlow9),
        10 => {
            let is_whole = usize::from(number(datagram, 2)?) == len;
            (is_whole && is_set(datagram, 16, len, true)).then_some(Kind::Ipfix)
        }
        0 if word(datagram, 0)? == SFLOW => {
            let header_len = match word(datagram, 4)? {
                1 => 28,
                2 => 40,
                _ => return None,
            };
            // Number of samples, then format and length of the first one.
            let is_first = word(datagram, header_len + 4)? as usize <= len.checked_sub(header_len + 8)?;
            ((1..=1000).contains(&word(datagram, header_len - 4)?) && is_first).then_some(Kind::SFlow)
        }
        _ => None,
    }
}

/// Returns the kind of message with which a segment of TCP begins.
pub(super) fn kind_of_stream(segment: &[u8]) -> Option<Kind> {
    let len = usize::from(number(segment, 2)?);
    (number(segment, 0)? == 10 && is_set(segment, 16, len, true)).then_some(Kind::IpfixStream)
}
