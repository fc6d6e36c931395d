//! Lists of addresses in a header field.

/// Returns the addresses of a list (RFC 5322 section 3.4) as sent: the texts between commas that are neither in quotes
/// nor in a comment.
pub(in crate::transaction) fn addresses(list: &[u8]) -> impl Iterator<Item = &[u8]> {
    let (mut is_quoted, mut is_escaped, mut comment_depth) = (false, false, 0_u32);
    let addresses = list.split(move |octet| {
        if std::mem::take(&mut is_escaped) {
            return false;
        }
        match octet {
            b'\\' => is_escaped = is_quoted || comment_depth > 0,
            b'"' if comment_depth == 0 => is_quoted = !is_quoted,
            b'(' if !is_quoted => comment_depth = comment_depth.saturating_add(1),
            b')' if !is_quoted => comment_depth = comment_depth.saturating_sub(1),
            b',' => return !is_quoted && comment_depth == 0,
            _ => {}
        }
        false
    });
    addresses.map(<[u8]>::trim_ascii).filter(|address| !address.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_split_at_commas_outside_of_quotes_and_comments() {
        // From RFC 5322 appendices A.1.2 and A.5, and lists that are not valid.
        let cases: [(&str, &[&str]); 5] = [
            (
                "Mary Smith <mary@x.test>, jdoe@example.org, Who? <one@y.test>",
                &["Mary Smith <mary@x.test>", "jdoe@example.org", "Who? <one@y.test>"],
            ),
            (
                r#"<boss@nil.test>, "Giant; \"Big\", Box" <sysservices@example.net>"#,
                &["<boss@nil.test>", r#""Giant; \"Big\", Box" <sysservices@example.net>"#],
            ),
            (
                r"Pete(A nice \) chap, (really)) <pete(his account)@silly.test>,b@c",
                &[r"Pete(A nice \) chap, (really)) <pete(his account)@silly.test>", "b@c"],
            ),
            (",, a@b ,\t", &["a@b"]),
            (r#"a\,b,"c,d"#, &[r"a\", "b", r#""c,d"#]),
        ];
        for (list, expected) in cases {
            let found: Vec<_> = addresses(list.as_bytes())
                .map(|address| std::str::from_utf8(address).expect("text"))
                .collect();
            assert_eq!(found, expected, "{list}");
        }
    }
}
