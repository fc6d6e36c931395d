//! Reassembled datagram, as a frame that can be walked.

use std::net::IpAddr;

use super::fragment::{Completed, DatagramKey};
use super::link::Entry;
use super::tag::Tag;
use crate::base::{Frame, IpProtocol, LinkType};
use crate::wire::ethernet::{self, ADDRESSES_LEN};
use crate::wire::ip::is_ipv6;
use crate::wire::ipv4::{self, Ipv4Header};
use crate::wire::ipv6::{self, Ipv6Header};
use crate::wire::ipv6_extension;

/// Buffer with a reassembled datagram: hardware addresses, an IP header without options, and the payload. Its
/// memory, at most 64 KiB, is reused for the next datagram.
#[derive(Debug, Default)]
pub(super) struct Datagram {
    octets: Vec<u8>,
    /// Octets of the datagram on the wire, some of which may be missing because of a snap length.
    wire_len: u32,
}

impl Datagram {
    /// Returns whether the buffer contains no datagram.
    pub(super) const fn is_empty(&self) -> bool {
        self.octets.is_empty()
    }

    /// Replaces the content of the buffer with a complete datagram.
    pub(super) fn put_together(&mut self, completed: &Completed<'_, Tag>) {
        self.write_header(&completed.key, completed.protocol, completed.payload_len, false);
        self.wire_len = self.octets.len() as u32 + completed.payload_len;
        self.octets.extend_from_slice(completed.payload);
    }

    /// Replaces the content of the buffer with the first octets of an incomplete datagram, in the form of its
    /// first fragment.
    pub(super) fn put_head(&mut self, key: &DatagramKey, protocol: IpProtocol, head: &[u8]) {
        self.write_header(key, protocol, head.len() as u32, true);
        self.octets.extend_from_slice(head);
        self.wire_len = self.octets.len() as u32;
    }

    /// Writes the IP header of a datagram. The hardware addresses, the time to live and the type of service
    /// are written later, by [`frame`](Self::frame).
    fn write_header(&mut self, key: &DatagramKey, protocol: IpProtocol, payload_len: u32, is_first: bool) {
        self.octets.clear();
        self.octets.extend([0; ADDRESSES_LEN]);
        // The pool refuses lengths that no length field can hold.
        let len = |header_len: usize| (header_len as u16).saturating_add(payload_len as u16);
        match (key.source(), key.destination()) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                let total_len = len(ipv4::HEADER_LEN_MIN);
                let has_more_fragments = is_first;
                let header = Ipv4Header { total_len, has_more_fragments, protocol, source, destination };
                self.octets.extend(header.to_octets());
            }
            (IpAddr::V6(source), IpAddr::V6(destination)) => {
                let (payload_len, next_header) = if is_first {
                    (len(ipv6_extension::FRAGMENT_LEN), IpProtocol::IPV6_FRAG)
                } else {
                    (len(0), protocol)
                };
                let header = Ipv6Header { payload_len, next_header, hop_limit: 0, source, destination };
                self.octets.extend(header.to_octets());
                if is_first {
                    self.octets.extend(ipv6_extension::first_fragment(protocol));
                }
            }
            _ => debug_assert!(false, "both addresses of a key are of one family"),
        }
    }

    /// Returns the datagram as if it had arrived unfragmented in the frame that `tag` describes, and an entry
    /// with the position of its IP header, from which a walk can start.
    pub(super) fn frame(&mut self, tag: &Tag) -> (Frame<'_>, Entry) {
        let link = match ethernet::addresses_mut(&mut self.octets) {
            Some(addresses) => tag.link(addresses),
            None => Default::default(),
        };
        let (traffic_class, hop_limit) = tag.service();
        match self.octets.get_mut(ADDRESSES_LEN..) {
            Some(packet) if is_ipv6(packet) => ipv6::set_service(packet, traffic_class, hop_limit),
            Some(packet) => ipv4::set_service(packet, traffic_class, hop_limit),
            None => {}
        }
        let (timestamp, interface) = tag.captured();
        let Self { wire_len, .. } = *self;
        let frame = Frame { timestamp, link_type: LinkType::RAW, data: &self.octets, wire_len, interface };
        (frame, Entry { offset: ADDRESSES_LEN, link })
    }
}
