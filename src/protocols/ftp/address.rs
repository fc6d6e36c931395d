//! Addresses and ports in FTP commands and replies.

use std::net::{IpAddr, Ipv4Addr};

/// Parses `h1,h2,h3,h4,p1,p2` (RFC 959 section 4.1.2): an IPv4 address and a port, as in PORT.
pub(super) fn host_port(text: &[u8]) -> Option<(IpAddr, u16)> {
    let mut numbers = text.split(|octet| *octet == b',');
    let mut number = || number::<u8>(numbers.next()?.trim_ascii());
    let address = Ipv4Addr::new(number()?, number()?, number()?, number()?);
    let port = u16::from_be_bytes([number()?, number()?]);
    numbers.next().is_none().then_some((address.into(), port))
}

/// Searches the text of a reply 227 to PASV for `h1,h2,h3,h4,p1,p2`, an IPv4 address and a port. The text around it
/// varies (RFC 1123 section 4.1.2.6).
pub(super) fn find_host_port(text: &[u8]) -> Option<(IpAddr, u16)> {
    text.split(|octet| !octet.is_ascii_digit() && *octet != b',')
        .find_map(|run| host_port(run.strip_suffix(b",").unwrap_or(run)))
}

/// Parses the argument of EPRT (RFC 2428 section 2), an address and a port: `|1|132.235.1.2|6275|` or `|2|::1|6275|`
/// with any delimiter.
pub(super) fn extended(text: &[u8]) -> Option<(IpAddr, u16)> {
    let (delimiter, rest) = text.split_first().filter(|(delimiter, _)| delimiter.is_ascii_punctuation())?;
    let mut fields = rest.split(|octet| octet == delimiter);
    let family: u8 = number(fields.next()?)?;
    let address: IpAddr = std::str::from_utf8(fields.next()?).ok()?.parse().ok()?;
    let port = number(fields.next()?)?;
    (matches!(family, 1 | 2) && (family == 1) == address.is_ipv4()).then_some((address, port))
}

/// Searches the text of a reply 229 to EPSV for `(|||6446|)`, and returns the port in it (RFC 2428 section 3).
pub(super) fn find_extended_port(text: &[u8]) -> Option<u16> {
    let open = text.iter().rposition(|octet| *octet == b'(')?;
    match text.get(open + 1..)? {
        [a, b, c, rest @ ..] if a == b && b == c && a.is_ascii_punctuation() => {
            number(rest.get(..rest.iter().position(|octet| octet == a)?)?)
        }
        _ => None,
    }
}

/// Returns the length of a file that the text of a preliminary FTP reply announces, as `(1234 bytes)`.
pub(super) fn announced_len(text: &[u8]) -> Option<u64> {
    let open = text.iter().rposition(|octet| *octet == b'(')?;
    let inner = text.get(open + 1..)?;
    let end = inner.iter().position(|octet| !octet.is_ascii_digit())?;
    let (digits, unit) = inner.split_at_checked(end)?;
    let unit = unit.trim_ascii_start();
    [b"byte".as_slice(), b"octet"].iter().any(|word| unit.starts_with(word)).then(|| number(digits))?
}

fn number<T: std::str::FromStr>(digits: &[u8]) -> Option<T> {
    let text = std::str::from_utf8(digits).ok()?;
    text.bytes().all(|octet| octet.is_ascii_digit()).then(|| text.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ipv4(octets: [u8; 4], port: u16) -> Option<(IpAddr, u16)> {
        Some((IpAddr::from(octets), port))
    }

    #[test]
    fn addresses_of_rfc_959_are_parsed() {
        assert_eq!(host_port(b"132,235,1,2,24,131"), ipv4([132, 235, 1, 2], 6275));
        for text in ["", "1,2,3,4,5", "1,2,3,4,5,6,7", "256,1,1,1,1,1", "1,2,3,4,5,+6"] {
            assert_eq!(host_port(text.as_bytes()), None, "{text}");
        }
        let replies = [
            "Entering Passive Mode (132,235,1,2,24,131).",
            "Entering Passive Mode 132,235,1,2,24,131",
            "2 ways, one is =132,235,1,2,24,131, and it is open",
        ];
        for text in replies {
            assert_eq!(find_host_port(text.as_bytes()), ipv4([132, 235, 1, 2], 6275), "{text}");
        }
        assert_eq!(find_host_port(b"Entering Passive Mode"), None);
    }

    #[test]
    fn addresses_of_rfc_2428_are_parsed() {
        assert_eq!(extended(b"|1|132.235.1.2|6275|"), ipv4([132, 235, 1, 2], 6275));
        let address = "1080::8:800:200c:417a".parse().expect("an address");
        assert_eq!(extended(b"|2|1080::8:800:200C:417A|5282|"), Some((address, 5282)));
        assert_eq!(extended(b"!1!132.235.1.2!6275!"), ipv4([132, 235, 1, 2], 6275));
        for text in ["|2|132.235.1.2|6275|", "|1|::1|1|", "|3|1.2.3.4|5|", "|1|1.2.3.4|65536|", "1", ""] {
            assert_eq!(extended(text.as_bytes()), None, "{text}");
        }
        assert_eq!(find_extended_port(b"Entering Extended Passive Mode (|||6446|)"), Some(6446));
        assert_eq!(find_extended_port(b"Entering Extended Passive Mode (6446)"), None);
    }

    #[test]
    fn announced_lengths_are_parsed() {
        assert_eq!(
            announced_len(b"Opening BINARY mode data connection for a (1).txt (1234 bytes)."),
            Some(1234)
        );
        assert_eq!(announced_len(b"Here comes the directory listing."), None);
        assert_eq!(announced_len(b"Data connection accepted (12:34)"), None);
    }
}
