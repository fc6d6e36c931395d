//! ndjson format of flow records: one JSON object per line (RFC 8259).
//!
//! No string needs escapes: strings are names that this crate defines, addresses, base64 and letters.

use std::fmt::Display;
use std::net::IpAddr;

use super::text;
use crate::base::{Encapsulation, EncapsulationHeader, VlanIds};
use crate::record::{Field, FlowRecord, Visitor};

pub(super) fn write_record(out: &mut Vec<u8>, record: &FlowRecord) {
    let start = out.len();
    record.visit(&mut Object(out));
    finish(out, start);
}

pub(super) fn write_fields(out: &mut Vec<u8>, record: &FlowRecord, indices: &[usize]) {
    let start = out.len();
    record.visit_fields(indices, &mut Object(out));
    finish(out, start);
}

/// Completes the JSON object at the end of `out`: replaces the comma at `start`, before its first entry, with
/// a brace, and appends the closing brace and the line end.
#[inline]
fn finish(out: &mut Vec<u8>, start: usize) {
    match out.get_mut(start) {
        Some(first) => *first = b'{',
        None => out.push(b'{'),
    }
    out.extend_from_slice(b"}\n");
}

/// Length of the beginning of an entry with a key: the longest name of a field, and the characters around it.
const KEY_LEN: usize = 40;

/// The beginning of the entry of a field: a comma, the name in quotes and a colon, then zeros. A copy of a fixed length
/// is a few instructions, where one of a variable length is a call.
struct Key {
    octets: [u8; KEY_LEN],
    /// Number of octets up to the colon.
    len: usize,
}

/// The keys of all fields, in the order of the schema.
static KEYS: [Key; FlowRecord::SCHEMA.len()] = {
    let mut keys = [const { Key { octets: [0; KEY_LEN], len: 0 } }; FlowRecord::SCHEMA.len()];
    let mut index = 0;
    while index < keys.len() {
        let parts = [b",\"", FlowRecord::SCHEMA[index].name.as_bytes(), b"\":"];
        let key = &mut keys[index];
        let mut part = 0;
        while part < parts.len() {
            let (_, rest) = key.octets.split_at_mut(key.len);
            rest.split_at_mut(parts[part].len()).0.copy_from_slice(parts[part]);
            key.len += parts[part].len();
            part += 1;
        }
        index += 1;
    }
    keys
};

/// Visitor that appends each field with a value as an entry of a JSON object, preceded by a comma.
struct Object<'o>(&'o mut Vec<u8>);

impl Object<'_> {
    #[inline]
    fn entry<T>(&mut self, field: &'static Field, value: Option<T>, write: impl FnOnce(&mut Vec<u8>, T)) {
        let (Some(value), Some(key)) = (value, KEYS.get(field.index)) else { return };
        let start = self.0.len();
        self.0.extend_from_slice(&key.octets);
        self.0.truncate(start + key.len);
        write(self.0, value);
    }
}

#[inline]
fn quoted(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    out.push(b'"');
    write(out);
    out.push(b'"');
}

/// Appends a JSON array of the items, each of which `write` appends.
fn list<T>(out: &mut Vec<u8>, items: impl Iterator<Item = T>, mut write: impl FnMut(&mut Vec<u8>, T)) {
    out.push(b'[');
    for (index, item) in items.enumerate() {
        if index > 0 {
            out.push(b',');
        }
        write(out, item);
    }
    out.push(b']');
}

/// Appends an outer header as a JSON object with `kind`, and with `id` or with `source` and `destination` if
/// the header has them.
fn header(out: &mut Vec<u8>, header: &EncapsulationHeader) {
    out.extend_from_slice(b"{\"kind\":");
    quoted(out, |out| out.extend_from_slice(header.kind.name().as_bytes()));
    if let Some(id) = header.id() {
        out.extend_from_slice(b",\"id\":");
        text::number(out, id.into());
    }
    if let Some((source, destination)) = header.endpoints {
        out.extend_from_slice(b",\"source\":");
        quoted(out, |out| text::address(out, source));
        out.extend_from_slice(b",\"destination\":");
        quoted(out, |out| text::address(out, destination));
    }
    out.push(b'}');
}

impl Visitor for Object<'_> {
    #[inline]
    fn unsigned(&mut self, field: &'static Field, value: Option<u64>) {
        self.entry(field, value, text::number);
    }

    fn address(&mut self, field: &'static Field, value: Option<IpAddr>) {
        self.entry(field, value, |out, value| quoted(out, |out| text::address(out, value)));
    }

    fn mac(&mut self, field: &'static Field, value: Option<[u8; 6]>) {
        self.entry(field, value, |out, value| quoted(out, |out| text::mac(out, value)));
    }

    fn name(&mut self, field: &'static Field, value: Option<&'static str>) {
        self.entry(field, value, |out, name| quoted(out, |out| out.extend_from_slice(name.as_bytes())));
    }

    fn text(&mut self, field: &'static Field, value: Option<impl Display>) {
        self.entry(field, value, |out, value| quoted(out, |out| text::display(out, value)));
    }

    fn vlan_ids(&mut self, field: &'static Field, value: Option<VlanIds>) {
        self.entry(field, value, |out, ids| list(out, ids.iter(), |out, id| text::number(out, id.into())));
    }

    fn encapsulation(&mut self, field: &'static Field, value: Option<&Encapsulation>) {
        self.entry(field, value, |out, encapsulation| list(out, encapsulation.headers().iter(), header));
    }
}
