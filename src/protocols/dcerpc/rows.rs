//! The rows of DCE/RPC, with those of Zeek and Suricata.

use std::fmt;
use std::net::IpAddr;

use super::interfaces::Interface;
use super::recognition::PROTOCOL;
use crate::checkpoint::state;
use crate::row::{Displayed, Group, List, Name};
use crate::session::kit::{Kept, KeptList, Measured, exchange, names};
use crate::session::{Expectation, Role, Text};

/// Identifier of an interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Uuid {
    pub(super) octets: [u8; 16],
}

impl Uuid {
    /// Reads an identifier of which the first three fields are numbers with their least significant octet first.
    pub(in crate::protocols) const fn of_little(octets: [u8; 16]) -> Self {
        let [a0, a1, a2, a3, b0, b1, c0, c1, rest @ ..] = octets;
        let [d0, d1, d2, d3, d4, d5, d6, d7] = rest;
        Self { octets: [a3, a2, a1, a0, b1, b0, c1, c0, d0, d1, d2, d3, d4, d5, d6, d7] }
    }

    /// Returns the octets that [`of_little`](Self::of_little) reads.
    pub(in crate::protocols) const fn little(self) -> [u8; 16] {
        Self::of_little(self.octets).octets
    }

    /// Returns the octets in the order in which they are displayed.
    pub(in crate::protocols) const fn octets(self) -> [u8; 16] {
        self.octets
    }

    pub(super) fn number(self) -> u128 {
        u128::from_be_bytes(self.octets)
    }

    pub(super) fn interface(self) -> Option<&'static Interface> {
        Interface::of(self.number())
    }
}

impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = format!("{:032x}", self.number());
        let (a, rest) = digits.split_at(8);
        let (b, rest) = rest.split_at(4);
        let (c, rest) = rest.split_at(4);
        let (d, e) = rest.split_at(4);
        write!(f, "{a}-{b}-{c}-{d}-{e}")
    }
}

crate::row::cells! { displayed Uuid; }
state! { struct Uuid { octets } }
impl Measured for Uuid {}

names! {
    /// Kind of the authentication (MS-RPCE section 2.2.1.1.7).
    pub struct AuthenticationKind: u8 {
        0 => "none", 9 => "spnego", 10 => "ntlm", 14 => "schannel", 16 => "kerberos", 68 => "netlogon",
    }
}

names! {
    /// Level of the authentication (MS-RPCE section 2.2.1.1.8).
    pub struct AuthenticationLevel: u8 {
        0 => "default", 1 => "none", 2 => "connect", 3 => "call", 4 => "packet", 5 => "integrity", 6 => "privacy",
    }
}

exchange! {
    /// The interfaces that a client asks for.
    "dcerpc_binding" pub struct Binding {
        /// Interfaces by name, or else by identifier.
        pub interfaces: KeptList<512> [sparse],
        /// Number of interfaces that the server accepts; null without its answer.
        pub accepted_count: Option<u32>,
        /// Address of the endpoint that the server states: a port or a pipe.
        pub endpoint_address: Option<Kept<64>>,
        /// Kind of the authentication.
        pub authentication_kind: Option<AuthenticationKind>,
        /// Level of the authentication.
        pub authentication_level: Option<AuthenticationLevel>,
    }
}

names! {
    /// Transport protocol of an endpoint (C706 appendix I; MS-RPCE section 2.1).
    pub struct EndpointTransport: u8 {
        7 => "tcp", 8 => "udp", 15 => "pipe", 16 => "local", 31 => "http",
    }
}

impl EndpointTransport {
    pub(super) const fn has_port(self) -> bool {
        matches!(self.0, 7 | 8 | 31)
    }

    pub(super) const fn has_name(self) -> bool {
        matches!(self.0, 15 | 16)
    }
}

exchange! {
    /// Where a server offers an interface, as its endpoint mapper answers. Connections to this port are expected.
    "dcerpc_endpoint" pub struct Endpoint {
        /// Name of the interface; null if it is not known.
        pub interface: Option<Kept<32>>,
        /// Identifier of the interface.
        pub interface_id: Option<Uuid>,
        /// Transport protocol.
        pub mapped_transport: Option<EndpointTransport>,
        /// Address of the endpoint; null if it is that of the endpoint mapper.
        pub mapped_address: Option<IpAddr>,
        /// Port of the endpoint.
        pub mapped_port: Option<u16>,
        /// Name of the pipe or the local port.
        pub mapped_name: Option<Kept<64>>,
    }
    announces Endpoint::expectation;
}

impl Endpoint {
    /// Returns the connection that a client will open.
    fn expectation(&self) -> Option<Expectation> {
        let is_tcp = self.mapped_transport == Some(EndpointTransport(7));
        is_tcp.then_some(Expectation {
            protocol: &PROTOCOL,
            opened_by: Role::Client,
            address: self.mapped_address,
            port: Some(self.mapped_port?),
        })
    }
}

exchange! {
    /// A call with its response.
    "dcerpc" pub struct Call {
        /// Name of the interface; null if it is not known, or the binding was not captured.
        pub interface: Option<Kept<32>>,
        /// Identifier of the interface; null if the binding was not captured.
        pub interface_id: Option<Uuid>,
        /// Name of the operation; null if it is not known.
        pub operation: Option<Kept<64>>,
        /// Number of the operation; null if the request was not captured.
        pub operation_number: Option<u16>,
        /// Number of the call in its connection.
        pub call_id: u32,
        /// Number of the context, which stands for an interface.
        pub context_id: u16,
        /// Address of the endpoint that the server states: a port or a pipe.
        pub endpoint_address: Option<Kept<64>>,
        /// Octets of the parameters, as the first fragment states them.
        pub parameters_len: Option<u32> [octets],
        /// Octets of the results, as the first fragment states them.
        pub results_len: Option<u32> [octets],
        /// Status with which the call failed (MS-RPCE section 2.2.2.3, or an error of Windows).
        pub fault_status: Option<u32>,
        /// Level of the authentication of the request.
        pub authentication_level: Option<AuthenticationLevel>,
        ..
        /// Identifier of the activity of a call over UDP.
        activity: Option<Uuid>,
    }
    /// Calls of known interfaces.
    zeek "dce_rpc" ['a] as row if (row.is_in_zeek()) {
        /// `response_time`.
        "rtt": Option<::std::time::Duration> = row.exchange.response_time;
        /// `endpoint_address`.
        "named_pipe": Option<Text<'a>> = row.endpoint_address.as_ref().map(Kept::text);
        /// `interface`.
        "endpoint": Displayed<String> = Displayed(row.endpoint());
        /// `operation`.
        "operation": Displayed<String> = Displayed(row.operation_name());
    }
    /// Calls over TCP and UDP.
    eve "dcerpc" ['a] as (row, from) if (from == row.exchange.from) {
        /// `REQUEST`.
        "request": Name = Name("REQUEST");
        /// Number of the operation, and length of its parameters.
        "req": Group<Request<'a>> = Group(Request(row));
        /// `RESPONSE`, `FAULT` or `UNREPLIED`.
        "response": Name = Name(row.response_name());
        /// Length of the results.
        "res": Option<Group<Response<'a>>> = row.exchange.responded.map(|_| Group(Response(row)));
        /// The interface, with service and operation.
        "interfaces": List<Vec<Group<Called<'a>>>> =
            List(row.interface_id.map(|uuid| Group(Called(row, uuid))).into_iter().collect());
        /// `call_id`; null over UDP.
        "call_id": Option<u32> = row.activity.is_none().then_some(row.call_id);
        /// `call_id` over UDP.
        "seqnum": Option<u32> = row.activity.map(|_| row.call_id);
        /// Identifier of the activity of a call over UDP, with its octets in the order in which they are sent.
        "activityuuid": Option<Uuid> = row.activity.map(|activity| Uuid { octets: activity.little() });
        /// `5.0`, over UDP `4.0`.
        "rpc_version": Name = Name(if row.activity.is_some() { "4.0" } else { "5.0" });
    }
}

/// The request of a call, as in events of EVE.
#[derive(Clone, Copy)]
struct Request<'a>(&'a Call);

crate::table! {
    /// Request of a call.
    impl['a] "eve.dcerpc.dcerpc.req" for Request<'a> as request {
        /// `operation_number`.
        "opnum": Option<u16> = request.0.operation_number;
        /// `parameters_len`.
        "stub_data_size": Option<u32> = request.0.parameters_len;
    }
}

/// The response of a call, as in events of EVE.
#[derive(Clone, Copy)]
struct Response<'a>(&'a Call);

crate::table! {
    /// Response of a call.
    impl['a] "eve.dcerpc.dcerpc.res" for Response<'a> as response {
        /// `results_len`.
        "stub_data_size": Option<u32> = response.0.results_len;
    }
}

/// The interface of a call, as in events of EVE.
#[derive(Clone, Copy)]
struct Called<'a>(&'a Call, Uuid);

crate::table! {
    /// Interface of a call.
    impl['a] "eve.dcerpc.dcerpc.interfaces" for Called<'a> as called {
        /// `interface_id`.
        "uuid": Uuid = called.1;
        /// `interface`.
        "service": Option<Text<'a>> = called.0.interface.as_ref().map(Kept::text);
        /// `operation`.
        "procedure": Option<Text<'a>> = called.0.operation.as_ref().map(Kept::text);
    }
}

/// Interfaces with operations that Zeek does not log.
const FREQUENT: &[(&str, &[&str])] = &[
    (
        "winreg",
        &[
            "BaseRegCloseKey",
            "BaseRegGetVersion",
            "BaseRegOpenKey",
            "BaseRegQueryValue",
            "BaseRegDeleteKeyEx",
            "OpenLocalMachine",
            "BaseRegEnumKey",
            "OpenClassesRoot",
        ],
    ),
    ("spoolss", &["RpcOpenPrinter", "RpcClosePrinter"]),
    ("wkssvc", &["NetrWkstaGetInfo"]),
];

impl Call {
    /// Returns whether Zeek logs the call: it leaves out frequent ones that say little.
    fn is_in_zeek(&self) -> bool {
        let is = |kept: Option<Text<'_>>, name: &str| kept.is_some_and(|text| text.0 == name.as_bytes());
        let is_frequent = FREQUENT.iter().any(|(interface, operations)| {
            is(self.interface.as_ref().map(Kept::text), interface)
                && operations.iter().any(|name| is(self.operation.as_ref().map(Kept::text), name))
        });
        self.interface_id.is_some() && self.exchange.response_time.is_some() && !is_frequent
    }

    fn endpoint(&self) -> String {
        match (&self.interface, self.interface_id) {
            (Some(name), _) => name.text().to_str_lossy().into_owned(),
            (None, Some(uuid)) => format!("unknown-{uuid}"),
            (None, None) => String::new(),
        }
    }

    fn operation_name(&self) -> String {
        match &self.operation {
            Some(name) => name.text().to_str_lossy().into_owned(),
            None => format!("unknown-{}", self.operation_number.unwrap_or_default()),
        }
    }

    fn response_name(&self) -> &'static str {
        match (self.exchange.responded, self.fault_status) {
            (None, _) => "UNREPLIED",
            (Some(_), None) => "RESPONSE",
            (Some(_), Some(_)) => "FAULT",
        }
    }

    /// Says that the call is over UDP, with its activity.
    pub(super) const fn set_datagram(&mut self, activity: Uuid) {
        self.activity = Some(activity);
    }

    /// Sets the names of the interface and of the operation.
    pub(super) fn name(&mut self, uuid: Uuid) {
        self.interface_id = Some(uuid);
        let Some(interface) = uuid.interface() else { return };
        self.interface = Some(Kept::new(interface.name.as_bytes()));
        let operation = self.operation_number.and_then(|number| interface.operation(number));
        self.operation = operation.map(|name| Kept::new(name.as_bytes()));
    }
}
