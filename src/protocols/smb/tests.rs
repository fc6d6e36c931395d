use super::*;
use crate::session::Role;
use crate::session::kit::KitEntry;
use crate::session::kit::suite::{Case, check_stream, segmented};

const CLIENT: Role = Role::Client;
const SERVER: Role = Role::Server;

const SESSION: u64 = 0x71;
const FILE: [u8; 16] = [0x4D, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF];

/// Puts a header of NetBIOS in front of a message.
fn session(message: &[u8]) -> Vec<u8> {
    [&(message.len() as u32).to_be_bytes()[..], message].concat()
}

fn utf16(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

/// Little-endian numbers at offsets of a body with a length.
fn body(len: usize, numbers: &[(usize, usize, u64)], rest: &[u8]) -> Vec<u8> {
    let mut octets = vec![0; len];
    for (at, width, number) in numbers {
        octets[*at..at + width].copy_from_slice(&number.to_le_bytes()[..*width]);
    }
    octets.extend_from_slice(rest);
    octets
}

/// A message of SMB 2: command, flags, number, status, and body.
fn two(command: u16, flags: u8, number: u8, status: u32, body: &[u8]) -> Vec<u8> {
    let mut head = vec![0; 64];
    head[..6].copy_from_slice(b"\xFESMB\x40\0");
    head[8..12].copy_from_slice(&status.to_le_bytes());
    head[12..14].copy_from_slice(&command.to_le_bytes());
    (head[16], head[24]) = (flags, number);
    let tree = u8::from(!matches!(command, 0..=2));
    head[36] = tree;
    head[40..48].copy_from_slice(&SESSION.to_le_bytes());
    [head, body.to_vec()].concat()
}

fn ask(command: u16, number: u8, body: &[u8]) -> (Role, Vec<u8>) {
    (CLIENT, session(&two(command, 0, number, 0, body)))
}

fn answer(command: u16, number: u8, body: &[u8]) -> (Role, Vec<u8>) {
    (SERVER, session(&two(command, 1, number, 0, body)))
}

fn refuse(command: u16, number: u8, status: u32) -> (Role, Vec<u8>) {
    (SERVER, session(&two(command, 1, number, status, &[9, 0, 0, 0, 0, 0, 0, 0, 0])))
}

/// A request whose body has a text at its end, with offset and length.
fn with_text(len: usize, at: usize, numbers: &[(usize, usize, u64)], text: &[u8]) -> Vec<u8> {
    let place = [(at, 2, 64 + len as u64), (at + 2, 2, text.len() as u64)];
    body(len, &[numbers, &place].concat(), text)
}

fn create(name: &str) -> Vec<u8> {
    with_text(56, 44, &[(24, 4, 0x0012_0089), (36, 4, 1)], &utf16(name))
}

/// 2026-11-30 00:00:00 in units of 100 ns since 1601.
const TIME: u64 = 134_404_704_000_000_000;

fn created(id: &[u8; 16], len: u64) -> Vec<u8> {
    let times = [8, 16, 24, 32].map(|at| (at, 8, TIME));
    let mut octets = body(88, &[&times[..], &[(4, 4, 1), (48, 8, len)]].concat(), &[]);
    octets[64..80].copy_from_slice(id);
    octets
}

/// The body of a request with the identifier of a file at an offset.
fn of_file(len: usize, at: usize, id: &[u8; 16], numbers: &[(usize, usize, u64)], rest: &[u8]) -> Vec<u8> {
    let mut octets = body(len, numbers, rest);
    octets[at..at + 16].copy_from_slice(id);
    octets
}

/// A message of NTLM: its fixed part, with the texts at the end.
fn token(kind: u8, values: &[(usize, &[u8])]) -> Vec<u8> {
    let mut octets = [b"NTLMSSP\0".as_slice(), &[kind]].concat();
    octets.resize(72, 0);
    octets[60] = 1;
    for (at, value) in values {
        (octets[*at], octets[at + 4]) = (value.len() as u8, octets.len() as u8);
        octets.extend_from_slice(value);
    }
    octets
}

/// A PDU of DCE/RPC.
fn pdu(kind: u8, number: u8, rest: &[u8]) -> Vec<u8> {
    [&[5, 0, kind, 3, 0x10, 0, 0, 0, 16 + rest.len() as u8, 0, 0, 0, number, 0, 0, 0][..], rest].concat()
}

/// A binding of the interface for services.
fn binding() -> Vec<u8> {
    let svcctl =
        [0x81, 0xBB, 0x7A, 0x36, 0x44, 0x98, 0xF1, 0x35, 0xAD, 0x32, 0x98, 0xF0, 0x38, 0x00, 0x10, 0x03];
    let head = [0xB8, 0x10, 0xB8, 0x10, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1, 0];
    pdu(11, 1, &[&head[..], &svcctl, &[2, 0, 0, 0], &[0; 20]].concat())
}

fn negotiation() -> Vec<(Role, Vec<u8>)> {
    let guid: Vec<u8> = (1..=16).collect();
    let dialects = [2, 2, 0x11, 3];
    let request =
        [body(12, &[(2, 2, 2), (4, 2, 1)], &[]), guid.clone(), vec![0; 8], dialects.to_vec()].concat();
    let cipher = [2, 0, 4, 0, 0, 0, 0, 0, 1, 0, 2, 0];
    let mut response =
        body(64, &[(2, 2, 3), (4, 2, 0x0311), (6, 2, 1), (40, 8, TIME), (60, 4, 128)], &cipher);
    response[8..24].copy_from_slice(&guid);
    vec![ask(0, 0, &request), answer(0, 0, &response)]
}

fn files() -> Vec<Case> {
    let logon = |number, token: &[u8]| ask(1, number, &with_text(24, 12, &[], token));
    let names = [utf16("CORP"), utf16("nemo"), utf16("DESK-7")];
    let last = token(3, &[(20, &[7; 30]), (28, &names[0]), (36, &names[1]), (44, &names[2])]);
    let challenge = session(&two(1, 1, 1, 0xC000_0016, &with_text(8, 4, &[], &token(2, &[]))));
    let logged_on = [
        logon(1, &token(1, &[])),
        (SERVER, challenge),
        logon(2, &last),
        answer(1, 2, &with_text(8, 4, &[], &[])),
        ask(3, 3, &with_text(8, 4, &[], &utf16(r"\\FILES\data"))),
        answer(3, 3, &body(16, &[(2, 1, 1)], &[])),
    ];
    let renaming = {
        let name = utf16("new.txt");
        let information = body(20, &[(16, 4, name.len() as u64)], &name);
        of_file(
            32,
            16,
            &FILE,
            &[(2, 1, 1), (3, 1, 10), (4, 4, information.len() as u64), (8, 2, 96)],
            &information,
        )
    };
    let deletion = of_file(32, 16, &FILE, &[(2, 1, 1), (3, 1, 13), (4, 4, 1), (8, 2, 96)], &[1]);
    // A compound, of which the second request refers to the file of the first one.
    let compound = |mut first: Vec<u8>, second: Vec<u8>| {
        first.resize(first.len().next_multiple_of(8), 0);
        first[20] = first.len() as u8;
        [first, second].concat()
    };
    let related =
        compound(two(5, 0, 8, 0, &create("dir")), two(6, 4, 9, 0, &of_file(24, 8, &[0xFF; 16], &[], &[])));
    let both = compound(two(5, 1, 8, 0, &created(&[9; 16], 0)), two(6, 5, 9, 0, &body(60, &[], &[])));
    let write = of_file(48, 16, &FILE, &[(2, 2, 112), (4, 4, 3)], b"abc");
    let written = body(16, &[(4, 4, 3)], &[]);
    vec![
        Case {
            name: "a negotiation, a logon, and a file that is read, written and closed",
            turns: [
                negotiation(),
                logged_on.to_vec(),
                vec![
                    ask(5, 4, &create(r"a\b.txt")),
                    answer(5, 4, &created(&FILE, 5)),
                    ask(8, 5, &of_file(48, 16, &FILE, &[(4, 4, 100), (8, 8, 0)], &[0])),
                    answer(8, 5, &body(16, &[(2, 1, 80), (4, 4, 5)], b"hello")),
                    ask(9, 6, &of_file(48, 16, &FILE, &[(2, 2, 112), (4, 4, 3), (8, 8, 5)], b"abc")),
                    answer(9, 6, &body(16, &[(4, 4, 3)], &[])),
                    ask(6, 7, &of_file(24, 8, &FILE, &[], &[])),
                    answer(6, 7, &body(60, &[(2, 2, 1), (48, 8, 8)], &[])),
                ],
            ]
            .concat(),
            rows: &[
                "smb command=negotiate result=STATUS_SUCCESS dialect=3.11 client_dialects=List([Text(\"2.02\"), \
                    Text(\"3.11\")]) client_guid=04030201-0605-0807-090a-0b0c0d0e0f10 \
                    server_guid=04030201-0605-0807-090a-0b0c0d0e0f10 session_number=113 response_time=10ms",
                "smb command=session_setup result=STATUS_MORE_PROCESSING_REQUIRED dialect=3.11 message_number=1 \
                    session_number=113 response_time=10ms",
                "ntlm user_name=nemo user_domain=CORP client_host=DESK-7 response_version=ntlm_v2 is_accepted=Bool(true) \
                    response_time=10ms",
                "smb command=session_setup result=STATUS_SUCCESS dialect=3.11 message_number=2 session_number=113 \
                    response_time=10ms",
                "smb command=tree_connect result=STATUS_SUCCESS dialect=3.11 user_name=CORP\\nemo share=\\\\FILES\\data \
                    share_type=disk message_number=3 session_number=113 tree_number=1 response_time=10ms",
                "smb command=create result=STATUS_SUCCESS dialect=3.11 user_name=CORP\\nemo share=\\\\FILES\\data \
                    share_type=disk file_name=a\\b.txt file_id=0000004d-0000-0000-0500-0000ffffffff file_len=5 \
                    disposition=open create_action=opened desired_access=1179785 created_timestamp=1795996800s \
                    accessed_timestamp=1795996800s modified_timestamp=1795996800s changed_timestamp=1795996800s \
                    message_number=4 session_number=113 tree_number=1 response_time=10ms",
                "smb command=read result=STATUS_SUCCESS dialect=3.11 user_name=CORP\\nemo share=\\\\FILES\\data \
                    share_type=disk file_name=a\\b.txt file_id=0000004d-0000-0000-0500-0000ffffffff data_len=5 \
                    message_number=5 session_number=113 tree_number=1 response_time=10ms",
                "smb command=write result=STATUS_SUCCESS dialect=3.11 user_name=CORP\\nemo share=\\\\FILES\\data \
                    share_type=disk file_name=a\\b.txt file_id=0000004d-0000-0000-0500-0000ffffffff offset=5 data_len=3 \
                    message_number=6 session_number=113 tree_number=1 response_time=10ms",
                "smb_file user_name=CORP\\nemo share=\\\\FILES\\data file_name=a\\b.txt file_len=5 is_written=Bool(true) \
                    seen_len=3 missing_len=5",
                "smb command=close result=STATUS_SUCCESS dialect=3.11 user_name=CORP\\nemo share=\\\\FILES\\data \
                    share_type=disk file_name=a\\b.txt file_id=0000004d-0000-0000-0500-0000ffffffff file_len=8 \
                    message_number=7 session_number=113 tree_number=1 response_time=10ms",
                "smb_file user_name=CORP\\nemo share=\\\\FILES\\data file_name=a\\b.txt file_len=5 seen_len=5 \
                    is_complete=Bool(true)",
                "smb_connection client_dialects=List([Text(\"2.02\"), Text(\"3.11\")]) dialect=3.11 \
                    client_guid=04030201-0605-0807-090a-0b0c0d0e0f10 server_guid=04030201-0605-0807-090a-0b0c0d0e0f10 \
                    is_signing_required_by_server=Bool(true) cipher=aes_128_gcm server_timestamp=1795996800s",
            ],
        },
        Case {
            name: "a file that is renamed and deleted, and one that does not exist",
            turns: vec![
                ask(5, 4, &create("old.txt")),
                answer(5, 4, &created(&FILE, 5)),
                ask(17, 5, &renaming),
                answer(17, 5, &[2, 0]),
                ask(17, 6, &deletion),
                answer(17, 6, &[2, 0]),
                ask(5, 7, &create("none")),
                refuse(5, 7, 0xC000_0034),
            ],
            rows: &[
                "smb command=create result=STATUS_SUCCESS file_name=old.txt file_id=0000004d-0000-0000-0500-0000ffffffff \
                    file_len=5 disposition=open create_action=opened desired_access=1179785 created_timestamp=1795996800s \
                    accessed_timestamp=1795996800s modified_timestamp=1795996800s changed_timestamp=1795996800s \
                    message_number=4 session_number=113 tree_number=1 response_time=10ms",
                "smb command=set_info result=STATUS_SUCCESS file_name=old.txt new_file_name=new.txt \
                    file_id=0000004d-0000-0000-0500-0000ffffffff file_len=5 created_timestamp=1795996800s \
                    accessed_timestamp=1795996800s modified_timestamp=1795996800s changed_timestamp=1795996800s \
                    information_class=10 message_number=5 session_number=113 tree_number=1 response_time=10ms",
                "smb command=set_info result=STATUS_SUCCESS file_name=new.txt is_deletion=Bool(true) \
                    file_id=0000004d-0000-0000-0500-0000ffffffff file_len=5 created_timestamp=1795996800s \
                    accessed_timestamp=1795996800s modified_timestamp=1795996800s changed_timestamp=1795996800s \
                    information_class=13 message_number=6 session_number=113 tree_number=1 response_time=10ms",
                "smb command=create result=STATUS_OBJECT_NAME_NOT_FOUND file_name=none disposition=open \
                    desired_access=1179785 message_number=7 session_number=113 tree_number=1 response_time=10ms",
            ],
        },
        Case {
            name: "a compound that writes and closes a file, whose identifier then stands for another one",
            turns: vec![
                ask(5, 4, &create("a")),
                answer(5, 4, &created(&FILE, 0)),
                (
                    CLIENT,
                    session(&compound(
                        two(9, 0, 5, 0, &write),
                        two(6, 4, 6, 0, &of_file(24, 8, &[0xFF; 16], &[], &[])),
                    )),
                ),
                (SERVER, session(&compound(two(9, 1, 5, 0, &written), two(6, 5, 6, 0, &body(60, &[], &[]))))),
                ask(5, 7, &create("b")),
                answer(5, 7, &created(&FILE, 0)),
                ask(9, 8, &write),
                answer(9, 8, &written),
                ask(5, 9, &create("c")),
                answer(5, 9, &created(&FILE, 0)),
                ask(9, 10, &write),
                answer(9, 10, &written),
            ],
            rows: &[
                "smb command=create result=STATUS_SUCCESS file_name=a file_id=0000004d-0000-0000-0500-0000ffffffff \
                    disposition=open create_action=opened desired_access=1179785 created_timestamp=1795996800s \
                    accessed_timestamp=1795996800s modified_timestamp=1795996800s changed_timestamp=1795996800s \
                    message_number=4 session_number=113 tree_number=1 response_time=10ms",
                "smb_file file_name=a is_written=Bool(true) seen_len=3 is_complete=Bool(true)",
                "smb command=write result=STATUS_SUCCESS file_name=a file_id=0000004d-0000-0000-0500-0000ffffffff \
                    data_len=3 message_number=5 session_number=113 tree_number=1 response_time=10ms",
                "smb command=close result=STATUS_SUCCESS file_name=a file_id=0000004d-0000-0000-0500-0000ffffffff \
                    message_number=6 session_number=113 tree_number=1 response_time=10ms",
                "smb command=create result=STATUS_SUCCESS file_name=b file_id=0000004d-0000-0000-0500-0000ffffffff \
                    disposition=open create_action=opened desired_access=1179785 created_timestamp=1795996800s \
                    accessed_timestamp=1795996800s modified_timestamp=1795996800s changed_timestamp=1795996800s \
                    message_number=7 session_number=113 tree_number=1 response_time=10ms",
                "smb command=write result=STATUS_SUCCESS file_name=b file_id=0000004d-0000-0000-0500-0000ffffffff \
                    data_len=3 message_number=8 session_number=113 tree_number=1 response_time=10ms",
                "smb command=create result=STATUS_SUCCESS file_name=c file_id=0000004d-0000-0000-0500-0000ffffffff \
                    disposition=open create_action=opened desired_access=1179785 created_timestamp=1795996800s \
                    accessed_timestamp=1795996800s modified_timestamp=1795996800s changed_timestamp=1795996800s \
                    message_number=9 session_number=113 tree_number=1 response_time=10ms",
                "smb_file file_name=b is_written=Bool(true) seen_len=3",
                "smb command=write result=STATUS_SUCCESS file_name=c file_id=0000004d-0000-0000-0500-0000ffffffff \
                    data_len=3 message_number=10 session_number=113 tree_number=1 response_time=10ms",
                "smb_file file_name=c is_written=Bool(true) seen_len=3",
            ],
        },
        Case {
            name: "a compound, an interim response, a cancellation, and encrypted messages",
            turns: vec![
                (CLIENT, session(&related)),
                (SERVER, session(&both)),
                ask(15, 10, &of_file(32, 8, &FILE, &[], &[])),
                (SERVER, session(&two(15, 3, 10, 0x103, &[9, 0, 0, 0, 0, 0, 0, 0, 0]))),
                ask(12, 10, &[4, 0, 0, 0]),
                refuse(15, 10, 0xC000_0120),
                (CLIENT, session(&[b"\xFDSMB".as_slice(), &[0; 60]].concat())),
                (SERVER, session(&[b"\xFDSMB".as_slice(), &[0; 60]].concat())),
            ],
            rows: &[
                "smb command=create result=STATUS_SUCCESS file_name=dir file_id=09090909-0909-0909-0909-090909090909 \
                    disposition=open create_action=opened desired_access=1179785 created_timestamp=1795996800s \
                    accessed_timestamp=1795996800s modified_timestamp=1795996800s changed_timestamp=1795996800s \
                    message_number=8 session_number=113 tree_number=1 response_time=10ms",
                "smb command=close result=STATUS_SUCCESS file_name=dir file_id=09090909-0909-0909-0909-090909090909 \
                    message_number=9 session_number=113 tree_number=1 response_time=10ms",
                "smb command=change_notify result=STATUS_CANCELLED file_id=0000004d-0000-0000-0500-0000ffffffff \
                    message_number=10 session_number=113 tree_number=1 response_time=30ms",
                "smb_connection encrypted_message_count=2",
            ],
        },
    ]
}

fn pipes() -> Vec<Case> {
    let request = pdu(0, 2, &[8, 0, 0, 0, 0, 0, 15, 0, 1, 2, 3, 4, 5, 6, 7, 8]);
    let ack =
        pdu(12, 1, &[&[0xB8, 0x10, 0xB8, 0x10, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0][..], &[0; 24]].concat());
    let response = pdu(2, 2, &[4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    let control = |len: usize, at: usize, pdu: &[u8]| {
        let place = [(at, 4, 64 + len as u64), (at + 4, 4, pdu.len() as u64)];
        of_file(len, 8, &FILE, &[&[(4, 4, 0x0011_C017)][..], &place].concat(), pdu)
    };
    vec![Case {
        name: "a pipe whose interface is bound by a write and a read, and called by a transaction",
        turns: vec![
            ask(3, 3, &with_text(8, 4, &[], &utf16(r"\\FILES\IPC$"))),
            answer(3, 3, &body(16, &[(2, 1, 2)], &[])),
            ask(5, 4, &create("svcctl")),
            answer(5, 4, &created(&FILE, 0)),
            ask(9, 5, &of_file(48, 16, &FILE, &[(2, 2, 112), (4, 4, 72)], &binding())),
            answer(9, 5, &body(16, &[(4, 4, 72)], &[])),
            ask(8, 6, &of_file(48, 16, &FILE, &[(4, 4, 1024)], &[0])),
            answer(8, 6, &body(16, &[(2, 1, 80), (4, 4, ack.len() as u64)], &ack)),
            ask(11, 7, &control(56, 24, &request)),
            answer(11, 7, &control(48, 32, &response)),
        ],
        rows: &[
            "smb command=tree_connect result=STATUS_SUCCESS share=\\\\FILES\\IPC$ share_type=pipe message_number=3 \
                    session_number=113 tree_number=1 response_time=10ms",
            "smb command=create result=STATUS_SUCCESS share=\\\\FILES\\IPC$ share_type=pipe file_name=svcctl \
                    file_id=0000004d-0000-0000-0500-0000ffffffff disposition=open create_action=opened desired_access=1179785 \
                    created_timestamp=1795996800s accessed_timestamp=1795996800s modified_timestamp=1795996800s \
                    changed_timestamp=1795996800s message_number=4 session_number=113 tree_number=1 response_time=10ms",
            "smb command=write result=STATUS_SUCCESS share=\\\\FILES\\IPC$ share_type=pipe file_name=svcctl \
                    file_id=0000004d-0000-0000-0500-0000ffffffff data_len=72 message_number=5 session_number=113 \
                    tree_number=1 response_time=10ms",
            "smb command=read result=STATUS_SUCCESS share=\\\\FILES\\IPC$ share_type=pipe file_name=svcctl \
                    file_id=0000004d-0000-0000-0500-0000ffffffff data_len=56 message_number=6 session_number=113 \
                    tree_number=1 response_time=10ms",
            "dcerpc_binding interfaces=List([Text(\"svcctl\")]) accepted_count=1 response_time=30ms",
            "smb command=ioctl result=STATUS_SUCCESS share=\\\\FILES\\IPC$ share_type=pipe file_name=svcctl \
                    file_id=0000004d-0000-0000-0500-0000ffffffff function=pipe_transceive message_number=7 session_number=113 \
                    tree_number=1 response_time=10ms",
            "dcerpc interface=svcctl interface_id=367abb81-9844-35f1-ad32-98f038001003 operation=OpenSCManagerW \
                    operation_number=15 call_id=2 parameters_len=8 results_len=4 response_time=10ms",
        ],
    }]
}

/// A message of SMB 1 with its words and octets.
fn one(command: u8, flags: u8, number: u8, words: &[u8], octets: &[u8]) -> Vec<u8> {
    let mut head = [b"\xFFSMB".as_slice(), &[command]].concat();
    head.resize(32, 0);
    (head[9], head[11]) = (flags, 0xC0);
    (head[24], head[28], head[30]) = (3, 7, number);
    let count = (octets.len() as u16).to_le_bytes();
    [&head[..], &[words.len() as u8 / 2], words, &count, octets].concat()
}

/// Words of a command with which no other one follows.
fn words(len: usize, numbers: &[(usize, usize, u64)]) -> Vec<u8> {
    body(len, &[&[(0, 1, 0xFF)][..], numbers].concat(), &[])
}

fn version_1() -> Vec<Case> {
    let asks = |command, number, words: &[u8], octets: &[u8]| {
        (CLIENT, session(&one(command, 0x18, number, words, octets)))
    };
    let answers = |command, number, words: &[u8], octets: &[u8]| {
        (SERVER, session(&one(command, 0x98, number, words, octets)))
    };
    // Characters of 16 bits are aligned to the message.
    let texts =
        |texts: &[&str]| texts.iter().flat_map(|text| [utf16(text), vec![0; 2]].concat()).collect::<Vec<_>>();
    let negotiated = body(34, &[(2, 1, 7), (19, 4, 1 << 31), (23, 8, TIME)], &[]);
    let opened = words(68, &[(5, 2, 0x4000), (7, 4, 2), (55, 8, 12)]);
    let path = utf16(r"\a\c.txt");
    let deletion = {
        let parameters = [0, 0x40, 0x02, 0x01, 0, 0];
        let words =
            body(30, &[(18, 2, 6), (20, 2, 66), (22, 2, 1), (24, 2, 72), (26, 1, 1), (28, 2, 8)], &[]);
        // After 32 octets of the header, 31 of words, two of a length, and one of padding.
        (words, [&[0][..], &parameters, &[1]].concat())
    };
    // Length and octets of the new name at offsets 8 and 12.
    let renaming = {
        let name = utf16("d.txt");
        let information = body(12, &[(8, 4, name.len() as u64)], &name);
        let words = body(
            30,
            &[
                (18, 2, 6),
                (20, 2, 66),
                (22, 2, information.len() as u64),
                (24, 2, 72),
                (26, 1, 1),
                (28, 2, 8),
            ],
            &[],
        );
        (words, [&[0, 0, 0x40, 0xF2, 3, 0, 0][..], &information].concat())
    };
    vec![
        Case {
            name: "a logon with a name, and a file that is created, written, deleted and closed",
            turns: vec![
                asks(0x72, 1, &[], b"\x02LANMAN1.0\0\x02NT LM 0.12\0"),
                answers(0x72, 1, &negotiated, &[3; 16]),
                asks(
                    0x73,
                    2,
                    &words(26, &[]),
                    &[&[0][..], &texts(&["nemo", "CORP", "Unix", "Samba"])].concat(),
                ),
                answers(
                    0x73,
                    2,
                    &words(6, &[]),
                    &[&[0][..], &texts(&["Windows 5.1", "Windows 2000"])].concat(),
                ),
                asks(
                    0x75,
                    3,
                    &words(8, &[(6, 2, 1)]),
                    &[&[0][..], &texts(&[r"\\FILES\data"]), b"?????\0"].concat(),
                ),
                answers(0x75, 3, &words(6, &[]), &[b"A:\0".as_slice(), &texts(&["NTFS"])].concat()),
                asks(0xA2, 4, &words(48, &[(15, 4, 3), (35, 4, 5)]), &[&[0][..], &path, &[0; 2]].concat()),
                answers(0xA2, 4, &opened, &[]),
                asks(0x2F, 5, &words(24, &[(4, 2, 0x4000), (6, 4, 9), (20, 2, 3)]), b"abc"),
                answers(0x2F, 5, &words(12, &[(4, 2, 3)]), &[]),
                asks(0x32, 8, &renaming.0, &renaming.1),
                answers(0x32, 8, &body(20, &[], &[]), &[]),
                asks(0x32, 6, &deletion.0, &deletion.1),
                answers(0x32, 6, &body(20, &[], &[]), &[]),
                asks(4, 7, &body(6, &[(0, 2, 0x4000)], &[]), &[]),
                answers(4, 7, &[], &[]),
            ],
            rows: &[
                "smb command=smb1_negotiate result=STATUS_SUCCESS dialect=NT LM 0.12 \
                    client_dialects=List([Text(\"LANMAN1.0\"), Text(\"NT LM 0.12\")]) \
                    server_guid=03030303-0303-0303-0303-030303030303 message_number=1 session_number=7 response_time=10ms",
                "smb command=smb1_session_setup_andx result=STATUS_SUCCESS dialect=NT LM 0.12 user_name=CORP\\nemo \
                    client_os=Unix client_software=Samba server_os=Windows 5.1 server_software=Windows 2000 message_number=2 \
                    session_number=7 response_time=10ms",
                "smb command=smb1_tree_connect_andx result=STATUS_SUCCESS dialect=NT LM 0.12 user_name=CORP\\nemo \
                    share=\\\\FILES\\data share_type=disk share_service=A: file_system=NTFS message_number=3 session_number=7 \
                    tree_number=3 response_time=10ms",
                "smb command=smb1_nt_create_andx result=STATUS_SUCCESS dialect=NT LM 0.12 user_name=CORP\\nemo \
                    share=\\\\FILES\\data share_type=disk file_name=a\\c.txt file_id=00034000-0000-0000-0000-000000000000 \
                    file_len=12 disposition=overwrite_if create_action=created desired_access=3 message_number=4 \
                    session_number=7 tree_number=3 response_time=10ms",
                "smb command=smb1_write_andx result=STATUS_SUCCESS dialect=NT LM 0.12 user_name=CORP\\nemo \
                    share=\\\\FILES\\data share_type=disk file_name=a\\c.txt file_id=00034000-0000-0000-0000-000000000000 \
                    offset=9 data_len=3 message_number=5 session_number=7 tree_number=3 response_time=10ms",
                "smb command=smb1_trans2 result=STATUS_SUCCESS dialect=NT LM 0.12 user_name=CORP\\nemo \
                    share=\\\\FILES\\data share_type=disk file_name=a\\c.txt new_file_name=d.txt \
                    file_id=00034000-0000-0000-0000-000000000000 file_len=12 function=set_file_information \
                    information_class=10 message_number=8 session_number=7 tree_number=3 response_time=10ms",
                "smb command=smb1_trans2 result=STATUS_SUCCESS dialect=NT LM 0.12 user_name=CORP\\nemo \
                    share=\\\\FILES\\data share_type=disk file_name=d.txt is_deletion=Bool(true) \
                    file_id=00034000-0000-0000-0000-000000000000 file_len=12 function=set_file_information \
                    information_class=258 message_number=6 session_number=7 tree_number=3 response_time=10ms",
                "smb_file user_name=CORP\\nemo share=\\\\FILES\\data file_name=a\\c.txt file_len=12 is_written=Bool(true) \
                    seen_len=3 missing_len=9",
                "smb command=smb1_close result=STATUS_SUCCESS dialect=NT LM 0.12 user_name=CORP\\nemo \
                    share=\\\\FILES\\data share_type=disk file_name=d.txt file_id=00034000-0000-0000-0000-000000000000 \
                    message_number=7 session_number=7 tree_number=3 response_time=10ms",
                "smb_connection client_dialects=List([Text(\"LANMAN1.0\"), Text(\"NT LM 0.12\")]) dialect=NT LM 0.12 \
                    server_guid=03030303-0303-0303-0303-030303030303 server_timestamp=1795996800s client_os=Unix \
                    server_os=Windows 5.1",
            ],
        },
        Case {
            name: "a file that is renamed, and a chain of two commands",
            turns: vec![
                asks(7, 1, &[0, 0], &[&[4][..], &texts(&[r"\old"]), &[4, 0], &texts(&[r"\new"])].concat()),
                answers(7, 1, &[], &[]),
                {
                    // The second command follows the 32 octets of the header, the words and the octets of the first.
                    let mut message = one(0x73, 0x18, 2, &body(26, &[(0, 1, 0x75), (2, 2, 62)], &[]), &[0]);
                    message.extend(
                        one(
                            0x75,
                            0x18,
                            2,
                            &words(8, &[(6, 2, 1)]),
                            &[&[0][..], &texts(&[r"\\F\d"])].concat(),
                        )
                        .drain(32..),
                    );
                    (CLIENT, session(&message))
                },
                {
                    let mut message = one(0x73, 0x98, 2, &body(6, &[(0, 1, 0x75), (2, 2, 42)], &[]), &[0]);
                    message.extend(one(0x75, 0x98, 2, &words(6, &[]), b"IPC\0").drain(32..));
                    (SERVER, session(&message))
                },
            ],
            rows: &[
                "smb command=smb1_rename result=STATUS_SUCCESS file_name=old new_file_name=new message_number=1 \
                    session_number=7 tree_number=3 response_time=10ms",
                "smb command=smb1_session_setup_andx result=STATUS_SUCCESS message_number=2 session_number=7 response_time=10ms",
                "smb command=smb1_tree_connect_andx result=STATUS_SUCCESS share=\\\\F\\d share_type=pipe share_service=IPC \
                    message_number=2 session_number=7 tree_number=3 response_time=10ms",
            ],
        },
    ]
}

#[test]
fn cases_of_versions() {
    let cases: Vec<_> = [files(), pipes(), version_1()].into_iter().flatten().collect();
    check_stream(&KitEntry::of::<Smb>(), &cases);
}

#[test]
fn octets_of_files_are_passed_on() {
    let content: Vec<u8> = (0..40_000_u32).map(|number| (number % 251) as u8).collect();
    let part = |range: std::ops::Range<usize>| &content[range];
    let read = |number, range: std::ops::Range<usize>| {
        let asked = of_file(48, 16, &FILE, &[(4, 4, range.len() as u64), (8, 8, range.start as u64)], &[0]);
        let answered = body(16, &[(2, 1, 80), (4, 4, range.len() as u64)], part(range));
        [ask(8, number, &asked), answer(8, number, &answered)]
    };
    let turns: Vec<_> = [
        [ask(5, 4, &create("long.bin")), answer(5, 4, &created(&FILE, content.len() as u64))],
        read(5, 0..20_000),
        // A part of it is read again.
        read(6, 10_000..30_000),
        read(7, 30_000..40_000),
        [ask(6, 8, &of_file(24, 8, &FILE, &[], &[])), answer(6, 8, &body(60, &[], &[]))],
    ]
    .concat();
    for len in [1, 7, 1460, 9000, 100_000] {
        let seen = segmented(&KitEntry::of::<Smb>(), &turns, len);
        assert!(seen.octets == content, "{} octets in segments of {len}", seen.octets.len());
        let row = seen.rows.iter().find(|row| row.starts_with("smb_file")).expect("a row");
        assert_eq!(row, "smb_file file_name=long.bin file_len=40000 seen_len=40000 is_complete=Bool(true)");
    }
}

/// What attacks of others do: commands that follow themselves, and first fragments of calls that never end.
#[test]
fn chains_and_fragments_that_lead_nowhere_are_bounded() {
    let asks = |command, number, words: &[u8], octets: &[u8]| {
        (CLIENT, session(&one(command, 0x18, number, words, octets)))
    };
    // The end of a logon with another one at an offset that is zero, that of the message itself, and behind it.
    for offset in [0_u64, 32, 33, 39, 0xFFFF] {
        let mut chain = Vec::new();
        for _ in 0..64 {
            chain.extend(body(7, &[(0, 1, 2), (1, 1, 0x74), (3, 2, offset)], &[]));
        }
        let turns = [asks(0x74, 1, &body(4, &[(0, 1, 0x74), (2, 2, offset)], &[]), &chain)];
        let rows = segmented(&KitEntry::of::<Smb>(), &turns, 1460).rows;
        assert!(rows.len() <= 17, "{offset}: {}", rows.len());
    }
    // Each transaction has 25 fragments of other calls: of a head, and without an end.
    let turns: Vec<_> = (0..100_u8)
        .map(|number| {
            let fragment = |call: u8| [5, 0, 0, 1, 0x10, 0, 0, 0, 16, 0, 0, 0, call, number, 0, 0];
            let fragments: Vec<u8> = (0..25).flat_map(fragment).collect();
            let name = b"\\PIPE\\\0";
            let (len, at) = (fragments.len() as u64, 32 + 29 + 2 + name.len() as u64);
            let words = body(28, &[(2, 2, len), (6, 2, 0xFFFF), (22, 2, len), (24, 2, at)], &[]);
            asks(0x25, number, &words, &[&name[..], &fragments].concat())
        })
        .collect();
    let rows = segmented(&KitEntry::of::<Smb>(), &turns, 1400).rows;
    // A row of each transaction, and of each call at most.
    assert!(rows.len() <= 100 * 26 + 1, "{}", rows.len());
}
