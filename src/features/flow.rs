//! What is counted of the packets of a flow.

use super::moments::Moments;
use super::set::{CicErrors, FeatureSet, Length, Moment};
use super::tcp::Tcp;
use crate::base::{Packet, Side, TcpFlags, Timestamp, Transport};

/// Features of the packets of a flow, as part of the state that a sink has for each flow. Empty, and without memory, until
/// the first packet is counted.
///
/// ```
/// use flowgauge::export::{Style, write_json};
/// use flowgauge::features::{FeatureSet, Features, FlowFeatures};
/// use flowgauge::{EndReason, FileSource, Flow, Flows, Packet, Pipeline, RunOptions, Sink};
///
/// /// Writes the features of each record.
/// struct Vectors { set: FeatureSet, lines: Vec<u8> }
///
/// impl Sink for Vectors {
///     type State = FlowFeatures;
///     type Stage = Flows;
///
///     fn packet(&mut self, flow: &mut Flow<'_, FlowFeatures>, packet: &Packet<'_>) {
///         flow.state.count(&self.set, packet);
///     }
///
///     fn record(&mut self, flow: &mut Flow<'_, FlowFeatures>, reason: EndReason) {
///         let record = flow.view.record(reason);
///         let features = std::mem::take(flow.state);
///         write_json(&mut self.lines, &Features::new(&record, &features, None), Style::default());
///         self.lines.push(b'\n');
///     }
/// }
///
/// let sink = Vectors { set: "cic".parse()?, lines: Vec::new() };
/// let mut pipeline = Pipeline::builder().build(sink)?;
/// pipeline.run(&mut FileSource::open("examples/data/web.pcap")?, &RunOptions::default())?;
/// assert!(pipeline.sink().lines.starts_with(br#"{"Flow ID":""#));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct FlowFeatures {
    counted: Option<Box<Counted>>,
}

/// Gap that ends a subflow and a bulk, in nanoseconds.
const SUBFLOW_GAP_NS: u64 = 1_000_000_000;
/// Gap that ends an active period, in nanoseconds.
const IDLE_GAP_NS: u64 = 5_000_000_000;
/// Least number of packets of a bulk.
const BULK_LEN_MIN: u32 = 4;

/// Number of bins of lengths: one for zero, and one per number of bits.
pub(super) const LENGTH_BIN_COUNT: usize = 17;
/// Number of bins of times: one for less than a microsecond, and one per number of bits.
pub(super) const TIME_BIN_COUNT: usize = 33;

/// What was counted of a flow with at least one packet.
#[derive(Clone, Debug)]
pub(super) struct Counted {
    /// Errors of CICFlowMeter that the vector has.
    pub(super) errors: CicErrors,
    /// The sender of the first packet, its flags, and its payload.
    pub(super) first_side: Side,
    pub(super) first_flags: TcpFlags,
    pub(super) first_payload_len: u32,
    pub(super) first_ns: u64,
    /// The latest time so far.
    pub(super) last_ns: u64,
    pub(super) sides: [SideCounted; 2],
    /// Times between consecutive packets in nanoseconds.
    pub(super) intervals: Moments,
    /// The same between times in whole milliseconds.
    pub(super) intervals_ms: Moments,
    pub(super) subflow_count: u64,
    /// Start of the active period.
    active_since_ns: u64,
    active: Moments,
    pub(super) idle: Moments,
    pub(super) steps: Vec<Step>,
    pub(super) histograms: Option<Box<[Histogram; 2]>>,
    /// Octets that both sides sent first.
    pub(super) octets: Option<Box<[Octets; 2]>>,
    pub(super) tcp: Option<Box<Tcp>>,
}

/// The first octets of payload of a side.
#[derive(Clone, Debug, Default)]
pub(super) struct Octets {
    /// How often each octet occurs, and their number; empty if that is not counted.
    pub(super) distribution: Vec<u32>,
    pub(super) distribution_len: u32,
    pub(super) first: Vec<u8>,
}

/// What was counted of the packets of one side.
#[derive(Clone, Debug, Default)]
pub(super) struct SideCounted {
    pub(super) first_ns: u64,
    pub(super) last_ns: u64,
    pub(super) packet_count: u64,
    pub(super) payload: Moments,
    /// Lengths in the definition of NFStream's accounting mode.
    pub(super) lengths: Moments,
    pub(super) intervals: Moments,
    pub(super) intervals_ms: Moments,
    /// Packets with FIN, SYN, RST, PSH, ACK, URG, ECE and CWR, by the bit of the flag.
    pub(super) flags: [u32; 8],
    pub(super) header_len_sum: u64,
    pub(super) header_len_min: Option<u32>,
    /// Window of the first segment, without scaling.
    pub(super) window: Option<u16>,
    /// Window of the last segment, without scaling.
    pub(super) last_window: Option<u16>,
    pub(super) data_packet_count: u64,
    run: Run,
    bulks: Bulks,
}

/// Consecutive packets of one side that have payload.
#[derive(Clone, Copy, Debug, Default)]
struct Run {
    packet_count: u32,
    octet_count: u64,
    first_ns: u64,
    last_ns: u64,
}

/// Runs that are long enough.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Bulks {
    pub(super) count: u64,
    pub(super) packet_count: u64,
    pub(super) octet_count: u64,
    pub(super) duration_ns: u64,
}

impl Bulks {
    fn add(&mut self, run: &Run) {
        if run.packet_count >= BULK_LEN_MIN {
            self.count += 1;
            self.packet_count += u64::from(run.packet_count);
            self.octet_count += run.octet_count;
            self.duration_ns += run.last_ns - run.first_ns;
        }
    }
}

/// Sender, length and time of one of the first packets.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    pub(super) side: Side,
    pub(super) payload_len: u32,
    pub(super) interval_ns: u64,
}

/// Numbers of packets of one side by their lengths and times.
#[derive(Clone, Copy, Debug)]
pub(super) struct Histogram {
    pub(super) lengths: [u32; LENGTH_BIN_COUNT],
    pub(super) times: [u32; TIME_BIN_COUNT],
}

impl FlowFeatures {
    /// Counts a packet of the flow. Allocates memory for the first one.
    #[inline]
    pub fn count(&mut self, set: &FeatureSet, packet: &Packet<'_>) {
        let counted = self.counted.get_or_insert_with(|| Counted::new(set, packet));
        counted.add(set, packet);
    }

    /// Counts a packet of the flow unless `moment` is before it. Returns true if the moment is reached by this packet, or
    /// was before it: then [`Features`](super::Features) describe the flow up to the moment, and no further packet should
    /// be counted. Without a packet behind it, a [`Moment::Time`] is not reached, and the features at the end of the flow are those of
    /// the moment.
    #[inline]
    pub fn count_until(&mut self, moment: Moment, set: &FeatureSet, packet: &Packet<'_>) -> bool {
        if let (Moment::Time(time), Some(counted)) = (moment, self.counted()) {
            let first = Timestamp::from_nanos(counted.first_ns);
            if packet.timestamp.saturating_since(first) > time {
                return true;
            }
        }
        self.count(set, packet);
        let Some(counted) = self.counted() else { return false };
        let sum = |of: fn(&SideCounted) -> u64| counted.sides.iter().map(of).sum::<u64>();
        match moment {
            Moment::Packets(count) => sum(|side| side.packet_count) >= count,
            Moment::Octets(count) => sum(|side| side.payload.sum()) >= count,
            Moment::Time(_) => false,
        }
    }

    /// Returns the memory in bytes that was allocated for the flow. Takes constant time.
    #[must_use]
    pub fn heap_len(&self) -> usize {
        let Some(counted) = &self.counted else { return 0 };
        let Counted { steps, histograms, octets, tcp, .. } = &**counted;
        let of_side = |octets: &Octets| 4 * octets.distribution.capacity() + octets.first.capacity();
        let octets_len = octets
            .as_ref()
            .map_or(0, |sides| size_of::<[Octets; 2]>() + sides.iter().map(of_side).sum::<usize>());
        size_of::<Counted>()
            + steps.capacity() * size_of::<Step>()
            + histograms.as_ref().map_or(0, |_| size_of::<[Histogram; 2]>())
            + octets_len
            + tcp.as_ref().map_or(0, |tcp| tcp.heap_len())
    }

    pub(super) fn counted(&self) -> Option<&Counted> {
        self.counted.as_deref()
    }
}

impl Counted {
    /// Returns the state before the first packet.
    pub(super) fn none() -> Self {
        Self {
            errors: CicErrors::default(),
            first_side: Side::A,
            first_flags: TcpFlags::default(),
            first_payload_len: 0,
            first_ns: 0,
            last_ns: 0,
            sides: Default::default(),
            intervals: Moments::default(),
            intervals_ms: Moments::default(),
            subflow_count: 1,
            active_since_ns: 0,
            active: Moments::default(),
            idle: Moments::default(),
            steps: Vec::new(),
            histograms: None,
            octets: None,
            tcp: None,
        }
    }

    #[cold]
    fn new(set: &FeatureSet, packet: &Packet<'_>) -> Box<Self> {
        let now = packet.timestamp.as_nanos();
        let bins = Histogram { lengths: [0; LENGTH_BIN_COUNT], times: [0; TIME_BIN_COUNT] };
        Box::new(Self {
            errors: set.cic_errors,
            first_side: packet.side,
            first_flags: packet.tcp.flags,
            first_payload_len: payload_len(set, packet),
            first_ns: now,
            last_ns: now,
            active_since_ns: now,
            histograms: set.histogram.then(|| Box::new([bins; 2])),
            octets: (set.entropy.is_some() || set.payload.is_some()).then(Box::default),
            ..Self::none()
        })
    }

    fn add(&mut self, set: &FeatureSet, packet: &Packet<'_>) {
        // A time that steps back is replaced by the latest one, so that no interval is negative.
        let now = packet.timestamp.as_nanos().max(self.last_ns);
        let interval = now - self.last_ns;
        let is_first = self.sides.iter().all(|side| side.packet_count == 0);
        if !is_first && set.nfstream.is_some() {
            self.intervals_ms.push(milliseconds(now) - milliseconds(self.last_ns));
        }
        if !is_first && set.cic {
            self.intervals.push(interval);
            if interval > SUBFLOW_GAP_NS {
                self.subflow_count += 1;
            }
            if interval > IDLE_GAP_NS {
                self.active.push(self.last_ns - self.active_since_ns);
                self.idle.push(interval);
                self.active_since_ns = now;
            }
        }
        self.last_ns = now;
        let payload_len = payload_len(set, packet);
        let own_interval = self.side_mut(packet.side).add(set, packet, payload_len, now);
        if set.cic && payload_len > 0 {
            if set.cic_errors.e3 {
                self.side_mut(Side::A).extend_run(payload_len, now);
            } else {
                self.side_mut(packet.side.other()).end_run();
                self.side_mut(packet.side).extend_run(payload_len, now);
            }
        }
        if let Some(count) = set.splt
            && self.steps.len() < usize::from(count)
        {
            self.steps.push(Step {
                side: packet.side,
                payload_len: packet.payload_len,
                interval_ns: interval,
            });
        }
        if let Some(histograms) = &mut self.histograms {
            let [a, b] = &mut **histograms;
            let histogram = if packet.side == Side::A { a } else { b };
            histogram.add(packet.payload_len, own_interval);
        }
        if let Some(octets) = &mut self.octets {
            let [a, b] = &mut **octets;
            let octets = if packet.side == Side::A { a } else { b };
            octets.add(set, packet.payload());
        }
        // The first packet may have no TCP header, such as a fragment.
        if set.tcp && packet.transport == Transport::Tcp {
            self.tcp.get_or_insert_default().add(packet, now);
        }
    }

    pub(super) const fn side(&self, side: Side) -> &SideCounted {
        let [a, b] = &self.sides;
        match side {
            Side::A => a,
            Side::B => b,
        }
    }

    const fn side_mut(&mut self, side: Side) -> &mut SideCounted {
        let [a, b] = &mut self.sides;
        match side {
            Side::A => a,
            Side::B => b,
        }
    }

    /// Returns the lengths of the active periods in nanoseconds that a gap ended.
    pub(super) const fn ended_active(&self) -> Moments {
        self.active
    }

    /// Returns the lengths of the active periods in nanoseconds, including the last one.
    pub(super) fn active(&self) -> Moments {
        let mut active = self.active;
        active.push(self.last_ns - self.active_since_ns);
        active
    }
}

impl SideCounted {
    /// Counts a packet that the side sent, and returns the time since the one before it.
    fn add(&mut self, set: &FeatureSet, packet: &Packet<'_>, payload_len: u32, now: u64) -> Option<u64> {
        let interval = (self.packet_count > 0).then(|| now - self.last_ns);
        match interval {
            None => self.first_ns = now,
            Some(interval) => {
                if set.cic {
                    self.intervals.push(interval);
                }
                if set.nfstream.is_some() {
                    self.intervals_ms.push(milliseconds(now) - milliseconds(self.last_ns));
                }
            }
        }
        self.last_ns = now;
        self.packet_count += 1;
        let header_len = packet.payload_offset.saturating_sub(packet.transport_offset);
        self.payload.push(payload_len.into());
        if let Some(length) = set.nfstream {
            self.lengths.push(u64::from(match length {
                Length::Wire => packet.wire_len,
                Length::Ip => packet.ip_len,
                Length::Transport => packet.payload_len + header_len,
                Length::Payload => packet.payload_len,
            }));
        }
        // Always: the row of CICFlowMeter subtracts from it, and is visited whatever is chosen.
        self.data_packet_count += u64::from(payload_len > 0);
        if set.cic {
            self.add_headers(packet, header_len);
        }
        if packet.transport == Transport::Tcp {
            let TcpFlags(bits) = packet.tcp.flags;
            for (bit, count) in self.flags.iter_mut().enumerate() {
                *count += u32::from(bits >> bit & 1);
            }
        }
        interval
    }

    /// Counts what CICFlowMeter has of the headers of a packet.
    fn add_headers(&mut self, packet: &Packet<'_>, header_len: u32) {
        if packet.payload_offset > 0 {
            self.header_len_sum += u64::from(header_len);
            self.header_len_min = Some(self.header_len_min.map_or(header_len, |min| min.min(header_len)));
        }
        if packet.transport == Transport::Tcp {
            self.window.get_or_insert(packet.tcp.window);
            self.last_window = Some(packet.tcp.window);
        }
    }

    fn extend_run(&mut self, payload_len: u32, now: u64) {
        if self.run.packet_count > 0 && now - self.run.last_ns > SUBFLOW_GAP_NS {
            self.end_run();
        }
        if self.run.packet_count == 0 {
            self.run.first_ns = now;
        }
        self.run.packet_count = self.run.packet_count.saturating_add(1);
        self.run.octet_count += u64::from(payload_len);
        self.run.last_ns = now;
    }

    fn end_run(&mut self) {
        self.bulks.add(&std::mem::take(&mut self.run));
    }

    /// Returns the bulks, including a run that has not ended.
    pub(super) fn bulks(&self) -> Bulks {
        let mut bulks = self.bulks;
        bulks.add(&self.run);
        bulks
    }

    /// Returns the number of packets with a flag.
    pub(super) fn flag_count(&self, flag: TcpFlags) -> u64 {
        self.flags.get(flag.0.trailing_zeros() as usize).copied().unwrap_or_default().into()
    }
}

impl Octets {
    fn add(&mut self, set: &FeatureSet, payload: &[u8]) {
        let rest = |max: Option<u16>, len: usize| {
            usize::from(max.unwrap_or(0)).saturating_sub(len).min(payload.len())
        };
        let counted = payload.get(..rest(set.entropy, self.distribution_len as usize)).unwrap_or_default();
        if !counted.is_empty() {
            self.distribution.resize(256, 0);
            for octet in counted {
                if let Some(count) = self.distribution.get_mut(usize::from(*octet)) {
                    *count += 1;
                }
            }
            self.distribution_len += counted.len() as u32;
        }
        let kept = payload.get(..rest(set.payload, self.first.len())).unwrap_or_default();
        self.first.extend_from_slice(kept);
    }

    /// Returns the entropy of the octets in bits per octet; `None` without octets.
    pub(super) fn entropy(&self) -> Option<f64> {
        let len = f64::from(self.distribution_len);
        let share = |count: &u32| f64::from(*count) / len;
        let bits = self
            .distribution
            .iter()
            .filter(|count| **count > 0)
            .map(|count| -share(count) * share(count).log2());
        (self.distribution_len > 0).then(|| bits.sum::<f64>().max(0.0))
    }
}

impl Histogram {
    fn add(&mut self, payload_len: u32, interval_ns: Option<u64>) {
        let bin = (u32::BITS - payload_len.leading_zeros()) as usize;
        if let Some(count) = self.lengths.get_mut(bin.min(LENGTH_BIN_COUNT - 1)) {
            *count += 1;
        }
        if let Some(interval) = interval_ns {
            let bin = (u64::BITS - (interval / 1000).leading_zeros()) as usize;
            if let Some(count) = self.times.get_mut(bin.min(TIME_BIN_COUNT - 1)) {
                *count += 1;
            }
        }
    }
}

/// Length of the shortest Ethernet frame without its checksum, in octets.
const FRAME_LEN_MIN: u32 = 60;

/// Returns the length of the payload in octets, which includes the padding of a short frame if that error is chosen.
fn payload_len(set: &FeatureSet, packet: &Packet<'_>) -> u32 {
    let has_padding = set.cic_errors.e12 && packet.wire_len <= FRAME_LEN_MIN && packet.payload_offset > 0;
    let padded_len = packet.wire_len.saturating_sub(packet.payload_offset);
    if has_padding { padded_len.max(packet.payload_len) } else { packet.payload_len }
}

/// Returns a time in whole milliseconds, as NFStream has it.
pub(super) const fn milliseconds(nanoseconds: u64) -> u64 {
    nanoseconds / 1_000_000
}
