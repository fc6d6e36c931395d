//! NTP, versions 1 to 4: the exchanges of clients with servers, control messages and private messages.
//!
//! | row | when |
//! |---|---|
//! | [`Exchange`] | a request of a client with its response, matched by the time that the response repeats; a message of other modes, at once |
//! | [`Control`] | a request of a control program with all of its responses |
//! | [`Private`] | the same for private messages, of which `mon_getlist` amplifies traffic |
//!
//! Standards: RFC 5905 (mode 1 to 5), RFC 9327 (mode 6), ntpd's `ntp_request.h` (mode 7). Payload of control and private
//! messages is counted only. Extension fields are counted (RFC 7822).

use std::fmt;
use std::net::Ipv4Addr;
use std::time::Duration;

use super::recognizers::octets::datagram_in_role;
use crate::base::Timestamp;
use crate::checkpoint::state;
use crate::codec::Reader;
use crate::row::Displayed;
use crate::session::framing::{AfterPdu, Pdu};
use crate::session::kit::{Malformed, Measured, PduParser, Reply, Rows, Wire, exchange, names, open, wire};
use crate::session::{DatagramOpening, Protocol, Role, Verdict};

/// Protocol `ntp`: recognized by port 123 and a valid header, including control and private messages.
pub static PROTOCOL: Protocol = Protocol::new("ntp")
    .in_zeek("ntp")
    .in_eve("ntp")
    .over_datagrams(&[123], Some(probe))
    .with_kinds(&["ntp", "ntp_control", "ntp_private"])
    .with_message_len_min(8)
    .with_limits("16 open exchanges")
    .with_standards("RFC 5905, 7822, 9327; mode 7 as ntpd sends it");

fn probe(opening: &DatagramOpening<'_>) -> Verdict {
    let [first, second, ..] = opening.bytes else { return Verdict::No };
    if !opening.has_port(123) {
        return Verdict::No;
    }
    let (version, mode) = (first >> 3 & 7, first & 7);
    let is_valid = match mode {
        // Stratum 16 is unsynchronized, and higher values are invalid.
        1..=5 => (1..=4).contains(&version) && opening.len >= 48 && *second <= 16,
        6 => (2..=4).contains(&version) && opening.len >= 12,
        7 => (2..=4).contains(&version) && opening.len >= 8,
        _ => false,
    };
    let is_answer = match mode {
        1 | 3 => Some(false),
        2 | 4 => Some(true),
        6 => Some(second & 0x80 != 0),
        7 => Some(first & 0x80 != 0),
        _ => None,
    };
    datagram_in_role(opening, is_valid, is_answer)
}

names! {
    /// Mode of a message (RFC 5905 section 7.3).
    pub struct Mode: u8 {
        1 => "symmetric_active", 2 => "symmetric_passive", 3 => "client", 4 => "server", 5 => "broadcast", 6 => "control",
        7 => "private",
    }
}

names! {
    /// Leap indicator: a warning of a leap second, or that the clock is not synchronized (RFC 5905 section 7.3).
    pub struct Leap: u8 { 0 => "none", 1 => "last_minute_61", 2 => "last_minute_59", 3 => "unsynchronized" }
}

names! {
    /// Operation of a control message (RFC 9327 section 2).
    pub struct Operation: u8 {
        0 => "reserved", 1 => "read_status", 2 => "read_variables", 3 => "write_variables", 4 => "read_clock_variables",
        5 => "write_clock_variables", 6 => "set_trap", 7 => "trap", 8 => "runtime_configuration",
        9 => "export_configuration", 10 => "remote_status", 11 => "read_ordered_list", 12 => "request_nonce",
        31 => "unset_trap",
    }
}

names! {
    /// Request of a private message to ntpd (implementation 3).
    pub struct RequestCode: u8 {
        0 => "peer_list", 1 => "peer_list_sum", 2 => "peer_info", 3 => "peer_stats", 4 => "sys_info", 5 => "sys_stats",
        6 => "io_stats", 7 => "mem_stats", 8 => "loop_info", 9 => "timer_stats", 10 => "config", 11 => "unconfig",
        12 => "set_sys_flag", 13 => "clr_sys_flag", 16 => "get_restrict", 17 => "res_add_flags", 18 => "res_sub_flags",
        19 => "unrestrict", 20 => "mon_getlist", 21 => "reset_stats", 22 => "reset_peer", 23 => "reread_keys",
        26 => "trust_key", 27 => "untrust_key", 28 => "auth_info", 29 => "traps", 30 => "add_trap", 31 => "clr_trap",
        32 => "request_key", 33 => "control_key", 34 => "ctl_stats", 36 => "get_clock_info", 38 => "get_kernel",
        39 => "get_clock_debug_info", 42 => "mon_getlist_1", 44 => "if_stats", 45 => "if_reload",
    }
}

/// Identifier of the source of a clock: four characters of a reference clock or of a refusal ("kiss code"), or the IPv4
/// address of a server, for IPv6 a hash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReferenceId {
    octets: [u8; 4],
    is_text: bool,
}

state! { struct ReferenceId { octets, is_text } }
impl Measured for ReferenceId {}

impl fmt::Display for ReferenceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_text {
            let len = self.octets.iter().position(|octet| *octet == 0).unwrap_or(4);
            write!(f, "{}", self.octets.get(..len).unwrap_or_default().escape_ascii())
        } else {
            Ipv4Addr::from(self.octets).fmt(f)
        }
    }
}

crate::row::cells! { displayed ReferenceId; }

exchange! {
    /// A request of a client with the response of the server, or a message of another mode. Fields are those of the response, or
    /// of the request without one.
    "ntp" pub struct Exchange {
        /// Version.
        pub version: u8,
        /// Mode of the message that the fields are from.
        pub mode: Mode,
        /// Warning of a leap second, or that the clock is not synchronized.
        pub leap: Leap,
        /// Number of servers up to a reference clock; 0 in requests and refusals.
        pub stratum: u8,
        /// Maximum time between two requests.
        pub poll_interval: Duration,
        /// Precision of the clock.
        pub precision: Duration,
        /// Round-trip time to the reference clock.
        pub root_delay: Duration,
        /// Error of the time to the reference clock.
        pub root_dispersion: Duration,
        /// Source of the clock: characters for stratum 0 (a refusal) and 1, otherwise an address.
        pub reference_id: Option<ReferenceId>,
        /// Time at which the clock was set.
        pub reference_timestamp: Option<Timestamp>,
        /// Time at which the client sent its request, as it states.
        pub origin_timestamp: Option<Timestamp>,
        /// Time at which the server received the request, as it states.
        pub receive_timestamp: Option<Timestamp>,
        /// Time at which the message was sent, as its sender states.
        pub transmit_timestamp: Option<Timestamp>,
        /// Number of extension fields.
        pub extension_count: u8 [sparse],
        ..
        /// The fields of the request, if those above are of its response.
        request: Option<Fields>,
    }
    /// Messages of NTP: a row for a request, and one for its response.
    zeek "ntp" ['a] as (row, from) {
        /// `version`.
        "version": u8 = row.version;
        /// Number of the `mode`.
        "mode": u8 = row.fields(from).mode.0;
        /// `stratum`.
        "stratum": u8 = row.fields(from).stratum;
        /// `poll_interval`.
        "poll": Duration = row.fields(from).poll_interval;
        /// `precision`.
        "precision": Duration = row.fields(from).precision;
        /// `root_delay`.
        "root_delay": Duration = row.fields(from).root_delay;
        /// `root_dispersion`.
        "root_disp": Duration = row.fields(from).root_dispersion;
        /// `reference_id`: four octets for stratum 0 and 1, otherwise an address.
        "ref_id": String = row.fields(from).zeek_id();
        /// `reference_timestamp`; 0 if the clock was never set, as for the other times.
        "ref_time": Timestamp = row.fields(from).times[0];
        /// `origin_timestamp`.
        "org_time": Timestamp = row.fields(from).times[1];
        /// `receive_timestamp`.
        "rec_time": Timestamp = row.fields(from).times[2];
        /// `transmit_timestamp`.
        "xmt_time": Timestamp = row.fields(from).times[3];
        /// `extension_count`.
        "num_exts": u8 = row.fields(from).extension_count;
    }
    /// Messages of NTP: an event for a request, and one for its response.
    eve "ntp" ['a] as (row, from) {
        /// `version`.
        "version": u8 = row.version;
        /// Number of the `mode`.
        "mode": u8 = row.fields(from).mode.0;
        /// `stratum`.
        "stratum": u8 = row.fields(from).stratum;
        /// The octets of `reference_id`, in hexadecimal digits.
        "reference_id": Displayed<String> = Displayed(row.fields(from).eve_id());
    }
}

/// The fields of a message of the modes 1 to 5.
#[derive(Clone, Debug, PartialEq)]
struct Fields {
    mode: Mode,
    leap: Leap,
    stratum: u8,
    poll_interval: Duration,
    precision: Duration,
    root_delay: Duration,
    root_dispersion: Duration,
    reference_id: [u8; 4],
    /// Times of reference, origin, reception and transmission, zero if they are not known.
    times: [Timestamp; 4],
    extension_count: u8,
}

state! { struct Fields {
    mode, leap, stratum, poll_interval, precision, root_delay, root_dispersion, reference_id, times, extension_count
} }

impl Fields {
    /// Returns the source of the clock as Zeek writes it.
    fn zeek_id(&self) -> String {
        if self.stratum <= 1 {
            String::from_utf8_lossy(&self.reference_id).into_owned()
        } else {
            Ipv4Addr::from(self.reference_id).to_string()
        }
    }
}

impl Fields {
    /// Returns the source of the clock as Suricata writes it.
    fn eve_id(&self) -> String {
        let [a, b, c, d] = self.reference_id;
        format!("{a:02x}:{b:02x}:{c:02x}:{d:02x}")
    }
}

impl Measured for Fields {}

impl Exchange {
    /// Returns the fields of the message of a role.
    fn fields(&self, from: Role) -> Fields {
        match &self.request {
            Some(request) if from == Role::Client => request.clone(),
            _ => Fields {
                mode: self.mode,
                leap: self.leap,
                stratum: self.stratum,
                poll_interval: self.poll_interval,
                precision: self.precision,
                root_delay: self.root_delay,
                root_dispersion: self.root_dispersion,
                reference_id: self.reference_id.map_or([0; 4], |id| id.octets),
                times: [
                    self.reference_timestamp,
                    self.origin_timestamp,
                    self.receive_timestamp,
                    self.transmit_timestamp,
                ]
                .map(|time| time.unwrap_or(Timestamp::ZERO)),
                extension_count: self.extension_count,
            },
        }
    }

    fn set(&mut self, version: u8, fields: &Fields) {
        let Fields { mode, leap, stratum, reference_id, extension_count, .. } = *fields;
        (self.version, self.mode, self.leap, self.stratum) = (version, mode, leap, stratum);
        (self.poll_interval, self.precision) = (fields.poll_interval, fields.precision);
        (self.root_delay, self.root_dispersion) = (fields.root_delay, fields.root_dispersion);
        let id = ReferenceId { octets: reference_id, is_text: stratum <= 1 };
        self.reference_id = (reference_id != [0; 4]).then_some(id);
        [self.reference_timestamp, self.origin_timestamp, self.receive_timestamp, self.transmit_timestamp] =
            fields.times.map(|time| (time != Timestamp::ZERO).then_some(time));
        self.extension_count = extension_count;
    }
}

exchange! {
    /// A request of a control program, with its responses.
    "ntp_control" pub struct Control {
        /// Version.
        pub version: u8,
        /// Operation.
        pub operation: Operation,
        /// Number by which responses are matched.
        pub sequence: u16,
        /// Peer to which the operation applies; 0 for the server itself.
        pub association: u16,
        /// Status of the server or of the peer.
        pub status: Option<u16>,
        /// True if the server reports an error, whose code is the first octet of the status.
        pub is_error: bool [sparse],
        /// Number of responses.
        pub response_count: u32 [packets],
        /// Octets of all responses.
        pub response_octet_count: u64 [octets],
    }
    /// Control messages of NTP: a row for a request, and one for all of its responses.
    zeek "ntp_control" ['a] as (row, from) {
        /// `version`.
        "version": u8 = row.version;
        /// Mode, 6.
        "mode": u8 = 6;
        /// Number of the `operation`.
        "op_code": u8 = row.operation.0;
        /// `sequence`.
        "sequence": u32 = row.sequence.into();
        /// `status`; 0 in requests.
        "status": u32 = row.status.filter(|_| from == Role::Server).unwrap_or_default().into();
        /// `association`.
        "association_id": u32 = row.association.into();
        /// True for responses.
        "resp_bit": bool = from == Role::Server;
        /// `is_error`.
        "err_bit": bool = row.is_error && from == Role::Server;
        /// Always false: the responses to a request are one row.
        "more_bit": bool = false;
    }
}

exchange! {
    /// A private request to a server, with its responses.
    "ntp_private" pub struct Private {
        /// Version.
        pub version: u8,
        /// Implementation for which the request is: 2 and 3 are ntpd.
        pub implementation: u8,
        /// Request.
        pub request_code: RequestCode,
        /// True if the request is authenticated.
        pub is_authenticated: bool [sparse],
        /// Error of the response.
        pub error_code: Option<u8>,
        /// Number of items of all responses.
        pub item_count: u32,
        /// Number of responses.
        pub response_count: u32 [packets],
        /// Octets of all responses.
        pub response_octet_count: u64 [octets],
    }
    /// Private messages of NTP: a row for a request, and one for all of its responses.
    zeek "ntp_private" ['a] as (row, from) {
        /// `version`.
        "version": u8 = row.version;
        /// Mode, 7.
        "mode": u8 = 7;
        /// Number of the `request_code`.
        "req_code": u8 = row.request_code.0;
        /// `implementation`.
        "implementation": u8 = row.implementation;
        /// `is_authenticated`.
        "auth_bit": bool = row.is_authenticated;
        /// `error_code`; 0 in requests.
        "err": u8 = row.error_code.filter(|_| from == Role::Server).unwrap_or_default();
    }
}

open! {
    /// Rows of NTP.
    pub(crate) enum Row { 0 = Exchange, 1 = Control, 2 = Private }
}

wire! {
    /// RFC 5905 section 7.3.
    struct Head {
        flags: u8, stratum: u8, poll: u8, precision: u8, root_delay: u32, root_dispersion: u32, reference_id: [u8; 4],
        reference_time: u64, origin_time: u64, receive_time: u64, transmit_time: u64,
    }
}

wire! {
    /// RFC 9327 section 2.
    struct ControlHead { flags: u8, operation: u8, sequence: u16, status: u16, association: u16, offset: u16, count: u16 }
}

wire! {
    /// `struct req_pkt` and `struct resp_pkt` of ntpd.
    struct PrivateHead { flags: u8, sequence: u8, implementation: u8, code: u8, item_count: u16, item_len: u16 }
}

/// Returns the power of two with an exponent, as seconds.
fn power(exponent: u8) -> Duration {
    Duration::from_secs_f64(f64::from(exponent.cast_signed().clamp(-30, 30)).exp2())
}

/// Returns seconds with 16 bits of fraction.
fn short(value: u32) -> Duration {
    Duration::from_nanos((u64::from(value) * 1_000_000_000) >> 16)
}

/// Returns the number of extension fields after a header, which a code of authentication may follow (RFC 7822).
fn extension_count(mut rest: Reader<'_>) -> u8 {
    let mut count = 0;
    // What is at most 24 octets long is a code.
    while rest.remaining_len() > 24 && count < u8::MAX {
        let Ok(len) = rest.be::<u32>().map(|head| (head & 0xffff) as usize) else { break };
        if len < 16 || len % 4 != 0 || rest.skip(len - 4).is_err() {
            break;
        }
        count += 1;
    }
    count
}

/// Parser of NTP.
#[derive(Debug, Default)]
pub(crate) struct Ntp;

state! { struct Ntp {} }

impl Ntp {
    fn time(pdu: &Pdu<'_>, rows: &mut Rows<'_, Row>) -> Result<(), Malformed> {
        let mut reader = Reader::new(pdu.bytes);
        let head = Head::read(&mut reader)?;
        let mode = head.flags & 7;
        let time = |value: u64| if value == 0 { Timestamp::ZERO } else { Timestamp::from_ntp(value) };
        let version = head.flags >> 3 & 7;
        let fields = Fields {
            mode: Mode(mode),
            leap: Leap(head.flags >> 6),
            stratum: head.stratum,
            poll_interval: power(head.poll),
            precision: power(head.precision),
            root_delay: short(head.root_delay),
            root_dispersion: short(head.root_dispersion),
            reference_id: head.reference_id,
            times: [head.reference_time, head.origin_time, head.receive_time, head.transmit_time].map(time),
            extension_count: extension_count(reader),
        };
        match mode {
            3 => {
                rows.acts_as(Role::Client);
                rows.request(head.transmit_time, |row: &mut Exchange| {
                    if row.mode == Mode(4) {
                        // It was captured after its response, whose fields remain.
                        row.request = Some(fields);
                    } else {
                        row.set(version, &fields);
                    }
                });
            }
            4 => {
                rows.acts_as(Role::Server);
                rows.response(head.origin_time, |row: &mut Exchange| {
                    row.request =
                        (row.mode == Mode(3)).then(|| row.fields(Role::Client)).or(row.request.take());
                    row.set(version, &fields);
                    Reply::Last
                });
            }
            _ => {
                let mut row = Exchange::default();
                row.set(version, &fields);
                rows.single(row);
            }
        }
        Ok(())
    }

    fn control(pdu: &Pdu<'_>, rows: &mut Rows<'_, Row>) -> Result<(), Malformed> {
        let head = ControlHead::read(&mut Reader::new(pdu.bytes))?;
        let operation = head.operation & 0x1f;
        let key = u64::from(head.sequence) << 32 | u64::from(head.association) << 8 | u64::from(operation);
        let common = |row: &mut Control| {
            (row.version, row.operation) = (head.flags >> 3 & 7, Operation(operation));
            (row.sequence, row.association) = (head.sequence, head.association);
        };
        if head.operation & 0x80 == 0 {
            rows.acts_as(Role::Client);
            rows.request(key, common);
            return Ok(());
        }
        rows.acts_as(Role::Server);
        rows.response(key, |row: &mut Control| {
            common(row);
            (row.status, row.is_error) = (Some(head.status), head.operation & 0x40 != 0);
            row.response_count = row.response_count.saturating_add(1);
            row.response_octet_count = row.response_octet_count.saturating_add(pdu.len);
            if head.operation & 0x20 == 0 { Reply::Last } else { Reply::More }
        });
        Ok(())
    }

    fn private(pdu: &Pdu<'_>, rows: &mut Rows<'_, Row>) -> Result<(), Malformed> {
        let head = PrivateHead::read(&mut Reader::new(pdu.bytes))?;
        let key = u64::from(head.implementation) << 8 | u64::from(head.code);
        let common = |row: &mut Private| {
            (row.version, row.implementation) = (head.flags >> 3 & 7, head.implementation);
            row.request_code = RequestCode(head.code);
            row.is_authenticated |= head.sequence & 0x80 != 0;
        };
        if head.flags & 0x80 == 0 {
            rows.acts_as(Role::Client);
            rows.request(key, common);
            return Ok(());
        }
        rows.acts_as(Role::Server);
        rows.response(key, |row: &mut Private| {
            common(row);
            row.error_code = Some((head.item_count >> 12) as u8).filter(|error| *error != 0);
            row.item_count = row.item_count.saturating_add((head.item_count & 0xfff).into());
            row.response_count = row.response_count.saturating_add(1);
            row.response_octet_count = row.response_octet_count.saturating_add(pdu.len);
            if head.flags & 0x40 == 0 { Reply::Last } else { Reply::More }
        });
        Ok(())
    }
}

impl PduParser for Ntp {
    const PROTOCOL: &'static Protocol = &PROTOCOL;
    // The time in a request is not used again.
    const REQUEST_WITHIN: Duration = Duration::from_secs(10);
    type Row = Row;

    fn pdu(&mut self, pdu: &Pdu<'_>, rows: &mut Rows<'_, Row>) -> Result<AfterPdu, Malformed> {
        match pdu.bytes.first().map(|flags| flags & 7) {
            Some(1..=5) => Self::time(pdu, rows)?,
            Some(6) => Self::control(pdu, rows)?,
            Some(7) => Self::private(pdu, rows)?,
            _ => return Err(Malformed),
        }
        Ok(AfterPdu::More)
    }
}

#[cfg(test)]
pub(super) mod samples {
    use super::super::recognizers::samples::{Sample, datagram};
    use super::PROTOCOL;

    const REQUEST: &[u8; 48] = &{
        let mut bytes = [0; 48];
        (bytes[0], bytes[2], bytes[3], bytes[40]) = (0x23, 6, 0xE8, 0xE4);
        bytes
    };

    pub(in super::super) const SAMPLES: &[Sample] =
        &[datagram(&PROTOCOL, 123, REQUEST), datagram(&PROTOCOL, 123, b"\x16\x02\x00\x01\0\0\0\0\0\0\0\0")];

    pub(in super::super) const LOOK_ALIKES: &[Sample] =
        &[datagram(&PROTOCOL, 40_000, REQUEST), datagram(&PROTOCOL, 123, b"\x23\x00\x06\xE8")];
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::kit::KitEntry;
    use crate::session::kit::suite::{Case, check};

    const CLIENT: Role = Role::Client;
    const SERVER: Role = Role::Server;

    /// Returns a message of modes 1 to 5, with times that are whole seconds after 1970-01-01 plus 2^32 s.
    fn time(flags: u8, stratum: u8, id: [u8; 4], [origin, receive, transmit]: [u32; 3]) -> Vec<u8> {
        let mut octets = vec![flags, stratum, 6, 0xec, 0, 0, 0x80, 0, 0, 1, 0, 0];
        octets.extend(id);
        for seconds in [0, origin, receive, transmit] {
            octets.extend(seconds.to_be_bytes());
            octets.extend([0; 4]);
        }
        octets
    }

    #[test]
    fn cases_of_all_modes() {
        let request = time(0x23, 0, [0; 4], [0, 0, 0x1000_0001]);
        let response = time(0x24, 2, [192, 0, 2, 1], [0x1000_0001, 0x1000_0002, 0x1000_0003]);
        let refusal = time(0xe4, 0, *b"RATE", [0x1000_0001, 0, 0]);
        let broadcast = time(0x25, 1, *b"GPS\0", [0, 0, 0x1000_0003]);
        let read = b"\x16\x02\x00\x07\0\0\0\0\0\0\0\0".to_vec();
        let part = b"\x16\xa2\x00\x07\x06\x15\0\0\0\0\0\x04abcd".to_vec();
        let last = b"\x16\x82\x00\x07\x06\x15\0\0\0\x04\0\x04efgh".to_vec();
        let list = b"\x17\x00\x03\x2a\0\0\0\0".to_vec();
        let listed = b"\xd7\x00\x03\x2a\0\x06\0\x48".to_vec();
        let listed_last = b"\x97\x01\x03\x2a\0\x02\0\x48".to_vec();
        let cases = [
            Case {
                name: "a request and its response",
                turns: vec![(CLIENT, request.clone()), (SERVER, response)],
                rows: &["ntp version=4 mode=server leap=none stratum=2 poll_interval=64s precision=954ns \
                    root_delay=500ms root_dispersion=1s reference_id=192.0.2.1 origin_timestamp=2354413953s \
                    receive_timestamp=2354413954s transmit_timestamp=2354413955s response_time=10ms"],
            },
            Case {
                name: "a repeated request, which is refused",
                turns: vec![(CLIENT, request.clone()), (CLIENT, request.clone()), (SERVER, refusal)],
                rows: &["ntp version=4 mode=server leap=unsynchronized poll_interval=64s precision=954ns \
                    root_delay=500ms root_dispersion=1s reference_id=RATE origin_timestamp=2354413953s \
                    response_time=20ms retransmission_count=1"],
            },
            Case {
                name: "no response",
                turns: vec![(CLIENT, request)],
                rows: &[
                    "ntp version=4 mode=client leap=none poll_interval=64s precision=954ns root_delay=500ms \
                    root_dispersion=1s transmit_timestamp=2354413953s lacks=response",
                ],
            },
            Case {
                name: "broadcast",
                turns: vec![(SERVER, broadcast)],
                rows: &[
                    "ntp version=4 mode=broadcast leap=none stratum=1 poll_interval=64s precision=954ns \
                    root_delay=500ms root_dispersion=1s reference_id=GPS transmit_timestamp=2354413955s",
                ],
            },
            Case {
                name: "control",
                turns: vec![(CLIENT, read), (SERVER, part), (SERVER, last)],
                rows: &[
                    "ntp_control version=2 operation=read_variables sequence=7 status=1557 response_count=2 \
                    response_octet_count=32 response_time=10ms",
                ],
            },
            Case {
                name: "private",
                turns: vec![(CLIENT, list), (SERVER, listed), (SERVER, listed_last)],
                rows: &[
                    "ntp_private version=2 implementation=3 request_code=mon_getlist_1 item_count=8 response_count=2 \
                    response_octet_count=16 response_time=10ms",
                ],
            },
        ];
        check(&KitEntry::of::<Ntp>(), &cases);
    }

    #[test]
    fn extension_fields_are_counted() {
        let field = |len: u8| {
            let mut octets = vec![0; usize::from(len)];
            (octets[1], octets[3]) = (4, len);
            octets
        };
        for (rest, expected) in [
            (vec![], 0),
            // A code of authentication of MD5, and of SHA-1.
            (vec![7; 20], 0),
            (vec![7; 24], 0),
            ([field(28), field(16), vec![7; 20]].concat(), 2),
            ([field(28), field(28)].concat(), 2),
            // A length that is no multiple of four, or beyond the message.
            (field(30), 0),
            (field(200)[..100].to_vec(), 0),
        ] {
            assert_eq!(extension_count(Reader::new(&rest)), expected, "{rest:?}");
        }
    }
}
