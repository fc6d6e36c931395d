//! Protocols of the kit: typical operations of LDAP, requests and responses without a counterpart, and messages with as many parts
//! as fit. Of each protocol, also the dialogues of its tests.

use flowgauge::session::Role::{self, Client, Server};

#[path = "../../../cases/dialogues.rs"]
mod dialogues;

use super::feed::{Case, Expected, Feeding, Input, filled, prepared_input};

fn ber(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
    let content = parts.concat();
    let len = content.len() as u16;
    let head = if len < 128 { vec![tag, len as u8] } else { [&[tag, 0x82][..], &len.to_be_bytes()].concat() };
    [head, content].concat()
}

fn string(text: &[u8]) -> Vec<u8> {
    ber(4, &[text])
}

fn ldap(id: u32, operation: u8, parts: &[&[u8]]) -> Vec<u8> {
    ber(0x30, &[&ber(2, &[&id.to_be_bytes()]), &ber(operation, parts)])
}

fn search(id: u32, filter: &[u8], attributes: &[u8]) -> Vec<u8> {
    let limits = [0x0a, 1, 2, 0x0a, 1, 3, 2, 1, 0, 2, 1, 0, 1, 1, 0];
    ldap(id, 0x63, &[&string(b"ou=people,dc=example,dc=org"), &limits, filter, &ber(0x30, &[attributes])])
}

fn equality(attribute: &[u8], value: &[u8]) -> Vec<u8> {
    ber(0xa3, &[&string(attribute), &string(value)])
}

fn flow(input: Input, message_count_min: u64, make: impl Fn(u32) -> (Role, Vec<u8>)) -> Case {
    let input = filled(input, |input, round| {
        if round == 0 {
            input.flow();
        }
        let (from, octets) = make(round);
        input.send(from, &octets);
    });
    (input, Expected::messages(message_count_min))
}

fn stream(port: u16, message_count_min: u64, make: impl Fn(u32) -> (Role, Vec<u8>)) -> Case {
    flow(Input::tcp(port), message_count_min, make)
}

fn datagrams(port: u16, message_count_min: u64, make: impl Fn(u32) -> (Role, Vec<u8>)) -> Case {
    flow(Input::udp(port), message_count_min, make)
}

/// Compounds of SMB with as many requests as fit, each of which closes another file.
pub(crate) fn compounds() -> Case {
    const COUNT: u8 = 84;
    stream(445, 500, |round| {
        let mut octets = Vec::new();
        for number in 0..COUNT {
            let mut message = b"\xFESMB\x40".to_vec();
            message.resize(96, 0);
            (message[12], message[20]) = (6, 96);
            message[24..28].copy_from_slice(&(round * 256 + u32::from(number)).to_be_bytes());
            message[72..76].copy_from_slice(&round.to_be_bytes());
            message[76] = number;
            octets.extend(message);
        }
        (Client, [&(octets.len() as u32).to_be_bytes()[..], &octets].concat())
    })
}

/// Searches of LDAP with their entries.
pub(crate) fn benign() -> Case {
    stream(389, 100, |round| {
        let id = round / 2 + 1;
        if round % 2 == 0 {
            let filter = ber(
                0xa0,
                &[&equality(b"objectClass", b"person"), &equality(b"uid", format!("user{id}").as_bytes())],
            );
            return (Client, search(id, &filter, &[string(b"cn"), string(b"mail")].concat()));
        }
        let attribute =
            |name: &[u8], value: &[u8]| ber(0x30, &[&string(name), &ber(0x31, &[&string(value)])]);
        let attributes = [attribute(b"cn", b"A User"), attribute(b"mail", b"user@example.org")].concat();
        let entry =
            ldap(id, 0x64, &[&string(b"uid=user,ou=people,dc=example,dc=org"), &ber(0x30, &[&attributes])]);
        let done = ldap(id, 0x65, &[&[0x0a, 1, 0, 4, 0, 4, 0]]);
        (Server, [entry, done].concat())
    })
}

/// Searches that are never answered, each with a number of its own.
pub(crate) fn unanswered_searches() -> Case {
    stream(389, 500, |round| {
        let searches = (0..16).map(|at| search(16 * round + at, &ber(0x87, &[b"a"]), &[]));
        (Client, searches.flatten().collect())
    })
}

/// Filters with as many conditions as fit.
pub(crate) fn conditions() -> Case {
    stream(389, 30, |round| (Client, search(round, &ber(0xa1, &[&equality(b"a", b"").repeat(200)]), &[])))
}

/// Filters that are nested more deeply than is read.
pub(crate) fn nested_filters() -> Case {
    stream(389, 30, |round| {
        let filter = (0..300).fold(ber(0x87, &[b"a"]), |inner, _| ber(0xa2, &[&inner]));
        (Client, search(round, &filter, &[]))
    })
}

/// As many attributes as fit.
pub(crate) fn attributes() -> Case {
    stream(389, 30, |round| (Client, search(round, &ber(0x87, &[b"a"]), &string(b"").repeat(500))))
}

fn modbus(identifier: u32, body: &[u8]) -> Vec<u8> {
    let len = body.len() as u16;
    [&(identifier as u16).to_be_bytes()[..], &[0, 0], &len.to_be_bytes(), body].concat()
}

/// Requests of Modbus that are never answered.
pub(crate) fn unanswered_requests() -> Case {
    stream(502, 1000, |round| {
        let requests = (0..100).map(|at| modbus(100 * round + at, &[1, 3, 0, 0, 0, 1]));
        (Client, requests.flatten().collect())
    })
}

/// Responses of Modbus to no request, after requests that they do not answer.
pub(crate) fn responses_to_none() -> Case {
    stream(502, 1000, |round| {
        if round == 0 {
            return (Client, (0..32).flat_map(|at| modbus(at, &[1, 4, 0, 0, 0, 1])).collect());
        }
        (Server, (0..100).flat_map(|at| modbus(100 * round + at, &[1, 0x83, 2])).collect())
    })
}

/// Messages of SNMP with as many variables as fit in a datagram.
pub(crate) fn variables() -> Case {
    datagrams(161, 20, |round| {
        let variables = ber(0x30, &[&[6, 1, 0x2b, 5, 0]]).repeat(190);
        let members =
            [&[2, 4][..], &round.to_be_bytes(), &[2, 1, 0, 2, 1, 0], &ber(0x30, &[&variables])].concat();
        (Client, ber(0x30, &[&[2, 1, 1], &string(b"public"), &ber(0xa0, &[&members])]))
    })
}

/// The shortest lines of syslog.
pub(crate) fn short_lines() -> Case {
    let (input, expected) = stream(514, 500, |_| (Client, b"<13>a b\n".repeat(180)));
    (input, Expected { output_ratio_max: 40, ..expected })
}

/// A line of syslog in single octets, whose end is searched for with each.
pub(crate) fn line_by_octets() -> Case {
    let input = filled(Input::tcp(514), |input, _| {
        input.flow();
        input.send(Client, b"<13>Oct 11 22:14:15 host su: ");
        input.send_in(1, Client, &[b'a'; 1000]);
        input.send(Client, b"\n");
    });
    (input, Expected::messages(1))
}

/// Attributes of RADIUS without a value.
pub(crate) fn empty_attributes() -> Case {
    datagrams(1812, 20, |round| {
        let attributes = [26, 2].repeat(700);
        let len = (attributes.len() as u16 + 20).to_be_bytes();
        (Client, [&[1, round as u8][..], &len, &[round as u8; 16], &attributes].concat())
    })
}

/// The dialogues of the tests of a protocol, each repeated a number of times in a flow.
pub(crate) fn of_cases((name, count): (&str, usize)) -> Feeding {
    let all = dialogues::read_all().expect("the files of the cases");
    let (_, cases) = all.iter().find(|(other, _)| other == name).expect("the cases of the protocol");
    let input = if cases.is_stream { Input::tcp(cases.port) } else { Input::udp(cases.port) };
    let mut flow_count = 0;
    let input = filled(input, |input, round| {
        flow_count = round as usize + 1;
        input.flow();
        let dialogue = &cases.dialogues[round as usize % cases.dialogues.len()];
        for (from, octets) in (0..count).flat_map(|_| dialogue) {
            input.send(*from, octets);
        }
    });
    assert!(
        flow_count >= cases.dialogues.len(),
        "{name}: {flow_count} of {} dialogues",
        cases.dialogues.len()
    );
    prepared_input((input, Expected { has_faults: true, ..Expected::messages(20) }))
}
