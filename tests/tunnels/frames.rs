//! Packets in tunnels, built octet by octet, and the flow that each level belongs to.

use std::net::Ipv4Addr;

use flowgauge::base::{FlowKey, Frame, IpProtocol, Side, Timestamp};

const MACS: [[u8; 6]; 2] = [[2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]];

/// A tunnel between two hosts, from the sender's point of view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tunnel {
    IpInIp,
    Gre,
    /// VXLAN network identifier and source port.
    Vxlan(u32, u16),
    /// Tunnel endpoint identifier of the receiver.
    GtpU(u32),
}

/// One of several nested IP packets; the sender's address and port come first.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Level {
    pub(crate) ends: [Ipv4Addr; 2],
    pub(crate) protocol: IpProtocol,
    pub(crate) ports: [u16; 2],
}

impl Level {
    pub(crate) fn key(&self) -> (FlowKey, Side) {
        let [source, destination] = self.ends.map(Into::into);
        if self.protocol == IpProtocol::UDP {
            FlowKey::new(self.protocol, (source, self.ports[0]), (destination, self.ports[1]))
        } else {
            // There are no ports, so the addresses determine the sides.
            let mut key = flow_of_pair(self.protocol, self.ends);
            key.1 = if self.ends[0] < self.ends[1] { Side::A } else { Side::B };
            key
        }
    }
}

/// Returns the flow key of an address pair, which the extractor derives from a packet without payload.
fn flow_of_pair(protocol: IpProtocol, ends: [Ipv4Addr; 2]) -> (FlowKey, Side) {
    let data = ethernet(&ipv4(protocol.0, ends, &[]));
    let packet =
        flowgauge::decode::extractor::Extractor::default().extract(&Frame::ethernet(Timestamp::ZERO, &data));
    let packet = packet.expect("a packet");
    (packet.key, packet.side)
}

fn ipv4(protocol: u8, ends: [Ipv4Addr; 2], payload: &[u8]) -> Vec<u8> {
    let [high, low] = (20 + payload.len() as u16).to_be_bytes();
    let header = [0x45, 0, high, low, 0, 1, 0, 0, 64, protocol, 0, 0];
    [&header, &ends[0].octets()[..], &ends[1].octets(), payload].concat()
}

fn udp(ports: [u16; 2], payload: &[u8]) -> Vec<u8> {
    let [source, destination] = ports.map(u16::to_be_bytes);
    let len = (8 + payload.len() as u16).to_be_bytes();
    [&source[..], &destination, &len, &[0, 0], payload].concat()
}

/// Returns a UDP datagram in IPv4.
pub(crate) fn datagram(ends: [Ipv4Addr; 2], ports: [u16; 2], len: usize) -> (Vec<u8>, Level) {
    let level = Level { ends, protocol: IpProtocol::UDP, ports };
    (ipv4(17, ends, &udp(ports, &vec![7; len])), level)
}

/// Encapsulates a packet in a tunnel. Also returns the level and the text with which a record shows the added headers.
pub(crate) fn wrap(packet: &[u8], tunnel: Tunnel, ends: [Ipv4Addr; 2]) -> (Vec<u8>, Level, String) {
    let level = |protocol, ports| Level { ends, protocol, ports };
    let ip = format!("IP {}>{}", ends[0], ends[1]);
    match tunnel {
        Tunnel::IpInIp => (ipv4(4, ends, packet), level(IpProtocol::IPV4, [0; 2]), ip),
        Tunnel::Gre => {
            let payload = [&[0, 0, 8, 0], packet].concat();
            (ipv4(47, ends, &payload), level(IpProtocol::GRE, [0; 2]), format!("{ip} / GRE 0"))
        }
        Tunnel::Vxlan(vni, port) => {
            let [_, high, middle, low] = vni.to_be_bytes();
            let payload = [&[8, 0, 0, 0, high, middle, low, 0], &ethernet(packet)[..]].concat();
            let ports = [port, 4789];
            let stack = format!("{ip} / VXLAN {vni} / Ethernet");
            (ipv4(17, ends, &udp(ports, &payload)), level(IpProtocol::UDP, ports), stack)
        }
        Tunnel::GtpU(teid) => {
            let len = (packet.len() as u16).to_be_bytes();
            let payload = [&[0x30, 0xff], &len[..], &teid.to_be_bytes(), packet].concat();
            let ports = [2152, 2152];
            (
                ipv4(17, ends, &udp(ports, &payload)),
                level(IpProtocol::UDP, ports),
                format!("{ip} / GTP-U {teid}"),
            )
        }
    }
}

pub(crate) fn ethernet(packet: &[u8]) -> Vec<u8> {
    [&MACS[1][..], &MACS[0], &[8, 0], packet].concat()
}

/// Splits an IPv4 packet without options into fragments with at most `len` octets of payload, a multiple of eight.
pub(crate) fn fragments(packet: &[u8], id: u16, len: usize) -> Vec<Vec<u8>> {
    let (header, payload) = packet.split_at(20);
    let count = payload.len().div_ceil(len);
    let fragment = |(position, part): (usize, &[u8])| {
        let mut header = header.to_vec();
        header[2..4].copy_from_slice(&(20 + part.len() as u16).to_be_bytes());
        header[4..6].copy_from_slice(&id.to_be_bytes());
        let more = if position + 1 < count { 0x2000 } else { 0 };
        header[6..8].copy_from_slice(&((position * len / 8) as u16 | more).to_be_bytes());
        [&header, part].concat()
    };
    payload.chunks(len).enumerate().map(fragment).collect()
}
