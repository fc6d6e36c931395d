//! The columns of NFStream, with its definitions.

use std::fmt;
use std::net::IpAddr;

use super::flow::{Counted, SideCounted, milliseconds};
use super::moments::Moments;
use crate::base::{EndReason, Side, TcpFlags};
use crate::record::{FlowRecord, SideRecord};
use crate::row::Displayed;

/// A flow as a row of NFStream: its 77 columns except `protocol`, which a flow record has. Times are in milliseconds, without fractions,
/// values that do not exist are zero, and the source is the sender of the first packet.
pub(super) struct Nfstream<'a> {
    record: &'a FlowRecord,
    number: Option<u64>,
    /// The sender of the first packet.
    first: Side,
    both: Part,
    source: Part,
    destination: Part,
}

/// What a group of columns describes: a side, or both.
struct Part {
    first_ms: u64,
    last_ms: u64,
    lengths: Moments,
    intervals: Moments,
    /// As in [`SideCounted`].
    flags: [u64; 8],
}

impl Part {
    fn of(side: &SideCounted) -> Self {
        Self {
            first_ms: milliseconds(side.first_ns),
            last_ms: milliseconds(side.last_ns),
            lengths: side.lengths,
            intervals: side.intervals_ms,
            flags: side.flags.map(u64::from),
        }
    }

    fn flag(&self, flag: TcpFlags) -> u64 {
        self.flags.get(flag.0.trailing_zeros() as usize).copied().unwrap_or_default()
    }
}

/// A MAC address, of which the first three octets are displayed.
struct Oui([u8; 6]);

impl fmt::Display for Oui {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = [b':'; 8];
        for (place, octet) in text.chunks_mut(3).zip(self.0) {
            for (place, digit) in place.iter_mut().zip([octet >> 4, octet & 15]) {
                *place = digit + if digit < 10 { b'0' } else { b'a' - 10 };
            }
        }
        f.write_str(str::from_utf8(&text).unwrap_or_default())
    }
}

impl<'a> Nfstream<'a> {
    pub(super) fn new(record: &'a FlowRecord, counted: &Counted, number: Option<u64>) -> Self {
        let first = counted.first_side;
        let (source, destination) = (Part::of(counted.side(first)), Part::of(counted.side(first.other())));
        let mut flags = source.flags;
        flags.iter_mut().zip(destination.flags).for_each(|(sum, count)| *sum += count);
        let both = Part {
            first_ms: milliseconds(counted.first_ns),
            last_ms: milliseconds(counted.last_ns),
            lengths: source.lengths.and(destination.lengths),
            intervals: counted.intervals_ms,
            flags,
        };
        Self { record, number, first, both, source, destination }
    }

    fn record_of(&self, side: Side) -> &SideRecord {
        if side == self.record.initiator { &self.record.forward } else { &self.record.reverse }
    }

    fn source_record(&self) -> &SideRecord {
        self.record_of(self.first)
    }

    fn destination_record(&self) -> &SideRecord {
        self.record_of(self.first.other())
    }

    const fn expiration_id(&self) -> u8 {
        matches!(self.record.flow_end_reason, EndReason::ActiveTimeout) as u8
    }

    fn ip_version(&self) -> u8 {
        if self.record.source_address().is_ipv4() { 4 } else { 6 }
    }
}

crate::table! {
    /// A flow as NFStream describes it.
    impl['a] "nfstream" for Nfstream<'a> as row {
        /// Number of the flow, in the order of records.
        "id": Option<u64> = row.number;
        /// 0 for a flow that ended, 1 for one that an active timeout ended.
        "expiration_id": u8 = row.expiration_id();
        /// Address of the sender of the first packet.
        "src_ip": IpAddr = row.record.key.address(row.first);
        /// MAC address of the sender of the first packet.
        "src_mac": Option<[u8; 6]> = row.source_record().mac;
        /// First three octets of `src_mac`.
        "src_oui": Option<Displayed<Oui>> = row.source_record().mac.map(|mac| Displayed(Oui(mac)));
        /// Port of the sender of the first packet; 0 without ports.
        "src_port": u16 = row.record.key.port(row.first).unwrap_or_default();
        /// Address of the receiver of the first packet.
        "dst_ip": IpAddr = row.record.key.address(row.first.other());
        /// MAC address of the receiver of the first packet.
        "dst_mac": Option<[u8; 6]> = row.destination_record().mac;
        /// First three octets of `dst_mac`.
        "dst_oui": Option<Displayed<Oui>> = row.destination_record().mac.map(|mac| Displayed(Oui(mac)));
        /// Port of the receiver of the first packet; 0 without ports.
        "dst_port": u16 = row.record.key.port(row.first.other()).unwrap_or_default();
        /// 4 or 6.
        "ip_version": u8 = row.ip_version();
        /// Outermost VLAN id; 0 without a tag.
        "vlan_id": u16 = row.source_record().vlan_ids.iter().next().unwrap_or_default();
        /// Always 0: flows in tunnels have their outer headers in the record.
        "tunnel_id": u8 = 0;
        /// First packet of both sides, in milliseconds since 1970; 0 if there is none.
        "bidirectional_first_seen_ms": u64 [milliseconds] = row.both.first_ms;
        /// Last packet of both sides, in milliseconds since 1970; 0 if there is none.
        "bidirectional_last_seen_ms": u64 [milliseconds] = row.both.last_ms;
        /// From the first packet of both sides to the last.
        "bidirectional_duration_ms": u64 [milliseconds] = row.both.last_ms - row.both.first_ms;
        /// Packets of both sides.
        "bidirectional_packets": u64 [packets] = row.both.lengths.count();
        /// Octets of both sides, in the length that was chosen.
        "bidirectional_bytes": u64 [octets] = row.both.lengths.sum();
        /// First packet of the sender of the first packet, in milliseconds since 1970; 0 if there is none.
        "src2dst_first_seen_ms": u64 [milliseconds] = row.source.first_ms;
        /// Last packet of the sender of the first packet, in milliseconds since 1970; 0 if there is none.
        "src2dst_last_seen_ms": u64 [milliseconds] = row.source.last_ms;
        /// From the first packet of the sender of the first packet to the last.
        "src2dst_duration_ms": u64 [milliseconds] = row.source.last_ms - row.source.first_ms;
        /// Packets of the sender of the first packet.
        "src2dst_packets": u64 [packets] = row.source.lengths.count();
        /// Octets of the sender of the first packet, in the length that was chosen.
        "src2dst_bytes": u64 [octets] = row.source.lengths.sum();
        /// First packet of the receiver of the first packet, in milliseconds since 1970; 0 if there is none.
        "dst2src_first_seen_ms": u64 [milliseconds] = row.destination.first_ms;
        /// Last packet of the receiver of the first packet, in milliseconds since 1970; 0 if there is none.
        "dst2src_last_seen_ms": u64 [milliseconds] = row.destination.last_ms;
        /// From the first packet of the receiver of the first packet to the last.
        "dst2src_duration_ms": u64 [milliseconds] = row.destination.last_ms - row.destination.first_ms;
        /// Packets of the receiver of the first packet.
        "dst2src_packets": u64 [packets] = row.destination.lengths.count();
        /// Octets of the receiver of the first packet, in the length that was chosen.
        "dst2src_bytes": u64 [octets] = row.destination.lengths.sum();
        /// Least length of packets of both sides; 0 if there is none.
        "bidirectional_min_ps": u64 [octets] = row.both.lengths.min().unwrap_or_default();
        /// Mean length of packets of both sides; 0 if there is none.
        "bidirectional_mean_ps": f64 [octets] = row.both.lengths.mean().unwrap_or_default();
        /// Sample standard deviation of the length of packets of both sides; 0 if there is none.
        "bidirectional_stddev_ps": f64 [octets] = row.both.lengths.deviation().unwrap_or_default();
        /// Greatest length of packets of both sides; 0 if there is none.
        "bidirectional_max_ps": u64 [octets] = row.both.lengths.max().unwrap_or_default();
        /// Least length of packets of the sender of the first packet; 0 if there is none.
        "src2dst_min_ps": u64 [octets] = row.source.lengths.min().unwrap_or_default();
        /// Mean length of packets of the sender of the first packet; 0 if there is none.
        "src2dst_mean_ps": f64 [octets] = row.source.lengths.mean().unwrap_or_default();
        /// Sample standard deviation of the length of packets of the sender of the first packet; 0 if there is none.
        "src2dst_stddev_ps": f64 [octets] = row.source.lengths.deviation().unwrap_or_default();
        /// Greatest length of packets of the sender of the first packet; 0 if there is none.
        "src2dst_max_ps": u64 [octets] = row.source.lengths.max().unwrap_or_default();
        /// Least length of packets of the receiver of the first packet; 0 if there is none.
        "dst2src_min_ps": u64 [octets] = row.destination.lengths.min().unwrap_or_default();
        /// Mean length of packets of the receiver of the first packet; 0 if there is none.
        "dst2src_mean_ps": f64 [octets] = row.destination.lengths.mean().unwrap_or_default();
        /// Sample standard deviation of the length of packets of the receiver of the first packet; 0 if there is none.
        "dst2src_stddev_ps": f64 [octets] = row.destination.lengths.deviation().unwrap_or_default();
        /// Greatest length of packets of the receiver of the first packet; 0 if there is none.
        "dst2src_max_ps": u64 [octets] = row.destination.lengths.max().unwrap_or_default();
        /// Least time between consecutive packets of both sides; 0 if there is none.
        "bidirectional_min_piat_ms": u64 [milliseconds] = row.both.intervals.min().unwrap_or_default();
        /// Mean time between consecutive packets of both sides; 0 if there is none.
        "bidirectional_mean_piat_ms": f64 [milliseconds] = row.both.intervals.mean().unwrap_or_default();
        /// Sample standard deviation of the time between consecutive packets of both sides; 0 if there is none.
        "bidirectional_stddev_piat_ms": f64 [milliseconds] = row.both.intervals.deviation().unwrap_or_default();
        /// Greatest time between consecutive packets of both sides; 0 if there is none.
        "bidirectional_max_piat_ms": u64 [milliseconds] = row.both.intervals.max().unwrap_or_default();
        /// Least time between consecutive packets of the sender of the first packet; 0 if there is none.
        "src2dst_min_piat_ms": u64 [milliseconds] = row.source.intervals.min().unwrap_or_default();
        /// Mean time between consecutive packets of the sender of the first packet; 0 if there is none.
        "src2dst_mean_piat_ms": f64 [milliseconds] = row.source.intervals.mean().unwrap_or_default();
        /// Sample standard deviation of the time between consecutive packets of the sender of the first packet; 0 if there is none.
        "src2dst_stddev_piat_ms": f64 [milliseconds] = row.source.intervals.deviation().unwrap_or_default();
        /// Greatest time between consecutive packets of the sender of the first packet; 0 if there is none.
        "src2dst_max_piat_ms": u64 [milliseconds] = row.source.intervals.max().unwrap_or_default();
        /// Least time between consecutive packets of the receiver of the first packet; 0 if there is none.
        "dst2src_min_piat_ms": u64 [milliseconds] = row.destination.intervals.min().unwrap_or_default();
        /// Mean time between consecutive packets of the receiver of the first packet; 0 if there is none.
        "dst2src_mean_piat_ms": f64 [milliseconds] = row.destination.intervals.mean().unwrap_or_default();
        /// Sample standard deviation of the time between consecutive packets of the receiver of the first packet; 0 if there is none.
        "dst2src_stddev_piat_ms": f64 [milliseconds] = row.destination.intervals.deviation().unwrap_or_default();
        /// Greatest time between consecutive packets of the receiver of the first packet; 0 if there is none.
        "dst2src_max_piat_ms": u64 [milliseconds] = row.destination.intervals.max().unwrap_or_default();
        /// Packets of both sides with SYN.
        "bidirectional_syn_packets": u64 [packets] = row.both.flag(TcpFlags::SYN);
        /// Packets of both sides with CWR.
        "bidirectional_cwr_packets": u64 [packets] = row.both.flag(TcpFlags::CWR);
        /// Packets of both sides with ECE.
        "bidirectional_ece_packets": u64 [packets] = row.both.flag(TcpFlags::ECE);
        /// Packets of both sides with URG.
        "bidirectional_urg_packets": u64 [packets] = row.both.flag(TcpFlags::URG);
        /// Packets of both sides with ACK.
        "bidirectional_ack_packets": u64 [packets] = row.both.flag(TcpFlags::ACK);
        /// Packets of both sides with PSH.
        "bidirectional_psh_packets": u64 [packets] = row.both.flag(TcpFlags::PSH);
        /// Packets of both sides with RST.
        "bidirectional_rst_packets": u64 [packets] = row.both.flag(TcpFlags::RST);
        /// Packets of both sides with FIN.
        "bidirectional_fin_packets": u64 [packets] = row.both.flag(TcpFlags::FIN);
        /// Packets of the sender of the first packet with SYN.
        "src2dst_syn_packets": u64 [packets] = row.source.flag(TcpFlags::SYN);
        /// Packets of the sender of the first packet with CWR.
        "src2dst_cwr_packets": u64 [packets] = row.source.flag(TcpFlags::CWR);
        /// Packets of the sender of the first packet with ECE.
        "src2dst_ece_packets": u64 [packets] = row.source.flag(TcpFlags::ECE);
        /// Packets of the sender of the first packet with URG.
        "src2dst_urg_packets": u64 [packets] = row.source.flag(TcpFlags::URG);
        /// Packets of the sender of the first packet with ACK.
        "src2dst_ack_packets": u64 [packets] = row.source.flag(TcpFlags::ACK);
        /// Packets of the sender of the first packet with PSH.
        "src2dst_psh_packets": u64 [packets] = row.source.flag(TcpFlags::PSH);
        /// Packets of the sender of the first packet with RST.
        "src2dst_rst_packets": u64 [packets] = row.source.flag(TcpFlags::RST);
        /// Packets of the sender of the first packet with FIN.
        "src2dst_fin_packets": u64 [packets] = row.source.flag(TcpFlags::FIN);
        /// Packets of the receiver of the first packet with SYN.
        "dst2src_syn_packets": u64 [packets] = row.destination.flag(TcpFlags::SYN);
        /// Packets of the receiver of the first packet with CWR.
        "dst2src_cwr_packets": u64 [packets] = row.destination.flag(TcpFlags::CWR);
        /// Packets of the receiver of the first packet with ECE.
        "dst2src_ece_packets": u64 [packets] = row.destination.flag(TcpFlags::ECE);
        /// Packets of the receiver of the first packet with URG.
        "dst2src_urg_packets": u64 [packets] = row.destination.flag(TcpFlags::URG);
        /// Packets of the receiver of the first packet with ACK.
        "dst2src_ack_packets": u64 [packets] = row.destination.flag(TcpFlags::ACK);
        /// Packets of the receiver of the first packet with PSH.
        "dst2src_psh_packets": u64 [packets] = row.destination.flag(TcpFlags::PSH);
        /// Packets of the receiver of the first packet with RST.
        "dst2src_rst_packets": u64 [packets] = row.destination.flag(TcpFlags::RST);
        /// Packets of the receiver of the first packet with FIN.
        "dst2src_fin_packets": u64 [packets] = row.destination.flag(TcpFlags::FIN);
    }
}
