//! Parser of DTLS records in datagrams.

use super::client_hello::{ClientHello, Transport};
use super::fragments::{Fragment, Fragments, JOIN_CREDIT};
use super::handshake::{CLIENT_HELLO, Handshake};
use super::message::{Alert, ChangeCipherSpec, Message};
use super::stream::{ALERT, APPLICATION_DATA, CHANGE_CIPHER_SPEC, HANDSHAKE, HEARTBEAT, RECORD_LEN_MAX};
use crate::checkpoint::state;
use crate::codec::Reader;
use crate::session::credit::Credit;
use crate::session::{Datagram, DatagramOpening, Fault, Out, Parser, Progress, Remains};

/// Content type of an encrypted record with a connection id (RFC 9146).
const ENCRYPTED_WITH_ID: u8 = 25;

/// Maximum number of successive DTLS handshakes between the same ports that are parsed after the first one was encrypted.
pub const CONVERSATION_COUNT_MAX: u8 = 64;

/// Parser of DTLS over datagrams. `Default` is the state before the first datagram.
///
/// The parser is done when both sides have sent encrypted records; another handshake then has a new parser. Datagrams of other protocols on the same ports are
/// ignored, such as those that WebRTC multiplexes (RFC 7983).
#[derive(Debug)]
pub struct DtlsParser {
    handshake: Handshake,
    /// First eight octets of the client's random value, by which another handshake on the same ports is detected.
    random: u64,
    fragments: [Fragments; 2],
    /// Remaining credit, in octets, for the growth of buffers in which fragmented handshake messages are reassembled.
    join_credit: Credit,
    is_encrypted: [bool; 2],
    /// Number of earlier conversations of the flow whose parsers were done.
    conversation_count: u8,
}

// Fragments of messages are not saved: the sender repeats messages.
state! { struct DtlsParser { handshake, random, join_credit, is_encrypted, conversation_count, .. fragments } }

impl Default for DtlsParser {
    fn default() -> Self {
        Self {
            handshake: Handshake::new(Transport::Datagram),
            random: 0,
            fragments: Default::default(),
            join_credit: Credit::new(JOIN_CREDIT),
            is_encrypted: [false; 2],
            conversation_count: 0,
        }
    }
}

/// A DTLS record in the clear, or an encrypted one with a header in the clear.
#[derive(Clone, Copy, Debug)]
pub(super) struct Record<'a> {
    pub(super) kind: u8,
    pub(super) epoch: u16,
    pub(super) content: &'a [u8],
}

impl<'a> Record<'a> {
    /// Parses the next DTLS record and consumes it from `reader` (RFC 6347 section 4.1); `None` if the record is
    /// invalid or truncated.
    pub(super) fn read(reader: &mut Reader<'a>) -> Option<Self> {
        let mut ahead = *reader;
        let (kind, version, epoch) =
            (ahead.be::<u8>().ok()?, ahead.be::<u16>().ok()?, ahead.be::<u16>().ok()?);
        ahead.skip(6).ok()?;
        let len = usize::from(ahead.be::<u16>().ok()?);
        let is_record = matches!(kind, CHANGE_CIPHER_SPEC..=HEARTBEAT)
            && matches!(version, 0xfeff | 0xfefd | 0xfefc | 0x0100)
            && len <= RECORD_LEN_MAX;
        if !is_record {
            return None;
        }
        let content = ahead.bytes(len).ok()?;
        *reader = ahead;
        Some(Self { kind, epoch, content })
    }
}

/// Returns whether `first` may be the first octet of an encrypted record of DTLS 1.3 (RFC 9147 section 4).
const fn is_unified(first: u8) -> bool {
    first >> 5 == 1
}

impl Parser for DtlsParser {
    type Message<'m> = Message<'m>;

    crate::session::saved!();

    fn datagram(&mut self, datagram: &Datagram<'_>, out: Out<'_, Self>) -> Result<Progress, Fault> {
        let mut reader = Reader::new(datagram.bytes);
        let place = datagram.from.index();
        while let Some(record) = Record::read(&mut reader) {
            match record.kind {
                _ if record.epoch > 0 => self.encrypted(place),
                APPLICATION_DATA | HEARTBEAT => {}
                CHANGE_CIPHER_SPEC => out(Message::ChangeCipherSpec(ChangeCipherSpec {})),
                ALERT => {
                    if let Some(alert) = Alert::parse(record.content) {
                        out(Message::Alert(alert));
                    }
                }
                HANDSHAKE => self.handshake_record(place, record.content, out),
                _ => {}
            }
        }
        match reader.rest().first() {
            Some(first) if is_unified(*first) && self.handshake.hides() == Some(true) => {
                self.encrypted(place)
            }
            Some(&ENCRYPTED_WITH_ID) if self.handshake.chosen.is_some() => self.encrypted(place),
            _ => {}
        }
        let is_over = self.is_encrypted == [true; 2];
        Ok(if is_over { Progress::Done } else { Progress::Took(datagram.bytes.len()) })
    }

    #[inline]
    fn is_content(message: &Message<'_>) -> bool {
        message.is_step()
    }

    fn remains(&self) -> Option<Remains> {
        let count = self.conversation_count.checked_add(1)?;
        (count <= CONVERSATION_COUNT_MAX).then_some(Remains { count, mark: self.random })
    }

    fn succeed(&mut self, remains: Remains) {
        self.conversation_count = remains.count;
    }

    fn heap_len(&self) -> usize {
        self.fragments.iter().map(Fragments::heap_len).sum()
    }
}

impl DtlsParser {
    fn encrypted(&mut self, place: usize) {
        if let Some(is_encrypted) = self.is_encrypted.get_mut(place) {
            *is_encrypted = true;
        }
        if let Some(fragments) = self.fragments.get_mut(place) {
            fragments.clear();
        }
    }

    /// Processes the fragments of handshake messages in a record of the side with index `place`. Invalid fragments are
    /// ignored, because anyone can send a datagram.
    fn handshake_record(&mut self, place: usize, content: &[u8], out: Out<'_, Self>) {
        let mut reader = Reader::new(content);
        while let Some(fragment) = Fragment::read(&mut reader) {
            self.begin_anew(&fragment);
            let Self { handshake, fragments, join_credit, .. } = self;
            let Some(fragments) = fragments.get_mut(place) else { return };
            if let Some(whole) = fragments.add(&fragment, join_credit) {
                // A malformed hello is ignored.
                let _ = handshake.take((fragment.kind, &whole), &mut |message| {
                    out(match message {
                        Message::ClientHello(hello) => {
                            let message_sequence = fragment.sequence;
                            Message::ClientHello(ClientHello { message_sequence, ..hello })
                        }
                        message => message,
                    });
                });
            }
        }
    }

    /// Resets the state of the parser if the fragment starts a ClientHello with another random value: a new handshake
    /// on the same ports.
    fn begin_anew(&mut self, fragment: &Fragment<'_>) {
        if let Some(random) = random_of(fragment)
            && random != self.random
        {
            let Self { join_credit, conversation_count, .. } = *self;
            *self = Self { random, join_credit, conversation_count, ..Self::default() };
        }
    }
}

/// Returns the first eight octets of the random value if the fragment starts a first ClientHello.
fn random_of(fragment: &Fragment<'_>) -> Option<u64> {
    let is_first = fragment.kind == CLIENT_HELLO && fragment.sequence == 0 && fragment.offset == 0;
    let random = fragment.bytes.get(2..).filter(|_| is_first)?.first_chunk()?;
    Some(u64::from_be_bytes(*random))
}

/// Returns whether a datagram begins another handshake than the one with a random value: its first record is a first
/// ClientHello of epoch 0 with another one.
pub(super) fn begins_another(opening: &DatagramOpening<'_>, random: u64) -> bool {
    let record = Record::read(&mut Reader::new(opening.bytes));
    let record = record.filter(|record| record.kind == HANDSHAKE && record.epoch == 0);
    let fragment = record.and_then(|record| Fragment::read(&mut Reader::new(record.content)));
    fragment.and_then(|fragment| random_of(&fragment)).is_some_and(|other| other != random)
}
