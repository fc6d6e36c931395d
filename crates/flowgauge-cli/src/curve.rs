//! Files with secret keys of CURVE, the encryption of ZeroMQ.

use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::path::Path;

use flowgauge_bus::SecretKey;

use crate::console::Failure;

/// Reads a secret key from a file: 40 characters of Z85, or a certificate of ZeroMQ with a line `secret-key`. Creates the
/// file with a new key if it does not exist.
pub(crate) fn secret_key(path: &Path) -> Result<SecretKey, Failure> {
    let failure = |error: &dyn std::fmt::Display| Failure::Other(format!("{}: {error}", path.display()));
    match fs::read_to_string(path) {
        Ok(text) => parse(&text).ok_or_else(|| failure(&"the file does not contain a secret key in Z85")),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let key = SecretKey::generate();
            create(path, &key).map_err(|error| failure(&error))?;
            Ok(key)
        }
        Err(error) => Err(failure(&error)),
    }
}

fn parse(text: &str) -> Option<SecretKey> {
    let of_certificate = text.lines().find_map(|line| {
        let (name, value) = line.split_once('=')?;
        let value = value.trim();
        let value = value.strip_prefix('"')?.strip_suffix('"')?;
        (name.trim() == "secret-key").then_some(value)
    });
    SecretKey::from_z85(of_certificate.unwrap_or(text.trim())).ok()
}

/// Writes a key to a new file that only its owner can read.
fn create(path: &Path, key: &SecretKey) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path)?;
    file.write_all(format!("{}\n", key.to_z85()).as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_certificates_are_parsed() {
        let key = SecretKey::generate();
        let text = key.to_z85();
        let certificate = format!(
            "#   ****  Generated on 2026-11-22 by pyzmq  ****\n\nmetadata\ncurve\n    public-key = \"{}\"\n    secret-key = \"{text}\"\n",
            key.public_key()
        );
        for text in [text.clone(), format!("{text}\n"), certificate] {
            assert_eq!(parse(&text).map(|key| key.to_z85()), Some(key.to_z85()), "{text}");
        }
        for text in ["", "secret-key = \"\"", &text[1..]] {
            assert!(parse(text).is_none());
        }
    }
}
