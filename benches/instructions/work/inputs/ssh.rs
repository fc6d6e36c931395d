//! SSH: typical key exchanges, and lists with as many names as fit.

use std::ops::RangeInclusive;

use flowgauge::session::Role::{self, Client, Server};

use super::feed::{Case, Expected, Input, filled};

fn list(names: &[u8]) -> Vec<u8> {
    [&(names.len() as u32).to_be_bytes()[..], names].concat()
}

/// A packet with KEXINIT.
fn kexinit(lists: [&[u8]; 10]) -> Vec<u8> {
    let mut payload = [&[20][..], &[7; 16]].concat();
    lists.iter().for_each(|names| payload.extend(list(names)));
    payload.extend([0; 5]);
    let packet = [&[4][..], &payload, &[0; 4]].concat();
    [&(packet.len() as u32).to_be_bytes()[..], &packet].concat()
}

fn identification(from: Role) -> &'static [u8] {
    if from == Client {
        b"SSH-2.0-OpenSSH_9.2p1 Debian-2+deb12u3\r\n"
    } else {
        b"SSH-2.0-OpenSSH_8.9p1 Ubuntu-3\r\n"
    }
}

fn typical() -> Vec<u8> {
    let (ciphers, macs) = (
        b"chacha20-poly1305@openssh.com,aes128-ctr,aes192-ctr,aes256-ctr,aes128-gcm@openssh.com,aes256-gcm@openssh.com",
        b"umac-64-etm@openssh.com,umac-128-etm@openssh.com,hmac-sha2-256-etm@openssh.com,hmac-sha2-512-etm@openssh.com",
    );
    let kex = b"sntrup761x25519-sha512@openssh.com,curve25519-sha256,curve25519-sha256@libssh.org";
    let keys =
        b"ssh-ed25519-cert-v01@openssh.com,ecdsa-sha2-nistp256-cert-v01@openssh.com,ssh-ed25519,rsa-sha2-512";
    kexinit([
        kex,
        keys,
        ciphers,
        ciphers,
        macs,
        macs,
        b"none,zlib@openssh.com",
        b"none,zlib@openssh.com",
        b"",
        b"",
    ])
}

fn exchanges(packet_len: usize, offers: [&[u8]; 2]) -> Input {
    filled(Input::tcp(22), |input, _| {
        input.flow();
        for (from, offer) in [Client, Server].into_iter().zip(offers) {
            input.send_in(packet_len, from, identification(from));
            input.send_in(packet_len, from, offer);
        }
    })
}

pub(crate) fn benign() -> Case {
    let offer = typical();
    (exchanges(1460, [&offer, &offer]), Expected::messages(100))
}

/// The same exchanges with one octet per segment.
pub(crate) fn one_octet_segments() -> Case {
    let offer = typical();
    (exchanges(1, [&offer, &offer]), Expected::messages(3))
}

/// Lists of different names of two octets without a common name. Few different names would be in a small set, in which
/// the number of collisions depends on the random keys of its hash function.
pub(crate) fn long_lists() -> Case {
    let names = |initials: RangeInclusive<u8>| -> Vec<u8> {
        initials.flat_map(|initial| (b'-'..=b'~').flat_map(move |octet| [initial, octet, b','])).collect()
    };
    let (ours, theirs) = (names(b'-'..=b'U'), names(b'V'..=b'~'));
    let offers =
        [ours, theirs].map(|names| kexinit([&names, &names, &names, b"a", b"a", b"a", b"a", b"a", b"", b""]));
    (exchanges(1460, [&offers[0], &offers[1]]), Expected::messages(4))
}

/// Lines before an identification.
pub(crate) fn preceding_lines() -> Case {
    let input = filled(Input::tcp(22), |input, _| {
        input.flow();
        input.send(Client, identification(Client));
        for _ in 0..10 {
            input.send(Server, &[b'a'; 200]);
            input.send_in(1, Server, &[b'a'; 50]);
            input.send(Server, b"\r\n");
        }
    });
    (input, Expected::messages(1))
}
