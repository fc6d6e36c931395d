//! Public keys and algorithms in certificates.

use std::fmt;

use crate::codec::ber::{Oid, Values, tag, unsigned};

/// An object identifier, in DER without tag and length. Displayed as its name, if it is that of an algorithm or curve, or
/// else in digits: `1.2.840.113549.1.1.10`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObjectId<'a>(pub &'a [u8]);

/// Names of algorithms and curves, as OpenSSL has them (RFC 3279, 4055, 5480, 5639, 5758, 8410).
const NAMES: &[(&[u8], &str)] = &[
    (RSA, "rsaEncryption"),
    (DSA, "dsaEncryption"),
    (EC, "id-ecPublicKey"),
    (ED25519, "ED25519"),
    (ED448, "ED448"),
    (&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x02], "md2WithRSAEncryption"),
    (&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x04], "md5WithRSAEncryption"),
    (&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x05], "sha1WithRSAEncryption"),
    (&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x0a], "rsassaPss"),
    (&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x0b], "sha256WithRSAEncryption"),
    (&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x0c], "sha384WithRSAEncryption"),
    (&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x0d], "sha512WithRSAEncryption"),
    (&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x0e], "sha224WithRSAEncryption"),
    (&[0x2a, 0x86, 0x48, 0xce, 0x38, 0x04, 0x03], "dsaWithSHA1"),
    (&[0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x03, 0x02], "dsa_with_SHA256"),
    (&[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x01], "ecdsa-with-SHA1"),
    (&[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x01], "ecdsa-with-SHA224"),
    (&[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02], "ecdsa-with-SHA256"),
    (&[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x03], "ecdsa-with-SHA384"),
    (&[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x04], "ecdsa-with-SHA512"),
    (&[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x01], "prime192v1"),
    (&[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07], "prime256v1"),
    (&[0x2b, 0x81, 0x04, 0x00, 0x0a], "secp256k1"),
    (&[0x2b, 0x81, 0x04, 0x00, 0x21], "secp224r1"),
    (&[0x2b, 0x81, 0x04, 0x00, 0x22], "secp384r1"),
    (&[0x2b, 0x81, 0x04, 0x00, 0x23], "secp521r1"),
    (&[0x2b, 0x24, 0x03, 0x03, 0x02, 0x08, 0x01, 0x01, 0x07], "brainpoolP256r1"),
    (&[0x2b, 0x24, 0x03, 0x03, 0x02, 0x08, 0x01, 0x01, 0x0b], "brainpoolP384r1"),
    (&[0x2b, 0x24, 0x03, 0x03, 0x02, 0x08, 0x01, 0x01, 0x0d], "brainpoolP512r1"),
];

const RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01];
const DSA: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x38, 0x04, 0x01];
const EC: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01];
const ED25519: &[u8] = &[0x2b, 0x65, 0x70];
const ED448: &[u8] = &[0x2b, 0x65, 0x71];

impl ObjectId<'_> {
    fn name(self) -> Option<&'static str> {
        NAMES.iter().find(|(oid, _)| *oid == self.0).map(|(_, name)| *name)
    }
}

impl fmt::Display for ObjectId<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => Oid(self.0).fmt(f),
        }
    }
}

/// The public key of a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PublicKey<'a> {
    /// Algorithm of the key.
    pub algorithm: ObjectId<'a>,
    /// `rsa`, `dsa`, `ecdsa`, `ed25519` or `ed448`; `None` for others.
    pub kind: Option<&'static str>,
    /// Length of the key in bits: of the modulus, or of the order of the field of the curve; `None` if it is not known.
    pub len: Option<u32>,
    /// Public exponent of an RSA key; `None` if it is longer than 32 bits.
    pub exponent: Option<u32>,
    /// Curve of an elliptic key.
    pub curve: Option<ObjectId<'a>>,
}

impl<'a> PublicKey<'a> {
    /// Parses the content of a SubjectPublicKeyInfo (RFC 5280 section 4.1.2.7).
    pub(super) fn parse(info: &'a [u8]) -> Option<Self> {
        let mut parts = Values(info);
        let mut algorithm = Values(parts.next_of(tag::SEQUENCE)?);
        let oid = algorithm.next_of(tag::OBJECT_IDENTIFIER)?;
        let mut key = Self { algorithm: ObjectId(oid), kind: None, len: None, exponent: None, curve: None };
        match oid {
            RSA => {
                key.kind = Some("rsa");
                // The first octet of a bit string is the number of unused bits.
                let (_, bits) = parts.next_of(tag::BIT_STRING)?.split_first()?;
                let mut numbers = Values(Values(bits).next_of(tag::SEQUENCE)?);
                key.len = numbers.next_of(tag::INTEGER).and_then(bit_len);
                key.exponent = numbers.next_of(tag::INTEGER).and_then(unsigned);
            }
            DSA => {
                key.kind = Some("dsa");
                let parameters = algorithm.next_of(tag::SEQUENCE).unwrap_or_default();
                key.len = Values(parameters).next_of(tag::INTEGER).and_then(bit_len);
            }
            EC => {
                key.kind = Some("ecdsa");
                key.curve = algorithm.next_of(tag::OBJECT_IDENTIFIER).map(ObjectId);
                key.len = key.curve.and_then(|curve| match curve.name()? {
                    "prime192v1" => Some(192),
                    "secp224r1" => Some(224),
                    "prime256v1" | "secp256k1" | "brainpoolP256r1" => Some(256),
                    "secp384r1" | "brainpoolP384r1" => Some(384),
                    "brainpoolP512r1" => Some(512),
                    "secp521r1" => Some(521),
                    _ => None,
                });
            }
            ED25519 => (key.kind, key.len) = (Some("ed25519"), Some(256)),
            ED448 => (key.kind, key.len) = (Some("ed448"), Some(456)),
            _ => {}
        }
        Some(key)
    }
}

/// Returns the number of significant bits in the content of an INTEGER.
fn bit_len(content: &[u8]) -> Option<u32> {
    let zero_count = content.iter().take_while(|octet| **octet == 0).count();
    let rest = content.get(zero_count..)?;
    let first = rest.first()?;
    u32::try_from(rest.len() * 8).ok().map(|len| len - first.leading_zeros())
}
