//! The outcome of a TCP connection, derived from the state of each end.
//!
//! The states and their transitions are those from which Zeek derives `conn_state`, so that the codes have the same
//! meaning. Timeouts, and the decision whether a SYN begins a new connection, depend on the state in
//! [`lifecycle`](super::lifecycle) instead.

use super::flow::Endpoint;
use crate::base::{ConnState, History, TcpFlags};

/// Returns the states of the sender of a TCP segment and of its peer after the segment, in that order.
pub(super) fn after(
    sender: Endpoint,
    peer: Endpoint,
    is_initiator: bool,
    flags: TcpFlags,
    payload_len: u32,
) -> (Endpoint, Endpoint) {
    use Endpoint::{Closed, Established, Inactive, Partial, Reset, SynAckSent, SynSent};
    let has = |flag| flags.contains(flag);
    match sender {
        Inactive => first(peer, is_initiator, flags, payload_len),
        SynSent | SynAckSent if has(TcpFlags::RST) => (Reset, peer),
        SynSent | SynAckSent if has(TcpFlags::FIN) => (Closed, peer),
        Partial if has(TcpFlags::SYN) && !has(TcpFlags::ACK) && peer == Inactive => (SynSent, peer),
        Established | Partial if has(TcpFlags::RST) => (Reset, peer),
        Established | Partial if has(TcpFlags::FIN) => (Closed, peer),
        // Both ends sent FIN: a later RST changes nothing.
        Closed if has(TcpFlags::RST) && peer != Closed => (Reset, peer),
        _ => (sender, peer),
    }
}

/// Returns the states of a side and its peer, in that order, after the first TCP segment of the side.
fn first(peer: Endpoint, is_initiator: bool, flags: TcpFlags, payload_len: u32) -> (Endpoint, Endpoint) {
    use Endpoint::{Closed, Established, Inactive, Partial, Reset, SynAckSent, SynSent};
    let has = |flag| flags.contains(flag);
    if has(TcpFlags::RST) {
        return (Reset, peer);
    }
    if has(TcpFlags::FIN) {
        return (Closed, peer);
    }
    if has(TcpFlags::SYN) {
        return match (is_initiator, peer) {
            (true, _) if has(TcpFlags::ACK) => (SynAckSent, peer),
            (true, _) => (SynSent, peer),
            (false, SynSent) => (Established, Established),
            (false, _) => (Established, peer),
        };
    }
    match peer {
        // Some stacks acknowledge a SYN before they send the SYN-ACK.
        SynSent if !is_initiator && payload_len == 0 => (Inactive, peer),
        Established if has(TcpFlags::ACK) => (Established, peer),
        _ => (Partial, peer),
    }
}

/// Returns the outcome code of a TCP connection.
pub(super) fn outcome(
    initiator: Endpoint,
    responder: Endpoint,
    history: History,
    is_without_payload: bool,
) -> ConnState {
    use Endpoint::{Closed, Established, Inactive, Partial, Reset, SynAckSent, SynSent};
    let is_passive = |endpoint| matches!(endpoint, Inactive | Partial);
    match (initiator, responder) {
        (SynSent | SynAckSent, Reset) => ConnState::Rej,
        (Reset, Reset) if is_without_payload => ConnState::Rej,
        (Inactive | Partial, Reset) => ConnState::Rstrh,
        (_, Reset) => ConnState::Rstr,
        (Reset, responder) if is_passive(responder) => {
            if was_aborted_attempt(history) {
                ConnState::Rstos0
            } else {
                ConnState::Oth
            }
        }
        (Reset, _) => ConnState::Rsto,
        (Closed, Closed) => ConnState::Sf,
        (Closed, responder) if is_passive(responder) => ConnState::Sh,
        (Closed, _) => ConnState::S2,
        (initiator, Closed) if is_passive(initiator) => ConnState::Shr,
        (_, Closed) => ConnState::S3,
        (SynSent, Inactive) => ConnState::S0,
        (Established, Established) => ConnState::S1,
        _ => ConnState::Oth,
    }
}

/// Returns whether the initiator of a TCP connection sent SYN and then RST, with nothing in between that indicates a
/// connection.
fn was_aborted_attempt(history: History) -> bool {
    let mut letters = history.letters().skip_while(|letter| *letter == '^');
    letters.next() == Some('S')
        && letters.take_while(|letter| *letter != 'R').all(|letter| !"HAFGIQ".contains(letter))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SYN: TcpFlags = TcpFlags::SYN;
    const ACK: TcpFlags = TcpFlags::ACK;
    const FIN: TcpFlags = TcpFlags::FIN;
    const RST: TcpFlags = TcpFlags::RST;

    /// Returns the outcome of a connection after segments that are given as letters of a history: upper case for the
    /// initiator.
    fn outcome_of(segments: &str) -> ConnState {
        let mut ends = [Endpoint::Inactive; 2];
        let mut history = History::EMPTY;
        let mut payload = 0;
        for letter in segments.chars() {
            let is_initiator = letter.is_ascii_uppercase();
            let (flags, len) = match letter.to_ascii_lowercase() {
                's' => (SYN, 0),
                'h' => (SYN | ACK, 0),
                'a' => (ACK, 0),
                'd' => (ACK, 10),
                'f' => (FIN | ACK, 0),
                _ => (RST, 0),
            };
            payload += len;
            let (own, peer) = if is_initiator { (0, 1) } else { (1, 0) };
            (ends[own], ends[peer]) = after(ends[own], ends[peer], is_initiator, flags, len);
            history.push(letter as u8);
        }
        outcome(ends[0], ends[1], history, payload == 0)
    }

    #[test]
    fn connection_states_match_the_documented_dialogues() {
        for (segments, expected) in [
            ("S", ConnState::S0),
            ("ShA", ConnState::S1),
            ("ShADadFa", ConnState::S2),
            ("ShADadfA", ConnState::S3),
            ("ShADadFf", ConnState::Sf),
            ("Sr", ConnState::Rej),
            ("ShADR", ConnState::Rsto),
            ("ShADr", ConnState::Rstr),
            ("SR", ConnState::Rstos0),
            ("hr", ConnState::Rstrh),
            ("SF", ConnState::Sh),
            ("hf", ConnState::Shr),
            ("Da", ConnState::Oth),
            ("R", ConnState::Oth),
            ("hA", ConnState::S1),
            ("ShADadFfr", ConnState::Sf),
        ] {
            assert_eq!(outcome_of(segments), expected, "{segments}");
        }
    }
}
