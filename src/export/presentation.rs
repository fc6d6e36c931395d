//! Character strings in the presentation format of DNS.

/// Returns character strings from their presentation format (RFC 1035 section 5.1): in quotes, with escapes.
pub(super) fn character_strings(data: &str) -> Vec<String> {
    let (mut texts, mut current) = (Vec::new(), None::<String>);
    let mut letters = data.chars();
    while let Some(letter) = letters.next() {
        match (letter, &mut current) {
            ('"', None) => current = Some(String::new()),
            ('"', Some(_)) => texts.extend(current.take()),
            ('\\', Some(text)) => {
                let digits: String = letters.clone().take(3).take_while(char::is_ascii_digit).collect();
                match digits.parse::<u8>() {
                    Ok(octet) if digits.len() == 3 => {
                        text.push(char::from(octet));
                        letters.nth(2);
                    }
                    _ => text.extend(letters.next()),
                }
            }
            (letter, Some(text)) => text.push(letter),
            (_, None) => {}
        }
    }
    texts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_removed() {
        assert_eq!(character_strings("\"v=spf1 -all\" \"a\\\"b\\032\""), ["v=spf1 -all", "a\"b "]);
        assert!(character_strings("").is_empty());
        assert_eq!(character_strings("\"\" \"open"), [""]);
    }
}
