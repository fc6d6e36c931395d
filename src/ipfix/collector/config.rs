//! Settings of a collector.

crate::base::configuration! {
    /// Configuration of a [`Collector`](super::Collector).
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct CollectorConfig {
        /// Maximum number of observation domains, from 1. When it is reached, a new domain evicts another one: of an address
        /// that has more than a quarter of all domains, then of an address that has not sent a record, then of the address
        /// with the most domains, and last of addresses that have sent records for a minute. Default 4096.
        pub domain_count_max: u32,
        /// Maximum memory of all domains with their templates, in bytes; a domain has at least 1 KiB. When it is reached,
        /// domains are evicted in the same order; a domain that is too large alone loses its templates. Default 16 MiB.
        pub template_bytes_max: usize,
    }
}

impl Default for CollectorConfig {
    fn default() -> Self {
        Self { domain_count_max: 4096, template_bytes_max: 16 << 20 }
    }
}
