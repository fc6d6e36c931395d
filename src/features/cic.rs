//! The vector of CICFlowMeter, with corrected values under the published names.

use std::fmt;
use std::net::IpAddr;

use super::flow::{Bulks, Counted, SideCounted};
use super::moments::Moments;
use super::set::CicErrors;
use crate::base::{IpProtocol, Side, TcpFlags, Timestamp};
use crate::record::FlowRecord;
use crate::row::Displayed;

/// A flow as a vector of CICFlowMeter, version `cic_v1`. `docs/features.md` lists the errors of the published program that
/// it does not have. Times are in microseconds, lengths are those of the transport payload, and what is not defined is
/// absent.
pub(super) struct Cic<'a> {
    record: &'a FlowRecord,
    counted: &'a Counted,
    errors: CicErrors,
    forward_side: Side,
    forward: &'a SideCounted,
    backward: &'a SideCounted,
    /// Payload of the packets of both sides.
    lengths: Moments,
    active: Moments,
    label: Option<&'a str>,
}

/// Addresses, ports and protocol of a flow.
struct FlowName<'a>(&'a FlowRecord, Side);

impl fmt::Display for FlowName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(record, source) = *self;
        let [(source, source_port), (destination, destination_port)] = [source, source.other()]
            .map(|side| (record.key.address(side), record.key.port(side).unwrap_or_default()));
        write!(f, "{source}-{destination}-{source_port}-{destination_port}-{}", record.protocol().0)
    }
}

/// Converts nanoseconds to microseconds.
fn micros(nanoseconds: u64) -> f64 {
    scaled(nanoseconds as f64)
}

/// Converts nanoseconds to microseconds.
fn scaled(nanoseconds: f64) -> f64 {
    nanoseconds / 1e3
}

/// Returns the sum of times in microseconds, if there is one.
fn total(times: &Moments) -> Option<f64> {
    (times.count() > 0).then(|| micros(times.sum()))
}

impl<'a> Cic<'a> {
    pub(super) fn new(record: &'a FlowRecord, counted: &'a Counted, label: Option<&'a str>) -> Self {
        let errors = counted.errors;
        let forward_side = if errors.e14 { counted.first_side } else { record.initiator };
        let active = if errors.e18 { counted.ended_active() } else { counted.active() };
        let mut lengths = counted.side(forward_side).payload.and(counted.side(forward_side.other()).payload);
        if errors.e5 && lengths.count() > 0 {
            lengths.push(counted.first_payload_len.into());
        }
        Self {
            record,
            counted,
            errors,
            forward_side,
            forward: counted.side(forward_side),
            backward: counted.side(forward_side.other()),
            lengths,
            active,
            label,
        }
    }

    /// Returns the value, or zero if the vector has errors of the published program.
    fn or_zero<T: Default>(&self, value: Option<T>) -> Option<T> {
        if self.errors == CicErrors::default() { value } else { Some(value.unwrap_or_default()) }
    }

    fn protocol(&self) -> u8 {
        let protocol = self.record.protocol();
        let is_known = matches!(protocol, IpProtocol::TCP | IpProtocol::UDP);
        if self.errors.e15 && !is_known { 0 } else { protocol.0 }
    }

    fn duration_ns(&self) -> u64 {
        self.counted.last_ns - self.counted.first_ns
    }

    fn packet_count(&self) -> u64 {
        self.forward.packet_count + self.backward.packet_count
    }

    fn octet_count(&self) -> u64 {
        self.forward.payload.sum() + self.backward.payload.sum()
    }

    fn flag_count(&self, flag: TcpFlags) -> u64 {
        self.forward.flag_count(flag) + self.backward.flag_count(flag)
    }

    /// Returns the number of packets of a side with PSH or URG.
    fn urgency(&self, side: &SideCounted, is_forward: bool, flag: TcpFlags) -> u64 {
        let is_first = is_forward == (self.counted.first_side == self.forward_side);
        match self.errors.e4 {
            true => u64::from(is_first && self.counted.first_flags.contains(flag)),
            false => side.flag_count(flag),
        }
    }

    fn per_second(&self, amount: f64) -> Option<f64> {
        let duration_ns = self.duration_ns();
        (duration_ns > 0).then(|| amount / (duration_ns as f64 / 1e9))
    }

    /// Divides numbers, as integers if the vector has that error; `None` if the divisor is zero.
    fn quotient(&self, dividend: u64, divisor: u64) -> Option<f64> {
        let whole = dividend.checked_div(divisor)?;
        Some(if self.errors.e6 { whole as f64 } else { dividend as f64 / divisor as f64 })
    }

    fn per_subflow(&self, amount: u64) -> Option<f64> {
        self.quotient(amount, self.counted.subflow_count - u64::from(self.errors.e7))
    }

    fn ratio(&self) -> Option<f64> {
        self.quotient(self.backward.packet_count, self.forward.packet_count)
    }

    /// Returns the mean payload of all packets.
    fn mean_len(&self) -> Option<f64> {
        let count = self.packet_count();
        (count > 0).then(|| self.lengths.sum() as f64 / count as f64)
    }

    fn forward_bulks(&self) -> Bulks {
        if self.errors.e3 { Bulks::default() } else { self.forward.bulks() }
    }

    fn backward_bulks(&self) -> Bulks {
        // Runs of both sides are those of the first one.
        if self.errors.e3 { self.counted.side(Side::A).bulks() } else { self.backward.bulks() }
    }

    fn per_bulk(&self, bulks: &Bulks, sum: impl Fn(&Bulks) -> u64) -> Option<f64> {
        self.quotient(sum(bulks), bulks.count)
    }

    fn bulk_rate(&self, bulks: &Bulks) -> Option<f64> {
        let rate = bulks.octet_count as f64 / (bulks.duration_ns as f64 / 1e9);
        (bulks.duration_ns > 0).then_some(if self.errors.e6 { rate.trunc() } else { rate })
    }

    /// Returns the number of packets of a side with payload.
    fn data_packet_count(&self, side: &SideCounted, is_forward: bool) -> u64 {
        let is_first = is_forward == (self.counted.first_side == self.forward_side);
        let is_missing = self.errors.e9 && is_first && self.counted.first_payload_len > 0;
        side.data_packet_count - u64::from(is_missing)
    }

    const fn responder_window(&self) -> Option<u16> {
        if self.errors.e8 { self.backward.last_window } else { self.backward.window }
    }
}

crate::table! {
    /// A flow as a vector of CICFlowMeter.
    impl['a] "cic" for Cic<'a> as row {
        /// Addresses, ports and protocol, initiator first.
        "Flow ID": Displayed<FlowName<'a>> = Displayed(FlowName(row.record, row.forward_side));
        /// Address of the initiator.
        "Src IP": IpAddr = row.record.key.address(row.forward_side);
        /// Port of the initiator.
        "Src Port": Option<u16> = row.record.key.port(row.forward_side);
        /// Address of the responder.
        "Dst IP": IpAddr = row.record.key.address(row.forward_side.other());
        /// Port of the responder.
        "Dst Port": Option<u16> = row.record.key.port(row.forward_side.other());
        /// IP protocol number.
        "Protocol": u8 = row.protocol();
        /// Time of the first packet.
        "Timestamp": Timestamp = row.record.start;
        /// From the first packet to the last, in microseconds.
        "Flow Duration": f64 = micros(row.duration_ns());
        /// Packets of the initiator.
        "Total Fwd Packet": u64 [packets] = row.forward.packet_count;
        /// Packets of the responder.
        "Total Bwd packets": u64 [packets] = row.backward.packet_count;
        /// Payload of the initiator.
        "Total Length of Fwd Packet": u64 [octets] = row.forward.payload.sum();
        /// Payload of the responder.
        "Total Length of Bwd Packet": u64 [octets] = row.backward.payload.sum();
        /// Greatest payload of a packet of the initiator.
        "Fwd Packet Length Max": Option<u64> [octets] = row.or_zero(row.forward.payload.max());
        /// Least payload of a packet of the initiator.
        "Fwd Packet Length Min": Option<u64> [octets] = row.or_zero(row.forward.payload.min());
        /// Mean payload of the packets of the initiator.
        "Fwd Packet Length Mean": Option<f64> [octets] = row.or_zero(row.forward.payload.mean());
        /// Sample standard deviation of the payload of the packets of the initiator.
        "Fwd Packet Length Std": Option<f64> [octets] = row.or_zero(row.forward.payload.deviation());
        /// Greatest payload of a packet of the responder.
        "Bwd Packet Length Max": Option<u64> [octets] = row.or_zero(row.backward.payload.max());
        /// Least payload of a packet of the responder.
        "Bwd Packet Length Min": Option<u64> [octets] = row.or_zero(row.backward.payload.min());
        /// Mean payload of the packets of the responder.
        "Bwd Packet Length Mean": Option<f64> [octets] = row.or_zero(row.backward.payload.mean());
        /// Sample standard deviation of the payload of the packets of the responder.
        "Bwd Packet Length Std": Option<f64> [octets] = row.or_zero(row.backward.payload.deviation());
        /// Payload of both sides per second of the duration.
        "Flow Bytes/s": Option<f64> [octets] = row.per_second(row.octet_count() as f64);
        /// Packets of both sides per second of the duration.
        "Flow Packets/s": Option<f64> [packets] = row.per_second(row.packet_count() as f64);
        /// Mean time between consecutive packets of the flow, of either side, in microseconds.
        "Flow IAT Mean": Option<f64> = row.or_zero(row.counted.intervals.mean().map(scaled));
        /// Sample standard deviation of the time between consecutive packets of the flow, of either side, in microseconds.
        "Flow IAT Std": Option<f64> = row.or_zero(row.counted.intervals.deviation().map(scaled));
        /// Greatest time between consecutive packets of the flow, of either side, in microseconds.
        "Flow IAT Max": Option<f64> = row.or_zero(row.counted.intervals.max().map(micros));
        /// Least time between consecutive packets of the flow, of either side, in microseconds.
        "Flow IAT Min": Option<f64> = row.or_zero(row.counted.intervals.min().map(micros));
        /// Sum of the times between consecutive packets of the initiator, in microseconds.
        "Fwd IAT Total": Option<f64> = row.or_zero(total(&row.forward.intervals));
        /// Mean time between consecutive packets of the initiator, in microseconds.
        "Fwd IAT Mean": Option<f64> = row.or_zero(row.forward.intervals.mean().map(scaled));
        /// Sample standard deviation of the time between consecutive packets of the initiator, in microseconds.
        "Fwd IAT Std": Option<f64> = row.or_zero(row.forward.intervals.deviation().map(scaled));
        /// Greatest time between consecutive packets of the initiator, in microseconds.
        "Fwd IAT Max": Option<f64> = row.or_zero(row.forward.intervals.max().map(micros));
        /// Least time between consecutive packets of the initiator, in microseconds.
        "Fwd IAT Min": Option<f64> = row.or_zero(row.forward.intervals.min().map(micros));
        /// Sum of the times between consecutive packets of the responder, in microseconds.
        "Bwd IAT Total": Option<f64> = row.or_zero(total(&row.backward.intervals));
        /// Mean time between consecutive packets of the responder, in microseconds.
        "Bwd IAT Mean": Option<f64> = row.or_zero(row.backward.intervals.mean().map(scaled));
        /// Sample standard deviation of the time between consecutive packets of the responder, in microseconds.
        "Bwd IAT Std": Option<f64> = row.or_zero(row.backward.intervals.deviation().map(scaled));
        /// Greatest time between consecutive packets of the responder, in microseconds.
        "Bwd IAT Max": Option<f64> = row.or_zero(row.backward.intervals.max().map(micros));
        /// Least time between consecutive packets of the responder, in microseconds.
        "Bwd IAT Min": Option<f64> = row.or_zero(row.backward.intervals.min().map(micros));
        /// Packets of the initiator with PSH.
        "Fwd PSH Flags": u64 [packets] = row.urgency(row.forward, true, TcpFlags::PSH);
        /// Packets of the responder with PSH.
        "Bwd PSH Flags": u64 [packets] = row.urgency(row.backward, false, TcpFlags::PSH);
        /// Packets of the initiator with URG.
        "Fwd URG Flags": u64 [packets] = row.urgency(row.forward, true, TcpFlags::URG);
        /// Packets of the responder with URG.
        "Bwd URG Flags": u64 [packets] = row.urgency(row.backward, false, TcpFlags::URG);
        /// Packets of the initiator with RST.
        "Fwd RST Flags": u64 [packets] = row.forward.flag_count(TcpFlags::RST);
        /// Packets of the responder with RST.
        "Bwd RST Flags": u64 [packets] = row.backward.flag_count(TcpFlags::RST);
        /// Transport headers of the packets of the initiator.
        "Fwd Header Length": u64 [octets] = row.forward.header_len_sum;
        /// Transport headers of the packets of the responder.
        "Bwd Header Length": u64 [octets] = row.backward.header_len_sum;
        /// Packets of the initiator per second of the duration.
        "Fwd Packets/s": Option<f64> [packets] = row.or_zero(row.per_second(row.forward.packet_count as f64));
        /// Packets of the responder per second of the duration.
        "Bwd Packets/s": Option<f64> [packets] = row.or_zero(row.per_second(row.backward.packet_count as f64));
        /// Least payload of a packet.
        "Packet Length Min": Option<u64> [octets] = row.or_zero(row.lengths.min());
        /// Greatest payload of a packet.
        "Packet Length Max": Option<u64> [octets] = row.or_zero(row.lengths.max());
        /// Mean payload of the packets.
        "Packet Length Mean": Option<f64> [octets] = row.or_zero(row.lengths.mean());
        /// Sample standard deviation of the payload of the packets.
        "Packet Length Std": Option<f64> [octets] = row.or_zero(row.lengths.deviation());
        /// Sample variance of the payload of the packets.
        "Packet Length Variance": Option<f64> = row.or_zero(row.lengths.variance());
        /// Packets with FIN.
        "FIN Flag Count": u64 [packets] = row.flag_count(TcpFlags::FIN);
        /// Packets with SYN.
        "SYN Flag Count": u64 [packets] = row.flag_count(TcpFlags::SYN);
        /// Packets with RST.
        "RST Flag Count": u64 [packets] = row.flag_count(TcpFlags::RST);
        /// Packets with PSH.
        "PSH Flag Count": u64 [packets] = row.flag_count(TcpFlags::PSH);
        /// Packets with ACK.
        "ACK Flag Count": u64 [packets] = row.flag_count(TcpFlags::ACK);
        /// Packets with URG.
        "URG Flag Count": u64 [packets] = row.flag_count(TcpFlags::URG);
        /// Packets with CWR.
        "CWR Flag Count": u64 [packets] = row.flag_count(TcpFlags::CWR);
        /// Packets with ECE.
        "ECE Flag Count": u64 [packets] = row.flag_count(TcpFlags::ECE);
        /// Packets of the responder per packet of the initiator.
        "Down/Up Ratio": Option<f64> = row.or_zero(row.ratio());
        /// Payload per packet.
        "Average Packet Size": Option<f64> [octets] = row.or_zero(row.mean_len());
        /// As `Fwd Packet Length Mean`.
        "Fwd Segment Size Avg": Option<f64> [octets] = row.or_zero(row.forward.payload.mean());
        /// As `Bwd Packet Length Mean`.
        "Bwd Segment Size Avg": Option<f64> [octets] = row.or_zero(row.backward.payload.mean());
        /// Payload per bulk of the initiator: a run of at least four packets with payload, without one of the other side, and without a gap of more than a second.
        "Fwd Bytes/Bulk Avg": Option<f64> [octets] = row.or_zero(row.per_bulk(&row.forward_bulks(), |bulks| bulks.octet_count));
        /// Packets per bulk of the initiator.
        "Fwd Packet/Bulk Avg": Option<f64> [packets] = row.or_zero(row.per_bulk(&row.forward_bulks(), |bulks| bulks.packet_count));
        /// Payload of the bulks of the initiator per second.
        "Fwd Bulk Rate Avg": Option<f64> [octets] = row.or_zero(row.bulk_rate(&row.forward_bulks()));
        /// Payload per bulk of the responder: a run of at least four packets with payload, without one of the other side, and without a gap of more than a second.
        "Bwd Bytes/Bulk Avg": Option<f64> [octets] = row.or_zero(row.per_bulk(&row.backward_bulks(), |bulks| bulks.octet_count));
        /// Packets per bulk of the responder.
        "Bwd Packet/Bulk Avg": Option<f64> [packets] = row.or_zero(row.per_bulk(&row.backward_bulks(), |bulks| bulks.packet_count));
        /// Payload of the bulks of the responder per second.
        "Bwd Bulk Rate Avg": Option<f64> [octets] = row.or_zero(row.bulk_rate(&row.backward_bulks()));
        /// Packets of the initiator per subflow; a subflow ends with a gap of more than a second.
        "Subflow Fwd Packets": Option<f64> [packets] = row.or_zero(row.per_subflow(row.forward.packet_count));
        /// Payload of the initiator per subflow.
        "Subflow Fwd Bytes": Option<f64> [octets] = row.or_zero(row.per_subflow(row.forward.payload.sum()));
        /// Packets of the responder per subflow; a subflow ends with a gap of more than a second.
        "Subflow Bwd Packets": Option<f64> [packets] = row.or_zero(row.per_subflow(row.backward.packet_count));
        /// Payload of the responder per subflow.
        "Subflow Bwd Bytes": Option<f64> [octets] = row.or_zero(row.per_subflow(row.backward.payload.sum()));
        /// Window of the first segment of the initiator, without scaling.
        "FWD Init Win Bytes": Option<u16> = row.or_zero(row.forward.window);
        /// Window of the first segment of the responder, without scaling.
        "Bwd Init Win Bytes": Option<u16> = row.or_zero(row.responder_window());
        /// Packets of the initiator with payload.
        "Fwd Act Data Pkts": u64 [packets] = row.data_packet_count(row.forward, true);
        /// Packets of the responder with payload.
        "Bwd Act Data Pkts": u64 [packets] = row.data_packet_count(row.backward, false);
        /// Least transport header of the initiator.
        "Fwd Seg Size Min": Option<u32> [octets] = row.or_zero(row.forward.header_len_min);
        /// Least transport header of the responder.
        "Bwd Seg Size Min": Option<u32> [octets] = row.or_zero(row.backward.header_len_min);
        /// Length of an active period, which ends with a gap of more than five seconds, in microseconds: mean.
        "Active Mean": Option<f64> = row.or_zero(row.active.mean().map(scaled));
        /// Length of an active period, which ends with a gap of more than five seconds, in microseconds: sample standard deviation.
        "Active Std": Option<f64> = row.or_zero(row.active.deviation().map(scaled));
        /// Length of an active period, which ends with a gap of more than five seconds, in microseconds: greatest.
        "Active Max": Option<f64> = row.or_zero(row.active.max().map(micros));
        /// Length of an active period, which ends with a gap of more than five seconds, in microseconds: least.
        "Active Min": Option<f64> = row.or_zero(row.active.min().map(micros));
        /// Length of a gap of more than five seconds, in microseconds: mean.
        "Idle Mean": Option<f64> = row.or_zero(row.counted.idle.mean().map(scaled));
        /// Length of a gap of more than five seconds, in microseconds: sample standard deviation.
        "Idle Std": Option<f64> = row.or_zero(row.counted.idle.deviation().map(scaled));
        /// Length of a gap of more than five seconds, in microseconds: greatest.
        "Idle Max": Option<f64> = row.or_zero(row.counted.idle.max().map(micros));
        /// Length of a gap of more than five seconds, in microseconds: least.
        "Idle Min": Option<f64> = row.or_zero(row.counted.idle.min().map(micros));
        /// Code of the first ICMP message.
        "ICMP Code": Option<u8> = row.record.icmp.map(|(_, code)| code);
        /// Type of the first ICMP message.
        "ICMP Type": Option<u8> = row.record.icmp.map(|(kind, _)| kind);
        /// Segments of the initiator whose octets were sent before.
        "Fwd TCP Retrans. Count": u64 [packets] = row.record.forward.tcp.retransmitted_count.into();
        /// Segments of the responder whose octets were sent before.
        "Bwd TCP Retrans. Count": u64 [packets] = row.record.reverse.tcp.retransmitted_count.into();
        /// Segments whose octets were sent before.
        "Total TCP Retrans. Count": u64 [packets] = u64::from(row.record.forward.tcp.retransmitted_count) + u64::from(row.record.reverse.tcp.retransmitted_count);
        /// As `Flow Duration`: active timeouts, which begin a new record, are off by default.
        "Total Connection Flow Time": f64 = micros(row.duration_ns());
        /// Label that rules assign to the flow.
        "Label": Option<&'a str> = row.label;
    }
}
