//! Fragments of the datagrams of selected flows. Only the first fragment of a datagram has ports, so that the others
//! belong to another flow.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::time::Duration;

use flowgauge::decode::extractor::{Extractor, PacketMarks};
use flowgauge::{Frame, IpProtocol, Limits, LinkType, Packet, Timestamp};

/// Maximum number of datagrams whose first fragment was selected that are known; the oldest is forgotten.
const KNOWN_MAX: usize = 1024;

/// Maximum number of fragments that wait for the first one of their datagram, and of their octets; the oldest are
/// forgotten.
const HELD_MAX: usize = 1024;
const HELD_LEN_MAX: usize = 1 << 20;

/// Time within which the fragments of a datagram arrive (RFC 8200 section 4.5).
const TIME_MAX: Duration = Duration::from_secs(60);

/// What the fragments of a datagram have in common: source, destination, identification, and for IPv4 the protocol. Later
/// fragments of IPv6 may state another protocol than the first one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Datagram {
    ends: [IpAddr; 2],
    identification: u32,
    protocol: Option<IpProtocol>,
}

/// A frame with a fragment that waits for the first one.
#[derive(Debug)]
pub(super) struct Held {
    datagram: Datagram,
    timestamp: Timestamp,
    link_type: LinkType,
    wire_len: u32,
    interface: u32,
    data: Box<[u8]>,
}

impl Held {
    pub(super) fn frame(&self) -> Frame<'_> {
        let mut frame = Frame::ethernet(self.timestamp, &self.data);
        (frame.link_type, frame.wire_len, frame.interface) = (self.link_type, self.wire_len, self.interface);
        frame
    }
}

/// Fragments of datagrams. Memory and work per fragment are bounded.
#[derive(Debug)]
pub(super) struct Fragments {
    extractor: Extractor,
    /// Datagrams whose first fragment was selected, and the time of that fragment, oldest first.
    known: VecDeque<(Datagram, Timestamp)>,
    held: VecDeque<Held>,
    held_len: usize,
    /// The datagram of the first fragment in the current frame, if it was selected.
    first: Option<Datagram>,
}

impl Fragments {
    pub(super) fn new(limits: Limits) -> Self {
        let extractor = Extractor::default().with_limits(limits);
        Self { extractor, known: VecDeque::new(), held: VecDeque::new(), held_len: 0, first: None }
    }

    /// Notes a fragment of a selected flow in the current frame.
    pub(super) fn selected(&mut self, packet: &Packet<'_>) {
        let Some((datagram, 0)) = datagram_of(packet) else { return };
        self.forget(&datagram);
        if self.known.len() >= KNOWN_MAX {
            self.known.pop_front();
        }
        self.known.push_back((datagram, packet.timestamp));
        self.first = Some(datagram);
    }

    /// Removes the frames with fragments that waited for the first one in the current frame, and returns them in the order
    /// of arrival.
    pub(super) fn awaited(&mut self) -> Vec<Held> {
        let Some(datagram) = self.first.take() else { return Vec::new() };
        let (of_datagram, others) = self.held.drain(..).partition(|held| held.datagram == datagram);
        self.held = others;
        self.held_len = self.held.iter().map(|held| held.data.len()).sum();
        let of_datagram: VecDeque<_> = of_datagram;
        of_datagram.into()
    }

    /// Returns whether a frame without a packet of a selected flow has a fragment of a selected datagram. Keeps a fragment
    /// of a datagram whose first one may arrive later.
    pub(super) fn selects(&mut self, frame: &Frame<'_>) -> bool {
        let Ok(packet) = self.extractor.extract(frame) else { return false };
        if !packet.marks.contains(PacketMarks::FRAGMENT) {
            return false;
        }
        let Some((datagram, offset)) = datagram_of(&packet) else { return false };
        if offset == 0 {
            // Another datagram with the same identification.
            self.forget(&datagram);
            return false;
        }
        let now = packet.timestamp;
        let is_of = |(known, time): &(Datagram, Timestamp)| {
            *known == datagram && now.saturating_since(*time) <= TIME_MAX
        };
        let is_known = self.known.iter().any(is_of);
        if !is_known {
            self.hold(datagram, frame);
        }
        is_known
    }

    fn forget(&mut self, datagram: &Datagram) {
        self.known.retain(|(known, _)| known != datagram);
    }

    fn hold(&mut self, datagram: Datagram, frame: &Frame<'_>) {
        let Frame { timestamp, link_type, data, wire_len, interface } = *frame;
        self.held_len += data.len();
        self.held.push_back(Held { datagram, timestamp, link_type, wire_len, interface, data: data.into() });
        while self.held.len() > HELD_MAX
            || self.held_len > HELD_LEN_MAX
            || self.held.front().is_some_and(|held| timestamp.saturating_since(held.timestamp) > TIME_MAX)
        {
            let Some(oldest) = self.held.pop_front() else { return };
            self.held_len -= oldest.data.len();
        }
    }
}

/// Returns the datagram of a fragment, and the offset of the fragment.
fn datagram_of(packet: &Packet<'_>) -> Option<(Datagram, u16)> {
    let (identification, offset) = packet.fragment()?;
    let ends = [packet.side, packet.side.other()].map(|side| packet.key.address(side));
    let protocol = ends[0].is_ipv4().then(|| packet.key.protocol());
    Some((Datagram { ends, identification, protocol }, offset))
}
