//! Names of servers: what a client requests, or what DNS answered it before.

use std::net::IpAddr;
use std::num::NonZeroUsize;
use std::time::Duration;

use lru::LruCache;

use super::dns;
use super::standard::Message;
use super::{http1, http2};
use crate::base::Timestamp;
use crate::session::Text;

/// How long an answer of DNS names its address at least: programs keep addresses for longer than their time to live.
const LIFE_MIN: Duration = Duration::from_secs(3600);
/// Maximum length of a name in octets (RFC 1035 section 3.1, in text).
const NAME_LEN_MAX: usize = 255;

/// The name of a server, in lower case and without a port, and how it is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerName {
    /// The name.
    pub name: Box<str>,
    /// What states it.
    pub evidence: NameEvidence,
}

/// What states the name of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NameEvidence {
    /// The ClientHello of TLS or DTLS.
    Tls,
    /// The ClientHello of QUIC.
    Quic,
    /// The host of an HTTP request.
    Http,
    /// An answer of DNS to the client, which contained the address of the server.
    Dns,
}

crate::row::cells! {
    name NameEvidence { Tls => "tls", Quic => "quic", Http => "http", Dns => "dns" }
}

impl ServerName {
    /// Returns the name of the server in a ClientHello or a request; `None` for any other message, and for an address.
    ///
    /// ```
    /// use flowgauge::protocols::ServerName;
    /// use flowgauge::{FileSource, Pipeline, Standard};
    ///
    /// let source = FileSource::open("examples/data/web.pcap")?;
    /// let names = Pipeline::builder().messages::<Standard, _, _, _>(source, |_, _, message| ServerName::of(message))?;
    /// assert!(names.flatten().any(|server| &*server.name == "web6.example"));
    /// # Ok::<(), flowgauge::Error>(())
    /// ```
    #[must_use]
    pub fn of(message: &Message<'_>) -> Option<Self> {
        let (name, evidence) = match message {
            Message::Http1(http1::Message::Request(head)) => (head.host?, NameEvidence::Http),
            Message::Http2(http2::Message::Request(head)) => (head.host?, NameEvidence::Http),
            Message::Quic(_) => (message.client_hello()?.server_name()?, NameEvidence::Quic),
            _ => (message.client_hello()?.server_name()?, NameEvidence::Tls),
        };
        Some(Self { name: host(name)?, evidence })
    }
}

/// Returns a name without its port, in lower case; `None` for an address or an invalid name.
fn host(text: Text<'_>) -> Option<Box<str>> {
    let text = std::str::from_utf8(text.0).ok()?.trim();
    let name = match text.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|octet| octet.is_ascii_digit()) => name,
        _ => text,
    };
    let name = name.trim_end_matches('.');
    let is_name = !name.is_empty()
        && name.len() <= NAME_LEN_MAX
        && !name.starts_with('[')
        && !name.contains(|character: char| character.is_whitespace() || character.is_control())
        && name.parse::<IpAddr>().is_err();
    is_name.then(|| name.to_ascii_lowercase().into_boxed_str())
}

/// Names that answers of DNS gave to addresses, for each client. At most as many as its limit; the least recently used ones
/// are removed first. A name has at most 255 octets.
#[derive(Debug)]
pub struct NameCache {
    names: LruCache<(IpAddr, IpAddr), Answer>,
    len_max: usize,
    /// Octets of all names.
    names_len: usize,
    /// Memory in bytes that the cache may have.
    heap_len_max: usize,
}

/// Memory in bytes of an entry without its name: the node, its name's allocation, and its places in a table that grows.
const ENTRY_LEN: usize = size_of::<((IpAddr, IpAddr), Answer)>() + 120;

/// A name, and until when it names the address.
#[derive(Debug)]
struct Answer {
    name: Box<str>,
    until: Timestamp,
}

impl NameCache {
    /// Creates an empty cache of at most `len_max` addresses.
    #[must_use]
    pub fn new(len_max: NonZeroUsize) -> Self {
        let names = LruCache::unbounded();
        Self { names, len_max: len_max.get(), names_len: 0, heap_len_max: usize::MAX }
    }

    /// Keeps the addresses that a message of DNS answers to `client` with the name that it queried. Other messages have no
    /// effect.
    pub fn learn(&mut self, client: IpAddr, now: Timestamp, message: &Message<'_>) {
        let Message::Dns(dns::Message::Response(response)) = message else { return };
        let Some(question) = response.questions().next() else { return };
        let Some(name) = host(Text(question.name.to_string().as_bytes())) else { return };
        for record in response.answers() {
            let Some(address) = record.data.address() else { continue };
            let life = Duration::from_secs(record.ttl.into()).max(LIFE_MIN);
            let until = now.saturating_add(life);
            self.names_len += name.len();
            let earlier = self.names.put((client, address), Answer { name: name.clone(), until });
            self.names_len -= earlier.map_or(0, |earlier| earlier.name.len());
            self.remove_excess();
        }
    }

    /// Returns the memory of the cache in bytes.
    #[must_use]
    pub fn heap_len(&self) -> usize {
        self.names.len() * ENTRY_LEN + self.names_len
    }

    /// Limits the memory of the cache, in bytes. The least recently used names that exceed it are removed.
    pub fn set_heap_len_max(&mut self, heap_len_max: usize) {
        self.heap_len_max = heap_len_max;
        self.remove_excess();
    }

    #[inline]
    fn remove_excess(&mut self) {
        while self.names.len() > self.len_max || self.heap_len() > self.heap_len_max {
            let Some((_, answer)) = self.names.pop_lru() else { return };
            self.names_len -= answer.name.len();
        }
    }

    /// Returns the name that DNS answered to `client` last for the address of `server`.
    pub fn find(&mut self, client: IpAddr, server: IpAddr, now: Timestamp) -> Option<ServerName> {
        let answer = self.names.get(&(client, server)).filter(|answer| now <= answer.until)?;
        Some(ServerName { name: answer.name.clone(), evidence: NameEvidence::Dns })
    }
}
