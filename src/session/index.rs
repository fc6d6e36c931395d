//! Sets of the entries of a protocol table, by property and by port. They are computed when the program is compiled, so
//! that a look-up does not visit all protocols.

use super::protocol::Recognition;
use super::protocols::Protocols;

/// Maximum number of ports of all protocols of a table, over one kind of transport.
const PORT_COUNT_MAX: usize = 1024;

/// A set of entries of a protocol table; bit n stands for the entry with index n.
pub(super) type Entries = u128;

/// Returns the set that contains one entry.
pub(super) const fn only(entry: usize) -> Entries {
    1 << entry
}

/// Returns the index of the first entry of a set.
#[inline]
pub(super) fn first(entries: Entries) -> Option<usize> {
    (entries != 0).then(|| entries.trailing_zeros() as usize)
}

/// The index of a protocol table.
#[derive(Debug)]
pub(super) struct Index {
    pub(super) streams: Recognized,
    pub(super) datagrams: Recognized,
    /// Entries with a parser.
    pub(super) parsed: Entries,
    /// Entries with a parser that no entry without one precedes.
    pub(super) first_parsed: Entries,
    /// Entries that lines of a server may precede.
    pub(super) after_lines: Entries,
    /// Entries with a parser whose messages are searched for in streams that begin with another protocol.
    pub(super) resumed: Entries,
    /// Entries with a parser whose messages are searched for in streams that were captured from the middle on too.
    pub(super) resumed_in_middle: Entries,
    /// Entries with a parser of announced flows that begin with known datagrams.
    pub(super) early: Entries,
}

/// The entries that are recognized over one kind of transport.
#[derive(Debug)]
pub(super) struct Recognized {
    /// Entries with a probe.
    pub(super) probed: Entries,
    /// Entries whose probe is called for octets that begin with the octet that is the index.
    by_first_octet: [Entries; 256],
    /// Ports in ascending order, each with the index of an entry to which it belongs. Those from `port_count` on have
    /// no meaning.
    ports: [(u16, u8); PORT_COUNT_MAX],
    port_count: usize,
}

impl Index {
    /// Returns the index of the protocol table of `P`.
    #[inline]
    pub(super) const fn of<P: Protocols>() -> &'static Self {
        const { &Self::new::<P>() }
    }

    #[expect(clippy::indexing_slicing, reason = "runs when compiled")]
    const fn new<P: Protocols>() -> Self {
        assert!(P::TABLE.len() <= Entries::BITS as usize, "at most 128 protocols");
        let (mut streams, mut datagrams) = (Recognized::EMPTY, Recognized::EMPTY);
        let (mut parsed, mut first_parsed, mut resumed, mut resumed_in_middle) = (0, 0, 0, 0);
        let (mut after_lines, mut early) = (0, 0);
        let mut entry = 0;
        while entry < P::TABLE.len() {
            let protocol = P::TABLE[entry].protocol;
            if let Some(recognition) = &protocol.streams {
                streams.add(entry, recognition);
            }
            if let Some(recognition) = &protocol.datagrams {
                datagrams.add(entry, recognition);
            }
            after_lines |= if protocol.follows_lines { only(entry) } else { 0 };
            if P::TABLE[entry].has_parser {
                first_parsed |= if parsed == only(entry) - 1 { only(entry) } else { 0 };
                parsed |= only(entry);
                early |= if protocol.early.is_some() { only(entry) } else { 0 };
                if let Some(resumption) = &protocol.resumption {
                    resumed |= only(entry);
                    resumed_in_middle |= if resumption.is_for_middle { only(entry) } else { 0 };
                }
            }
            entry += 1;
        }
        Self { streams, datagrams, parsed, first_parsed, after_lines, resumed, resumed_in_middle, early }
    }
}

impl Recognized {
    const EMPTY: Self =
        Self { probed: 0, by_first_octet: [0; 256], ports: [(0, 0); PORT_COUNT_MAX], port_count: 0 };

    #[expect(clippy::indexing_slicing, reason = "runs when compiled")]
    const fn add<F: Copy>(&mut self, entry: usize, recognition: &Recognition<F>) {
        if recognition.probe.is_some() {
            self.probed |= only(entry);
            let mut octet = 0;
            while octet < self.by_first_octet.len() {
                let may_begin = recognition.may_begin_with(octet as u8);
                self.by_first_octet[octet] |= if may_begin { only(entry) } else { 0 };
                octet += 1;
            }
        }
        let ports = recognition.ports;
        let mut index = 0;
        while index < ports.len() {
            assert!(self.port_count < PORT_COUNT_MAX, "at most 1024 ports over one kind of transport");
            let mut place = self.port_count;
            while place > 0 && self.ports[place - 1].0 > ports[index] {
                self.ports[place] = self.ports[place - 1];
                place -= 1;
            }
            self.ports[place] = (ports[index], entry as u8);
            self.port_count += 1;
            index += 1;
        }
    }

    /// Returns the entries that octets with this beginning may belong to: those whose probes must be called.
    #[inline]
    pub(super) fn beginning_with(&self, bytes: &[u8]) -> Entries {
        let first = bytes.first().and_then(|first| self.by_first_octet.get(usize::from(*first)));
        first.copied().unwrap_or_default()
    }

    /// Returns the entries to which a port belongs. Takes O(log n) for n ports.
    #[inline]
    pub(super) fn of_port(&self, port: u16) -> Entries {
        let ports = self.ports.get(..self.port_count).unwrap_or_default();
        let first = ports.partition_point(|(other, _)| *other < port);
        let found = ports.get(first..).unwrap_or_default().iter().take_while(|(other, _)| *other == port);
        found.fold(0, |entries, (_, entry)| entries | only(usize::from(*entry)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::{Fault, Input, OctetSet, Out, Parser, Progress, Protocol, Role, Search, Verdict};

    #[derive(Debug, Default)]
    struct Ignoring;

    impl Parser for Ignoring {
        type Message<'m> = ();

        fn bytes(&mut self, input: &Input<'_>, _: Out<'_, Self>) -> Result<Progress, Fault> {
            Ok(Progress::Took(input.bytes.len()))
        }
    }

    fn search(_: Role, bytes: &[u8]) -> Search {
        Search::From(bytes.len())
    }

    static PORTS_ONLY: Protocol =
        Protocol::new("ports_only").over_streams(&[443, 80], None).over_datagrams(&[53, u16::MAX], None);
    static RESUMED: Protocol = Protocol::new("resumed")
        .over_streams(&[443], Some(|_| Verdict::No))
        .streams_begin_with(OctetSet::LETTERS)
        .resumed_by(search);
    static RESUMED_ANYWHERE: Protocol = Protocol::new("resumed_anywhere")
        .over_streams(&[80, 443, 1], Some(|_| Verdict::No))
        .resumed_anywhere_by(search);
    static DATAGRAMS: Protocol =
        Protocol::new("datagrams").over_datagrams(&[5353, 53, 0], Some(|_| Verdict::No));
    static UNPARSED: Protocol = Protocol::new("unparsed")
        .over_streams(&[443], Some(|_| Verdict::No))
        .over_datagrams(&[53], Some(|_| Verdict::No))
        .datagrams_begin_with(OctetSet::of(b"\xFF"))
        .resumed_anywhere_by(search);

    crate::protocols! {
        #[derive(Debug)]
        enum Set;
        #[derive(Debug)]
        enum Message;
        parsers {
            PortsOnly: Ignoring = &PORTS_ONLY,
            Resumed: Ignoring = &RESUMED,
            ResumedAnywhere: Ignoring = &RESUMED_ANYWHERE,
            Datagrams: Ignoring = &DATAGRAMS,
        }
        recognized { &UNPARSED }
    }

    /// Returns the entries with a property, found by a visit of the whole table.
    fn having(property: impl Fn(&Protocol, bool) -> bool) -> Entries {
        let table = Set::TABLE.iter().enumerate();
        let found = table.filter(|(_, entry)| property(entry.protocol, entry.has_parser));
        found.fold(0, |entries, (entry, _)| entries | only(entry))
    }

    #[test]
    fn each_port_has_the_entries_that_list_it() {
        let Index { streams, datagrams, .. } = Index::of::<Set>();
        for port in 0..=u16::MAX {
            assert_eq!(streams.of_port(port), having(|protocol, _| protocol.stream_ports().contains(&port)));
            assert_eq!(
                datagrams.of_port(port),
                having(|protocol, _| protocol.datagram_ports().contains(&port))
            );
        }
        assert_eq!((streams.of_port(443), datagrams.of_port(53)), (0b10111, 0b11001));
    }

    #[test]
    fn each_first_octet_has_the_entries_that_declare_it_or_declare_none() {
        let Index { streams, datagrams, .. } = Index::of::<Set>();
        for octet in 0..=u8::MAX {
            let declared = if OctetSet::LETTERS.contains(octet) { only(1) } else { 0 };
            assert_eq!(streams.beginning_with(&[octet, b'A']), 0b10100 | declared);
            let declared = if octet == 0xFF { only(4) } else { 0 };
            assert_eq!(datagrams.beginning_with(&[octet]), 0b01000 | declared);
        }
        assert_eq!(streams.beginning_with(&[]), 0);
    }

    #[test]
    fn each_property_has_the_entries_with_it() {
        let index = Index::of::<Set>();
        assert_eq!((index.streams.probed, index.datagrams.probed), (0b10110, 0b11000));
        assert_eq!(
            (index.parsed, index.first_parsed, index.resumed, index.resumed_in_middle),
            (0b01111, 0b01111, 0b00110, 0b00100)
        );
    }

    #[test]
    fn the_first_entry_of_a_set_is_that_with_the_lowest_index() {
        assert_eq!([first(0), first(only(127) | only(5)), first(only(127))], [None, Some(5), Some(127)]);
    }
}
