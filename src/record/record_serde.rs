//! Flow records for serde, as one flat object of fields.

use std::borrow::Cow;
use std::fmt;
use std::net::IpAddr;

use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, MapAccess, Visitor};
use serde::ser::{Serialize, Serializer};

use super::draft::{Draft, Setter};
use super::flow_record::{FieldSet, FlowRecord};
use super::schema::SETTERS;
use crate::base::{Encapsulation, OuterFlow, VlanIds};
use crate::row::{Serialized, Table};

impl Serialize for FlowRecord {
    /// Serializes the [columns](Table::COLUMNS) as one flat object. Values that do not apply or are not known are null,
    /// so that all records have the same fields; times are numbers of nanoseconds.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Serialized(self).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for FlowRecord {
    /// Deserializes a record from the flat object to which it is serialized. All fields except the addresses
    /// may be missing; missing fields are not [known](FlowRecord::known). Fields that are derived from
    /// others, and unknown names, are ignored. The Flow Key consists of the fields of the default policy
    /// (five-tuple or ICMP types) and of the scope. Without ports, it is the key of an address pair; if only
    /// one port is known, the other port is 0 in the key.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Object)
    }
}

struct Object;

impl<'de> Visitor<'de> for Object {
    type Value = FlowRecord;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a flow record")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<FlowRecord, A::Error> {
        let mut draft = Draft::new();
        while let Some(name) = map.next_key::<Cow<'_, str>>()? {
            let found = FlowRecord::COLUMNS
                .iter()
                .zip(&SETTERS)
                .enumerate()
                .find(|(_, (field, _))| field.name == name);
            let Some((index, (field, setter))) = found else {
                map.next_value::<IgnoredAny>()?;
                continue;
            };
            // The outcome of the setter; `None` if there is no value.
            let is_set = match setter {
                Setter::Derived => map.next_value::<IgnoredAny>().map(|_| Some(Some(())))?,
                Setter::Unsigned(set) => map.next_value::<Option<u64>>()?.map(|value| set(&mut draft, value)),
                Setter::Address(set) => {
                    map.next_value::<Option<IpAddr>>()?.map(|value| set(&mut draft, value))
                }
                Setter::Mac(set) => map
                    .next_value::<Option<Cow<'_, str>>>()?
                    .map(|text| parse_mac(&text).and_then(|mac| set(&mut draft, mac))),
                Setter::Text(set) => {
                    map.next_value::<Option<Cow<'_, str>>>()?.map(|text| set(&mut draft, &text))
                }
                Setter::VlanIds(set) => map.next_value::<Option<VlanIds>>()?.map(|ids| set(&mut draft, ids)),
                Setter::Encapsulation(set) => map
                    .next_value::<Option<Encapsulation>>()?
                    .map(|encapsulation| set(&mut draft, encapsulation)),
                Setter::OuterFlow(set) => {
                    map.next_value::<Option<OuterFlow>>()?.map(|flow| set(&mut draft, flow))
                }
            };
            if is_set == Some(None) {
                return Err(A::Error::custom(format_args!("the value of {} is invalid", field.name)));
            }
            // Null is a value of columns that may be absent, and otherwise one that the record does not know.
            if is_set.is_some() || field.is_nullable {
                draft.record.known = draft.record.known.with(index);
            }
        }
        if FlowRecord::COLUMNS.iter().enumerate().all(|(index, _)| draft.record.known.contains(index)) {
            draft.record.known = FieldSet::ALL;
        }
        draft.record.complete_counts();
        draft.finish().map_err(A::Error::missing_field)?;
        Ok(draft.record)
    }
}

/// Parses a MAC address: six pairs of hexadecimal digits separated by colons.
fn parse_mac(text: &str) -> Option<[u8; 6]> {
    let mut mac = [0; 6];
    let mut pairs = text.split(':');
    for octet in &mut mac {
        let pair = pairs.next().filter(|pair| pair.len() == 2)?;
        *octet = u8::from_str_radix(pair, 16).ok()?;
    }
    pairs.next().is_none().then_some(mac)
}
