//! Parsing of SMTP command lines.

use crate::checkpoint::{Invalid, Saved, StateWriter};
use crate::codec::{Prefix, Reader};
use crate::session::Text;
use crate::session::lines::{decimal, first_word, starts_with_ignore_case};

/// The SMTP and LMTP commands that the parser knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Verb {
    /// EHLO, RFC 5321 section 4.1.1.1.
    Ehlo,
    /// HELO, RFC 5321 section 4.1.1.1.
    Helo,
    /// LHLO of LMTP, RFC 2033 section 4.1.
    Lhlo,
    /// MAIL, RFC 5321 section 4.1.1.2.
    Mail,
    /// RCPT, RFC 5321 section 4.1.1.3.
    Rcpt,
    /// DATA, RFC 5321 section 4.1.1.4.
    Data,
    /// BDAT, RFC 3030.
    Bdat,
    /// BURL, RFC 4468.
    Burl,
    /// RSET, RFC 5321 section 4.1.1.5.
    Rset,
    /// VRFY, RFC 5321 section 4.1.1.6.
    Vrfy,
    /// EXPN, RFC 5321 section 4.1.1.7.
    Expn,
    /// HELP, RFC 5321 section 4.1.1.8.
    Help,
    /// NOOP, RFC 5321 section 4.1.1.9.
    Noop,
    /// QUIT, RFC 5321 section 4.1.1.10.
    Quit,
    /// AUTH, RFC 4954.
    Auth,
    /// STARTTLS, RFC 3207.
    StartTls,
    /// ETRN, RFC 1985.
    Etrn,
    /// ATRN, RFC 2645.
    Atrn,
    /// TURN, RFC 821, obsolete.
    Turn,
    /// XCLIENT, an extension of Postfix.
    Xclient,
    /// XFORWARD, an extension of Postfix.
    Xforward,
    /// Any command that is not known.
    Other,
}

impl Saved for Verb {
    fn save(&self, writer: &mut StateWriter<'_>) -> Result<(), Invalid> {
        Ok(writer.prefixed(Prefix::U8, self.name())?)
    }

    fn load(reader: &mut Reader<'_>) -> Result<Self, Invalid> {
        Ok(Self::of(reader.prefixed(Prefix::U8)?))
    }
}

const VERBS: [(Verb, &str); 22] = [
    (Verb::Ehlo, "EHLO"),
    (Verb::Helo, "HELO"),
    (Verb::Lhlo, "LHLO"),
    (Verb::Mail, "MAIL"),
    (Verb::Rcpt, "RCPT"),
    (Verb::Data, "DATA"),
    (Verb::Bdat, "BDAT"),
    (Verb::Burl, "BURL"),
    (Verb::Rset, "RSET"),
    (Verb::Vrfy, "VRFY"),
    (Verb::Expn, "EXPN"),
    (Verb::Help, "HELP"),
    (Verb::Noop, "NOOP"),
    (Verb::Quit, "QUIT"),
    (Verb::Auth, "AUTH"),
    (Verb::StartTls, "STARTTLS"),
    (Verb::Etrn, "ETRN"),
    (Verb::Atrn, "ATRN"),
    (Verb::Turn, "TURN"),
    (Verb::Xclient, "XCLIENT"),
    (Verb::Xforward, "XFORWARD"),
    (Verb::Other, "other"),
];

impl Verb {
    /// Returns the command with this name, which may be in upper or lower case.
    #[must_use]
    pub(super) fn of(word: &[u8]) -> Self {
        // Exchange uses this name for the same command.
        if word.eq_ignore_ascii_case(b"X-EXPS") {
            return Self::Auth;
        }
        let known = VERBS.iter().find(|(_, name)| word.eq_ignore_ascii_case(name.as_bytes()));
        known.map_or(Self::Other, |(verb, _)| *verb)
    }

    /// Returns the name of the command in capitals; `other` for an unknown command.
    #[must_use]
    pub fn name(self) -> &'static str {
        VERBS.iter().find(|(verb, _)| *verb == self).map_or("other", |(_, name)| name)
    }

    /// Returns whether the command is EHLO, HELO or LHLO, which restarts the session and discards any mail in it.
    pub(super) const fn is_hello(self) -> bool {
        matches!(self, Self::Ehlo | Self::Helo | Self::Lhlo)
    }
}

crate::row::cells! { named Verb; }

/// The path and the parameters of MAIL or RCPT: `FROM:<a@b> SIZE=9` after the name of the command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Path<'a> {
    pub(super) address: &'a [u8],
    pub(super) parameters: &'a [u8],
}

impl<'a> Path<'a> {
    /// Parses the argument of MAIL or RCPT, which begins with `keyword`. Returns `None` without `FROM:` or `TO:`. The
    /// brackets of the path may be missing, and blanks may precede them, as some clients send it.
    pub(super) fn parse(argument: &'a [u8], keyword: &[u8]) -> Option<Self> {
        let rest = starts_with_ignore_case(argument, keyword).then(|| argument.get(keyword.len()..))??;
        let rest = rest.trim_ascii_start();
        let Some(inner) = rest.strip_prefix(b"<") else {
            let (address, parameters) = first_word(rest);
            return Some(Self { address, parameters });
        };
        let end = closing_bracket(inner).unwrap_or(inner.len());
        let address = inner.get(..end)?;
        Some(Self { address, parameters: inner.get(end + 1..).unwrap_or_default().trim_ascii() })
    }

    /// Returns the value of a parameter of MAIL or RCPT (RFC 5321 section 4.1.2, esmtp-param).
    pub(super) fn parameter(&self, name: &[u8]) -> Option<&'a [u8]> {
        self.parameters.split(u8::is_ascii_whitespace).find_map(|parameter| {
            let value = parameter.get(name.len()..)?.strip_prefix(b"=")?;
            starts_with_ignore_case(parameter, name).then_some(value)
        })
    }

    /// Returns the length of the mail in octets that the client declares with the SIZE parameter (RFC 1870).
    pub(super) fn size(&self) -> Option<u64> {
        self.parameter(b"SIZE").and_then(decimal)
    }
}

/// Returns the index of the first `>` that is outside quotes.
fn closing_bracket(bytes: &[u8]) -> Option<usize> {
    let (mut is_quoted, mut is_escaped) = (false, false);
    bytes.iter().position(|octet| {
        let is_end = *octet == b'>' && !is_quoted;
        if *octet == b'"' && !is_escaped {
            is_quoted = !is_quoted;
        }
        is_escaped = *octet == b'\\' && !is_escaped;
        is_end
    })
}

/// Length in octets of the longest known SMTP command.
const VERB_LEN_MAX: usize = 8;

/// Returns whether octets after a gap begin with a command as RFC 5321 defines it, rather than with the rest of a line
/// or of content; `None` if there are too few octets.
pub(super) fn begins_with_command(octets: &[u8]) -> Option<bool> {
    let window = octets.get(..=VERB_LEN_MAX).unwrap_or(octets);
    let Some(end) = window.iter().position(|octet| !octet.is_ascii_alphabetic()) else {
        return (window.len() > VERB_LEN_MAX).then_some(false);
    };
    let (word, rest) = octets.split_at_checked(end)?;
    let keyword: &[u8] = match Verb::of(word) {
        Verb::Other => return Some(false),
        Verb::Mail => b" FROM:",
        Verb::Rcpt => b" TO:",
        // Commands without an argument, and those with an optional one: a sentence may begin with the word too.
        Verb::Data | Verb::Rset | Verb::Quit | Verb::StartTls | Verb::Turn | Verb::Help | Verb::Noop => {
            return Some(matches!(rest, [b'\r' | b'\n', ..]));
        }
        _ => b" ",
    };
    let start = rest.get(..keyword.len().min(rest.len()))?;
    match keyword.get(..start.len())?.eq_ignore_ascii_case(start) {
        true if start.len() < keyword.len() => None,
        is_command => Some(is_command),
    }
}

/// Returns the length in octets of the chunk that the argument of BDAT announces, and whether it is the last chunk.
pub(super) fn chunk(argument: &[u8]) -> Option<(u64, bool)> {
    let (len, rest) = first_word(argument);
    Some((decimal(len)?, rest.eq_ignore_ascii_case(b"LAST")))
}

/// Returns the mechanism of an AUTH command and its kind of credentials, from the text after the name of the command.
pub(super) fn mechanism(argument: &[u8]) -> (Option<Text<'_>>, &'static str) {
    const KINDS: [(&[u8], &str); 12] = [
        (b"PLAIN", "plain"),
        (b"LOGIN", "login"),
        (b"CRAM-MD5", "cram_md5"),
        (b"DIGEST-MD5", "digest_md5"),
        (b"SCRAM-SHA-1", "scram_sha_1"),
        (b"SCRAM-SHA-256", "scram_sha_256"),
        (b"NTLM", "ntlm"),
        (b"GSSAPI", "gssapi"),
        (b"XOAUTH2", "xoauth2"),
        (b"OAUTHBEARER", "oauthbearer"),
        (b"EXTERNAL", "external"),
        (b"ANONYMOUS", "anonymous"),
    ];
    let (name, _) = first_word(argument);
    // An unknown word may be anything, including a misplaced response.
    KINDS
        .iter()
        .find(|(known, _)| name.eq_ignore_ascii_case(known))
        .map_or((None, "other"), |(_, kind)| (Some(Text(name)), kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_parsed() {
        let path = |argument: &'static str| {
            let path = Path::parse(argument.as_bytes(), b"FROM:").expect("a path");
            (
                Text(path.address).to_str_lossy().into_owned(),
                Text(path.parameters).to_str_lossy().into_owned(),
                path.size(),
            )
        };
        let is = |address: &str, parameters: &str, size| (address.to_owned(), parameters.to_owned(), size);
        assert_eq!(path("FROM:<Smith@bar.com>"), is("Smith@bar.com", "", None));
        assert_eq!(
            path("From: <a@b> SIZE=12345 BODY=8BITMIME"),
            is("a@b", "SIZE=12345 BODY=8BITMIME", Some(12345))
        );
        assert_eq!(path("FROM:<>"), is("", "", None));
        assert_eq!(path("FROM:a@b size=1"), is("a@b", "size=1", Some(1)));
        assert_eq!(path("FROM:<\"a>\\\"b\"@c> X=<y>"), is("\"a>\\\"b\"@c", "X=<y>", None));
        assert_eq!(path("FROM:<@one,@two:joe@three"), is("@one,@two:joe@three", "", None));
        assert_eq!(path("FROM:<a@b> SIZES=3 XSIZE=4 SIZE=x"), is("a@b", "SIZES=3 XSIZE=4 SIZE=x", None));
        assert_eq!(Path::parse(b"TO:<a@b>", b"FROM:"), None);
    }

    #[test]
    fn commands_after_a_gap_are_recognized() {
        for (text, is_command) in [
            ("MAIL FROM:<a@b>\r\n", Some(true)),
            ("rcpt to:<a@b>\r\n", Some(true)),
            ("EHLO a.example\r\n", Some(true)),
            ("DATA\r\n", Some(true)),
            ("QUIT\n", Some(true)),
            ("STARTTLS\r\n", Some(true)),
            ("MAIL FR", None),
            ("DAT", None),
            ("XFORWARD", None),
            ("Mail from a friend\r\n", Some(false)),
            ("Data is what we want\r\n", Some(false)),
            ("Received: from a\r\n", Some(false)),
            (".example\r\n", Some(false)),
            ("YWJjZGVmZ2hpamts", Some(false)),
        ] {
            assert_eq!(begins_with_command(text.as_bytes()), is_command, "{text}");
        }
    }

    #[test]
    fn verbs_chunks_and_mechanisms_are_parsed() {
        assert_eq!(
            [Verb::of(b"starttls"), Verb::of(b"Mail"), Verb::of(b"dXNlcg==")],
            [Verb::StartTls, Verb::Mail, Verb::Other]
        );
        assert_eq!(Verb::StartTls.name(), "STARTTLS");
        assert_eq!(
            [chunk(b"86 last"), chunk(b"0"), chunk(b"-1")],
            [Some((86, true)), Some((0, false)), None]
        );
        assert_eq!(mechanism(b"plain AGEAYg=="), (Some("plain".into()), "plain"));
        assert_eq!(mechanism(b"c2VjcmV0"), (None, "other"));
    }
}
