//! Answers of the endpoint mapper: where a server offers an interface.
//!
//! Standard: C706 appendices I and L (protocol towers), and `ept_map` in appendix O.

use std::net::{IpAddr, Ipv4Addr};

use super::fields::Fields;
use super::rows::{Endpoint, EndpointTransport, Uuid};
use crate::codec::{ReadError, Reader};
use crate::session::kit::Kept;

/// Interface of the endpoint mapper.
pub(super) const MAPPER: u128 = 0xe1af8308_5d1f_11c9_91a4_08002b14a0fa;

/// Maximum number of towers and of floors that are read.
const TOWER_COUNT_MAX: u32 = 16;
const FLOOR_COUNT_MAX: u16 = 8;

/// Identifiers of protocols on the floors of a tower.
const INTERFACE: u8 = 0x0d;
const IP: u8 = 0x09;

/// Passes on the endpoints in the results of `ept_map`. Results that state another layout have none.
pub(super) fn mapped(fields: &mut Fields<'_>, mut pass: impl FnMut(Endpoint)) -> Result<(), ReadError> {
    // The handle of the client.
    fields.reader.skip(20)?;
    let [count, _, offset, listed]: [u32; 4] =
        [fields.number()?, fields.number()?, fields.number()?, fields.number()?];
    if offset != 0 || listed != count {
        return Ok(());
    }
    let count = count.min(TOWER_COUNT_MAX) as usize;
    fields.reader.skip(4 * listed as usize)?;
    for _ in 0..count {
        let [size, len]: [u32; 2] = [fields.number()?, fields.number()?];
        if size != len {
            return Ok(());
        }
        let octets = fields.reader.bytes(len as usize)?;
        fields.reader.skip(octets.len().wrapping_neg() % 4)?;
        if let Ok(endpoint) = tower(Reader::new(octets)) {
            pass(endpoint);
        }
    }
    Ok(())
}

/// Reads a tower, whose numbers have their least significant octet first, except for ports.
fn tower(mut reader: Reader<'_>) -> Result<Endpoint, ReadError> {
    let count: u16 = reader.le()?;
    let mut endpoint = Endpoint::default();
    for _ in 0..count.min(FLOOR_COUNT_MAX) {
        let len: u16 = reader.le()?;
        let left = reader.bytes(len.into())?;
        let len: u16 = reader.le()?;
        let right = reader.bytes(len.into())?;
        match (left, right) {
            // The transfer syntax is on the second floor.
            ([INTERFACE, uuid @ ..], _) if endpoint.interface_id.is_none() => {
                let uuid = uuid.first_chunk().map(|octets| Uuid::of_little(*octets));
                endpoint.interface_id = uuid;
                let interface = uuid.and_then(Uuid::interface);
                endpoint.interface = interface.map(|interface| Kept::new(interface.name.as_bytes()));
            }
            ([IP], [a, b, c, d]) => {
                let address = Ipv4Addr::new(*a, *b, *c, *d);
                // The client has to take the address of the mapper.
                endpoint.mapped_address = (!address.is_unspecified()).then_some(IpAddr::V4(address));
            }
            ([protocol], [high, low]) if EndpointTransport(*protocol).has_port() => {
                endpoint.mapped_transport = Some(EndpointTransport(*protocol));
                endpoint.mapped_port = Some(u16::from_be_bytes([*high, *low]));
            }
            ([protocol], name) if EndpointTransport(*protocol).has_name() => {
                endpoint.mapped_transport = Some(EndpointTransport(*protocol));
                endpoint.mapped_name = Some(Kept::new(name.strip_suffix(b"\0").unwrap_or(name)));
            }
            _ => {}
        }
    }
    Ok(endpoint)
}
