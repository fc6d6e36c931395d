//! Recognizers of Windows networks: SMB, NetBIOS.

use super::octets::{begins_with, either_in_role, once, u16_at};
use crate::session::{DatagramOpening, OctetSet, Protocol, Verdict};

/// SMB 1, 2 and 3, recognized by the magic number after a NetBIOS session header, or by a NetBIOS session request.
pub static SMB: Protocol = Protocol::new("smb")
    .in_zeek("smb")
    .in_eve("smb")
    .over_streams(&[445, 139], Some(|opening| either_in_role(opening, smb, is_smb_answer)))
    .streams_begin_with(OctetSet::of(b"\0\x81"));

/// NetBIOS datagram service (RFC 1002 section 4.4), recognized by port 138, message type and length.
pub static NBDGM: Protocol = Protocol::new("nbdgm")
    .over_datagrams(&[138], Some(nbdgm))
    .datagrams_begin_with(OctetSet::range(0x10..=0x16));

fn smb(bytes: &[u8]) -> Verdict {
    match bytes {
        [] => Verdict::More,
        [0, ..] => {
            begins_with(bytes.get(4..).unwrap_or_default(), &[b"\xFESMB", b"\xFFSMB", b"\xFDSMB", b"\xFCSMB"])
        }
        // A session request (RFC 1002 section 4.3.2): two encoded names. Only SMB follows it in practice.
        [0x81, ..] => once(bytes, 6, || matches!(bytes, [_, 0, 0, 0x44, 0x20, b'A'..=b'P', ..])),
        _ => Verdict::No,
    }
}

/// Returns whether an SMB message is a response, by the flags of its version.
fn is_smb_answer(bytes: &[u8]) -> Option<bool> {
    match (bytes.first()?, bytes.get(4..8)) {
        (0x81, _) => Some(false),
        (_, Some(b"\xFFSMB")) => bytes.get(13).map(|flags| flags & 0x80 != 0),
        (_, Some(b"\xFESMB")) => bytes.get(20).map(|flags| flags & 1 != 0),
        _ => None,
    }
}

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
    use super::super::samples::{Sample, client, datagram, server};
    use super::{NBDGM, SMB};

    pub(in super::super) const SAMPLES: &[Sample] = &[
        client(&SMB, 445, b"\x00\x00\x00\x45\xFFSMB\x72\x00\x00\x00"),
        client(&SMB, 445, b"\x00\x00\x00\x68\xFESMB\x40\x00\x00\x00"),
        client(&SMB, 139, b"\x81\x00\x00\x44\x20CKFDENECFDEFFCFGEFFCCACACACACACA"),
        server(&SMB, 445, b"\x00\x00\x00\x45\xFDSMBabcd"),
        datagram(&NBDGM, 138, b"\x11\x0A\x12\x34\x0A\x00\x00\x01\x00\x8A\x00\x02\x00\x00 A"),
    ];

    pub(in super::super) const LOOK_ALIKES: &[Sample] = &[
        client(&SMB, 445, b"\x00\x00\x00\x45\xFFSMC\x72\x00\x00\x00"),
        client(&SMB, 139, b"\x81\x00\x00\x44\x21CKFDEN"),
        datagram(&NBDGM, 138, b"\x11\x0A\x12\x34\x0A\x00\x00\x01\x00\x8A\x01\x02\x00\x00 A"),
    ];
}
