//! HTTP/1: conditional requests with responses, and dialogues that would be expensive if input were searched
//! repeatedly.

use flowgauge::session::Role::{Client, Server};

use super::feed::{Case, Expected, Input, filled};

fn request(number: u32) -> String {
    format!(
        "GET /assets/images/{number}.png?width=640 HTTP/1.1\r\nHost: www.example.org\r\n\
         User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0\r\n\
         Accept: image/avif,image/webp,*/*\r\nAccept-Language: en-US,en;q=0.5\r\n\
         Referer: http://www.example.org/index.html\r\nIf-None-Match: \"{number}-6123\"\r\nConnection: keep-alive\r\n\r\n"
    )
}

fn response(number: u32) -> String {
    format!(
        "HTTP/1.1 304 Not Modified\r\nServer: nginx/1.22.1\r\nDate: Sat, 22 Nov 2025 10:00:00 GMT\r\n\
         ETag: \"{number}-6123\"\r\nCache-Control: max-age=3600\r\nConnection: keep-alive\r\n\r\n"
    )
}

fn dialogue(packet_len: usize) -> Input {
    filled(Input::tcp(80), |input, round| {
        input.send_in(packet_len, Client, request(round).as_bytes());
        input.send_in(packet_len, Server, response(round).as_bytes());
    })
}

/// The head of a chunked response.
fn chunked() -> Input {
    let mut input = Input::tcp(80);
    input.send(Client, request(0).as_bytes());
    input.send(Server, b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    input
}

pub(crate) fn benign() -> Case {
    (dialogue(1460), Expected::messages(200))
}

/// The same dialogue with one octet per segment.
pub(crate) fn one_octet_segments() -> Case {
    (dialogue(1), Expected::messages(5))
}

/// Requests of minimum length, as many as fit in each segment.
pub(crate) fn tiny_requests() -> Case {
    let requests = b"GET / HTTP/1.1\n\n".repeat(91);
    (filled(Input::tcp(80), |input, _| input.send(Client, &requests)), Expected::messages(1000))
}

/// Chunks of one octet each.
pub(crate) fn tiny_chunks() -> Case {
    let chunks = b"1\r\nx\r\n".repeat(243);
    (filled(chunked(), |input, _| input.send(Server, &chunks)), Expected::messages(1000))
}

/// A head that arrives octet by octet after it has almost reached its maximum length.
pub(crate) fn head_by_octets() -> Case {
    let mut input = Input::tcp(80);
    input.send(Client, b"GET / HTTP/1.1\r\nCookie: ");
    input.send(Client, &[b'a'; 44 << 10]);
    (filled(input, |input, _| input.send_in(1, Client, b"a")), Expected::messages(0))
}

/// The line before a chunk, which arrives octet by octet after it has almost reached its maximum length.
pub(crate) fn chunk_line_by_octets() -> Case {
    let line = [&b"1;"[..], &[b'a'; 3700]].concat();
    let input = filled(chunked(), |input, _| {
        input.send(Server, &line);
        input.send_in(1, Server, &[b'a'; 300]);
        input.send(Server, b"\nx\r\n");
    });
    (input, Expected::messages(3))
}

/// Octets without a line end after a gap, where the parser searches for the next message.
pub(crate) fn lost_by_octets() -> Case {
    let mut input = Input::tcp(80);
    input.send(Client, request(0).as_bytes());
    input.add_gap(Client, 1000);
    input.send(Client, &[b'a'; 9000]);
    (filled(input, |input, _| input.send_in(1, Client, b"a")), Expected::messages(2))
}

/// Octets after a request to upgrade the protocol, which are held until the response.
pub(crate) fn waiting_by_octets() -> Case {
    let input = filled(Input::tcp(80), |input, _| {
        input.flow();
        input.send(Client, b"GET / HTTP/1.1\r\nUpgrade: x\r\n\r\n");
        input.send(Client, &[b'A'; 20]);
        input.send(Client, b" ");
        input.send(Client, &[b'a'; 1700]);
        input.send_in(1, Client, &[b'a'; 300]);
    });
    (input, Expected::messages(4))
}

/// A target with many possible positions of user information.
pub(crate) fn user_information() -> Case {
    let request =
        format!("GET {} HTTP/1.1\r\nReferer: {}\r\n\r\n", "http://@".repeat(2000), "//@/".repeat(4000));
    (filled(Input::tcp(80), |input, _| input.send(Client, request.as_bytes())), Expected::messages(2))
}

/// Heads with fields that are folded over lines of one octet.
pub(crate) fn folded_fields() -> Case {
    let request = format!("GET / HTTP/1.1\r\nA: b{}\r\n\r\n", "\n ".repeat(15_000));
    (filled(Input::tcp(80), |input, _| input.send(Client, request.as_bytes())), Expected::messages(2))
}
