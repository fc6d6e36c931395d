//! csv format of flow records: comma-separated values.
//!
//! No value needs quotes: values are numbers, names, addresses, base64 and lists without commas.

use std::fmt::Display;
use std::net::IpAddr;

use super::text;
use crate::base::{Encapsulation, VlanIds};
use crate::record::{Field, FlowRecord, Visitor};

pub(super) fn write_header(out: &mut Vec<u8>) {
    write_names(out, FlowRecord::SCHEMA.iter());
}

pub(super) fn write_names(out: &mut Vec<u8>, fields: impl Iterator<Item = &'static Field>) {
    for (index, field) in fields.enumerate() {
        if index > 0 {
            out.push(b',');
        }
        out.extend_from_slice(field.name.as_bytes());
    }
    out.push(b'\n');
}

pub(super) fn write_record(out: &mut Vec<u8>, record: &FlowRecord) {
    record.visit(&mut Line(out));
    // Removes the last comma.
    out.pop();
    out.push(b'\n');
}

pub(super) fn write_fields(out: &mut Vec<u8>, record: &FlowRecord, indices: &[usize]) {
    let start = out.len();
    record.visit_fields(indices, &mut Line(out));
    if out.len() > start {
        out.pop();
    }
    out.push(b'\n');
}

/// Visitor that appends each value to a csv line, followed by a comma.
struct Line<'o>(&'o mut Vec<u8>);

impl Line<'_> {
    #[inline]
    fn value<T>(&mut self, value: Option<T>, write: impl FnOnce(&mut Vec<u8>, T)) {
        if let Some(value) = value {
            write(self.0, value);
        }
        self.0.push(b',');
    }
}

impl Visitor for Line<'_> {
    #[inline]
    fn unsigned(&mut self, _: &'static Field, value: Option<u64>) {
        self.value(value, text::number);
    }

    fn address(&mut self, _: &'static Field, value: Option<IpAddr>) {
        self.value(value, text::address);
    }

    fn mac(&mut self, _: &'static Field, value: Option<[u8; 6]>) {
        self.value(value, text::mac);
    }

    fn name(&mut self, _: &'static Field, value: Option<&'static str>) {
        self.value(value, |out, name| out.extend_from_slice(name.as_bytes()));
    }

    fn text(&mut self, _: &'static Field, value: Option<impl Display>) {
        self.value(value, text::display);
    }

    fn vlan_ids(&mut self, _: &'static Field, value: Option<VlanIds>) {
        self.value(value.filter(|ids| !ids.is_empty()), text::display);
    }

    fn encapsulation(&mut self, _: &'static Field, value: Option<&Encapsulation>) {
        self.value(value, text::display);
    }
}
