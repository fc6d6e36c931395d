//! MQTT 3.1 to 5: connections of clients to a broker, messages with their topics, and subscriptions.
//!
//! | row | of |
//! |---|---|
//! | [`Connect`] | the request of a client to connect, with the answer of the broker |
//! | [`Publish`] | a message of either side; with an acknowledgment, if its quality of service has one |
//! | [`Subscribe`] | topics that a client wants or no longer wants, with the answer |
//! | [`Disconnect`] | the reason for which a side ends the connection |
//!
//! The version is that of the first packet; without it, packets are read as those of version 3.1.1. Passwords are not kept, and of
//! payloads the first octets. Pings have no rows.
//!
//! Standards: MQTT 3.1, 3.1.1 and 5.0 (OASIS); sections are those of 5.0.

use std::time::Duration;

use super::recognizers::octets::{begins_with, dialogue, is_printable};
use crate::checkpoint::state;
use crate::codec::{ReadError, Reader};
use crate::row::{Displayed, Group, List};
use crate::session::framing::{AfterPdu, Framing, Pdu};
use crate::session::kit::{Kept, KeptList, Malformed, PduParser, Reply, Rows, exchange, names, open};
use crate::session::{OctetSet, Protocol, Role, StreamOpening, Text, Verdict};

/// Protocol `mqtt`, recognized by a CONNECT packet with the protocol name, or a PUBLISH packet that fills the octets; on port 1883
/// also by other packets that fill the octets.
pub static PROTOCOL: Protocol = Protocol::new("mqtt")
    .in_zeek("mqtt")
    .in_eve("mqtt")
    .over_streams(&[1883], Some(probe))
    .streams_begin_with(OctetSet::range(0x20..=0xEF).and(OctetSet::of(b"\x10")))
    .with_kinds(&["mqtt_connect", "mqtt_publish", "mqtt_subscribe", "mqtt_disconnect"])
    .with_message_len_min(2)
    .with_limits(
        "32 open requests; packets of 4 KiB, of longer ones the beginning; texts of 256 octets, lists of 512",
    )
    .with_standards("MQTT 3.1, 3.1.1, 5.0");

/// Types of packets (section 2.1.2).
mod packet {
    pub(super) const CONNECT: u8 = 1;
    pub(super) const CONNACK: u8 = 2;
    pub(super) const PUBLISH: u8 = 3;
    pub(super) const PUBACK: u8 = 4;
    pub(super) const PUBREC: u8 = 5;
    pub(super) const PUBREL: u8 = 6;
    pub(super) const PUBCOMP: u8 = 7;
    pub(super) const SUBSCRIBE: u8 = 8;
    pub(super) const SUBACK: u8 = 9;
    pub(super) const UNSUBSCRIBE: u8 = 10;
    pub(super) const UNSUBACK: u8 = 11;
    pub(super) const DISCONNECT: u8 = 14;
    pub(super) const AUTH: u8 = 15;
}

/// Parses the Remaining Length field of a packet (section 1.5.5). Returns the length in octets, and the octets after the field.
fn remaining(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let mut len = 0;
    for (place, octet) in bytes.iter().take(4).enumerate() {
        len |= usize::from(octet & 0x7F) << (7 * place);
        if *octet < 0x80 {
            return Some((len, bytes.get(place + 1..)?));
        }
    }
    None
}

fn probe(opening: &StreamOpening<'_>) -> Verdict {
    let is_on_port = opening.has_port(1883);
    let packets = |bytes: &[u8]| match is_publish(bytes) {
        true => Verdict::Match,
        false if is_on_port => filled(bytes),
        false => Verdict::No,
    };
    // What the side has sent whose octets are not the ones that are tested.
    let other = if opening.client.is_empty() { &[] } else { opening.server };
    // A ping: the other side decides, which may be captured first.
    let is_answered_by = |answer: [u8; 2]| match other {
        [] => Verdict::More,
        [first] if *first == answer[0] => Verdict::More,
        other => Verdict::of(*other == answer),
    };
    let connect = |bytes: &[u8]| match bytes {
        [] | [0xC0] => Verdict::More,
        [0x10, rest @ ..] => match remaining(rest) {
            Some((10.., rest)) => {
                begins_with(rest, &[b"\0\x04MQTT\x04", b"\0\x04MQTT\x05", b"\0\x06MQIsdp\x03"])
            }
            None if rest.len() < 4 => Verdict::More,
            _ => Verdict::No,
        },
        [0xC0, 0] => is_answered_by([0xD0, 0]),
        _ => packets(bytes),
    };
    let answers = |bytes: &[u8]| match bytes {
        [] | [0xD0] => Verdict::More,
        [0xD0, 0] => is_answered_by([0xC0, 0]),
        _ => packets(bytes),
    };
    dialogue(opening, connect, answers)
}

/// Returns whether `bytes` are exactly one PUBLISH packet with a printable topic of at most 255 octets.
fn is_publish(bytes: &[u8]) -> bool {
    let [0x30..=0x35 | 0x38..=0x3D, rest @ ..] = bytes else { return false };
    match remaining(rest) {
        Some((len, [0, topic_len, topic @ ..])) if len == 2 + topic.len() => {
            topic.get(..usize::from(*topic_len)).is_some_and(is_printable)
        }
        _ => false,
    }
}

/// Returns whether a packet may begin with this octet: flags are reserved in most types (section 2.1.3).
const fn is_first(octet: u8) -> bool {
    match octet >> 4 {
        packet::PUBLISH => octet & 6 != 6,
        packet::PUBREL | packet::SUBSCRIBE | packet::UNSUBSCRIBE => octet & 0x0F == 2,
        0 => false,
        _ => octet & 0x0F == 0,
    }
}

/// Matches if packets of types that follow CONNECT fill the octets.
fn filled(mut bytes: &[u8]) -> Verdict {
    while let [first, rest @ ..] = bytes {
        let is_sound = is_first(*first) && !matches!(first >> 4, packet::CONNECT | packet::AUTH);
        match remaining(rest) {
            _ if !is_sound => return Verdict::No,
            Some((len, rest)) if len <= rest.len() => bytes = rest.get(len..).unwrap_or_default(),
            None if rest.len() >= 4 => return Verdict::No,
            _ => return Verdict::More,
        }
    }
    Verdict::Match
}

names! {
    /// Version, as the protocol level of CONNECT.
    pub struct Version: u8 { 3 => "3.1", 4 => "3.1.1", 5 => "5.0" }
}

names! {
    /// Quality of service of a message (section 4.3).
    pub struct QualityOfService: u8 { 0 => "at_most_once", 1 => "at_least_once", 2 => "exactly_once" }
}

names! {
    /// What a client asks of the broker.
    pub struct Action: u8 { 8 => "subscribe", 10 => "unsubscribe" }
}

names! {
    /// Reason of an answer or an end (section 2.4). Return codes of earlier versions are those of version 5 with the same meaning.
    pub struct Reason: u8 {
        0x00 => "success", 0x01 => "granted_qos_1", 0x02 => "granted_qos_2", 0x04 => "disconnect_with_will_message",
        0x10 => "no_matching_subscribers", 0x11 => "no_subscription_existed", 0x18 => "continue_authentication",
        0x19 => "re_authenticate", 0x80 => "unspecified_error", 0x81 => "malformed_packet", 0x82 => "protocol_error",
        0x83 => "implementation_specific_error", 0x84 => "unsupported_protocol_version", 0x85 => "client_identifier_not_valid",
        0x86 => "bad_user_name_or_password", 0x87 => "not_authorized", 0x88 => "server_unavailable", 0x89 => "server_busy",
        0x8a => "banned", 0x8b => "server_shutting_down", 0x8c => "bad_authentication_method", 0x8d => "keep_alive_timeout",
        0x8e => "session_taken_over", 0x8f => "topic_filter_invalid", 0x90 => "topic_name_invalid",
        0x91 => "packet_identifier_in_use", 0x92 => "packet_identifier_not_found", 0x93 => "receive_maximum_exceeded",
        0x94 => "topic_alias_invalid", 0x95 => "packet_too_large", 0x96 => "message_rate_too_high", 0x97 => "quota_exceeded",
        0x98 => "administrative_action", 0x99 => "payload_format_invalid", 0x9a => "retain_not_supported",
        0x9b => "qos_not_supported", 0x9c => "use_another_server", 0x9d => "server_moved",
        0x9e => "shared_subscriptions_not_supported", 0x9f => "connection_rate_exceeded", 0xa0 => "maximum_connect_time",
        0xa1 => "subscription_identifiers_not_supported", 0xa2 => "wildcard_subscriptions_not_supported",
    }
}

impl Reason {
    /// Returns the reason for which a broker of an earlier version refuses a client (MQTT 3.1.1 section 3.2.2.3).
    const fn of_return_code(code: u8) -> Self {
        Self(match code {
            1 => 0x84,
            2 => 0x85,
            3 => 0x88,
            4 => 0x86,
            5 => 0x87,
            other => other,
        })
    }
}

exchange! {
    /// A request of a client to connect, with the answer.
    "mqtt_connect" pub struct Connect {
        /// Version; null if the request was not captured.
        pub version: Option<Version>,
        /// Name of the client: the one that the broker assigns, if the client states none.
        pub client_id: Option<Kept<256>>,
        /// Name of the user.
        pub user_name: Option<Kept<256>>,
        /// True if the client sends a password.
        pub has_password: bool,
        /// True if the client wants no state of an earlier connection.
        pub clean_start: bool,
        /// Time without a packet after which the broker may end the connection; zero for no limit.
        pub keep_alive_time: Option<Duration>,
        /// Topic of the message that the broker publishes if the connection breaks.
        pub will_topic: Option<Kept<256>>,
        /// First octets of that message.
        pub will_payload: Option<Kept<256>>,
        /// Whether the client is accepted.
        pub reason: Option<Reason>,
        /// Text of the broker about the reason.
        pub reason_text: Option<Kept<256>>,
        /// True if the broker has state of an earlier connection.
        pub session_present: Option<bool>,
        ..
        /// Flags of the request.
        flags: u8,
        /// Return code or reason as it was sent.
        return_code: u8,
        /// Limit of the broker on names for topics.
        topic_alias_max: Option<u16>,
    }
    /// Connections of clients.
    zeek "mqtt_connect" ['a] as row if (row.version.is_some()) {
        /// `MQTT`, or `MQIsdp` of version 3.1.
        "proto_name": Option<&'a str> = row.version.map(protocol_name);
        /// `version`.
        "proto_version": Option<Displayed<String>> = row.version.map(|version| Displayed(zeek_version(version)));
        /// `client_id`.
        "client_id": Option<Text<'a>> = row.client_id.as_ref().map(Kept::text);
        /// Meaning of the return code.
        "connect_status": Option<Displayed<String>> = row.reason.map(|_| Displayed(zeek_status(row.return_code)));
        /// `will_topic`.
        "will_topic": Option<Text<'a>> = row.will_topic.as_ref().map(Kept::text);
        /// `will_payload`.
        "will_payload": Option<Text<'a>> = row.will_payload.as_ref().map(Kept::text);
    }
    /// Connections of clients.
    eve "mqtt" ['a] as (row, from) if (from == row.exchange.from) {
        /// The request; null if it was not captured.
        "connect": Option<Group<EveConnect<'a>>> = row.version.map(|_| Group(EveConnect(row)));
        /// The answer.
        "connack": Option<Group<EveConnack<'a>>> = row.reason.map(|_| Group(EveConnack(row)));
    }
}

exchange! {
    /// A message with its topic.
    "mqtt_publish" pub struct Publish {
        /// Topic; empty or null if an alias stands for it, or the message was not captured.
        pub topic: Option<Kept<256>>,
        /// Number that stands for the topic in later messages.
        pub topic_alias: Option<u16>,
        /// Quality of service; null if the message was not captured.
        pub qos: Option<QualityOfService>,
        /// Number by which the message is acknowledged.
        pub identifier: Option<u16>,
        /// True if the broker keeps the message for later subscribers, or has kept it.
        pub is_retained: bool,
        /// True if the message was sent before.
        pub is_repeated: bool,
        /// Type of the content, as the sender states it.
        pub content_type: Option<Kept<128>>,
        /// Topic for an answer.
        pub response_topic: Option<Kept<256>>,
        /// Number of octets of the payload.
        pub payload_len: u32 [octets],
        /// First octets of the payload.
        pub payload: Option<Kept<256>>,
        /// Whether the receiver accepts the message.
        pub reason: Option<Reason>,
        ..
        /// Reason of PUBACK.
        acknowledged: Option<Reason>,
        /// Reason of PUBREC.
        received: Option<Reason>,
        /// Reason of PUBREL.
        released: Option<Reason>,
        /// Reason of PUBCOMP.
        completed: Option<Reason>,
        /// True if packets have reasons.
        has_reasons: bool,
    }
    /// Messages.
    zeek "mqtt_publish" ['a] as row if (row.qos.is_some()) {
        /// True if the client is the sender.
        "from_client": bool = row.exchange.from == Role::Client;
        /// `is_retained`.
        "retain": bool = row.is_retained;
        /// `qos`.
        "qos": Option<Displayed<String>> = row.qos.map(|qos| Displayed(qos.to_string().replace('_', " ")));
        /// `ok`, or `incomplete_qos` without the last acknowledgment.
        "status": &'a str = if row.is_complete() { "ok" } else { "incomplete_qos" };
        /// `topic`.
        "topic": Option<Text<'a>> = row.topic.as_ref().map(Kept::text);
        /// The first 100 octets of `payload`.
        "payload": Option<Text<'a>> = row.payload.as_ref().map(|payload| Text(first(payload.text().0, 100)));
        /// `payload_len`.
        "payload_len": u32 = row.payload_len;
    }
    /// Messages with their acknowledgments.
    eve "mqtt" ['a] as (row, from) if (from == row.exchange.from) {
        /// The message; null if it was not captured.
        "publish": Option<Group<EvePublish<'a>>> = row.qos.map(|_| Group(EvePublish(row)));
        /// Acknowledgment of a message with quality of service 1.
        "puback": Option<Group<EveAnswer>> = row.eve_answer(row.acknowledged, 0);
        /// First acknowledgment of a message with quality of service 2.
        "pubrec": Option<Group<EveAnswer>> = row.eve_answer(row.received, 0);
        /// Answer of the sender to the first acknowledgment.
        "pubrel": Option<Group<EveAnswer>> = row.eve_answer(row.released, 1);
        /// Last acknowledgment of a message with quality of service 2.
        "pubcomp": Option<Group<EveAnswer>> = row.eve_answer(row.completed, 0);
    }
}

exchange! {
    /// Topics that a client wants or no longer wants, with the answer.
    "mqtt_subscribe" pub struct Subscribe {
        /// Whether the client wants the topics.
        pub action: Option<Action>,
        /// Number by which the answer is matched.
        pub identifier: u16,
        /// Topics, which may have wildcards.
        pub topics: KeptList<512> [sparse],
        /// Highest quality of service that the client wants for each topic.
        pub wanted_qos: KeptList<128> [sparse],
        /// Reason of each topic: the quality of service that it gets, or an error.
        pub reasons: KeptList<256> [sparse],
        ..
        /// Number of the reason for each topic.
        codes: KeptList<256>,
    }
    /// Subscriptions.
    zeek "mqtt_subscribe" ['a] as row if (!row.topics.is_empty()) {
        /// `MQTT::SUBSCRIBE` or `MQTT::UNSUBSCRIBE`.
        "action": &'a str =
            if row.action == Some(Action(packet::SUBSCRIBE)) { "MQTT::SUBSCRIBE" } else { "MQTT::UNSUBSCRIBE" };
        /// `topics`.
        "topics": KeptList<512> = row.topics.clone();
        /// `wanted_qos`.
        "qos_levels": Option<KeptList<128>> = Some(row.wanted_qos.clone()).filter(|list| !list.is_empty());
        /// Quality of service of the last topic.
        "granted_qos_level": Option<Displayed<String>> = row.granted().map(Displayed);
        /// True if there is an answer.
        "ack": bool = row.exchange.response_time.is_some();
    }
    /// Subscriptions.
    eve "mqtt" ['a] as (row, from) if (from == row.exchange.from) {
        /// Topics that a client wants.
        "subscribe": Option<Group<EveSubscribe<'a>>> = row.is(packet::SUBSCRIBE).then_some(Group(EveSubscribe(row)));
        /// The answer.
        "suback": Option<Group<EveAnswer>> = row.eve_answer(packet::SUBSCRIBE);
        /// Topics that a client no longer wants.
        "unsubscribe": Option<Group<EveUnsubscribe<'a>>> = row.is(packet::UNSUBSCRIBE).then_some(Group(EveUnsubscribe(row)));
        /// The answer.
        "unsuback": Option<Group<EveAnswer>> = row.eve_answer(packet::UNSUBSCRIBE);
    }
}

exchange! {
    /// The reason for which a side ends the connection.
    "mqtt_disconnect" pub struct Disconnect {
        /// Reason; null before version 5.
        pub reason: Option<Reason>,
        /// Text of the side about the reason.
        pub reason_text: Option<Kept<256>>,
    }
    /// Ends of connections.
    eve "mqtt" ['a] as row {
        /// The end.
        "disconnect": Group<EveAnswer> = Group(EveAnswer { reason: row.reason, ..EveAnswer::default() });
    }
}

fn protocol_name<'a>(version: Version) -> &'a str {
    if version == Version(3) { "MQIsdp" } else { "MQTT" }
}

fn zeek_version(version: Version) -> String {
    version.name().map_or_else(|| format!("unknown-mqtt-version-{}", version.0), String::from)
}

fn zeek_status(code: u8) -> String {
    let refused = match code {
        0 => return "Connection Accepted".into(),
        1 => "unacceptable protocol version",
        2 => "identifier rejected",
        3 => "server unavailable",
        4 => "bad user name or password",
        5 => "not authorized",
        other => return format!("unknown-mqtt-return-code-{other}"),
    };
    format!("Refused: {refused}")
}

fn first(octets: &[u8], len: usize) -> &[u8] {
    octets.get(..len).unwrap_or(octets)
}

impl Publish {
    fn is_complete(&self) -> bool {
        match self.qos {
            Some(QualityOfService(0)) => true,
            Some(QualityOfService(1)) => self.acknowledged.is_some(),
            _ => self.completed.is_some(),
        }
    }

    fn eve_answer(&self, reason: Option<Reason>, qos: u8) -> Option<Group<EveAnswer>> {
        let (identifier, reason) = (self.identifier, Some(reason?).filter(|_| self.has_reasons));
        Some(Group(EveAnswer { identifier, qos, reason, ..EveAnswer::default() }))
    }

    /// Adds an acknowledgment. Returns whether it is the last one.
    fn answer(&mut self, kind: u8, reason: Reason) -> bool {
        self.reason = Some(reason);
        let place = match kind {
            packet::PUBACK => &mut self.acknowledged,
            packet::PUBREC => &mut self.received,
            packet::PUBREL => &mut self.released,
            _ => &mut self.completed,
        };
        *place = Some(reason);
        // A message that is refused is not released (section 4.3.3).
        matches!(kind, packet::PUBACK | packet::PUBCOMP) || kind == packet::PUBREC && reason.0 >= 0x80
    }
}

impl Subscribe {
    fn is(&self, action: u8) -> bool {
        self.action == Some(Action(action)) && !self.topics.is_empty()
    }

    fn eve_topics(&self) -> Vec<Group<EveTopic>> {
        let mut wanted = numbers(&self.wanted_qos).into_iter();
        self.topics.iter().map(|topic| Group(EveTopic(topic.to_string(), wanted.next()))).collect()
    }

    fn eve_answer(&self, action: u8) -> Option<Group<EveAnswer>> {
        let is_answer = self.action == Some(Action(action)) && self.exchange.response_time.is_some();
        let codes = numbers(&self.codes);
        let (granted, reasons) = match action {
            packet::SUBSCRIBE => (Some(codes), None),
            _ => (None, Some(codes).filter(|codes| !codes.is_empty())),
        };
        let identifier = Some(self.identifier);
        is_answer.then(|| Group(EveAnswer { identifier, granted, reasons, ..EveAnswer::default() }))
    }

    fn granted(&self) -> Option<String> {
        self.codes.iter().last().map(|code| code.to_string()).filter(|_| self.is(packet::SUBSCRIBE))
    }
}

/// Returns the numbers in a list.
fn numbers<const N: usize>(list: &KeptList<N>) -> Vec<u8> {
    list.iter().filter_map(|item| item.to_string().parse().ok()).collect()
}

/// A request to connect, as in events of EVE.
struct EveConnect<'a>(&'a Connect);
/// The answer to it.
struct EveConnack<'a>(&'a Connect);
/// A message.
struct EvePublish<'a>(&'a Publish);
/// Topics that a client wants.
struct EveSubscribe<'a>(&'a Subscribe);
/// Topics that a client no longer wants.
struct EveUnsubscribe<'a>(&'a Subscribe);
/// A topic that a client wants, and the quality of service.
#[derive(Clone)]
struct EveTopic(String, Option<u8>);
struct EveFlags(u8);
struct EveWill<'a>(&'a Connect);
struct EveProperties(u16);

/// An acknowledgment, the answer to a subscription, or an end.
#[derive(Default)]
struct EveAnswer {
    qos: u8,
    identifier: Option<u16>,
    granted: Option<Vec<u8>>,
    reasons: Option<Vec<u8>>,
    reason: Option<Reason>,
}

crate::table! {
    /// A request to connect.
    impl['a] "eve.mqtt.mqtt.connect" for EveConnect<'a> as connect {
        /// Always 0.
        "qos": u8 = u8::from(connect.0.version.is_none());
        /// Always false.
        "retain": bool = connect.0.version.is_none();
        /// Always false.
        "dup": bool = connect.0.version.is_none();
        /// `MQTT`, or `MQIsdp` of version 3.1.
        "protocol_string": Option<&'a str> = connect.0.version.map(protocol_name);
        /// Number of `version`.
        "protocol_version": Option<u8> = connect.0.version.map(|version| version.0);
        /// Flags.
        "flags": Group<EveFlags> = Group(EveFlags(connect.0.flags));
        /// `client_id`.
        "client_id": Text<'a> = connect.0.client_id.as_ref().map_or(Text(b""), Kept::text);
        /// `user_name`.
        "username": Option<Text<'a>> = connect.0.user_name.as_ref().map(Kept::text);
        /// The message for a connection that breaks.
        "will": Option<Group<EveWill<'a>>> = connect.0.will_topic.as_ref().map(|_| Group(EveWill(connect.0)));
    }
}

crate::table! {
    /// The answer to a request to connect.
    impl['a] "eve.mqtt.mqtt.connack" for EveConnack<'a> as connack {
        /// Always 0.
        "qos": u8 = u8::from(connack.0.reason.is_none());
        /// Always false.
        "retain": bool = connack.0.reason.is_none();
        /// Always false.
        "dup": bool = connack.0.reason.is_none();
        /// `session_present`.
        "session_present": Option<bool> = connack.0.session_present;
        /// Number of the reason, or return code of an earlier version.
        "return_code": u8 = connack.0.return_code;
        /// Properties.
        "properties": Option<Group<EveProperties>> = connack.0.topic_alias_max.map(|max| Group(EveProperties(max)));
    }
}

crate::table! {
    /// A message.
    impl['a] "eve.mqtt.mqtt.publish" for EvePublish<'a> as publish {
        /// Number of `qos`.
        "qos": Option<u8> = publish.0.qos.map(|qos| qos.0);
        /// `is_retained`.
        "retain": bool = publish.0.is_retained;
        /// `is_repeated`.
        "dup": bool = publish.0.is_repeated;
        /// `topic`.
        "topic": Option<Text<'a>> = publish.0.topic.as_ref().map(Kept::text);
        /// `identifier`.
        "message_id": Option<u16> = publish.0.identifier;
        /// `payload`.
        "message": Option<Text<'a>> = publish.0.payload.as_ref().map(Kept::text);
    }
}

crate::table! {
    /// An acknowledgment, the answer to a subscription, or an end.
    impl "eve.mqtt.mqtt.answer" for EveAnswer as answer {
        /// 1 for what must be answered, otherwise 0.
        "qos": u8 = answer.qos;
        /// Always false.
        "retain": bool = answer.qos > 1;
        /// Always false.
        "dup": bool = answer.qos > 1;
        /// `identifier`.
        "message_id": Option<u16> = answer.identifier;
        /// Numbers of `reasons` of a subscription.
        "qos_granted": Option<List<Vec<u8>>> = answer.granted.clone().map(List);
        /// Numbers of `reasons` of the end of subscriptions, in version 5.
        "reason_codes": Option<List<Vec<u8>>> = answer.reasons.clone().map(List);
        /// Number of the reason, in version 5.
        "reason_code": Option<u8> = answer.reason.map(|reason| reason.0);
    }
}

crate::table! {
    /// Topics that a client wants.
    impl['a] "eve.mqtt.mqtt.subscribe" for EveSubscribe<'a> as subscribe {
        /// Always 1.
        "qos": u8 = u8::from(subscribe.0.action.is_some());
        /// Always false.
        "retain": bool = subscribe.0.action.is_none();
        /// Always false.
        "dup": bool = subscribe.0.action.is_none();
        /// `identifier`.
        "message_id": u16 = subscribe.0.identifier;
        /// `topics` with `wanted_qos`.
        "topics": List<Vec<Group<EveTopic>>> = List(subscribe.0.eve_topics());
    }
}

crate::table! {
    /// Topics that a client no longer wants.
    impl['a] "eve.mqtt.mqtt.unsubscribe" for EveUnsubscribe<'a> as unsubscribe {
        /// Always 1.
        "qos": u8 = u8::from(unsubscribe.0.action.is_some());
        /// Always false.
        "retain": bool = unsubscribe.0.action.is_none();
        /// Always false.
        "dup": bool = unsubscribe.0.action.is_none();
        /// `identifier`.
        "message_id": u16 = unsubscribe.0.identifier;
        /// `topics`.
        "topics": KeptList<512> = unsubscribe.0.topics.clone();
    }
}

crate::table! {
    /// A topic with the quality of service that a client wants.
    impl "eve.mqtt.mqtt.topic" for EveTopic as topic {
        /// The topic.
        "topic": &str => topic.0.as_str();
        /// Highest quality of service.
        "qos": Option<u8> = topic.1;
    }
}

crate::table! {
    /// Flags of a request to connect.
    impl "eve.mqtt.mqtt.flags" for EveFlags as flags {
        /// True if the request has the name of a user.
        "username": bool = flags.0 & 0x80 != 0;
        /// True if it has a password.
        "password": bool = flags.0 & 0x40 != 0;
        /// True if the broker is to keep the message for a connection that breaks.
        "will_retain": bool = flags.0 & 0x20 != 0;
        /// True if there is one.
        "will": bool = flags.0 & 0x04 != 0;
        /// `clean_start`.
        "clean_session": bool = flags.0 & 0x02 != 0;
    }
}

crate::table! {
    /// The message for a connection that breaks.
    impl['a] "eve.mqtt.mqtt.will" for EveWill<'a> as will {
        /// `will_topic`.
        "topic": Option<Text<'a>> = will.0.will_topic.as_ref().map(Kept::text);
        /// `will_payload`.
        "message": Option<Text<'a>> = will.0.will_payload.as_ref().map(Kept::text);
    }
}

crate::table! {
    /// Properties of an answer to a request to connect.
    impl "eve.mqtt.mqtt.properties" for EveProperties as properties {
        /// Number of aliases of topics that the broker keeps.
        "topic_alias_maximum": u16 = properties.0;
    }
}

open! {
    /// Rows of MQTT.
    pub(crate) enum Row { 0 = Connect in Box, 1 = Publish in Box, 2 = Subscribe, 3 = Disconnect }
}

/// Parser of MQTT.
#[derive(Debug, Default)]
pub(crate) struct Mqtt {
    /// Version of the first packet; zero without it.
    version: u8,
}

state! { struct Mqtt { version } }

impl PduParser for Mqtt {
    const PROTOCOL: &'static Protocol = &PROTOCOL;
    const FRAMING: Option<Framing> = Some(Framing::varint(1).keep(4 << 10));
    const OPEN_MAX: usize = 32;
    type Row = Row;

    fn pdu(&mut self, pdu: &Pdu<'_>, rows: &mut Rows<'_, Row>) -> Result<AfterPdu, Malformed> {
        let (head, rest) = pdu.bytes.split_first().ok_or(Malformed)?;
        if !is_first(*head) {
            return Err(Malformed);
        }
        let (_, body) = remaining(rest).ok_or(Malformed)?;
        let body_len = pdu.len.saturating_sub((pdu.bytes.len() - body.len()) as u64);
        let result = self.packet(*head, (body, body_len), rows);
        // The end of a packet that is too long to be kept is missing.
        if pdu.is_truncated() {
            Ok(AfterPdu::More)
        } else {
            result.map(|()| AfterPdu::More).map_err(|_| Malformed)
        }
    }
}

impl Mqtt {
    const fn has_properties(&self) -> bool {
        self.version >= 5
    }

    fn packet(
        &mut self,
        head: u8,
        (body, body_len): (&[u8], u64),
        rows: &mut Rows<'_, Row>,
    ) -> Result<(), ReadError> {
        let mut reader = Reader::new(body);
        match head >> 4 {
            packet::CONNECT => return self.connect(&mut reader, rows),
            packet::CONNACK => {
                let [flags, code] = reader.array()?;
                let properties = self.properties(&mut reader)?;
                let has_reasons = self.has_properties();
                rows.response(0, |row: &mut Connect| {
                    row.session_present = Some(flags & 1 != 0);
                    row.return_code = code;
                    row.reason = Some(if has_reasons { Reason(code) } else { Reason::of_return_code(code) });
                    row.reason_text = properties.text(property::REASON_STRING);
                    row.topic_alias_max = properties.number(property::TOPIC_ALIAS_MAXIMUM);
                    if let Some(name) = properties.text(property::ASSIGNED_CLIENT_IDENTIFIER) {
                        row.client_id = Some(name);
                    }
                    Reply::Last
                });
            }
            packet::PUBLISH => return self.publish(head, (&mut reader, body_len), rows),
            kind @ packet::PUBACK..=packet::PUBCOMP => {
                let identifier: u16 = reader.be()?;
                let reason = Reason(reader.be().unwrap_or_default());
                let from = rows.from();
                // The sender of the message releases it.
                if kind == packet::PUBREL {
                    rows.acts_as(from.other());
                }
                let has_reasons = self.has_properties();
                rows.response(identifier.into(), |row: &mut Publish| {
                    (row.identifier, row.has_reasons) = (Some(identifier), has_reasons);
                    if row.answer(kind, reason) { Reply::Last } else { Reply::More }
                });
                rows.acts_as(from);
            }
            kind @ (packet::SUBSCRIBE | packet::UNSUBSCRIBE) => {
                let identifier: u16 = reader.be()?;
                self.properties(&mut reader)?;
                let (mut topics, mut wanted) = (KeptList::default(), KeptList::default());
                while !reader.rest().is_empty() {
                    let topic = octets(&mut reader)?;
                    topics.push(&String::from_utf8_lossy(first(topic, 255)));
                    if kind == packet::SUBSCRIBE {
                        wanted.push(&(u8::to_string(&(reader.be::<u8>()? & 3))));
                    }
                }
                rows.request(key(kind, identifier), |row: &mut Subscribe| {
                    (row.action, row.identifier) = (Some(Action(kind)), identifier);
                    (row.topics, row.wanted_qos) = (topics, wanted);
                });
            }
            kind @ (packet::SUBACK | packet::UNSUBACK) => {
                let identifier: u16 = reader.be()?;
                self.properties(&mut reader)?;
                let kind = kind - 1;
                rows.response(key(kind, identifier), |row: &mut Subscribe| {
                    (row.action, row.identifier) = (Some(Action(kind)), identifier);
                    for code in first(reader.rest(), 64) {
                        row.codes.push(&code.to_string());
                        row.reasons.push(&Reason(*code).to_string());
                    }
                    Reply::Last
                });
            }
            packet::DISCONNECT => {
                let reason: Option<u8> = reader.be().ok();
                let properties = self.properties(&mut reader).unwrap_or_default();
                let reason =
                    if self.has_properties() { Some(Reason(reason.unwrap_or_default())) } else { None };
                let reason_text = properties.text(property::REASON_STRING);
                rows.single(Disconnect { reason, reason_text, ..Disconnect::default() });
            }
            // Pings, and steps of an authentication.
            _ => {}
        }
        Ok(())
    }

    /// Reads CONNECT (section 3.1).
    fn connect(&mut self, reader: &mut Reader<'_>, rows: &mut Rows<'_, Row>) -> Result<(), ReadError> {
        octets(reader)?;
        let [version, flags] = reader.array()?;
        self.version = version;
        let keep_alive: u16 = reader.be()?;
        self.properties(reader)?;
        let mut row = Connect {
            version: Some(Version(version)),
            flags,
            has_password: flags & 0x40 != 0,
            clean_start: flags & 2 != 0,
            keep_alive_time: Some(Duration::from_secs(keep_alive.into())),
            ..Connect::default()
        };
        let client_id = octets(reader)?;
        row.client_id = Some(Kept::new(client_id)).filter(|_| !client_id.is_empty());
        if flags & 4 != 0 {
            self.properties(reader)?;
            row.will_topic = Some(Kept::new(octets(reader)?));
            row.will_payload = Some(Kept::new(octets(reader)?));
        }
        if flags & 0x80 != 0 {
            row.user_name = Some(Kept::new(octets(reader)?));
        }
        rows.request(0, |open: &mut Connect| *open = Connect { exchange: open.exchange.clone(), ..row });
        Ok(())
    }

    /// Reads PUBLISH (section 3.3).
    fn publish(
        &self,
        head: u8,
        (reader, len): (&mut Reader<'_>, u64),
        rows: &mut Rows<'_, Row>,
    ) -> Result<(), ReadError> {
        let qos = head >> 1 & 3;
        let topic = octets(reader)?;
        let identifier = if qos > 0 { Some(reader.be()?) } else { None };
        let properties = self.properties(reader)?;
        let payload = reader.rest();
        let row = Publish {
            topic: Some(Kept::new(topic)),
            topic_alias: properties.number(property::TOPIC_ALIAS),
            qos: Some(QualityOfService(qos)),
            identifier,
            is_retained: head & 1 != 0,
            is_repeated: head & 8 != 0,
            content_type: properties.text(property::CONTENT_TYPE),
            response_topic: properties.text(property::RESPONSE_TOPIC),
            payload_len: u32::try_from(len.saturating_sub(reader.offset() as u64)).unwrap_or(u32::MAX),
            payload: Some(Kept::new(payload)).filter(|_| !payload.is_empty()),
            ..Publish::default()
        };
        match identifier {
            None => rows.single(row),
            Some(identifier) => rows.request(identifier.into(), |open: &mut Publish| {
                *open = Publish { exchange: open.exchange.clone(), ..row };
            }),
        }
        Ok(())
    }

    /// Reads the properties of a packet, which there are since version 5.
    fn properties<'p>(&self, reader: &mut Reader<'p>) -> Result<Properties<'p>, ReadError> {
        if !self.has_properties() || reader.rest().is_empty() {
            return Ok(Properties::default());
        }
        let len = reader.varint()?;
        reader.bytes(usize::try_from(len).unwrap_or(usize::MAX)).map(Properties)
    }
}

/// Returns the key of a request about topics.
fn key(kind: u8, identifier: u16) -> u64 {
    u64::from(kind) << 16 | u64::from(identifier)
}

/// Reads a text or binary data with its length (sections 1.5.4 and 1.5.6).
fn octets<'p>(reader: &mut Reader<'p>) -> Result<&'p [u8], ReadError> {
    let len: u16 = reader.be()?;
    reader.bytes(len.into())
}

/// Identifiers of properties (section 2.2.2.2).
mod property {
    pub(super) const CONTENT_TYPE: u8 = 0x03;
    pub(super) const RESPONSE_TOPIC: u8 = 0x08;
    pub(super) const ASSIGNED_CLIENT_IDENTIFIER: u8 = 0x12;
    pub(super) const REASON_STRING: u8 = 0x1F;
    pub(super) const TOPIC_ALIAS_MAXIMUM: u8 = 0x22;
    pub(super) const TOPIC_ALIAS: u8 = 0x23;
}

/// The properties of a packet.
#[derive(Clone, Copy, Default)]
struct Properties<'p>(&'p [u8]);

impl<'p> Properties<'p> {
    /// Returns the value of a property. The type of a property follows from its identifier (section 2.2.2.2).
    fn find(self, wanted: u8) -> Option<&'p [u8]> {
        let mut reader = Reader::new(self.0);
        loop {
            let identifier: u8 = reader.be().ok()?;
            let value = match identifier {
                0x01 | 0x17 | 0x19 | 0x24 | 0x25 | 0x28..=0x2A => reader.bytes(1).ok()?,
                0x13 | 0x21..=0x23 => reader.bytes(2).ok()?,
                0x02 | 0x11 | 0x18 | 0x27 => reader.bytes(4).ok()?,
                0x0B => reader.varint().map(|_| &[][..]).ok()?,
                // A name and a value.
                0x26 => octets(&mut reader).and_then(|_| octets(&mut reader)).ok()?,
                _ => octets(&mut reader).ok()?,
            };
            if identifier == wanted {
                return Some(value);
            }
        }
    }

    fn text<const N: usize>(self, wanted: u8) -> Option<Kept<N>> {
        self.find(wanted).map(Kept::new)
    }

    fn number(self, wanted: u8) -> Option<u16> {
        self.find(wanted)?.try_into().ok().map(u16::from_be_bytes)
    }
}

#[cfg(test)]
pub(super) mod samples {
    use super::super::recognizers::samples::{Sample, client, server};
    use super::PROTOCOL;

    pub(in super::super) const SAMPLES: &[Sample] = &[
        client(&PROTOCOL, 9001, b"\x10\x10\x00\x04MQTT\x04\x02\x00\x3C\x00\x04nemo"),
        client(&PROTOCOL, 1883, b"\x10\x12\x00\x06MQIsdp\x03\x02\x00\x3C\x00\x04nemo"),
        client(&PROTOCOL, 9001, b"\xC0\x00").answered(b"\xD0\x00"),
        server(&PROTOCOL, 9001, b"\xD0\x00").answered(b"\xC0\x00"),
        client(&PROTOCOL, 1883, b"\x82\x08\x00\x01\x00\x03a/b\x00"),
    ];

    pub(in super::super) const LOOK_ALIKES: &[Sample] = &[
        client(&PROTOCOL, 1883, b"\x10\x10\x00\x04MQTS\x04\x02\x00\x3C\x00\x04nemo"),
        client(&PROTOCOL, 1883, b"\x36\x07\x00\x04short"),
        client(&PROTOCOL, 9001, b"\xC0\x00").answered(b"\xD0\x01"),
    ];
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::kit::KitEntry;
    use crate::session::kit::suite::{Case, check_stream};

    const CLIENT: Role = Role::Client;
    const SERVER: Role = Role::Server;

    fn packet(head: u8, parts: &[&[u8]]) -> Vec<u8> {
        let body = parts.concat();
        let len = match u8::try_from(body.len()) {
            Ok(len @ 0..0x80) => vec![len],
            _ => vec![body.len() as u8 | 0x80, (body.len() >> 7) as u8],
        };
        [&[head][..], &len, &body].concat()
    }

    fn text(text: &str) -> Vec<u8> {
        [&(text.len() as u16).to_be_bytes()[..], text.as_bytes()].concat()
    }

    #[test]
    fn cases_of_packets() {
        let connect = |name: &str, version, flags, rest: &[u8]| {
            packet(0x10, &[&text(name), &[version, flags, 0, 60], rest])
        };
        let will = [text("nemo"), text("a/gone"), text("bye"), text("alice"), text("secret")].concat();
        let message = |head, rest: &[u8]| packet(head, &[&text("a/b"), rest]);
        let property = [&[14, 3][..], &text("text/html"), &[0x23, 0, 7]].concat();
        let property = [&[property.len() as u8 - 1][..], &property[1..]].concat();
        let assigned =
            [&[0x12][..], &text("auto-7"), &[0x26], &text("k"), &text("v"), &[0x1f], &text("hi")].concat();
        let assigned = [&[assigned.len() as u8][..], &assigned].concat();
        let cases = [
            Case {
                name: "a client of version 3.1.1 with a will, a subscription, and messages of each quality",
                turns: vec![
                    (CLIENT, connect("MQTT", 4, 0xC6, &will)),
                    (SERVER, packet(0x20, &[&[1, 0]])),
                    (CLIENT, packet(0x82, &[&[0, 1], &text("a/#"), &[1], &text("$SYS/x"), &[2]])),
                    (SERVER, packet(0x90, &[&[0, 1, 1, 0x80]])),
                    (CLIENT, [message(0x31, b"zero"), message(0x32, b"\0\x05one")].concat()),
                    (SERVER, packet(0x40, &[&[0, 5]])),
                    (SERVER, message(0x3c, b"\0\x05two")),
                    (CLIENT, packet(0x50, &[&[0, 5]])),
                    (SERVER, packet(0x62, &[&[0, 5]])),
                    (CLIENT, packet(0x70, &[&[0, 5]])),
                    (CLIENT, [packet(0xa2, &[&[0, 2], &text("a/#")]), packet(0xc0, &[])].concat()),
                    (SERVER, [packet(0xb0, &[&[0, 2]]), packet(0xd0, &[])].concat()),
                    (CLIENT, packet(0xe0, &[])),
                ],
                rows: &[
                    "mqtt_connect version=3.1.1 client_id=nemo user_name=alice has_password=Bool(true) clean_start=Bool(true) \
                    keep_alive_time=60s will_topic=a/gone will_payload=bye reason=success session_present=Bool(true) \
                    response_time=10ms",
                    "mqtt_subscribe action=subscribe identifier=1 topics=List([Text(\"a/#\"), Text(\"$SYS/x\")]) \
                    wanted_qos=List([Text(\"1\"), Text(\"2\")]) reasons=List([Text(\"granted_qos_1\"), \
                    Text(\"unspecified_error\")]) response_time=10ms",
                    "mqtt_publish topic=a/b qos=at_most_once is_retained=Bool(true) payload_len=4 payload=zero",
                    "mqtt_publish topic=a/b qos=at_least_once identifier=5 payload_len=3 payload=one reason=success \
                    response_time=10ms",
                    "mqtt_publish topic=a/b qos=exactly_once identifier=5 is_repeated=Bool(true) payload_len=3 payload=two \
                    reason=success response_time=10ms",
                    "mqtt_subscribe action=unsubscribe identifier=2 topics=List([Text(\"a/#\")]) response_time=10ms",
                    "mqtt_disconnect",
                ],
            },
            Case {
                name: "a client of version 5 without a name, a message that is refused, and the end by the server",
                turns: vec![
                    (CLIENT, connect("MQTT", 5, 2, b"\x03\x21\0\x14\0\0")),
                    (SERVER, packet(0x20, &[&[0, 0], &assigned])),
                    (CLIENT, packet(0x34, &[&text("a/b"), b"\0\x06", &property, b"two"])),
                    (SERVER, packet(0x50, &[&[0, 6, 0x87]])),
                    (SERVER, packet(0xe0, &[&[0x8b, 0]])),
                ],
                rows: &[
                    "mqtt_connect version=5.0 client_id=auto-7 clean_start=Bool(true) keep_alive_time=60s reason=success \
                    reason_text=hi response_time=10ms",
                    "mqtt_publish topic=a/b topic_alias=7 qos=exactly_once identifier=6 content_type=text/html payload_len=3 \
                    payload=two reason=not_authorized response_time=10ms",
                    "mqtt_disconnect reason=server_shutting_down",
                ],
            },
            Case {
                name: "a client that is refused, and a message without an answer",
                turns: vec![
                    (CLIENT, connect("MQIsdp", 3, 0, &text("nemo"))),
                    (SERVER, packet(0x20, &[&[0, 4]])),
                    (CLIENT, message(0x32, b"\0\x05one")),
                ],
                rows: &[
                    "mqtt_connect version=3.1 client_id=nemo keep_alive_time=60s reason=bad_user_name_or_password \
                    response_time=10ms",
                    "mqtt_publish topic=a/b qos=at_least_once identifier=5 payload_len=3 payload=one lacks=response",
                ],
            },
        ];
        check_stream(&KitEntry::of::<Mqtt>(), &cases);
    }
}
