//! Logins without encryption, each of which counts once.

use flowgauge::Message;
use flowgauge::protocols::{ftp, http1, http2, imap, irc, ldap, mqtt, pop3, smtp, snmp, socks};
use flowgauge::session::kit::KitMessage;

/// Kinds of credentials of HTTP that each request of a connection repeats. A bit of [`ConnectionLogins`] stands for each, and
/// the last one for all others.
const REPEATED: [&str; 6] = ["basic", "bearer", "digest", "negotiate", "ntlm", "userinfo"];

/// Schemes of HTTP that send a signature or proof of each request, but no secret.
const SIGNATURES: [&str; 4] = ["aws4-hmac-sha256", "dpop", "hoba", "mutual"];

/// Names of schemes without a name of their own in [`http1::Request::credentials`] that are signatures.
const OTHER_SIGNATURES: [&[u8]; 6] =
    [b"aws", b"hawk", b"oauth", b"sharedkey", b"sharedkeylite", b"signature"];

/// The first octets of messages of NTLM in Base64: those of the client that negotiates, and that authenticates (MS-NLMP
/// section 2.2.1).
const NTLM_NEGOTIATE: &[u8] = b"TlRMTVNTUAAB";
const NTLM_AUTHENTICATE: &[u8] = b"TlRMTVNTUAAD";

/// Kinds of logins that a connection had, so that requests that repeat their credentials count once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ConnectionLogins(u64);

impl ConnectionLogins {
    pub(crate) const fn to_bits(self) -> u64 {
        self.0
    }

    pub(crate) const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// Returns the kind of credentials that a message sends without encryption, if they are a login that was not counted.
    pub(crate) fn login(&mut self, message: &Message<'_>) -> Option<&'static str> {
        match message {
            Message::Smtp(smtp::Message::Command(command)) => command.credentials,
            Message::Ftp(ftp::Message::Command(command)) => command.credentials,
            Message::Http1(http1::Message::Request(request)) => {
                let kind = request.credentials?;
                let find = |name| request.headers.find(name).map(|value| value.0);
                self.request(kind, find("authorization").or_else(|| find("proxy-authorization")))
            }
            Message::Http2(http2::Message::Request(request)) => {
                let kind = request.credentials?;
                let find = |name: &[u8]| {
                    request.fields.iter().find(|field| field.name.0 == name).map(|field| field.value.0)
                };
                self.request(kind, find(b"authorization").or_else(|| find(b"proxy-authorization")))
            }
            Message::Kit(message) => of_kit(message),
            _ => None,
        }
    }

    /// Returns the kind of credentials of a request, if they are a login that was not counted.
    fn request(&mut self, kind: &'static str, value: Option<&[u8]>) -> Option<&'static str> {
        let (scheme, token) = words(value.unwrap_or_default());
        // A cookie continues a session.
        if kind == "cookie" || SIGNATURES.contains(&kind) {
            return None;
        }
        if kind == "authorization" && is_signature(scheme, value.unwrap_or_default()) {
            return None;
        }
        if matches!(kind, "ntlm" | "negotiate") {
            if token.starts_with(NTLM_NEGOTIATE) {
                return None;
            }
            if token.starts_with(NTLM_AUTHENTICATE) {
                return Some(kind);
            }
        }
        let index = REPEATED.iter().position(|known| *known == kind).unwrap_or(REPEATED.len());
        let bit = 1 << index;
        let is_new = self.0 & bit == 0;
        self.0 |= bit;
        is_new.then_some(kind)
    }
}

/// Communities of SNMP that devices have before somebody changes them.
const DEFAULT_COMMUNITIES: [&[u8]; 2] = [b"public", b"private"];

/// Returns the kind of credentials of a message, which are not repeated.
fn of_kit(message: &KitMessage<'_>) -> Option<&'static str> {
    if let Some(bind) = message.get::<ldap::Operation>() {
        // Without a name, the client is anonymous.
        let has_name = bind.object.as_ref().is_some_and(|name| !name.text().0.is_empty());
        let is_simple = bind.authentication?.name()? == "simple" && has_name;
        return is_simple.then_some("simple");
    }
    if let Some(connection) = message.get::<mqtt::Connect>() {
        return connection.has_password.then_some("password");
    }
    if let Some(session) = message.get::<socks::Session>() {
        return session.is_accepted.map(|_| "password");
    }
    if let Some(row) = message.get::<pop3::Exchange>() {
        return match row.command.as_ref()?.text().0 {
            b"PASS" => Some("password"),
            b"AUTH" => mechanism(row.argument.as_ref()?.text().0),
            _ => None,
        };
    }
    if let Some(row) = message.get::<irc::Event>() {
        let is_login = matches!(row.command.as_ref()?.text().0, b"PASS" | b"OPER" | b"AUTHENTICATE");
        return (is_login && row.is_from_client).then_some("password");
    }
    if let Some(row) = message.get::<imap::Exchange>() {
        return match row.command.as_ref()?.text().0 {
            b"LOGIN" => Some("password"),
            b"AUTHENTICATE" => mechanism(row.argument.as_ref()?.text().0),
            _ => None,
        };
    }
    let conversation = message.get::<snmp::Conversation>()?;
    let community = conversation.community.as_ref()?.text().0;
    Some(if DEFAULT_COMMUNITIES.contains(&community) { "default community" } else { "community" })
}

/// Returns the name of a mechanism of SASL that sends a secret as it is.
fn mechanism(name: &[u8]) -> Option<&'static str> {
    let known = ["login", "oauthbearer", "plain", "xoauth2"];
    known.into_iter().find(|known| name.eq_ignore_ascii_case(known.as_bytes()))
}

/// Returns the first word of a value, and what follows.
fn words(value: &[u8]) -> (&[u8], &[u8]) {
    let value = value.trim_ascii();
    let end = value.iter().position(u8::is_ascii_whitespace).unwrap_or(value.len());
    let (scheme, token) = value.split_at_checked(end).unwrap_or((value, &[]));
    (scheme, token.trim_ascii_start())
}

/// Returns whether the value of a field with another scheme is a signature.
fn is_signature(scheme: &[u8], value: &[u8]) -> bool {
    let has = |octets: &[u8], part: &[u8]| {
        octets.windows(part.len()).any(|window| window.eq_ignore_ascii_case(part))
    };
    OTHER_SIGNATURES.iter().any(|known| scheme.eq_ignore_ascii_case(known))
        || has(scheme, b"hmac")
        || has(value, b"signature=")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_login_counts_once() {
        let mut logins = ConnectionLogins::default();
        for (kind, value, expected) in [
            ("ntlm", "NTLM TlRMTVNTUAABAAAAB4IIogAAAAA=", false),
            ("ntlm", "NTLM TlRMTVNTUAADAAAAGAAYAHIAAAA=", true),
            ("ntlm", "NTLM TlRMTVNTUAADAAAAGAAYAHIAAAA=", true),
            ("negotiate", "Negotiate TlRMTVNTUAABAAAAB4IIog==", false),
            ("negotiate", "Negotiate YIIFqQYGKwYBBQUCoIIFnTCC", true),
            ("negotiate", "Negotiate oYIFqQYGKwYBBQUCoIIFnTCC", false),
            ("basic", "Basic dXNlcjpzZWNyZXQ=", true),
            ("basic", "Basic dXNlcjpzZWNyZXQ=", false),
            ("bearer", "Bearer eyJhbGciOiJIUzI1NiJ9.e30.c2ln", true),
            ("bearer", "Bearer eyJhbGciOiJIUzI1NiJ9.e30.c2lo", false),
            ("cookie", "", false),
            ("aws4-hmac-sha256", "AWS4-HMAC-SHA256 Credential=x, Signature=y", false),
            ("authorization", "AWS AKIAEXAMPLE:c2lnbmF0dXJl", false),
            ("authorization", "GOOG4-HMAC-SHA256 Credential=x", false),
            ("authorization", "Other keyId=\"k\",signature=\"y\"", false),
            ("authorization", "Token 0123456789", true),
            ("authorization", "Token 0123456789", false),
            ("userinfo", "", true),
        ] {
            let counted = logins.request(kind, Some(value.as_bytes()).filter(|value| !value.is_empty()));
            assert_eq!(counted, expected.then_some(kind), "{value}");
        }
        assert_eq!(ConnectionLogins::from_bits(logins.to_bits()), logins);
    }
}
