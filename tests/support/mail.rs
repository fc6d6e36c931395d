//! Mails read from all of their octets, line by line: a second implementation of `transaction::mail` for comparisons.

/// A mail: the first fields of its header, and its parts that are no multiparts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct NaiveMail {
    /// Names in lower case, and values.
    pub(crate) fields: Vec<(String, Vec<u8>)>,
    pub(crate) parts: Vec<NaivePart>,
    /// True if a value is longer than is kept.
    pub(crate) is_truncated: bool,
}

/// A part of a mail, decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NaivePart {
    pub(crate) content_type: Vec<u8>,
    pub(crate) name: Option<Vec<u8>>,
    /// True if the part has a name, or the disposition of an attachment.
    pub(crate) is_attachment: bool,
    pub(crate) octets: Vec<u8>,
    /// True if a delimiter, or the end of a mail without multiparts, ends the part.
    pub(crate) is_complete: bool,
    /// True if a delimiter ends the part.
    pub(crate) is_delimited: bool,
}

/// Maximum length of a value.
const VALUE_LEN_MAX: usize = 4096;

const BLANKS: &[char] = &[' ', '\t'];

/// An entity that is being read: its header, and its body as far as it is known.
#[derive(Default)]
struct Entity {
    fields: Vec<(String, Vec<u8>)>,
    /// The body, once the header has ended.
    body: Option<Vec<Vec<u8>>>,
    is_multipart: bool,
    is_of_digest: bool,
}

/// Octets of a text as characters, so that the methods of strings apply.
fn latin(octets: &[u8]) -> String {
    octets.iter().map(|octet| char::from(*octet)).collect()
}

fn octets(text: &str) -> Vec<u8> {
    text.chars().map(|letter| u8::try_from(u32::from(letter)).expect("an octet")).collect()
}

impl Entity {
    fn value(&self, name: &str) -> Option<String> {
        let field = self.fields.iter().find(|(other, _)| other == name)?;
        Some(latin(&field.1).trim_matches(BLANKS).to_owned())
    }

    /// Adds a line of the header. Returns whether it belongs to the header.
    fn add_field(&mut self, line: &str) -> bool {
        if line.starts_with(BLANKS)
            && let Some((_, value)) = self.fields.last_mut()
        {
            value.extend(octets(line));
            return true;
        }
        let Some((before, value)) = line.split_once(':') else { return false };
        let name = before.trim_end_matches(BLANKS);
        let is_name =
            !name.is_empty() && before.len() <= 128 && name.chars().all(|letter| letter.is_ascii_graphic());
        if is_name {
            self.fields.push((name.to_ascii_lowercase(), octets(value)));
        }
        is_name
    }

    fn boundary(&self) -> Option<String> {
        let content_type = self.value("content-type")?;
        let is_multipart = content_type.to_ascii_lowercase().starts_with("multipart/");
        let boundary = parameters(&content_type).into_iter().find(|(name, _)| name == "boundary")?.1;
        let boundary = boundary.trim_end_matches(|letter: char| letter.is_ascii_whitespace()).to_owned();
        (is_multipart && (1..=70).contains(&boundary.len())).then_some(boundary)
    }

    fn part(&self, is_complete: bool, is_delimited: bool) -> NaivePart {
        let default = if self.is_of_digest { "message/rfc822" } else { "text/plain" };
        let content_type = self.value("content-type");
        let disposition = self.value("content-disposition").unwrap_or_default();
        let parameter = |field: &str, name: &str| {
            let (_, text) = parameters(field).into_iter().find(|(other, _)| other == name)?;
            let name = text.rsplit(['/', '\\']).next().unwrap_or_default().to_owned();
            (!name.is_empty()).then(|| octets(&name))
        };
        let body = self.body.clone().unwrap_or_default().concat();
        let name = parameter(&disposition, "filename")
            .or_else(|| parameter(content_type.as_deref().unwrap_or_default(), "name"));
        let kind = disposition.split(';').next().unwrap_or_default().trim();
        NaivePart {
            is_attachment: name.is_some() || kind.eq_ignore_ascii_case("attachment"),
            name,
            content_type: octets(content_type.as_deref().unwrap_or(default)),
            octets: match self
                .value("content-transfer-encoding")
                .unwrap_or_default()
                .to_ascii_lowercase()
                .trim()
            {
                "base64" => base64(&body),
                "quoted-printable" => quoted_printable(&body),
                _ => body,
            },
            is_complete,
            is_delimited,
        }
    }
}

/// Returns the parameters of a field. A quote begins a quoted string only behind an equals sign.
fn parameters(field: &str) -> Vec<(String, String)> {
    let is_space = |letter: char| letter.is_ascii_whitespace();
    let mut found = Vec::new();
    let mut rest = field.split_once(';').map_or("", |(_, rest)| rest);
    while !rest.is_empty() {
        let Some(end) = rest.find(['=', ';']) else { break };
        let (name, after) = rest.split_at(end);
        rest = &after[1..];
        if after.starts_with(';') {
            continue;
        }
        rest = rest.trim_start_matches(is_space);
        let mut value = String::new();
        if let Some(quoted) = rest.strip_prefix('"') {
            let mut letters = quoted.char_indices().peekable();
            rest = "";
            while let Some((index, letter)) = letters.next() {
                match letter {
                    '"' => {
                        rest = &quoted[index..];
                        break;
                    }
                    '\\' => value.push(
                        letters.next_if(|(_, next)| "\"\\".contains(*next)).map_or('\\', |(_, next)| next),
                    ),
                    _ => value.push(letter),
                }
            }
            rest = rest.split_once(';').map_or("", |(_, rest)| rest);
        } else {
            let (text, after) = rest.split_once(';').unwrap_or((rest, ""));
            value.push_str(text.trim_matches(is_space));
            rest = after;
        }
        found.push((name.trim_matches(is_space).to_ascii_lowercase(), value));
    }
    found
}

fn base64(text: &[u8]) -> Vec<u8> {
    const DIGITS: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let data = text.split(|octet| *octet == b'=').next().unwrap_or_default();
    let bits: String = data
        .iter()
        .filter_map(|octet| DIGITS.find(char::from(*octet)))
        .map(|digit| format!("{digit:06b}"))
        .collect();
    let octet = |bits: &[u8]| u8::from_str_radix(std::str::from_utf8(bits).expect("bits"), 2).expect("bits");
    bits.as_bytes().chunks(8).filter(|bits| bits.len() == 8).map(octet).collect()
}

fn quoted_printable(text: &[u8]) -> Vec<u8> {
    let mut decoded = Vec::new();
    for (line, line_end) in lines(text) {
        let is_cr = line.ends_with('\r') && line_end.is_empty();
        let line = if is_cr { line.as_str() } else { line.trim_end_matches(BLANKS) };
        let (line, line_end) = line.strip_suffix('=').map_or((line, line_end), |line| (line, ""));
        let mut rest = line;
        while let Some(letter) = rest.chars().next() {
            let digits = rest.strip_prefix('=').and_then(|rest| rest.get(..2));
            let digits = digits.filter(|digits| digits.chars().all(|digit| digit.is_ascii_hexdigit()));
            if let Some(octet) = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
                decoded.push(octet);
                rest = &rest[3..];
            } else {
                decoded.extend(octets(&letter.to_string()));
                rest = &rest[letter.len_utf8()..];
            }
        }
        decoded.extend(line_end.bytes());
    }
    decoded
}

/// Returns the lines of a text, and their ends.
fn lines(text: &[u8]) -> Vec<(String, &'static str)> {
    let lines = text.split_inclusive(|octet| *octet == b'\n').map(latin);
    lines
        .map(|line| match (line.strip_suffix("\r\n"), line.strip_suffix('\n')) {
            (Some(line), _) => (line.to_owned(), "\r\n"),
            (None, Some(line)) => (line.to_owned(), "\n"),
            (None, None) => (line, ""),
        })
        .collect()
}

impl NaiveMail {
    /// Reads the content of a mail whose end was captured.
    pub(crate) fn read(content: &[u8]) -> Self {
        let mut mail = Self::default();
        let mut open: Vec<(String, bool)> = Vec::new();
        let mut entity = Some(Entity::default());
        let mut is_header_of_mail = true;
        for (line, line_end) in lines(content) {
            let matching = open.iter().enumerate().filter(|(_, (boundary, _))| {
                line.strip_prefix("--").is_some_and(|rest| rest.starts_with(boundary.as_str()))
            });
            if let Some((level, (boundary, is_digest))) =
                matching.max_by_key(|(level, (boundary, _))| (boundary.len(), *level))
            {
                let is_last = line[2 + boundary.len()..].starts_with("--");
                let is_of_digest = *is_digest;
                mail.end(entity.take());
                open.truncate(level + usize::from(!is_last));
                entity = (!is_last).then(|| Entity { is_of_digest, ..Entity::default() });
                continue;
            }
            let Some(current) = &mut entity else { continue };
            if let Some(body) = &mut current.body {
                body.extend([octets(&line), line_end.into()]);
                continue;
            }
            let is_field = current.add_field(&line);
            if is_field {
                continue;
            }
            let is_empty = line.is_empty() && !line_end.is_empty();
            current.body = Some(if is_empty { Vec::new() } else { vec![octets(&line), line_end.into()] });
            if std::mem::take(&mut is_header_of_mail) {
                mail.keep(&current.fields);
            }
            let boundary = current.boundary().filter(|_| open.len() < 16);
            if let Some(boundary) = boundary {
                current.is_multipart = true;
                let content_type = current.value("content-type").unwrap_or_default().to_ascii_lowercase();
                let is_digest =
                    content_type.split(';').next().unwrap_or_default().trim() == "multipart/digest";
                open.push((boundary, is_digest));
            }
        }
        if let Some(entity) = entity {
            if is_header_of_mail {
                mail.keep(&entity.fields);
            }
            if entity.body.is_some() {
                let is_complete = open.is_empty();
                mail.add(&entity, is_complete, false);
            }
        }
        mail
    }

    fn keep(&mut self, fields: &[(String, Vec<u8>)]) {
        for (name, value) in fields {
            let value = latin(value);
            let value = octets(value.trim_start_matches(BLANKS));
            self.is_truncated |= value.len() > VALUE_LEN_MAX;
            let value = latin(&value[..value.len().min(VALUE_LEN_MAX)]);
            self.fields.push((name.clone(), octets(value.trim_end_matches(BLANKS))));
        }
    }

    /// Ends an entity at a delimiter, whose line end before it is no part of the entity.
    fn end(&mut self, entity: Option<Entity>) {
        let Some(mut entity) = entity else { return };
        if let Some(body) = &mut entity.body {
            body.pop();
        } else if entity.boundary().is_some() {
            return;
        }
        self.add(&entity, true, true);
    }

    fn add(&mut self, entity: &Entity, is_complete: bool, is_delimited: bool) {
        if !entity.is_multipart {
            self.parts.push(entity.part(is_complete, is_delimited));
        }
    }
}
