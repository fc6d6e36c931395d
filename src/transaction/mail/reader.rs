//! Reader of the content of a mail: header and parts, as the octets arrive.

use memchr::memchr;

use super::super::open::allocated;
use super::decode::Decoder;
use super::header::{Header, HeaderReader, LineEnd};
use super::parameters::{file_name, parameter};
use crate::checkpoint::state;

/// Maximum number of multiparts inside of each other. One that is deeper is a part like any other.
const DEPTH_MAX: usize = 16;

/// Maximum length of a boundary in octets (RFC 2046 section 5.1.1). A multipart with a longer one is a part like any
/// other.
const BOUNDARY_LEN_MAX: usize = 70;

/// Maximum number of parts of a mail that are reported.
const PART_COUNT_MAX: u32 = 256;

/// What a mail contains, in order.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::transaction) enum Event<'e> {
    /// The header of the mail, as much of it as was captured.
    Header(&'e Header),
    /// The beginning of a part that is no multipart.
    Part(Part<'e>),
    /// Octets of the part, decoded.
    Octets(&'e [u8]),
    /// Octets of the part are missing: their number before decoding.
    Missing(u64),
    /// The end of the part; true if a delimiter or the end of the mail ends it, as specified.
    End(bool),
    /// The mail has more parts than are reported.
    Limit,
}

/// What the header of a part states.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::transaction) struct Part<'e> {
    /// Number of the part in its mail.
    pub(in crate::transaction) number: u32,
    /// Number of the part among all entities of the mail, multiparts included, from 1.
    pub(in crate::transaction) entity: u32,
    /// Value of the Content-Type field, or the default (RFC 2045 section 5.2, RFC 2046 section 5.1.5).
    pub(in crate::transaction) content_type: &'e [u8],
    /// Name of the part, without folders.
    pub(in crate::transaction) name: Option<&'e [u8]>,
    /// True if the part has a name, or the disposition of an attachment.
    pub(in crate::transaction) is_attachment: bool,
}

/// Receiver of what a mail contains.
pub(in crate::transaction) type Out<'o> = &'o mut dyn FnMut(Event<'_>);

/// Reader of the content of a mail. What it reports does not depend on the pieces in which the octets arrive. Its
/// memory is bounded by a field, the start of a line, and the boundaries of the open multiparts; its work is linear.
///
/// A line ends with CR LF or LF. The line end before a delimiter belongs to the delimiter (RFC 2046 section 5.1.1).
#[derive(Debug)]
pub(in crate::transaction) struct Reader {
    entity: Entity,
    /// The open multiparts, outermost first.
    levels: Vec<Level>,
    line: Line,
    /// End of the last line, or a part of it, that may belong to a delimiter.
    line_end: &'static [u8],
    /// Start of a line that may be a delimiter.
    held: Vec<u8>,
    /// Length of `held` with which a delimiter is recognized.
    held_len_max: usize,
    part_count: u32,
    entity_count: u32,
}

/// What the next octets are.
#[derive(Debug)]
enum Entity {
    /// A header.
    Header(Box<HeaderReader>, Kind),
    /// The body of a part.
    Part(Decoder),
    /// Octets between parts, and those that cannot be attributed because octets before them are missing.
    Ignored,
}

/// Kind of an entity that has a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Mail,
    Part,
    /// A part of `multipart/digest`.
    Digested,
}

/// An open multipart.
#[derive(Debug)]
struct Level {
    boundary: Vec<u8>,
    kind: Kind,
}

/// Position in a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Line {
    /// At the start of a line, or behind the octets in `held`.
    Start,
    /// Behind octets of a line that is no delimiter.
    Within,
    /// Behind a delimiter: the rest of the line is ignored.
    Delimiter,
}

state! {
    struct Reader { entity, levels, line, line_end as known_line_end, held, part_count, entity_count, .. held_len_max }
    if |reader| {
        reader.update_held_len_max();
        let is_undecided = reader.held.is_empty() || reader.held.len() < reader.held_len_max;
        is_undecided && reader.levels.len() <= DEPTH_MAX && reader.part_count <= PART_COUNT_MAX
    }
}
state! { enum Entity { 0 = Header(header, kind), 1 = Part(decoder), 2 = Ignored } }
state! { enum Kind { 0 = Mail, 1 = Part, 2 = Digested } }
state! {
    struct Level { boundary, kind }
    if |level| (1..=BOUNDARY_LEN_MAX).contains(&level.boundary.len())
}
state! { enum Line { 0 = Start, 1 = Within, 2 = Delimiter } }

/// The end of a line, or a part of it, in a checkpoint.
mod known_line_end {
    use crate::checkpoint::{Invalid, Saved as _, StateWriter};
    use crate::codec::Reader;

    const ALL: [&[u8]; 4] = [b"", b"\r", b"\n", b"\r\n"];

    pub(super) fn save(line_end: &[u8], writer: &mut StateWriter<'_>) -> Result<(), Invalid> {
        line_end.to_vec().save(writer)
    }

    pub(super) fn load(reader: &mut Reader<'_>) -> Result<&'static [u8], Invalid> {
        let octets = Vec::<u8>::load(reader)?;
        let known = ALL.into_iter().find(|known| *known == octets);
        known.ok_or(Invalid::new("the end of a line with other octets"))
    }
}

impl Default for Reader {
    fn default() -> Self {
        Self {
            entity: Entity::Header(Box::default(), Kind::Mail),
            levels: Vec::new(),
            line: Line::Start,
            line_end: b"",
            held: Vec::new(),
            held_len_max: 0,
            part_count: 0,
            entity_count: 0,
        }
    }
}

impl Reader {
    /// Returns the memory in bytes that was allocated.
    pub(in crate::transaction) fn heap_len(&self) -> usize {
        let header = match &self.entity {
            Entity::Header(reader, _) => reader.heap_len(),
            Entity::Part(_) | Entity::Ignored => 0,
        };
        let boundaries = self.levels.iter().map(|level| allocated(level.boundary.capacity())).sum::<usize>();
        let levels = allocated(self.levels.capacity() * size_of::<Level>()) + boundaries;
        header + levels + allocated(self.held.capacity())
    }

    /// Reads octets of the content.
    pub(in crate::transaction) fn read(&mut self, octets: &[u8], out: Out<'_>) {
        let mut rest = octets;
        while !rest.is_empty() {
            if self.levels.is_empty() && !matches!(self.entity, Entity::Header(..)) {
                // No delimiter can follow.
                self.release(out);
                return self.text(rest, out);
            }
            rest = match self.line {
                Line::Start => self.line_start(rest, out),
                Line::Within => self.within(rest, out),
                Line::Delimiter => {
                    let end = memchr(b'\n', rest);
                    self.line = if end.is_some() { Line::Start } else { Line::Delimiter };
                    end.and_then(|end| rest.get(end + 1..)).unwrap_or_default()
                }
            };
        }
    }

    /// Reads the start of a line, up to the octet that decides whether the line is a delimiter. Returns the other
    /// octets.
    fn line_start<'b>(&mut self, octets: &'b [u8], out: Out<'_>) -> &'b [u8] {
        for (index, octet) in octets.iter().enumerate() {
            if self.levels.is_empty() || self.held.len() < 2 && *octet != b'-' {
                self.release(out);
                self.line = Line::Within;
                return octets.get(index..).unwrap_or_default();
            }
            let is_line_end = *octet == b'\n';
            if !is_line_end {
                self.held.push(*octet);
            }
            if is_line_end || self.held.len() == self.held_len_max {
                self.decide(is_line_end, out);
                return octets.get(index + 1..).unwrap_or_default();
            }
        }
        &[]
    }

    /// Decides whether a line is a delimiter, of which the start or all octets are held.
    fn decide(&mut self, is_line_end: bool, out: Out<'_>) {
        if let Some((level, is_last)) = self.delimiter() {
            self.held.clear();
            self.delimited(level, is_last, out);
            self.line = if is_line_end { Line::Start } else { Line::Delimiter };
            return;
        }
        let has_cr = self.held.pop_if(|octet| *octet == b'\r').is_some();
        self.release(out);
        self.line = Line::Within;
        match (has_cr, is_line_end) {
            (true, true) => self.end_line(b"\r\n", out),
            (false, true) => self.end_line(b"\n", out),
            (true, false) => self.line_end = b"\r",
            (false, false) => {}
        }
    }

    /// Returns the multipart whose delimiter is held, and whether the delimiter is the last one. A delimiter may be
    /// followed by other octets (RFC 2046 section 5.1.1); the longest boundary is the right one.
    fn delimiter(&self) -> Option<(usize, bool)> {
        let text = self.held.strip_prefix(b"--")?;
        let levels = self.levels.iter().enumerate();
        let matching = levels.filter_map(|(index, level)| {
            let after = text.strip_prefix(level.boundary.as_slice())?;
            Some((level.boundary.len(), index, after.starts_with(b"--")))
        });
        matching.max().map(|(_, index, is_last)| (index, is_last))
    }

    /// Reads octets up to the end of a line. Returns the other octets.
    fn within<'b>(&mut self, octets: &'b [u8], out: Out<'_>) -> &'b [u8] {
        if self.line_end == b"\r"
            && let Some(rest) = octets.strip_prefix(b"\n")
        {
            self.end_line(b"\r\n", out);
            return rest;
        }
        self.release(out);
        let end = self.line_len(octets);
        let text = octets.get(..end.unwrap_or(octets.len())).unwrap_or_default();
        let without_cr = text.strip_suffix(b"\r");
        self.text(without_cr.unwrap_or(text), out);
        match (end, without_cr) {
            (Some(_), Some(_)) => self.end_line(b"\r\n", out),
            (Some(_), None) => self.end_line(b"\n", out),
            (None, Some(_)) => self.line_end = b"\r",
            (None, None) => {}
        }
        end.and_then(|end| octets.get(end + 1..)).unwrap_or_default()
    }

    /// Returns the length of a line without LF, together with those behind it that are no delimiters.
    fn line_len(&self, octets: &[u8]) -> Option<usize> {
        let is_header = matches!(self.entity, Entity::Header(..));
        let mut start = 0;
        loop {
            let end = start + memchr(b'\n', octets.get(start..)?)?;
            if is_header || octets.get(end + 1).is_none_or(|next| *next == b'-') {
                return Some(end);
            }
            start = end + 1;
        }
    }

    /// Ends a line that is no delimiter.
    fn end_line(&mut self, line_end: &'static [u8], out: Out<'_>) {
        (self.line, self.line_end) = (Line::Start, line_end);
        let Entity::Header(header, _) = &mut self.entity else { return };
        match header.line_end() {
            LineEnd::Field => self.line_end = b"",
            LineEnd::Empty => {
                self.line_end = b"";
                self.end_header(out);
            }
            LineEnd::Body => {
                let line = header.line();
                self.end_header(out);
                self.text(&line, out);
            }
        }
    }

    /// Passes on the line end and the start of a line, which are no delimiter.
    fn release(&mut self, out: Out<'_>) {
        let line_end = std::mem::take(&mut self.line_end);
        self.text(line_end, out);
        if !self.held.is_empty() {
            let mut held = std::mem::take(&mut self.held);
            self.text(&held, out);
            held.clear();
            self.held = held;
        }
    }

    /// Passes octets to the header or part to which they belong. In a header, they are those of one line.
    fn text(&mut self, octets: &[u8], out: Out<'_>) {
        match &mut self.entity {
            Entity::Header(header, _) => {
                if let Some(len) = header.text(octets) {
                    let line = header.line();
                    self.end_header(out);
                    self.text(&line, out);
                    self.text(octets.get(len..).unwrap_or_default(), out);
                }
            }
            Entity::Part(decoder) => decoder.decode(octets, &mut |octets| out(Event::Octets(octets))),
            Entity::Ignored => {}
        }
    }

    /// Ends a header. Its body begins, unless it is ended too.
    fn end_header(&mut self, out: Out<'_>) {
        let (header, kind) = match std::mem::replace(&mut self.entity, Entity::Ignored) {
            Entity::Header(header, kind) => (header, kind),
            entity => return self.entity = entity,
        };
        let header = header.end();
        self.entity_count = self.entity_count.saturating_add(1);
        if kind == Kind::Mail {
            out(Event::Header(&header));
        }
        let content_type = header.content_type.as_deref();
        if self.levels.len() < DEPTH_MAX
            && let Some(level) = content_type.and_then(Level::of)
        {
            self.levels.push(level);
            return self.update_held_len_max();
        }
        if self.part_count >= PART_COUNT_MAX {
            return out(Event::Limit);
        }
        let default: &[u8] = if kind == Kind::Digested { b"message/rfc822" } else { b"text/plain" };
        let disposition = header.content_disposition.as_deref();
        let name = file_name(disposition, content_type);
        let is_attachment = name.is_some()
            || disposition.is_some_and(|field| {
                let mut parts = field.split(|octet| *octet == b';');
                parts.next().is_some_and(|value| value.trim_ascii().eq_ignore_ascii_case(b"attachment"))
            });
        out(Event::Part(Part {
            number: self.part_count,
            entity: self.entity_count,
            content_type: content_type.unwrap_or(default),
            name: name.as_deref(),
            is_attachment,
        }));
        self.part_count += 1;
        self.entity = Entity::Part(Decoder::of(header.transfer_encoding.as_deref()));
    }

    fn update_held_len_max(&mut self) {
        // Two hyphens, the boundary, and two hyphens behind that of the last delimiter.
        let boundary_len = self.levels.iter().map(|level| level.boundary.len()).max();
        self.held_len_max = boundary_len.unwrap_or_default() + 4;
    }

    /// Ends the current part at a delimiter of a multipart.
    fn delimited(&mut self, level: usize, is_last: bool, out: Out<'_>) {
        self.line_end = b"";
        self.end_header(out);
        self.end_part(true, out);
        let kind = self.levels.get(level).map_or(Kind::Part, |level| level.kind);
        self.levels.truncate(if is_last { level } else { level + 1 });
        self.update_held_len_max();
        if !is_last {
            self.entity = Entity::Header(Box::default(), kind);
        }
    }

    fn end_part(&mut self, is_complete: bool, out: Out<'_>) {
        if let Entity::Part(mut decoder) = std::mem::replace(&mut self.entity, Entity::Ignored) {
            decoder.end(&mut |octets| out(Event::Octets(octets)));
            out(Event::End(is_complete));
        }
    }

    /// Notes that octets of the content are missing. What follows a gap in a header cannot be attributed, up to the
    /// next delimiter.
    pub(in crate::transaction) fn gap(&mut self, len: u64, out: Out<'_>) {
        self.release(out);
        self.line = Line::Within;
        match std::mem::replace(&mut self.entity, Entity::Ignored) {
            Entity::Header(mut header, kind) => {
                header.gap();
                if kind == Kind::Mail {
                    out(Event::Header(&header.end()));
                }
            }
            Entity::Part(mut decoder) => {
                decoder.gap(&mut |octets| out(Event::Octets(octets)));
                out(Event::Missing(len));
                self.entity = Entity::Part(decoder);
            }
            Entity::Ignored => {}
        }
    }

    /// Ends the content. `is_complete` is whether its end was captured.
    pub(in crate::transaction) fn end(&mut self, is_complete: bool, out: Out<'_>) {
        if self.held.is_empty() {
            self.release(out);
        } else {
            self.decide(false, out);
            self.release(out);
        }
        match &mut self.entity {
            // The last line has no end, and is not a field.
            Entity::Header(header, _) if is_complete && header.is_in_name() => {
                let line = header.line();
                self.end_header(out);
                self.text(&line, out);
            }
            Entity::Header(_, Kind::Mail) => {
                if let Entity::Header(header, _) = std::mem::replace(&mut self.entity, Entity::Ignored) {
                    out(Event::Header(&header.end()));
                }
            }
            _ => {}
        }
        let is_last = self.levels.is_empty();
        self.end_part(is_complete && is_last, out);
        *self = Self { entity: Entity::Ignored, ..Self::default() };
    }
}

impl Level {
    /// Returns the multipart that the value of a Content-Type field begins.
    fn of(content_type: &[u8]) -> Option<Self> {
        let (media_type, _) = content_type.split_at_checked(b"multipart/".len())?;
        if !media_type.eq_ignore_ascii_case(b"multipart/") {
            return None;
        }
        let mut boundary = parameter(content_type, b"boundary")?;
        boundary.truncate(boundary.trim_ascii_end().len());
        let is_valid = (1..=BOUNDARY_LEN_MAX).contains(&boundary.len());
        let mut parts = content_type.split(|octet| *octet == b';');
        let is_digest =
            parts.next().is_some_and(|value| value.trim_ascii().eq_ignore_ascii_case(b"multipart/digest"));
        let kind = if is_digest { Kind::Digested } else { Kind::Part };
        is_valid.then_some(Self { boundary, kind })
    }
}
