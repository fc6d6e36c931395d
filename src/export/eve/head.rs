//! The keys with which events begin.

use std::borrow::Cow;
use std::net::IpAddr;

use super::address::Address;
use super::protocol::{application_name, ip_name};
use super::time::Time;
use crate::base::{FlowKey, IpProtocol, Side, Timestamp, VlanIds};
use crate::export::Uid;
use crate::record::{CommunityId, FlowRecord};
use crate::row::{Displayed, Name};
use crate::tracker::FlowView;

/// Number of bits of the identifier of a flow. Suricata's has 51 too, so that programs that read numbers as floating-point
/// numbers do not round it.
const ID_BITS: u32 = 51;

/// Time, type and flow of an event, with which it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Head {
    /// Time of the event.
    pub timestamp: Timestamp,
    /// Identifier of the flow: less than 2^51.
    pub flow_id: u64,
    /// Identifier of the flow that announced this one.
    pub parent_id: Option<u64>,
    /// Type of the event, such as `http`.
    pub event_type: &'static str,
    /// VLAN ids of the source, outermost first.
    pub vlan: VlanIds,
    /// Address and port of the source.
    pub source: (IpAddr, Option<u16>),
    /// Address and port of the destination.
    pub destination: (IpAddr, Option<u16>),
    /// IP protocol.
    pub protocol: IpProtocol,
    /// Type and code of ICMP.
    pub icmp: Option<(u8, u8)>,
    /// Type and code of the reply of ICMP.
    pub response_icmp: Option<(u8, u8)>,
    /// Number of the transaction in its flow.
    pub tx_id: Option<u64>,
    /// The application protocol under EVE's name.
    pub app_proto: Option<&'static str>,
    /// The application protocol of the flow before the last change, under EVE's name.
    pub app_proto_orig: Option<&'static str>,
    /// Community ID of the flow.
    pub community_id: CommunityId,
    /// True if the event has the version of IP.
    pub has_version: bool,
}

/// Returns the number of a flow.
fn number(uid: Uid) -> u64 {
    (uid.number() >> (u64::BITS - 1 - ID_BITS)).max(1)
}

impl Head {
    /// Returns the head of an event of a flow with one side as the source.
    pub(super) fn new(
        event_type: &'static str,
        timestamp: Timestamp,
        uid: Uid,
        (view, source): (&FlowView<'_>, Side),
    ) -> Self {
        let head = Self::of((event_type, timestamp, uid), (view.key(), source), view.vlan_ids(source));
        Self { icmp: view.icmp(), response_icmp: view.response_icmp(), ..head }
    }

    /// Returns the head of an event of a record, with the initiator as the source.
    pub(super) fn of_record(event_type: &'static str, uid: Uid, record: &FlowRecord) -> Self {
        let key = (&record.key, record.initiator);
        let head = Self::of((event_type, record.end, uid), key, record.forward.vlan_ids);
        Self { icmp: record.icmp, ..head }
    }

    fn of(
        (event_type, timestamp, uid): (&'static str, Timestamp, Uid),
        (key, source): (&FlowKey, Side),
        vlan: VlanIds,
    ) -> Self {
        let end = |side| (key.address(side), key.port(side));
        Self {
            timestamp,
            flow_id: number(uid),
            parent_id: None,
            event_type,
            vlan,
            source: end(source),
            destination: end(source.other()),
            protocol: key.protocol(),
            icmp: None,
            response_icmp: None,
            tx_id: None,
            app_proto: None,
            app_proto_orig: None,
            community_id: key.community_id(0),
            has_version: true,
        }
    }

    /// Returns the head of the same event in the other direction.
    pub(super) fn turned(self, vlan: VlanIds) -> Self {
        Self { vlan, source: self.destination, destination: self.source, icmp: self.response_icmp, ..self }
    }

    /// Returns the head with an application protocol.
    pub(super) fn with_application(self, name: &str) -> Self {
        Self { app_proto: application_name(name), ..self }
    }

    /// Returns the head with the flow that announced this one.
    pub(super) fn with_parent(self, parent: Option<Uid>) -> Self {
        Self { parent_id: parent.map(number), ..self }
    }

    const fn version(&self) -> Option<u8> {
        match (self.has_version, self.source.0) {
            (false, _) => None,
            (true, IpAddr::V4(_)) => Some(4),
            (true, IpAddr::V6(_)) => Some(6),
        }
    }
}

crate::table! {
    /// The keys of all events but `stats`.
    impl "eve.head" for Head as head {
        /// Time of the packet that completed the event, in UTC with microseconds: `2026-11-20T23:09:24.195000+0000`; of a request
        /// of DNS or a ClientHello of QUIC, that of the first packet; of a flow, when its end was noticed.
        "timestamp": Time = Time(head.timestamp);
        /// Number of 51 bits, derived from a seed, the flow key and the start.
        "flow_id": u64 = head.flow_id;
        /// `flow_id` of the control connection, for data connections of FTP from the end of their first file on.
        "parent_id": Option<u64> = head.parent_id;
        /// Type of the event.
        "event_type": Name = Name(head.event_type);
        /// VLAN ids of the source, outermost first.
        "vlan": VlanIds [sparse] = head.vlan;
        /// Address of the client; in responses of DNS of the server, in `fileinfo` of the sender of the file, in `netflow` of the
        /// sender of the packets, in `flow` and `anomaly` of the initiator. IPv6 is not abbreviated.
        "src_ip": Address = Address(head.source.0);
        /// Port of the source.
        "src_port": Option<u16> = head.source.1;
        /// Address of the other end.
        "dest_ip": Address = Address(head.destination.0);
        /// Port of the other end.
        "dest_port": Option<u16> = head.destination.1;
        /// `TCP`, `UDP`, `ICMP`, `IPv6-ICMP` and so on; otherwise the number as text.
        "proto": Displayed<Cow<'static, str>> = Displayed(ip_name(head.protocol));
        /// 4 or 6; not in `netflow`.
        "ip_v": Option<u8> = head.version();
        /// Type in the first packet of ICMP.
        "icmp_type": Option<u8> = head.icmp.map(|(kind, _)| kind);
        /// Code in the first packet of ICMP.
        "icmp_code": Option<u8> = head.icmp.map(|(_, code)| code);
        /// Type in the first reply of ICMP.
        "response_icmp_type": Option<u8> = head.response_icmp.map(|(kind, _)| kind);
        /// Code in the first reply of ICMP.
        "response_icmp_code": Option<u8> = head.response_icmp.map(|(_, code)| code);
        /// Number of the request, query, command or mail in its flow, from 0; not for HTTP/2.
        "tx_id": Option<u64> = head.tx_id;
        /// Application protocol under Suricata's name; in `flow` if the content proves it, in `netflow` otherwise `unknown`.
        "app_proto": Option<Name> = head.app_proto.map(Name);
        /// First application protocol of a flow with several, such as `smtp` before STARTTLS.
        "app_proto_orig": Option<Name> = head.app_proto_orig.map(Name);
        /// Community ID, version 1, seed 0.
        "community_id": CommunityId = head.community_id;
    }
}
