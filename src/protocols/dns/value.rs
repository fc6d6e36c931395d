//! Values of the fields of DNS records, and their text.

use std::fmt::{self, Write as _};
use std::net::IpAddr;

use base64::display::Base64Display;
use base64::engine::general_purpose::STANDARD;

use super::location::Location;
use super::name::{Name, write_escaped};
use super::numbers::RecordType;
use super::ports::PortSet;
use super::prefixes::AddressPrefixes;
use super::presentation::{write_base32, write_hex, write_quoted, write_time};
use super::service::ServiceParameters;
use super::types::TypeSet;

/// The value of a field of a DNS record's data.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Value<'m> {
    /// A domain name.
    Name(Name<'m>),
    /// An unsigned integer of up to six octets.
    Number(u64),
    /// An IPv4 or IPv6 address.
    Address(IpAddr),
    /// A record type, as in RRSIG.
    Type(RecordType),
    /// Seconds since 1970, displayed as `YYYYMMDDHHmmSS`.
    Time(u32),
    /// A character string, displayed in quotes.
    Text(&'m [u8]),
    /// An unquoted word, such as the tag of a CAA record.
    Word(&'m [u8]),
    /// Octets, displayed as hexadecimal digits; `-` if there are none.
    Hex(&'m [u8]),
    /// Octets, and the number of octets in a group. Displayed as hexadecimal digits in groups.
    Groups(&'m [u8], usize),
    /// Octets, displayed in base64.
    Base64(&'m [u8]),
    /// Octets, displayed in base32 with the extended hex alphabet (RFC 4648 section 7).
    Base32(&'m [u8]),
    /// A set of record types, as in NSEC.
    Types(TypeSet<'m>),
    /// Service parameters, as in HTTPS.
    Parameters(ServiceParameters<'m>),
    /// A geographical location, as in LOC.
    Location(Location),
    /// Address prefixes, as in APL.
    Prefixes(AddressPrefixes<'m>),
    /// A set of ports, as in WKS.
    Ports(PortSet<'m>),
    /// An OSI NSAP address, displayed as `0x` and hexadecimal digits.
    Nsap(&'m [u8]),
}

impl fmt::Display for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => name.fmt(f),
            Self::Number(number) => number.fmt(f),
            Self::Address(address) => address.fmt(f),
            Self::Type(record_type) => record_type.fmt(f),
            Self::Time(seconds) => write_time(f, *seconds),
            Self::Text(octets) => write_quoted(f, octets),
            Self::Word(octets) => write_escaped(f, octets, b'"', b'!'),
            Self::Hex([]) => f.write_char('-'),
            Self::Hex(octets) => write_hex(f, octets),
            Self::Groups(octets, group_len) => {
                let separator = if *group_len == 1 { '-' } else { ':' };
                for (place, group) in octets.chunks(*group_len).enumerate() {
                    if place > 0 {
                        f.write_char(separator)?;
                    }
                    write_hex(f, group)?;
                }
                Ok(())
            }
            Self::Base64(octets) => Base64Display::new(octets, &STANDARD).fmt(f),
            Self::Base32(octets) => write_base32(f, octets),
            Self::Types(set) => set.fmt(f),
            Self::Parameters(list) => list.fmt(f),
            Self::Location(location) => location.fmt(f),
            Self::Prefixes(list) => list.fmt(f),
            Self::Ports(set) => set.fmt(f),
            Self::Nsap(octets) => {
                f.write_str("0x")?;
                write_hex(f, octets)
            }
        }
    }
}
