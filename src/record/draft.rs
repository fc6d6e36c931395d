//! Incomplete flow records, which are built while a record is deserialized, and setters of their fields.

use std::net::IpAddr;

use super::encapsulation::EncapsulationRecord;
use super::exported::ExportedRecord;
use super::flow_record::{FieldSet, FlowRecord};
use crate::base::{
    Application, ApplicationName, Encapsulation, Evidence, FlowKey, IpProtocol, OuterFlow, Ports, Side,
    Timestamp, VlanIds,
};

/// Function that sets one field of an incomplete record, by the type of the field; returns `None` for a value
/// that the field cannot have.
pub(crate) enum Setter {
    /// The field is derived from other fields, so it is not set.
    Derived,
    Unsigned(fn(&mut Draft, u64) -> Option<()>),
    Address(fn(&mut Draft, IpAddr) -> Option<()>),
    Mac(fn(&mut Draft, [u8; 6]) -> Option<()>),
    Text(fn(&mut Draft, &str) -> Option<()>),
    #[cfg_attr(not(feature = "serde"), allow(dead_code, reason = "IPFIX has an element for each VLAN id"))]
    VlanIds(fn(&mut Draft, VlanIds) -> Option<()>),
    Encapsulation(fn(&mut Draft, Encapsulation) -> Option<()>),
    OuterFlow(fn(&mut Draft, OuterFlow) -> Option<()>),
}

/// Source of the values of fields, by their index in the schema; the counterpart of a
/// [`Visitor`](crate::row::Visitor). A source has no values of the types whose methods it does not implement.
pub(crate) trait FieldSource {
    fn unsigned(&self, index: usize) -> Option<u64>;
    fn address(&self, index: usize) -> Option<IpAddr>;
    fn mac(&self, index: usize) -> Option<[u8; 6]>;

    #[inline(always)]
    fn name(&self, _: usize) -> Option<&str> {
        None
    }

    #[inline(always)]
    fn text(&self, _: usize) -> Option<&str> {
        None
    }

    #[inline(always)]
    fn vlan_ids(&self, _: usize) -> Option<VlanIds> {
        None
    }

    #[inline(always)]
    fn encapsulation(&self, _: usize) -> Option<Encapsulation> {
        None
    }

    #[inline(always)]
    fn outer_flow(&self, _: usize) -> Option<OuterFlow> {
        None
    }
}

/// Parts of a key that few keys have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KeyParts {
    pub(crate) echo_id: Option<u16>,
    pub(crate) vni: Option<u32>,
    pub(crate) vlan_ids: VlanIds,
}

impl KeyParts {
    const NONE: Self = Self { echo_id: None, vni: None, vlan_ids: VlanIds::NONE };

    #[cold]
    fn added_to(self, key: FlowKey) -> FlowKey {
        let key = match self.echo_id {
            Some(id) if matches!(key.ports(), Ports::Icmp { .. }) && !key.is_one_way_icmp() => {
                key.with_icmp(false, Some(id))
            }
            _ => key,
        };
        let key = self.vni.map_or(key, |vni| key.with_vni(vni));
        key.with_vlan_ids(self.vlan_ids)
    }
}

/// Incomplete flow record, to which fields are added in any order.
#[derive(Debug)]
pub(crate) struct Draft {
    pub(crate) record: FlowRecord,
    pub(crate) protocol: IpProtocol,
    pub(crate) source: (Option<IpAddr>, Option<u16>),
    pub(crate) destination: (Option<IpAddr>, Option<u16>),
    pub(crate) scope: u32,
    pub(crate) key_parts: KeyParts,
    pub(crate) open_duration_ns: Option<u64>,
    pub(crate) application: (Option<ApplicationName>, Option<Evidence>),
    /// Memory for the part about the exporter, while the record has none.
    spare: Option<Box<ExportedRecord>>,
}

impl Draft {
    pub(crate) fn new() -> Self {
        let mut record = FlowRecord::new(FlowKey::VACANT, Side::A, Timestamp::ZERO);
        record.known = FieldSet::EMPTY;
        Self {
            record,
            protocol: IpProtocol::default(),
            source: (None, None),
            destination: (None, None),
            scope: 0,
            key_parts: KeyParts::NONE,
            open_duration_ns: None,
            application: (None, None),
            spare: None,
        }
    }

    /// Sets the part about the exporter. Allocates only the first time.
    pub(crate) fn set_exported(&mut self, exported: Option<&ExportedRecord>) {
        let part = self.record.exported.take().or_else(|| self.spare.take());
        (self.record.exported, self.spare) = match exported {
            None => (None, part),
            Some(exported) => {
                let mut part = part.unwrap_or_default();
                *part = *exported;
                (Some(part), None)
            }
        };
    }

    /// Empties the draft for another record; only the part about the exporter remains.
    #[inline]
    pub(crate) fn restart(&mut self) {
        let (exported, spare) = (self.record.exported.take(), self.spare.take());
        *self = Self::new();
        (self.record.exported, self.spare) = (exported, spare);
    }

    pub(crate) fn encapsulation(&mut self) -> &mut EncapsulationRecord {
        self.record.encapsulation.get_or_insert_default()
    }

    pub(crate) fn exported(&mut self) -> &mut ExportedRecord {
        self.record.exported.get_or_insert_default()
    }

    /// Completes the flow record, and returns it or, as the error, the name of a required field that is missing.
    pub(crate) fn finish(&mut self) -> Result<&FlowRecord, &'static str> {
        let Self { record, protocol, source, destination, open_duration_ns, application, .. } = self;
        let protocol = *protocol;
        let source = (source.0.ok_or("source_address")?, source.1);
        let destination = (destination.0.ok_or("destination_address")?, destination.1);
        let (key, initiator) = match (protocol, record.icmp) {
            // A key of ICMP types has the protocol of its IP version.
            (IpProtocol::ICMP, Some((kind, code))) | (IpProtocol::ICMPV6, Some((kind, code)))
                if source.0.is_ipv6() == (protocol == IpProtocol::ICMPV6) =>
            {
                let (key, side) = FlowKey::icmp(source.0, destination.0, kind, code);
                // The evidence may indicate that the initiator is the receiver. An ICMP type without a response has one
                // sender.
                let is_responder = record.forward.counters.is_empty() && !record.reverse.counters.is_empty();
                if key.is_one_way_icmp() && is_responder {
                    let (key, side) = FlowKey::icmp(destination.0, source.0, kind, code);
                    (key, side.other())
                } else {
                    (key, side)
                }
            }
            _ if protocol.has_ports() && (source.1.is_some() || destination.1.is_some()) => {
                let end = |(address, port): (IpAddr, Option<u16>)| (address, port.unwrap_or_default());
                FlowKey::new(protocol, end(source), end(destination))
            }
            _ => FlowKey::pair(protocol, source.0, destination.0),
        };
        let key = key.with_scope(self.scope);
        let key = if self.key_parts == KeyParts::NONE { key } else { self.key_parts.added_to(key) };
        (record.key, record.initiator) = (key, initiator);
        record.open_end = match open_duration_ns {
            Some(len) => Timestamp::from_nanos(record.start.as_nanos().saturating_add(*len)),
            None => record.end,
        };
        if let (Some(name), evidence) = *application {
            record.application = Some(Application { name, evidence: evidence.unwrap_or(Evidence::Content) });
        }
        Ok(record)
    }
}
