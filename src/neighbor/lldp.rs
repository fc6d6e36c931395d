//! LLDP: which device is at the other end of a cable, and at which of its ports (IEEE 802.1AB-2016; media endpoints:
//! ANSI/TIA-1057).

use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

use super::reading::{Reading, add, bits, text, v4, v6};
use crate::codec::{Prefix, ReadError, Reader};
use crate::row::Name;
use crate::session::Text;

crate::message! {
    /// An announcement of LLDP.
    #[derive(Clone, Debug, Default)]
    "neighbor.lldp" pub struct Lldp<'m> {
        /// Identifier of the device, such as its MAC address.
        pub chassis_id: Option<LldpId<'m>>,
        /// Kind of the identifier of the device.
        pub chassis_id_type: Option<LldpIdKind>,
        /// Identifier of the port of the device.
        pub port_id: Option<LldpId<'m>>,
        /// Kind of the identifier of the port.
        pub port_id_type: Option<LldpIdKind>,
        /// Time for which the announcement is valid; zero if the port shuts down.
        pub hold_time: Option<Duration>,
        /// Description of the port.
        pub port_description: Option<Text<'m>>,
        /// Name of the device.
        pub system_name: Option<Text<'m>>,
        /// Description of the device: hardware, operating system and its version.
        pub system_description: Option<Text<'m>>,
        /// What the device is able to do.
        pub system_capabilities: Vec<Name> [sparse],
        /// Capabilities that are in use.
        pub enabled_capabilities: Vec<Name> [sparse],
        /// Addresses by which the device is managed.
        pub management_addresses: Vec<IpAddr> [sparse],
        /// VLAN of frames without a tag at the port.
        pub port_vlan_id: Option<u16>,
        /// Names of the VLANs of the port.
        pub vlan_names: Vec<Text<'m>> [sparse],
        /// Longest frame of the port.
        pub frame_len_max: Option<u16> [octets],
        /// Revision of the hardware.
        pub hardware_revision: Option<Text<'m>>,
        /// Revision of the firmware.
        pub firmware_revision: Option<Text<'m>>,
        /// Revision of the software.
        pub software_revision: Option<Text<'m>>,
        /// Serial number.
        pub serial_number: Option<Text<'m>>,
        /// Manufacturer.
        pub manufacturer: Option<Text<'m>>,
        /// Model.
        pub model: Option<Text<'m>>,
    }
}

/// Kind of an identifier of a device or a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LldpIdKind {
    /// A component of the device or of a port.
    Component,
    /// The alias of an interface.
    InterfaceAlias,
    /// A MAC address.
    Mac,
    /// An address of IPv4 or IPv6, or of another network.
    Network,
    /// The name of an interface.
    InterfaceName,
    /// The circuit of an agent of DHCP.
    AgentCircuit,
    /// A name that was configured.
    Local,
    /// A reserved kind.
    Reserved,
}

crate::row::cells! {
    name LldpIdKind {
        Component => "component",
        InterfaceAlias => "interface_alias",
        Mac => "mac",
        Network => "network",
        InterfaceName => "interface_name",
        AgentCircuit => "agent_circuit",
        Local => "local",
        Reserved => "reserved",
    }
}

/// An identifier of a device or a port. Displayed as an address or a text; other octets are hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LldpId<'m> {
    kind: LldpIdKind,
    octets: &'m [u8],
}

crate::row::cells! { displayed LldpId<'m>; }

impl LldpId<'_> {
    /// Returns the MAC address, if the identifier is one.
    #[must_use]
    pub fn mac(&self) -> Option<[u8; 6]> {
        self.octets.try_into().ok().filter(|_| self.kind == LldpIdKind::Mac)
    }
}

impl fmt::Display for LldpId<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(mac) = self.mac() {
            return crate::row::Value::Mac(mac).fmt(f);
        }
        if self.kind == LldpIdKind::Network
            && let Some(address) = network_address(self.octets)
        {
            return write!(f, "{address}");
        }
        match std::str::from_utf8(self.octets) {
            Ok(text) if !text.chars().any(char::is_control) => f.write_str(text),
            _ => self.octets.iter().try_for_each(|octet| write!(f, "{octet:02x}")),
        }
    }
}

/// Reads an address with its family before it (IANA "Address Family Numbers").
fn network_address(octets: &[u8]) -> Option<IpAddr> {
    match octets.split_first()? {
        (1, address) => address.try_into().ok().map(v4),
        (2, address) => address.try_into().ok().map(v6),
        _ => None,
    }
}

/// Names of the capabilities, lowest bit first (IEEE 802.1AB-2016, table 8-4).
const CAPABILITIES: [&str; 11] = [
    "other",
    "repeater",
    "bridge",
    "wlan_access_point",
    "router",
    "telephone",
    "docsis_cable_device",
    "station",
    "c_vlan",
    "s_vlan",
    "two_port_mac_relay",
];

/// Organizations whose elements are read.
const IEEE_802_1: [u8; 3] = [0x00, 0x80, 0xc2];
const IEEE_802_3: [u8; 3] = [0x00, 0x12, 0x0f];
const TIA: [u8; 3] = [0x00, 0x12, 0xbb];

/// An element that is not valid.
struct Broken;

impl From<ReadError> for Broken {
    fn from(_: ReadError) -> Self {
        Self
    }
}

impl<'m> Lldp<'m> {
    /// Reads the elements, each with seven bits of type and nine bits of length, up to one of type zero.
    pub(super) fn read(octets: &'m [u8]) -> Reading<Self> {
        let mut reader = Reader::new(octets);
        let mut lldp = Self::default();
        let mut is_whole = false;
        while let Ok(head) = reader.be::<u16>() {
            let (kind, len) = (head >> 9, usize::from(head & 0x1ff));
            if kind == 0 {
                is_whole = true;
                break;
            }
            let Ok(content) = reader.bytes(len) else { break };
            if lldp.element(kind, content).is_err() {
                break;
            }
        }
        // An announcement begins with both identifiers.
        (lldp.chassis_id.is_some() && lldp.port_id.is_some()).then_some((lldp, is_whole))
    }

    fn element(&mut self, kind: u16, content: &'m [u8]) -> Result<(), Broken> {
        let mut reader = Reader::new(content);
        match kind {
            // An announcement has each of these once.
            1 if self.chassis_id.is_some() => return Err(Broken),
            2 if self.port_id.is_some() => return Err(Broken),
            3 if self.hold_time.is_some() => return Err(Broken),
            1 => {
                let kind = chassis_id_kind(reader.be()?);
                self.chassis_id_type = Some(kind);
                self.chassis_id = Some(LldpId { kind, octets: reader.rest() });
            }
            2 => {
                let kind = port_id_kind(reader.be()?);
                self.port_id_type = Some(kind);
                self.port_id = Some(LldpId { kind, octets: reader.rest() });
            }
            3 => self.hold_time = Some(Duration::from_secs(reader.be::<u16>()?.into())),
            4 => self.port_description = Some(text(content)),
            5 => self.system_name = Some(text(content)),
            6 => self.system_description = Some(text(content)),
            7 => {
                self.system_capabilities = bits(reader.be::<u16>()?.into(), &CAPABILITIES);
                self.enabled_capabilities = bits(reader.be::<u16>()?.into(), &CAPABILITIES);
            }
            8 => {
                let address = reader.prefixed(Prefix::U8)?;
                network_address(address)
                    .into_iter()
                    .for_each(|address| add(&mut self.management_addresses, address));
            }
            127 => {
                let organization = reader.array()?;
                let subtype = reader.be()?;
                self.organization(organization, subtype, &mut reader)?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Reads an element of an organization.
    fn organization(
        &mut self,
        organization: [u8; 3],
        subtype: u8,
        reader: &mut Reader<'m>,
    ) -> Result<(), ReadError> {
        let value = Some(text(reader.rest()));
        match (organization, subtype) {
            (IEEE_802_1, 1) => self.port_vlan_id = Some(reader.be()?),
            (IEEE_802_1, 3) => {
                reader.skip(2)?;
                add(&mut self.vlan_names, text(reader.prefixed(Prefix::U8)?));
            }
            (IEEE_802_3, 4) => self.frame_len_max = Some(reader.be()?),
            (TIA, 5) => self.hardware_revision = value,
            (TIA, 6) => self.firmware_revision = value,
            (TIA, 7) => self.software_revision = value,
            (TIA, 8) => self.serial_number = value,
            (TIA, 9) => self.manufacturer = value,
            (TIA, 10) => self.model = value,
            _ => {}
        }
        Ok(())
    }
}

/// Table 8-2.
const fn chassis_id_kind(subtype: u8) -> LldpIdKind {
    match subtype {
        1 | 3 => LldpIdKind::Component,
        2 => LldpIdKind::InterfaceAlias,
        4 => LldpIdKind::Mac,
        5 => LldpIdKind::Network,
        6 => LldpIdKind::InterfaceName,
        7 => LldpIdKind::Local,
        _ => LldpIdKind::Reserved,
    }
}

/// Table 8-3.
const fn port_id_kind(subtype: u8) -> LldpIdKind {
    match subtype {
        1 => LldpIdKind::InterfaceAlias,
        2 => LldpIdKind::Component,
        3 => LldpIdKind::Mac,
        4 => LldpIdKind::Network,
        5 => LldpIdKind::InterfaceName,
        6 => LldpIdKind::AgentCircuit,
        7 => LldpIdKind::Local,
        _ => LldpIdKind::Reserved,
    }
}
