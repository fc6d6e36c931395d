//! Keys of CURVE, the encryption of ZeroMQ.

use std::fmt;
use std::str::FromStr;

use omq_tokio::{CurveKeypair, CurvePublicKey, CurveSecretKey};

use crate::error::BusError;

/// Secret key of CURVE. [`Debug`] does not show it.
///
/// ```
/// use flowgauge_bus::{PublicKey, SecretKey};
///
/// let secret_key = SecretKey::generate();
/// let public_key = secret_key.public_key();
/// assert_eq!(SecretKey::from_z85(&secret_key.to_z85())?.public_key(), public_key);
/// assert_eq!(public_key.to_string().parse::<PublicKey>()?, public_key);
/// # Ok::<(), flowgauge_bus::BusError>(())
/// ```
#[derive(Clone)]
pub struct SecretKey(CurveSecretKey);

impl SecretKey {
    /// Creates a key with the random numbers of the operating system.
    #[must_use]
    pub fn generate() -> Self {
        Self(CurveKeypair::generate().secret)
    }

    /// Parses 40 characters of Z85 (ZeroMQ RFC 32).
    ///
    /// # Errors
    ///
    /// Returns [`BusError::Key`] for another text.
    pub fn from_z85(text: &str) -> Result<Self, BusError> {
        CurveSecretKey::from_z85(text).map(Self).map_err(|_| BusError::Key)
    }

    /// Returns the key in Z85, to store it.
    #[must_use]
    pub fn to_z85(&self) -> String {
        self.0.to_z85()
    }

    /// Returns the public key that belongs to the secret key.
    #[must_use]
    pub fn public_key(&self) -> PublicKey {
        PublicKey(*self.0.derive_public().as_bytes())
    }

    pub(crate) fn pair(&self) -> CurveKeypair {
        CurveKeypair { public: self.0.derive_public(), secret: self.0.clone() }
    }
}

impl fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SecretKey").finish_non_exhaustive()
    }
}

/// Public key of CURVE. Its text has 40 characters of Z85 (ZeroMQ RFC 32).
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct PublicKey(pub [u8; 32]);

impl FromStr for PublicKey {
    type Err = BusError;

    fn from_str(text: &str) -> Result<Self, BusError> {
        CurvePublicKey::from_z85(text).map(|key| Self(*key.as_bytes())).map_err(|_| BusError::Key)
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&CurvePublicKey::from_bytes(self.0).to_z85())
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicKey({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The test vectors of the manual of zmq_curve(7).
    const PUBLIC: &str = "rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf7";
    const SECRET: &str = "JTKVSB%%)wK0E.X)V>+}o?pNmC{O&4W4b!Ni{Lh6";

    #[test]
    fn keys_equal_those_of_the_manual() {
        let secret_key = SecretKey::from_z85(SECRET).unwrap();
        assert_eq!(secret_key.public_key().to_string(), PUBLIC);
        assert_eq!(secret_key.public_key(), PUBLIC.parse().unwrap());
        assert_eq!(secret_key.to_z85(), SECRET);
        assert_eq!(format!("{secret_key:?}"), "SecretKey(..)");
    }

    #[test]
    fn other_texts_are_no_keys() {
        // Too short, too long, a character outside of Z85, several octets per character, groups beyond 32 bits.
        let texts =
            ["", &SECRET[1..], &format!("{SECRET}00000"), &SECRET.replace('%', "\""), &"ä".repeat(20)];
        for text in texts.into_iter().chain([&*"#".repeat(40), &"€".repeat(40)]) {
            assert!(matches!(SecretKey::from_z85(text), Err(BusError::Key)), "{text}");
            assert!(matches!(text.parse::<PublicKey>(), Err(BusError::Key)), "{text}");
        }
    }
}
