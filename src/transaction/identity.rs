//! Who authenticates in a request of HTTP with NTLM or Kerberos (RFC 4559). Names that other schemes state belong to passwords, and
//! are not kept.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::open::Copier;
use crate::protocols::gss;
use crate::session::Text;

/// Number of letters of base64 that are decoded: all of NTLM, and the ticket of Kerberos up to what is encrypted.
const LETTER_MAX: usize = 4096;

/// What a token states.
#[derive(Debug, Default)]
pub(super) struct Identity {
    /// Name of the user, with the domain.
    pub(super) user_name: Option<Box<str>>,
    /// Name of the client's host.
    pub(super) client_host: Option<Box<str>>,
    /// Name of the service whose ticket is used, with its realm.
    pub(super) service_name: Option<Box<str>>,
}

impl Identity {
    /// Reads the values of the fields Authorization and Proxy-Authorization, of which the first one counts that states a name.
    pub(super) fn read<'t>(mut values: impl Iterator<Item = Text<'t>>, copier: &mut Copier) -> Self {
        let Some(states) = values.find_map(|value| gss::stated(&token(value)?)) else {
            return Self::default();
        };
        Self {
            user_name: copier.optional(states.user_name.as_ref().map(|name| name.text())),
            client_host: copier.optional(states.client_host.as_ref().map(|name| name.text())),
            service_name: copier.optional(states.service_name.as_deref().map(Text::from)),
        }
    }
}

/// Returns the token in the value of a field.
fn token(value: Text<'_>) -> Option<Vec<u8>> {
    let (scheme, letters) = value.0.split_at_checked(value.0.iter().position(u8::is_ascii_whitespace)?)?;
    let is_known = [&b"ntlm"[..], b"negotiate"].iter().any(|known| scheme.eq_ignore_ascii_case(known));
    let letters = letters.trim_ascii();
    let letters = if letters.len() > LETTER_MAX { letters.get(..LETTER_MAX)? } else { letters };
    STANDARD.decode(letters).ok().filter(|_| is_known)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(value: &str) -> Identity {
        let values = ["Basic dXNlcjpwYXNz", value].map(|value| Text(value.as_bytes()));
        Identity::read(values.into_iter(), &mut Copier::default())
    }

    #[test]
    fn users_of_ntlm_are_read_and_those_of_basic_are_not() {
        // The message AUTHENTICATE of MS-NLMP section 4.2.4.3, whose names are Domain, User and COMPUTER.
        let (domain, user, host) = (utf16("Domain"), utf16("User"), utf16("COMPUTER"));
        let mut message = b"NTLMSSP\0\x03\0\0\0".to_vec();
        message.extend([0; 16]);
        let mut offset = 64;
        for value in [&domain, &user, &host] {
            let len = u8::try_from(value.len()).unwrap();
            message.extend([len, 0, len, 0, offset, 0, 0, 0]);
            offset += len;
        }
        message.extend([0; 8]);
        message.extend([1, 0, 0, 0]);
        message.extend([domain, user, host].concat());
        let letters = STANDARD.encode(&message);
        for scheme in ["NTLM", "Negotiate", "ntlm "] {
            let identity = read(&format!("{scheme} {letters}"));
            assert_eq!(identity.user_name.as_deref(), Some(r"Domain\User"), "{scheme}");
            assert_eq!(identity.client_host.as_deref(), Some("COMPUTER"));
        }
        for other in [
            "Basic dXNlcjpwYXNz",
            &format!("Basic {letters}"),
            &format!("NTLM{letters}"),
            "NTLM",
            "NTLM !",
            "",
            "NTLM TlRMTVNTUAABAAAA",
        ] {
            let identity = read(other);
            assert!(identity.user_name.is_none() && identity.client_host.is_none(), "{other}");
        }
    }

    fn utf16(text: &str) -> Vec<u8> {
        text.encode_utf16().flat_map(u16::to_le_bytes).collect()
    }
}
