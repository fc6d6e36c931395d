//! Locations and networks of addresses, from databases in the format of MaxMind.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lru::LruCache;
use maxminddb::{Reader, path};

use crate::console::Failure;

/// Number of addresses whose locations are kept.
const KEPT_COUNT: usize = 1 << 16;

/// Memory in bytes of an address without the texts of its location: the location, its counts, and what the cache has for an
/// entry while its table grows.
const ENTRY_LEN: usize = size_of::<(IpAddr, Arc<Location>)>() + 120 + size_of::<Location>() + 32;

/// Databases, each of which may have a part of a location.
pub(super) struct Locations {
    databases: Vec<Reader<Vec<u8>>>,
    known: LruCache<IpAddr, Arc<Location>>,
    /// Memory of the texts of all locations that are kept.
    texts_len: usize,
    /// Memory in bytes that these locations may have.
    heap_len_max: usize,
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
        Ok(Self::new(databases))
    }

    fn new(databases: Vec<Reader<Vec<u8>>>) -> Self {
        Self { databases, known: LruCache::unbounded(), texts_len: 0, heap_len_max: usize::MAX }
    }

    /// Returns the location of an address. What several databases have is that of the first one.
    pub(super) fn of(&mut self, address: IpAddr) -> Arc<Location> {
        if let Some(known) = self.known.get(&address) {
            return Arc::clone(known);
        }
        let mut location = Location::default();
        self.databases.iter().for_each(|database| location.fill(database, address));
        self.keep(address, location)
    }

    /// Keeps the location of an address that is not known yet.
    fn keep(&mut self, address: IpAddr, location: Location) -> Arc<Location> {
        self.texts_len += location.texts_len();
        let location = Arc::new(location);
        self.known.put(address, Arc::clone(&location));
        self.remove_excess();
        location
    }

    /// Returns the memory of the locations that are kept, in bytes.
    pub(super) fn heap_len(&self) -> usize {
        self.known.len() * ENTRY_LEN + self.texts_len
    }

    /// Limits the memory of the locations that are kept, in bytes. The least recently used ones that exceed it are removed.
    pub(super) fn set_heap_len_max(&mut self, heap_len_max: usize) {
        self.heap_len_max = heap_len_max;
        self.remove_excess();
    }

    fn remove_excess(&mut self) {
        while self.known.len() > KEPT_COUNT || self.heap_len() > self.heap_len_max {
            let Some((_, location)) = self.known.pop_lru() else { return };
            self.texts_len -= location.texts_len();
        }
    }
}

impl Location {
    /// Returns the memory of the texts in bytes.
    fn texts_len(&self) -> usize {
        let texts = [&self.country, &self.city, &self.organization];
        texts.into_iter().flatten().map(|text| text.capacity() + 16).sum()
    }

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::heap::peak_of;

    const LIMIT: usize = 1 << 20;

    #[test]
    fn allocated_memory_is_within_the_limit() {
        for text_len in [0, 20, 1000] {
            let (peak, kept_count) = peak_of(|| {
                let mut locations = Locations::new(Vec::new());
                locations.set_heap_len_max(LIMIT);
                for number in 0..20_000_u32 {
                    let text = || (text_len > 0).then(|| "n".repeat(text_len));
                    let (country, city, organization) = (text(), text(), text());
                    let location = Location { country, city, asn: Some(number), organization };
                    let address = IpAddr::from(number.to_be_bytes());
                    assert_eq!(locations.keep(address, location).asn, Some(number));
                    assert_eq!(locations.of(address).asn, Some(number));
                }
                locations.known.len()
            });
            println!("{text_len}: {peak} bytes for {kept_count} addresses");
            // The last one is removed after it was added.
            assert!(peak <= LIMIT + 4096, "{text_len}: {peak}");
            assert!(kept_count > LIMIT / (500 + 3 * text_len), "{text_len}: {kept_count}");
        }
        // Without a limit of memory, their number is limited.
        let mut locations = Locations::new(Vec::new());
        for number in 0..70_000_u32 {
            locations.of(number.to_be_bytes().into());
        }
        assert_eq!(locations.known.len(), KEPT_COUNT);
    }
}
