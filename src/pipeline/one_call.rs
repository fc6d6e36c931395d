//! One call for the messages of a source that most programs need.

use std::iter::FusedIterator;

use super::builder::Builder;
use super::error::Error;
use crate::protocols::{Message, OwnedClientHello, OwnedDnsMessage, OwnedHttpHead, Standard};
use crate::row::Union as _;
use crate::session::{MessageHead, MessageMeta};
use crate::source::Source;
use crate::tracker::FlowView;

/// A message, with its time, flow and sender.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Seen<T> {
    /// Time, flow and sender of the message.
    pub head: MessageHead,
    /// The message.
    pub message: T,
}

/// Iterates over the ClientHellos of TLS, DTLS and QUIC in a source, with the default settings.
///
/// The iterators of this kind copy what most programs need; [`Builder::messages`] copies what a function selects, and
/// [`on_message`](super::on_message) nothing. An error of the source is the last item.
///
/// ```
/// for hello in flowgauge::client_hellos(flowgauge::FileSource::open("examples/data/web.pcap")?) {
///     let hello = hello?;
///     println!("{} {:?} {}", hello.head.source.0, hello.message.server_name, hello.message.ja4);
/// }
/// # Ok::<(), flowgauge::Error>(())
/// ```
pub fn client_hellos(
    source: impl Source,
) -> impl FusedIterator<Item = Result<Seen<OwnedClientHello>, Error>> {
    seen(source, OwnedClientHello::of)
}

/// Iterates over the messages of DNS, mDNS and LLMNR in a source, with the default settings.
///
/// ```
/// for message in flowgauge::dns_messages(flowgauge::FileSource::open("examples/data/dns.pcap")?) {
///     let message = message?.message;
///     for answer in &message.answers {
///         println!("{} {} {} {:?}", answer.name, answer.record_type, answer.data, message.response_time);
///     }
/// }
/// # Ok::<(), flowgauge::Error>(())
/// ```
pub fn dns_messages(source: impl Source) -> impl FusedIterator<Item = Result<Seen<OwnedDnsMessage>, Error>> {
    seen(source, OwnedDnsMessage::of)
}

/// Iterates over the heads of requests and responses of HTTP/1.x and HTTP/2 in a source, with the default settings.
///
/// ```
/// use flowgauge::protocols::HttpStart;
///
/// for head in flowgauge::http_heads(flowgauge::FileSource::open("examples/data/web.pcap")?) {
///     if let HttpStart::Request { method, target, host, .. } = head?.message.start {
///         println!("{method} {target} {host:?}");
///     }
/// }
/// # Ok::<(), flowgauge::Error>(())
/// ```
pub fn http_heads(source: impl Source) -> impl FusedIterator<Item = Result<Seen<OwnedHttpHead>, Error>> {
    seen(source, OwnedHttpHead::of)
}

#[expect(clippy::expect_used, reason = "a test builds a pipeline with the default settings")]
fn seen<T>(
    source: impl Source,
    mut copy: impl FnMut(&Message<'_>) -> Option<T>,
) -> impl FusedIterator<Item = Result<Seen<T>, Error>> {
    let select = move |view: &FlowView<'_>, meta: &MessageMeta, message: &Message<'_>| {
        let copied = copy(message)?;
        let head = MessageHead::new(view, view.community_id(), meta, message.row().table);
        Some(Seen { head, message: copied })
    };
    Builder::default().messages::<Standard, _, _, _>(source, select).expect("the default settings are valid")
}
