//! QUIC: starts of connections, and packets that are expensive to decrypt.

use aes_gcm::aead::AeadInOut;
use aes_gcm::aes::Aes128;
use aes_gcm::aes::cipher::{BlockCipherEncrypt, KeyInit};
use aes_gcm::{Aes128Gcm, Nonce};
use flowgauge::session::Role::{self, Client, Server};
use hkdf::Hkdf;
use sha2::Sha256;

use super::feed::{Case, Expected, Input, filled};
use super::tls::{client_hello, message, server_hello, typical};

const DCID: [u8; 8] = *b"8octets!";

/// The salt of version 1 (RFC 9001 section 5.2).
const SALT: [u8; 20] = [
    0x38, 0x76, 0x2c, 0xf7, 0xf5, 0x59, 0x34, 0xb3, 0x4d, 0x17, 0x9a, 0xe6, 0xa4, 0xc8, 0x0c, 0xad, 0xcc,
    0xbb, 0x7f, 0x0a,
];

fn expand<const N: usize>(secret: &Hkdf<Sha256>, label: &str) -> [u8; N] {
    let info = [&[0, N as u8, 6 + label.len() as u8][..], b"tls13 ", label.as_bytes(), &[0]].concat();
    let mut okm = [0; N];
    secret.expand(&info, &mut okm).expect("a valid key length");
    okm
}

/// An Initial packet of version 1 with frames padded to a given length.
fn seal(from: Role, dcid: [u8; 8], number: u8, frames: &[u8], frames_len: usize) -> Vec<u8> {
    let initial = Hkdf::<Sha256>::new(Some(&SALT), &dcid);
    let secret: [u8; 32] = expand(&initial, if from == Server { "server in" } else { "client in" });
    let secret = Hkdf::<Sha256>::from_prk(&secret).expect("32 octets");
    let key: [u8; 16] = expand(&secret, "quic key");
    let mut nonce: [u8; 12] = expand(&secret, "quic iv");
    let mask_key: [u8; 16] = expand(&secret, "quic hp");
    nonce[11] ^= number;
    let mut payload = frames.to_vec();
    payload.resize(frames.len().max(frames_len), 0);
    let dcid: &[u8] = if from == Server { &[] } else { &dcid };
    let len = (0x4000 | (payload.len() as u16 + 17)).to_be_bytes();
    let mut packet = [&[0xc0, 0, 0, 0, 1, dcid.len() as u8], dcid, &[0, 0], &len, &[number]].concat();
    let cipher = Aes128Gcm::new(&key.into());
    let tag = cipher.encrypt_inout_detached(&Nonce::from(nonce), &packet, payload.as_mut_slice().into());
    let mut mask = <[u8; 16]>::try_from(&payload[3..19]).expect("16 octets").into();
    Aes128::new(&mask_key.into()).encrypt_block(&mut mask);
    packet[0] ^= mask[0] & 0x0f;
    *packet.last_mut().expect("a packet number") ^= mask[1];
    packet.extend(payload);
    packet.extend(tag.expect("a short packet"));
    packet
}

fn crypto(offset: usize, octets: &[u8]) -> Vec<u8> {
    let number = |value: usize| (0x8000_0000 | value as u32).to_be_bytes();
    [&[6][..], &number(offset), &number(octets.len()), octets].concat()
}

fn hello() -> Vec<u8> {
    let (suites, extensions) = typical();
    message(1, &client_hello(None, &suites, &extensions))
}

/// Length of the frames in the first datagram of a client, which has 1200 octets with headers and tag.
const FIRST_LEN: usize = 1165;

/// A different id for each connection.
fn id(number: u32) -> [u8; 8] {
    let mut id = DCID;
    id[..4].copy_from_slice(&number.to_be_bytes());
    id
}

pub(crate) fn benign() -> Case {
    let input = filled(Input::udp(443), |input, round| {
        input.flow();
        input.send(Client, &seal(Client, id(round), 0, &crypto(0, &hello()), FIRST_LEN));
        input.send(Server, &seal(Server, id(round), 0, &crypto(0, &message(2, &server_hello())), FIRST_LEN));
    });
    (input, Expected::messages(40))
}

/// Handshake messages without a body, which are not reported.
pub(crate) fn tiny_messages() -> Case {
    let input = filled(Input::udp(443), |input, round| {
        if round % 24 == 0 {
            input.flow();
        }
        let offset = 1400 * (round as usize % 24);
        let frames = crypto(offset, &[8, 0, 0, 0].repeat(350));
        input.send(Client, &seal(Client, DCID, round as u8, &frames, FIRST_LEN));
    });
    (input, Expected::messages(0))
}

/// The same messages, which the last packet completes because it has the first octet.
pub(crate) fn tiny_messages_at_once() -> Case {
    let input = filled(Input::udp(443), |input, round| {
        if round % 24 == 0 {
            input.flow();
        }
        let octets = [8, 0, 0, 0].repeat(350);
        // The last packet has the first octet.
        let (offset, octets) = match round % 24 {
            23 => (0, &octets[..1]),
            0 => (1, &octets[1..]),
            part => (1400 * part as usize, &octets[..]),
        };
        input.send(Client, &seal(Client, DCID, round as u8, &crypto(offset, octets), FIRST_LEN));
    });
    (input, Expected::messages(0))
}

/// CRYPTO frames of one octet with holes of one octet between them.
pub(crate) fn scattered_octets() -> Case {
    let input = filled(Input::udp(443), |input, round| {
        if round % 60 == 0 {
            input.flow();
        }
        let frames: Vec<u8> = (0..110)
            .flat_map(|position| crypto(20_000 - 2 * (position + 110 * (round as usize % 60)), &[1]))
            .collect();
        input.send(Client, &seal(Client, DCID, round as u8, &frames, FIRST_LEN));
    });
    (input, Expected::messages(0))
}

/// Datagrams of eight packets that cannot be decrypted, after a valid one.
pub(crate) fn bad_packets() -> Case {
    let input = filled(Input::udp(443), |input, round| {
        if round % 16 == 0 {
            input.flow();
            input.send(Client, &seal(Client, DCID, 0, &crypto(0, &hello()[..100]), FIRST_LEN));
        }
        let mut datagram = Vec::new();
        for position in 0..8 {
            let mut packet = seal(Client, id(round * 8 + position), 0, &[], 124);
            *packet.last_mut().expect("a tag") ^= 1;
            datagram.extend(packet);
        }
        input.send(Client, &datagram);
    });
    (input, Expected::messages(0))
}

/// Connections in packets of minimum length.
pub(crate) fn short_packets() -> Case {
    let input = filled(Input::udp(443), |input, round| {
        input.flow();
        input.send(Client, &seal(Client, id(round), 0, &[1], 20));
    });
    (input, Expected::messages(0))
}

/// Packets that are decrypted but contain no messages.
pub(crate) fn pings() -> Case {
    let input = filled(Input::udp(443), |input, round| {
        if round == 0 {
            input.send(Client, &seal(Client, DCID, 0, &crypto(0, &hello()[..100]), FIRST_LEN));
        }
        input.send(Client, &seal(Client, DCID, round as u8, &[1], 20));
    });
    (input, Expected::messages(0))
}
