//! Who has which hardware address: ARP (RFC 826) and IPv6 neighbour discovery (RFC 4861) for an end of one's own.

#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

mod config;
mod frame;
mod hear;

use std::net::{IpAddr, Ipv6Addr};

use ahash::RandomState;
use lru::LruCache;

pub use self::config::{NeighbourConfig, NeighbourError, NeighbourStats};
pub use self::frame::NeighbourFrame;
use self::frame::{group_v4, group_v6};
pub use self::hear::Heard;
use super::EthernetHeader;
use crate::base::Timestamp;
use crate::wire::arp::{self, ArpPacket};
use crate::wire::ndp::{self, NeighbourMessage, NeighbourMessageKind};

/// What is known of the way to a next hop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Resolution {
    /// Frames go there.
    Known {
        /// The hardware address.
        hardware_address: [u8; 6],
        /// A request to send along, as the answer is about to expire.
        refresh: Option<NeighbourFrame>,
    },
    /// Nothing yet: send this request, and keep or drop the packet.
    Request(NeighbourFrame),
    /// Nothing yet, and the last request is too young for another.
    Waiting,
    /// It is a local address: the packet is for this end.
    Local,
    /// Nobody can be asked: an unspecified or loopback address, or there is no local address of its family to ask from.
    Unreachable,
}

#[derive(Clone, Copy, Debug)]
struct Neighbour {
    hardware_address: [u8; 6],
    expires: Timestamp,
    asked: Timestamp,
}

#[derive(Clone, Copy, Debug)]
struct Request {
    source: IpAddr,
    asked: Timestamp,
}

/// The hardware addresses of neighbours, learned only from replies to its own requests, and answers for the local
/// addresses.
///
/// Does no input or output and reads no clock: frames are handed in by [`hear`](Self::hear), frames to send are
/// returned, and time is what the caller says (a step back counts as no step).
///
/// A reply is believed if it answers a request that is at most `request_interval` old, comes to the hardware and
/// protocol address that asked, and names the source of its frame as the hardware address. The first such reply ends
/// the request. Whoever sees the request (a host on the link) can still answer before the right one does: neither
/// protocol has a defence against that. Everything else is counted and changes nothing: see [`NeighbourStats`].
///
/// Bounded by `neighbour_count_max` and `neighbour_request_count_max` of [`Limits`](crate::base::Limits), apart from
/// each other, so that asking for a million absent hosts (RFC 6583) pushes out no neighbour that is there; the least
/// recently used makes room. Constant time per call unless said otherwise, with a keyed hash; one allocation per new
/// neighbour or request, none for what is known.
///
/// ```
/// use flowgauge::base::Timestamp;
/// use flowgauge::link::{Heard, NeighbourConfig, NeighbourTable, Resolution};
///
/// let end = |address: u8| -> Result<_, flowgauge::link::NeighbourError> {
///     let mut table = NeighbourTable::new(NeighbourConfig::new([2, 0, 0, 0, 0, address]))?;
///     table.add_local([10, 0, 0, address].into())?;
///     Ok(table)
/// };
/// let (mut here, mut there) = (end(1)?, end(2)?);
/// let now = Timestamp::from_parts(1, 0);
/// let Resolution::Request(request) = here.resolve([10, 0, 0, 2].into(), now) else { panic!("known already") };
/// let Heard::Request(reply) = there.hear(&request, now) else { panic!("not answered") };
/// assert!(matches!(here.hear(&reply, now), Heard::Learned { .. }));
/// assert_eq!(here.lookup([10, 0, 0, 2].into()), Some([2, 0, 0, 0, 0, 2]));
/// # Ok::<(), flowgauge::link::NeighbourError>(())
/// ```
#[derive(Debug)]
pub struct NeighbourTable {
    config: NeighbourConfig,
    now: Timestamp,
    /// In order, for a binary search.
    local: Vec<IpAddr>,
    neighbours: LruCache<IpAddr, Neighbour, RandomState>,
    requests: LruCache<IpAddr, Request, RandomState>,
    stats: NeighbourStats,
}

impl NeighbourTable {
    /// An empty table. Allocates as it fills.
    ///
    /// # Errors
    ///
    /// [`NeighbourError`] for a hardware address that is no station's, and for a cap of zero.
    pub fn new(config: NeighbourConfig) -> Result<Self, NeighbourError> {
        if !is_station(config.hardware_address) {
            return Err(NeighbourError::HardwareAddress);
        }
        if config.limits.neighbour_count_max == 0 || config.limits.neighbour_request_count_max == 0 {
            return Err(NeighbourError::NoRoom);
        }
        Ok(Self {
            config,
            now: Timestamp::ZERO,
            local: Vec::new(),
            neighbours: LruCache::unbounded_with_hasher(RandomState::new()),
            requests: LruCache::unbounded_with_hasher(RandomState::new()),
            stats: NeighbourStats::default(),
        })
    }

    /// Makes an address one of this end: requests for it are answered, and requests may come from it. What was known
    /// of it as a neighbour's is forgotten. Linear in the local addresses, which only the caller adds.
    ///
    /// # Errors
    ///
    /// [`NeighbourError::LocalAddress`] if it is not the address of a single host.
    pub fn add_local(&mut self, address: IpAddr) -> Result<(), NeighbourError> {
        if !is_host(address) {
            return Err(NeighbourError::LocalAddress);
        }
        if let Err(place) = self.local.binary_search(&address) {
            self.local.insert(place, address);
        }
        self.neighbours.pop(&address);
        self.requests.pop(&address);
        Ok(())
    }

    /// Takes a local address away; requests that were made from it get no answer any more. Whether it was one. Linear
    /// in the local addresses.
    pub fn remove_local(&mut self, address: IpAddr) -> bool {
        let place = self.local.binary_search(&address);
        place.map(|place| self.local.remove(place)).is_ok()
    }

    /// The local addresses, in order.
    #[must_use]
    pub fn local(&self) -> &[IpAddr] {
        &self.local
    }

    /// The way to a next hop (routing is the caller's), and the request to send if it is not known, or not for long.
    ///
    /// Groups and 255.255.255.255 are known without asking; the broadcast address of a subnet is not recognised. At
    /// most one request per `request_interval` and address, as long as the address is in the table.
    pub fn resolve(&mut self, address: IpAddr, now: Timestamp) -> Resolution {
        self.step(now);
        if let Some(hardware_address) = group(address) {
            return Resolution::Known { hardware_address, refresh: None };
        }
        if self.is_local(address) {
            return Resolution::Local;
        }
        if !is_host(address) {
            return Resolution::Unreachable;
        }
        self.drop_expired(address);
        let (now, config) = (self.now, self.config);
        let may_ask = |asked: Timestamp| asked.saturating_add(config.request_interval) <= now;
        let is_outstanding = self.requests.peek(&address).is_some_and(|request| !may_ask(request.asked));
        if let Some(neighbour) = self.neighbours.get(&address).copied() {
            let is_due = neighbour.expires.saturating_since(now) <= config.lifetime / 4;
            let asks = is_due && may_ask(neighbour.asked) && !is_outstanding;
            let refresh = if asks { self.request(address) } else { None };
            return Resolution::Known { hardware_address: neighbour.hardware_address, refresh };
        }
        if is_outstanding {
            return Resolution::Waiting;
        }
        match self.request(address) {
            Some(frame) => Resolution::Request(frame),
            None => Resolution::Unreachable,
        }
    }

    /// The hardware address of a neighbour, if it is known at the time of the last call that had one. Does not count
    /// as use.
    #[must_use]
    pub fn lookup(&self, address: IpAddr) -> Option<[u8; 6]> {
        let neighbour = self.neighbours.peek(&address)?;
        (neighbour.expires > self.now).then_some(neighbour.hardware_address)
    }

    /// The header of frames from this end to a hardware address, on its VLAN; for
    /// [`ip_to_ethernet`](super::ip_to_ethernet).
    #[must_use]
    pub fn header_to(&self, hardware_address: [u8; 6]) -> EthernetHeader {
        EthernetHeader::new(hardware_address, self.config.hardware_address, self.config.vlan_ids)
    }

    /// Lets time pass: forgets neighbours whose lifetime ended and requests without answer. Linear in the table; calling
    /// it is optional, since nothing is believed longer either way.
    pub fn advance(&mut self, now: Timestamp) {
        self.step(now);
        let (now, interval) = (self.now, self.config.request_interval);
        let before = self.neighbours.len();
        self.neighbours.retain(|_, neighbour| neighbour.expires > now);
        self.stats.expired_count += (before - self.neighbours.len()) as u64;
        self.requests.retain(|_, request| request.asked.saturating_add(interval) > now);
    }

    /// Forgets a neighbour and the request for it, as when its link went down. Whether it was known.
    pub fn forget(&mut self, address: IpAddr) -> bool {
        self.requests.pop(&address);
        self.neighbours.pop(&address).is_some()
    }

    /// The neighbours that are known, most recently used first. Linear in the table.
    pub fn iter(&self) -> impl Iterator<Item = (IpAddr, [u8; 6])> {
        let known = self.neighbours.iter().filter(|(_, neighbour)| neighbour.expires > self.now);
        known.map(|(address, neighbour)| (*address, neighbour.hardware_address))
    }

    /// Neighbours held, those included whose lifetime has ended since they were last looked at.
    #[must_use]
    pub fn len(&self) -> usize {
        self.neighbours.len()
    }

    /// Whether no neighbour is held.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.neighbours.is_empty()
    }

    /// What was done and seen.
    #[must_use]
    pub const fn stats(&self) -> &NeighbourStats {
        &self.stats
    }

    /// Panics if the table contradicts itself: for tests and fuzzers. Linear in the table.
    #[doc(hidden)]
    pub fn check_invariants(&self) {
        let limits = &self.config.limits;
        assert!(self.neighbours.len() <= limits.neighbour_count_max as usize);
        assert!(self.requests.len() <= limits.neighbour_request_count_max as usize);
        assert!(self.local.is_sorted());
        for (address, neighbour) in &self.neighbours {
            assert!(!self.is_local(*address) && is_host(*address));
            assert!(is_station(neighbour.hardware_address));
        }
        for (address, request) in &self.requests {
            assert!(!self.is_local(*address) && request.source.is_ipv4() == address.is_ipv4());
            assert!(request.asked <= self.now);
        }
    }

    fn step(&mut self, now: Timestamp) {
        self.now = self.now.max(now);
    }

    fn is_local(&self, address: IpAddr) -> bool {
        self.local.binary_search(&address).is_ok()
    }

    fn drop_expired(&mut self, address: IpAddr) {
        if self.neighbours.peek(&address).is_some_and(|neighbour| neighbour.expires <= self.now) {
            self.neighbours.pop(&address);
            self.stats.expired_count += 1;
        }
    }

    /// Which local address asks: of the same family, and for IPv6 of the same scope if there is one (RFC 6724 rule 2 in
    /// its simplest form).
    fn source_for(&self, address: IpAddr) -> Option<IpAddr> {
        let is_link_local =
            |address: &IpAddr| matches!(address, IpAddr::V6(v6) if v6.is_unicast_link_local());
        let family = || self.local.iter().filter(|own| own.is_ipv4() == address.is_ipv4());
        let same_scope = family().find(|own| is_link_local(own) == is_link_local(&address));
        same_scope.or_else(|| family().next()).copied()
    }

    /// A request for an address, which is outstanding from now on.
    fn request(&mut self, address: IpAddr) -> Option<NeighbourFrame> {
        let source = self.source_for(address)?;
        let own = self.config.hardware_address;
        let frame = match (source, address) {
            (IpAddr::V4(source), IpAddr::V4(target)) => {
                let packet = ArpPacket {
                    operation: arp::REQUEST,
                    sender_hardware: own,
                    sender_protocol: source,
                    target_hardware: [0; 6],
                    target_protocol: target,
                };
                NeighbourFrame::arp(&self.header_to(BROADCAST), &packet)
            }
            (IpAddr::V6(source), IpAddr::V6(target)) => {
                let destination = ndp::solicited_node(target);
                let kind = NeighbourMessageKind::Solicitation;
                let message = NeighbourMessage { kind, source, destination, target, link_layer: Some(own) };
                NeighbourFrame::ndp(&self.header_to(group_v6(destination)), &message, own)
            }
            _ => return None,
        };
        let cap = self.config.limits.neighbour_request_count_max as usize;
        if self.requests.len() >= cap && !self.requests.contains(&address) {
            let made_room = self.requests.pop_lru();
            let is_outstanding = made_room.is_some_and(|(_, request)| {
                request.asked.saturating_add(self.config.request_interval) > self.now
            });
            self.stats.request_evicted_count += u64::from(is_outstanding);
        }
        self.requests.put(address, Request { source, asked: self.now });
        self.stats.request_count += 1;
        Some(frame)
    }
}

const BROADCAST: [u8; 6] = [0xff; 6];

/// Whether a hardware address is one of a single station (IEEE 802: the group bit is clear), and not zero.
fn is_station(hardware_address: [u8; 6]) -> bool {
    let [first, ..] = hardware_address;
    first & 1 == 0 && hardware_address != [0; 6]
}

/// Whether an address is one that a single host on a link can have.
fn is_host(address: IpAddr) -> bool {
    let is_broadcast = matches!(address, IpAddr::V4(v4) if v4.is_broadcast());
    !(address.is_unspecified() || address.is_multicast() || address.is_loopback() || is_broadcast)
}

/// The hardware address of an IP address that is not a single host's.
fn group(address: IpAddr) -> Option<[u8; 6]> {
    match address {
        IpAddr::V4(v4) if v4.is_broadcast() => Some(BROADCAST),
        IpAddr::V4(v4) if v4.is_multicast() => Some(group_v4(v4)),
        IpAddr::V6(v6) if v6.is_multicast() => Some(group_v6(v6)),
        _ => None,
    }
}

/// All nodes of a link.
const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
