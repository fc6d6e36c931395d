//! Messages as objects.

use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};

use super::edns::{Edns, EdnsOption};
use super::message::{DnsMessage, Stop};
use super::numbers::{Rcode, RecordType};
use super::record::{Item, Section, Walk};

/// What one pass through a message tells of its sections.
struct Outline<'m> {
    /// Where the first item of each section is read.
    starts: [Option<Walk<'m>>; 4],
    edns: Option<Edns<'m>>,
    stop: Option<Stop>,
    rest_len: usize,
}

impl<'m> Outline<'m> {
    fn of(message: &DnsMessage<'m>) -> Self {
        let mut starts = [const { None }; 4];
        let mut edns = None;
        let mut walk = message.items();
        loop {
            let before = walk.clone();
            let Some(item) = walk.next() else { break };
            if is_opt(&item) {
                if let Item::Record(_, record) = &item {
                    edns.get_or_insert_with(|| Edns::of(record));
                }
                continue;
            }
            if let Some(start) = starts.get_mut(section_of(&item) as usize) {
                start.get_or_insert(before);
            }
        }
        let stop = walk.stop();
        Self { starts, edns, stop, rest_len: if stop.is_some() { 0 } else { walk.rest_len() } }
    }
}

fn section_of(item: &Item<'_>) -> Section {
    match item {
        Item::Question(_) => Section::Question,
        Item::Record(section, _) => *section,
    }
}

/// OPT is told under a key of its own.
fn is_opt(item: &Item<'_>) -> bool {
    matches!(item, Item::Record(Section::Additional, record) if record.record_type == RecordType::OPT)
}

/// The items of one section, from the first on.
struct Items<'a, 'm>(Section, &'a Walk<'m>);

impl Serialize for Items<'_, '_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(section, walk) = self;
        let mut list = serializer.serialize_seq(None)?;
        for item in (*walk).clone().take_while(|item| section_of(item) == *section) {
            match &item {
                Item::Question(question) => list.serialize_element(question)?,
                Item::Record(_, record) if !is_opt(&item) => list.serialize_element(record)?,
                Item::Record(..) => {}
            }
        }
        list.end()
    }
}

impl Serialize for DnsMessage<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Outline { starts, edns, stop, rest_len } = Outline::of(self);
        let flags = self.header.flags;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("id", &self.header.id)?;
        map.serialize_entry("opcode", &flags.opcode())?;
        map.serialize_entry("flags", &Names(self))?;
        let extended = edns.as_ref().map_or(0, |edns| u16::from(edns.extended_rcode));
        let rcode = Rcode(extended << 4 | flags.rcode().0);
        if flags.is_response() || rcode != Rcode(0) {
            map.serialize_entry("rcode", &rcode)?;
        }
        let keys = [
            (Section::Question, "questions"),
            (Section::Answer, "answers"),
            (Section::Authority, "authorities"),
            (Section::Additional, "additionals"),
        ];
        for ((section, key), start) in keys.into_iter().zip(&starts) {
            match start {
                Some(walk) => map.serialize_entry(key, &Items(section, walk))?,
                None if section == Section::Question => map.serialize_entry(key, &[(); 0])?,
                None => {}
            }
        }
        if let Some(edns) = &edns {
            map.serialize_entry("edns", edns)?;
        }
        if let Some(transaction) = self.transaction {
            map.serialize_entry("transaction", &transaction)?;
        }
        if self.retransmission_count > 0 {
            map.serialize_entry("retransmission_count", &self.retransmission_count)?;
        }
        if let Some(response_time_ns) = self.response_time_ns {
            map.serialize_entry("response_time_ns", &response_time_ns)?;
        }
        if self.earlier_response_count > 0 {
            map.serialize_entry("earlier_response_count", &self.earlier_response_count)?;
        }
        map.serialize_entry("len", &self.len)?;
        if rest_len > 0 {
            map.serialize_entry("trailing_len", &rest_len)?;
        }
        if let Some(stop) = stop {
            map.serialize_entry("stop", &stop)?;
        }
        map.end()
    }
}

/// The flags that are set.
struct Names<'a, 'm>(&'a DnsMessage<'m>);

impl Serialize for Names<'_, '_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.header.flags.names(self.0.flavour))
    }
}

impl Serialize for Edns<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("version", &self.version)?;
        map.serialize_entry("udp_payload_len", &self.udp_payload_len)?;
        map.serialize_entry("dnssec_ok", &self.is_dnssec_ok)?;
        if self.options().next().is_some() {
            map.serialize_entry("options", &Options(self))?;
        }
        map.end()
    }
}

struct Options<'a, 'm>(&'a Edns<'m>);

impl Serialize for Options<'_, '_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.options())
    }
}

impl Serialize for EdnsOption<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("name", &self.code)?;
        if !self.data.is_empty() {
            map.serialize_entry("data", &format_args!("{self}"))?;
        }
        map.end()
    }
}
