//! Parameters of the Content-Type and Content-Disposition fields (RFC 2045 section 5.1, RFC 2183, RFC 2231).

/// Iterator over the parameters of a field: names and values, without quotes.
struct Parameters<'f> {
    rest: &'f [u8],
}

/// Returns the parameters behind the first value of a field.
fn parameters(field: &[u8]) -> Parameters<'_> {
    let mut parameters = Parameters { rest: field };
    parameters.until(|octet| octet == b';');
    parameters
}

impl<'f> Parameters<'f> {
    /// Returns the octets before the first one that ends them, and consumes both.
    fn until(&mut self, is_end: impl Fn(u8) -> bool) -> (&'f [u8], Option<u8>) {
        let len = self.rest.iter().position(|octet| is_end(*octet)).unwrap_or(self.rest.len());
        let (before, rest) = self.rest.split_at_checked(len).unwrap_or_default();
        let end = rest.first().copied();
        self.rest = rest.split_first().map(|(_, rest)| rest).unwrap_or_default();
        (before, end)
    }

    /// Returns a quoted string whose opening quote was consumed. A backslash quotes a quote or a backslash; some
    /// clients write paths with single ones.
    fn quoted(&mut self) -> Vec<u8> {
        let mut text = Vec::new();
        loop {
            let (before, end) = self.until(|octet| matches!(octet, b'"' | b'\\'));
            text.extend(before);
            match (end, self.rest.split_first()) {
                (Some(b'\\'), Some((octet @ (b'"' | b'\\'), rest))) => {
                    text.push(*octet);
                    self.rest = rest;
                }
                (Some(b'\\'), _) => text.push(b'\\'),
                _ => return text,
            }
        }
    }
}

impl<'f> Iterator for Parameters<'f> {
    type Item = (&'f [u8], Vec<u8>);

    fn next(&mut self) -> Option<Self::Item> {
        while !self.rest.is_empty() {
            let (name, end) = self.until(|octet| matches!(octet, b'=' | b';'));
            if end != Some(b'=') {
                continue;
            }
            self.rest = self.rest.trim_ascii_start();
            let value = match self.rest.split_first() {
                Some((b'"', rest)) => {
                    self.rest = rest;
                    let text = self.quoted();
                    self.until(|octet| octet == b';');
                    text
                }
                _ => self.until(|octet| octet == b';').0.trim_ascii().to_vec(),
            };
            return Some((name.trim_ascii(), value));
        }
        None
    }
}

/// Returns the value of the first parameter with a name.
pub(super) fn parameter(field: &[u8], name: &[u8]) -> Option<Vec<u8>> {
    parameters(field).find(|(other, _)| other.eq_ignore_ascii_case(name)).map(|(_, value)| value)
}

/// Returns the value of a parameter that may be encoded or continued as in RFC 2231. Sections must be in order.
fn extended(field: &[u8], name: &[u8]) -> Option<Vec<u8>> {
    let (mut plain, mut encoded) = (None, None);
    let mut sections: Option<(usize, Vec<u8>)> = None;
    let mut is_unicode = true;
    for (other, value) in parameters(field) {
        let Some((_, suffix)) =
            other.split_at_checked(name.len()).filter(|(start, _)| start.eq_ignore_ascii_case(name))
        else {
            continue;
        };
        let Some(suffix) = suffix.strip_prefix(b"*") else {
            if suffix.is_empty() {
                plain.get_or_insert(value);
            }
            continue;
        };
        if suffix.is_empty() {
            encoded.get_or_insert_with(|| decoded(&value, &mut is_unicode, true));
            continue;
        }
        let (digits, is_encoded) = suffix.strip_suffix(b"*").map_or((suffix, false), |digits| (digits, true));
        let number = std::str::from_utf8(digits).ok().and_then(|digits| digits.parse().ok());
        let (count, text) = sections.get_or_insert_default();
        if number == Some(*count) {
            let is_first = *count == 0;
            let value = if is_encoded { decoded(&value, &mut is_unicode, is_first) } else { value };
            text.extend(value);
            *count += 1;
        }
    }
    let sections = sections.filter(|(count, _)| *count > 0).map(|(_, text)| text);
    encoded.or(sections).or(plain)
}

/// Returns an encoded value, of which the first section begins with a character set and a language. Only UTF-8 and
/// US-ASCII are decoded; the octets of others remain encoded.
fn decoded(value: &[u8], is_unicode: &mut bool, is_first: bool) -> Vec<u8> {
    let mut rest = value;
    if is_first {
        let mut parts = value.splitn(3, |octet| *octet == b'\'');
        if let (Some(set), Some(_), Some(text)) = (parts.next(), parts.next(), parts.next()) {
            *is_unicode = set.eq_ignore_ascii_case(b"utf-8") || set.eq_ignore_ascii_case(b"us-ascii");
            rest = text;
        }
    }
    if !*is_unicode {
        return rest.to_vec();
    }
    let mut parts = rest.split(|octet| *octet == b'%');
    let mut text = parts.next().unwrap_or_default().to_vec();
    for part in parts {
        let digits = part.split_at_checked(2).and_then(|(digits, after)| {
            let digits = std::str::from_utf8(digits).ok()?;
            let is_number = digits.bytes().all(|octet| octet.is_ascii_hexdigit());
            Some((u8::from_str_radix(digits, 16).ok().filter(|_| is_number)?, after))
        });
        match digits {
            Some((octet, after)) => {
                text.push(octet);
                text.extend(after);
            }
            None => {
                text.push(b'%');
                text.extend(part);
            }
        }
    }
    text
}

/// Returns the name of a part, without folders: of its Content-Disposition field, or else of its Content-Type field.
pub(in crate::transaction) fn file_name(
    disposition: Option<&[u8]>,
    content_type: Option<&[u8]>,
) -> Option<Vec<u8>> {
    let candidates = [(disposition, &b"filename"[..]), (content_type, b"name")];
    candidates.into_iter().find_map(|(field, parameter)| {
        let text = extended(field?, parameter)?;
        let name = text.rsplit(|octet| matches!(octet, b'/' | b'\\')).next()?;
        (!name.is_empty()).then(|| name.to_vec())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(disposition: &str, content_type: &str) -> Option<String> {
        let name = file_name(Some(disposition.as_bytes()), Some(content_type.as_bytes()))?;
        Some(String::from_utf8_lossy(&name).into_owned())
    }

    #[test]
    fn names_of_parts_are_without_quotes_encoding_and_folders() {
        // RFC 2183 section 3, RFC 2231 sections 3 and 4.
        let cases = [
            ("attachment; filename=genome.jpeg;\tmodification-date=\"a; filename=b\"", "", "genome.jpeg"),
            ("attachment; size=3; FILENAME = \"a \\\"b\\\"; c\"", "", "a \"b\"; c"),
            ("attachment; filename=\"C:\\temp\\x.exe\"", "", "x.exe"),
            ("inline", "application/pdf; name=\"report.pdf\"", "report.pdf"),
            ("attachment; filename=\"a/\"", "text/plain; name=b", "b"),
            ("attachment; filename=x; filename*=utf-8'en'%e2%82%ac%20%zz%2", "", "\u{20ac} %zz%2"),
            ("attachment; filename*=iso-8859-1'en'%A3%20rates", "", "%A3%20rates"),
            (
                "attachment; filename*0*=us-ascii'en'This%20is%20even; filename*1*=%20more; filename*2=\" fun%20\"",
                "",
                "This is even more fun%20",
            ),
            ("attachment; filename*1=b; filename*0=a", "", "a"),
        ];
        for (disposition, content_type, expected) in cases {
            assert_eq!(name(disposition, content_type).as_deref(), Some(expected), "{disposition}");
        }
        for disposition in
            ["", "attachment", "filename=x", "attachment; filename", "a; filename=", "a;=;;x=\"\\"]
        {
            assert_eq!(name(disposition, ""), None, "{disposition}");
        }
    }
}
