//! Keys of QUIC Initial packets, which any observer of the client's first packet can derive: RFC 9001 section 5, RFC
//! 9369 section 3.3.

use aes_gcm::aead::AeadInOut;
use aes_gcm::aes::Aes128;
use aes_gcm::aes::cipher::{BlockCipherEncrypt, KeyInit};
use aes_gcm::{Aes128Gcm, Nonce, Tag};
use hkdf::Hkdf;
use sha2::Sha256;

use super::packet::{Initial, TAG_LEN};
use super::version::Rules;
use crate::session::Role;

/// Length in octets of the sample for header protection, which starts four octets after the start of the packet number
/// (RFC 9001 section 5.4.2).
const SAMPLE_LEN: usize = 16;
const NUMBER_LEN_MAX: usize = 4;
const NONCE_LEN: usize = 12;

/// Keys that protect the Initial packets of one end.
#[derive(Clone)]
pub(super) struct Keys {
    key: [u8; 16],
    iv: [u8; NONCE_LEN],
    header: [u8; 16],
}

impl std::fmt::Debug for Keys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Keys")
    }
}

impl Keys {
    /// Derives the keys of the Initial packets of `sender`, in a connection in which the client sent its first packet
    /// to connection id `dcid`.
    pub(super) fn derive(rules: &Rules, dcid: &[u8], sender: Role) -> Option<Self> {
        let initial = Hkdf::<Sha256>::new(Some(&rules.salt), dcid);
        let secret: [u8; 32] = match sender {
            Role::Client => expand(&initial, "client in", "")?,
            Role::Server => expand(&initial, "server in", "")?,
        };
        let secret = Hkdf::<Sha256>::from_prk(&secret).ok()?;
        Some(Self {
            key: expand(&secret, rules.label, " key")?,
            iv: expand(&secret, rules.label, " iv")?,
            header: expand(&secret, rules.label, " hp")?,
        })
    }

    /// Decrypts an Initial packet. Returns the decrypted packet if it was protected with these keys. `largest` is the
    /// highest packet number of the sender so far. Allocates a copy of the packet.
    pub(super) fn open(&self, packet: &Initial<'_>, largest: Option<u64>) -> Option<Opened> {
        let sample_at = packet.number_at + NUMBER_LEN_MAX;
        let sample = packet.bytes.get(sample_at..sample_at + SAMPLE_LEN)?;
        let mut mask = <[u8; SAMPLE_LEN]>::try_from(sample).ok()?.into();
        Aes128::new(&self.header.into()).encrypt_block(&mut mask);
        let [first_mask, number_mask @ ..] = <[u8; SAMPLE_LEN]>::from(mask);

        let mut bytes = packet.bytes.to_vec();
        let first = bytes.first_mut()?;
        *first ^= first_mask & 0x0f;
        let number_len = usize::from(*first & 3) + 1;
        let frames_at = packet.number_at + number_len;
        let mut truncated = 0;
        for (octet, mask) in bytes.get_mut(packet.number_at..frames_at)?.iter_mut().zip(number_mask) {
            *octet ^= mask;
            truncated = truncated << 8 | u64::from(*octet);
        }
        let number = whole_number(truncated, number_len, largest);

        let mut nonce = self.iv;
        for (octet, of_number) in nonce.iter_mut().rev().zip(number.to_le_bytes()) {
            *octet ^= of_number;
        }
        let tag_at = bytes.len().checked_sub(TAG_LEN)?;
        let (protected, tag) = bytes.split_at_mut_checked(tag_at)?;
        let tag = Tag::from(<[u8; TAG_LEN]>::try_from(&*tag).ok()?);
        let (header, frames) = protected.split_at_mut_checked(frames_at)?;
        let cipher = Aes128Gcm::new(&self.key.into());
        cipher.decrypt_inout_detached(&Nonce::from(nonce), header, frames.into(), &tag).ok()?;
        Some(Opened { bytes, frames_at, tag_at, number })
    }
}

#[cfg(test)]
impl Keys {
    /// Encrypts an Initial packet. `header` is the part before the packet number, which is written in two octets.
    pub(super) fn seal(&self, header: &[u8], number: u16, frames: &[u8]) -> Vec<u8> {
        let mut packet = [header, &number.to_be_bytes(), frames].concat();
        let frames_at = header.len() + 2;
        let mut nonce = self.iv;
        nonce.iter_mut().rev().zip(number.to_le_bytes()).for_each(|(octet, of_number)| *octet ^= of_number);
        let (associated, inside) = packet.split_at_mut(frames_at);
        let cipher = Aes128Gcm::new(&self.key.into());
        let sealed = cipher.encrypt_inout_detached(&Nonce::from(nonce), associated, inside.into());
        packet.extend_from_slice(&sealed.expect("a short packet"));
        let sample = &packet[header.len() + NUMBER_LEN_MAX..][..SAMPLE_LEN];
        let mut mask = <[u8; SAMPLE_LEN]>::try_from(sample).expect("16 octets").into();
        Aes128::new(&self.header.into()).encrypt_block(&mut mask);
        packet[0] ^= mask[0] & 0x0f;
        packet[header.len()] ^= mask[1];
        packet[header.len() + 1] ^= mask[2];
        packet
    }
}

/// A decrypted Initial packet.
pub(super) struct Opened {
    bytes: Vec<u8>,
    frames_at: usize,
    tag_at: usize,
    pub(super) number: u64,
}

impl Opened {
    pub(super) fn frames(&self) -> &[u8] {
        self.bytes.get(self.frames_at..self.tag_at).unwrap_or_default()
    }
}

/// Computes HKDF-Expand-Label of TLS 1.3 with an empty context (RFC 8446 section 7.1). The label is `label` followed by
/// `end`.
fn expand<const N: usize>(secret: &Hkdf<Sha256>, label: &str, end: &str) -> Option<[u8; N]> {
    const PREFIX: &str = "tls13 ";
    let len = [0, N as u8, (PREFIX.len() + label.len() + end.len()) as u8];
    let info = [&len[..], PREFIX.as_bytes(), label.as_bytes(), end.as_bytes(), &[0]];
    let mut okm = [0; N];
    secret.expand_multi_info(&info, &mut okm).ok()?;
    Some(okm)
}

/// Reconstructs a packet number from its `len` transmitted octets, as the closest value to the successor of `largest`,
/// the highest packet number so far (RFC 9000, Appendix A.3).
fn whole_number(truncated: u64, len: usize, largest: Option<u64>) -> u64 {
    let expected = largest.map_or(0, |largest| largest + 1);
    let window = 1_u64 << (8 * len);
    let candidate = expected & !(window - 1) | truncated;
    if candidate + window / 2 <= expected && candidate < (1 << 62) - window {
        candidate + window
    } else if candidate > expected + window / 2 && candidate >= window {
        candidate - window
    } else {
        candidate
    }
}

/// Returns whether the integrity tag proves that a Retry packet responds to a client's packet sent to `dcid` (RFC 9001
/// section 5.8); `None` if the tag key of the version is unknown. `tagged` is the Retry packet without the tag.
pub(super) fn is_genuine_retry(
    rules: &Rules,
    dcid: &[u8],
    tagged: &[u8],
    tag: [u8; TAG_LEN],
) -> Option<bool> {
    let (key, nonce) = rules.retry?;
    let mut pseudo_packet = Vec::with_capacity(1 + dcid.len() + tagged.len());
    pseudo_packet.push(u8::try_from(dcid.len()).ok()?);
    pseudo_packet.extend_from_slice(dcid);
    pseudo_packet.extend_from_slice(tagged);
    let cipher = Aes128Gcm::new(&key.into());
    let mut nothing = [0; 0];
    let nothing = nothing.as_mut_slice().into();
    Some(cipher.decrypt_inout_detached(&Nonce::from(nonce), &pseudo_packet, nothing, &Tag::from(tag)).is_ok())
}

#[cfg(test)]
mod tests {
    use super::super::frames::{Frame, Frames};
    use super::super::packet::{self, Body};
    use super::super::vectors;
    use super::super::version::Version;
    use super::*;

    const DCID: [u8; 8] = [0x83, 0x94, 0xc8, 0xf0, 0x3e, 0x51, 0x57, 0x08];

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|octet| format!("{octet:02x}")).collect()
    }

    fn keys(version: Version, sender: Role) -> Keys {
        Keys::derive(version.rules().expect("a supported version"), &DCID, sender).expect("keys")
    }

    #[test]
    fn keys_match_the_rfcs() {
        let keys_of = |version, sender| {
            let keys = keys(version, sender);
            [hex(&keys.key), hex(&keys.iv), hex(&keys.header)]
        };
        // RFC 9001, Appendix A.1.
        assert_eq!(
            keys_of(Version::V1, Role::Client),
            [
                "1f369613dd76d5467730efcbe3b1a22d",
                "fa044b2f42a3fd3b46fb255c",
                "9f50449e04a0e810283a1e9933adedd2"
            ]
        );
        assert_eq!(
            keys_of(Version::V1, Role::Server),
            [
                "cf3a5331653c364c88f0f379b6067e37",
                "0ac1493ca1905853b0bba03e",
                "c206b8d9b9f0f37644430b490eeaa314"
            ]
        );
        // RFC 9369, Appendix A.1.
        assert_eq!(
            keys_of(Version::V2, Role::Client),
            [
                "8b1a0bc121284290a29e0971b5cd045d",
                "91f73e2351d8fa91660e909f",
                "45b95e15235d6f45a6b19cbcb0294ba9"
            ]
        );
        assert_eq!(
            keys_of(Version::V2, Role::Server),
            [
                "82db637861d55e1d011f19ea71d5d2a7",
                "dd13c276499c0249d3310652",
                "edf6d05c83121201b436e16877593c3a"
            ]
        );
    }

    #[test]
    fn packets_of_the_rfcs_decrypt_and_changed_packets_do_not() {
        let packets = [
            (Version::V1, Role::Client, vectors::CLIENT_INITIAL_V1, 2, 241),
            (Version::V1, Role::Server, vectors::SERVER_INITIAL_V1, 1, 90),
            (Version::V2, Role::Client, vectors::CLIENT_INITIAL_V2, 2, 241),
            (Version::V2, Role::Server, vectors::SERVER_INITIAL_V2, 1, 90),
        ];
        for (version, sender, digits, number, hello_len) in packets {
            let mut bytes = vectors::octets(digits);
            let keys = keys(version, sender);
            let open = |bytes: &[u8]| {
                let packet = packet::next(&mut &*bytes)?;
                let Body::Initial(initial) = packet.body else { return None };
                keys.open(&initial, None)
            };
            let opened = open(&bytes).expect("a packet of the standard");
            assert_eq!(opened.number, number);
            let frames: Vec<_> = Frames::new(opened.frames()).collect();
            let [Frame::Crypto { offset: 0, bytes: hello }] = frames[..] else { panic!("{frames:?}") };
            let kind = if sender == Role::Client { 1 } else { 2 };
            assert_eq!((hello[0], hello.len()), (kind, hello_len), "{version} {sender:?}");

            for position in (0..bytes.len()).step_by(7) {
                bytes[position] ^= 0x20;
                assert!(open(&bytes).is_none(), "{version} {sender:?}: octet {position} changed");
                bytes[position] ^= 0x20;
            }
        }
    }

    #[test]
    fn a_changed_retry_is_not_genuine() {
        // RFC 9001, Appendix A.4; RFC 9369, Appendix A.4; draft-ietf-quic-tls-29, Appendix A.4.
        let packets = [
            "ff000000010008f067a5502a4262b5746f6b656e04a265ba2eff4d829058fb3f0f2496ba",
            "cf6b3343cf0008f067a5502a4262b5746f6b656ec8646ce8bfe33952d955543665dcc7b6",
            "ffff00001d0008f067a5502a4262b5746f6b656ed16926d81f6f9ca2953a8aa4575e1e49",
        ];
        for digits in packets {
            let bytes = vectors::octets(digits);
            let packet = packet::next(&mut &bytes[..]).expect("a packet");
            let Body::Retry { token, tagged, tag } = packet.body else { panic!("{packet:?}") };
            assert_eq!(token, b"token");
            let rules = packet.header.version.rules().expect("a supported version");
            assert_eq!(is_genuine_retry(rules, &DCID, tagged, tag), Some(true));
            assert_eq!(is_genuine_retry(rules, &DCID[1..], tagged, tag), Some(false));
            assert_eq!(is_genuine_retry(rules, &DCID, &tagged[1..], tag), Some(false));
        }
    }

    #[test]
    fn packet_numbers_are_the_nearest_to_the_expected_one() {
        // RFC 9000, Appendix A.3.
        assert_eq!(whole_number(0x9b32, 2, Some(0xa82f_30ea)), 0xa82f_9b32);
        assert_eq!(whole_number(5, 1, None), 5);
        assert_eq!(whole_number(0xfe, 1, None), 0xfe);
        assert_eq!(whole_number(2, 1, Some(0xfd)), 0x102);
        assert_eq!(whole_number(0xfd, 1, Some(0x102)), 0xfd);
        assert_eq!(whole_number(0, 4, Some((1 << 62) - 2)), (1 << 62) - (1 << 32));
    }
}
