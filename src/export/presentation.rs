//! Character strings in the presentation format of DNS.

/// Returns character strings from their presentation format (RFC 1035 section 5.1): in quotes, with escapes.
pub(super) fn character_strings(data: &str) -> Vec<String> {
    let (mut texts, mut current) = (Vec::new(), None::<Vec<u8>>);
    let mut letters = data.chars();
    while let Some(letter) = letters.next() {
        match (letter, &mut current) {
            ('"', None) => current = Some(Vec::new()),
            ('"', Some(text)) => {
                texts.push(String::from_utf8_lossy(text).into_owned());
                current = None;
            }
            ('\\', Some(text)) => {
                let digits: String = letters.clone().take(3).take_while(char::is_ascii_digit).collect();
                match digits.parse::<u8>() {
                    Ok(octet) if digits.len() == 3 => {
                        text.push(octet);
                        letters.nth(2);
                    }
                    _ => letters.next().into_iter().for_each(|letter| push(text, letter)),
                }
            }
            (letter, Some(text)) => push(text, letter),
            (_, None) => {}
        }
    }
    texts
}

fn push(text: &mut Vec<u8>, letter: char) {
    text.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_removed() {
        assert_eq!(character_strings("\"v=spf1 -all\" \"a\\\"b\\032\""), ["v=spf1 -all", "a\"b "]);
        assert_eq!(character_strings("\"b\\195\\188 \u{fc} \\255\""), ["b\u{fc} \u{fc} \u{fffd}"]);
        assert!(character_strings("").is_empty());
        assert_eq!(character_strings("\"\" \"open"), [""]);
    }
}
