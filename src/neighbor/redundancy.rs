//! Routers that share an address: VRRP (RFC 3768, RFC 9568) and HSRP (RFC 2281; version 2 as the vendor publishes it).

use std::net::IpAddr;
use std::time::Duration;

use super::reading::{Reading, add, counted, v4, v6, whole};
use crate::codec::{ReadError, Reader};
use crate::row::Name;
use crate::session::kit::names;

names! {
    /// State of a router of HSRP (RFC 2281 section 5.1, by the numbers of version 1).
    pub struct RedundancyState: u8 {
        0 => "initial", 1 => "learn", 2 => "listen", 4 => "speak", 8 => "standby", 16 => "active",
    }
}

/// First and fourth octet of a message of CARP, and its length in octets. A message of VRRP with as many addresses is longer.
const CARP: (u8, u8) = (0x21, 7);
const CARP_LEN: usize = 36;
/// Length of the authentication of VRRP (RFC 2338 section 5.3.10), which later versions keep, in octets.
const AUTHENTICATION_LEN: usize = 8;
/// Element of HSRP with the authentication by MD5.
const MD5: u8 = 4;

crate::message! {
    /// A message of VRRP or HSRP.
    #[derive(Clone, Debug, Default)]
    "neighbor.redundancy" pub struct Redundancy {
        /// Version of the protocol.
        pub redundancy_version: u8,
        /// Kind of the message: `advertisement` of VRRP; `carp` of CARP, which has the same IP protocol; `hello`, `coup` or `resign`
        /// of HSRP.
        pub redundancy_type: Option<Name>,
        /// Number of the group of routers.
        pub router_group: Option<u16>,
        /// Priority of the sender: the highest one has the address. Zero of VRRP: the sender gives it up.
        pub router_priority: Option<u32>,
        /// State of the sender (HSRP).
        pub router_state: Option<RedundancyState>,
        /// Addresses that the routers share.
        pub virtual_addresses: Vec<IpAddr> [sparse],
        /// Interval between messages.
        pub hello_time: Option<Duration>,
        /// Time without a message after which another router takes the address (HSRP).
        pub hold_time: Option<Duration>,
        /// Kind of authentication: `text`, which every host of the link can read, or `md5`; null if there is none.
        pub authentication: Option<Name>,
    }
}

impl Redundancy {
    /// Reads a message of VRRP in IPv4 or IPv6.
    pub(super) fn read_vrrp(octets: &[u8], is_v6: bool) -> Reading<Self> {
        let mut reader = Reader::new(octets);
        whole(|| {
            let [version_and_kind, group, priority, count] = reader.array()?;
            if !is_v6 && (version_and_kind, count) == CARP && octets.len() == CARP_LEN {
                return Ok((Self::carp(&mut reader, group)?, true));
            }
            let mut message = Self {
                redundancy_version: version_and_kind >> 4,
                redundancy_type: (version_and_kind & 0xf == 1).then_some(Name("advertisement")),
                router_group: Some(group.into()),
                router_priority: Some(priority.into()),
                ..Self::default()
            };
            let is_whole = message.vrrp_rest(&mut reader, (count.into(), is_v6));
            Ok((message, is_whole.unwrap_or(false)))
        })
    }

    /// Reads a message of CARP after its first four octets, which would state seven addresses in VRRP.
    fn carp(reader: &mut Reader<'_>, group: u8) -> Result<Self, ReadError> {
        let [_, base_seconds] = reader.array()?;
        Ok(Self {
            redundancy_version: 2,
            redundancy_type: Some(Name("carp")),
            router_group: Some(group.into()),
            hello_time: Some(Duration::from_secs(base_seconds.into())),
            ..Self::default()
        })
    }

    /// Reads what follows the count of addresses. Returns whether all of it is there.
    fn vrrp_rest(&mut self, reader: &mut Reader<'_>, (count, is_v6): (u16, bool)) -> Result<bool, ReadError> {
        let interval: [u8; 2] = reader.array()?;
        reader.skip(2)?;
        let (addresses, is_whole) = counted(reader, count, is_v6);
        self.virtual_addresses = addresses;
        if self.redundancy_version >= 3 {
            let hundredths = u16::from_be_bytes(interval) & 0x0fff;
            self.hello_time = Some(Duration::from_millis(u64::from(hundredths) * 10));
            return Ok(is_whole);
        }
        let [kind, seconds] = interval;
        self.hello_time = Some(Duration::from_secs(seconds.into()));
        if kind == 1 {
            self.authentication = Some(Name("text"));
            return Ok(is_whole && reader.remaining_len() >= AUTHENTICATION_LEN);
        } else if kind == 2 {
            self.authentication = Some(Name("md5"));
        }
        Ok(is_whole)
    }

    /// Reads a message of HSRP.
    pub(super) fn read_hsrp(octets: &[u8]) -> Reading<Self> {
        let mut reader = Reader::new(octets);
        if octets.first() == Some(&0) {
            return whole(|| Ok((Self::hsrp_1(&mut reader)?, true)));
        }
        let mut message = Self { redundancy_version: 2, ..Self::default() };
        while !reader.is_empty() {
            if message.hsrp_2(&mut reader).is_err() {
                return message.router_group.is_some().then_some((message, false));
            }
        }
        message.redundancy_type.is_some().then_some((message, true))
    }

    fn hsrp_1(reader: &mut Reader<'_>) -> Result<Self, ReadError> {
        let [_, operation, state, hello_seconds, hold_seconds, priority, group, _] = reader.array()?;
        let mut message =
            Self { redundancy_version: 1, redundancy_type: operation_name(operation), ..Self::default() };
        if operation > 2 {
            // An advertisement has other fields.
            return Ok(message);
        }
        message.router_state = Some(RedundancyState(state));
        message.router_group = Some(group.into());
        message.router_priority = Some(priority.into());
        message.hello_time = Some(Duration::from_secs(hello_seconds.into()));
        message.hold_time = Some(Duration::from_secs(hold_seconds.into()));
        let password: [u8; 8] = reader.array()?;
        message.authentication = (password != [0; 8]).then_some(Name("text"));
        add(&mut message.virtual_addresses, v4(reader.array()?));
        // MD5 is an element after the message, as in version 2.
        if reader.rest().first() == Some(&MD5) {
            message.authentication = Some(Name("md5"));
        }
        Ok(message)
    }

    /// Reads an element of version 2: type and length, which does not count them.
    fn hsrp_2(&mut self, reader: &mut Reader<'_>) -> Result<(), ReadError> {
        let [kind, len] = reader.array()?;
        let content = reader.bytes(len.into())?;
        let mut fields = Reader::new(content);
        match kind {
            1 => {
                let [_, operation, state, ip_version] = fields.array()?;
                self.redundancy_type = operation_name(operation);
                // States are counted from zero, without the gaps of version 1.
                self.router_state =
                    [0, 0, 1, 2, 4, 8, 16].get(usize::from(state)).map(|state| RedundancyState(*state));
                self.router_group = Some(fields.be()?);
                fields.skip(6)?;
                self.router_priority = Some(fields.be()?);
                self.hello_time = Some(Duration::from_millis(fields.be::<u32>()?.into()));
                self.hold_time = Some(Duration::from_millis(fields.be::<u32>()?.into()));
                let address = if ip_version == 6 { v6(fields.array()?) } else { v4(fields.array()?) };
                add(&mut self.virtual_addresses, address);
            }
            2 => self.redundancy_type = self.redundancy_type.or(Some(Name("interface_state"))),
            3 => self.authentication = Some(Name("text")),
            MD5 => self.authentication = Some(Name("md5")),
            _ => {}
        }
        Ok(())
    }
}

const fn operation_name(operation: u8) -> Option<Name> {
    match operation {
        0 => Some(Name("hello")),
        1 => Some(Name("coup")),
        2 => Some(Name("resign")),
        3 => Some(Name("advertisement")),
        _ => None,
    }
}
