//! Names in an X.509 certificate: distinguished names, and subject alternative names.

use std::borrow::Cow;
use std::fmt::{self, Write as _};
use std::net::IpAddr;

use super::lists::Hex;
use crate::codec::ber::{Oid, Value, Values, tag};
use crate::row::{Cell, Column, Group, List, ListOf, Type, Visitor};
use crate::session::Text;

/// A distinguished name in a certificate. Displayed and written in the format of RFC 4514: most specific RDN first,
/// attributes of one RDN joined by a plus sign: `CN=example.org+UID=7,C=CH`.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct DistinguishedName<'a> {
    /// DER content of the name: a sequence of RDNs, which are sets of attributes.
    der: &'a [u8],
}

impl<'a> DistinguishedName<'a> {
    pub(super) const fn new(der: &'a [u8]) -> Self {
        Self { der }
    }

    /// Returns whether the distinguished name is empty.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.der.is_empty()
    }

    /// Iterates over the attributes of the distinguished name in encoded order, usually least specific first.
    pub fn attributes(&self) -> impl Iterator<Item = Attribute<'a>> + use<'a> {
        let sets = Values(self.der).filter(|set| set.tag == tag::SET);
        sets.flat_map(|set| Attribute::all_of(set.content))
    }

    /// Returns the last common name (CN) in the distinguished name.
    #[must_use]
    pub fn common_name(&self) -> Option<Cow<'a, str>> {
        let common = self.attributes().filter(|attribute| attribute.oid == [0x55, 0x04, 0x03]);
        common.last().map(|attribute| attribute.text())
    }
}

impl fmt::Display for DistinguishedName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sets = Values(self.der).filter(|set| set.tag == tag::SET);
        // Names usually have a few sets, which are kept without an allocation to be read from the last one.
        let mut few = [None; 16];
        let count = few.iter_mut().zip(sets.clone()).map(|(place, set)| *place = Some(set)).count();
        let is_long = sets.clone().nth(few.len()).is_some();
        let many: Vec<_> = if is_long { sets.map(Some).collect() } else { Vec::new() };
        let sets = if is_long { &many } else { few.get(..count).unwrap_or_default() };
        for (place, set) in sets.iter().flatten().rev().enumerate() {
            for (position_in_set, attribute) in Attribute::all_of(set.content).enumerate() {
                match (place, position_in_set) {
                    (0, 0) => {}
                    (_, 0) => f.write_char(',')?,
                    _ => f.write_char('+')?,
                }
                attribute.fmt(f)?;
            }
        }
        Ok(())
    }
}

impl fmt::Debug for DistinguishedName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

crate::row::cells! { displayed DistinguishedName<'a>; }

/// An attribute of a distinguished name. Displayed as `CN=example.org`, escaped as in RFC 4514. If the type has no
/// short name, the attribute is displayed as `1.2.3=#0c0161`: object identifier, then the octets of tag, length and
/// value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attribute<'a> {
    oid: &'a [u8],
    value: Value<'a>,
}

impl<'a> Attribute<'a> {
    /// Iterates over the attributes in the DER content of an RDN, which is a set.
    fn all_of(set: &'a [u8]) -> impl Iterator<Item = Self> + use<'a> {
        Values(set).filter_map(|pair| {
            let mut parts = Values(pair.content);
            let oid = parts.next_of(tag::OBJECT_IDENTIFIER)?;
            Some(Self { oid, value: parts.next()? })
        })
    }

    /// Returns the short name of the attribute's type, such as `CN`, if there is a common one.
    #[must_use]
    pub const fn name(&self) -> Option<&'static str> {
        Some(match self.oid {
            [0x55, 0x04, 0x03] => "CN",
            [0x55, 0x04, 0x04] => "SN",
            [0x55, 0x04, 0x05] => "serialNumber",
            [0x55, 0x04, 0x06] => "C",
            [0x55, 0x04, 0x07] => "L",
            [0x55, 0x04, 0x08] => "ST",
            [0x55, 0x04, 0x09] => "street",
            [0x55, 0x04, 0x0a] => "O",
            [0x55, 0x04, 0x0b] => "OU",
            [0x55, 0x04, 0x0c] => "title",
            [0x55, 0x04, 0x0d] => "description",
            [0x55, 0x04, 0x0f] => "businessCategory",
            [0x55, 0x04, 0x10] => "postalAddress",
            [0x55, 0x04, 0x11] => "postalCode",
            [0x55, 0x04, 0x14] => "telephoneNumber",
            [0x55, 0x04, 0x29] => "name",
            [0x55, 0x04, 0x2a] => "GN",
            [0x55, 0x04, 0x2b] => "initials",
            [0x55, 0x04, 0x2c] => "generationQualifier",
            [0x55, 0x04, 0x2d] => "x500UniqueIdentifier",
            [0x55, 0x04, 0x2e] => "dnQualifier",
            [0x55, 0x04, 0x41] => "pseudonym",
            [0x55, 0x04, 0x61] => "organizationIdentifier",
            [0x09, 0x92, 0x26, 0x89, 0x93, 0xf2, 0x2c, 0x64, 0x01, 0x01] => "UID",
            [0x09, 0x92, 0x26, 0x89, 0x93, 0xf2, 0x2c, 0x64, 0x01, 0x19] => "DC",
            [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x09, 0x01] => "emailAddress",
            [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x09, 0x02] => "unstructuredName",
            [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x09, 0x08] => "unstructuredAddress",
            // Attributes of extended validation certificates.
            [0x2b, 0x06, 0x01, 0x04, 0x01, 0x82, 0x37, 0x3c, 0x02, 0x01, place] => match *place {
                1 => "jurisdictionL",
                2 => "jurisdictionST",
                3 => "jurisdictionC",
                _ => return None,
            },
            _ => return None,
        })
    }

    /// Returns the attribute's value as text, borrowed if it is UTF-8 or ASCII. Invalid characters are replaced by
    /// U+FFFD.
    #[must_use]
    pub fn text(&self) -> Cow<'a, str> {
        let content = self.value.content;
        match self.value.tag {
            tag::BMP_STRING => {
                let units = content.chunks_exact(2);
                let units = units.map(|unit| u16::from_be_bytes(unit.try_into().unwrap_or_default()));
                char::decode_utf16(units)
                    .map(|decoded| decoded.unwrap_or(char::REPLACEMENT_CHARACTER))
                    .collect()
            }
            tag::UNIVERSAL_STRING => {
                let units = content.chunks_exact(4);
                let units = units.map(|unit| u32::from_be_bytes(unit.try_into().unwrap_or_default()));
                units.map(|unit| char::from_u32(unit).unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
            }
            // Latin-1 in practice, unless it is valid UTF-8.
            tag::T61_STRING => match std::str::from_utf8(content) {
                Ok(text) => Cow::Borrowed(text),
                Err(_) => content.iter().map(|octet| char::from(*octet)).collect(),
            },
            _ => String::from_utf8_lossy(content),
        }
    }
}

impl fmt::Display for Attribute<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name)?,
            None => {
                Oid(self.oid).fmt(f)?;
                return write_encoded(&self.value, f);
            }
        }
        f.write_char('=')?;
        let text = self.text();
        let needs_escape = |octet: u8| {
            matches!(octet, b'"' | b'+' | b',' | b';' | b'<' | b'>' | b'\\' | b' ' | b'#')
                || octet.is_ascii_control()
        };
        if !text.bytes().any(needs_escape) {
            return f.write_str(&text);
        }
        let last = text.chars().count().saturating_sub(1);
        for (place, letter) in text.chars().enumerate() {
            let is_special = matches!(letter, '"' | '+' | ',' | ';' | '<' | '>' | '\\')
                || (letter == ' ' && (place == 0 || place == last))
                || (letter == '#' && place == 0);
            match letter {
                _ if letter.is_ascii_control() => write!(f, "\\{:02x}", letter as u32)?,
                _ if is_special => write!(f, "\\{letter}")?,
                _ => f.write_char(letter)?,
            }
        }
        Ok(())
    }
}

/// Writes `=#`, then tag, length and content of a DER value in hexadecimal digits (RFC 4514 section 2.4).
fn write_encoded(value: &Value<'_>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let [high, middle, low] = [16, 8, 0].map(|shift| (value.content.len() >> shift) as u8);
    let len: &[u8] = match value.content.len() {
        ..0x80 => &[low],
        0x80..=0xff => &[0x81, low],
        0x100..=0xffff => &[0x82, middle, low],
        _ => &[0x83, high, middle, low],
    };
    write!(f, "=#{}{}{}", Hex(&[value.tag]), Hex(len), Hex(value.content))
}

/// A subject alternative name (RFC 5280 section 4.2.1.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AltName<'a> {
    /// The DNS name of a server.
    Dns(Text<'a>),
    /// An email address.
    Email(Text<'a>),
    /// A URI.
    Uri(Text<'a>),
    /// The IP address of a server.
    Ip(IpAddr),
    /// A directory name: a distinguished name.
    Directory(DistinguishedName<'a>),
    /// A name of another type, or an invalid address: the octets as encoded.
    Other(Hex<'a>),
}

/// Maximum number of subject alternative names of a certificate that are written.
pub const ALT_NAME_COUNT_MAX: usize = 1024;

/// Subject alternative names of a certificate.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct AltNames<'a> {
    der: &'a [u8],
}

impl<'a> AltNames<'a> {
    pub(super) const fn new(der: &'a [u8]) -> Self {
        Self { der }
    }

    /// Returns whether there are no subject alternative names.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.der.is_empty()
    }

    /// Iterates over the subject alternative names in encoded order.
    pub fn iter(&self) -> impl Iterator<Item = AltName<'a>> + Clone + use<'a> {
        Values(self.der).map(|value| {
            let content = value.content;
            let address = match *content {
                [a, b, c, d] => Some(IpAddr::from([a, b, c, d])),
                _ => <[u8; 16]>::try_from(content).ok().map(IpAddr::from),
            };
            match (value.tag, address) {
                (0x81, _) => AltName::Email(Text(content)),
                (0x82, _) => AltName::Dns(Text(content)),
                (0x86, _) => AltName::Uri(Text(content)),
                (0x87, Some(address)) => AltName::Ip(address),
                (0xa4, _) => AltName::Directory(DistinguishedName::new(
                    Values(content).next_of(tag::SEQUENCE).unwrap_or_default(),
                )),
                _ => AltName::Other(Hex(content)),
            }
        })
    }
}

impl fmt::Debug for AltNames<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

crate::table! {
    /// A subject alternative name: one of its kinds.
    impl['a] "tls.alt_name" for AltName<'a> as name {
        /// The DNS name of a server.
        "dns": Option<Text<'a>> = if let AltName::Dns(name) = name { Some(*name) } else { None };
        /// An email address.
        "email": Option<Text<'a>> = if let AltName::Email(address) = name { Some(*address) } else { None };
        /// A URI.
        "uri": Option<Text<'a>> = if let AltName::Uri(uri) = name { Some(*uri) } else { None };
        /// The IP address of a server.
        "ip": Option<IpAddr> = if let AltName::Ip(address) = name { Some(*address) } else { None };
        /// A directory name: a distinguished name.
        "directory": Option<DistinguishedName<'a>> = if let AltName::Directory(name) = name { Some(*name) } else { None };
        /// A name of another kind, in DER.
        "other": Option<Hex<'a>> = if let AltName::Other(der) = name { Some(*der) } else { None };
    }
}

impl Cell for AltNames<'_> {
    const TYPE: Type = ListOf::<Group<AltName<'_>>>::TYPE;

    fn visit(&self, column: &'static Column, visitor: &mut (impl Visitor + ?Sized)) {
        List(self.iter().take(ALT_NAME_COUNT_MAX).map(Group)).visit(column, visitor);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the DER encoding of a value: tag, length and content.
    fn der(tag: u8, content: &[u8]) -> Vec<u8> {
        let len = u8::try_from(content.len()).expect("a short value");
        assert!(len < 0x80);
        [&[tag, len][..], content].concat()
    }

    fn attribute(oid: &[u8], tag: u8, value: &[u8]) -> Vec<u8> {
        der(tag::SEQUENCE, &[der(tag::OBJECT_IDENTIFIER, oid), der(tag, value)].concat())
    }

    const UTF8_STRING: u8 = 0x0c;
    const IA5_STRING: u8 = 0x16;
    const CN: &[u8] = &[0x55, 0x04, 0x03];

    #[test]
    fn names_of_any_length_begin_with_their_last_attribute() {
        for count in [0, 1, 15, 16, 17, 40] {
            let set = |number: usize| {
                let pair =
                    [der(0x06, &[0x55, 0x04, 0x03]), der(0x0c, format!("n{number}").as_bytes())].concat();
                der(0x31, &der(0x30, &pair))
            };
            let content: Vec<u8> = (0..count).flat_map(set).collect();
            let expected: Vec<_> = (0..count).rev().map(|number| format!("CN=n{number}")).collect();
            assert_eq!(DistinguishedName::new(&content).to_string(), expected.join(","));
        }
    }

    #[test]
    fn names_are_written_as_in_rfc_4514() {
        let domain = [0x09, 0x92, 0x26, 0x89, 0x93, 0xf2, 0x2c, 0x64, 0x01, 0x19];
        let user = [0x09, 0x92, 0x26, 0x89, 0x93, 0xf2, 0x2c, 0x64, 0x01, 0x01];
        let domain = |name: &str| der(tag::SET, &attribute(&domain, IA5_STRING, name.as_bytes()));
        let common = |name: &str| attribute(CN, UTF8_STRING, name.as_bytes());
        let unit = attribute(&[0x55, 0x04, 0x0b], UTF8_STRING, b"Sales");
        // The examples of section 4.
        for (parts, shown) in [
            (attribute(&user, UTF8_STRING, b"jsmith"), "UID=jsmith"),
            ([unit, common("J.  Smith")].concat(), "OU=Sales+CN=J.  Smith"),
            (common("James \"Jim\" Smith, III"), "CN=James \\\"Jim\\\" Smith\\, III"),
            (common("Before\rAfter"), "CN=Before\\0dAfter"),
            (common("Lučić"), "CN=Lučić"),
            (common(" #a "), "CN=\\ #a\\ "),
            (
                attribute(&[0x2b, 0x06, 0x01, 0x04, 0x01, 0x8b, 0x3a, 0x00], tag::OCTET_STRING, b"Hi"),
                "1.3.6.1.4.1.1466.0=#04024869",
            ),
            (attribute(&[0x2b, 6, 1, 4, 1, 0x82, 0x37, 0x3c, 2, 1, 3], 0x13, b"US"), "jurisdictionC=US"),
        ] {
            let all = [domain("net"), domain("example"), der(tag::SET, &parts)].concat();
            assert_eq!(DistinguishedName::new(&all).to_string(), format!("{shown},DC=example,DC=net"));
        }
        let long = Value { tag: tag::OCTET_STRING, content: &[7; 300] };
        let shown = Attribute { oid: &[0x2a, 0x03], value: long }.to_string();
        assert!(shown.starts_with("1.2.3=#0482012c0707") && shown.len() == 7 + 2 * 304, "{shown}");
    }
}
