//! Messages of application protocols, so that a short input reaches the parsers.

use std::sync::LazyLock;

use super::cases::CASES;

/// Payloads of segments and datagrams: of protocols with a parser of their own, then those of the kit.
pub static PHRASES: LazyLock<Vec<&'static [u8]>> = LazyLock::new(|| {
    let turns = CASES.iter().flat_map(|cases| cases.dialogues.iter().flatten());
    OWN.iter().copied().chain(turns.map(|(_, octets)| octets.as_slice())).collect()
});

const OWN: &[&[u8]] = &[
    b"GET /index.html HTTP/1.1\r\nHost: a.example\r\nUser-Agent: x\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
    b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
    b"0\r\n\r\n",
    b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: a\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n",
    b"CONNECT b.example:443 HTTP/1.1\r\nHost: b.example\r\n\r\n",
    b"HTTP/1.1 200 Connection established\r\n\r\n",
    // HTTP/2: preface and SETTINGS; SETTINGS with ACK; a request; a response; DATA; RST_STREAM; GOAWAY.
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\x06\x04\0\0\0\0\0\0\x03\0\0\0\x64",
    b"\0\0\0\x04\x01\0\0\0\0",
    b"\0\0\x03\x01\x05\0\0\0\x01\x82\x84\x86",
    b"\0\0\x01\x01\x04\0\0\0\x01\x88",
    b"\0\0\x04\0\x01\0\0\0\x01data",
    b"\0\0\x04\x03\0\0\0\0\x01\0\0\0\x08",
    b"\0\0\x08\x07\0\0\0\0\0\0\0\0\x01\0\0\0\0",
    // TLS: a ClientHello with a server name, a ServerHello of TLS 1.2, an alert, application data.
    b"\x16\x03\x01\x00\x45\x01\x00\x00\x41\x03\x03aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\x00\x00\x04\x13\x01\xc0\x2f\
      \x01\x00\x00\x14\x00\x00\x00\x10\x00\x0e\x00\x00\x0ba.example.b",
    b"\x16\x03\x03\x00\x2a\x02\x00\x00\x26\x03\x03bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb\x00\xc0\x2f\x00",
    b"\x15\x03\x03\x00\x02\x02\x28",
    b"\x17\x03\x03\x00\x10dddddddddddddddd",
    // DNS: a query, its response, and the query in a stream.
    b"\x12\x34\x01\0\0\x01\0\0\0\0\0\0\x01a\x07example\0\0\x01\0\x01",
    b"\x12\x34\x81\x80\0\x01\0\x01\0\0\0\0\x01a\x07example\0\0\x01\0\x01\xc0\x0c\
      \0\x01\0\x01\0\0\0\x3c\0\x04\x0a\0\0\x01",
    b"\0\x1b\x12\x34\x01\0\0\x01\0\0\0\0\0\0\x01a\x07example\0\0\x01\0\x01",
    b"SSH-2.0-OpenSSH_9.2\r\n",
    b"\0\0\0\x0c\x0a\x15\0\0\0\0\0\0\0\0\0\0",
    b"220 mail.example ESMTP\r\n",
    b"EHLO client.example\r\n",
    b"250-mail.example\r\n250 STARTTLS\r\n",
    b"STARTTLS\r\n",
    b"220 go ahead\r\n",
    b"MAIL FROM:<a@example>\r\nRCPT TO:<b@example>\r\nDATA\r\n",
    b"250 ok\r\n250 ok\r\n354 go\r\n",
    b"Subject: x\r\n\r\ntext\r\n.\r\n",
    b"220 FTP ready\r\n",
    b"USER anonymous\r\n",
    b"331 password\r\n",
    b"PASS secret\r\nPASV\r\n",
    b"227 Entering (10,0,0,9,4,1)\r\n",
    // An Initial packet of QUIC that cannot be decrypted, a version negotiation, and a short header.
    b"\xc0\0\0\0\x01\x08\x01\x02\x03\x04\x05\x06\x07\x08\0\0\x40\x20cccccccccccccccccccccccccccccccccc",
    b"\x80\0\0\0\0\0\x04abcd\0\0\0\x01",
    b"\x41abcdefghijklmnopqrstuvwxyz",
    // ICMP: an echo request, and an error that quotes a segment of the first conversation.
    b"\x08\0\0\0\0\x01\0\x01",
    b"\x03\x01\0\0\0\0\0\0\x45\0\0\x28\0\0\0\0\x40\x06\0\0\x0a\0\0\x01\x0a\0\0\x09\x9c\x40\0\x50\0\0\0\0",
    b"\x16\xfe\xff\0\0\0\0\0\0\0\0\0\x10",
    b"\0\x01\0\x08\x21\x12\xa4\x42aaaaaaaaaaaa\0\x06\0\x04user",
    b"\xe3\0\x06\xecaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    b"INVITE sip:a@b SIP/2.0\r\nVia: SIP/2.0/UDP a\r\n\r\n",
    b"\x10\x10\0\x04MQTT\x04\x02\0\x3c\0\x04abcd",
    b"",
    b"\r\n",
    b"\0",
];
