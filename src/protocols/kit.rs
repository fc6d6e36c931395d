//! The protocols of the kit, in a set with those that are recognized only.

use super::dhcp::Exchange as Dhcp;
use super::dhcpv6::Exchange as Dhcpv6;
use super::{
    dcerpc, dhcp, dhcpv6, imap, irc, kerberos, ldap, modbus, mqtt, nbdgm, nbns, ntp, pop3, radius, rdp,
    recognizers, rfb, rtp, sip, smb, snmp, socks, stun, syslog,
};
use std::net::IpAddr;

use crate::base::Timestamp;
use crate::checkpoint::{Invalid, StateWriter};
use crate::codec::Reader;
use crate::row::{TableInfo, TableRow, Union};
use crate::session::kit::{
    Crossing, KitEntry, KitMessage, KitParser, KitTransaction, LogFormat, Open as _, Turn, open,
};
use crate::session::{
    AfterGap, Datagram, End, Entry, Expectation, Fault, Input, Missing, Out, Parser, Piece, Progress,
    Protocol, Protocols,
};

/// The protocols of the kit: a line for each.
const ENTRIES: &[KitEntry] = &[
    KitEntry::of::<dcerpc::Dcerpc>(),
    KitEntry::of::<dhcp::Dhcp>(),
    KitEntry::of::<dhcpv6::Dhcpv6>(),
    KitEntry::of::<imap::Imap>(),
    KitEntry::of::<irc::Irc>(),
    KitEntry::of::<kerberos::Kerberos>(),
    KitEntry::of::<ldap::Ldap>(),
    KitEntry::of::<modbus::Modbus>(),
    KitEntry::of::<mqtt::Mqtt>(),
    KitEntry::of::<nbdgm::Nbdgm>(),
    KitEntry::of::<nbns::Nbns>(),
    KitEntry::of::<ntp::Ntp>(),
    KitEntry::of::<pop3::Pop3>(),
    KitEntry::of::<radius::Radius>(),
    KitEntry::of::<rdp::Rdp>(),
    KitEntry::of::<rfb::Rfb>(),
    KitEntry::of::<rtp::Rtcp>(),
    KitEntry::of::<rtp::Rtp>(),
    KitEntry::of::<sip::Sip>(),
    KitEntry::of::<smb::Smb>(),
    KitEntry::of::<snmp::Snmp>(),
    KitEntry::of::<socks::Socks>(),
    KitEntry::of::<stun::Stun>(),
    KitEntry::of::<syslog::Syslog>(),
];

/// Declares the rows of exchanges across flows.
macro_rules! crossing {
    ($($number:literal = $row:ident),+) => {
        open! {
            /// The rows of exchanges whose messages are in several flows.
            pub(crate) enum CrossingRow { $($number = $row),+ }
        }

        impl CrossingRow {
            /// Returns whether a message belongs to an exchange across flows.
            pub(crate) fn has(message: &KitMessage<'_>) -> bool {
                false $( || message.get::<<$row as Crossing>::Part>().is_some() )+
            }

            /// Returns what a message is for its exchange, the key of that, and a function that makes its row; `None` if exchanges of the protocol
            /// are within a flow, or the message states no key.
            pub(crate) fn of(message: &KitMessage<'_>) -> Option<(Turn, u64, fn() -> Self)> {
                $(
                    if let Some(part) = message.get() {
                        return Some(($row::turn(part), $row::key(part)?, || Self::$row($row::default())));
                    }
                )+
                None
            }

            /// Adds a message, which was sent between the address of a client and that of a server.
            pub(crate) fn add(&mut self, message: &KitMessage<'_>, ends: [IpAddr; 2]) {
                match self {
                    $( Self::$row(row) => message.get().into_iter().for_each(|part| row.add(part, ends)), )+
                }
            }
        }
    };
}

crossing! { 0 = Dhcp, 1 = Dhcpv6 }

/// A parser of one of the protocols of the kit: requests with their responses, as rows. The set also has the protocols that are
/// [recognized](recognizers) only.
#[derive(Debug)]
pub struct Kit(Box<dyn KitParser>);

/// Returns the place of a protocol among those with a parser.
#[allow(clippy::indexing_slicing, reason = "runs when compiled")]
const fn place(protocol: &Protocol) -> Option<usize> {
    let mut place = 0;
    while place < ENTRIES.len() {
        if is_same(ENTRIES[place].protocol.name().as_bytes(), protocol.name().as_bytes()) {
            return Some(place);
        }
        place += 1;
    }
    None
}

#[allow(clippy::indexing_slicing, reason = "runs when compiled")]
const fn is_same(one: &[u8], other: &[u8]) -> bool {
    let mut index = 0;
    while index < one.len() && index < other.len() && one[index] == other[index] {
        index += 1;
    }
    index == one.len() && index == other.len()
}

/// The places of the parsers of all protocols.
#[allow(clippy::indexing_slicing, reason = "runs when compiled")]
const PLACES: [Option<usize>; recognizers::ALL.len()] = {
    let mut places = [None; recognizers::ALL.len()];
    let (mut index, mut parsed_count) = (0, 0);
    while index < places.len() {
        places[index] = place(recognizers::ALL[index]);
        parsed_count += places[index].is_some() as usize;
        index += 1;
    }
    assert!(parsed_count == ENTRIES.len(), "each protocol of the kit is one of `recognizers::ALL`");
    places
};

impl Protocols for Kit {
    #[allow(clippy::indexing_slicing, reason = "runs when compiled")]
    const TABLE: &'static [Entry] = {
        const TABLE: [Entry; recognizers::ALL.len()] = {
            let mut table =
                [Entry { protocol: recognizers::ALL[0], has_parser: false }; recognizers::ALL.len()];
            let mut index = 0;
            while index < table.len() {
                table[index] =
                    Entry { protocol: recognizers::ALL[index], has_parser: PLACES[index].is_some() };
                index += 1;
            }
            table
        };
        &TABLE
    };

    fn start(entry: usize) -> Self {
        let place = PLACES.get(entry).copied().flatten().unwrap_or_default();
        #[allow(clippy::indexing_slicing, reason = "the first one exists")]
        let entry = ENTRIES.get(place).unwrap_or(&ENTRIES[0]);
        Self((entry.start)())
    }
}

impl Parser for Kit {
    type Message<'m> = KitMessage<'m>;

    fn bytes(&mut self, input: &Input<'_>, out: Out<'_, Self>) -> Result<Progress, Fault> {
        self.0.bytes(input, out)
    }

    fn datagram(&mut self, datagram: &Datagram<'_>, out: Out<'_, Self>) -> Result<Progress, Fault> {
        self.0.datagram(datagram, out)
    }

    fn gap(&mut self, missing: &Missing<'_>, out: Out<'_, Self>) -> AfterGap {
        self.0.gap(missing, out)
    }

    fn end(&mut self, end: &End<'_>, out: Out<'_, Self>) {
        self.0.end(end, out);
    }

    fn finish(&mut self, out: Out<'_, Self>) {
        self.0.finish(out);
    }

    fn tick(&mut self, now: Timestamp, out: Out<'_, Self>) {
        self.0.tick(now, out);
    }

    fn piece<'m>(message: &'m KitMessage<'_>) -> Option<Piece<'m>> {
        message.piece()
    }

    fn expectation(message: &KitMessage<'_>) -> Option<Expectation> {
        message.expectation()
    }

    fn heap_len(&self) -> usize {
        self.0.heap_len()
    }

    fn save(&self, writer: &mut StateWriter<'_>) -> Result<bool, Invalid> {
        self.0.save(writer).map(|()| true)
    }

    fn load(&mut self, reader: &mut Reader<'_>) -> Result<(), Invalid> {
        self.0.load(reader)
    }
}

impl Union for KitMessage<'_> {
    fn tables() -> Vec<&'static TableInfo> {
        distinct(ENTRIES.iter().flat_map(|entry| entry.tables).copied())
    }

    fn row(&self) -> TableRow<'_> {
        KitMessage::row(self)
    }
}

impl Union for KitTransaction {
    fn tables() -> Vec<&'static TableInfo> {
        distinct(
            ENTRIES.iter().flat_map(|entry| entry.transactions).chain(CrossingRow::TRANSACTIONS).copied(),
        )
    }

    fn row(&self) -> TableRow<'_> {
        KitTransaction::row(self)
    }
}

/// Returns each table once: several protocols may have rows of one, as those of authentications.
fn distinct(all: impl Iterator<Item = &'static TableInfo>) -> Vec<&'static TableInfo> {
    let mut tables: Vec<&TableInfo> = Vec::new();
    for table in all {
        // Events of EVE have what their row has.
        if tables.iter().all(|other| other.name != table.name || other.columns != table.columns) {
            tables.push(table);
        }
    }
    tables
}

/// Returns the tables of the rows in logs of a program.
fn logs(format: LogFormat) -> Vec<&'static TableInfo> {
    let logs = ENTRIES.iter().flat_map(|entry| (entry.logs)()).chain(CrossingRow::logs());
    distinct(logs.filter(|(_, found)| *found == format).map(|(table, _)| table))
}

/// Returns the tables of the rows in Zeek's logs, without those of protocols with a parser of their own.
#[doc(hidden)]
#[must_use]
pub fn zeek_tables() -> Vec<&'static TableInfo> {
    logs(LogFormat::Zeek)
}

/// Returns the tables of events of EVE, without those of protocols with a parser of their own.
#[doc(hidden)]
#[must_use]
pub fn eve_tables() -> Vec<&'static TableInfo> {
    logs(LogFormat::Eve)
}
