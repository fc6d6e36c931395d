//! The vector of CICFlowMeter, with corrected values under the published names.

use std::fmt;
use std::net::IpAddr;

use super::flow::{Bulks, Counted, SideCounted};
use super::moments::Moments;
use crate::base::{TcpFlags, Timestamp, duration_nanos};
use crate::record::FlowRecord;
use crate::row::{Displayed, Name};

/// A flow as a vector of CICFlowMeter, version `cic_v1`. `docs/features.md` lists the errors of the published program that
/// it does not have. Times are in microseconds, lengths are those of the transport payload, and what is not defined is
/// absent.
pub(super) struct Cic<'a> {
    record: &'a FlowRecord,
    counted: &'a Counted,
    forward: &'a SideCounted,
    backward: &'a SideCounted,
    active: Moments,
}

/// Addresses, ports and protocol of a flow.
struct FlowName<'a>(&'a FlowRecord);

impl fmt::Display for FlowName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(record) = self;
        let [source_port, destination_port] =
            [record.source_port(), record.destination_port()].map(Option::unwrap_or_default);
        let protocol = record.protocol().0;
        write!(
            f,
            "{}-{}-{source_port}-{destination_port}-{protocol}",
            record.source_address(),
            record.destination_address()
        )
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

fn per_bulk(bulks: &Bulks, sum: impl Fn(&Bulks) -> u64) -> Option<f64> {
    (bulks.count > 0).then(|| sum(bulks) as f64 / bulks.count as f64)
}

fn bulk_rate(bulks: &Bulks) -> Option<f64> {
    (bulks.duration_ns > 0).then(|| bulks.octet_count as f64 / (bulks.duration_ns as f64 / 1e9))
}

impl<'a> Cic<'a> {
    pub(super) fn new(record: &'a FlowRecord, counted: &'a Counted) -> Self {
        let forward = counted.side(record.initiator);
        let backward = counted.side(record.initiator.other());
        Self { record, counted, forward, backward, active: counted.active() }
    }

    fn duration_ns(&self) -> u64 {
        self.counted.last_ns - self.counted.first_ns
    }

    fn lengths(&self) -> Moments {
        self.forward.payload.and(self.backward.payload)
    }

    fn flag_count(&self, flag: TcpFlags) -> u64 {
        self.forward.flag_count(flag) + self.backward.flag_count(flag)
    }

    fn per_second(&self, amount: f64) -> Option<f64> {
        let duration_ns = self.duration_ns();
        (duration_ns > 0).then(|| amount / (duration_ns as f64 / 1e9))
    }

    fn per_subflow(&self, amount: u64) -> Option<f64> {
        Some(amount as f64 / self.counted.subflow_count as f64)
    }

    fn ratio(&self) -> Option<f64> {
        let forward = self.forward.packet_count;
        (forward > 0).then(|| self.backward.packet_count as f64 / forward as f64)
    }
}

crate::table! {
    /// A flow as a vector of CICFlowMeter.
    impl['a] "cic" for Cic<'a> as row {
        /// Addresses, ports and protocol, initiator first.
        "Flow ID": Displayed<FlowName<'a>> = Displayed(FlowName(row.record));
        /// Address of the initiator.
        "Src IP": IpAddr = row.record.source_address();
        /// Port of the initiator.
        "Src Port": Option<u16> = row.record.source_port();
        /// Address of the responder.
        "Dst IP": IpAddr = row.record.destination_address();
        /// Port of the responder.
        "Dst Port": Option<u16> = row.record.destination_port();
        /// IP protocol number.
        "Protocol": u8 = row.record.protocol().0;
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
        "Fwd Packet Length Max": Option<u64> [octets] = row.forward.payload.max();
        /// Least payload of a packet of the initiator.
        "Fwd Packet Length Min": Option<u64> [octets] = row.forward.payload.min();
        /// Mean payload of the packets of the initiator.
        "Fwd Packet Length Mean": Option<f64> [octets] = row.forward.payload.mean();
        /// Sample standard deviation of the payload of the packets of the initiator.
        "Fwd Packet Length Std": Option<f64> [octets] = row.forward.payload.deviation();
        /// Greatest payload of a packet of the responder.
        "Bwd Packet Length Max": Option<u64> [octets] = row.backward.payload.max();
        /// Least payload of a packet of the responder.
        "Bwd Packet Length Min": Option<u64> [octets] = row.backward.payload.min();
        /// Mean payload of the packets of the responder.
        "Bwd Packet Length Mean": Option<f64> [octets] = row.backward.payload.mean();
        /// Sample standard deviation of the payload of the packets of the responder.
        "Bwd Packet Length Std": Option<f64> [octets] = row.backward.payload.deviation();
        /// Payload of both sides per second of the duration.
        "Flow Bytes/s": Option<f64> [octets] = row.per_second(row.lengths().sum() as f64);
        /// Packets of both sides per second of the duration.
        "Flow Packets/s": Option<f64> [packets] = row.per_second(row.lengths().count() as f64);
        /// Mean time between consecutive packets of the flow, of either side, in microseconds.
        "Flow IAT Mean": Option<f64> = row.counted.intervals.mean().map(scaled);
        /// Sample standard deviation of the time between consecutive packets of the flow, of either side, in microseconds.
        "Flow IAT Std": Option<f64> = row.counted.intervals.deviation().map(scaled);
        /// Greatest time between consecutive packets of the flow, of either side, in microseconds.
        "Flow IAT Max": Option<f64> = row.counted.intervals.max().map(micros);
        /// Least time between consecutive packets of the flow, of either side, in microseconds.
        "Flow IAT Min": Option<f64> = row.counted.intervals.min().map(micros);
        /// Sum of the times between consecutive packets of the initiator, in microseconds.
        "Fwd IAT Total": Option<f64> = total(&row.forward.intervals);
        /// Mean time between consecutive packets of the initiator, in microseconds.
        "Fwd IAT Mean": Option<f64> = row.forward.intervals.mean().map(scaled);
        /// Sample standard deviation of the time between consecutive packets of the initiator, in microseconds.
        "Fwd IAT Std": Option<f64> = row.forward.intervals.deviation().map(scaled);
        /// Greatest time between consecutive packets of the initiator, in microseconds.
        "Fwd IAT Max": Option<f64> = row.forward.intervals.max().map(micros);
        /// Least time between consecutive packets of the initiator, in microseconds.
        "Fwd IAT Min": Option<f64> = row.forward.intervals.min().map(micros);
        /// Sum of the times between consecutive packets of the responder, in microseconds.
        "Bwd IAT Total": Option<f64> = total(&row.backward.intervals);
        /// Mean time between consecutive packets of the responder, in microseconds.
        "Bwd IAT Mean": Option<f64> = row.backward.intervals.mean().map(scaled);
        /// Sample standard deviation of the time between consecutive packets of the responder, in microseconds.
        "Bwd IAT Std": Option<f64> = row.backward.intervals.deviation().map(scaled);
        /// Greatest time between consecutive packets of the responder, in microseconds.
        "Bwd IAT Max": Option<f64> = row.backward.intervals.max().map(micros);
        /// Least time between consecutive packets of the responder, in microseconds.
        "Bwd IAT Min": Option<f64> = row.backward.intervals.min().map(micros);
        /// Packets of the initiator with PSH.
        "Fwd PSH Flags": u64 [packets] = row.forward.flag_count(TcpFlags::PSH);
        /// Packets of the responder with PSH.
        "Bwd PSH Flags": u64 [packets] = row.backward.flag_count(TcpFlags::PSH);
        /// Packets of the initiator with URG.
        "Fwd URG Flags": u64 [packets] = row.forward.flag_count(TcpFlags::URG);
        /// Packets of the responder with URG.
        "Bwd URG Flags": u64 [packets] = row.backward.flag_count(TcpFlags::URG);
        /// Packets of the initiator with RST.
        "Fwd RST Flags": u64 [packets] = row.forward.flag_count(TcpFlags::RST);
        /// Packets of the responder with RST.
        "Bwd RST Flags": u64 [packets] = row.backward.flag_count(TcpFlags::RST);
        /// Transport headers of the packets of the initiator.
        "Fwd Header Length": u64 [octets] = row.forward.header_len_sum;
        /// Transport headers of the packets of the responder.
        "Bwd Header Length": u64 [octets] = row.backward.header_len_sum;
        /// Packets of the initiator per second of the duration.
        "Fwd Packets/s": Option<f64> [packets] = row.per_second(row.forward.packet_count as f64);
        /// Packets of the responder per second of the duration.
        "Bwd Packets/s": Option<f64> [packets] = row.per_second(row.backward.packet_count as f64);
        /// Least payload of a packet.
        "Packet Length Min": Option<u64> [octets] = row.lengths().min();
        /// Greatest payload of a packet.
        "Packet Length Max": Option<u64> [octets] = row.lengths().max();
        /// Mean payload of the packets.
        "Packet Length Mean": Option<f64> [octets] = row.lengths().mean();
        /// Sample standard deviation of the payload of the packets.
        "Packet Length Std": Option<f64> [octets] = row.lengths().deviation();
        /// Sample variance of the payload of the packets.
        "Packet Length Variance": Option<f64> = row.lengths().variance();
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
        "Down/Up Ratio": Option<f64> = row.ratio();
        /// Payload per packet.
        "Average Packet Size": Option<f64> [octets] = row.lengths().mean();
        /// As `Fwd Packet Length Mean`.
        "Fwd Segment Size Avg": Option<f64> [octets] = row.forward.payload.mean();
        /// As `Bwd Packet Length Mean`.
        "Bwd Segment Size Avg": Option<f64> [octets] = row.backward.payload.mean();
        /// Payload per bulk of the initiator: a run of at least four packets with payload, without one of the other side, and without a gap of more than a second.
        "Fwd Bytes/Bulk Avg": Option<f64> [octets] = per_bulk(&row.forward.bulks(), |bulks| bulks.octet_count);
        /// Packets per bulk of the initiator.
        "Fwd Packet/Bulk Avg": Option<f64> [packets] = per_bulk(&row.forward.bulks(), |bulks| bulks.packet_count);
        /// Payload of the bulks of the initiator per second.
        "Fwd Bulk Rate Avg": Option<f64> [octets] = bulk_rate(&row.forward.bulks());
        /// Payload per bulk of the responder: a run of at least four packets with payload, without one of the other side, and without a gap of more than a second.
        "Bwd Bytes/Bulk Avg": Option<f64> [octets] = per_bulk(&row.backward.bulks(), |bulks| bulks.octet_count);
        /// Packets per bulk of the responder.
        "Bwd Packet/Bulk Avg": Option<f64> [packets] = per_bulk(&row.backward.bulks(), |bulks| bulks.packet_count);
        /// Payload of the bulks of the responder per second.
        "Bwd Bulk Rate Avg": Option<f64> [octets] = bulk_rate(&row.backward.bulks());
        /// Packets of the initiator per subflow; a subflow ends with a gap of more than a second.
        "Subflow Fwd Packets": Option<f64> [packets] = row.per_subflow(row.forward.packet_count);
        /// Payload of the initiator per subflow.
        "Subflow Fwd Bytes": Option<f64> [octets] = row.per_subflow(row.forward.payload.sum());
        /// Packets of the responder per subflow; a subflow ends with a gap of more than a second.
        "Subflow Bwd Packets": Option<f64> [packets] = row.per_subflow(row.backward.packet_count);
        /// Payload of the responder per subflow.
        "Subflow Bwd Bytes": Option<f64> [octets] = row.per_subflow(row.backward.payload.sum());
        /// Window of the first segment of the initiator, without scaling.
        "FWD Init Win Bytes": Option<u16> = row.forward.window;
        /// Window of the first segment of the responder, without scaling.
        "Bwd Init Win Bytes": Option<u16> = row.backward.window;
        /// Packets of the initiator with payload.
        "Fwd Act Data Pkts": u64 [packets] = row.forward.data_packet_count;
        /// Packets of the responder with payload.
        "Bwd Act Data Pkts": u64 [packets] = row.backward.data_packet_count;
        /// Least transport header of the initiator.
        "Fwd Seg Size Min": Option<u32> [octets] = row.forward.header_len_min;
        /// Least transport header of the responder.
        "Bwd Seg Size Min": Option<u32> [octets] = row.backward.header_len_min;
        /// Length of an active period, which ends with a gap of more than five seconds, in microseconds: mean.
        "Active Mean": Option<f64> = row.active.mean().map(scaled);
        /// Length of an active period, which ends with a gap of more than five seconds, in microseconds: sample standard deviation.
        "Active Std": Option<f64> = row.active.deviation().map(scaled);
        /// Length of an active period, which ends with a gap of more than five seconds, in microseconds: greatest.
        "Active Max": Option<f64> = row.active.max().map(micros);
        /// Length of an active period, which ends with a gap of more than five seconds, in microseconds: least.
        "Active Min": Option<f64> = row.active.min().map(micros);
        /// Length of a gap of more than five seconds, in microseconds: mean.
        "Idle Mean": Option<f64> = row.counted.idle.mean().map(scaled);
        /// Length of a gap of more than five seconds, in microseconds: sample standard deviation.
        "Idle Std": Option<f64> = row.counted.idle.deviation().map(scaled);
        /// Length of a gap of more than five seconds, in microseconds: greatest.
        "Idle Max": Option<f64> = row.counted.idle.max().map(micros);
        /// Length of a gap of more than five seconds, in microseconds: least.
        "Idle Min": Option<f64> = row.counted.idle.min().map(micros);
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
        /// From the first packet of the flow to the last, over all of its records, in microseconds.
        "Total Connection Flow Time": f64 = micros(duration_nanos(row.record.open_duration()));
        /// Always absent: labels are assigned by their own option.
        "Label": Option<Name> = None;
    }
}
