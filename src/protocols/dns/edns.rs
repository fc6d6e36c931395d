//! Extension mechanisms: the OPT record (RFC 6891).

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::data::Value;
use super::numbers::OptionCode;
use super::presentation::write_hex;
use super::record::Record;
use super::service::pairs;

/// Contents of an OPT record.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Edns<'m> {
    /// EDNS version; only 0 is assigned.
    pub version: u8,
    /// Number of octets that the sender accepts in one datagram.
    pub udp_payload_len: u16,
    /// Upper eight bits of the response code.
    pub extended_rcode: u8,
    /// DO: the sender accepts DNSSEC records.
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

    /// Returns the options up to the first one that is malformed.
    pub fn options(&self) -> impl Iterator<Item = EdnsOption<'m>> + use<'m> {
        pairs(self.options).map(|(code, data)| EdnsOption { code: OptionCode(code), data })
    }
}

/// An option of EDNS.
///
/// Displayed as hexadecimal digits, except for a client subnet (RFC 7871), displayed as `192.0.2.0/24/0`, and an
/// extended error (RFC 8914), displayed as its number, followed by its text in quotes if there is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EdnsOption<'m> {
    /// Option code.
    pub code: OptionCode,
    /// Option data.
    pub data: &'m [u8],
}

impl EdnsOption<'_> {
    /// Returns the network of a client subnet, and the prefix lengths of the query and of the answer.
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

/// Pads octets with zeros to `N`; `None` if there are more than `N`.
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
