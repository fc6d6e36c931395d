//! Parser of TLS records in a stream.

use super::client_hello::Transport;
use super::handshake::{
    CERTIFICATE, CLIENT_HELLO, HANDSHAKE_LEN_MAX, HEADER_LEN, Handshake, SERVER_HELLO, is_kind, sender,
};
use super::message::{Alert, ChangeCipherSpec, Message, Ssl2ClientHello, Step};
use crate::checkpoint::state;
use crate::session::{AfterGap, Fault, Input, Missing, Out, Parser, Progress, Role};

/// Length of a TLS record header in octets.
pub(super) const RECORD_HEADER_LEN: usize = 5;

/// Maximum length of a TLS record in octets, without its header (RFC 5246 section 6.2.3).
pub(super) const RECORD_LEN_MAX: usize = 16_384 + 2048;

pub(super) const CHANGE_CIPHER_SPEC: u8 = 20;
pub(super) const ALERT: u8 = 21;
pub(super) const HANDSHAKE: u8 = 22;
pub(super) const APPLICATION_DATA: u8 = 23;
pub(super) const HEARTBEAT: u8 = 24;

/// Parser of TLS over a stream. `Default` is the state before the first octet.
///
/// A direction is done when everything that follows is encrypted: up to TLS 1.2 after ChangeCipherSpec; since TLS 1.3 with the
/// first encrypted record following the ServerHello.
#[derive(Debug)]
pub struct TlsParser {
    handshake: Handshake,
    lanes: [Lane; 2],
}

/// Parsing state of one direction of a TLS stream.
#[derive(Debug, Default)]
struct Lane {
    /// Received octets of an incomplete handshake message, including its header.
    partial: Vec<u8>,
    /// Number of remaining octets of an encrypted record, which are skipped.
    skip_len: usize,
    /// True after a gap or a ChangeCipherSpec: the next octets may be anything, so that an invalid record is not a
    /// fault.
    is_doubtful: bool,
    /// True after a gap up to the next handshake record in the clear: the gap may contain a ChangeCipherSpec.
    is_behind_gap: bool,
    /// True if a record was received in this direction.
    has_begun: bool,
    /// True if ChangeCipherSpec was received in this direction.
    has_changed: bool,
    /// True if the direction started with a hello of SSL 2.0.
    is_ssl2: bool,
}

state! { struct TlsParser { handshake, lanes } }
state! { struct Lane { partial, skip_len, is_doubtful, is_behind_gap, has_begun, has_changed, is_ssl2 } }

impl Default for TlsParser {
    fn default() -> Self {
        Self { handshake: Handshake::new(Transport::Stream), lanes: Default::default() }
    }
}

/// Action after a TLS record was processed.
enum After {
    GoOn,
    Done,
}

/// Returns the content type and the length of the TLS record that starts with `bytes`; `None` if its header is
/// incomplete.
pub(super) fn record_header(bytes: &[u8]) -> Option<Result<(u8, usize), Fault>> {
    let [kind, major, minor, len @ ..] = *bytes.first_chunk::<RECORD_HEADER_LEN>()?;
    let len = usize::from(u16::from_be_bytes(len));
    let is_record =
        matches!(kind, CHANGE_CIPHER_SPEC..=HEARTBEAT) && major == 3 && minor <= 4 && len <= RECORD_LEN_MAX;
    Some(if is_record { Ok((kind, len)) } else { Err(Fault::new("bad_record")) })
}

impl Parser for TlsParser {
    type Message<'m> = Message<'m>;

    crate::session::saved!();

    fn bytes(&mut self, input: &Input<'_>, out: Out<'_, Self>) -> Result<Progress, Fault> {
        let mut taken = 0;
        loop {
            let rest = input.bytes.get(taken..).unwrap_or_default();
            let lane = input.from.of_mut(&mut self.lanes);
            if lane.skip_len > 0 {
                let len = lane.skip_len.min(rest.len());
                lane.skip_len -= len;
                taken += len;
                if lane.skip_len > 0 {
                    return Ok(Progress::Took(taken));
                }
                continue;
            }
            if rest.is_empty() {
                return Ok(Progress::Took(taken));
            }
            if !lane.has_begun && rest.first().is_some_and(|first| first & 0x80 != 0) {
                match self.ssl2(input.from, rest, out)? {
                    Ssl2::Took(len) => taken += len,
                    Ssl2::Needs(need) => return Ok(Progress::Needs { taken, need }),
                    Ssl2::Done => return Ok(Progress::Done),
                }
                continue;
            }
            let (kind, len) = match record_header(rest) {
                None => return Ok(Progress::Needs { taken, need: RECORD_HEADER_LEN }),
                Some(Err(_)) if lane.is_doubtful => return Ok(Progress::Done),
                Some(header) => header?,
            };
            lane.has_begun = true;
            if matches!(kind, APPLICATION_DATA | HEARTBEAT) {
                if kind == APPLICATION_DATA && self.is_over(input.from) {
                    if self.handshake.hides() == Some(true) {
                        out(Message::Step(Step { handshake_type: None }));
                    }
                    return Ok(Progress::Done);
                }
                let lane = input.from.of_mut(&mut self.lanes);
                (lane.skip_len, lane.partial) = (len, Vec::new());
                taken += RECORD_HEADER_LEN;
                continue;
            }
            let Some(content) = rest.get(RECORD_HEADER_LEN..RECORD_HEADER_LEN + len) else {
                return Ok(Progress::Needs { taken, need: RECORD_HEADER_LEN + len });
            };
            taken += RECORD_HEADER_LEN + len;
            match self.record(input.from, kind, content, out) {
                Ok(After::GoOn) => {}
                Ok(After::Done) => return Ok(Progress::Done),
                Err(_) if input.from.of(&self.lanes).is_doubtful => return Ok(Progress::Done),
                Err(fault) => return Err(fault),
            }
        }
    }

    fn gap(&mut self, missing: &Missing<'_>, _: Out<'_, Self>) -> AfterGap {
        let lane = missing.from.of_mut(&mut self.lanes);
        match usize::try_from(missing.len) {
            // The gap is inside an encrypted record.
            Ok(len) if len <= lane.skip_len => lane.skip_len -= len,
            _ => {
                let has_changed = lane.has_changed;
                *lane = Lane {
                    is_doubtful: true,
                    is_behind_gap: true,
                    has_begun: true,
                    has_changed,
                    ..Lane::default()
                };
            }
        }
        AfterGap::Resume
    }

    #[inline]
    fn is_content(message: &Message<'_>) -> bool {
        message.is_step()
    }

    fn heap_len(&self) -> usize {
        self.lanes.iter().map(|lane| lane.partial.capacity()).sum()
    }
}

enum Ssl2 {
    Took(usize),
    Needs(usize),
    Done,
}

impl TlsParser {
    /// Returns whether encrypted data from a side imply that this side sends nothing more in the clear.
    fn is_over(&self, from: Role) -> bool {
        // Early data may be followed by another ClientHello, if the server requests one.
        from == Role::Server || !self.handshake.has_early_data || self.handshake.chosen.is_some()
    }

    /// Processes the start of a direction whose first octet has the high bit set, as in SSL 2.0.
    fn ssl2(&mut self, from: Role, rest: &[u8], out: Out<'_, Self>) -> Result<Ssl2, Fault> {
        if from == Role::Server && Role::Client.of(&self.lanes).is_ssl2 {
            // SSL 2.0 was chosen, of which nothing more is parsed.
            return Ok(Ssl2::Done);
        }
        if rest.len() < Ssl2ClientHello::HEAD_LEN {
            return Ok(Ssl2::Needs(Ssl2ClientHello::HEAD_LEN));
        }
        let len = Ssl2ClientHello::record_len(rest).ok_or(Fault::new("bad_record"))?;
        let Some(hello) = Ssl2ClientHello::parse(rest) else { return Ok(Ssl2::Needs(len)) };
        let lane = from.of_mut(&mut self.lanes);
        (lane.has_begun, lane.is_ssl2) = (true, true);
        out(Message::Ssl2ClientHello(hello));
        Ok(Ssl2::Took(len))
    }

    /// Processes a complete TLS record other than application data.
    fn record(&mut self, from: Role, kind: u8, content: &[u8], out: Out<'_, Self>) -> Result<After, Fault> {
        match kind {
            CHANGE_CIPHER_SPEC => {
                let lane = from.of_mut(&mut self.lanes);
                // From here on, octets that resemble a message may be encrypted.
                (lane.has_changed, lane.is_doubtful, lane.partial) = (true, true, Vec::new());
                out(Message::ChangeCipherSpec(ChangeCipherSpec {}));
                let hides = self.handshake.hides().unwrap_or(self.handshake.offers_hiding);
                Ok(if hides { After::GoOn } else { After::Done })
            }
            ALERT => {
                if let Some(alert) = Alert::parse(content) {
                    out(Message::Alert(alert));
                }
                Ok(After::GoOn)
            }
            _ => self.handshake_record(from, content, out),
        }
    }

    /// Processes the messages in a handshake record, including a message that started in earlier records.
    fn handshake_record(&mut self, from: Role, content: &[u8], out: Out<'_, Self>) -> Result<After, Fault> {
        let Self { handshake, lanes } = self;
        let lane = from.of_mut(lanes);
        // Another hello may follow ChangeCipherSpec; anything else is encrypted.
        let is_hello = matches!(content.first(), Some(&CLIENT_HELLO | &SERVER_HELLO));
        if lane.has_changed && lane.partial.is_empty() && !is_hello {
            return Ok(After::Done);
        }
        if std::mem::take(&mut lane.is_behind_gap) && !is_clear(from, content) {
            return Ok(After::Done);
        }
        let mut rest = content;
        if !lane.partial.is_empty() {
            rest = lane.complete(rest, handshake, out)?;
        }
        while let Some((message, after)) = split_message(rest)? {
            handshake.take(message, out)?;
            rest = after;
        }
        // Everything behind a ServerHello of TLS 1.3 is encrypted, but for a ChangeCipherSpec.
        lane.is_doubtful |= from == Role::Server && handshake.hides() == Some(true);
        if !rest.is_empty() {
            lane.partial = Vec::with_capacity(message_len(rest)?.unwrap_or(HEADER_LEN));
            lane.partial.extend_from_slice(rest);
        }
        Ok(After::GoOn)
    }
}

impl Lane {
    /// Appends octets of a record to the incomplete handshake message, and processes the message if it is now complete.
    /// Returns the remaining octets of the record.
    fn complete<'c>(
        &mut self,
        content: &'c [u8],
        handshake: &mut Handshake,
        out: Out<'_, TlsParser>,
    ) -> Result<&'c [u8], Fault> {
        let mut rest = content;
        let header_len = HEADER_LEN.saturating_sub(self.partial.len()).min(rest.len());
        rest = self.add(rest, header_len);
        let Some(len) = message_len(&self.partial)? else { return Ok(rest) };
        let missing_len = len.saturating_sub(self.partial.len()).min(rest.len());
        self.partial.reserve_exact(len.saturating_sub(self.partial.len()));
        rest = self.add(rest, missing_len);
        if self.partial.len() == len {
            let whole = std::mem::take(&mut self.partial);
            if let Some((message, _)) = split_message(&whole)? {
                handshake.take(message, out)?;
            }
        }
        Ok(rest)
    }

    fn add<'c>(&mut self, content: &'c [u8], len: usize) -> &'c [u8] {
        let (added, rest) = content.split_at_checked(len).unwrap_or((content, &[]));
        self.partial.extend_from_slice(added);
        rest
    }
}

/// Returns whether all of a record behind a gap may be handshake messages that a role sends in the clear. The nonce at the
/// start of an encrypted one may resemble a message.
fn is_clear(from: Role, content: &[u8]) -> bool {
    let mut rest = content;
    while let Some(kind) = rest.first() {
        let is_sent = sender(*kind).map_or(*kind == CERTIFICATE, |sender| sender == from);
        match split_message(rest) {
            Ok(Some(((0, []), after))) if from == Role::Server => rest = after,
            Ok(Some((_, after))) if is_sent => rest = after,
            Ok(None) => return is_sent,
            _ => return false,
        }
    }
    true
}

/// Returns the length of the first handshake message in `bytes` including its header; `None` if the header is
/// incomplete.
fn message_len(bytes: &[u8]) -> Result<Option<usize>, Fault> {
    if bytes.first().is_some_and(|kind| !is_kind(*kind)) {
        return Err(Fault::new("bad_handshake_type"));
    }
    let Some([_, len @ ..]) = bytes.first_chunk::<HEADER_LEN>() else { return Ok(None) };
    let [high, middle, low] = len.map(usize::from);
    let len = high << 16 | middle << 8 | low;
    if len > HANDSHAKE_LEN_MAX {
        return Err(Fault::new("handshake_too_long"));
    }
    Ok(Some(HEADER_LEN + len))
}

type Split<'a> = ((u8, &'a [u8]), &'a [u8]);

/// Returns type and body of the first handshake message in `bytes`, and the octets after it; `None` if the message is
/// incomplete.
fn split_message(bytes: &[u8]) -> Result<Option<Split<'_>>, Fault> {
    let Some(len) = message_len(bytes)? else { return Ok(None) };
    let Some((message, rest)) = bytes.split_at_checked(len) else { return Ok(None) };
    let Some(([kind, ..], body)) = message.split_first_chunk::<HEADER_LEN>() else { return Ok(None) };
    Ok(Some(((*kind, body), rest)))
}
