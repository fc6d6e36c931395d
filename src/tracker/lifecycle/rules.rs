//! Rules about single segments and counts that several steps share.

use crate::base::{SeqNum, TcpFlags};

/// Control bits that change the state of a connection.
pub(super) const CONTROL: TcpFlags = TcpFlags(TcpFlags::SYN.0 | TcpFlags::FIN.0 | TcpFlags::RST.0);

/// Returns whether a count of events is 1, 10, 100 ..., at which a letter of the history repeats.
pub(super) const fn is_power_of_ten(count: u32) -> bool {
    matches!(
        count,
        1 | 10 | 100 | 1_000 | 10_000 | 100_000 | 1_000_000 | 10_000_000 | 100_000_000 | 1_000_000_000
    )
}

/// Returns whether a segment is one octet at the end of what its sender has sent: a keep-alive (RFC 9293 section 3.8.4)
/// or a window probe. `end` is the sequence number after the segment, and `next` the sender's next one.
#[inline(always)]
pub(super) fn is_probe(end: SeqNum, next: SeqNum, payload_len: u32) -> bool {
    payload_len == 1 && end == next
}
