//! Where credentials stand in the clear, so that they are named and kept out of what is written.

/// The kind of credentials that a field carries, if it is one for them.
pub(crate) fn of_field(name: &str, value: &[u8]) -> Option<&'static str> {
    // By length first: most fields are none of these.
    match name.len() {
        6 if name.eq_ignore_ascii_case("cookie") => Some("cookie"),
        10 if name.eq_ignore_ascii_case("set-cookie") => Some("set_cookie"),
        13 if name.eq_ignore_ascii_case("authorization") => Some(scheme(value)),
        19 if name.eq_ignore_ascii_case("proxy-authorization") => Some(scheme(value)),
        _ => None,
    }
}

/// The authentication scheme by its registered name, in lower case.
fn scheme(value: &[u8]) -> &'static str {
    const SCHEMES: [&str; 9] =
        ["basic", "bearer", "digest", "ntlm", "negotiate", "hoba", "mutual", "aws4-hmac-sha256", "dpop"];
    let name = value.split(|octet| octet.is_ascii_whitespace()).next().unwrap_or_default();
    let known = SCHEMES.iter().find(|scheme| name.eq_ignore_ascii_case(scheme.as_bytes()));
    known.copied().unwrap_or("authorization")
}

/// Of two kinds in one message, the one to be named: what authenticates somebody before what goes on with it.
pub(crate) fn foremost(first: Option<&'static str>, second: Option<&'static str>) -> Option<&'static str> {
    let rank = |kind: Option<&str>| match kind {
        None => 0,
        Some("cookie" | "set_cookie") => 1,
        Some("userinfo") => 2,
        Some(_) => 3,
    };
    if rank(second) > rank(first) { second } else { first }
}

/// A URI without the user information of its authority (RFC 3986 section 3.2.1), if it has some. Allocates in that case.
pub(crate) fn without_userinfo(uri: &[u8], is_authority: bool) -> Option<Vec<u8>> {
    if !uri.contains(&b'@') {
        return None;
    }
    let start = if is_authority { 0 } else { uri.windows(3).position(|octets| octets == b"://")? + 3 };
    let (before, rest) = uri.split_at_checked(start)?;
    let len = rest.iter().position(|octet| matches!(octet, b'/' | b'?' | b'#')).unwrap_or(rest.len());
    let at = rest.get(..len)?.iter().rposition(|octet| *octet == b'@')?;
    Some([before, rest.get(at + 1..)?].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemes_are_named_and_nothing_of_the_value() {
        assert_eq!(of_field("Authorization", b"Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="), Some("basic"));
        assert_eq!(of_field("proxy-authorization", b"NTLM TlRM"), Some("ntlm"));
        assert_eq!(of_field("AUTHORIZATION", b"secret"), Some("authorization"));
        assert_eq!(of_field("Cookie", b"a=b"), Some("cookie"));
        assert_eq!(of_field("Cookies", b"a=b"), None);
    }

    #[test]
    fn user_information_is_left_out() {
        let without =
            |uri: &str| without_userinfo(uri.as_bytes(), false).map(|uri| String::from_utf8(uri).unwrap());
        assert_eq!(without("http://user:pass@example.org/a?b").as_deref(), Some("http://example.org/a?b"));
        assert_eq!(without("http://a@b@example.org").as_deref(), Some("http://example.org"));
        assert_eq!(without("http://example.org/user@home"), None);
        assert_eq!(without("/user@home"), None);
        assert_eq!(without_userinfo(b"me@example.org:443", true), Some(b"example.org:443".to_vec()));
    }
}
