//! A datagram put together, in the shape of a frame that can be walked.

use super::fragments::Tag;
use crate::base::{Frame, IpProtocol, LinkType};
use crate::fragment::{Completed, DatagramKey};
use crate::link::{Entry, MacAddresses};

const IPV4_HEADER_LEN: usize = 20;
const IPV6_FRAGMENT_HEADER_LEN: usize = 8;

/// Hardware addresses, an IP header without options, and the payload; at most 64 KiB, kept for the next datagram.
#[derive(Debug, Default)]
pub(super) struct Datagram {
    octets: Vec<u8>,
    /// Octets as they were on the wire, of which a snap length may have cut some.
    wire_len: u32,
}

impl Datagram {
    /// Octets of two hardware addresses, destination and source, as in Ethernet.
    pub(super) const ADDRESSES_LEN: usize = 12;

    /// Whether nothing was put together.
    pub(super) const fn is_empty(&self) -> bool {
        self.octets.is_empty()
    }

    /// Writes hardware addresses as Ethernet has them; what of them is known.
    pub(super) fn write_addresses(
        addresses: &mut [u8; Self::ADDRESSES_LEN],
        destination: Option<[u8; 6]>,
        source: Option<[u8; 6]>,
    ) -> MacAddresses {
        let (to, from) = addresses.split_at_mut(6);
        to.copy_from_slice(&destination.unwrap_or_default());
        from.copy_from_slice(&source.unwrap_or_default());
        match (destination, source) {
            (Some(_), Some(_)) => MacAddresses::ethernet(0),
            (None, Some(_)) => MacAddresses::source_only(6),
            _ => MacAddresses::NONE,
        }
    }

    /// Copies a datagram that is whole.
    pub(super) fn put_together(&mut self, completed: &Completed<'_, Tag>) {
        self.write_header(&completed.key, completed.protocol, completed.payload_len, false);
        self.wire_len = self.octets.len() as u32 + completed.payload_len;
        self.octets.extend_from_slice(completed.payload);
    }

    /// Copies the first octets of one that never became whole, as the first fragment that they are.
    pub(super) fn put_head(&mut self, key: &DatagramKey, protocol: IpProtocol, head: &[u8]) {
        self.write_header(key, protocol, head.len() as u32, true);
        self.octets.extend_from_slice(head);
        self.wire_len = self.octets.len() as u32;
    }

    /// Addresses, time to live and service are written with the frame.
    fn write_header(&mut self, key: &DatagramKey, protocol: IpProtocol, payload_len: u32, is_first: bool) {
        const MORE_FRAGMENTS_V4: u8 = 0x20;
        const MORE_FRAGMENTS_V6: u8 = 1;
        self.octets.clear();
        self.octets.extend([0; Self::ADDRESSES_LEN]);
        // The pool refuses what no length field could say.
        let len = |header_len: usize| (header_len as u16).saturating_add(payload_len as u16).to_be_bytes();
        match (key.source(), key.destination()) {
            (std::net::IpAddr::V4(source), std::net::IpAddr::V4(destination)) => {
                let [high, low] = len(IPV4_HEADER_LEN);
                let flags = if is_first { MORE_FRAGMENTS_V4 } else { 0 };
                self.octets.extend([0x45, 0, high, low, 0, 0, flags, 0, 0, protocol.0, 0, 0]);
                self.octets.extend(source.octets().into_iter().chain(destination.octets()));
            }
            (source, destination) => {
                let extension_len = if is_first { IPV6_FRAGMENT_HEADER_LEN } else { 0 };
                let next = if is_first { IpProtocol::IPV6_FRAG } else { protocol };
                let [high, low] = len(extension_len);
                self.octets.extend([0x60, 0, 0, 0, high, low, next.0, 0]);
                for address in [source, destination] {
                    if let std::net::IpAddr::V6(address) = address {
                        self.octets.extend(address.octets());
                    }
                }
                if is_first {
                    self.octets.extend([protocol.0, 0, 0, MORE_FRAGMENTS_V6, 0, 0, 0, 0]);
                }
            }
        }
    }

    /// The datagram as if it had come whole in the frame that a tag is of, and where its IP header is.
    pub(super) fn frame(&mut self, tag: &Tag) -> (Frame<'_>, Entry) {
        let link = match self.octets.first_chunk_mut() {
            Some(addresses) => tag.link(addresses),
            None => Default::default(),
        };
        match self.octets.get_mut(Self::ADDRESSES_LEN..) {
            Some([version, low, _, _, _, _, _, hop_limit, ..]) if *version >> 4 == 6 => {
                let (class, limit) = tag.service();
                (*version, *low, *hop_limit) = (0x60 | class >> 4, class << 4, limit);
            }
            Some([_, service, _, _, _, _, _, _, time_to_live, ..]) => {
                (*service, *time_to_live) = tag.service();
            }
            _ => {}
        }
        let (timestamp, interface) = tag.captured();
        let Self { wire_len, .. } = *self;
        let frame = Frame { timestamp, link_type: LinkType::RAW, data: &self.octets, wire_len, interface };
        (frame, Entry { offset: Self::ADDRESSES_LEN, link })
    }
}
