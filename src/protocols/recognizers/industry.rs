//! Recognizers of industrial and building automation: DNP3, IEC 104, EtherNet/IP, BACnet, S7, SOME/IP.

use super::octets::{datagram_in_role, either, u16_at, u16_le_at, u32_at, u32_le_at};
use crate::session::{DatagramOpening, OctetSet, Protocol, StreamOpening, Verdict};

/// DNP3 (IEEE 1815), recognized by the start octets and the length of a link frame.
pub static DNP3: Protocol = Protocol::new("dnp3")
    .in_zeek_by_transport("dnp3_tcp", "dnp3_udp")
    .in_eve("dnp3")
    .over_streams(&[20000], Some(|opening| either(opening, dnp3)))
    .over_datagrams(&[20000], Some(|opening| Verdict::of(dnp3(opening.bytes) == Verdict::Match)))
    .streams_begin_with(OctetSet::of(b"\x05"))
    .datagrams_begin_with(OctetSet::of(b"\x05"));

/// IEC 60870-5-104, recognized by an unnumbered control frame; on port 2404 by any frame.
pub static IEC104: Protocol =
    Protocol::new("iec104").over_streams(&[2404], Some(iec104)).streams_begin_with(OctetSet::of(b"\x68"));

/// EtherNet/IP, recognized by an encapsulation command with status zero and, in a datagram, a matching length.
pub static ENIP: Protocol = Protocol::new("enip")
    .in_eve("enip")
    .over_streams(&[44818], Some(|opening| either(opening, |bytes| enip(bytes, None))))
    .over_datagrams(&[44818, 2222], Some(|opening| enip(opening.bytes, Some(opening.len))))
    .streams_begin_with(
        OctetSet::range(0x63..=0x66).and(OctetSet::range(0x6F..=0x70)).and(OctetSet::of(b"\x01\x04")),
    )
    .datagrams_begin_with(
        OctetSet::range(0x63..=0x66).and(OctetSet::range(0x6F..=0x70)).and(OctetSet::of(b"\x01\x04")),
    );

/// BACnet/IP, recognized by the virtual link header, and network version 1.
pub static BACNET: Protocol = Protocol::new("bacnet")
    .over_datagrams(&[47808], Some(bacnet))
    .datagrams_begin_with(OctetSet::of(b"\x81"));

/// Siemens S7, recognized by its data in ISO transport, after the connection request if that was captured.
pub static S7COMM: Protocol = Protocol::new("s7comm")
    .over_streams(&[102], Some(|opening| either(opening, s7comm)))
    .streams_begin_with(OctetSet::of(b"\x03"));

/// AUTOSAR SOME/IP, recognized by protocol version 1, a known message type and return code, and a matching length.
pub static SOMEIP: Protocol = Protocol::new("someip").over_datagrams(&[30490], Some(someip));

fn dnp3(bytes: &[u8]) -> Verdict {
    match bytes {
        [5, 0x64, 5..=255, ..] => Verdict::Match,
        [5, 0x64] | [5] | [] => Verdict::More,
        _ => Verdict::No,
    }
}

fn iec104(opening: &StreamOpening<'_>) -> Verdict {
    let is_on_port = opening.has_port(2404);
    either(opening, |bytes| match bytes {
        // STARTDT, STOPDT, TESTFR: one of six bits.
        [0x68, 4, 0x07 | 0x0B | 0x13 | 0x23 | 0x43 | 0x83, 0, 0, 0, ..] => Verdict::Match,
        [0x68, 4..=253, ..] if is_on_port => Verdict::Match,
        [0x68, 4, ..] | [0x68] | [] if bytes.len() < 6 => Verdict::More,
        _ => Verdict::No,
    })
}

/// Matches an EtherNet/IP encapsulation header. `len` is the length of the datagram in octets; `None` for a stream.
fn enip(bytes: &[u8], len: Option<usize>) -> Verdict {
    match bytes {
        [0x01 | 0x04 | 0x63..=0x66 | 0x6F | 0x70, 0, ..] => {}
        [0x01 | 0x04 | 0x63..=0x66 | 0x6F | 0x70] | [] => return Verdict::More,
        _ => return Verdict::No,
    }
    let (Some(data_len), Some(status), Some(options)) =
        (u16_le_at(bytes, 2).map(usize::from), u32_le_at(bytes, 8), u32_le_at(bytes, 20))
    else {
        return if len.is_none() { Verdict::More } else { Verdict::No };
    };
    let is_long_enough = match bytes.first() {
        Some(0x65) => data_len == 4,
        Some(0x6F | 0x70) => data_len >= 16,
        _ => true,
    };
    Verdict::of(status == 0 && options == 0 && is_long_enough && len.is_none_or(|len| data_len + 24 == len))
}

fn bacnet(opening: &DatagramOpening<'_>) -> Verdict {
    let [0x81, function @ 0..=0x0B, _, _, rest @ ..] = opening.bytes else { return Verdict::No };
    let fits = u16_at(opening.bytes, 2).is_some_and(|len| usize::from(len) == opening.len);
    // A forwarded message has its origin before the network header.
    let network = if *function == 4 { rest.get(6..).unwrap_or_default() } else { rest };
    Verdict::of(
        fits && (*function < 4 || *function > 11 || matches!(network, [1, ..]) || matches!(function, 5..=8)),
    )
}

fn s7comm(bytes: &[u8]) -> Verdict {
    // TPKT (RFC 1006), then data of X.224.
    let data = |bytes: &[u8]| match bytes {
        [3, 0, _, _, 2, 0xF0, _, protocol, ..] => Verdict::of(matches!(protocol, 0x32 | 0x72)),
        [3, 0, _, _, 2, 0xF0, ..] | [3, 0, _, _, 2] | [3, 0, _, _] | [3, 0, _] | [3, 0] | [3] | [] => {
            Verdict::More
        }
        _ => Verdict::No,
    };
    match bytes {
        // The access points and the size follow in any order; MMS uses them too.
        [3, 0, 0, len, indicator, 0xE0, 0, 0, _, _, 0, 0xC0..=0xC2, ..]
            if *len == indicator.wrapping_add(5) =>
        {
            bytes.get(usize::from(*len)..).map_or(Verdict::More, data)
        }
        [3, 0, _, _, _, 0xE0, ..] if bytes.len() < 12 => Verdict::More,
        [3, 0, _, _, _] => Verdict::More,
        _ => data(bytes),
    }
}

fn someip(opening: &DatagramOpening<'_>) -> Verdict {
    let Some([1, _, kind @ (0..=2 | 0x80 | 0x81 | 0x20..=0x22), 0..=0x5E]) = opening.bytes.get(12..16) else {
        return Verdict::No;
    };
    // Several messages may share a datagram.
    let is_match = u32_at(opening.bytes, 4).is_some_and(|len| {
        let end = len as usize + 8;
        len >= 8 && (end == opening.len || (end < opening.len && opening.bytes.get(end + 12) == Some(&1)))
    });
    // Either side may send notifications.
    let is_answer = Some(matches!(kind, 0x80 | 0x81)).filter(|_| !matches!(kind, 2 | 0x22));
    datagram_in_role(opening, is_match, is_answer)
}

#[cfg(test)]
pub(super) mod samples {
    use super::super::samples::{Sample, client, datagram, server};
    use super::{BACNET, DNP3, ENIP, IEC104, S7COMM, SOMEIP};

    const REGISTER: &[u8] = b"\x65\x00\x04\x00\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01\x00\x00\x00";

    pub(in super::super) const SAMPLES: &[Sample] = &[
        client(&DNP3, 20_000, b"\x05\x64\x08\xC4\x01\x00\x02\x00\x12\x34"),
        datagram(&DNP3, 20_000, b"\x05\x64\x08\xC4\x01\x00\x02\x00\x12\x34"),
        client(&IEC104, 10_000, b"\x68\x04\x07\x00\x00\x00"),
        server(&IEC104, 2404, b"\x68\x0E\x00\x00\x02\x00\x64"),
        client(&ENIP, 44_818, REGISTER),
        datagram(&ENIP, 44_818, b"\x63\x00\x00\x00\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"),
        datagram(&BACNET, 47_808, b"\x81\x0B\x00\x0C\x01\x20\xFF\xFF\x00\xFF\x10\x08"),
        client(
            &S7COMM,
            102,
            b"\x03\x00\x00\x16\x11\xE0\x00\x00\x00\x01\x00\xC0\x01\x0A\xC1\x02\x01\x00\xC2\x02\x01\x02\
              \x03\x00\x00\x19\x02\xF0\x80\x32\x01\x00\x00",
        ),
        client(&S7COMM, 102, b"\x03\x00\x00\x19\x02\xF0\x80\x32\x01\x00\x00"),
        datagram(&SOMEIP, 30_490, b"\xFF\xFF\x81\x00\x00\x00\x00\x0C\x00\x00\x00\x01\x01\x01\x02\x00abcd"),
    ];

    pub(in super::super) const LOOK_ALIKES: &[Sample] = &[
        client(&DNP3, 20_000, b"\x05\x64\x04\xC4"),
        client(&IEC104, 10_000, b"\x68\x04\x05\x00\x00\x00"),
        client(&IEC104, 10_000, b"hello, world"),
        client(&ENIP, 44_818, b"\x65\x00\x05\x00\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01\x00\x00\x00\0"),
        datagram(&ENIP, 44_818, b"\x63\x00\x00\x00\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"),
        datagram(&BACNET, 47_808, b"\x81\x0B\x00\x0D\x01\x20\xFF\xFF\x00\xFF\x10\x08"),
        client(
            &S7COMM,
            3389,
            b"\x03\x00\x00\x13\x0E\xE0\x00\x00\x00\x00\x00\x01\x00\x08\x00\x03\x00\x00\x00",
        ),
        // MMS.
        client(
            &S7COMM,
            102,
            b"\x03\x00\x00\x16\x11\xE0\x00\x00\x00\x01\x00\xC0\x01\x0A\xC1\x02\x01\x00\xC2\x02\x01\x02\
              \x03\x00\x00\x19\x02\xF0\x80\x0D\x01\x00\x00",
        ),
        datagram(&SOMEIP, 30_490, b"\xFF\xFF\x81\x00\x00\x00\x00\x0D\x00\x00\x00\x01\x01\x01\x02\x00abcd"),
    ];
}
