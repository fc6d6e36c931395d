//! Locations and networks of addresses, from databases in the format of MaxMind.

use std::net::IpAddr;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lru::LruCache;
use maxminddb::{Reader, path};

use crate::console::Failure;

/// Number of addresses whose locations are kept.
const KEPT_COUNT: NonZeroUsize = NonZeroUsize::new(1 << 16).unwrap();

/// Databases, each of which may have a part of a location.
pub(super) struct Locations {
    databases: Vec<Reader<Vec<u8>>>,
    known: LruCache<IpAddr, Arc<Location>>,
}

/// What databases contain about an address.
#[derive(Debug, Default)]
pub(super) struct Location {
    /// ISO 3166-1 code.
    pub(super) country: Option<String>,
    /// Name in English.
    pub(super) city: Option<String>,
    pub(super) asn: Option<u32>,
    pub(super) organization: Option<String>,
}

impl Locations {
    /// Reads databases into memory.
    pub(super) fn open(paths: &[PathBuf]) -> Result<Self, Failure> {
        let open = |path: &PathBuf| {
            Reader::open_readfile(path)
                .map_err(|error| Failure::Other(format!("{}: {}", Path::new(path).display(), error)))
        };
        let databases = paths.iter().map(open).collect::<Result<_, _>>()?;
        Ok(Self { databases, known: LruCache::new(KEPT_COUNT) })
    }

    /// Returns the location of an address. What several databases have is that of the first one.
    pub(super) fn of(&mut self, address: IpAddr) -> Arc<Location> {
        let databases = &self.databases;
        Arc::clone(self.known.get_or_insert(address, || {
            let mut location = Location::default();
            databases.iter().for_each(|database| location.fill(database, address));
            Arc::new(location)
        }))
    }
}

impl Location {
    /// Adds what a database contains. A record that is damaged, or of another kind, contains nothing.
    fn fill(&mut self, database: &Reader<Vec<u8>>, address: IpAddr) {
        let Ok(found) = database.lookup(address) else { return };
        let text = |path: &[maxminddb::PathElement<'_>]| found.decode_path::<String>(path).ok().flatten();
        // Databases of others name these fields without a group.
        let country = || {
            let of = |group| text(&path![group, "iso_code"]);
            of("country").or_else(|| of("registered_country")).or_else(|| text(&path!["country_code"]))
        };
        let city = || text(&path!["city", "names", "en"]).or_else(|| text(&path!["city"]));
        self.country = self.country.take().or_else(country);
        self.city = self.city.take().or_else(city);
        let asn = || found.decode_path::<u32>(&path!["autonomous_system_number"]).ok().flatten();
        self.asn = self.asn.or_else(asn);
        self.organization =
            self.organization.take().or_else(|| text(&path!["autonomous_system_organization"]));
    }
}
