//! Datagrams made from octets, and Initial packets sealed with the right keys around frames made from octets: nothing panics,
//! memory stays below its caps and is given back, and packets that come twice say what they say once.
#![no_main]

use std::net::IpAddr;

use aes_gcm::aead::AeadInOut;
use aes_gcm::aes::Aes128;
use aes_gcm::aes::cipher::{BlockCipherEncrypt, KeyInit};
use aes_gcm::{Aes128Gcm, Nonce};
use flowgauge::base::{FlowKey, IpProtocol, Side, Timestamp};
use flowgauge::session::quic::{self, CRYPTO_LEN_MAX, QuicParser};
use flowgauge::session::{About, Driver, EndKind, Receiver, Session, Whose};
use hkdf::Hkdf;
use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use sha2::Sha256;

flowgauge::protocols! {
    /// QUIC alone.
    #[derive(Debug)]
    enum Set;
    /// What it says.
    #[derive(Debug)]
    enum Heard;
    parsers { Quic: QuicParser = &quic::PROTOCOL }
    recognised {}
}

#[derive(Arbitrary, Debug)]
enum Step<'a> {
    /// Any octets.
    Datagram { of_server: bool, octets: &'a [u8] },
    /// Frames that the parser can read.
    Frames { of_server: bool, of_v2: bool, number: u8, frames: &'a [u8] },
    /// A part of a handshake message in its place.
    Crypto { of_server: bool, offset: u16, octets: &'a [u8] },
}

const DCID: [u8; 8] = *b"8octets!";

/// Steps up to which packets that no key opens do not end it, though they come twice.
const STEP_COUNT_MAX: usize = 7;

fn expand<const N: usize>(secret: &Hkdf<Sha256>, label: &str) -> [u8; N] {
    let info = [&[0, N as u8, 6 + label.len() as u8][..], b"tls13 ", label.as_bytes(), &[0]].concat();
    let mut okm = [0; N];
    secret.expand(&info, &mut okm).expect("a short key");
    okm
}

/// An Initial packet of version 1 or 2 with a packet number of one octet, in 1200 octets or more.
fn seal(of_server: bool, of_v2: bool, number: u8, frames: &[u8]) -> Vec<u8> {
    let (salt, version, first, label) = if of_v2 {
        (0x0ded_e3de_f700_a6db_8193_81be_6e26_9dcb_u128, 0x6b33_43cf_u32, 0xd0, "quicv2")
    } else {
        (0x3876_2cf7_f559_34b3_4d17_9ae6_a4c8_0cad_u128, 1, 0xc0, "quic")
    };
    let end: [u8; 4] = if of_v2 { [0xf9, 0xbd, 0x2e, 0xd9] } else { [0xcc, 0xbb, 0x7f, 0x0a] };
    let initial = Hkdf::<Sha256>::new(Some(&[&salt.to_be_bytes()[..], &end].concat()), &DCID);
    let secret: [u8; 32] = expand(&initial, if of_server { "server in" } else { "client in" });
    let secret = Hkdf::<Sha256>::from_prk(&secret).expect("32 octets");
    let key: [u8; 16] = expand(&secret, &format!("{label} key"));
    let mut nonce: [u8; 12] = expand(&secret, &format!("{label} iv"));
    let mask_key: [u8; 16] = expand(&secret, &format!("{label} hp"));
    nonce[11] ^= number;

    let mut payload = frames.to_vec();
    payload.resize(frames.len().max(1170), 0);
    let dcid: &[u8] = if of_server { &[] } else { &DCID };
    let len = (0x8000_0000 | (payload.len() as u32 + 17)).to_be_bytes();
    let mut packet =
        [&[first][..], &version.to_be_bytes(), &[dcid.len() as u8], dcid, &[0, 0], &len, &[number]].concat();
    let cipher = Aes128Gcm::new(&key.into());
    let sealed = cipher.encrypt_inout_detached(&Nonce::from(nonce), &packet, payload.as_mut_slice().into());
    let mut mask = <[u8; 16]>::try_from(&payload[3..19]).expect("16 octets").into();
    Aes128::new(&mask_key.into()).encrypt_block(&mut mask);
    packet[0] ^= mask[0] & 0x0f;
    *packet.last_mut().expect("a number") ^= mask[1];
    packet.extend(payload);
    packet.extend(sealed.expect("a short packet"));
    packet
}

#[derive(Default)]
struct Ear(Vec<String>);

impl Receiver<Set> for Ear {
    fn message(&mut self, _: &About, message: Heard<'_>) {
        self.0.push(format!("{message:?}"));
    }
}

fn hear(datagrams: &[(bool, Vec<u8>)], times: usize) -> Vec<String> {
    let end = |last, port| (IpAddr::from([10, 0, 0, last]), port);
    let (key, _) = FlowKey::new(IpProtocol::UDP, end(1, 40_000), end(2, 443));
    let (mut driver, mut session, mut ear) = (Driver::<Set>::default(), Session::default(), Ear::default());
    let whose = Whose::new(&key, Side::A, Timestamp::from_nanos(0));
    for (of_server, bytes) in datagrams {
        for _ in 0..times {
            let side = if *of_server { Side::B } else { Side::A };
            driver.datagram(&mut session, &whose, side, (bytes, bytes.len()), &mut ear);
            assert!(driver.stats().held_bytes <= 4 * CRYPTO_LEN_MAX as u64 + 8192);
        }
    }
    driver.finish(&mut session, &whose, EndKind::Flow, &mut ear);
    assert_eq!(driver.stats().held_bytes, 0);
    ear.0
}

fuzz_target!(|steps: Vec<Step<'_>>| {
    let mut datagrams = Vec::new();
    for step in &steps {
        datagrams.push(match step {
            Step::Datagram { of_server, octets } => (*of_server, octets.to_vec()),
            Step::Frames { of_server, of_v2, number, frames } => {
                (*of_server, seal(*of_server, *of_v2, *number, frames))
            }
            Step::Crypto { of_server, offset, octets } => {
                let place = (0x8000_0000 | u32::from(*offset)).to_be_bytes();
                let len = (0x8000_0000 | octets.len() as u32).to_be_bytes();
                let frame = [&[6][..], &place, &len, octets].concat();
                (*of_server, seal(*of_server, false, 1, &frame))
            }
        });
    }
    let once = hear(&datagrams, 1);
    let has_only_sealed = !steps.iter().any(|step| matches!(step, Step::Datagram { .. }));
    if has_only_sealed && steps.len() <= STEP_COUNT_MAX {
        assert_eq!(hear(&datagrams, 2), once);
    }
});
