//! Encoding of one flow in a checkpoint.
//!
//! Counters and times are numbers of variable length, relative to the clock of the tracker where they are times; what a
//! flow does not have takes no octets but a bit that states so.

use super::super::extras::{Extra, ExtraSide};
use super::super::flow::{
    Cold, Endpoint, FlowBits, Hot, NOT_STARTED, SideBits, SideState, WINDOW_SCALE_UNKNOWN,
};
use super::super::timing::Timing;
use crate::base::{Encapsulation, OuterFlow, SeqNum, TcpFlags, TcpState};
use crate::checkpoint::{Invalid, StateWriter, number, read_key, read_side, write_key, write_side};
use crate::codec::{Prefix, Reader};
use crate::record::EncapsulationRecord;
use crate::wire::tcp::WINDOW_SCALE_MAX;

/// A flow as it was read from a checkpoint: without its place in the recency lists.
pub(super) struct Saved {
    pub(super) hot: Hot,
    pub(super) cold: Cold,
    pub(super) extra: Option<Box<Extra>>,
}

/// Bits of a flow that are saved as they are; the others follow from its additional state.
const FLOW_BITS: u8 = !FlowBits::EXTRA;

/// What a side has, as bits.
const COUNTERS: u8 = 1;
const TCP: u8 = 1 << 1;
const MAC: u8 = 1 << 2;
const VLAN_IDS: u8 = 1 << 3;

pub(super) fn write(
    out: &mut StateWriter<'_>,
    (hot, cold, extra): (&Hot, &Cold, Option<&Extra>),
    now_ns: u64,
) -> Result<(), Invalid> {
    write_key(out, &hot.key)?;
    out.be(hot.state as u8)?;
    out.be(hot.bits.octet() & FLOW_BITS)?;
    out.be(hot.epoch)?;
    out.bool(extra.is_some())?;
    out.varint(now_ns.wrapping_sub(hot.last_ns))?;
    let start = if cold.start_ns == NOT_STARTED {
        0
    } else {
        // The start is a captured time, and may be behind the clock or before it.
        zigzag(hot.last_ns.wrapping_sub(cold.start_ns)).saturating_add(1)
    };
    out.varint(start)?;
    if start == u64::MAX {
        out.be(cold.start_ns)?;
    }
    for word in cold.timing.words() {
        out.be(word)?;
    }
    let [low, high] = cold.history;
    out.varint(low)?;
    out.varint(high)?;
    out.varint(cold.interface.into())?;
    out.varint(cold.sequence_number.into())?;
    for side in &hot.sides {
        write_end(out, side)?;
    }
    extra.map_or(Ok(()), |extra| write_extra(out, extra))
}

pub(super) fn read(reader: &mut Reader<'_>, now_ns: u64) -> Result<Saved, Invalid> {
    let key = read_key(reader)?;
    let mut hot = Hot::new(key, now_ns);
    hot.state = tcp_state(reader.be()?)?;
    hot.bits = FlowBits::from_octet(reader.be::<u8>()? & FLOW_BITS);
    hot.epoch = reader.be()?;
    let has_extra = reader.bool()?;
    hot.last_ns = now_ns.checked_sub(reader.varint()?).ok_or(Invalid::new("a packet after the clock"))?;
    let mut cold = Cold::new(0, 0, 0);
    cold.start_ns = match reader.varint()? {
        0 => NOT_STARTED,
        u64::MAX => reader.be()?,
        start => hot.last_ns.wrapping_sub(unzigzag(start - 1)),
    };
    cold.timing = Timing::from_words([reader.be()?, reader.be()?, reader.be()?]);
    cold.history = [reader.varint()?, reader.varint()?];
    cold.interface = number(reader)?;
    cold.sequence_number = number(reader)?;
    for side in &mut hot.sides {
        *side = read_end(reader)?;
    }
    let extra = has_extra.then(|| read_extra(reader).map(Box::new)).transpose()?;
    Ok(Saved { hot, cold, extra })
}

fn write_end(out: &mut StateWriter<'_>, side: &SideState) -> Result<(), Invalid> {
    let new = SideState::NEW;
    let has_counters = side.packet_count != 0
        || side.octet_count != 0
        || side.ip_octet_count != 0
        || side.payload_octet_count != 0
        || side.hop_limit_min != new.hop_limit_min
        || side.hop_limit_max != new.hop_limit_max;
    let has_tcp = side.initial_seq.0 != 0
        || side.next_seq.0 != 0
        || side.ack.0 != 0
        || side.window != 0
        || side.flags.0 != 0
        || side.window_scale != new.window_scale;
    let bit = |has, bit| if has { bit } else { 0 };
    let parts = bit(has_counters, COUNTERS)
        | bit(has_tcp, TCP)
        | bit(side.mac != new.mac, MAC)
        | bit(side.vlan_ids != new.vlan_ids, VLAN_IDS);
    out.array([parts, side.bits.octet(), side.endpoint as u8, side.letters, side.traffic_class])?;
    if has_counters {
        for count in [side.packet_count, side.octet_count, side.ip_octet_count, side.payload_octet_count] {
            out.varint(count)?;
        }
        out.array([side.hop_limit_min, side.hop_limit_max])?;
    }
    if has_tcp {
        for number in [side.initial_seq, side.next_seq, side.ack] {
            out.be(number.0)?;
        }
        out.be(side.window)?;
        out.be(side.flags.0)?;
        out.be(side.window_scale)?;
    }
    if side.mac != new.mac {
        out.array(side.mac)?;
    }
    if side.vlan_ids != new.vlan_ids {
        out.array(side.vlan_ids)?;
    }
    Ok(())
}

fn read_end(reader: &mut Reader<'_>) -> Result<SideState, Invalid> {
    let [parts, bits, endpoint, letters, traffic_class] = reader.array()?;
    let has = |bit| parts & bit != 0;
    let mut side = SideState::NEW;
    side.bits = SideBits::from_octet(bits);
    side.endpoint = Endpoint::ALL
        .into_iter()
        .find(|known| *known as u8 == endpoint)
        .ok_or(Invalid::new("a state of an end that is not known"))?;
    (side.letters, side.traffic_class) = (letters, traffic_class);
    if has(COUNTERS) {
        side.packet_count = reader.varint()?;
        side.octet_count = reader.varint()?;
        side.ip_octet_count = reader.varint()?;
        side.payload_octet_count = reader.varint()?;
        // Sums of both sides, and counters with another packet, must not overflow.
        let counts = [side.packet_count, side.octet_count, side.ip_octet_count, side.payload_octet_count];
        if counts.iter().any(|count| *count > COUNT_MAX) {
            return Err(Invalid::new("a counter that no capture reaches"));
        }
        [side.hop_limit_min, side.hop_limit_max] = reader.array()?;
    }
    if has(TCP) {
        side.initial_seq = SeqNum(reader.be()?);
        side.next_seq = SeqNum(reader.be()?);
        side.ack = SeqNum(reader.be()?);
        side.window = reader.be()?;
        side.flags = TcpFlags(reader.be()?);
        side.window_scale = reader.be()?;
        if side.window_scale > WINDOW_SCALE_MAX && side.window_scale != WINDOW_SCALE_UNKNOWN {
            return Err(Invalid::new("a window scale that no segment states"));
        }
    }
    if has(MAC) {
        side.mac = reader.array()?;
    }
    if has(VLAN_IDS) {
        side.vlan_ids = reader.array()?;
    }
    Ok(side)
}

/// Maximum value of a saved counter.
const COUNT_MAX: u64 = 1 << 60;

fn write_extra(out: &mut StateWriter<'_>, extra: &Extra) -> Result<(), Invalid> {
    out.varint(extra.lag_ns)?;
    out.varint(extra.syn_lag_ns)?;
    out.varint(extra.icmp_error_count.into())?;
    out.varint(extra.fragment_count.into())?;
    out.bool(extra.pending_syn.is_some())?;
    if let Some((side, seq)) = extra.pending_syn {
        write_side(out, side)?;
        out.be(seq.0)?;
    }
    for side in &extra.sides {
        for count in side_counts(side) {
            out.varint(count.into())?;
        }
        let hole = [side.hole.map(|(from, _)| from), side.hole.map(|(_, to)| to)];
        for number in hole.into_iter().chain(side.last_numbers()) {
            out.bool(number.is_some())?;
            if let Some(number) = number {
                out.be(number.0)?;
            }
        }
        if side.hole.is_some() {
            out.be(side.hole_since)?;
            out.be(side.duplicate_ack_count)?;
        }
    }
    out.bool(extra.encapsulation.is_some())?;
    extra.encapsulation.as_deref().map_or(Ok(()), |record| write_encapsulation(out, record))
}

const fn side_counts(side: &ExtraSide) -> [u32; 7] {
    [
        side.retransmitted_count,
        side.stale_count,
        side.stale_letter_count,
        side.out_of_order_count,
        side.zero_window_count,
        side.zero_window_before_count,
        side.gap_count,
    ]
}

fn read_extra(reader: &mut Reader<'_>) -> Result<Extra, Invalid> {
    let mut extra = Extra {
        lag_ns: reader.varint()?,
        syn_lag_ns: reader.varint()?,
        icmp_error_count: number(reader)?,
        fragment_count: number(reader)?,
        ..Extra::default()
    };
    if reader.bool()? {
        extra.pending_syn = Some((read_side(reader)?, SeqNum(reader.be()?)));
    }
    for side in &mut extra.sides {
        *side = ExtraSide {
            retransmitted_count: number(reader)?,
            stale_count: number(reader)?,
            stale_letter_count: number(reader)?,
            out_of_order_count: number(reader)?,
            zero_window_count: number(reader)?,
            zero_window_before_count: number(reader)?,
            gap_count: number(reader)?,
            ..ExtraSide::default()
        };
        let mut seq = || -> Result<Option<SeqNum>, Invalid> {
            Ok(if reader.bool()? { Some(SeqNum(reader.be()?)) } else { None })
        };
        side.hole = seq()?.zip(seq()?);
        for place in 0..3 {
            if let Some(number) = seq()? {
                side.replace_number(place, number);
            }
        }
        if side.hole.is_some() {
            (side.hole_since, side.duplicate_ack_count) = (reader.be()?, reader.be()?);
        }
    }
    if reader.bool()? {
        extra.encapsulation = Some(Box::new(read_encapsulation(reader)?));
    }
    Ok(extra)
}

fn write_encapsulation(out: &mut StateWriter<'_>, record: &EncapsulationRecord) -> Result<(), Invalid> {
    for headers in [&record.encapsulation, &record.reverse_encapsulation] {
        out.prefixed(Prefix::U16, headers.to_string())?;
    }
    for flow in [record.outer_flow, record.reverse_outer_flow] {
        out.bool(flow.is_some())?;
        if let Some(OuterFlow { key, sender, .. }) = flow {
            write_key(out, &key)?;
            write_side(out, sender)?;
        }
    }
    for count in [
        record.encapsulation_changed_count.into(),
        record.reverse_encapsulation_changed_count.into(),
        record.inner_flow_count.into(),
        record.carried_packet_count,
        record.carried_octet_count,
    ] {
        out.varint(count)?;
    }
    Ok(())
}

fn read_encapsulation(reader: &mut Reader<'_>) -> Result<EncapsulationRecord, Invalid> {
    let headers = |reader: &mut Reader<'_>| {
        let text = reader.prefixed_str(Prefix::U16)?;
        Encapsulation::parse(text).ok_or(Invalid::new("an encapsulation that is not known"))
    };
    let outer_flow = |reader: &mut Reader<'_>| -> Result<Option<OuterFlow>, Invalid> {
        let is_present = reader.bool()?;
        is_present.then(|| Ok(OuterFlow::new(read_key(reader)?, read_side(reader)?))).transpose()
    };
    Ok(EncapsulationRecord {
        encapsulation: headers(reader)?,
        reverse_encapsulation: headers(reader)?,
        outer_flow: outer_flow(reader)?,
        reverse_outer_flow: outer_flow(reader)?,
        encapsulation_changed_count: number(reader)?,
        reverse_encapsulation_changed_count: number(reader)?,
        inner_flow_count: number(reader)?,
        carried_packet_count: reader.varint()?.min(COUNT_MAX),
        carried_octet_count: reader.varint()?.min(COUNT_MAX),
    })
}

fn tcp_state(octet: u8) -> Result<TcpState, Invalid> {
    let known = TcpState::ALL.into_iter().find(|state| *state as u8 == octet);
    known.ok_or(Invalid::new("a state of a connection that is not known"))
}

/// Maps a signed difference to a number that is small if the difference is.
const fn zigzag(difference: u64) -> u64 {
    difference << 1 ^ (difference as i64 >> 63) as u64
}

const fn unzigzag(number: u64) -> u64 {
    number >> 1 ^ (number & 1).wrapping_neg()
}
