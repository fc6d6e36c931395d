//! The observation domains of all exporters.

use std::net::SocketAddr;

use ahash::RandomState;
use lru::LruCache;

use super::domain::Domain;
use super::{CollectorConfig, CollectorStats};
use crate::base::ConfigError;

/// Identity of an observation domain: each transport session of an exporter has its own templates and sequence numbers
/// (RFC 7011 section 3.4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct DomainKey {
    pub(super) exporter: SocketAddr,
    pub(super) version: u16,
    pub(super) id: u32,
}

/// Observation domains in the order of their last use.
#[derive(Debug)]
pub(super) struct Domains {
    /// Domains that have sent a record. They are evicted after the others, so that messages with invented source
    /// addresses do not evict the templates of real exporters.
    proven: LruCache<DomainKey, Domain, RandomState>,
    unproven: LruCache<DomainKey, Domain, RandomState>,
    template_bytes: usize,
    config: CollectorConfig,
}

impl Domains {
    pub(super) fn new(config: CollectorConfig) -> Result<Self, ConfigError> {
        if config.domain_count_max == 0 {
            let range = (1, u32::MAX.into());
            return Err(ConfigError::out_of_range("codec", "domain_count_max", range));
        }
        let list = || LruCache::unbounded_with_hasher(RandomState::new());
        Ok(Self { proven: list(), unproven: list(), template_bytes: 0, config })
    }

    /// Takes the state of a domain for the time of a message; that of a new one if it does not exist. The domain becomes
    /// the most recently used one.
    pub(super) fn take(&mut self, key: DomainKey) -> Domain {
        let known = self.proven.get_mut(&key).or_else(|| self.unproven.get_mut(&key));
        let domain = known.map(std::mem::take).unwrap_or_default();
        self.template_bytes -= domain.template_bytes();
        domain
    }

    /// Returns the state of a domain after a message, and evicts others if there are too many.
    pub(super) fn put(&mut self, key: DomainKey, mut domain: Domain, stats: &mut CollectorStats) {
        if domain.template_bytes() > self.config.template_bytes_max {
            stats.refused_template_count += domain.clear_templates();
        }
        self.template_bytes += domain.template_bytes();
        if let Some(known) = self.proven.peek_mut(&key) {
            *known = domain;
            return self.evict(0, stats);
        }
        self.unproven.pop(&key);
        self.evict(1, stats);
        let domains = if domain.has_records { &mut self.proven } else { &mut self.unproven };
        domains.put(key, domain);
    }

    /// Evicts domains until there is memory for the templates, and an entry for each of the new domains.
    fn evict(&mut self, new_count: usize, stats: &mut CollectorStats) {
        let count_max = self.config.domain_count_max as usize;
        while self.proven.len() + self.unproven.len() + new_count > count_max
            || self.template_bytes > self.config.template_bytes_max
        {
            let Some((_, evicted)) = self.unproven.pop_lru().or_else(|| self.proven.pop_lru()) else { break };
            self.template_bytes -= evicted.template_bytes();
            stats.evicted_domain_count += 1;
        }
    }

    /// Removes all domains of an exporter.
    pub(super) fn remove(&mut self, exporter: SocketAddr) {
        for domains in [&mut self.proven, &mut self.unproven] {
            let keys: Vec<_> =
                domains.iter().map(|(key, _)| *key).filter(|key| key.exporter == exporter).collect();
            for key in keys {
                let removed = domains.pop(&key);
                self.template_bytes -= removed.map_or(0, |domain| domain.template_bytes());
            }
        }
    }
}
