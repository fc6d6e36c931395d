//! CDP: which device of Cisco is at the other end of a cable, and at which of its ports. The format is that which the vendor
//! publishes for its switches; numbers of elements that it does not publish are those of tcpdump's output.

use std::net::IpAddr;
use std::time::Duration;

use super::reading::{Reading, add, bits, text, v4, v6, whole};
use crate::codec::{ReadError, Reader};
use crate::row::Name;
use crate::session::Text;

crate::message! {
    /// An announcement of CDP.
    #[derive(Clone, Debug, Default)]
    "neighbor.cdp" pub struct Cdp<'m> {
        /// Version of CDP.
        pub cdp_version: u8,
        /// Time for which the announcement is valid.
        pub hold_time: Duration,
        /// Name of the device.
        pub device_id: Option<Text<'m>>,
        /// Identifier of the port of the device.
        pub port_id: Option<Text<'m>>,
        /// Name of the device as SNMP has it.
        pub system_name: Option<Text<'m>>,
        /// Addresses of the port.
        pub port_addresses: Vec<IpAddr> [sparse],
        /// Addresses by which the device is managed.
        pub management_addresses: Vec<IpAddr> [sparse],
        /// What the device does.
        pub system_capabilities: Vec<Name> [sparse],
        /// Version of the software.
        pub software_version: Option<Text<'m>>,
        /// Model of the device.
        pub platform: Option<Text<'m>>,
        /// Domain of VTP.
        pub vtp_domain: Option<Text<'m>>,
        /// VLAN of frames without a tag at the port.
        pub port_vlan_id: Option<u16>,
        /// VLAN for telephones.
        pub voice_vlan_id: Option<u16>,
        /// True if the port is full-duplex.
        pub is_full_duplex: Option<bool>,
    }
}

/// Names of the capabilities, lowest bit first.
const CAPABILITIES: [&str; 9] = [
    "router",
    "transparent_bridge",
    "source_route_bridge",
    "switch",
    "host",
    "igmp",
    "repeater",
    "telephone",
    "remotely_managed",
];

impl<'m> Cdp<'m> {
    pub(super) fn read(octets: &'m [u8]) -> Reading<Self> {
        let mut reader = Reader::new(octets);
        let mut cdp = whole(|| {
            let [cdp_version, seconds] = reader.array()?;
            reader.skip(2)?;
            let hold_time = Duration::from_secs(u64::from(seconds));
            Ok((Self { cdp_version, hold_time, ..Self::default() }, true))
        })?
        .0;
        while !reader.is_empty() {
            if cdp.element(&mut reader).is_err() {
                return Some((cdp, false));
            }
        }
        Some((cdp, true))
    }

    /// Reads an element: type and length of 16 bits each, which count.
    fn element(&mut self, reader: &mut Reader<'m>) -> Result<(), ReadError> {
        let kind: u16 = reader.be()?;
        let len = usize::from(reader.be::<u16>()?);
        // A length below that of its head is not valid: the read fails.
        let content = reader.bytes(len.checked_sub(4).unwrap_or(usize::MAX))?;
        let mut fields = Reader::new(content);
        let value = Some(text(content));
        match kind {
            0x01 => self.device_id = value,
            0x02 => self.port_addresses = addresses(&mut fields)?,
            0x03 => self.port_id = value,
            0x04 => self.system_capabilities = bits(fields.be()?, &CAPABILITIES),
            0x05 => self.software_version = value,
            0x06 => self.platform = value,
            0x09 => self.vtp_domain = value,
            0x0a => self.port_vlan_id = Some(fields.be()?),
            0x0b => self.is_full_duplex = Some(fields.be::<u8>()? != 0),
            0x0e if content.len() == 3 => {
                fields.skip(1)?;
                self.voice_vlan_id = Some(fields.be()?);
            }
            0x14 => self.system_name = value,
            0x16 => self.management_addresses = addresses(&mut fields)?,
            _ => {}
        }
        Ok(())
    }
}

/// Reads a list of addresses, each with its protocol; those of other protocols than IP are skipped.
fn addresses(reader: &mut Reader<'_>) -> Result<Vec<IpAddr>, ReadError> {
    let mut list = Vec::new();
    for _ in 0..reader.be::<u32>()? {
        reader.skip(1)?;
        let len: u8 = reader.be()?;
        let protocol = reader.bytes(len.into())?;
        let len: u16 = reader.be()?;
        let address = reader.bytes(len.into())?;
        let address = match protocol {
            [0xcc] => address.try_into().ok().map(v4),
            [.., 0x86, 0xdd] => address.try_into().ok().map(v6),
            _ => None,
        };
        address.into_iter().for_each(|address| add(&mut list, address));
    }
    Ok(list)
}
