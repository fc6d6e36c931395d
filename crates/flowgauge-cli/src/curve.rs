//! Files with secret keys of CURVE, the encryption of ZeroMQ.

use std::fs::File;
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::path::Path;

use flowgauge_bus::SecretKey;

use crate::console::Failure;
use crate::creation::{self, Access};

/// Reads a secret key from a file: 40 characters of Z85, or a certificate of ZeroMQ with a line `secret-key`. Creates the
/// file with a new key if it does not exist. A file that others can access is refused.
pub(crate) fn secret_key(path: &Path) -> Result<SecretKey, Failure> {
    let failure = |error: &dyn std::fmt::Display| Failure::Other(format!("{}: {error}", path.display()));
    match read(path) {
        Ok(text) => parse(&text).ok_or_else(|| failure(&"the file does not contain a secret key in Z85")),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let key = SecretKey::generate();
            create(path, &key).map_err(|error| failure(&error))?;
            Ok(key)
        }
        Err(error) => Err(failure(&error)),
    }
}

/// Reads a file to which only its owner has access.
fn read(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    #[cfg(unix)]
    {
        let metadata = file.metadata()?;
        let mode = std::os::unix::fs::MetadataExt::mode(&metadata) & 0o777;
        if metadata.is_file() && mode & 0o077 != 0 {
            return Err(io::Error::other(format!(
                "others than the owner have access to the key (mode {mode:04o}); chmod 600 removes it"
            )));
        }
    }
    let mut text = String::new();
    file.read_to_string(&mut text)?;
    Ok(text)
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
    let mut file = creation::create(path, &Access::Private)?;
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

    #[cfg(unix)]
    #[test]
    fn keys_that_others_can_access_are_refused() {
        use std::os::unix::fs::PermissionsExt as _;
        let path = std::env::temp_dir().join(format!("flowgauge-key-{}", std::process::id()));
        let key = secret_key(&path).ok().unwrap();
        for mode in [0o640, 0o604, 0o610, 0o666, 0o600, 0o400] {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            match secret_key(&path) {
                Ok(read) => assert!(mode & 0o077 == 0 && read.to_z85() == key.to_z85(), "{mode:o}"),
                Err(Failure::Other(text)) => {
                    assert!(mode & 0o077 != 0 && text.contains(&format!("mode 0{mode:o}")), "{text}");
                }
                Err(_) => panic!("another failure"),
            }
        }
        std::fs::remove_file(&path).unwrap();
    }
}
