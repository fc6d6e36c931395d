//! Identifiers of connections and files.

use std::fmt;
use std::net::IpAddr;

use sha1::{Digest as _, Sha1};

use crate::base::{FlowKey, Ports, Side, Timestamp};
use crate::row::{Cell, Column, Type, Visitor};
use crate::transaction::FlowOrigin;

/// Number of letters of an identifier.
const LEN: usize = 18;

/// The digits of identifiers.
const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// Identifier of a flow or file, as in the logs of Zeek: `C` or `F`, and 17 digits of base 62. 18 octets, `Copy`.
///
/// It is the beginning of a SHA-1 digest of a seed, the [`FlowKey`] and the start of the flow, so that all runs with the same
/// seed give a flow the same identifier.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Uid([u8; LEN]);

impl Uid {
    /// Returns the identifier of a flow that started at a time.
    #[must_use]
    pub fn of_flow(key: &FlowKey, start: Timestamp, seed: u64) -> Self {
        let mut hash = Sha1::new();
        hash.update(seed.to_be_bytes());
        hash.update(start.as_nanos().to_be_bytes());
        for side in [Side::A, Side::B] {
            match key.address(side) {
                IpAddr::V4(address) => hash.update(address.octets()),
                IpAddr::V6(address) => hash.update(address.octets()),
            }
        }
        let (kind, ports) = match key.ports() {
            Ports::Transport(a, b) => (1, [a, b]),
            Ports::Icmp { kind, counterpart, echo_id } => {
                hash.update(echo_id.unwrap_or_default().to_be_bytes());
                (2, [kind.into(), counterpart.into()])
            }
            Ports::None => (0, [0; 2]),
        };
        hash.update([key.protocol().0, kind]);
        ports.iter().for_each(|port| hash.update(port.to_be_bytes()));
        hash.update(key.scope().to_be_bytes());
        hash.update(key.vni().map_or(u64::MAX, u64::from).to_be_bytes());
        key.vlan_ids().iter().for_each(|id| hash.update(id.to_be_bytes()));
        Self::new(b'C', hash)
    }

    /// Returns the identifier of a file of this flow. `source` is the protocol, and `number` distinguishes the files of one
    /// protocol.
    pub(super) fn of_file(self, source: &str, number: u64) -> Self {
        let mut hash = Sha1::new();
        hash.update(self.0);
        hash.update(number.to_be_bytes());
        hash.update(source);
        Self::new(b'F', hash)
    }

    /// Returns the identifier of a flow of a transaction.
    pub(super) fn of_origin(flow: &FlowOrigin, seed: u64) -> Self {
        Self::of_flow(&flow.key, flow.start, seed)
    }

    fn new(letter: u8, hash: Sha1) -> Self {
        let digest = hash.finalize();
        let mut number =
            digest.iter().take(16).fold(0_u128, |number, octet| number << 8 | u128::from(*octet));
        let mut text = [letter; LEN];
        for place in text.iter_mut().skip(1) {
            let digit = DIGITS.get((number % 62) as usize);
            *place = digit.copied().unwrap_or_default();
            number /= 62;
        }
        Self(text)
    }

    /// Returns the identifier as a number of 63 bits, which is not zero.
    #[must_use]
    pub fn number(&self) -> u64 {
        let digits = self.0.iter().skip(1).filter_map(|digit| DIGITS.iter().position(|known| known == digit));
        let number = digits.fold(0_u64, |number, digit| number.wrapping_mul(62).wrapping_add(digit as u64));
        (number >> 1).max(1)
    }

    /// Returns the identifier as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        // The digits are ASCII.
        std::str::from_utf8(&self.0).unwrap_or_default()
    }
}

impl fmt::Display for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl fmt::Debug for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Uid({self})")
    }
}

impl Cell for Uid {
    const TYPE: Type = Type::Text;

    #[inline]
    fn visit(&self, column: &'static Column, visitor: &mut (impl Visitor + ?Sized)) {
        visitor.text(column, self.as_str());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::IpProtocol;

    #[test]
    fn identifiers_depend_on_seed_start_and_key_but_not_on_direction() {
        let (client, server) = (([192, 0, 2, 1].into(), 40_000), ([192, 0, 2, 2].into(), 80));
        let key = FlowKey::new(IpProtocol::TCP, client, server).0;
        let time = Timestamp::from_parts(1_700_000_000, 0);
        let uid = Uid::of_flow(&key, time, 0);
        assert!(uid.as_str().len() == LEN && uid.as_str().starts_with('C'), "{uid}");
        assert!(uid.as_str().bytes().all(|letter| letter.is_ascii_alphanumeric()));
        let back = FlowKey::new(IpProtocol::TCP, server, client).0;
        assert_eq!(Uid::of_flow(&back, time, 0), uid);
        let udp = FlowKey::new(IpProtocol::UDP, client, server).0;
        let others = [
            Uid::of_flow(&key, time, 1),
            Uid::of_flow(&key, Timestamp::from_parts(1_700_000_000, 1), 0),
            Uid::of_flow(&udp, time, 0),
        ];
        assert!(others.iter().all(|other| *other != uid));
        let file = uid.of_file("HTTP", 0);
        assert!(file.as_str().starts_with('F') && file != uid.of_file("HTTP", 1));
    }
}
