//! RTP and RTCP: a row for each stream of media with what was lost, late and repeated, and what each receiver reports.
//!
//! Delays are those at the point of capture. The clock of a stream is that of its payload type, or the usual one that its times agree
//! with. A stream and its reports have their rows at the end of the flow.
//!
//! Standards: RFC 3550, 3551, 5761 (both on one port); ITU-T G.107 and G.113 (estimate of quality).

use std::time::Duration;

use super::recognizers::octets::{u16_at, u32_at};
use crate::base::Timestamp;
use crate::checkpoint::state;
use crate::codec::Reader;
use crate::session::framing::{AfterPdu, Pdu};
use crate::session::kit::{ExchangeHead, Kept, Malformed, PduParser, Rows, exchange, names, open};
use crate::session::{DatagramOpening, OctetSet, Protocol, Role, Verdict};

/// Protocol `rtp`, recognized by two datagrams of one side with the same source identifier and increasing sequence numbers.
pub static PROTOCOL: Protocol = Protocol::new("rtp")
    .over_datagrams(&[], Some(probe))
    .datagrams_begin_with(OctetSet::range(0x80..=0xBF))
    .reading_previous()
    .with_kinds(&["rtp_stream", "rtcp_report"])
    .with_message_len_min(12)
    .with_limits("16 streams and 16 reports at a time")
    .with_standards("RFC 3550, 3551, 5761; G.107, G.113");

/// Protocol `rtcp`, recognized by a report whose length matches its number of blocks, also in SRTCP; or by feedback messages that fill
/// the datagram.
pub static RTCP: Protocol = Protocol::new("rtcp")
    .over_datagrams(&[], Some(probe_rtcp))
    .datagrams_begin_with(OctetSet::range(0x80..=0xBF))
    .with_kinds(&["rtcp_report"])
    .with_message_len_min(8)
    .with_limits("16 reports at a time")
    .with_standards("RFC 3550");

/// The fields of a header that are constant or increase.
#[derive(Clone, Copy)]
struct Header {
    payload_type: u8,
    sequence: u16,
    timestamp: u32,
    ssrc: u32,
    len: usize,
}

fn header(bytes: &[u8]) -> Option<Header> {
    let [first, second, ..] = bytes else { return None };
    let payload_type = second & 0x7F;
    // Static types, and dynamic ones; RTCP uses the values in between.
    let is_type = matches!(payload_type, 0..=34 | 96..=127);
    let len = 12 + 4 * usize::from(first & 0x0F);
    if first >> 6 != 2 || !is_type || bytes.len() < len.min(64) {
        return None;
    }
    let (timestamp, ssrc) = (u32_at(bytes, 4)?, u32_at(bytes, 8)?);
    Some(Header { payload_type, sequence: u16_at(bytes, 2)?, timestamp, ssrc, len }).filter(|_| ssrc != 0)
}

fn probe(opening: &DatagramOpening<'_>) -> Verdict {
    let Some(Header { sequence, ssrc, .. }) = header(opening.bytes) else { return Verdict::No };
    if opening.previous.is_empty() {
        return Verdict::More;
    }
    let follows = header(opening.previous).is_some_and(|before| {
        before.ssrc == ssrc && (1..=16).contains(&sequence.wrapping_sub(before.sequence))
    });
    Verdict::of(follows)
}

/// Types of packets of RTCP (RFC 3550 section 12.1).
mod packet {
    pub(super) const SENDER_REPORT: u8 = 200;
    pub(super) const RECEIVER_REPORT: u8 = 201;
    pub(super) const SOURCE_DESCRIPTION: u8 = 202;
}

fn probe_rtcp(opening: &DatagramOpening<'_>) -> Verdict {
    let [first, packet_type @ 200..=207, ..] = opening.bytes else { return Verdict::No };
    let Some(word_count) = u16_at(opening.bytes, 2).filter(|_| first >> 6 == 2) else { return Verdict::No };
    let block_words = 6 * u16::from(first & 0x1F);
    let len = 4 * (usize::from(word_count) + 1);
    Verdict::of(match *packet_type {
        packet::SENDER_REPORT => word_count == 6 + block_words && len <= opening.len,
        packet::RECEIVER_REPORT => word_count == 1 + block_words && len <= opening.len,
        _ => len == opening.len && len >= 12,
    })
}

names! {
    /// Encoding of the media: that of a payload type, if it is static (RFC 3551 section 6).
    pub struct PayloadType: u8 {
        0 => "PCMU", 3 => "GSM", 4 => "G723", 5 => "DVI4", 6 => "DVI4", 7 => "LPC", 8 => "PCMA", 9 => "G722", 10 => "L16",
        11 => "L16", 12 => "QCELP", 13 => "CN", 14 => "MPA", 15 => "G728", 16 => "DVI4", 17 => "DVI4", 18 => "G729",
        25 => "CelB", 26 => "JPEG", 28 => "nv", 31 => "H261", 32 => "MPV", 33 => "MP2T", 34 => "H263",
    }
}

impl PayloadType {
    /// Returns the rate of the clock in hertz (RFC 3551 section 6).
    const fn clock_rate(self) -> Option<u32> {
        Some(match self.0 {
            0 | 3..=5 | 7..=9 | 12 | 13 | 15 | 18 => 8000,
            6 => 16_000,
            10 | 11 => 44_100,
            16 => 11_025,
            17 => 22_050,
            14 | 25..=34 => 90_000,
            _ => return None,
        })
    }

    /// Returns the impairment by the encoding, and its robustness against loss (G.113 appendix I), with concealment.
    const fn impairment(self) -> Option<(f64, f64)> {
        Some(match self.0 {
            0 | 8 => (0.0, 25.1),
            4 => (15.0, 16.1),
            18 => (11.0, 19.0),
            _ => return None,
        })
    }
}

exchange! {
    /// A stream of media of one sender.
    "rtp_stream" pub struct Stream {
        /// True if the client of the flow sends it.
        pub is_from_client: bool,
        /// Identifier of the source (SSRC).
        pub ssrc: u32,
        /// Encoding, or the number of a dynamic one: of the first packet.
        pub payload_type: PayloadType,
        /// Rate of the clock in hertz; null if it is unknown.
        pub clock_rate: Option<u32>,
        /// Number of packets.
        pub packet_count: u64,
        /// Number of octets of media, with extensions of the header and padding.
        pub payload_len: u64 [octets],
        /// Number of packets that were not captured, by their sequence numbers.
        pub lost_count: u64,
        /// Number of packets that were captured after later ones.
        pub late_count: u64,
        /// Number of packets that were captured twice.
        pub duplicate_count: u64,
        /// Mean of the jitter (RFC 3550 section 6.4.1) at each packet.
        pub jitter_time: Option<Duration>,
        /// Greatest jitter.
        pub jitter_max_time: Option<Duration>,
        /// Estimate of how well listeners understand it, from 1 to 4.5 (MOS by the E-model of G.107): of the encoding, the loss, and
        /// twice the greatest jitter as delay; null for encodings without published values.
        pub opinion_score: Option<f64>,
    }
}

exchange! {
    /// What a receiver or sender reports of a stream.
    "rtcp_report" pub struct Report {
        /// True if the client of the flow reports it.
        pub is_from_client: bool,
        /// Identifier of who reports.
        pub ssrc: u32,
        /// Identifier of the stream that it receives; null if it only sends.
        pub source_ssrc: Option<u32>,
        /// Name of who reports (CNAME).
        pub name: Option<Kept<128>>,
        /// Number of reports.
        pub report_count: u64,
        /// Number of packets that it has sent, at the latest report.
        pub sent_packet_count: Option<u32>,
        /// Number of octets of media that it has sent.
        pub sent_len: Option<u32> [octets],
        /// Number of packets of the stream that it has not received; negative if some came twice.
        pub lost_count: Option<i32>,
        /// Greatest part of packets that were lost between two reports, from 0 to 1.
        pub lost_max_ratio: Option<f64>,
        /// Greatest jitter, in units of the clock of the stream.
        pub jitter_max: Option<u32>,
        /// Shortest time from the point of capture to who reports and back.
        pub round_trip_time: Option<Duration>,
    }
}

open! {
    /// Rows of RTP.
    pub(crate) enum Row { 0 = Stream, 1 = Report }
}

/// Rates of clocks, in hertz, with which the times of a stream are compared.
const CLOCK_RATES: [u32; 9] = [8000, 11_025, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000, 90_000];

/// Number of packets by which a clock is found.
const EARLY_MAX: usize = 32;

/// Number of streams, and of reports, of a flow.
const COUNT_MAX: usize = 16;

/// What is known of a stream.
#[derive(Debug, Default)]
struct Measured {
    is_from_client: bool,
    ssrc: u32,
    payload_type: PayloadType,
    times: [Timestamp; 2],
    packet_count: u64,
    payload_len: u64,
    /// First and highest sequence number, with the rounds.
    numbers: [u64; 2],
    /// Which of the last 64 numbers up to the highest were captured.
    seen: u64,
    /// Number of packets before the numbers began anew.
    earlier_count: u64,
    late_count: u64,
    duplicate_count: u64,
    clock_rate: Option<u32>,
    /// Packets before the clock is known: capture time, and time in units of the clock.
    early: Vec<(Timestamp, u32)>,
    latest: Option<(Timestamp, u32)>,
    /// Sixteen times the jitter in nanoseconds.
    jitter: u64,
    jitter_max: u64,
    jitter_sum: u64,
    jitter_count: u64,
}

state! {
    struct Measured {
        is_from_client, ssrc, payload_type, times, packet_count, payload_len, numbers, seen, earlier_count, late_count, duplicate_count,
        clock_rate, early, latest, jitter, jitter_max, jitter_sum, jitter_count,
    } if |stream| stream.early.len() <= EARLY_MAX
}

impl Measured {
    fn add(&mut self, header: Header, len: usize, now: Timestamp) {
        if self.packet_count == 0 {
            (self.times[0], self.numbers) = (now, [u64::from(header.sequence); 2]);
            (self.payload_type, self.seen) = (PayloadType(header.payload_type), 1);
            self.clock_rate = self.payload_type.clock_rate();
        } else {
            self.number(header.sequence);
        }
        self.times[1] = now;
        self.packet_count += 1;
        self.payload_len += len.saturating_sub(header.len) as u64;
        // Comfort noise and events are sent in other intervals.
        if header.payload_type == self.payload_type.0 {
            self.time(now, header.timestamp);
        }
    }

    /// Counts what a sequence number says of the packets before.
    fn number(&mut self, sequence: u16) {
        let [first, highest] = &mut self.numbers;
        match sequence.wrapping_sub(*highest as u16).cast_signed() {
            step @ 1..=3000 => {
                *highest += step.unsigned_abs() as u64;
                self.seen = self.seen.checked_shl(step.unsigned_abs().into()).unwrap_or(0) | 1;
            }
            step @ -63..=0 => {
                let bit = 1 << step.unsigned_abs();
                let is_known = self.seen & bit != 0;
                self.duplicate_count += u64::from(is_known);
                self.late_count += u64::from(!is_known);
                self.seen |= bit;
            }
            -1000..=-64 => self.late_count += 1,
            _ => {
                self.earlier_count += *highest - *first + 1;
                (*first, *highest, self.seen) = (sequence.into(), sequence.into(), 1);
            }
        }
    }

    fn time(&mut self, now: Timestamp, timestamp: u32) {
        match self.clock_rate {
            Some(clock_rate) => self.jitter((now, timestamp), clock_rate),
            None => {
                self.early.push((now, timestamp));
                if self.early.len() == EARLY_MAX {
                    self.find_clock();
                    self.early.drain(..);
                }
            }
        }
    }

    /// Finds the rate of the clock by the first packets, whose jitter is counted then.
    fn find_clock(&mut self) {
        let (Some(first), Some(last)) = (self.early.first(), self.early.last()) else { return };
        let elapsed_ns = last.0.saturating_since(first.0).as_nanos().max(1);
        let rate = u128::from(last.1.wrapping_sub(first.1)) * 1_000_000_000 / elapsed_ns;
        let nearest = CLOCK_RATES.into_iter().min_by_key(|usual| rate.abs_diff(u128::from(*usual)));
        self.clock_rate = nearest.filter(|usual| rate.abs_diff(u128::from(*usual)) * 20 < u128::from(*usual));
        if let Some(clock_rate) = self.clock_rate {
            for packet in std::mem::take(&mut self.early) {
                self.jitter(packet, clock_rate);
            }
        }
    }

    /// Adds a packet to the jitter (RFC 3550 appendix A.8).
    fn jitter(&mut self, packet: (Timestamp, u32), clock_rate: u32) {
        let Some((before, timestamp)) = self.latest.replace(packet) else { return };
        let elapsed_ns = packet.0.as_nanos() as i64 - before.as_nanos() as i64;
        let media = i64::from(packet.1.wrapping_sub(timestamp).cast_signed());
        let media_ns = media * 1_000_000_000 / i64::from(clock_rate);
        let difference = elapsed_ns.abs_diff(media_ns);
        self.jitter = self.jitter + difference - (self.jitter + 8) / 16;
        let jitter = self.jitter / 16;
        self.jitter_max = self.jitter_max.max(jitter);
        self.jitter_sum = self.jitter_sum.saturating_add(jitter);
        self.jitter_count += 1;
    }

    fn row(&mut self) -> Stream {
        if self.clock_rate.is_none() {
            self.find_clock();
        }
        let [first, highest] = self.numbers;
        let expected = self.earlier_count + highest - first + 1;
        let lost_count = expected.saturating_sub(self.packet_count - self.duplicate_count);
        let has_jitter = self.jitter_count > 0;
        let jitter_max_time = has_jitter.then(|| Duration::from_nanos(self.jitter_max));
        let lost = lost_count as f64 / expected as f64;
        let from = if self.is_from_client { Role::Client } else { Role::Server };
        let head = ExchangeHead { end: self.times[1], ..ExchangeHead::new(from, self.times[0]) };
        Stream {
            is_from_client: self.is_from_client,
            ssrc: self.ssrc,
            payload_type: self.payload_type,
            clock_rate: self.clock_rate,
            packet_count: self.packet_count,
            payload_len: self.payload_len,
            lost_count,
            late_count: self.late_count,
            duplicate_count: self.duplicate_count,
            jitter_time: has_jitter.then(|| Duration::from_nanos(self.jitter_sum / self.jitter_count)),
            jitter_max_time,
            opinion_score: opinion_score(self.payload_type, lost, jitter_max_time.unwrap_or_default()),
            exchange: head,
        }
    }
}

/// Estimates how well listeners understand a stream (G.107, with the values that it gives for what is not measured).
fn opinion_score(payload_type: PayloadType, lost: f64, jitter: Duration) -> Option<f64> {
    let (impairment, robustness) = payload_type.impairment()?;
    let delay_ms = 2.0 * jitter.as_secs_f64() * 1000.0;
    let by_delay = 0.024 * delay_ms + 0.11 * (delay_ms - 177.3).max(0.0);
    let lost_percent = 100.0 * lost;
    let by_loss = impairment + (95.0 - impairment) * lost_percent / (lost_percent + robustness);
    let rating = (93.2 - by_delay - by_loss).clamp(0.0, 100.0);
    let score = 1.0 + 0.035 * rating + 7e-6 * rating * (rating - 60.0) * (100.0 - rating);
    Some((score.max(1.0) * 100.0).round() / 100.0)
}

/// Parser of RTP, with RTCP on the same port.
#[derive(Debug, Default)]
pub(crate) struct Rtp {
    streams: Vec<Measured>,
    reports: Reports,
}

state! { struct Rtp { streams, reports } if |parser| parser.streams.len() <= COUNT_MAX }

impl PduParser for Rtp {
    const PROTOCOL: &'static Protocol = &PROTOCOL;
    type Row = Row;

    fn heap_len(&self) -> usize {
        let early: usize =
            self.streams.iter().map(|stream| stream.early.capacity() * size_of::<(Timestamp, u32)>()).sum();
        self.streams.capacity() * size_of::<Measured>() + early + self.reports.heap_len()
    }

    fn pdu(&mut self, pdu: &Pdu<'_>, rows: &mut Rows<'_, Row>) -> Result<AfterPdu, Malformed> {
        let Some(header) = header(pdu.bytes) else { return self.reports.add(pdu, rows) };
        let is_from_client = pdu.from == Role::Client;
        let is_of = |stream: &Measured| (stream.is_from_client, stream.ssrc) == (is_from_client, header.ssrc);
        let index = match self.streams.iter().position(is_of) {
            Some(index) => index,
            None => {
                if self.streams.len() == COUNT_MAX {
                    let oldest = self.streams.iter().enumerate().min_by_key(|(_, stream)| stream.times[1]);
                    let oldest = oldest.map_or(0, |(index, _)| index);
                    rows.kept(&self.streams.swap_remove(oldest).row());
                }
                self.streams.push(Measured { is_from_client, ssrc: header.ssrc, ..Measured::default() });
                self.streams.len() - 1
            }
        };
        if let Some(stream) = self.streams.get_mut(index) {
            stream.add(header, usize::try_from(pdu.len).unwrap_or(usize::MAX), pdu.timestamp);
        }
        Ok(AfterPdu::More)
    }

    fn finish(&mut self, rows: &mut Rows<'_, Row>) {
        self.streams.drain(..).for_each(|mut stream| rows.kept(&stream.row()));
        self.reports.finish(rows);
    }
}

/// Parser of RTCP.
#[derive(Debug, Default)]
pub(crate) struct Rtcp {
    reports: Reports,
}

state! { struct Rtcp { reports } }

impl PduParser for Rtcp {
    const PROTOCOL: &'static Protocol = &RTCP;
    type Row = Row;

    fn heap_len(&self) -> usize {
        self.reports.heap_len()
    }

    fn pdu(&mut self, pdu: &Pdu<'_>, rows: &mut Rows<'_, Row>) -> Result<AfterPdu, Malformed> {
        self.reports.add(pdu, rows)
    }

    fn finish(&mut self, rows: &mut Rows<'_, Row>) {
        self.reports.finish(rows);
    }
}

/// Reports of a flow.
#[derive(Debug, Default)]
struct Reports {
    open: Vec<Report>,
    /// Latest report of a sender of each side: middle of its time, and when it was captured.
    sent: [Option<(u32, Timestamp)>; 2],
}

state! { struct Reports { open, sent } if |reports| reports.open.len() <= COUNT_MAX }

impl Reports {
    fn heap_len(&self) -> usize {
        self.open.capacity() * size_of::<Report>()
    }

    /// Reads the packets of a datagram, if they fill it: those of SRTCP do not.
    fn add<R>(&mut self, pdu: &Pdu<'_>, rows: &mut Rows<'_, R>) -> Result<AfterPdu, Malformed>
    where
        R: crate::session::kit::Open,
    {
        let packets = Packets(pdu.bytes);
        if pdu.is_truncated() || packets.clone().map(|packet| packet.len).sum::<usize>() != pdu.bytes.len() {
            return Err(Malformed);
        }
        for Packet { kind, count, content, .. } in packets {
            let mut reader = Reader::new(content);
            let ssrc: u32 = reader.be()?;
            match kind {
                packet::SENDER_REPORT => {
                    let (_, middle, _): (u16, u32, u16) = (reader.be()?, reader.be()?, reader.be()?);
                    let (_, packets, octets): (u32, u32, u32) = (reader.be()?, reader.be()?, reader.be()?);
                    *pdu.from.of_mut(&mut self.sent) = Some((middle, pdu.timestamp));
                    if count == 0 {
                        self.of(pdu, (ssrc, None), rows);
                    } else {
                        self.blocks(pdu, ssrc, count, &mut reader, rows)?;
                    }
                    let of_sender = |report: &&mut Report| {
                        report.ssrc == ssrc && report.is_from_client == (pdu.from == Role::Client)
                    };
                    for report in self.open.iter_mut().filter(of_sender) {
                        (report.sent_packet_count, report.sent_len) = (Some(packets), Some(octets));
                    }
                }
                packet::RECEIVER_REPORT => self.blocks(pdu, ssrc, count, &mut reader, rows)?,
                packet::SOURCE_DESCRIPTION => {
                    // The first chunk, and in it the first item, is the name (section 6.5.1).
                    let (kind, len): (u8, u8) = (reader.be()?, reader.be()?);
                    let name = reader.bytes(len.into())?;
                    for report in self.open.iter_mut().filter(|report| kind == 1 && report.ssrc == ssrc) {
                        report.name = Some(Kept::new(name));
                    }
                }
                _ => {}
            }
        }
        Ok(AfterPdu::More)
    }

    /// Reads what is reported of other streams.
    fn blocks<R>(
        &mut self,
        pdu: &Pdu<'_>,
        ssrc: u32,
        count: u8,
        reader: &mut Reader<'_>,
        rows: &mut Rows<'_, R>,
    ) -> Result<(), Malformed>
    where
        R: crate::session::kit::Open,
    {
        for _ in 0..count {
            let (source, lost): (u32, u32) = (reader.be()?, reader.be()?);
            let (_, jitter): (u32, u32) = (reader.be()?, reader.be()?);
            let (middle, delay): (u32, u32) = (reader.be()?, reader.be()?);
            let sent = pdu.from.other().of(&self.sent).filter(|(of, _)| *of == middle && middle != 0);
            let Some(report) = self.of(pdu, (ssrc, Some(source)), rows) else { continue };
            // Eight bits of a ratio, then a signed number of 24 bits.
            report.lost_count = Some((lost << 8).cast_signed() >> 8);
            let ratio = f64::from(lost >> 24) / 256.0;
            report.lost_max_ratio = Some(report.lost_max_ratio.unwrap_or_default().max(ratio));
            report.jitter_max = report.jitter_max.max(Some(jitter));
            if let Some((_, captured)) = sent {
                let delay = Duration::from_nanos(u64::from(delay) * 1_000_000_000 / 65_536);
                let round_trip = pdu.timestamp.saturating_since(captured).saturating_sub(delay);
                report.round_trip_time =
                    Some(report.round_trip_time.map_or(round_trip, |known| known.min(round_trip)));
            }
        }
        Ok(())
    }

    /// Returns the row for who reports and a source, with one report more.
    fn of<R>(
        &mut self,
        pdu: &Pdu<'_>,
        (ssrc, source_ssrc): (u32, Option<u32>),
        rows: &mut Rows<'_, R>,
    ) -> Option<&mut Report>
    where
        R: crate::session::kit::Open,
    {
        let is_from_client = pdu.from == Role::Client;
        let is_of = |report: &Report| {
            (report.is_from_client, report.ssrc, report.source_ssrc) == (is_from_client, ssrc, source_ssrc)
        };
        let index = match self.open.iter().position(is_of) {
            Some(index) => index,
            None => {
                if self.open.len() == COUNT_MAX {
                    let oldest = self.open.iter().enumerate().min_by_key(|(_, report)| report.exchange.end);
                    let oldest = oldest.map_or(0, |(index, _)| index);
                    rows.kept(&self.open.swap_remove(oldest));
                }
                let exchange = ExchangeHead::new(pdu.from, pdu.timestamp);
                self.open.push(Report { is_from_client, ssrc, source_ssrc, exchange, ..Report::default() });
                self.open.len() - 1
            }
        };
        let report = self.open.get_mut(index)?;
        report.report_count += 1;
        report.exchange.end = pdu.timestamp;
        Some(report)
    }

    fn finish<R>(&mut self, rows: &mut Rows<'_, R>)
    where
        R: crate::session::kit::Open,
    {
        self.open.drain(..).for_each(|report| rows.kept(&report));
    }
}

/// Packets of RTCP that follow each other.
#[derive(Clone)]
struct Packets<'a>(&'a [u8]);

struct Packet<'a> {
    kind: u8,
    count: u8,
    len: usize,
    content: &'a [u8],
}

impl<'a> Iterator for Packets<'a> {
    type Item = Packet<'a>;

    fn next(&mut self) -> Option<Packet<'a>> {
        let [first @ 0x80..=0xBF, kind @ 200..=207, ..] = *self.0 else { return None };
        let len = 4 * (usize::from(u16_at(self.0, 2)?) + 1);
        let (packet, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(Packet { kind, count: first & 0x1F, len, content: packet.get(4..)? })
    }
}

#[cfg(test)]
pub(super) mod samples {
    use super::super::recognizers::samples::{Sample, datagram};
    use super::{PROTOCOL, RTCP};

    const RTP_1: &[u8] = b"\x80\x00\x12\x34\x00\x00\x00\xA0\xDE\xAD\xBE\xEFvoice";
    const RTP_2: &[u8] = b"\x80\x00\x12\x35\x00\x00\x01\x40\xDE\xAD\xBE\xEFvoice";

    pub(in super::super) const SAMPLES: &[Sample] = &[
        datagram(&PROTOCOL, 40_000, RTP_2).after(RTP_1),
        datagram(&RTCP, 40_001, b"\x80\xC9\x00\x01\xDE\xAD\xBE\xEF"),
        datagram(
            &RTCP,
            40_001,
            b"\x80\xC8\x00\x06\xDE\xAD\xBE\xEF\0\0\0\x01\0\0\0\x02\0\0\0\x03\0\0\0\x04\0\0\0\x05\x0Bencrypted",
        ),
    ];

    pub(in super::super) const LOOK_ALIKES: &[Sample] = &[
        datagram(&PROTOCOL, 40_000, RTP_2).after(b"\x80\x00\x12\x34\x00\x00\x00\xA0\xDE\xAD\xBE\xEEvoice"),
        datagram(&PROTOCOL, 40_000, RTP_1).after(RTP_2),
        datagram(&PROTOCOL, 40_000, b"\x80\x60\x00"),
        datagram(&RTCP, 40_001, b"\x80\xC9\x00\x02\xDE\xAD\xBE\xEF"),
    ];
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::kit::KitEntry;
    use crate::session::kit::suite::{Case, check, played};

    fn rtp(sequence: u16, timestamp: u32, payload_type: u8) -> Vec<u8> {
        let mut octets = vec![0x80, payload_type];
        octets.extend(sequence.to_be_bytes());
        octets.extend(timestamp.to_be_bytes());
        octets.extend(*b"\xDE\xAD\xBE\xEF");
        octets.extend([0; 80]);
        octets
    }

    #[test]
    fn cases_of_streams() {
        let turn = |sequence: u16, step: u32| (Role::Client, rtp(sequence, 80 * step, 8));
        let cases = [Case {
            name: "packets in order, one lost, one late, one twice, and a round of the numbers",
            turns: vec![turn(65_533, 0), turn(65_535, 1), turn(65_534, 2), turn(65_534, 3), turn(1, 4)],
            rows: &[
                "rtp_stream is_from_client=Bool(true) ssrc=3735928559 payload_type=PCMA clock_rate=8000 packet_count=5 payload_len=400 \
                lost_count=1 late_count=1 duplicate_count=1 opinion_score=Float(2.63)",
            ],
        }];
        check(&KitEntry::of::<Rtp>(), &cases);
    }

    const SENDER: &[u8] = b"\x80\xC8\x00\x06\0\0\0\x01\0\0\0\x07\0\0\0\0\0\0\0\0\0\0\0\x09\0\0\0\x90\x81\xCA\x00\x03\0\0\0\x01\x01\x03a@b\0\0\0";
    const RECEIVER: &[u8] =
        b"\x81\xC9\x00\x07\0\0\0\x02\0\0\0\x01\x40\0\0\x03\0\0\0\x20\0\0\0\x11\0\0\0\0\0\0\0\0";

    #[test]
    fn cases_of_reports() {
        let cases = [Case {
            name: "a sender and a receiver",
            turns: vec![(Role::Client, SENDER.to_vec()), (Role::Server, RECEIVER.to_vec())],
            rows: &[
                "rtcp_report is_from_client=Bool(true) ssrc=1 name=a@b report_count=1 sent_packet_count=9 sent_len=144",
                "rtcp_report ssrc=2 source_ssrc=1 report_count=1 lost_count=Signed(3) lost_max_ratio=Float(0.25) jitter_max=17",
            ],
        }];
        check(&KitEntry::of::<Rtcp>(), &cases);
    }

    /// Reports are ten milliseconds apart, of which the receiver took five.
    #[test]
    fn round_trips_are_found_by_reports() {
        let (mut sent, mut received) = (SENDER.to_vec(), RECEIVER.to_vec());
        sent[10..14].copy_from_slice(b"\0\x07\0\0");
        received[24..32].copy_from_slice(b"\0\x07\0\0\0\0\x01\x48");
        let rows = played(&KitEntry::of::<Rtcp>(), &[(Role::Client, sent), (Role::Server, received)]);
        assert!(rows[1].ends_with("jitter_max=17 round_trip_time=4.995118ms"), "{rows:?}");
    }

    #[test]
    fn clocks_are_found_by_times() {
        let mut stream = Measured::default();
        for number in 0..40_u16 {
            let packet = rtp(number, 960 * u32::from(number), 111);
            let header = header(&packet).unwrap();
            let jitter_ns = if number % 2 == 0 { 0 } else { 1_000_000 };
            let now = Timestamp::from_nanos(1_000_000_000 + 20_000_000 * u64::from(number) + jitter_ns);
            stream.add(header, packet.len(), now);
        }
        let row = stream.row();
        assert_eq!((row.clock_rate, row.lost_count, row.opinion_score), (Some(48_000), 0, None));
        let jitter = row.jitter_max_time.unwrap();
        assert!((900_000..=1_000_000).contains(&jitter.as_nanos()), "{jitter:?}");
    }

    /// The rating without impairments is that of G.107 (4.41), and a loss of a hundredth takes 3.64 from its rating of 93.2.
    #[test]
    fn scores_are_those_of_the_e_model() {
        let score = |lost| opinion_score(PayloadType(0), lost, Duration::ZERO).unwrap();
        assert_eq!((score(0.0), score(0.01)), (4.41, 4.33));
        assert!(opinion_score(PayloadType(111), 0.0, Duration::ZERO).is_none());
    }
}
