//! Vendors of MAC addresses: the public listings of the registry of IEEE (MA-L, MA-M and MA-S), of 2022-08-27.

use std::io::Read as _;
use std::sync::OnceLock;

use flate2::read::GzDecoder;

/// A line for each vendor: its name, a tab, and its prefixes of 6, 7 or 9 hexadecimal digits.
const LISTING: &[u8] = include_bytes!("../../data/vendors.gz");

/// The listing, and the prefixes with the places of their vendors' names, in order.
struct Vendors {
    text: String,
    /// Number of digits, and value, of each prefix.
    prefixes: Vec<((u8, u64), (u32, u32))>,
}

impl Vendors {
    fn read() -> Self {
        let mut text = String::new();
        let mut prefixes = Vec::new();
        if GzDecoder::new(LISTING).read_to_string(&mut text).is_err() {
            text.clear();
        }
        let mut start = 0;
        for line in text.split_inclusive('\n') {
            if let Some((name, own)) = line.split_once('\t') {
                let place = (start as u32, name.len() as u32);
                let read = |digits: &str| Some((digits.len() as u8, u64::from_str_radix(digits, 16).ok()?));
                prefixes.extend(own.split_whitespace().filter_map(read).map(|prefix| (prefix, place)));
            }
            start += line.len();
        }
        prefixes.sort_unstable();
        Self { text, prefixes }
    }

    fn get(&self, prefix: (u8, u64)) -> Option<&str> {
        let index = self.prefixes.binary_search_by_key(&prefix, |(known, _)| *known).ok()?;
        let (start, len) = self.prefixes.get(index)?.1;
        self.text.get(start as usize..(start + len) as usize)
    }
}

/// Returns the vendor of a MAC address; `None` if the address is a local one, or not in the listing. The first call reads the
/// listing, which takes some milliseconds and 2 MB.
#[must_use]
pub fn vendor(mac: [u8; 6]) -> Option<&'static str> {
    static VENDORS: OnceLock<Vendors> = OnceLock::new();
    // The two lowest bits of the first octet mark groups, and addresses that are not registered.
    if mac[0] & 3 != 0 {
        return None;
    }
    let vendors = VENDORS.get_or_init(Vendors::read);
    let value = mac.iter().fold(0, |value, octet| value << 8 | u64::from(*octet));
    [9, 7, 6].into_iter().find_map(|digits| vendors.get((digits, value >> (48 - 4 * u32::from(digits)))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vendors_of_registered_addresses_are_known() {
        assert_eq!(vendor([0x00, 0x00, 0x0c, 1, 2, 3]), Some("Cisco Systems, Inc"));
        assert_eq!(vendor([0xb8, 0x27, 0xeb, 1, 2, 3]), Some("Raspberry Pi Foundation"));
        assert_eq!(vendor([0x02, 0, 0, 0, 0, 1]), None);
        assert_eq!(vendor([0x01, 0, 0x5e, 0, 0, 1]), None);
        // The longest prefix decides: blocks of 28 and of 36 bits are within those of 24.
        let vendors = Vendors::read();
        assert!(vendors.prefixes.len() > 40_000);
        let small =
            vendors.prefixes.iter().find(|((digits, _), _)| *digits == 9).map(|((_, value), _)| *value);
        let mac = (small.unwrap() << 12).to_be_bytes();
        assert!(vendor(mac[2..].try_into().unwrap()).is_some());
    }
}
