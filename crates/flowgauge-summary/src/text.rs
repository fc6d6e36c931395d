//! Words for people and for shells.

/// Formats a number with a noun, which is `one` in the singular: `1 flow`, `2 flows`.
#[must_use]
pub fn plural(number: u64, one: &str) -> String {
    if number == 1 { format!("1 {one}") } else { format!("{number} {one}s") }
}

/// Quotes a word for a shell, if that is necessary. The result is printable: a word with controls, which a terminal would
/// obey or not show, becomes the output of `printf`; line ends at the end of such a word are lost.
#[must_use]
pub fn shell_word(word: &str) -> String {
    let is_plain = |letter: char| letter.is_alphanumeric() || "._-/+=:@%,".contains(letter);
    if word.chars().any(is_control) {
        format!("\"$(printf '{}')\"", printf_format(word))
    } else if word.chars().all(is_plain) && !word.is_empty() {
        word.to_owned()
    } else if word.contains(['"', '$', '`', '\\', '!']) {
        format!("'{}'", word.replace('\'', r"'\''"))
    } else {
        format!("\"{word}\"")
    }
}

/// Quotes the name of a file for a shell, if that is necessary, as an argument that is not an option. The name `-` stands for
/// standard input.
#[must_use]
pub fn shell_file(name: &str) -> String {
    if name.starts_with('-') && name != "-" { shell_word(&format!("./{name}")) } else { shell_word(name) }
}

/// Returns whether a character is a control of the terminal, of the line, or of the direction of text.
fn is_control(letter: char) -> bool {
    letter.is_control()
        || matches!(
            letter,
            '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
        )
}

/// Returns a format with which `printf` of any shell writes a text. It has no quotes.
fn printf_format(text: &str) -> String {
    let mut format = String::new();
    for letter in text.chars() {
        match letter {
            '%' => format.push_str("%%"),
            letter if is_control(letter) || "'\"\\!-".contains(letter) => {
                let mut octets = [0; 4];
                let octets = letter.encode_utf8(&mut octets).bytes();
                format.extend(octets.map(|octet| format!("\\{octet:03o}")));
            }
            letter => format.push(letter),
        }
    }
    format
}

/// Returns the words of a command line, which are separated by spaces outside of quotes.
pub fn shell_words(line: &str) -> impl Iterator<Item = &str> {
    let mut rest = line;
    std::iter::from_fn(move || {
        rest = rest.trim_start_matches(' ');
        let (mut quote, mut letters) = (None, rest.char_indices());
        let end = loop {
            match (letters.next(), quote) {
                (None, _) => break rest.len(),
                (Some((at, ' ')), None) => break at,
                (Some((_, '\\')), None | Some('"')) => drop(letters.next()),
                (Some((_, letter @ ('"' | '\''))), None) => quote = Some(letter),
                (Some((_, letter)), Some(open)) if letter == open => quote = None,
                _ => {}
            }
        };
        let (word, tail) = rest.split_at_checked(end)?;
        rest = tail;
        (!word.is_empty()).then_some(word)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_for_a_shell() {
        let words = [
            "plain.pcap",
            "a b",
            "it's",
            "$(reboot)",
            "`x`",
            "a\"b'c",
            "!!",
            "\\",
            "a\nb",
            "-\u{1b}[31m %s 'a' \"b\" \\ !x $y `z`\u{202e}\u{9b}",
            "$x many spaces  in it's name.pcap",
            "-x",
            "*",
            "~",
            "",
        ];
        for word in words {
            let quoted = shell_word(word);
            assert!(!quoted.contains(is_control), "{quoted}");
            let line = format!("printf %s {quoted}");
            let output = std::process::Command::new("sh").args(["-c", &line]).output().unwrap();
            assert_eq!(String::from_utf8(output.stdout).unwrap(), word, "{line}");
        }
        // The words of a line are those that were quoted.
        let quoted = words.map(shell_word);
        assert_eq!(shell_words(&format!("  {} ", quoted.join("  "))).collect::<Vec<_>>(), quoted);
        assert_eq!(shell_word("host 192.0.2.1"), "\"host 192.0.2.1\"");
    }

    #[test]
    fn names_of_files_are_not_options() {
        for (name, expected) in
            [("-w.pcap", "./-w.pcap"), ("-", "-"), ("- x", "\"./- x\""), ("a-b", "a-b"), ("./-w", "./-w")]
        {
            assert_eq!(shell_file(name), expected);
        }
    }
}
