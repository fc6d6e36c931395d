//! Serialization of records with serde, as one flat object of all fields.

use std::fmt::Display;
use std::net::IpAddr;

use serde::ser::{Serialize, SerializeMap, Serializer};

use super::field::{Field, Mac, Visitor};
use super::flow_record::FlowRecord;
use crate::base::{Encapsulation, VlanIds};

impl Serialize for FlowRecord {
    /// Serializes the fields of the [schema](FlowRecord::SCHEMA) as one flat object. Values that do not apply or are
    /// not known are null, so that all records have the same fields.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let map = serializer.serialize_map(Some(Self::SCHEMA.len()))?;
        let mut entries = Entries { map, outcome: Ok(()) };
        self.visit(&mut entries);
        entries.outcome?;
        entries.map.end()
    }
}

/// Visitor that serializes each field as an entry of a map, until the first error.
struct Entries<M: SerializeMap> {
    map: M,
    outcome: Result<(), M::Error>,
}

impl<M: SerializeMap> Entries<M> {
    fn entry(&mut self, field: &'static Field, value: &impl Serialize) {
        if self.outcome.is_ok() {
            self.outcome = self.map.serialize_entry(field.name, value);
        }
    }
}

/// Wrapper for a value that is serialized as text, according to its `Display` implementation.
struct Text<T>(T);

impl<T: Display> Serialize for Text<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl<M: SerializeMap> Visitor for Entries<M> {
    fn unsigned(&mut self, field: &'static Field, value: Option<u64>) {
        self.entry(field, &value);
    }

    fn address(&mut self, field: &'static Field, value: Option<IpAddr>) {
        self.entry(field, &value);
    }

    fn mac(&mut self, field: &'static Field, value: Option<[u8; 6]>) {
        self.entry(field, &value.map(|mac| Text(Mac(mac))));
    }

    fn name(&mut self, field: &'static Field, value: Option<&'static str>) {
        self.entry(field, &value);
    }

    fn text(&mut self, field: &'static Field, value: Option<impl Display>) {
        self.entry(field, &value.map(Text));
    }

    fn vlan_ids(&mut self, field: &'static Field, value: Option<VlanIds>) {
        self.entry(field, &value);
    }

    fn encapsulation(&mut self, field: &'static Field, value: Option<&Encapsulation>) {
        self.entry(field, &value);
    }
}
