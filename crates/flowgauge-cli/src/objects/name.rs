//! File names of objects.

use super::args::Kind;

/// Maximum length in octets of the part of a file name that is the name in the traffic.
const NAME_LEN_MAX: usize = 100;

/// Maximum length in octets of an extension that is kept when a name is truncated.
const EXTENSION_LEN_MAX: usize = 16;

/// Returns whether a character is safe in a file name: letters and digits, and those without a meaning for file systems,
/// terminals and shells.
fn is_safe(letter: char) -> bool {
    letter.is_alphanumeric() || "-_.+=@,".contains(letter)
}

/// Returns the longest part of a text from its start with at most `len` octets.
fn prefix(text: &str, len: usize) -> &str {
    (0..=len).rev().find_map(|end| text.get(..end)).unwrap_or_default()
}

/// Returns a name that is valid and harmless as the end of a file name: without separators of folders, controls and
/// spaces, and of bounded length. Characters of other kinds become `_`.
fn safe(name: &str) -> String {
    // A longer name is truncated anyway.
    let name: String =
        name.chars().take(4 * NAME_LEN_MAX).map(|c| if is_safe(c) { c } else { '_' }).collect();
    // Windows removes dots at the end.
    let name = name.trim_end_matches('.');
    if name.len() <= NAME_LEN_MAX {
        return name.to_owned();
    }
    let extension = name.rfind('.').and_then(|dot| name.get(dot..)).unwrap_or_default();
    let extension = if extension.len() <= EXTENSION_LEN_MAX { extension } else { "" };
    format!("{}{extension}", prefix(name, NAME_LEN_MAX - extension.len()))
}

/// Returns the file name of an object, without its extension if its kind has one. The number in front makes it unique,
/// also on file systems that ignore case, and no hidden file, option of a command or reserved name of Windows.
pub(super) fn stem(number: u64, kind: Kind, name: Option<&str>) -> String {
    let name = safe(name.unwrap_or_default());
    let name = match kind.extension() {
        Some(extension) => {
            name.strip_suffix(extension).and_then(|name| name.strip_suffix('.')).unwrap_or(&name)
        }
        None => &name,
    };
    format!("{number:06}-{}", if name.is_empty() { kind.name() } else { name })
}

/// Returns the part of the target of a request that names a file: the last part of the path.
pub(super) fn of_target(target: &str) -> Option<&str> {
    let path = target.split(['?', '#']).next().unwrap_or_default();
    path.rsplit('/').next().filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_safe_and_recognizable() {
        for (name, expected) in [
            ("index.html", "000007-index.html"),
            ("../../etc/passwd", "000007-.._.._etc_passwd"),
            ("..\\..\\boot.ini", "000007-.._.._boot.ini"),
            ("CON", "000007-CON"),
            ("-rf", "000007--rf"),
            (".bashrc", "000007-.bashrc"),
            ("a\0b\n\u{1b}[31m", "000007-a_b___31m"),
            ("exe.\u{202e}gpj", "000007-exe._gpj"),
            ("$(reboot);'`\".sh", "000007-__reboot_____.sh"),
            ("a b:c*d?e<f>g|h", "000007-a_b_c_d_e_f_g_h"),
            ("bericht ä€漢.pdf", "000007-bericht_ä_漢.pdf"),
            ("trailing. .", "000007-trailing._"),
            ("...", "000007-http"),
            ("", "000007-http"),
        ] {
            assert_eq!(stem(7, Kind::Http, Some(name)), expected, "{name:?}");
        }
        assert_eq!(stem(7, Kind::Ftp, None), "000007-ftp");
        assert_eq!(stem(7, Kind::Mail, Some("Re: a.eml")), "000007-Re__a");
        assert_eq!(stem(7, Kind::Certificate, Some("*.example")), "000007-_.example");
        assert_eq!(stem(12_345_678, Kind::Mail, None), "12345678-mail");
    }

    #[test]
    fn long_names_are_truncated_before_their_extension() {
        for letter in ["x", "ä", "漢"] {
            for len in [90, 100, 101, 1000, 100_000] {
                let name = format!("{}.tar.gz", letter.repeat(len));
                let short = safe(&name);
                assert!(short.len() <= NAME_LEN_MAX && short.len() >= NAME_LEN_MAX - 4 || short == name);
                // A name that is too long to be read whole has no extension.
                assert!(short.ends_with(".gz") || len > 300, "{short}");
            }
        }
        assert_eq!(safe(&format!("a.{}", "x".repeat(300))).len(), NAME_LEN_MAX);
    }

    #[test]
    fn the_name_of_a_target_is_the_last_part_of_its_path() {
        for (target, name) in [
            ("/", None),
            ("/a/b.png?x=/c", Some("b.png")),
            ("http://host/a.js#x", Some("a.js")),
            ("/folder/", None),
            ("*", Some("*")),
            ("", None),
        ] {
            assert_eq!(of_target(target), name);
        }
    }
}
