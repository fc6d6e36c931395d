//! Spanning tree: STP, RSTP, MSTP and PVST+ (IEEE 802.1D-2004 clause 9, IEEE 802.1Q clause 14).

use std::time::Duration;

use super::reading::{Reading, text, whole};
use crate::codec::{ReadError, Reader};
use crate::session::Text;
use crate::session::kit::names;

names! {
    /// Version of the spanning tree.
    pub struct StpVersion: u8 { 0 => "stp", 2 => "rstp", 3 => "mstp", 4 => "spt" }
}

names! {
    /// Role of the port that sends a message.
    pub struct PortRole: u8 { 0 => "unknown", 1 => "alternate", 2 => "root", 3 => "designated" }
}

crate::message! {
    /// A message of the spanning tree: which bridge is the root, and what the path to it costs.
    #[derive(Clone, Debug, Default)]
    "neighbor.stp" pub struct Stp<'m> {
        /// Version of the protocol.
        pub stp_version: StpVersion,
        /// True if the topology changes.
        pub is_topology_change: bool,
        /// True if a change of the topology is acknowledged.
        pub is_topology_change_ack: bool [sparse],
        /// True if the port proposes to be the designated one (RSTP).
        pub is_proposal: Option<bool> [sparse],
        /// True if the port agrees (RSTP).
        pub is_agreement: Option<bool> [sparse],
        /// Role of the port (RSTP).
        pub port_role: Option<PortRole>,
        /// Priority of the root, with the identifier of the VLAN in its lowest 12 bits if there is one.
        pub root_priority: Option<u16>,
        /// MAC address of the root.
        pub root_mac: Option<[u8; 6]>,
        /// Cost of the path to the root.
        pub root_path_cost: Option<u32>,
        /// Priority of the bridge that sends the message.
        pub bridge_priority: Option<u16>,
        /// MAC address of the bridge that sends the message.
        pub bridge_mac: Option<[u8; 6]>,
        /// Number of the port, with its priority in the highest four bits.
        pub bridge_port: Option<u16>,
        /// Age of the information about the root.
        pub age_time: Option<Duration>,
        /// Age at which information is discarded.
        pub age_max_time: Option<Duration>,
        /// Interval between messages.
        pub hello_time: Option<Duration>,
        /// Time for which a port listens, and learns, before it forwards.
        pub forward_delay_time: Option<Duration>,
        /// Name of the region (MSTP).
        pub region_name: Option<Text<'m>>,
        /// Number of further instances (MSTP).
        pub instance_count: Option<u16>,
        /// VLAN of the tree (PVST+).
        pub tree_vlan_id: Option<u16>,
    }
}

/// Types of messages.
const CONFIGURATION: u8 = 0;
const RAPID: u8 = 2;
const TOPOLOGY_CHANGE: u8 = 0x80;

/// Length of the configuration of a region, and of that of an instance, in octets.
const REGION_LEN: u16 = 64;
const INSTANCE_LEN: u16 = 16;

impl<'m> Stp<'m> {
    pub(super) fn read(octets: &'m [u8]) -> Reading<Self> {
        let mut reader = Reader::new(octets);
        let (mut stp, is_notification) = whole(|| Self::head(&mut reader))?;
        let is_valid = is_notification || stp.region(&mut reader).is_ok();
        (stp.root_mac.is_some() || is_notification).then_some((stp, is_valid))
    }

    /// Reads what all versions have. Returns whether the message only states that the topology changes.
    fn head(reader: &mut Reader<'m>) -> Result<(Self, bool), ReadError> {
        let protocol: u16 = reader.be()?;
        let [version, kind] = reader.array()?;
        let mut stp = Self { stp_version: StpVersion(version), ..Self::default() };
        if protocol != 0 || !matches!(kind, CONFIGURATION | RAPID | TOPOLOGY_CHANGE) {
            return Ok((stp, false));
        }
        if kind == TOPOLOGY_CHANGE {
            stp.is_topology_change = true;
            return Ok((stp, true));
        }
        let flags: u8 = reader.be()?;
        stp.is_topology_change = flags & 1 != 0;
        stp.is_topology_change_ack = flags & 0x80 != 0;
        if kind == RAPID {
            stp.is_proposal = Some(flags & 2 != 0);
            stp.is_agreement = Some(flags & 0x40 != 0);
            stp.port_role = Some(PortRole(flags >> 2 & 3));
        }
        stp.root_priority = Some(reader.be()?);
        let root_mac = reader.array()?;
        stp.root_path_cost = Some(reader.be()?);
        stp.bridge_priority = Some(reader.be()?);
        stp.bridge_mac = Some(reader.array()?);
        stp.bridge_port = Some(reader.be()?);
        let mut time =
            || Ok(Some(Duration::from_nanos(u64::from(reader.be::<u16>()?) * 1_000_000_000 / 256)));
        stp.age_time = time()?;
        stp.age_max_time = time()?;
        stp.hello_time = time()?;
        stp.forward_delay_time = time()?;
        stp.root_mac = Some(root_mac);
        Ok((stp, false))
    }

    /// Reads what follows the common part: the region of MSTP, or the VLAN of PVST+. Padding is not read.
    fn region(&mut self, reader: &mut Reader<'m>) -> Result<(), ReadError> {
        if self.stp_version.0 < 3 {
            if self.stp_version.0 == 2 && !reader.is_empty() {
                // The length of a part that no version has.
                reader.skip(1)?;
            }
            if let [0, 0, 0, 0, 2, high, low, ..] | [0, 0, 0, 2, high, low, ..] = *reader.rest() {
                self.tree_vlan_id = Some(u16::from_be_bytes([high, low]));
            }
            return Ok(());
        }
        reader.skip(1)?;
        let len: u16 = reader.be()?;
        self.instance_count = Some(len.saturating_sub(REGION_LEN) / INSTANCE_LEN);
        reader.skip(1)?;
        let name = reader.bytes(32)?;
        self.region_name = Some(text(name));
        // The format, the name, and the rest that the length covers.
        reader.skip(usize::from(len).saturating_sub(33))
    }
}
