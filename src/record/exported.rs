//! Part of a flow record about its export: the exporter, and what its device knows about the flow beside the packets.

use std::net::IpAddr;

/// Direction of a flow at the interface where it was observed (flowDirection, IPFIX 61).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum FlowDirection {
    /// The packets entered the device.
    Ingress = 0,
    /// The packets left the device.
    Egress = 1,
}

impl FlowDirection {
    /// Returns the name of the direction.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ingress => "ingress",
            Self::Egress => "egress",
        }
    }

    /// Returns the direction with a name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Ingress, Self::Egress].into_iter().find(|direction| direction.name() == name)
    }

    /// Returns the direction with a number of the registry.
    pub(crate) const fn from_number(number: u64) -> Option<Self> {
        match number {
            0 => Some(Self::Ingress),
            1 => Some(Self::Egress),
            _ => None,
        }
    }
}

/// Exporter of a flow record, and what it sent about the flow beside the properties of its packets: interfaces, counts
/// after the device processed the packets, autonomous systems, translated addresses, and events. Only records of a
/// [`Collector`](crate::ipfix::collector::Collector) have it. The fields are those of the
/// [columns of flow records](crate::record::FlowRecord).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExportedRecord {
    /// Address of the exporter: that of the original one if the record has it (exporterIPv4Address, exporterIPv6Address;
    /// IPFIX 130 and 131), otherwise the agent of sFlow, or the
    /// sender of the message.
    pub exporter_address: Option<IpAddr>,
    /// Identifier of the observation domain: source id in NetFlow version 9, engine in version 5, sub-agent in sFlow
    /// (observationDomainId, IPFIX 149).
    pub observation_domain: Option<u32>,
    /// Number of the interface by which the packets leave (egressInterface, IPFIX 14).
    pub egress_interface: Option<u32>,
    /// Direction of the flow at the interface.
    pub flow_direction: Option<FlowDirection>,
    /// Packets of the initiator that left the device (postPacketDeltaCount, IPFIX 24).
    pub egress_packet_count: Option<u64>,
    /// Octets of IP packets of the initiator that left the device (postOctetDeltaCount, IPFIX 23).
    pub egress_octet_count: Option<u64>,
    /// Packets of the responder that left the device.
    pub reverse_egress_packet_count: Option<u64>,
    /// Octets of IP packets of the responder that left the device.
    pub reverse_egress_octet_count: Option<u64>,
    /// Autonomous system of the initiator (bgpSourceAsNumber, IPFIX 16).
    pub source_as: Option<u32>,
    /// Autonomous system of the responder (bgpDestinationAsNumber, IPFIX 17).
    pub destination_as: Option<u32>,
    /// Address of the initiator after translation (postNATSourceIPv4Address, postNATSourceIPv6Address; IPFIX 225 and 281).
    pub post_nat_source_address: Option<IpAddr>,
    /// Port of the initiator after translation (postNAPTSourceTransportPort, IPFIX 227).
    pub post_nat_source_port: Option<u16>,
    /// Address of the responder after translation (IPFIX 226 and 282).
    pub post_nat_destination_address: Option<IpAddr>,
    /// Port of the responder after translation (postNAPTDestinationTransportPort, IPFIX 228).
    pub post_nat_destination_port: Option<u16>,
    /// Event of a firewall: 1 created, 2 deleted, 3 denied, 4 alert, 5 update (firewallEvent, IPFIX 233).
    pub firewall_event: Option<u8>,
    /// Event of a translation, with the numbers of the registry, such as 4 and 5 for a session of NAT44 that is created
    /// and deleted (natEvent, IPFIX 230).
    pub nat_event: Option<u8>,
}

impl ExportedRecord {
    /// Returns whether the record reports an event that is not the end of a flow.
    pub(crate) const fn is_event(&self) -> bool {
        const IGNORE: u8 = 0;
        const DELETED: u8 = 2;
        match (self.firewall_event, self.nat_event) {
            (Some(DELETED), _) | (Some(IGNORE) | None, Some(IGNORE) | None) => false,
            (Some(_), _) | (None, Some(_)) => true,
        }
    }

    /// Appends the part of a later record.
    pub(crate) fn append(&mut self, later: &Self) {
        let sum = |earlier: Option<u64>, later: Option<u64>| match (earlier, later) {
            (Some(earlier), Some(later)) => Some(earlier.saturating_add(later)),
            (earlier, later) => earlier.or(later),
        };
        *self = Self {
            exporter_address: self.exporter_address.or(later.exporter_address),
            observation_domain: self.observation_domain.or(later.observation_domain),
            egress_interface: self.egress_interface.or(later.egress_interface),
            flow_direction: self.flow_direction.or(later.flow_direction),
            egress_packet_count: sum(self.egress_packet_count, later.egress_packet_count),
            egress_octet_count: sum(self.egress_octet_count, later.egress_octet_count),
            reverse_egress_packet_count: sum(
                self.reverse_egress_packet_count,
                later.reverse_egress_packet_count,
            ),
            reverse_egress_octet_count: sum(
                self.reverse_egress_octet_count,
                later.reverse_egress_octet_count,
            ),
            source_as: self.source_as.or(later.source_as),
            destination_as: self.destination_as.or(later.destination_as),
            post_nat_source_address: self.post_nat_source_address.or(later.post_nat_source_address),
            post_nat_source_port: self.post_nat_source_port.or(later.post_nat_source_port),
            post_nat_destination_address: self
                .post_nat_destination_address
                .or(later.post_nat_destination_address),
            post_nat_destination_port: self.post_nat_destination_port.or(later.post_nat_destination_port),
            firewall_event: self.firewall_event.max(later.firewall_event),
            nat_event: self.nat_event.max(later.nat_event),
        };
    }

    /// Returns the part with the initiator's and the responder's fields exchanged.
    pub(crate) const fn turned(self) -> Self {
        Self {
            egress_packet_count: self.reverse_egress_packet_count,
            egress_octet_count: self.reverse_egress_octet_count,
            reverse_egress_packet_count: self.egress_packet_count,
            reverse_egress_octet_count: self.egress_octet_count,
            source_as: self.destination_as,
            destination_as: self.source_as,
            post_nat_source_address: self.post_nat_destination_address,
            post_nat_source_port: self.post_nat_destination_port,
            post_nat_destination_address: self.post_nat_source_address,
            post_nat_destination_port: self.post_nat_source_port,
            ..self
        }
    }

    /// Multiplies all counts by a factor; they saturate.
    pub(crate) fn scale(&mut self, factor: u64) {
        for count in [
            &mut self.egress_packet_count,
            &mut self.egress_octet_count,
            &mut self.reverse_egress_packet_count,
            &mut self.reverse_egress_octet_count,
        ] {
            *count = count.map(|count| count.saturating_mul(factor));
        }
    }
}
