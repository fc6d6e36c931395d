//! The observation domains of all exporters, and the order of their eviction.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};
use std::net::{IpAddr, SocketAddr};

use ahash::RandomState;

use super::domain::Domain;
use super::session::TransportSession;
use super::{CollectorConfig, CollectorStats};
use crate::base::{ConfigError, NANOS_PER_SECOND, Timestamp};

/// Time in seconds for which an address must have sent records until its domains are evicted after those of others.
/// Longer than a flood with invented addresses lasts unnoticed, shorter than the usual interval of templates.
const ESTABLISHED_S: u64 = 60;

/// Share of all domains that one address may have.
const ADDRESS_SHARE: u32 = 4;

/// Number of domains of an address among which the one to evict is selected.
const EXAMINED_COUNT: usize = 16;

/// Identity of an observation domain: each transport session of an exporter has its own templates and sequence numbers
/// (RFC 7011 section 3.4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct DomainKey {
    pub(super) session: TransportSession,
    pub(super) version: u16,
    pub(super) id: u32,
}

/// Observation domains, and the addresses of their exporters.
///
/// Anyone who can send datagrams can invent source addresses. Addresses that have sent no record are therefore evicted
/// first, then those with the most domains, and addresses that have sent records for a minute last.
#[derive(Debug)]
pub(super) struct Domains {
    domains: HashMap<DomainKey, Domain, RandomState>,
    addresses: HashMap<IpAddr, Address, RandomState>,
    /// The address whose domain is evicted next is the first one.
    order: BTreeSet<(Rank, IpAddr)>,
    /// Number of messages so far, with which the last use of a domain is stated.
    message_count: u64,
    bytes: usize,
    config: CollectorConfig,
}

/// Position of an address in the order of eviction, the smallest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    trust: Trust,
    domain_count: Reverse<usize>,
    /// Time of the last message in seconds.
    used_s: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Trust {
    /// The address has more than its share of the domains.
    Greedy,
    Unknown,
    /// The address has sent a record.
    Recent,
    /// The address has sent records for [`ESTABLISHED_S`].
    Established,
}

/// An address of exporters, and the keys of its domains.
#[derive(Debug)]
struct Address {
    keys: Vec<DomainKey>,
    /// Index in `keys` at which the search for the next domain to evict begins.
    next_examined: usize,
    /// Time of the first message that contained a record, in seconds.
    proven_s: Option<u64>,
    rank: Rank,
}

impl Address {
    fn new(used_s: u64) -> Self {
        let rank = Rank { trust: Trust::Unknown, domain_count: Reverse(0), used_s };
        Self { keys: Vec::new(), next_examined: 0, proven_s: None, rank }
    }

    fn rank(&self, now_s: u64, domain_count_max: u32) -> Rank {
        let domain_count = self.keys.len();
        let trust = match self.proven_s {
            _ if domain_count > (domain_count_max / ADDRESS_SHARE).max(1) as usize => Trust::Greedy,
            None => Trust::Unknown,
            Some(proven_s) if now_s.saturating_sub(proven_s) < ESTABLISHED_S => Trust::Recent,
            Some(_) => Trust::Established,
        };
        Rank { trust, domain_count: Reverse(domain_count), used_s: now_s.max(self.rank.used_s) }
    }
}

impl Domains {
    pub(super) fn new(config: CollectorConfig) -> Result<Self, ConfigError> {
        if config.domain_count_max == 0 {
            let range = (1, u32::MAX.into());
            return Err(ConfigError::out_of_range("ipfix", "domain_count_max", range));
        }
        let hasher = crate::base::hash_state(None);
        Ok(Self {
            domains: HashMap::with_hasher(hasher.clone()),
            addresses: HashMap::with_hasher(hasher),
            order: BTreeSet::new(),
            message_count: 0,
            bytes: 0,
            config,
        })
    }

    /// Runs `decode` with the state of a domain, that of a new one if it does not exist, for a message that arrived at
    /// the time `now`. Evicts other domains then if there are too many.
    pub(super) fn with<R>(
        &mut self,
        key: DomainKey,
        now: Timestamp,
        stats: &mut CollectorStats,
        decode: impl FnOnce(&mut Domain, &mut CollectorStats) -> R,
    ) -> R {
        self.message_count += 1;
        let mut is_new = false;
        let domain = self.domains.entry(key).or_insert_with(|| {
            is_new = true;
            Domain::default()
        });
        domain.last_message = self.message_count;
        let bytes_before = if is_new { 0 } else { domain.bytes() };
        let result = decode(domain, stats);
        if domain.bytes() > self.config.template_bytes_max {
            stats.refused_template_count += domain.clear_templates();
        }
        let has_records = domain.has_records;
        self.bytes += domain.bytes();
        self.bytes -= bytes_before;
        self.note_use(key, is_new, has_records, now.as_nanos() / NANOS_PER_SECOND);
        if self.is_full() {
            self.evict(key, stats);
        }
        result
    }

    /// Updates the position of an address in the order of eviction, which changes once a second at most unless the
    /// address has a new domain or its first record.
    fn note_use(&mut self, key: DomainKey, is_new: bool, has_records: bool, now_s: u64) {
        let ip = key.session.exporter.ip();
        let address = self.addresses.entry(ip).or_insert_with(|| Address::new(now_s));
        let is_proven_now = has_records && address.proven_s.is_none();
        if !is_new && !is_proven_now && now_s <= address.rank.used_s {
            return;
        }
        let is_known = !address.keys.is_empty();
        if is_new {
            address.keys.push(key);
        }
        if is_proven_now {
            address.proven_s = Some(now_s);
        }
        let rank = address.rank(now_s, self.config.domain_count_max);
        if is_known {
            self.order.remove(&(address.rank, ip));
        }
        address.rank = rank;
        self.order.insert((rank, ip));
    }

    fn is_full(&self) -> bool {
        self.domains.len() > self.config.domain_count_max as usize
            || self.bytes > self.config.template_bytes_max
    }

    /// Evicts domains until the limits are kept, but not the domain `current`.
    #[cold]
    fn evict(&mut self, current: DomainKey, stats: &mut CollectorStats) {
        let current_ip = current.session.exporter.ip();
        while self.is_full() {
            let is_evictable = |(rank, ip): &&(Rank, IpAddr)| *ip != current_ip || rank.domain_count.0 > 1;
            let Some(&(_, ip)) = self.order.iter().find(is_evictable) else { return };
            let Some(index) = self.next_of(ip, current) else { return };
            self.remove_at(ip, index);
            stats.evicted_domain_count += 1;
        }
    }

    /// Returns the index of the domain of an address that is evicted next: of some of its domains, one without records,
    /// or else the one that was used least recently.
    fn next_of(&mut self, ip: IpAddr, current: DomainKey) -> Option<usize> {
        let address = self.addresses.get_mut(&ip)?;
        let count = address.keys.len();
        let start = address.next_examined % count.max(1);
        address.next_examined = start + EXAMINED_COUNT;
        let examined = (start..start + EXAMINED_COUNT.min(count)).map(|index| index % count);
        let candidates = examined.filter(|index| address.keys.get(*index) != Some(&current));
        let candidates =
            candidates.chain((0..count).find(|index| address.keys.get(*index) != Some(&current)));
        candidates.min_by_key(|index| {
            let domain = address.keys.get(*index).and_then(|key| self.domains.get(key));
            domain.map(|domain| (domain.has_records, domain.last_message))
        })
    }

    /// Removes the domain of an address with an index in its list of keys.
    fn remove_at(&mut self, ip: IpAddr, index: usize) {
        let Some(address) = self.addresses.get_mut(&ip) else { return };
        let key = address.keys.swap_remove(index);
        self.order.remove(&(address.rank, ip));
        if let Some(domain) = self.domains.remove(&key) {
            self.bytes -= domain.bytes();
        }
        if address.keys.is_empty() {
            self.addresses.remove(&ip);
        } else {
            address.rank = address.rank(address.rank.used_s, self.config.domain_count_max);
            self.order.insert((address.rank, ip));
        }
    }

    /// Removes the domains of sessions of an exporter.
    pub(super) fn remove(&mut self, exporter: SocketAddr, is_removed: impl Fn(&TransportSession) -> bool) {
        let ip = exporter.ip();
        let find = |address: &Address| {
            address.keys.iter().position(|key| key.session.exporter == exporter && is_removed(&key.session))
        };
        while let Some(index) = self.addresses.get(&ip).and_then(find) {
            self.remove_at(ip, index);
        }
    }
}
