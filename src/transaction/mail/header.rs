//! Header of a mail or of a part (RFC 5322 section 2.2), read as the octets arrive.

use std::net::IpAddr;

use super::super::open::{TEXT_LEN_MAX, allocated};
use crate::checkpoint::state;

/// Maximum length of the name of a field in octets. A line with a longer one is not a field.
const NAME_LEN_MAX: usize = 128;

/// Number of Received fields that are kept: of the first ones, and of the last ones.
const RECEIVED_MAX: usize = 2;

/// Maximum number of addresses in Received fields that are kept.
const HOPS_MAX: usize = 64;

/// Fields of a header, unfolded: the first ones with their names. Values have at most [`TEXT_LEN_MAX`] octets.
#[derive(Debug, Default, PartialEq, Eq)]
pub(in crate::transaction) struct Header {
    pub(in crate::transaction) date: Option<Vec<u8>>,
    pub(in crate::transaction) from: Option<Vec<u8>>,
    pub(in crate::transaction) to: Option<Vec<u8>>,
    pub(in crate::transaction) cc: Option<Vec<u8>>,
    pub(in crate::transaction) reply_to: Option<Vec<u8>>,
    pub(in crate::transaction) message_id: Option<Vec<u8>>,
    pub(in crate::transaction) in_reply_to: Option<Vec<u8>>,
    pub(in crate::transaction) subject: Option<Vec<u8>>,
    /// Values of the first Received fields.
    pub(in crate::transaction) received: Vec<Vec<u8>>,
    /// Values of the last Received fields, the last one first.
    pub(in crate::transaction) last_received: Vec<Vec<u8>>,
    /// Addresses of the hosts in the Received fields.
    pub(in crate::transaction) hops: Vec<IpAddr>,
    pub(in crate::transaction) user_agent: Option<Vec<u8>>,
    pub(in crate::transaction) mailer: Option<Vec<u8>>,
    pub(in crate::transaction) originating_ip: Option<Vec<u8>>,
    pub(super) content_type: Option<Vec<u8>>,
    pub(super) content_disposition: Option<Vec<u8>>,
    pub(super) transfer_encoding: Option<Vec<u8>>,
    /// True if a value was longer than permitted.
    pub(in crate::transaction) is_truncated: bool,
}

state! {
    struct Header {
        date, from, to, cc, reply_to, message_id, in_reply_to, subject, received, last_received, hops, user_agent, mailer,
        originating_ip, content_type, content_disposition, transfer_encoding, is_truncated,
    }
    if |header| {
        header.received.len().max(header.last_received.len()) <= RECEIVED_MAX && header.hops.len() <= HOPS_MAX
    }
}

impl Header {
    /// Returns whether the value of a field is kept, and the field was not present before.
    fn lacks(&mut self, name: &[u8]) -> bool {
        if name.eq_ignore_ascii_case(b"received") {
            return true;
        }
        self.field(name).is_some_and(|field| field.is_none())
    }

    /// Returns the memory of the values in bytes.
    fn heap_len(&self) -> usize {
        let fields = [
            &self.date,
            &self.from,
            &self.to,
            &self.cc,
            &self.reply_to,
            &self.message_id,
            &self.in_reply_to,
            &self.subject,
            &self.user_agent,
            &self.mailer,
            &self.originating_ip,
            &self.content_type,
            &self.content_disposition,
            &self.transfer_encoding,
        ];
        let received = self.received.iter().chain(&self.last_received);
        let values = fields.into_iter().flatten().chain(received);
        // Each list has up to four places.
        let lists = 2 * allocated(4 * size_of::<Vec<u8>>());
        let hops = allocated(self.hops.capacity() * size_of::<IpAddr>());
        values.map(|value| allocated(value.capacity())).sum::<usize>() + lists + hops
    }

    fn field(&mut self, name: &[u8]) -> Option<&mut Option<Vec<u8>>> {
        Some(match name.to_ascii_lowercase().as_slice() {
            b"date" => &mut self.date,
            b"from" => &mut self.from,
            b"to" => &mut self.to,
            b"cc" => &mut self.cc,
            b"reply-to" => &mut self.reply_to,
            b"message-id" => &mut self.message_id,
            b"in-reply-to" => &mut self.in_reply_to,
            b"subject" => &mut self.subject,
            b"user-agent" => &mut self.user_agent,
            b"x-mailer" => &mut self.mailer,
            b"x-originating-ip" => &mut self.originating_ip,
            b"content-type" => &mut self.content_type,
            b"content-disposition" => &mut self.content_disposition,
            b"content-transfer-encoding" => &mut self.transfer_encoding,
            _ => return None,
        })
    }

    fn put(&mut self, name: &[u8], value: Vec<u8>) {
        if name.eq_ignore_ascii_case(b"received") {
            if self.hops.len() < HOPS_MAX {
                self.hops.extend(host(&value));
            }
            if self.received.len() < RECEIVED_MAX {
                self.received.push(value.clone());
            }
            self.last_received.insert(0, value);
            self.last_received.truncate(RECEIVED_MAX);
        } else if let Some(field) = self.field(name) {
            *field = Some(value);
        }
    }
}

/// Returns the address of the host in a Received field: the second address in it, or the only one.
fn host(value: &[u8]) -> Option<IpAddr> {
    let text = String::from_utf8_lossy(value).replace("IPv6:", " ");
    let words = text.split(|letter: char| !letter.is_ascii_hexdigit() && !matches!(letter, '.' | ':'));
    let mut addresses = words.filter_map(|word| word.trim_matches('.').parse::<IpAddr>().ok());
    let first = addresses.next()?;
    Some(addresses.next().unwrap_or(first))
}

/// Position in a header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum At {
    /// At the first octet of a line.
    #[default]
    Start,
    /// In the name of a field, or behind it.
    Name,
    /// In the value of a field.
    Value,
}

/// Result of the end of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LineEnd {
    /// The header continues.
    Field,
    /// The line is empty: it ends the header.
    Empty,
    /// The line is not a field: it is the first one of the body.
    Body,
}

/// Reader of a header. Of the fields that are not in [`Header`], nothing is kept.
#[derive(Debug, Default)]
pub(super) struct HeaderReader {
    header: Header,
    at: At,
    /// Name of the field, and the spaces behind it.
    name: Vec<u8>,
    value: Vec<u8>,
    /// True if the line belongs to a field, whose value may continue in the next line.
    has_field: bool,
    is_kept: bool,
    is_truncated: bool,
}

state! { enum At { 0 = Start, 1 = Name, 2 = Value } }
state! {
    struct HeaderReader { header, at, name, value, has_field, is_kept, is_truncated }
    if |reader| reader.name.len() <= NAME_LEN_MAX && reader.value.len() <= TEXT_LEN_MAX
}

impl HeaderReader {
    /// Returns the memory of a reader in bytes, in a box.
    pub(super) fn heap_len(&self) -> usize {
        let texts = allocated(self.name.capacity()) + allocated(self.value.capacity());
        allocated(size_of::<Self>()) + texts + self.header.heap_len()
    }

    /// Reads octets of a line. Returns the number of octets after which the line is known not to be a field, so that
    /// the header has ended before it; [`line`](Self::line) has the octets before.
    pub(super) fn text(&mut self, octets: &[u8]) -> Option<usize> {
        for (index, octet) in octets.iter().enumerate() {
            let is_blank = matches!(octet, b' ' | b'\t');
            if self.at == At::Start {
                self.at = if is_blank && self.has_field { At::Value } else { At::Name };
                if self.at == At::Name {
                    self.end_field();
                }
            }
            if self.at == At::Value {
                self.push(octets.get(index..).unwrap_or_default());
                return None;
            }
            let has_blank = self.name.last().is_some_and(|last| matches!(last, b' ' | b'\t'));
            match octet {
                b':' if !self.name.is_empty() => self.begin_field(),
                _ if self.name.len() == NAME_LEN_MAX => return Some(index),
                _ if is_blank && !self.name.is_empty() => self.name.push(*octet),
                b'!'..=b'9' | b';'..=b'~' if !has_blank => self.name.push(*octet),
                _ => return Some(index),
            }
        }
        None
    }

    fn begin_field(&mut self) {
        self.name.truncate(self.name.trim_ascii_end().len());
        (self.at, self.has_field) = (At::Value, true);
        self.is_kept = self.header.lacks(&self.name);
    }

    /// Adds octets to the value. Spaces before it are omitted.
    fn push(&mut self, octets: &[u8]) {
        if !self.is_kept {
            return;
        }
        let start = if self.value.is_empty() {
            octets.iter().position(|octet| !matches!(octet, b' ' | b'\t')).unwrap_or(octets.len())
        } else {
            0
        };
        let octets = octets.get(start..).unwrap_or_default();
        let len = octets.len().min(TEXT_LEN_MAX.saturating_sub(self.value.len()));
        self.is_truncated |= len < octets.len();
        self.value.extend(octets.get(..len).unwrap_or_default());
    }

    /// Ends the field before the current line.
    fn end_field(&mut self) {
        if self.is_kept {
            let blanks = self.value.iter().rev().take_while(|octet| matches!(octet, b' ' | b'\t')).count();
            self.value.truncate(self.value.len() - blanks);
            self.header.put(&self.name, std::mem::take(&mut self.value));
            self.header.is_truncated |= self.is_truncated;
        }
        self.forget_field();
    }

    fn forget_field(&mut self) {
        self.value.clear();
        self.name.clear();
        (self.has_field, self.is_kept, self.is_truncated) = (false, false, false);
    }

    /// Ends a line.
    pub(super) fn line_end(&mut self) -> LineEnd {
        match std::mem::take(&mut self.at) {
            At::Start => {
                self.end_field();
                LineEnd::Empty
            }
            At::Name => LineEnd::Body,
            At::Value => LineEnd::Field,
        }
    }

    /// Returns whether octets of a line were read that are not known to be those of a field.
    pub(super) fn is_in_name(&self) -> bool {
        self.at == At::Name
    }

    /// Returns the octets of a line that is not a field.
    pub(super) fn line(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.name)
    }

    /// Forgets the field that is not complete, because octets of it are missing.
    pub(super) fn gap(&mut self) {
        self.forget_field();
    }

    /// Returns the fields.
    pub(super) fn end(mut self) -> Header {
        if self.at != At::Name {
            self.end_field();
        }
        self.header
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_of_a_received_field_is_its_second_address() {
        for (value, expected) in [
            ("from a (b [192.0.2.1]) by c", Some("192.0.2.1")),
            ("from [192.0.2.1] (d [192.0.2.2]); Mon, 5 Oct 2009 11:36:07 +0530", Some("192.0.2.2")),
            ("from a ([IPv6:2001:db8::1]) by c", Some("2001:db8::1")),
            ("by c; 10:20:30", None),
        ] {
            assert_eq!(host(value.as_bytes()), expected.and_then(|text| text.parse().ok()), "{value}");
        }
    }
}
