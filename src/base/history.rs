//! The history of a flow: the letters of its events.

use std::fmt;

/// The events on a flow in the order of their first occurrence, with the letters of Zeek's `history`: upper case for the
/// initiator, lower case for the responder.
///
/// | letter | meaning |
/// |---|---|
/// | `s` | SYN without ACK |
/// | `h` | SYN-ACK |
/// | `a` | ACK without payload |
/// | `d` | payload |
/// | `f` | FIN |
/// | `r` | RST |
/// | `c` | bad checksum |
/// | `g` | a gap: octets that were acknowledged but not captured |
/// | `t` | payload seen before |
/// | `w` | zero window |
/// | `i` | FIN and RST in one segment |
/// | `q` | other combinations of control bits that exclude each other |
/// | `^` | initiator and responder were exchanged |
///
/// `c`, `g`, `t` and `w` repeat at the 10th, 100th ... occurrence. Holds 25 letters; later ones are discarded. 16
/// octets, `Copy`.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct History(u128);

const ALPHABET: [u8; 28] = *b"\0SHADFRCGTWIQXshadfrcgtwiqx^";

/// The code of each ASCII letter, which is its index in [`ALPHABET`]; zero for letters without a meaning.
const CODES: [u8; 128] = {
    let mut codes = [0; 128];
    let mut code = 1;
    while code < ALPHABET.len() {
        codes[ALPHABET[code] as usize] = code as u8;
        code += 1;
    }
    codes
};

const BITS: u32 = 5;
const CAPACITY: u32 = 128 / BITS;

impl History {
    /// The history without letters.
    pub const EMPTY: Self = Self(0);

    pub(crate) const fn from_halves([low, high]: [u64; 2]) -> Self {
        Self((high as u128) << 64 | low as u128)
    }

    pub(crate) const fn to_halves(self) -> [u64; 2] {
        [self.0 as u64, (self.0 >> 64) as u64]
    }

    /// Returns the number of letters of the history.
    #[must_use]
    pub const fn len(self) -> usize {
        (128 - self.0.leading_zeros()).div_ceil(BITS) as usize
    }

    /// Returns whether the history has no letters.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Appends a letter to the history. Letters that [`History`] does not define, and letters beyond its capacity of
    /// 25, are ignored.
    pub(crate) fn push(&mut self, letter: u8) {
        let place = self.len() as u32;
        let code = CODES.get(usize::from(letter)).copied().unwrap_or(0);
        if place < CAPACITY {
            self.0 |= u128::from(code) << (place * BITS);
        }
    }

    /// Creates a history from letters; `None` if [`History`] does not define one of them, or if there are more than
    /// 25.
    #[must_use]
    pub(crate) fn from_letters(letters: &str) -> Option<Self> {
        let mut history = Self::EMPTY;
        letters.bytes().for_each(|letter| history.push(letter));
        (history.len() == letters.len()).then_some(history)
    }

    /// Iterates over the letters of the history in order.
    pub fn letters(self) -> impl Iterator<Item = char> {
        (0..self.len() as u32)
            .filter_map(move |place| ALPHABET.get((self.0 >> (place * BITS)) as usize & 31))
            .map(|letter| char::from(*letter))
    }

    /// Returns the letters of the history as ASCII, and their number.
    pub(crate) fn ascii(self) -> ([u8; CAPACITY as usize], usize) {
        let mut letters = [0; CAPACITY as usize];
        for (place, letter) in letters.iter_mut().zip(self.letters()) {
            *place = letter as u8;
        }
        (letters, self.len())
    }

    /// Returns the history with the roles of initiator and responder exchanged: upper and lower case are swapped.
    pub(crate) fn turned_over(self) -> Self {
        let mut turned = Self::EMPTY;
        for letter in self.letters() {
            let other = if letter.is_ascii_lowercase() {
                letter.to_ascii_uppercase()
            } else {
                letter.to_ascii_lowercase()
            };
            turned.push(other as u8);
        }
        turned
    }

    /// Returns the history after stronger evidence exchanged the roles: turned over, with the letter for that.
    pub(crate) fn reversed(self) -> Self {
        let mut turned = self.turned_over();
        turned.push(b'^');
        turned
    }
}

impl fmt::Display for History {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (letters, len) = self.ascii();
        f.pad(std::str::from_utf8(letters.get(..len).unwrap_or_default()).unwrap_or_default())
    }
}

impl fmt::Debug for History {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{self}\"")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn history(letters: &str) -> History {
        let mut history = History::EMPTY;
        letters.bytes().for_each(|letter| history.push(letter));
        history
    }

    #[test]
    fn letters_are_displayed_in_order() {
        for text in ["", "S", "ShADadFf", "^hADdtTgGwWcCiIqQxX^"] {
            assert_eq!(history(text).to_string(), text);
            assert_eq!(history(text).len(), text.len());
            assert_eq!(History::from_halves(history(text).to_halves()), history(text));
        }
    }

    #[test]
    fn excess_and_unknown_letters_are_omitted() {
        let full = "ShADadFfShADadFfShADadFfS";
        assert_eq!(history(full).to_string(), full);
        assert_eq!(history(&format!("{full}X")).to_string(), full);
        assert_eq!(history("Sz0\0h").to_string(), "Sh");
    }

    #[test]
    fn turning_over_exchanges_upper_and_lower_case() {
        assert_eq!(history("^hADd").turned_over().to_string(), "^HadD");
    }
}
