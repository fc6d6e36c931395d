//! Detection of plaintext credentials in HTTP, so that they are identified and kept out of output.

/// Returns the kind of credentials in an HTTP field; `None` if the field is not one for credentials.
pub(crate) fn of_field(name: &[u8], value: &[u8]) -> Option<&'static str> {
    // The length is compared first, because most fields match none of these.
    match name.len() {
        6 if name.eq_ignore_ascii_case(b"cookie") => Some("cookie"),
        10 if name.eq_ignore_ascii_case(b"set-cookie") => Some("set_cookie"),
        13 if name.eq_ignore_ascii_case(b"authorization") => Some(scheme(value)),
        19 if name.eq_ignore_ascii_case(b"proxy-authorization") => Some(scheme(value)),
        _ => None,
    }
}

/// Returns the registered name, in lower case, of the authentication scheme at the start of a field's value;
/// `authorization` for an unknown one.
fn scheme(value: &[u8]) -> &'static str {
    const SCHEMES: [&str; 9] =
        ["basic", "bearer", "digest", "ntlm", "negotiate", "hoba", "mutual", "aws4-hmac-sha256", "dpop"];
    let name = value.split(|octet| octet.is_ascii_whitespace()).next().unwrap_or_default();
    let known = SCHEMES.iter().find(|scheme| name.eq_ignore_ascii_case(scheme.as_bytes()));
    known.copied().unwrap_or("authorization")
}

/// Returns the more important of two kinds of credentials in one message: the kind that authenticates a user, rather
/// than one that continues a session.
pub(crate) fn foremost(first: Option<&'static str>, second: Option<&'static str>) -> Option<&'static str> {
    let rank = |kind: Option<&str>| match kind {
        None => 0,
        Some("cookie" | "set_cookie") => 1,
        Some("userinfo") => 2,
        Some(_) => 3,
    };
    if rank(second) > rank(first) { second } else { first }
}

/// Returns a URI without the user information of its authority (RFC 3986 section 3.2.1), and without that of URIs
/// within it, as in queries; `None` if it has no user information. `is_authority` is true if the URI consists of an
/// authority only.
pub(crate) fn without_userinfo(uri: &[u8], is_authority: bool) -> Option<Vec<u8>> {
    if !uri.contains(&b'@') {
        return None;
    }
    let (mut bare, mut taken) = (Vec::new(), 0);
    let mut next = if is_authority { Some(0) } else { authority(uri, 0) };
    while let Some(place) = next {
        let rest = uri.get(place..)?;
        let len = rest.iter().position(|octet| matches!(octet, b'/' | b'?' | b'#')).unwrap_or(rest.len());
        if let Some(at) = rest.get(..len)?.iter().rposition(|octet| *octet == b'@') {
            bare.extend_from_slice(uri.get(taken..place)?);
            taken = place + at + 1;
        }
        next = authority(uri, place + len);
    }
    bare.extend_from_slice(uri.get(taken..)?);
    (taken > 0).then_some(bare)
}

/// Returns the index in a URI of the next authority at or after `from`: after a scheme, or after the slashes of a
/// reference without a scheme.
fn authority(uri: &[u8], from: usize) -> Option<usize> {
    let mut slashes = uri.get(from..)?.windows(2).enumerate().filter(|(_, octets)| *octets == b"//");
    let is_before = |place: usize| place == 0 || uri.get(place - 1) == Some(&b':');
    slashes.find_map(|(place, _)| is_before(from + place).then_some(from + place + 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemes_are_named_without_the_value() {
        assert_eq!(of_field(b"Authorization", b"Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="), Some("basic"));
        assert_eq!(of_field(b"proxy-authorization", b"NTLM TlRM"), Some("ntlm"));
        assert_eq!(of_field(b"AUTHORIZATION", b"secret"), Some("authorization"));
        assert_eq!(of_field(b"Cookie", b"a=b"), Some("cookie"));
        assert_eq!(of_field(b"Cookies", b"a=b"), None);
    }

    #[test]
    fn user_information_is_removed() {
        let without =
            |uri: &str| without_userinfo(uri.as_bytes(), false).map(|uri| String::from_utf8(uri).unwrap());
        assert_eq!(without("http://user:pass@example.org/a?b").as_deref(), Some("http://example.org/a?b"));
        assert_eq!(without("http://a@b@example.org").as_deref(), Some("http://example.org"));
        assert_eq!(without("//user:pass@example.org/").as_deref(), Some("//example.org/"));
        assert_eq!(
            without("http://example.org/?to=http://a:b@c.example/&or=http://d:e@f.example/").as_deref(),
            Some("http://example.org/?to=http://c.example/&or=http://f.example/")
        );
        assert_eq!(without("http://example.org//user@home"), None);
        assert_eq!(without("http://example.org/user@home"), None);
        assert_eq!(without("/user@home"), None);
        assert_eq!(without_userinfo(b"me@example.org:443", true), Some(b"example.org:443".to_vec()));
    }
}
