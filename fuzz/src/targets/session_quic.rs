//! QUIC: arbitrary datagrams, and Initial packets with frames of the input that are encrypted with the right keys.
//! Memory stays below its limits, and the messages of duplicate packets are reported once.

use aes_gcm::aead::AeadInOut;
use aes_gcm::aes::Aes128;
use aes_gcm::aes::cipher::{BlockCipherEncrypt, KeyInit};
use aes_gcm::{Aes128Gcm, Nonce};
use arbitrary::{Arbitrary, Result, Unstructured};
use flowgauge::protocols::quic::{CRYPTO_LEN_MAX, QuicParser};
use flowgauge::session::{MessageMeta, Role};
use hkdf::Hkdf;
use sha2::Sha256;

use super::compare::assert_same;
use super::dialogue::{Expectations, Line, Step as Played, json, play};
use super::input::{Octets, items, structured};

crate::one_parser!(QuicParser, "quic", 443);

const STEPS_MAX: usize = 100;

#[derive(Clone, Copy, Debug)]
enum Step<'a> {
    /// Arbitrary octets.
    Datagram { from: Role, octets: &'a [u8] },
    /// Frames in an Initial packet.
    Frames { from: Role, is_v2: bool, number: u8, frames: &'a [u8] },
    /// A part of a handshake message at an offset.
    Crypto { from: Role, offset: u16, octets: &'a [u8] },
    /// Packets coalesced with the previous one in one datagram.
    Joined { from: Role, octets: &'a [u8] },
}

/// First octet of a datagram, for seeds: from the client and from the server.
pub const DATAGRAM: [u8; 2] = [0, 1];
/// First octet of a part of a handshake message.
pub const CRYPTO: [u8; 2] = [4, 5];

impl<'a> Arbitrary<'a> for Step<'a> {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        let kind = u8::arbitrary(u)?;
        let from = if kind & 1 == 0 { Role::Client } else { Role::Server };
        Ok(match kind >> 1 & 3 {
            0 => Self::Datagram { from, octets: Octets::arbitrary(u)?.0 },
            1 => {
                let (number, is_v2) = (u8::arbitrary(u)?, kind & 16 != 0);
                Self::Frames { from, is_v2, number, frames: Octets::arbitrary(u)?.0 }
            }
            2 => {
                let offset = u16::arbitrary(u)?;
                Self::Crypto { from, offset, octets: Octets::arbitrary(u)?.0 }
            }
            _ => Self::Joined { from, octets: Octets::arbitrary(u)?.0 },
        })
    }
}

struct Input<'a> {
    choice: u8,
    steps: Vec<Step<'a>>,
}

impl<'a> Arbitrary<'a> for Input<'a> {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        Ok(Self { choice: u8::arbitrary(u)?, steps: items(u, STEPS_MAX)? })
    }
}

const DCID: [u8; 8] = *b"8octets!";

/// Maximum number of steps for which packets that cannot be decrypted do not end the session, even if they are
/// duplicated.
const STEP_COUNT_MAX: usize = 7;

fn expand<const N: usize>(secret: &Hkdf<Sha256>, label: &str) -> [u8; N] {
    let info = [&[0, N as u8, 6 + label.len() as u8][..], b"tls13 ", label.as_bytes(), &[0]].concat();
    let mut okm = [0; N];
    secret.expand(&info, &mut okm).expect("a valid key length");
    okm
}

/// Header fields of an Initial packet. The keys are derived from `key_cid`, the first destination id of the client.
pub struct Sealing<'a> {
    pub is_server: bool,
    pub is_v2: bool,
    pub number: u8,
    pub key_cid: &'a [u8],
    pub dcid: &'a [u8],
    pub scid: &'a [u8],
    pub token: &'a [u8],
}

impl Sealing<'_> {
    /// A packet of a connection in which the client has no id and the server keeps the id that the client chose.
    fn plain(is_server: bool, is_v2: bool, number: u8) -> Self {
        let dcid: &[u8] = if is_server { &[] } else { &DCID };
        Self { is_server, is_v2, number, key_cid: &DCID, dcid, scid: &[], token: &[] }
    }
}

/// Creates an Initial packet of version 1 or 2 with a packet number of one octet and a length of at least 1200 octets.
pub fn seal(sealing: &Sealing<'_>, frames: &[u8]) -> Vec<u8> {
    let Sealing { is_server, is_v2, number, key_cid, dcid, scid, token } = *sealing;
    let (salt, version, first, label) = if is_v2 {
        (0x0ded_e3de_f700_a6db_8193_81be_6e26_9dcb_u128, 0x6b33_43cf_u32, 0xd0, "quicv2")
    } else {
        (0x3876_2cf7_f559_34b3_4d17_9ae6_a4c8_0cad_u128, 1, 0xc0, "quic")
    };
    let end: [u8; 4] = if is_v2 { [0xf9, 0xbd, 0x2e, 0xd9] } else { [0xcc, 0xbb, 0x7f, 0x0a] };
    let initial = Hkdf::<Sha256>::new(Some(&[&salt.to_be_bytes()[..], &end].concat()), key_cid);
    let secret: [u8; 32] = expand(&initial, if is_server { "server in" } else { "client in" });
    let secret = Hkdf::<Sha256>::from_prk(&secret).expect("32 octets");
    let key: [u8; 16] = expand(&secret, &format!("{label} key"));
    let mut nonce: [u8; 12] = expand(&secret, &format!("{label} iv"));
    let mask_key: [u8; 16] = expand(&secret, &format!("{label} hp"));
    nonce[11] ^= number;

    let mut payload = frames.to_vec();
    payload.resize(frames.len().max(1170), 0);
    let token_len = (0x4000 | token.len() as u16).to_be_bytes();
    let len = (0x8000_0000 | (payload.len() as u32 + 17)).to_be_bytes();
    let mut packet = [
        &[first][..],
        &version.to_be_bytes(),
        &[dcid.len() as u8],
        dcid,
        &[scid.len() as u8],
        scid,
        &token_len,
        token,
        &len,
        &[number],
    ]
    .concat();
    let cipher = Aes128Gcm::new(&key.into());
    let sealed = cipher.encrypt_inout_detached(&Nonce::from(nonce), &packet, payload.as_mut_slice().into());
    let mut mask = <[u8; 16]>::try_from(&payload[3..19]).expect("16 octets").into();
    Aes128::new(&mask_key.into()).encrypt_block(&mut mask);
    packet[0] ^= mask[0] & 0x0f;
    *packet.last_mut().expect("a packet number") ^= mask[1];
    packet.extend(payload);
    packet.extend(sealed.expect("a short packet"));
    packet
}

fn describe(meta: &MessageMeta, Report::One(message): Report<'_>) -> Line {
    let json = json(&message);
    Line::Whole(format!("{} {json} {message:?}", meta.from.name()))
}

const HELD_MAX: u64 = 4 * CRYPTO_LEN_MAX as u64 + 8192;

fn datagrams(steps: &[Step<'_>]) -> Vec<(Role, Vec<u8>)> {
    let mut datagrams: Vec<(Role, Vec<u8>)> = Vec::new();
    for (count, step) in (0_u8..).zip(steps) {
        let (from, octets) = match *step {
            Step::Datagram { from, octets } => (from, octets.to_vec()),
            Step::Frames { from, is_v2, number, frames } => {
                (from, seal(&Sealing::plain(from == Role::Server, is_v2, number), frames))
            }
            Step::Crypto { from, offset, octets } => {
                let offset = (0x8000_0000 | u32::from(offset)).to_be_bytes();
                let len = (0x8000_0000 | octets.len() as u32).to_be_bytes();
                let frame = [&[6][..], &offset, &len, octets].concat();
                (from, seal(&Sealing::plain(from == Role::Server, false, count), &frame))
            }
            Step::Joined { from, octets } => match datagrams.last_mut() {
                Some((_, last)) => {
                    last.extend_from_slice(octets);
                    continue;
                }
                None => (from, octets.to_vec()),
            },
        };
        datagrams.push((from, octets));
    }
    datagrams
}

fn played(datagrams: &[(Role, Vec<u8>)], times: usize) -> Vec<Played<'_>> {
    let mut steps = Vec::new();
    for (from, octets) in datagrams {
        steps.extend(std::iter::repeat_n(Played::Octets { from: *from, octets }, times));
    }
    steps
}

pub fn run(data: &[u8]) {
    let Some(input) = structured::<Input<'_>>(data) else { return };
    let datagrams = datagrams(&input.steps);
    let terms = || Expectations::<Set>::tcp(443, &[b""], describe, HELD_MAX).udp();
    let once = play(&terms(), &played(&datagrams, 1), usize::MAX);
    play(&terms().with_limits(input.choice), &played(&datagrams, 1), usize::MAX);
    let is_sealed = |step: &Step<'_>| matches!(step, Step::Frames { .. } | Step::Crypto { .. });
    // A truncated datagram is not decrypted, so that its copy is not a duplicate.
    let is_complete = |(_, octets): &(Role, Vec<u8>)| octets.len() % 4 != 3;
    if input.steps.iter().all(is_sealed)
        && input.steps.len() <= STEP_COUNT_MAX
        && datagrams.iter().all(is_complete)
    {
        let twice = play(&terms(), &played(&datagrams, 2), usize::MAX);
        assert_same(&once, &twice, "lines of packets sent once and twice");
    }
}
