//! Recognizers of file access and transfer: NFS and other ONC RPC, rsync, git.

use super::octets::{begins_with, datagram_in_role, dialogue, u32_at};
use crate::session::{DatagramOpening, OctetSet, Protocol, StreamOpening, Verdict};

/// NFS 2 to 4 (RFC 1813, RFC 8881), recognized by an ONC RPC call to the program number of NFS.
pub static NFS: Protocol = Protocol::new("nfs")
    .in_eve("nfs")
    .over_streams(&[2049], Some(|opening| rpc_stream(opening, |program| program == NFS_PROGRAM)))
    .over_datagrams(&[2049], Some(|opening| rpc_datagram(opening, |program| program == NFS_PROGRAM)))
    .streams_begin_with(OctetSet::of(b"\x80"));

/// ONC RPC (RFC 5531), recognized by a call to a program other than NFS: port mapper, mount, lock manager.
pub static SUNRPC: Protocol = Protocol::new("sunrpc")
    .over_streams(&[111], Some(|opening| rpc_stream(opening, is_other_program)))
    .over_datagrams(&[111], Some(|opening| rpc_datagram(opening, is_other_program)))
    .streams_begin_with(OctetSet::of(b"\x80"));

/// rsync daemon, recognized by its greeting.
pub static RSYNC: Protocol =
    Protocol::new("rsync").over_streams(&[873], Some(rsync)).streams_begin_with(OctetSet::of(b"@"));

/// git protocol, recognized by a request in the client's first line.
pub static GIT: Protocol = Protocol::new("git").over_streams(&[9418], Some(git)).streams_begin_with(
    OctetSet::range(b'0'..=b'9').and(OctetSet::range(b'A'..=b'F')).and(OctetSet::range(b'a'..=b'f')),
);

const NFS_PROGRAM: u32 = 100_003;

fn is_other_program(program: u32) -> bool {
    program != NFS_PROGRAM && (100_000..=399_999).contains(&program)
}

/// Returns whether octets start with an ONC RPC call to a program that `is_program` accepts: transaction id, message
/// type zero, RPC version 2, program, program version.
fn is_call(bytes: &[u8], is_program: impl Fn(u32) -> bool) -> bool {
    let (kind, version) = (u32_at(bytes, 4), u32_at(bytes, 8));
    kind == Some(0)
        && version == Some(2)
        && u32_at(bytes, 12).is_some_and(is_program)
        && u32_at(bytes, 16).is_some_and(|version| (1..=10).contains(&version))
}

fn rpc_stream(opening: &StreamOpening<'_>, is_program: impl Fn(u32) -> bool) -> Verdict {
    let call = |bytes: &[u8]| match bytes {
        // A record of one fragment, as in calls.
        [0x80, ..] => match bytes.get(4..) {
            Some(call) if call.len() >= 20 => Verdict::of(is_call(call, &is_program)),
            Some(call) if u32_at(call, 4).is_some_and(|kind| kind != 0) => Verdict::No,
            _ => Verdict::More,
        },
        [] => Verdict::More,
        _ => Verdict::No,
    };
    dialogue(opening, call, |_| Verdict::No)
}

fn rpc_datagram(opening: &DatagramOpening<'_>, is_program: impl Fn(u32) -> bool) -> Verdict {
    datagram_in_role(opening, is_call(opening.bytes, is_program), Some(false))
}

fn rsync(opening: &StreamOpening<'_>) -> Verdict {
    // Both sides send the greeting immediately.
    let first = if opening.client.is_empty() { opening.server } else { opening.client };
    begins_with(first, &[b"@RSYNCD: "])
}

fn git(opening: &StreamOpening<'_>) -> Verdict {
    let request = |bytes: &[u8]| match bytes.split_at_checked(4) {
        Some((len, rest)) if len.iter().all(u8::is_ascii_hexdigit) => {
            begins_with(rest, &[b"git-upload-pack /", b"git-receive-pack /", b"git-upload-archive /"])
        }
        None if bytes.iter().all(u8::is_ascii_hexdigit) => Verdict::More,
        _ => Verdict::No,
    };
    dialogue(opening, request, |_| Verdict::No)
}

#[cfg(test)]
pub(super) mod samples {
    use super::super::samples::{Sample, client, datagram, server};
    use super::{GIT, NFS, RSYNC, SUNRPC};

    const NFS_CALL: &[u8] = b"\x80\0\0\x28\x12\x34\x56\x78\0\0\0\0\0\0\0\x02\0\x01\x86\xA3\0\0\0\x03\0\0\0\0";
    const PORTMAP_CALL: &[u8] = b"\x12\x34\x56\x78\0\0\0\0\0\0\0\x02\0\x01\x86\xA0\0\0\0\x02\0\0\0\x03";

    pub(in super::super) const SAMPLES: &[Sample] = &[
        client(&NFS, 2049, NFS_CALL),
        datagram(&SUNRPC, 111, PORTMAP_CALL),
        server(&RSYNC, 873, b"@RSYNCD: 31.0\n"),
        client(&GIT, 9418, b"0033git-upload-pack /project.git\0host=example.com\0"),
    ];

    pub(in super::super) const LOOK_ALIKES: &[Sample] = &[
        client(&NFS, 2049, b"\x80\0\0\x28\x12\x34\x56\x78\0\0\0\0\0\0\0\x02\0\x01\x86\xA0\0\0\0\x03\0\0\0\0"),
        datagram(&SUNRPC, 111, b"\x12\x34\x56\x78\0\0\0\0\0\0\0\x02\0\x01\x86\xA3\0\0\0\x02\0\0\0\x03"),
        server(&RSYNC, 873, b"@RSYNCX: 31.0\n"),
        client(&GIT, 9418, b"0033git-unknown /project.git\0"),
    ];
}
