//! Recognizer of Windows networks: NetBIOS datagrams.

use super::octets::u16_at;
use crate::session::{DatagramOpening, OctetSet, Protocol, Verdict};

/// NetBIOS datagram service (RFC 1002 section 4.4), recognized by port 138, message type and length.
pub static NBDGM: Protocol = Protocol::new("nbdgm")
    .over_datagrams(&[138], Some(nbdgm))
    .datagrams_begin_with(OctetSet::range(0x10..=0x16));

fn nbdgm(opening: &DatagramOpening<'_>) -> Verdict {
    // Port of the sender, which some implementations omit.
    let [kind @ 0x10..=0x16, _, _, _, _, _, _, _, 0, 0 | 138, ..] = opening.bytes else { return Verdict::No };
    if !opening.has_port(138) {
        return Verdict::No;
    }
    // Data messages contain their own length, and the rest of the header.
    let is_filled = || u16_at(opening.bytes, 10).is_some_and(|len| usize::from(len) + 14 <= opening.len);
    Verdict::of(*kind > 0x12 || is_filled())
}

#[cfg(test)]
pub(super) mod samples {
    use super::super::samples::{Sample, datagram};
    use super::NBDGM;

    pub(in super::super) const SAMPLES: &[Sample] =
        &[datagram(&NBDGM, 138, b"\x11\x0A\x12\x34\x0A\x00\x00\x01\x00\x8A\x00\x02\x00\x00 A")];

    pub(in super::super) const LOOK_ALIKES: &[Sample] =
        &[datagram(&NBDGM, 138, b"\x11\x0A\x12\x34\x0A\x00\x00\x01\x00\x8A\x01\x02\x00\x00 A")];
}
