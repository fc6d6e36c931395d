//! Tables of the types of [`base`](crate::base).

use std::net::IpAddr;

use super::cell::Name;
use crate::base::{
    EncapsulationHeader, IpProtocol, OuterFlow, Packet, PacketMarks, TcpFlags, Timestamp, Transport, VlanIds,
};

crate::table! {
    /// A header around the packets of a flow.
    impl "encapsulation_header" for EncapsulationHeader as header {
        /// Kind of the header, such as `VXLAN`.
        "kind": Name = Name(header.kind.name());
        /// Id of the header, such as a VLAN id, a label or a virtual network identifier.
        "id": Option<u32> = header.id();
        /// Source address of the tunnel.
        "source": Option<IpAddr> = header.endpoints.map(|(source, _)| source);
        /// Destination address of the tunnel.
        "destination": Option<IpAddr> = header.endpoints.map(|(_, destination)| destination);
    }
}

crate::table! {
    /// The flow that carries another one in a tunnel, sender first.
    impl "outer_flow" for OuterFlow as flow {
        /// IP protocol number.
        "protocol": IpProtocol = flow.key.protocol();
        /// Address of the sender.
        "source_address": IpAddr = flow.key.address(flow.sender);
        /// Port of the sender.
        "source_port": Option<u16> = flow.key.port(flow.sender);
        /// Address of the receiver.
        "destination_address": IpAddr = flow.key.address(flow.sender.other());
        /// Port of the receiver.
        "destination_port": Option<u16> = flow.key.port(flow.sender.other());
    }
}

/// Returns a field of the TCP header, if it was read.
fn tcp<T>(packet: &Packet<'_>, field: T) -> Option<T> {
    (packet.transport == Transport::Tcp).then_some(field)
}

crate::table! {
    /// A packet, and the flow to which it belongs.
    impl['a] "packet" for Packet<'a> as packet {
        /// Capture time of the frame.
        "timestamp": Timestamp = packet.timestamp;
        /// Interface on which the frame was captured, counted from zero.
        "interface": u32 = packet.interface;
        /// IP protocol number.
        "protocol": IpProtocol = packet.key.protocol();
        /// Address of the sender.
        "source_address": IpAddr = packet.key.address(packet.side);
        /// Port of the sender; null for protocols without ports.
        "source_port": Option<u16> = packet.key.port(packet.side);
        /// Address of the receiver.
        "destination_address": IpAddr = packet.key.address(packet.side.other());
        /// Port of the receiver; null for protocols without ports.
        "destination_port": Option<u16> = packet.key.port(packet.side.other());
        /// Length of the frame on the wire.
        "wire_len": u32 [octets] = packet.wire_len;
        /// Length of the innermost IP packet.
        "ip_len": u32 [octets] = packet.ip_len;
        /// Length of the transport payload.
        "payload_len": u32 [octets] = packet.payload_len;
        /// VLAN ids, outermost first.
        "vlan_ids": VlanIds [sparse] = packet.vlan_ids;
        /// TTL or hop limit.
        "hop_limit": u8 = packet.hop_limit;
        /// DSCP.
        "dscp": u8 = packet.dscp();
        /// TCP control bits.
        "tcp_flags": Option<TcpFlags> = tcp(packet, packet.tcp.flags);
        /// Sequence number of the first octet of the segment, or of SYN.
        "tcp_seq": Option<u32> = tcp(packet, packet.tcp.seq.0);
        /// Acknowledgment number.
        "tcp_ack": Option<u32> = tcp(packet, packet.tcp.ack.0);
        /// Window as sent, without scaling.
        "tcp_window": Option<u16> = tcp(packet, packet.tcp.window);
        /// True for a fragment of a datagram.
        "is_fragment": bool [sparse] = packet.marks.contains(PacketMarks::FRAGMENT);
    }
}
