//! DNS extension mechanisms (EDNS): the OPT record (RFC 6891).

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::numbers::OptionCode;
use super::presentation::write_hex;
use super::record::Record;
use super::service::pairs;
use super::value::Value;

/// Contents of a DNS OPT record.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Edns<'m> {
    /// EDNS version of the sender; only 0 is assigned.
    pub version: u8,
    /// Number of octets that the sender of the OPT record accepts in one datagram.
    pub udp_payload_len: u16,
    /// Upper eight bits of the response code; the lower four bits are in the message header.
    pub extended_rcode: u8,
    /// The DO bit: the sender accepts DNSSEC records.
    pub is_dnssec_ok: bool,
    options: &'m [u8],
}

impl<'m> Edns<'m> {
    pub(super) fn of(record: &Record<'m>) -> Self {
        let [extended_rcode, version, flags, _] = record.ttl.to_be_bytes();
        Self {
            version,
            udp_payload_len: record.class.0,
            extended_rcode,
            is_dnssec_ok: flags & 0x80 != 0,
            options: record.data.octets(),
        }
    }

    /// Iterates over the EDNS options, up to the first one that is malformed.
    pub fn options(&self) -> impl Iterator<Item = EdnsOption<'m>> + Clone + use<'m> {
        pairs(self.options).map(|(code, data)| EdnsOption { code: OptionCode(code), data })
    }
}

/// An EDNS option of an OPT record.
///
/// Displayed as hexadecimal digits, except for a client subnet (RFC 7871), displayed as `192.0.2.0/24/0`, and an
/// extended error (RFC 8914), displayed as its number, followed by its text in quotes if there is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EdnsOption<'m> {
    /// Code that identifies the EDNS option.
    pub code: OptionCode,
    /// Data of the EDNS option.
    pub data: &'m [u8],
}

impl EdnsOption<'_> {
    /// Returns the contents of a client subnet option: the network, the prefix length of the query (source) and that of
    /// the answer (scope); `None` for other options.
    #[must_use]
    pub fn client_subnet(&self) -> Option<(IpAddr, u8, u8)> {
        let ([family, low, source_len, scope_len], prefix) = self.data.split_first_chunk::<4>()?;
        let address = match (self.code, u16::from_be_bytes([*family, *low])) {
            (OptionCode::CLIENT_SUBNET, 1) => IpAddr::from(Ipv4Addr::from(padded(prefix)?)),
            (OptionCode::CLIENT_SUBNET, 2) => IpAddr::from(Ipv6Addr::from(padded(prefix)?)),
            _ => return None,
        };
        Some((address, *source_len, *scope_len))
    }
}

/// Appends zeros to octets up to a length of `N`; `None` if there are more than `N` octets.
fn padded<const N: usize>(octets: &[u8]) -> Option<[u8; N]> {
    let mut all = [0; N];
    all.get_mut(..octets.len())?.copy_from_slice(octets);
    Some(all)
}

impl fmt::Display for EdnsOption<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((address, source_len, scope_len)) = self.client_subnet() {
            return write!(f, "{address}/{source_len}/{scope_len}");
        }
        if self.code == OptionCode::EXTENDED_ERROR
            && let Some((number, text)) = self.data.split_first_chunk()
        {
            write!(f, "{}", u16::from_be_bytes(*number))?;
            return if text.is_empty() { Ok(()) } else { write!(f, " {}", Value::Text(text)) };
        }
        write_hex(f, self.data)
    }
}
