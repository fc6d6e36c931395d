//! Typical exchanges of the protocols of the kit, as their standards have them.

use flowgauge::base::IpProtocol;

use super::replay::Conversation;

/// Turns of a conversation: whether the client sends one, and its octets.
type Turns = Vec<(bool, Vec<u8>)>;

/// Returns the conversation of each protocol with its name, and the number of its messages: a request with its response is one, and
/// of SNMP there is one of the flow.
pub(crate) fn conversations() -> [(&'static str, Conversation, u64); 8] {
    let datagrams = |port, turns: Turns| Conversation::of(IpProtocol::UDP, port, &turns);
    let stream = |port, turns: Turns| Conversation::of(IpProtocol::TCP, port, &turns);
    let count = u64::from(EXCHANGE_COUNT);
    [
        ("dhcp", datagrams(67, dhcp()), 2 * count),
        ("dhcpv6", datagrams(547, dhcpv6()), 2 * count),
        ("ldap", stream(389, ldap()), count),
        ("modbus", stream(502, modbus()), count),
        ("ntp", datagrams(123, ntp()), count),
        ("radius", datagrams(1812, radius()), count),
        ("snmp", datagrams(161, snmp()), count + 1),
        ("syslog", datagrams(514, syslog()), count),
    ]
}

/// Number of exchanges of a conversation.
const EXCHANGE_COUNT: u8 = 32;

/// Returns the conversation of requests with their responses; `make` returns the one with a number.
fn exchanges(make: impl Fn(u8) -> [Vec<u8>; 2]) -> Turns {
    let pairs = (1..=EXCHANGE_COUNT).map(make);
    pairs.flat_map(|[request, response]| [(true, request), (false, response)]).collect()
}

/// A value in BER with a length below 128.
fn ber(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
    let content = parts.concat();
    [&[tag, content.len() as u8][..], &content].concat()
}

/// Requests of a client with all times, and responses (RFC 5905).
fn ntp() -> Turns {
    exchanges(|number| {
        let time = |last: u8| [0xe9, 0x12, 0x34, 0x56, 0, 0, number, last];
        let request = [&[0x23, 0, 6, 0xe9][..], &[0; 36], &time(1)].concat();
        let head = [0x24, 2, 6, 0xe9, 0, 0, 1, 0, 0, 0, 2, 0, 192, 0, 2, 9];
        [request, [&head[..], &time(0), &time(1), &time(2), &time(3)].concat()]
    })
}

/// Reads of ten registers.
fn modbus() -> Turns {
    exchanges(|number| {
        let request = vec![0, number, 0, 0, 0, 6, 1, 3, 0, 100, 0, 10];
        [request, [&[0, number, 0, 0, 0, 23, 1, 3, 20][..], &[7; 20]].concat()]
    })
}

/// Requests of version 2c for two variables (RFC 3416).
fn snmp() -> Turns {
    exchanges(|number| {
        let variable =
            |last: u8, value: &[u8]| ber(0x30, &[&ber(6, &[&[0x2b, 6, 1, 2, 1, 2, 2, 1, 10, last]]), value]);
        let message = |kind: u8, values: [&[u8]; 2]| {
            let variables = ber(0x30, &[&variable(1, values[0]), &variable(2, values[1])]);
            let pdu = ber(kind, &[&[2, 1, number, 2, 1, 0, 2, 1, 0], &variables]);
            ber(0x30, &[&[2, 1, 1], &ber(4, &[b"public"]), &pdu])
        };
        [message(0xa0, [&[5, 0]; 2]), message(0xa2, [&[0x41, 2, 1, 2], &[0x41, 2, 3, 4]])]
    })
}

/// Requests for access with their acceptance (RFC 2865).
fn radius() -> Turns {
    exchanges(|number| {
        let message = |code: u8, attributes: &[&[u8]]| {
            let attributes = attributes.concat();
            [&[code, number, 0, 20 + attributes.len() as u8][..], &[number; 16], &attributes].concat()
        };
        let request = [
            &b"\x01\x07alice"[..],
            b"\x04\x06\xc0\x00\x02\x01",
            b"\x1f\x1302-00-00-00-00-01",
            b"\x20\x06gate",
            b"\x3d\x06\0\0\0\x13",
        ];
        [message(1, &request), message(2, &[b"\x08\x06\xc0\0\x02\x07", b"\x1b\x06\0\0\x0e\x10"])]
    })
}

/// Searches with an entry (RFC 4511).
fn ldap() -> Turns {
    exchanges(|number| {
        let message = |operation: u8, parts: &[&[u8]]| ber(0x30, &[&[2, 1, number], &ber(operation, parts)]);
        let text = |text: &[u8]| ber(4, &[text]);
        let filter = ber(0xa3, &[&text(b"uid"), &text(b"alice")]);
        let limits = [10, 1, 2, 10, 1, 3, 2, 1, 0, 2, 1, 0, 1, 1, 0];
        let attributes = ber(0x30, &[&text(b"cn"), &text(b"mail")]);
        let request = message(0x63, &[&text(b"dc=example,dc=org"), &limits, &filter, &attributes]);
        let attribute = ber(0x30, &[&text(b"cn"), &ber(0x31, &[&text(b"Alice")])]);
        let entry = message(0x64, &[&text(b"uid=alice,dc=example,dc=org"), &ber(0x30, &[&attribute])]);
        [request, [entry, message(0x65, &[&[10, 1, 0, 4, 0, 4, 0]])].concat()]
    })
}

/// Requests for an address and their acknowledgments (RFC 2131).
fn dhcp() -> Turns {
    exchanges(|number| {
        let message = |operation: u8, options: &[u8]| {
            let mut octets = vec![operation, 1, 6, 0, 0, 0, 0, number];
            octets.resize(28, 0);
            octets.extend([2, 0, 0, 0, 0, number]);
            octets.resize(236, 0);
            [&octets[..], &[0x63, 0x82, 0x53, 0x63], options, &[255][..]].concat()
        };
        let request = b"\x35\x01\x03\x0c\x05alice\x32\x04\xc0\0\x02\x07\x37\x04\x01\x03\x06\x0f\x3c\x04unix";
        let acknowledgment =
            b"\x35\x01\x05\x36\x04\xc0\0\x02\x01\x33\x04\0\0\x0e\x10\x01\x04\xff\xff\xff\0\x03\x04\xc0\0\x02\x01";
        [message(1, request), message(2, acknowledgment)]
    })
}

/// Requests for an address and their replies (RFC 8415).
fn dhcpv6() -> Turns {
    exchanges(|number| {
        let client = [0, 1, 0, 10, 0, 3, 0, 1, 2, 0, 0, 0, 0, number];
        let server = b"\0\x02\0\x07\0\x02\0\0\0\x09\x01";
        let address = [0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, number];
        let times = [0, 0, 0, 9, 0, 0, 7, 8, 0, 0, 11, 184];
        let lease =
            [&[0, 3, 0, 40][..], &times, &[0, 5, 0, 24], &address, &[0, 0, 14, 16, 0, 0, 28, 32]].concat();
        let message = |kind: u8| [&[kind, 0, 0, number][..], &client, server, &lease].concat();
        [message(3), message(7)]
    })
}

/// Messages with structured data (RFC 5424).
fn syslog() -> Turns {
    let message = b"<165>1 2026-11-29T22:14:15.003Z host.example.org su 1024 ID47 - session opened for alice";
    (0..EXCHANGE_COUNT).map(|_| (true, message.to_vec())).collect()
}
