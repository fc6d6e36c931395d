//! Flow records of a fixed length.

use std::fmt;
use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use super::writer::{RecordWriter, Summary};
use crate::base::{ConnState, EndReason, FlowKey, IpProtocol, Timestamp, address_bits, duration_nanos};
use crate::record::{FieldSet, FlowRecord, field_set};

/// Version in the upper four bits of the first octet.
const VERSION: u8 = 1;

/// Flags in the lower four bits of the first octet.
const IS_IPV6: u8 = 1;
const HAS_PORTS: u8 = 1 << 1;
const IS_ICMP: u8 = 1 << 2;
const IS_SATURATED: u8 = 1 << 3;
const FLAGS: u8 = 0x0f;

const LEN: usize = 64;

/// Bits of the mantissa of a duration; its exponent is in the bits above.
const MANTISSA_BITS: u32 = 19;

const U24_MAX: u64 = (1 << 24) - 1;

/// Outcomes of connections, by their number in a record.
const CONN_STATES: [ConnState; 13] = [
    ConnState::S0,
    ConnState::S1,
    ConnState::S2,
    ConnState::S3,
    ConnState::Sf,
    ConnState::Rej,
    ConnState::Rsto,
    ConnState::Rstr,
    ConnState::Rstos0,
    ConnState::Rstrh,
    ConnState::Sh,
    ConnState::Shr,
    ConnState::Oth,
];

/// Fields that a fixed record contains, or that follow from those.
const KNOWN: FieldSet = field_set(&[
    "protocol",
    "source_address",
    "source_port",
    "destination_address",
    "destination_port",
    "start",
    "end",
    "duration",
    "packet_count",
    "octet_count",
    "reverse_packet_count",
    "reverse_octet_count",
    "conn_state",
    "flow_end_reason",
    "community_id",
    "icmp_type",
    "icmp_code",
]);

/// A flow record of 64 octets, for messages and files with many records, which is read without copying it.
///
/// The layout is the same on all machines. Numbers are in network order:
///
/// | octets | content |
/// |---|---|
/// | 0 | version 1 in the upper four bits; flags: 1 IPv6, 2 ports, 4 ICMP type and code instead of ports, 8 saturated |
/// | 1 | IP protocol |
/// | 2 | conn_state in the upper four bits, numbered from 0 in the order of [`ConnState`]; flowEndReason in the lower four |
/// | 3 to 5 | duration in nanoseconds: exponent of two in the upper five bits, mantissa in the lower 19 |
/// | 6 to 8, 9 to 11 | packets of the initiator, of the responder |
/// | 12 to 15, 16 to 19 | octets on the wire of the initiator, of the responder |
/// | 20 to 27 | time of the first packet in nanoseconds since 1970 |
/// | 28 to 29, 30 to 31 | port of the initiator, of the responder; for ICMP, type and code |
/// | 32 to 47, 48 to 63 | address of the initiator, of the responder; IPv4 in the last four octets |
///
/// A duration is rounded down by less than 4 millionths of its value. A count beyond the maximum of its field, 16,777,215
/// packets or 4,294,967,295 octets, is stored as this maximum, and the record [is saturated](Self::is_saturated).
///
/// ```
/// use flowgauge::export::FixedRecord;
/// use flowgauge::{FileSource, records};
///
/// let mut file = Vec::new();
/// for record in records(FileSource::open("examples/data/web.pcap")?) {
///     file.extend_from_slice(&FixedRecord::encode(&record?));
/// }
/// let mut packet_count = 0;
/// for record in FixedRecord::all(&file) {
///     packet_count += record?.packet_count();
/// }
/// assert_eq!(file.len(), 27 * FixedRecord::LEN);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct FixedRecord<'a>(&'a [u8; LEN]);

/// Error of a [`FixedRecord`] that cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FixedRecordError {
    /// The record has another version.
    Version(u8),
    /// The conn_state or the flowEndReason has no meaning.
    Outcome(u8),
    /// There are fewer octets than a record has.
    Truncated {
        /// Number of octets that are left.
        available: usize,
    },
}

impl fmt::Display for FixedRecordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Version(version) => write!(f, "fixed record of the unknown version {version}"),
            Self::Outcome(octet) => write!(f, "fixed record with the invalid outcome {octet:#04x}"),
            Self::Truncated { available } => {
                write!(
                    f,
                    "truncated fixed record: {} octets required, {available} available",
                    FixedRecord::LEN
                )
            }
        }
    }
}

impl std::error::Error for FixedRecordError {}

/// Writes flow records one after another as records of a fixed length.
#[derive(Debug)]
pub(super) struct FixedRecords<W> {
    out: W,
    row_count: u64,
}

impl<W: Write> FixedRecords<W> {
    pub(super) const fn new(out: W) -> Self {
        Self { out, row_count: 0 }
    }
}

impl<W: Write> RecordWriter<FlowRecord> for FixedRecords<W> {
    fn write_if(&mut self, record: &FlowRecord, permits: &mut dyn FnMut(usize) -> bool) -> io::Result<bool> {
        let is_permitted = permits(LEN);
        if is_permitted {
            self.out.write_all(&FixedRecord::encode(record))?;
            self.row_count += 1;
        }
        Ok(is_permitted)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    fn finish(mut self: Box<Self>) -> io::Result<Summary> {
        self.out.flush()?;
        Ok(Summary { row_count: self.row_count })
    }
}

impl<'a> FixedRecord<'a> {
    /// Length of a record in octets.
    pub const LEN: usize = LEN;

    /// Encodes a flow record. Constant time; allocates nothing.
    #[must_use]
    #[inline]
    pub fn encode(record: &FlowRecord) -> [u8; LEN] {
        let mut out = [0; LEN];
        Self::encode_to(record, &mut out);
        out
    }

    /// Appends an encoded flow record to a buffer, without the copy that [`encode`](Self::encode) and a later append need.
    #[inline]
    pub fn append(record: &FlowRecord, buffer: &mut Vec<u8>) {
        buffer.resize(buffer.len() + LEN, 0);
        if let Some(out) = buffer.last_chunk_mut() {
            Self::encode_to(record, out);
        }
    }

    #[inline]
    fn encode_to(record: &FlowRecord, out: &mut [u8; LEN]) {
        let (forward, reverse) = (&record.forward.counters, &record.reverse.counters);
        let key = &record.key;
        let (source, destination) = (record.initiator, record.initiator.other());
        let (port_flag, ports) = match (key.port(source), key.port(destination), record.icmp) {
            (Some(source), Some(destination), _) => (HAS_PORTS, [source, destination]),
            (_, _, Some((kind, code))) => (IS_ICMP, [kind.into(), code.into()]),
            _ => (0, [0, 0]),
        };
        let packets = [forward.packet_count, reverse.packet_count];
        let octets = [forward.octet_count, reverse.octet_count];
        let is_saturated = packets[0].max(packets[1]) > U24_MAX || octets[0].max(octets[1]) > u32::MAX.into();
        let flags =
            port_flag | if key.is_ipv6() { IS_IPV6 } else { 0 } | if is_saturated { IS_SATURATED } else { 0 };
        let outcome = (record.conn_state as u8) << 4 | record.flow_end_reason as u8;
        let packets = packets.map(|count| count.min(U24_MAX));
        let octets = octets.map(|count| count.min(u32::MAX.into()));
        let duration = encode_duration(duration_nanos(record.duration()));

        // The fields as words of eight octets.
        let first = u64::from(VERSION << 4 | flags) << 56
            | u64::from(key.protocol().0) << 48
            | u64::from(outcome) << 40
            | u64::from(duration) << 16
            | packets[0] >> 8;
        let second = (packets[0] & 0xff) << 56 | packets[1] << 32 | octets[0];
        let third = octets[1] << 32 | record.start.as_nanos() >> 32;
        let fourth = record.start.as_nanos() << 32 | u64::from(ports[0]) << 16 | u64::from(ports[1]);
        let (words, addresses) = out.split_at_mut(32);
        for (target, word) in words.as_chunks_mut::<8>().0.iter_mut().zip([first, second, third, fourth]) {
            *target = word.to_be_bytes();
        }
        let sides = [source, destination];
        for (target, side) in addresses.as_chunks_mut::<16>().0.iter_mut().zip(sides) {
            *target = address_bits(key.address(side)).to_be_bytes();
        }
    }

    /// Reads a record without copying it.
    ///
    /// # Errors
    ///
    /// Returns an error for another version, and for values that no record has.
    #[inline]
    pub const fn new(octets: &'a [u8; LEN]) -> Result<Self, FixedRecordError> {
        let (version, outcome) = (octets[0] >> 4, octets[2]);
        if version != VERSION {
            return Err(FixedRecordError::Version(version));
        }
        if (outcome >> 4) as usize >= CONN_STATES.len()
            || EndReason::from_number((outcome & 0xf) as u64).is_none()
        {
            return Err(FixedRecordError::Outcome(outcome));
        }
        Ok(Self(octets))
    }

    /// Iterates over the records that follow each other in `octets`, without copying them. The last item is
    /// [`FixedRecordError::Truncated`] if the last record is incomplete.
    pub fn all(octets: &'a [u8]) -> impl Iterator<Item = Result<Self, FixedRecordError>> {
        let (records, rest) = octets.as_chunks::<LEN>();
        let truncated = Err(FixedRecordError::Truncated { available: rest.len() });
        let truncated = (!rest.is_empty()).then_some(truncated);
        records.iter().map(Self::new).chain(truncated)
    }

    /// Returns the word of eight octets with an index.
    #[inline(always)]
    fn word(self, index: usize) -> u64 {
        self.0.as_chunks::<8>().0.get(index).map_or(0, |octets| u64::from_be_bytes(*octets))
    }

    #[inline(always)]
    const fn has(self, flag: u8) -> bool {
        self.0[0] & FLAGS & flag != 0
    }

    /// Returns the IP protocol.
    #[must_use]
    #[inline]
    pub const fn protocol(self) -> IpProtocol {
        IpProtocol(self.0[1])
    }

    /// Returns the outcome of the connection.
    #[must_use]
    #[inline]
    pub fn conn_state(self) -> ConnState {
        CONN_STATES.get(usize::from(self.0[2] >> 4)).copied().unwrap_or(ConnState::Oth)
    }

    /// Returns the reason for the end of the record.
    #[must_use]
    #[inline]
    pub fn flow_end_reason(self) -> EndReason {
        EndReason::from_number(u64::from(self.0[2] & 0xf)).unwrap_or(EndReason::ForcedEnd)
    }

    /// Returns the time of the first packet.
    #[must_use]
    #[inline]
    pub fn start(self) -> Timestamp {
        Timestamp::from_nanos(self.word(2) << 32 | self.word(3) >> 32)
    }

    /// Returns the time from the first packet to the last, rounded down.
    #[must_use]
    #[inline]
    pub fn duration(self) -> Duration {
        let encoded = self.word(0) >> 16 & U24_MAX;
        let mantissa = encoded & ((1 << MANTISSA_BITS) - 1);
        // The exponent has five bits.
        Duration::from_nanos(mantissa << (encoded >> MANTISSA_BITS))
    }

    /// Returns the packets of the initiator.
    #[must_use]
    #[inline]
    pub fn packet_count(self) -> u64 {
        (self.word(0) & 0xffff) << 8 | self.word(1) >> 56
    }

    /// Returns the packets of the responder.
    #[must_use]
    #[inline]
    pub fn reverse_packet_count(self) -> u64 {
        self.word(1) >> 32 & U24_MAX
    }

    /// Returns the octets on the wire of the initiator's packets.
    #[must_use]
    #[inline]
    pub fn octet_count(self) -> u64 {
        self.word(1) & 0xffff_ffff
    }

    /// Returns the octets on the wire of the responder's packets.
    #[must_use]
    #[inline]
    pub fn reverse_octet_count(self) -> u64 {
        self.word(2) >> 32
    }

    /// Returns whether a count is larger than its field can express.
    #[must_use]
    #[inline]
    pub const fn is_saturated(self) -> bool {
        self.has(IS_SATURATED)
    }

    /// Returns the ports of initiator and responder, if the protocol has ports.
    #[must_use]
    #[inline]
    pub fn ports(self) -> Option<(u16, u16)> {
        self.has(HAS_PORTS).then(|| self.raw_ports())
    }

    /// Returns ICMP type and code of the initiator's first packet.
    #[must_use]
    #[inline]
    pub fn icmp(self) -> Option<(u8, u8)> {
        let (kind, code) = self.raw_ports();
        self.has(IS_ICMP).then_some((kind as u8, code as u8))
    }

    /// Returns whether the protocol is the ICMP of the IP version, as in a key of ICMP types.
    fn is_icmp_of_version(self) -> bool {
        self.protocol() == if self.has(IS_IPV6) { IpProtocol::ICMPV6 } else { IpProtocol::ICMP }
    }

    #[inline(always)]
    fn raw_ports(self) -> (u16, u16) {
        ((self.word(3) >> 16) as u16, self.word(3) as u16)
    }

    /// Returns the addresses of initiator and responder.
    #[must_use]
    #[inline]
    pub fn addresses(self) -> (IpAddr, IpAddr) {
        let bits = |index| u128::from(self.word(index)) << 64 | u128::from(self.word(index + 1));
        let address = |bits: u128| {
            if self.has(IS_IPV6) {
                IpAddr::V6(Ipv6Addr::from_bits(bits))
            } else {
                IpAddr::V4(Ipv4Addr::from_bits(bits as u32))
            }
        };
        (address(bits(4)), address(bits(6)))
    }

    /// Returns the record with the fields that it contains.
    #[must_use]
    pub fn to_record(self) -> FlowRecord {
        let (source, destination) = self.addresses();
        let (key, initiator) = match (self.ports(), self.icmp()) {
            (Some(ports), _) => FlowKey::new(self.protocol(), (source, ports.0), (destination, ports.1)),
            (None, Some((kind, code))) if self.is_icmp_of_version() => {
                FlowKey::icmp(source, destination, kind, code)
            }
            (None, _) => FlowKey::pair(self.protocol(), source, destination),
        };
        let mut record = FlowRecord::new(key, initiator, self.start());
        record.end = self.start().saturating_add(self.duration());
        record.open_end = record.end;
        record.forward.counters.packet_count = self.packet_count();
        record.forward.counters.octet_count = self.octet_count();
        record.reverse.counters.packet_count = self.reverse_packet_count();
        record.reverse.counters.octet_count = self.reverse_octet_count();
        record.icmp = self.icmp();
        (record.conn_state, record.flow_end_reason) = (self.conn_state(), self.flow_end_reason());
        record.known = KNOWN;
        record
    }
}

/// Encodes a duration with a mantissa of 19 bits and an exponent of five, rounded down; at most 13 days.
#[inline]
fn encode_duration(nanos: u64) -> u32 {
    const MANTISSA_MAX: u64 = (1 << MANTISSA_BITS) - 1;
    const EXPONENT_MAX: u32 = (1 << (24 - MANTISSA_BITS)) - 1;
    let exponent = (u64::BITS - nanos.leading_zeros()).saturating_sub(MANTISSA_BITS);
    if exponent > EXPONENT_MAX {
        return U24_MAX as u32;
    }
    exponent << MANTISSA_BITS | (nanos >> exponent & MANTISSA_MAX) as u32
}

impl fmt::Debug for FixedRecord<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("FixedRecord").field(&self.to_record()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_have_the_numbers_of_their_order() {
        for (number, state) in CONN_STATES.into_iter().enumerate() {
            assert_eq!(state as usize, number);
        }
    }

    #[test]
    fn durations_are_rounded_down_by_less_than_four_millionths() {
        let decode = |encoded: u32| u64::from(encoded & 0x7_ffff) << (encoded >> 19);
        for nanos in [0, 1, 524_287, 524_288, 1_000_000_007, 86_400_000_000_000, 1_125_000_000_000_000] {
            let decoded = decode(encode_duration(nanos));
            assert!(decoded <= nanos && nanos - decoded <= nanos / 250_000, "{nanos} {decoded}");
        }
        assert_eq!(encode_duration(u64::MAX), 0xff_ffff);
    }
}
