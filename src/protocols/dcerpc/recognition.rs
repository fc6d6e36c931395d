//! Recognition of DCE/RPC.

use crate::protocols::recognizers::octets::{datagram_in_role, either_in_role, once};
use crate::session::{DatagramOpening, OctetSet, Protocol, Verdict};

/// Protocol `dcerpc`: version 5 over TCP, recognized by the header with little-endian integers, and version 4 over UDP, recognized by
/// a header whose length is that of the datagram.
pub static PROTOCOL: Protocol = Protocol::new("dcerpc")
    .in_zeek("dce_rpc")
    .in_eve("dcerpc")
    .over_streams(&[135], Some(|opening| either_in_role(opening, probe, is_answer)))
    .over_datagrams(&[135], Some(probe_datagram))
    .streams_begin_with(OctetSet::of(b"\x05"))
    .datagrams_begin_with(OctetSet::of(b"\x04"))
    .with_kinds(&["dcerpc", "dcerpc_binding", "dcerpc_endpoint", "ntlm", "kerberos"])
    .with_limits("32 open calls, 32 contexts; PDUs of 8 KiB, of longer ones the beginning")
    .with_standards("C706 chapter 12; MS-RPCE; MS-NLMP");

/// Types of PDUs (C706 section 12.6.4).
pub(super) mod kind {
    pub(in crate::protocols::dcerpc) const REQUEST: u8 = 0;
    pub(in crate::protocols::dcerpc) const RESPONSE: u8 = 2;
    pub(in crate::protocols::dcerpc) const FAULT: u8 = 3;
    pub(in crate::protocols::dcerpc) const REJECT: u8 = 6;
    pub(in crate::protocols::dcerpc) const BIND: u8 = 11;
    pub(in crate::protocols::dcerpc) const BIND_ACK: u8 = 12;
    pub(in crate::protocols::dcerpc) const BIND_NAK: u8 = 13;
    pub(in crate::protocols::dcerpc) const ALTER_CONTEXT: u8 = 14;
    pub(in crate::protocols::dcerpc) const ALTER_CONTEXT_RESPONSE: u8 = 15;
    pub(in crate::protocols::dcerpc) const AUTH3: u8 = 16;
}

/// Returns whether a PDU is of the server: response, fault, or the answer to a bind or an alteration.
fn is_answer(octets: &[u8]) -> Option<bool> {
    octets.get(2).map(|kind| {
        matches!(
            *kind,
            kind::RESPONSE | kind::FAULT | kind::BIND_ACK | kind::BIND_NAK | kind::ALTER_CONTEXT_RESPONSE
        )
    })
}

fn probe(octets: &[u8]) -> Verdict {
    match octets {
        [5, 0..=1, 0..=20, _, 0x10, 0, 0, 0, ..] => {
            once(octets, 12, || matches!(octets.get(8..10), Some([16..=255, _] | [_, 1..=255])))
        }
        [5, 0..=1, 0..=20, ..] | [5, 0..=1] | [5] | [] if octets.len() < 8 => Verdict::More,
        _ => Verdict::No,
    }
}

fn probe_datagram(opening: &DatagramOpening<'_>) -> Verdict {
    let is_head = matches!(opening.bytes, [4, 0..=10, _, _, 0 | 0x10, 0, 0, ..]);
    let body_len =
        opening.bytes.get(74..).and_then(|len| len.first_chunk()).map(|len| match opening.bytes.get(4) {
            Some(0x10) => u16::from_le_bytes(*len),
            _ => u16::from_be_bytes(*len),
        });
    let is_match = body_len.is_some_and(|len| DATAGRAM_HEAD_LEN + usize::from(len) == opening.len);
    // Of the client: requests, pings, acknowledgments and cancellations.
    let is_answer = opening.bytes.get(1).map(|kind| !matches!(*kind, kind::REQUEST | 1 | 7 | 8));
    datagram_in_role(opening, is_head && is_match, is_answer)
}

/// Length of the head of version 4.
const DATAGRAM_HEAD_LEN: usize = 80;
