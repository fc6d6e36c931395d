//! MACsec: the security tag (IEEE 802.1AE, clause 9).

use super::be16;
use crate::base::EtherType;

/// Length of a MACsec tag behind its EtherType, without the optional channel identifier, in octets.
pub(crate) const TAG_LEN_MIN: usize = 6;
const CHANNEL_LEN: usize = 8;

const HAS_CHANNEL: u8 = 0x20;
const IS_ENCRYPTED: u8 = 0x08;
const IS_CHANGED: u8 = 0x04;
const SHORT_LEN_MASK: u8 = 0x3f;

mod field {
    pub(super) const CONTROL: usize = 0;
    pub(super) const SHORT_LEN: usize = 1;
}

/// Length of the integrity check value at the end of a MACsec frame, in octets, for the default cipher suites.
pub(crate) const CHECK_VALUE_LEN: usize = 16;

/// Fields of a MACsec security tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub(crate) struct SecTag {
    /// True if the user data cannot be read, because it is encrypted or because the cipher suite changes it.
    pub(crate) is_encrypted: bool,
    /// Number of octets from the end of the MACsec EtherType to the user data, which starts with an EtherType.
    pub(crate) len: usize,
    /// Length of the user data in octets, if below 48.
    pub(crate) short_len: Option<usize>,
}

/// Reads a MACsec tag from the octets behind its EtherType; `None` if the tag is truncated.
#[must_use]
pub(crate) fn tag(data: &[u8]) -> Option<SecTag> {
    let tag = data.first_chunk::<TAG_LEN_MIN>()?;
    let control = tag[field::CONTROL];
    let len = TAG_LEN_MIN + if control & HAS_CHANNEL != 0 { CHANNEL_LEN } else { 0 };
    let short_len = Some(usize::from(tag[field::SHORT_LEN] & SHORT_LEN_MASK)).filter(|len| *len > 0);
    Some(SecTag { is_encrypted: control & (IS_ENCRYPTED | IS_CHANGED) != 0, len, short_len })
}

impl SecTag {
    /// Length of the EtherType at the start of the user data, in octets.
    pub(crate) const ETHER_TYPE_LEN: usize = 2;

    /// Returns the EtherType of the user data behind the MACsec tag at the start of `data`.
    #[must_use]
    pub(crate) fn ether_type(&self, data: &[u8]) -> Option<EtherType> {
        be16(data, self.len).map(EtherType)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tag_gives_its_length_and_shows_encryption() {
        let clear = |len, short_len| Some(SecTag { is_encrypted: false, len, short_len });
        assert_eq!(tag(&[0, 0, 0, 0, 0, 1]), clear(6, None));
        assert_eq!(tag(&[0x20, 46, 0, 0, 0, 1]), clear(14, Some(46)));
        let data = [0, 0, 0, 0, 0, 1, 8, 0];
        assert_eq!(tag(&data).unwrap().ether_type(&data), Some(EtherType::IPV4));
        assert_eq!(tag(&data).unwrap().ether_type(&data[..7]), None);
        // Either of E and C: the octets differ from those that were sent.
        for control in [0x08, 0x04, 0x0c] {
            assert!(tag(&[control, 0, 0, 0, 0, 1]).unwrap().is_encrypted);
        }
        assert_eq!(tag(&[0; 5]), None);
    }
}
