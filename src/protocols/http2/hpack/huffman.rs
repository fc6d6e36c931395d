//! The Huffman code for HPACK strings (RFC 7541 appendix B).
//!
//! The code is canonical: of two symbols, the one with the shorter code, or else the smaller one, has the smaller code.
//! The lengths therefore determine the code, and the tables are computed from them at compile time.

use super::error::HpackError;

/// Code lengths in bits, each with the symbols that have a code of this length, in ascending order. Symbol 256 is the
/// end of the string, which must not occur in a string.
const SYMBOLS_BY_LEN: [(u32, &[u16]); 21] = [
    (5, &[48, 49, 50, 97, 99, 101, 105, 111, 115, 116]),
    (
        6,
        &[
            32, 37, 45, 46, 47, 51, 52, 53, 54, 55, 56, 57, 61, 65, 95, 98, 100, 102, 103, 104, 108, 109,
            110, 112, 114, 117,
        ],
    ),
    (
        7,
        &[
            58, 66, 67, 68, 69, 70, 71, 72, 73, 74, 75, 76, 77, 78, 79, 80, 81, 82, 83, 84, 85, 86, 87, 89,
            106, 107, 113, 118, 119, 120, 121, 122,
        ],
    ),
    (8, &[38, 42, 44, 59, 88, 90]),
    (10, &[33, 34, 40, 41, 63]),
    (11, &[39, 43, 124]),
    (12, &[35, 62]),
    (13, &[0, 36, 64, 91, 93, 126]),
    (14, &[94, 125]),
    (15, &[60, 96, 123]),
    (19, &[92, 195, 208]),
    (20, &[128, 130, 131, 162, 184, 194, 224, 226]),
    (21, &[153, 161, 167, 172, 176, 177, 179, 209, 216, 217, 227, 229, 230]),
    (
        22,
        &[
            129, 132, 133, 134, 136, 146, 154, 156, 160, 163, 164, 169, 170, 173, 178, 181, 185, 186, 187,
            189, 190, 196, 198, 228, 232, 233,
        ],
    ),
    (
        23,
        &[
            1, 135, 137, 138, 139, 140, 141, 143, 147, 149, 150, 151, 152, 155, 157, 158, 165, 166, 168, 174,
            175, 180, 182, 183, 188, 191, 197, 231, 239,
        ],
    ),
    (24, &[9, 142, 144, 145, 148, 159, 171, 206, 215, 225, 236, 237]),
    (25, &[199, 207, 234, 235]),
    (26, &[192, 193, 200, 201, 202, 205, 210, 213, 218, 219, 238, 240, 242, 243, 255]),
    (27, &[203, 204, 211, 212, 214, 221, 222, 223, 241, 244, 245, 246, 247, 248, 250, 251, 252, 253, 254]),
    (
        28,
        &[
            2, 3, 4, 5, 6, 7, 8, 11, 12, 14, 15, 16, 17, 18, 19, 20, 21, 23, 24, 25, 26, 27, 28, 29, 30, 31,
            127, 220, 249,
        ],
    ),
    (30, &[10, 13, 22, END]),
];

const END: u16 = 256;

/// The codes of one length, for decoding: the next bits of a string, left-aligned in a word, belong to the first class
/// with a greater `limit`.
#[derive(Clone, Copy)]
struct Class {
    len: u32,
    /// The first code of the class, left-aligned in a word.
    first: u32,
    /// First value after the last code of the class, left-aligned in a word; `None` for the last class, which extends
    /// to the largest word.
    limit: Option<u32>,
}

/// Table indexed by the next eight bits of a string: the symbol whose code they start with, and the length of this code
/// in bits; length 0 if the code is longer than eight bits.
static SHORT: [(u8, u8); 256] = short();

static CLASSES: [Class; SYMBOLS_BY_LEN.len()] = classes();

#[allow(clippy::indexing_slicing, reason = "evaluated by the compiler")]
const fn classes() -> [Class; SYMBOLS_BY_LEN.len()] {
    let mut classes = [Class { len: 0, first: 0, limit: None }; SYMBOLS_BY_LEN.len()];
    let mut first: u64 = 0;
    let mut place = 0;
    while place < SYMBOLS_BY_LEN.len() {
        let (len, symbols) = SYMBOLS_BY_LEN[place];
        let limit = first + ((symbols.len() as u64) << (32 - len));
        let is_last = place + 1 == SYMBOLS_BY_LEN.len();
        // The code is complete: the last class ends at the largest word.
        assert!((limit == 1 << 32) == is_last);
        classes[place] =
            Class { len, first: first as u32, limit: if is_last { None } else { Some(limit as u32) } };
        first = limit;
        place += 1;
    }
    classes
}

#[allow(clippy::indexing_slicing, reason = "evaluated by the compiler")]
const fn short() -> [(u8, u8); 256] {
    let mut table = [(0, 0); 256];
    let mut next = 0;
    let mut place = 0;
    while SYMBOLS_BY_LEN[place].0 <= 8 {
        let (len, symbols) = SYMBOLS_BY_LEN[place];
        let mut symbol = 0;
        while symbol < symbols.len() {
            let end = next + (1 << (8 - len));
            while next < end {
                table[next] = (symbols[symbol] as u8, len as u8);
                next += 1;
            }
            symbol += 1;
        }
        place += 1;
    }
    table
}

/// Decodes a Huffman-coded string and appends the result to `text`: at most eight fifths of the string's length in
/// octets.
///
/// # Errors
///
/// Fails if the string ends within a code, other than by less than an octet of ones, or contains the end symbol (RFC
/// 7541 section 5.2).
pub(super) fn decode(string: &[u8], text: &mut Vec<u8>) -> Result<(), HpackError> {
    // Left-aligned bits; the unused bits are ones, like those that pad a string.
    let mut bits = u64::MAX;
    let mut bit_count = 0_u32;
    let mut octets = string.iter();
    loop {
        while bit_count <= 56
            && let Some(octet) = octets.next()
        {
            let shift = 56 - bit_count;
            bits &= !(0xFF << shift) | u64::from(*octet) << shift;
            bit_count += 8;
        }
        if bit_count == 0 {
            return Ok(());
        }
        let (symbol, len) = match SHORT.get((bits >> 56) as usize) {
            Some((symbol, len)) if *len > 0 => (*symbol, u32::from(*len)),
            _ => match long((bits >> 32) as u32) {
                Some(found) => found,
                None if bit_count < 8 && bits == u64::MAX => return Ok(()),
                None => return Err(HpackError::Huffman),
            },
        };
        if len > bit_count {
            // The remaining bits are padding.
            return if bit_count < 8 && bits == u64::MAX { Ok(()) } else { Err(HpackError::Huffman) };
        }
        text.push(symbol);
        bits = bits << len | ((1 << len) - 1);
        bit_count -= len;
    }
}

/// Returns the symbol whose code of more than eight bits starts the left-aligned bits in `word`, and the length of the
/// code in bits; `None` for the end symbol.
fn long(word: u32) -> Option<(u8, u32)> {
    let (place, class) =
        CLASSES.iter().enumerate().find(|(_, class)| class.limit.is_none_or(|limit| word < limit))?;
    let symbol = (word - class.first) >> (32 - class.len);
    let (_, symbols) = SYMBOLS_BY_LEN.get(place)?;
    Some((u8::try_from(*symbols.get(symbol as usize)?).ok()?, class.len))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(string: &[u8]) -> Result<Vec<u8>, HpackError> {
        let mut text = Vec::new();
        decode(string, &mut text).map(|()| text)
    }

    /// Returns the Huffman code of a symbol as binary digits.
    fn code(symbol: u16) -> String {
        let (index, (len, symbols)) =
            SYMBOLS_BY_LEN.iter().enumerate().find(|(_, (_, symbols))| symbols.contains(&symbol)).unwrap();
        let nth = symbols.iter().position(|other| *other == symbol).unwrap() as u32;
        let code = (CLASSES[index].first >> (32 - len)) + nth;
        format!("{code:0len$b}", len = *len as usize)
    }

    fn packed(bits: &str) -> Vec<u8> {
        let padded = format!("{bits}{}", "1".repeat((8 - bits.len() % 8) % 8));
        padded
            .as_bytes()
            .chunks(8)
            .map(|bits| u8::from_str_radix(std::str::from_utf8(bits).unwrap(), 2).unwrap())
            .collect()
    }

    #[test]
    fn codes_match_the_appendix() {
        for (symbol, wanted) in [
            (u16::from(b'0'), "00000"),
            (u16::from(b'z'), "1111011"),
            (u16::from(b'Z'), "11111101"),
            (u16::from(b'!'), "1111111000"),
            (u16::from(b'~'), "1111111111101"),
            (92, "1111111111111110000"),
            (255, "11111111111111111111101110"),
            (249, "1111111111111111111111111110"),
            (22, "111111111111111111111111111110"),
            (END, "111111111111111111111111111111"),
        ] {
            assert_eq!(code(symbol), wanted, "{symbol}");
        }
    }

    #[test]
    fn every_octet_is_decoded() {
        let all: Vec<u8> = (0..=255).chain((0..=255).rev()).collect();
        let bits: String = all.iter().map(|octet| code(u16::from(*octet))).collect();
        assert_eq!(decoded(&packed(&bits)), Ok(all));
        for octet in 0..=255 {
            assert_eq!(decoded(&packed(&code(u16::from(octet)))), Ok(vec![octet]));
        }
    }

    #[test]
    fn invalid_padding_and_the_end_symbol_are_rejected() {
        assert_eq!(decoded(b""), Ok(Vec::new()));
        assert_eq!(decoded(&[0xFF]), Err(HpackError::Huffman), "an octet of padding");
        assert_eq!(decoded(&[0b0000_0000]), Err(HpackError::Huffman), "padding of zeros");
        assert_eq!(decoded(&packed(&code(END))), Err(HpackError::Huffman));
        assert_eq!(decoded(&[0xFF; 5]), Err(HpackError::Huffman));
    }
}
