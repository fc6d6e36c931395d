//! Flow keys for serde: an object with the parts of the key, from which an equal key is read.

use std::net::IpAddr;

use serde::de::Error as _;
use serde::ser::SerializeStruct as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::code_point::IpProtocol;
use super::key::{FlowKey, Ports, Side, address_bits};
use super::vlan::VlanIds;

impl Serialize for FlowKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let port_field_count = match self.ports() {
            Ports::Transport(..) => 2,
            Ports::Icmp { .. } => 4,
            Ports::None => 0,
        };
        let mut out = serializer.serialize_struct("FlowKey", 7 + port_field_count)?;
        out.serialize_field("protocol", &self.protocol())?;
        out.serialize_field("a_address", &self.address(Side::A))?;
        out.serialize_field("b_address", &self.address(Side::B))?;
        match self.ports() {
            Ports::Transport(a, b) => {
                out.serialize_field("a_port", &a)?;
                out.serialize_field("b_port", &b)?;
            }
            Ports::Icmp { kind, counterpart, echo_id } => {
                out.serialize_field("icmp_type", &kind)?;
                out.serialize_field("icmp_counterpart", &counterpart)?;
                out.serialize_field("icmp_is_one_way", &self.is_one_way_icmp())?;
                out.serialize_field("icmp_echo_id", &echo_id)?;
            }
            Ports::None => {}
        }
        out.serialize_field("is_uniflow", &(!self.is_ordered() && !self.is_one_way_icmp()))?;
        out.serialize_field("vlan_ids", &self.vlan_ids())?;
        out.serialize_field("vni", &self.vni())?;
        out.serialize_field("scope", &self.scope())?;
        out.end()
    }
}

/// The parts of a key as they are read.
#[derive(Deserialize)]
struct Object {
    protocol: IpProtocol,
    a_address: IpAddr,
    b_address: IpAddr,
    a_port: Option<u16>,
    b_port: Option<u16>,
    icmp_type: Option<u8>,
    icmp_counterpart: Option<u8>,
    #[serde(default)]
    icmp_is_one_way: bool,
    icmp_echo_id: Option<u16>,
    #[serde(default)]
    is_uniflow: bool,
    #[serde(default)]
    vlan_ids: VlanIds,
    vni: Option<u32>,
    #[serde(default)]
    scope: u32,
}

impl Object {
    fn ports(&self) -> Result<Ports, &'static str> {
        let has_icmp_parts = self.icmp_is_one_way || self.icmp_echo_id.is_some();
        match (self.a_port, self.b_port, self.icmp_type, self.icmp_counterpart) {
            (None, None, Some(_), Some(_)) if self.icmp_is_one_way && self.icmp_echo_id.is_some() => {
                Err("an ICMP type without a reply has no echo identifier")
            }
            (None, None, Some(kind), Some(counterpart)) => {
                Ok(Ports::Icmp { kind, counterpart, echo_id: self.icmp_echo_id })
            }
            _ if has_icmp_parts => Err("parts of an ICMP key without its types"),
            (Some(a_port), Some(b_port), None, None) => Ok(Ports::Transport(a_port, b_port)),
            (None, None, None, None) => Ok(Ports::None),
            _ => Err("a key has two ports, or two ICMP types, or none of them"),
        }
    }

    fn key(self) -> Result<FlowKey, &'static str> {
        let ports = self.ports()?;
        if self.a_address.is_ipv6() != self.b_address.is_ipv6() {
            return Err("the addresses are of different families");
        }
        if self.vni.is_some_and(|vni| vni >> 24 != 0) {
            return Err("a virtual network identifier has 24 bits");
        }
        let (a_port, b_port) = match ports {
            Ports::Transport(a_port, b_port) => (a_port, b_port),
            Ports::Icmp { kind, counterpart, .. } => (kind.into(), counterpart.into()),
            Ports::None => (0, 0),
        };
        let (a, b) = ((address_bits(self.a_address), a_port), (address_bits(self.b_address), b_port));
        let is_ipv6 = self.a_address.is_ipv6();
        let mut key = FlowKey::directed(self.protocol, is_ipv6, a, b, ports != Ports::None);
        if let Ports::Icmp { echo_id, .. } = ports {
            key = key.with_icmp(self.icmp_is_one_way, echo_id);
        }
        // Another order would be another key, which no packet of the conversation has.
        if !key.is_ordered() && !key.is_one_way_icmp() && !self.is_uniflow {
            return Err("end A must have the lower address, or the lower port of the same address");
        }
        if let Some(vni) = self.vni {
            key = key.with_vni(vni);
        }
        Ok(key.with_vlan_ids(self.vlan_ids).with_scope(self.scope))
    }
}

impl<'de> Deserialize<'de> for FlowKey {
    /// Reads a key that equals the one that was written. A key that no packet can have is an error: ends in another
    /// order than the canonical one, or of different families, or with one port.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Object::deserialize(deserializer)?.key().map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(value: Value) -> Result<FlowKey, String> {
        serde_json::from_value(value).map_err(|error| error.to_string())
    }

    #[test]
    fn keys_are_read_as_they_were_written() {
        let (low, high) = ("192.0.2.1".parse().unwrap(), "192.0.2.9".parse().unwrap());
        let (low_v6, high_v6): (IpAddr, IpAddr) =
            ("2001:db8::1".parse().unwrap(), "fe80::2".parse().unwrap());
        let ends = |source: IpAddr, port, destination: IpAddr, other| {
            ((address_bits(source), port), (address_bits(destination), other))
        };
        let (source, destination) = ends(high, 7, low, 9);
        let echo = FlowKey::ordered(IpProtocol::ICMP, false, (2, 8), (1, 0), true).0;
        let self_ping = FlowKey::ordered(IpProtocol::ICMP, false, (1, 8), (1, 0), true).0;
        let keys = [
            FlowKey::new(IpProtocol::TCP, (high, 80), (low, 40_000)).0,
            FlowKey::new(IpProtocol::UDP, (low_v6, 0), (high_v6, u16::MAX)).0.with_vni(0xff_ffff),
            FlowKey::new(IpProtocol::TCP, (low, 9), (low, 8)).0.with_scope(u32::MAX),
            FlowKey::pair(IpProtocol(47), high, low).0.with_vlan_ids(VlanIds::default().push(5)),
            FlowKey::icmp(high, low, 3, 1).0,
            FlowKey::icmp(low, high, 8, 0).0,
            FlowKey::icmp(high_v6, low_v6, 128, 0).0,
            echo.with_icmp(false, Some(0xbeef)),
            self_ping.with_icmp(false, Some(0x00ff)),
            self_ping.with_icmp(false, Some(0xff00)),
            FlowKey::directed(IpProtocol::UDP, false, source, destination, true),
        ];
        for key in keys {
            let value = serde_json::to_value(key).unwrap();
            assert_eq!(read(value.clone()), Ok(key), "{value}");
        }
    }

    #[test]
    fn keys_that_no_packet_has_are_refused() {
        let key = json!({"protocol": 6, "a_address": "192.0.2.1", "b_address": "192.0.2.2", "a_port": 1, "b_port": 2});
        assert!(read(key.clone()).is_ok());
        for (name, value, message) in [
            ("a_address", json!("192.0.2.3"), "end A must have the lower address"),
            ("b_address", json!("2001:db8::1"), "the addresses are of different families"),
            ("a_port", Value::Null, "a key has two ports"),
            ("icmp_type", json!(8), "a key has two ports"),
            ("icmp_is_one_way", json!(true), "parts of an ICMP key"),
            ("vni", json!(1 << 24), "24 bits"),
        ] {
            let mut key = key.clone();
            key[name] = value;
            let error = read(key).unwrap_err();
            assert!(error.contains(message), "{name}: {error}");
        }
        let mut reversed = key;
        (reversed["b_address"], reversed["a_port"]) = (json!("192.0.2.1"), json!(3));
        assert!(read(reversed.clone()).is_err(), "the same address, and a higher port");
        reversed["is_uniflow"] = json!(true);
        assert!(read(reversed).is_ok(), "end A of a uniflow is the sender");
    }
}
