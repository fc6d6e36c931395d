//! Modbus over TCP: a row for each request with its response.
//!
//! A response has the identifier of its request. Clients that use one identifier for all requests are answered in order, as long as the server
//! answers all. Values
//! of coils and registers are counted only.
//!
//! Standards: MODBUS Application Protocol Specification V1.1b3, MODBUS Messaging on TCP/IP Implementation Guide V1.0b.

use super::recognizers::octets::either;
use crate::checkpoint::state;
use crate::codec::Reader;
use crate::row::Displayed;
use crate::session::framing::{AfterPdu, Framing, Pdu, Width};
use crate::session::kit::{Malformed, PduParser, Reply, Rows, Wire, exchange, names, open, wire};
use crate::session::{Protocol, Role, Search, StreamOpening, Verdict};

/// Protocol `modbus`: recognized by port 502, protocol number zero, a plausible length, and a known function code.
pub static PROTOCOL: Protocol = Protocol::new("modbus")
    .in_zeek("modbus")
    .in_eve("modbus")
    .over_streams(&[502], Some(probe))
    .with_kinds(&["modbus"])
    .with_message_len_min(8)
    .with_limits("32 open requests, PDUs of 260 octets")
    .with_standards("MODBUS Application Protocol V1.1b3, Messaging on TCP/IP V1.0b");

fn probe(opening: &StreamOpening<'_>) -> Verdict {
    if opening.has_port(502) { either(opening, begins) } else { Verdict::No }
}

/// Returns whether a message begins with these octets.
fn begins(octets: &[u8]) -> Verdict {
    match octets {
        [_, _, 0, 0, 0, len, _, function, ..] => Verdict::of(
            (2..=254).contains(len)
                && matches!(function & 0x7F, 1..=8 | 11 | 12 | 15..=17 | 20..=24 | 43 | 90),
        ),
        [_, _, 0, 0, 0, ..] | [_, _, 0, 0] | [_, _, 0] | [_, _] | [_] | [] => Verdict::More,
        _ => Verdict::No,
    }
}

/// Searches the next message after a gap.
fn search(_: Role, octets: &[u8]) -> Search {
    let mut verdicts = (0..octets.len()).map(|at| begins(octets.get(at..).unwrap_or_default()));
    match verdicts.position(|verdict| verdict != Verdict::No) {
        Some(at) if octets.len() >= at + 8 => Search::Found(at),
        Some(at) => Search::From(at),
        None => Search::From(octets.len()),
    }
}

names! {
    /// Function of a request (section 5.1 of the specification, and those of a vendor that are in use).
    pub struct Function: u8 {
        1 => "read_coils", 2 => "read_discrete_inputs", 3 => "read_holding_registers", 4 => "read_input_registers",
        5 => "write_single_coil", 6 => "write_single_register", 7 => "read_exception_status", 8 => "diagnostics",
        11 => "get_comm_event_counter", 12 => "get_comm_event_log", 15 => "write_multiple_coils",
        16 => "write_multiple_registers", 17 => "report_slave_id", 20 => "read_file_record", 21 => "write_file_record",
        22 => "mask_write_register", 23 => "read_write_multiple_registers", 24 => "read_fifo_queue",
        43 => "encap_interface_transport", 90 => "unity",
    }
}

names! {
    /// Code of an exception (section 7 of the specification).
    pub struct Exception: u8 {
        1 => "illegal_function", 2 => "illegal_data_address", 3 => "illegal_data_value", 4 => "slave_device_failure",
        5 => "acknowledge", 6 => "slave_device_busy", 8 => "memory_parity_error", 10 => "gateway_path_unavailable",
        11 => "gateway_target_device_failed_to_respond",
    }
}

exchange! {
    /// A request with its response.
    "modbus" pub struct Exchange {
        /// Number by which the response is matched.
        pub identifier: u16,
        /// Device behind the server.
        pub unit: u8,
        /// Function.
        pub function: Function,
        /// First address of the coils or registers; null if the request was not captured, or has none.
        pub first_address: Option<u16>,
        /// Number of coils or registers.
        pub quantity: Option<u16>,
        /// Value that is written to a single coil or register.
        pub value: Option<u16>,
        /// Octets of the response after the function.
        pub response_octet_count: Option<u16> [octets],
        /// Reason for which the request failed.
        pub exception: Option<Exception>,
    }
    /// Messages of Modbus: a row for a request, and one for its response.
    zeek "modbus" ['a] as (row, from) {
        /// `identifier`.
        "tid": u32 = row.identifier.into();
        /// `unit`.
        "unit": u8 = row.unit;
        /// Name of the `function`, followed by `_EXCEPTION` in the response to a request that failed.
        "func": Displayed<String> = Displayed(row.function_name(from));
        /// `REQ` or `RESP`.
        "pdu_type": &'a str = if from == Role::Client { "REQ" } else { "RESP" };
        /// Name of the `exception`, in the response.
        "exception": Option<Displayed<String>> = row.exception_name(from).map(Displayed);
    }
}

impl Exchange {
    fn function_name(&self, from: Role) -> String {
        let failed = if from == Role::Server && self.exception.is_some() { "_EXCEPTION" } else { "" };
        match self.function.name() {
            Some(name) => name.to_ascii_uppercase() + failed,
            None => format!("unknown-{}", self.function.0),
        }
    }

    fn exception_name(&self, from: Role) -> Option<String> {
        let exception = self.exception.filter(|_| from == Role::Server)?;
        Some(exception.name().map_or_else(|| format!("unknown-{}", exception.0), str::to_ascii_uppercase))
    }
}

open! {
    /// Rows of Modbus.
    pub(crate) enum Row { 0 = Exchange }
}

wire! {
    /// Head of the messaging guide, section 3.1.3, with the function.
    struct Head { identifier: u16, protocol: u16, len: u16, unit: u8, function: u8 }
}

/// Parser of Modbus.
#[derive(Debug, Default)]
pub(crate) struct Modbus;

state! { struct Modbus {} }

impl PduParser for Modbus {
    const PROTOCOL: &'static Protocol = &PROTOCOL;
    const FRAMING: Option<Framing> =
        Some(Framing::length(4, Width::U16).plus(6).len_max(260).keep(260).resync(search));
    const OPEN_MAX: usize = 32;
    type Row = Row;

    fn pdu(&mut self, pdu: &Pdu<'_>, rows: &mut Rows<'_, Row>) -> Result<AfterPdu, Malformed> {
        let mut reader = Reader::new(pdu.bytes);
        let Head { identifier, protocol, unit, function, .. } = Head::read(&mut reader)?;
        if protocol != 0 {
            return Err(Malformed);
        }
        let key = u64::from(identifier) << 16 | u64::from(unit) << 8 | u64::from(function & 0x7f);
        let common = |row: &mut Exchange| {
            (row.identifier, row.unit, row.function) = (identifier, unit, Function(function & 0x7f));
        };
        if pdu.from == Role::Client {
            rows.request(key, |row: &mut Exchange| {
                common(row);
                row.first_address =
                    reader.be().ok().filter(|_| matches!(function, 1..=6 | 15 | 16 | 22..=24));
                let second = reader.be().ok();
                row.quantity = second.filter(|_| matches!(function, 1..=4 | 15 | 16 | 23));
                row.value = second.filter(|_| matches!(function, 5 | 6));
            });
        } else {
            rows.response(key, |row: &mut Exchange| {
                common(row);
                row.response_octet_count = u16::try_from(pdu.len.saturating_sub(8)).ok();
                row.exception = reader.be().ok().filter(|_| function & 0x80 != 0).map(Exception);
                Reply::Last
            });
        }
        Ok(AfterPdu::More)
    }
}

#[cfg(test)]
pub(super) mod samples {
    use super::super::recognizers::samples::{Sample, client, server};
    use super::PROTOCOL;

    pub(in super::super) const SAMPLES: &[Sample] = &[
        client(&PROTOCOL, 502, b"\x00\x2A\x00\x00\x00\x06\x01\x03\x00\x00\x00\x02"),
        server(&PROTOCOL, 502, b"\x00\x2A\x00\x00\x00\x03\x01\x83\x02"),
    ];

    pub(in super::super) const LOOK_ALIKES: &[Sample] = &[
        client(&PROTOCOL, 502, b"\x00\x2A\x00\x00\x00\x06\x01\x7F\x00\x00\x00\x02"),
        client(&PROTOCOL, 5020, b"\x00\x2A\x00\x00\x00\x06\x01\x03\x00\x00\x00\x02"),
    ];
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::kit::KitEntry;
    use crate::session::kit::suite::{Case, check_stream};

    const CLIENT: Role = Role::Client;
    const SERVER: Role = Role::Server;

    #[test]
    fn cases_of_requests() {
        let read = b"\0\x01\0\0\0\x06\x11\x03\0\x6B\0\x03".to_vec();
        let registers = b"\0\x01\0\0\0\x09\x11\x03\x06\x02\x2B\0\0\0\x64".to_vec();
        let write = b"\0\x02\0\0\0\x06\x11\x06\0\x01\0\x03".to_vec();
        let refused = b"\0\x02\0\0\0\x03\x11\x86\x02".to_vec();
        // Section 6.1 of the specification: coils 20 to 38.
        let coils = |address: u8| [b"\0\0\0\0\0\x06\xFF\x01\0", &[address][..], b"\0\x13"].concat();
        let states = |last: u8| [b"\0\0\0\0\0\x06\xFF\x01\x03\xCD\x6B", &[last][..]].concat();
        let cases = [
            Case {
                name: "a read, and a write that fails",
                turns: vec![
                    (CLIENT, read.clone()),
                    (SERVER, registers.clone()),
                    (CLIENT, write),
                    (SERVER, refused),
                ],
                rows: &[
                    "modbus identifier=1 unit=17 function=read_holding_registers first_address=107 quantity=3 \
                    response_octet_count=7 response_time=10ms",
                    "modbus identifier=2 unit=17 function=write_single_register first_address=1 value=3 \
                    response_octet_count=1 exception=illegal_data_address response_time=10ms",
                ],
            },
            Case {
                name: "one identifier for all requests, answered in order",
                turns: vec![
                    (CLIENT, [coils(0x13), coils(0x33)].concat()),
                    (SERVER, states(5)),
                    (SERVER, states(6)),
                ],
                rows: &[
                    "modbus unit=255 function=read_coils first_address=19 quantity=19 response_octet_count=4 \
                    response_time=10ms",
                    "modbus unit=255 function=read_coils first_address=51 quantity=19 response_octet_count=4 \
                    response_time=20ms",
                ],
            },
            Case {
                name: "a response without its request, and a request without a response",
                turns: vec![(SERVER, registers), (CLIENT, read)],
                rows: &[
                    "modbus identifier=1 unit=17 function=read_holding_registers response_octet_count=7 lacks=request",
                    "modbus identifier=1 unit=17 function=read_holding_registers first_address=107 quantity=3 \
                    lacks=response",
                ],
            },
        ];
        check_stream(&KitEntry::of::<Modbus>(), &cases);
    }

    #[test]
    fn the_next_message_is_found_after_a_gap() {
        let octets = b"\x64\0\x05\0\0\0\x06\x11\x03\0\x6B\0\x03";
        assert_eq!(search(CLIENT, octets), Search::Found(1));
        assert_eq!(search(CLIENT, &octets[..6]), Search::From(1));
        assert_eq!(search(CLIENT, b"\x05\x05\x05\x05"), Search::From(2));
    }
}
