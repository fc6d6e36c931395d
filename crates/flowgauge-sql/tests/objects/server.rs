//! A server of HTTP/1.1 on the loopback interface, with ranges, ETags, and faults.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

/// How the server behaves.
#[derive(Clone, Debug, Default)]
pub(crate) struct Faults {
    /// Number of answers that end in the middle, and after how many octets.
    pub(crate) truncated_count: usize,
    pub(crate) truncated_len: usize,
    /// Answers without their last half, for which the reader waits.
    pub(crate) is_stalled: bool,
    /// Conditions of requests are ignored.
    pub(crate) is_unconditional: bool,
    /// The whole object is the answer to a request for a range.
    pub(crate) has_no_ranges: bool,
}

#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) objects: BTreeMap<String, Arc<Vec<u8>>>,
    pub(crate) faults: Faults,
    /// Lengths of the ranges that were requested.
    pub(crate) ranges: Vec<usize>,
    /// Number of octets that were sent.
    pub(crate) sent_len: usize,
    /// Number of answers whose reader has closed the connection while they were stalled.
    pub(crate) closed_count: usize,
}

/// A server, which ends with the process.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    state: Arc<Mutex<State>>,
}

impl Server {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(Mutex::new(State::default()));
        let shared = Arc::clone(&state);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let state = Arc::clone(&shared);
                std::thread::spawn(move || serve(stream.unwrap(), &state));
            }
        });
        Self { address, state }
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// Adds or replaces an object, and returns its URL.
    pub(crate) fn put(&self, name: &str, octets: Vec<u8>) -> String {
        self.state().objects.insert(name.to_owned(), Arc::new(octets));
        format!("http://{}/{}", self.address, name.replace(' ', "%20"))
    }
}

fn e_tag(octets: &[u8]) -> String {
    let sum = octets.iter().fold(17_u64, |sum, octet| sum.wrapping_mul(31).wrapping_add((*octet).into()));
    format!("\"{sum:x}\"")
}

/// Answers the requests of a connection.
fn serve(mut stream: TcpStream, state: &Mutex<State>) {
    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
    while let Some(Ok(request)) = lines.next() {
        let headers: Vec<String> =
            lines.by_ref().map_while(Result::ok).take_while(|line| !line.is_empty()).collect();
        let header = |name: &str| {
            let is_named = |line: &&String| line.to_ascii_lowercase().starts_with(&format!("{name}:"));
            headers.iter().find(is_named).map(|line| line[name.len() + 1..].trim().to_owned())
        };
        let mut words = request.split(' ');
        let (method, path) = (words.next().unwrap().to_owned(), words.next().unwrap().replace("%20", " "));
        let (object, faults) = {
            let state = state.lock().unwrap();
            (state.objects.get(path.trim_start_matches('/')).cloned(), state.faults.clone())
        };
        let Some(object) = object else {
            let answer = "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n";
            stream.write_all(answer.as_bytes()).unwrap();
            continue;
        };
        let e_tag = e_tag(&object);
        if !faults.is_unconditional && header("if-match").is_some_and(|wanted| wanted != e_tag) {
            stream.write_all(b"HTTP/1.1 412 Precondition Failed\r\nContent-Length: 0\r\n\r\n").unwrap();
            continue;
        }
        let range = header("range").filter(|_| !faults.has_no_ranges).map(|range| {
            let (first, last) = range.strip_prefix("bytes=").unwrap().split_once('-').unwrap();
            let end = last.parse::<usize>().map_or(object.len(), |last| (last + 1).min(object.len()));
            first.parse::<usize>().unwrap()..end
        });
        let status = if range.is_some() { "206 Partial Content" } else { "200 OK" };
        let content_range = range.as_ref().map_or_else(String::new, |range| {
            format!("Content-Range: bytes {}-{}/{}\r\n", range.start, range.end - 1, object.len())
        });
        let body = &object[range.unwrap_or(0..object.len())];
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Length: {}\r\nETag: {e_tag}\r\n{content_range}Accept-Ranges: bytes\r\n\r\n",
            body.len()
        );
        if stream.write_all(head.as_bytes()).is_err() {
            return;
        }
        if method == "HEAD" {
            continue;
        }
        let mut len = body.len();
        {
            let mut state = state.lock().unwrap();
            state.ranges.push(len);
            if state.faults.truncated_count > 0 {
                state.faults.truncated_count -= 1;
                len = len.min(faults.truncated_len);
            }
        }
        if faults.is_stalled {
            len /= 2;
        }
        let mut sent_len = 0;
        while sent_len < len {
            let end = (sent_len + (64 << 10)).min(len);
            if stream.write_all(&body[sent_len..end]).is_err() {
                return;
            }
            state.lock().unwrap().sent_len += end - sent_len;
            sent_len = end;
        }
        if faults.is_stalled {
            stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
            if lines.next().is_none_or(|line| line.is_err()) {
                state.lock().unwrap().closed_count += 1;
            }
            return;
        }
        if len < body.len() {
            return;
        }
    }
}
