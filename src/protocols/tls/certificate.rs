//! X.509 certificates as sent in the TLS handshake (RFC 5280), parsed leniently.

use std::fmt;

use sha1::Sha1;
use sha2::{Digest, Sha256};

use super::key::{ObjectId, PublicKey};
use super::lists::Hex;
use super::name::{AltName, AltNames, DistinguishedName};
use crate::codec::Reader;
use crate::codec::ber::{Values, tag, unsigned};
use crate::row::{Group, List, ListOf};

/// Maximum number of certificates of a chain that are examined.
pub const CERTIFICATE_COUNT_MAX: usize = 32;

/// Minimum length in octets of data that may be a certificate. No fingerprint of shorter data is written, because it
/// would be longer than the data.
const FINGERPRINT_LEN_MIN: usize = 64;

/// The chain of certificates that a side presents, its own certificate first (RFC 5246 section 7.4.2). May be empty.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct CertificateChain<'a> {
    list: &'a [u8],
}

impl<'a> CertificateChain<'a> {
    /// Parses the body of a Certificate handshake message (type 11), as encoded up to TLS 1.2.
    #[must_use]
    pub(super) fn parse(body: &'a [u8]) -> Self {
        Self { list: body.get(3..).unwrap_or_default() }
    }

    /// Iterates over the certificates of the chain, at most [`CERTIFICATE_COUNT_MAX`]. Ends at an invalid length.
    pub fn iter(&self) -> impl Iterator<Item = Certificate<'a>> + Clone + use<'a> {
        let mut reader = Reader::new(self.list);
        let next = move || {
            let [high, middle, low] = reader.array().ok()?.map(usize::from);
            reader.bytes(high << 16 | middle << 8 | low).ok().map(Certificate::parse)
        };
        std::iter::from_fn(next).take(CERTIFICATE_COUNT_MAX)
    }
}

impl fmt::Debug for CertificateChain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// An X.509 certificate. Fields that cannot be parsed are empty or `None`; nothing is verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Certificate<'a> {
    /// Encoded octets of the whole certificate.
    pub der: &'a [u8],
    /// Serial number of the certificate.
    pub serial: Hex<'a>,
    /// Name of the certificate's issuer.
    pub issuer: DistinguishedName<'a>,
    /// Name of the certificate's subject.
    pub subject: DistinguishedName<'a>,
    /// Start of the certificate's validity.
    pub not_before: Option<CertificateTime>,
    /// End of the certificate's validity.
    pub not_after: Option<CertificateTime>,
    /// Subject alternative names, usually the DNS names of servers.
    pub alt_names: AltNames<'a>,
}

impl<'a> Certificate<'a> {
    /// Parses a DER-encoded certificate as far as possible.
    #[must_use]
    pub fn parse(der: &'a [u8]) -> Self {
        let mut certificate = Self {
            der,
            serial: Hex::default(),
            issuer: DistinguishedName::default(),
            subject: DistinguishedName::default(),
            not_before: None,
            not_after: None,
            alt_names: AltNames::default(),
        };
        let _ = certificate.read();
        certificate
    }

    /// Parses `der` into the other fields of the certificate. Stops with `None` where the data ends early, or is not
    /// X.509.
    fn read(&mut self) -> Option<()> {
        let mut outer = Values(Values(self.der).next_of(tag::SEQUENCE)?);
        let mut signed = Values(outer.next_of(tag::SEQUENCE)?);
        signed.next_of(tag::CONTEXT_0);
        self.serial = Hex(signed.next_of(tag::INTEGER)?);
        signed.next_of(tag::SEQUENCE)?;
        self.issuer = DistinguishedName::new(signed.next_of(tag::SEQUENCE)?);
        let mut validity = Values(signed.next_of(tag::SEQUENCE)?);
        self.not_before = validity.next().and_then(|time| CertificateTime::parse(time.tag, time.content));
        self.not_after = validity.next().and_then(|time| CertificateTime::parse(time.tag, time.content));
        self.subject = DistinguishedName::new(signed.next_of(tag::SEQUENCE)?);
        let extensions = signed.find(|value| value.tag == tag::CONTEXT_3)?.content;
        for extension in Values(Values(extensions).next_of(tag::SEQUENCE)?) {
            let mut parts = Values(extension.content);
            // 2.5.29.17: subjectAltName.
            if parts.next_of(tag::OBJECT_IDENTIFIER)? == [0x55, 0x1d, 0x11] {
                parts.next_of(tag::BOOLEAN);
                self.alt_names =
                    AltNames::new(Values(parts.next_of(tag::OCTET_STRING)?).next_of(tag::SEQUENCE)?);
            }
        }
        Some(())
    }

    /// Parses the fields that only some programs need: version, algorithms, key and basic constraints.
    #[must_use]
    pub fn details(&self) -> CertificateDetails<'a> {
        let mut details = CertificateDetails::default();
        let _ = details.read(self.der);
        details
    }

    /// Iterates over the DNS names of servers for which the certificate is valid.
    pub fn dns_names(&self) -> impl Iterator<Item = crate::session::Text<'a>> + use<'a> {
        self.alt_names.iter().filter_map(|name| if let AltName::Dns(name) = name { Some(name) } else { None })
    }

    /// Returns the SHA-256 digest of the certificate. Hashes the whole certificate on each call.
    #[must_use]
    pub fn sha256(&self) -> [u8; 32] {
        Sha256::digest(self.der).into()
    }

    /// Returns the SHA-1 digest of the certificate. Hashes the whole certificate on each call.
    #[must_use]
    pub fn sha1(&self) -> [u8; 20] {
        Sha1::digest(self.der).into()
    }
}

/// Fields of a certificate that only some programs need. What cannot be parsed is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CertificateDetails<'a> {
    /// Version of the certificate: 1 to 3.
    pub version: Option<u8>,
    /// Algorithm of the signature.
    pub signature_algorithm: Option<ObjectId<'a>>,
    /// Key of the subject.
    pub key: Option<PublicKey<'a>>,
    /// True if the subject is an authority; `None` without basic constraints.
    pub is_ca: Option<bool>,
    /// Maximum number of authorities below the subject.
    pub path_len: Option<u32>,
}

impl<'a> CertificateDetails<'a> {
    /// Parses a certificate. Stops with `None` where the data ends early, or is not X.509.
    fn read(&mut self, der: &'a [u8]) -> Option<()> {
        let mut outer = Values(Values(der).next_of(tag::SEQUENCE)?);
        let mut signed = Values(outer.next_of(tag::SEQUENCE)?);
        // Version 1 is the default.
        let version = signed.next_of(tag::CONTEXT_0);
        let number = version.map_or(Some(0), |version| unsigned(Values(version).next_of(tag::INTEGER)?));
        self.version = number.and_then(|number| u8::try_from(number.checked_add(1)?).ok());
        signed.next_of(tag::INTEGER)?;
        let mut algorithm = Values(signed.next_of(tag::SEQUENCE)?);
        self.signature_algorithm = algorithm.next_of(tag::OBJECT_IDENTIFIER).map(ObjectId);
        // Issuer, validity and subject.
        for _ in 0..3 {
            signed.next_of(tag::SEQUENCE)?;
        }
        self.key = PublicKey::parse(signed.next_of(tag::SEQUENCE)?);
        let extensions = signed.find(|value| value.tag == tag::CONTEXT_3)?.content;
        for extension in Values(Values(extensions).next_of(tag::SEQUENCE)?) {
            let mut parts = Values(extension.content);
            // 2.5.29.19: basicConstraints.
            if parts.next_of(tag::OBJECT_IDENTIFIER)? == [0x55, 0x1d, 0x13] {
                parts.next_of(tag::BOOLEAN);
                let mut constraints =
                    Values(Values(parts.next_of(tag::OCTET_STRING)?).next_of(tag::SEQUENCE)?);
                self.is_ca = Some(constraints.next_of(tag::BOOLEAN).is_some_and(|value| value != [0]));
                self.path_len = constraints.next_of(tag::INTEGER).and_then(unsigned);
            }
        }
        Some(())
    }
}

/// A time in a certificate: seconds since 1970 in UTC, negative for earlier times. Displayed and written as
/// `2024-01-31T12:00:00Z`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CertificateTime(pub i64);

impl CertificateTime {
    /// Parses a time of ASN.1 type UTCTime, with years from 1950 to 2049, or GeneralizedTime. RFC 5280 section 4.1.2.5
    /// requires both in UTC and with seconds; ITU-T X.680 sections 46 and 47 also permit a difference to UTC, missing
    /// seconds, and fractions, which are ignored. A local time without a difference is `None`.
    pub(in super::super) fn parse(kind: u8, text: &[u8]) -> Option<Self> {
        let (digits, difference) = split_zone(text)?;
        let digits = match digits.iter().position(|octet| matches!(octet, b'.' | b',')) {
            Some(point) if kind == tag::GENERALIZED_TIME => {
                let (digits, fraction) = digits.split_at_checked(point)?;
                // Fractions of hours and minutes are too rare to be supported.
                let is_of_second = digits.len() == 14 && fraction.len() > 1;
                let fraction = fraction.get(1..).filter(|_| is_of_second)?;
                digits.iter().chain(fraction).all(u8::is_ascii_digit).then_some(digits)?
            }
            _ => digits,
        };
        let mut pairs = pairs(digits)?;
        let year = match kind {
            tag::UTC_TIME => {
                let year = pairs.next()?;
                if year < 50 { 2000 + year } else { 1900 + year }
            }
            tag::GENERALIZED_TIME => pairs.next()? * 100 + pairs.next()?,
            _ => return None,
        };
        let (month, day, hour, minute) = (pairs.next()?, pairs.next()?, pairs.next()?, pairs.next()?);
        let second = pairs.next().unwrap_or_default();
        let is_time = (1..=12).contains(&month)
            && (1..=31).contains(&day)
            && (0..24).contains(&hour)
            && (0..60).contains(&minute)
            && (0..=60).contains(&second);
        let local = days(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second;
        is_time.then_some(Self(local - difference))
    }
}

/// Splits the suffix `Z`, `+hhmm` or `-hhmm` from a time. Returns the octets before the suffix, and the difference to
/// UTC in seconds, positive if the time is ahead of UTC.
fn split_zone(text: &[u8]) -> Option<(&[u8], i64)> {
    if let Some(digits) = text.strip_suffix(b"Z") {
        return Some((digits, 0));
    }
    let (digits, zone) = text.split_at_checked(text.len().checked_sub(5)?)?;
    let (sign, zone) = zone.split_first()?;
    let mut pairs = pairs(zone)?;
    let (hours, minutes) = (pairs.next()?, pairs.next()?);
    let difference = hours * 3600 + minutes * 60;
    match sign {
        _ if hours > 23 || minutes > 59 => None,
        b'+' => Some((digits, difference)),
        b'-' => Some((digits, -difference)),
        _ => None,
    }
}

/// Iterates over the decimal numbers of two digits each in `digits`; `None` if it contains other characters.
fn pairs(digits: &[u8]) -> Option<impl Iterator<Item = i64>> {
    let number = |pair: &[u8]| pair.iter().fold(0, |number, digit| number * 10 + i64::from(digit - b'0'));
    digits.iter().all(u8::is_ascii_digit).then(|| digits.chunks_exact(2).map(number))
}

/// Converts a date of the Gregorian calendar to days since 1970-01-01. Years are counted from March, so that the leap
/// day is the last day of a year.
const fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    year * 365 + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400) + day_of_year - 719_468
}

/// Converts days since 1970-01-01 to year, month and day of the Gregorian calendar.
const fn date(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = era * 400 + year_of_era + (month <= 2) as i64;
    (year, month, day_of_year - (153 * shifted + 2) / 5 + 1)
}

impl fmt::Display for CertificateTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = date(self.0.div_euclid(86_400));
        let second = self.0.rem_euclid(86_400);
        let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
    }
}

crate::table! {
    /// The certificates of one side, its own first.
    impl['a] "tls.certificate_chain" for CertificateChain<'a> as chain {
        /// The certificates.
        "certificates": ListOf<Group<Certificate<'a>>> => List(chain.iter().map(Group));
    }
}

crate::table! {
    /// An X.509 certificate.
    impl['a] "tls.certificate" for Certificate<'a> as certificate {
        /// Subject as a distinguished name (RFC 4514).
        "subject": DistinguishedName<'a> = certificate.subject;
        /// Issuer as a distinguished name.
        "issuer": DistinguishedName<'a> = certificate.issuer;
        /// Serial number.
        "serial": Hex<'a> = certificate.serial;
        /// Time at which the certificate becomes valid.
        "not_before": Option<CertificateTime> = certificate.not_before;
        /// Time after which the certificate is not valid any more.
        "not_after": Option<CertificateTime> = certificate.not_after;
        /// Subject alternative names.
        "alt_names": AltNames<'a> [sparse] = certificate.alt_names;
        /// True if there are more alternative names than are written.
        "truncated": bool [sparse] = certificate.alt_names.iter().nth(super::ALT_NAME_COUNT_MAX).is_some();
        /// SHA-256 digest of the encoded certificate; null if it is too short to be one.
        "sha256": Option<Hex<'static>> => certificate.has_fingerprint().then(|| certificate.sha256()).as_ref().map(|digest| Hex(digest));
        /// SHA-1 digest of the encoded certificate; null if it is too short to be one.
        "sha1": Option<Hex<'static>> => certificate.has_fingerprint().then(|| certificate.sha1()).as_ref().map(|digest| Hex(digest));
        /// Length of the encoded certificate.
        "len": usize [octets] = certificate.der.len();
    }
}

impl Certificate<'_> {
    const fn has_fingerprint(&self) -> bool {
        self.der.len() >= FINGERPRINT_LEN_MIN
    }
}

crate::row::cells! { displayed CertificateTime; }

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_match_the_calendar() {
        // Checked with `date -u -d`.
        for (kind, text, seconds, shown) in [
            (tag::UTC_TIME, "700101000000Z", 0, "1970-01-01T00:00:00Z"),
            (tag::UTC_TIME, "240229235959Z", 1_709_251_199, "2024-02-29T23:59:59Z"),
            (tag::UTC_TIME, "500101000000Z", -631_152_000, "1950-01-01T00:00:00Z"),
            (tag::UTC_TIME, "491231235959Z", 2_524_607_999, "2049-12-31T23:59:59Z"),
            (tag::UTC_TIME, "0003011200Z", 951_912_000, "2000-03-01T12:00:00Z"),
            (tag::GENERALIZED_TIME, "21000301000000Z", 4_107_542_400, "2100-03-01T00:00:00Z"),
            (tag::GENERALIZED_TIME, "99991231235959Z", 253_402_300_799, "9999-12-31T23:59:59Z"),
            // The examples of X.680: noon in UTC is 7 a.m. in New York; 9 p.m. there is the next day in UTC.
            (tag::UTC_TIME, "8201021200Z", 378_820_800, "1982-01-02T12:00:00Z"),
            (tag::UTC_TIME, "8201020700-0500", 378_820_800, "1982-01-02T12:00:00Z"),
            (tag::GENERALIZED_TIME, "19851106210627.3-0500", 500_177_187, "1985-11-07T02:06:27Z"),
            (tag::GENERALIZED_TIME, "19851106210627.3Z", 500_159_187, "1985-11-06T21:06:27Z"),
            (tag::UTC_TIME, "1404160000+0530", 1_397_586_600, "2014-04-15T18:30:00Z"),
            (tag::UTC_TIME, "140416000000+0530", 1_397_586_600, "2014-04-15T18:30:00Z"),
        ] {
            let time = CertificateTime::parse(kind, text.as_bytes());
            assert_eq!(time, Some(CertificateTime(seconds)), "{text}");
            assert_eq!(CertificateTime(seconds).to_string(), shown);
        }
        for text in [
            "",
            "Z",
            "2402Z",
            "241301000000Z",
            "240132000000Z",
            "24010100000",
            "24o101000000Z",
            "240101000000",
            "240101000000+053",
            "240101000000+0560",
            "240101000000+2400",
            "240101000000*0530",
            "240101000000.5Z",
            "+0530",
        ] {
            assert_eq!(CertificateTime::parse(tag::UTC_TIME, text.as_bytes()), None, "{text}");
        }
        for text in ["19851106210627.3", "19851106210627.Z", "198511062106.5Z", "19851106210627.xZ"] {
            assert_eq!(CertificateTime::parse(tag::GENERALIZED_TIME, text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn an_invalid_certificate_has_only_a_fingerprint() {
        let certificate = Certificate::parse(b"abc");
        assert!(certificate.serial.0.is_empty() && certificate.alt_names.is_empty());
        assert_eq!(certificate.not_after, None);
        let sha256 = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(Hex(&certificate.sha256()).to_string(), sha256);
        assert_eq!(Hex(&certificate.sha1()).to_string(), "a9993e364706816aba3e25717850c26c9cd0d89d");
    }
}
