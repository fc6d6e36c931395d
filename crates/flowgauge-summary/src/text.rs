//! Words for people and for shells.

/// Formats a number with a noun, which is `one` in the singular: `1 flow`, `2 flows`.
#[must_use]
pub fn plural(number: u64, one: &str) -> String {
    if number == 1 { format!("1 {one}") } else { format!("{number} {one}s") }
}

/// Quotes a word for a shell, if that is necessary.
#[must_use]
pub fn shell_word(word: &str) -> String {
    let is_plain = |letter: char| letter.is_alphanumeric() || "._-/+=:@%,".contains(letter);
    if word.chars().all(is_plain) {
        word.to_owned()
    } else if word.contains(['"', '$', '`', '\\', '!', '\n']) {
        format!("'{}'", word.replace('\'', r"'\''"))
    } else {
        // A line can be continued inside of these.
        format!("\"{word}\"")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_for_a_shell() {
        for word in [
            "plain.pcap",
            "a b",
            "it's",
            "$(reboot)",
            "`x`",
            "a\"b'c",
            "!!",
            "\\",
            "a\nb",
            "-x",
            "*",
            "~",
            "",
        ] {
            let line = format!("printf %s {}", shell_word(word));
            let output = std::process::Command::new("sh").args(["-c", &line]).output().unwrap();
            assert_eq!(String::from_utf8(output.stdout).unwrap(), word, "{line}");
        }
        assert_eq!(shell_word("host 192.0.2.1"), "\"host 192.0.2.1\"");
    }
}
