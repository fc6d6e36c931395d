//! Resolution of hardware addresses: ARP (RFC 826) and IPv6 neighbor discovery (RFC 4861) for a local
//! interface.

mod config;
mod frame;
mod receive;

use std::net::{IpAddr, Ipv6Addr};

use ahash::RandomState;
use lru::LruCache;

pub use self::config::{NeighborConfig, NeighborError, NeighborStats};
pub use self::frame::NeighborFrame;
pub use self::receive::NeighborEvent;
use super::EthernetHeader;
use crate::base::Timestamp;
use crate::wire::arp::{self, ArpPacket};
use crate::wire::ethernet::{BROADCAST, group_v4, group_v6, is_station};
use crate::wire::ndp::{self, NeighborMessage, NeighborMessageKind};

/// Result of resolving the hardware address of a next hop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Resolution {
    /// The hardware address of the next hop is known.
    Known {
        /// Hardware address of the next hop.
        hardware_address: [u8; 6],
        /// Request that the caller sends in addition, because the entry is about to expire.
        refresh: Option<NeighborFrame>,
    },
    /// The hardware address is not known: the caller sends this request, and queues or drops the packet.
    Request(NeighborFrame),
    /// The hardware address is not known, and the last request is too recent for another one.
    Waiting,
    /// The next hop is a local address: the packet is for this host.
    Local,
    /// The next hop cannot be resolved: its address is unspecified or loopback, or there is no local address of the
    /// same family as the source of a request.
    Unreachable,
}

#[derive(Clone, Copy, Debug)]
struct Neighbor {
    hardware_address: [u8; 6],
    expires: Timestamp,
    requested: Timestamp,
}

#[derive(Clone, Copy, Debug)]
struct Request {
    source: IpAddr,
    requested: Timestamp,
}

/// Table of the hardware addresses of neighbors, learned only from replies to its own requests. Answers
/// requests for the local addresses.
///
/// Performs no input or output and reads no clock: received frames are passed to [`process`](Self::process), frames
/// to send are returned, and the caller passes the time (a step back is treated as no step).
///
/// A reply is accepted if it answers a request that is at most `request_interval` old, is sent to the hardware
/// and protocol address that sent the request, and contains the source of its frame as the hardware
/// address. The first such reply completes the request. A host on the link that receives the request can
/// still answer before the legitimate host does: neither protocol has a defense against this. All other
/// messages are counted and change nothing: see [`NeighborStats`].
///
/// Bounded by `neighbor_count_max` and `neighbor_request_count_max` of [`Limits`](crate::base::Limits),
/// independently of each other, so that requests for a million absent hosts (RFC 6583) evict no neighbor that
/// is present; the least recently used entry is evicted. Constant time per call unless stated otherwise, with
/// a keyed hash; one allocation per new neighbor or request, none for known neighbors.
///
/// ```
/// use flowgauge::base::Timestamp;
/// use flowgauge::tap::{NeighborEvent, NeighborConfig, NeighborTable, Resolution};
///
/// let end = |address: u8| -> Result<_, flowgauge::tap::NeighborError> {
///     let mut table = NeighborTable::new(NeighborConfig::new([2, 0, 0, 0, 0, address]))?;
///     table.add_local([10, 0, 0, address].into())?;
///     Ok(table)
/// };
/// let (mut here, mut there) = (end(1)?, end(2)?);
/// let now = Timestamp::from_parts(1, 0);
/// let Resolution::Request(request) = here.resolve([10, 0, 0, 2].into(), now) else { panic!("known already") };
/// let NeighborEvent::Request(reply) = there.process(&request, now) else { panic!("not answered") };
/// assert!(matches!(here.process(&reply, now), NeighborEvent::Learned { .. }));
/// assert_eq!(here.lookup([10, 0, 0, 2].into()), Some([2, 0, 0, 0, 0, 2]));
/// # Ok::<(), flowgauge::tap::NeighborError>(())
/// ```
#[derive(Debug)]
pub struct NeighborTable {
    config: NeighborConfig,
    now: Timestamp,
    /// Local addresses, sorted for binary search.
    local: Vec<IpAddr>,
    neighbors: LruCache<IpAddr, Neighbor, RandomState>,
    requests: LruCache<IpAddr, Request, RandomState>,
    stats: NeighborStats,
}

impl NeighborTable {
    /// Creates an empty table. Allocates as it fills.
    ///
    /// # Errors
    ///
    /// Returns a [`NeighborError`] if the hardware address does not belong to a single station, or if
    /// `neighbor_count_max` or `neighbor_request_count_max` is zero.
    pub fn new(config: NeighborConfig) -> Result<Self, NeighborError> {
        if !is_station(config.hardware_address) {
            return Err(NeighborError::HardwareAddress);
        }
        if config.limits.neighbor_count_max == 0 || config.limits.neighbor_request_count_max == 0 {
            return Err(NeighborError::CapacityTooSmall);
        }
        Ok(Self {
            config,
            now: Timestamp::ZERO,
            local: Vec::new(),
            neighbors: LruCache::unbounded_with_hasher(crate::base::hash_state(None)),
            requests: LruCache::unbounded_with_hasher(crate::base::hash_state(None)),
            stats: NeighborStats::default(),
        })
    }

    /// Adds a local address: requests for it are answered, and requests may be sent from it. An entry for it
    /// as a neighbor is removed. Linear in the local addresses, which only the caller adds.
    ///
    /// # Errors
    ///
    /// Returns [`NeighborError::LocalAddress`] if `address` is not the address of a single host.
    pub fn add_local(&mut self, address: IpAddr) -> Result<(), NeighborError> {
        if !is_host(address) {
            return Err(NeighborError::LocalAddress);
        }
        if let Err(index) = self.local.binary_search(&address) {
            self.local.insert(index, address);
        }
        self.neighbors.pop(&address);
        self.requests.pop(&address);
        Ok(())
    }

    /// Removes a local address; replies to requests that were sent from it are ignored. Returns whether it
    /// was a local address. Linear in the local addresses.
    pub fn remove_local(&mut self, address: IpAddr) -> bool {
        let index = self.local.binary_search(&address);
        index.map(|index| self.local.remove(index)).is_ok()
    }

    /// Returns the local addresses, in ascending order.
    #[must_use]
    pub fn local(&self) -> &[IpAddr] {
        &self.local
    }

    /// Returns the hardware address of a next hop (the caller performs routing), and the request to send if
    /// the address is unknown or about to expire.
    ///
    /// Groups and 255.255.255.255 are resolved without a request; the broadcast address of a subnet is not
    /// recognized. At most one request per `request_interval` and address is created, as long as the address
    /// is in the table.
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
        let may_request = |requested: Timestamp| requested.saturating_add(config.request_interval) <= now;
        let is_outstanding =
            self.requests.peek(&address).is_some_and(|request| !may_request(request.requested));
        if let Some(neighbor) = self.neighbors.get(&address).copied() {
            let is_due = neighbor.expires.saturating_since(now) <= config.lifetime / 4;
            let sends_request = is_due && may_request(neighbor.requested) && !is_outstanding;
            let refresh = if sends_request { self.request(address) } else { None };
            return Resolution::Known { hardware_address: neighbor.hardware_address, refresh };
        }
        if is_outstanding {
            return Resolution::Waiting;
        }
        match self.request(address) {
            Some(frame) => Resolution::Request(frame),
            None => Resolution::Unreachable,
        }
    }

    /// Returns the hardware address of a neighbor, if it is known at the latest time that a caller passed. Does not
    /// count as use of the entry.
    #[must_use]
    pub fn lookup(&self, address: IpAddr) -> Option<[u8; 6]> {
        let neighbor = self.neighbors.peek(&address)?;
        (neighbor.expires > self.now).then_some(neighbor.hardware_address)
    }

    /// Returns the hardware address of the local interface.
    #[must_use]
    pub const fn hardware_address(&self) -> [u8; 6] {
        self.config.hardware_address
    }

    /// Returns the Ethernet header of frames from the local interface to a hardware address, with the VLAN tags of
    /// the local interface; for [`ip_to_ethernet`](super::ip_to_ethernet).
    #[must_use]
    pub fn header_to(&self, hardware_address: [u8; 6]) -> EthernetHeader {
        EthernetHeader::new(hardware_address, self.config.hardware_address, self.config.vlan_ids)
    }

    /// Advances the time of the table: removes neighbors whose lifetime expired and requests without reply. Linear in
    /// the table. Calling this function is optional, because expired entries are not used in any case.
    pub fn advance(&mut self, now: Timestamp) {
        self.step(now);
        let (now, interval) = (self.now, self.config.request_interval);
        let before = self.neighbors.len();
        self.neighbors.retain(|_, neighbor| neighbor.expires > now);
        self.stats.expired_count += (before - self.neighbors.len()) as u64;
        self.requests.retain(|_, request| request.requested.saturating_add(interval) > now);
    }

    /// Removes a neighbor and the outstanding request for it, for example when its link went down. Returns whether
    /// the neighbor was in the table.
    pub fn forget(&mut self, address: IpAddr) -> bool {
        self.requests.pop(&address);
        self.neighbors.pop(&address).is_some()
    }

    /// Returns the known neighbors, most recently used first. Linear in the table.
    pub fn iter(&self) -> impl Iterator<Item = (IpAddr, [u8; 6])> {
        let known = self.neighbors.iter().filter(|(_, neighbor)| neighbor.expires > self.now);
        known.map(|(address, neighbor)| (*address, neighbor.hardware_address))
    }

    /// Returns the number of neighbors in the table, including those that expired since their last use.
    #[must_use]
    pub fn len(&self) -> usize {
        self.neighbors.len()
    }

    /// Returns whether no neighbor is in the table.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.neighbors.is_empty()
    }

    /// Returns the counters of the neighbor table.
    #[must_use]
    pub const fn stats(&self) -> &NeighborStats {
        &self.stats
    }

    /// Panics if the neighbor table is inconsistent: for tests and fuzzers. Linear in the table.
    #[doc(hidden)]
    pub fn check_invariants(&self) {
        let limits = &self.config.limits;
        assert!(self.neighbors.len() <= limits.neighbor_count_max as usize);
        assert!(self.requests.len() <= limits.neighbor_request_count_max as usize);
        assert!(self.local.is_sorted());
        for (address, neighbor) in &self.neighbors {
            assert!(!self.is_local(*address) && is_host(*address));
            assert!(is_station(neighbor.hardware_address));
        }
        for (address, request) in &self.requests {
            assert!(!self.is_local(*address) && request.source.is_ipv4() == address.is_ipv4());
            assert!(request.requested <= self.now);
        }
    }

    fn step(&mut self, now: Timestamp) {
        self.now = self.now.max(now);
    }

    fn is_local(&self, address: IpAddr) -> bool {
        self.local.binary_search(&address).is_ok()
    }

    fn drop_expired(&mut self, address: IpAddr) {
        if self.neighbors.peek(&address).is_some_and(|neighbor| neighbor.expires <= self.now) {
            self.neighbors.pop(&address);
            self.stats.expired_count += 1;
        }
    }

    /// Returns the local address from which a request for `address` is sent: of the same family, and for IPv6 of the
    /// same scope if there is one (RFC 6724 rule 2 in its simplest form).
    fn source_for(&self, address: IpAddr) -> Option<IpAddr> {
        let is_link_local =
            |address: &IpAddr| matches!(address, IpAddr::V6(v6) if v6.is_unicast_link_local());
        let family = || self.local.iter().filter(|own| own.is_ipv4() == address.is_ipv4());
        let same_scope = family().find(|own| is_link_local(own) == is_link_local(&address));
        same_scope.or_else(|| family().next()).copied()
    }

    /// Creates a request for the hardware address of `address`, which is outstanding from now on.
    fn request(&mut self, address: IpAddr) -> Option<NeighborFrame> {
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
                NeighborFrame::arp(&self.header_to(BROADCAST), &packet)
            }
            (IpAddr::V6(source), IpAddr::V6(target)) => {
                let destination = ndp::solicited_node(target);
                let kind = NeighborMessageKind::Solicitation;
                let message = NeighborMessage { kind, source, destination, target, link_layer: Some(own) };
                NeighborFrame::ndp(&self.header_to(group_v6(destination)), &message, own)
            }
            _ => return None,
        };
        let cap = self.config.limits.neighbor_request_count_max as usize;
        if self.requests.len() >= cap && !self.requests.contains(&address) {
            let evicted = self.requests.pop_lru();
            let is_outstanding = evicted.is_some_and(|(_, request)| {
                request.requested.saturating_add(self.config.request_interval) > self.now
            });
            self.stats.request_evicted_count += u64::from(is_outstanding);
        }
        self.requests.put(address, Request { source, requested: self.now });
        self.stats.request_count += 1;
        Some(frame)
    }
}

/// Returns whether an address is one that a single host on a link can have.
fn is_host(address: IpAddr) -> bool {
    let is_broadcast = matches!(address, IpAddr::V4(v4) if v4.is_broadcast());
    !(address.is_unspecified() || address.is_multicast() || address.is_loopback() || is_broadcast)
}

/// Returns the hardware address of a multicast group or of the broadcast address; `None` for other addresses.
fn group(address: IpAddr) -> Option<[u8; 6]> {
    match address {
        IpAddr::V4(v4) if v4.is_broadcast() => Some(BROADCAST),
        IpAddr::V4(v4) if v4.is_multicast() => Some(group_v4(v4)),
        IpAddr::V6(v6) if v6.is_multicast() => Some(group_v6(v6)),
        _ => None,
    }
}

/// IPv6 multicast address of all nodes of a link.
const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
