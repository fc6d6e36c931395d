//! Parser of SSH: an identification line, then packets, then what is encrypted, separately for each side.

use memchr::memchr;

use super::guess::Guess;
use super::kexinit::{KexInit, Negotiated};
use super::message::{Authentication, Disconnect, HostKey, Identification, Message};
use super::probe::LINES_BEFORE_MAX;
use super::{IDENTIFICATION_LEN_MAX, PACKET_LEN_MAX, PACKETS_BEFORE_MAX};
use crate::checkpoint::state;
use crate::session::{AfterGap, Fault, Input, Missing, Out, Parser, Progress, Role};

/// Message number of SSH_MSG_DISCONNECT (RFC 4250 section 4.1.2).
const SSH_MSG_DISCONNECT: u8 = 1;
/// Message number of SSH_MSG_KEXINIT (RFC 4250 section 4.1.2).
const SSH_MSG_KEXINIT: u8 = 20;
/// Message number of SSH_MSG_NEWKEYS, after which a side encrypts (RFC 4250 section 4.1.2).
const SSH_MSG_NEWKEYS: u8 = 21;

/// Parser of an SSH connection, up to the answer of the server to the authentication; see the [module](super).
#[derive(Debug, Default)]
pub struct SshParser {
    sides: [Stage; 2],
    /// Sender and payload of the first KEXINIT, stored until that of the other side arrives.
    offer: Option<(Role, Box<[u8]>)>,
    /// True if one side supports only SSH 1, which both sides then use, even if the other one supports both versions
    /// (RFC 4253 section 5.1).
    is_version_1: bool,
    /// Message number of the packet with the key of the server, which depends on the key exchange method.
    key_reply: Option<u8>,
    /// What the lengths of encrypted segments say.
    guess: Guess,
}

/// Stage of parsing what one side sends.
#[derive(Clone, Copy, Debug)]
enum Stage {
    /// Before the identification line; contains the number of lines received so far.
    Lines(u8),
    /// Before KEXINIT; contains the number of packets received so far.
    Packets(u8),
    /// Behind the KEXINIT of a side; contains the number of packets received so far.
    KeyExchange(u8),
    /// What follows is encrypted.
    Encrypted,
}

state! { struct SshParser { sides, offer, is_version_1, key_reply, guess } }
state! { enum Stage { 0 = Lines(count), 1 = Packets(count), 2 = KeyExchange(count), 3 = Encrypted } }

impl Default for Stage {
    fn default() -> Self {
        Self::Lines(0)
    }
}

/// Result of parsing one line or packet.
enum Step {
    Took(usize),
    Needs(usize),
    Done,
}

impl Parser for SshParser {
    type Message<'m> = Message<'m>;

    crate::session::saved!();

    fn bytes(&mut self, input: &Input<'_>, out: Out<'_, Self>) -> Result<Progress, Fault> {
        let mut taken = 0;
        loop {
            let rest = input.bytes.get(taken..).unwrap_or_default();
            let seen_len = input.seen_len.saturating_sub(taken);
            let step = match *input.from.of(&self.sides) {
                Stage::Packets(_) if self.is_version_1 => Step::Done,
                Stage::Lines(count) => self.line(rest, seen_len, input.from, count, out)?,
                Stage::Packets(count) => self.packet(rest, input.from, count, out)?,
                Stage::KeyExchange(count) => self.key_exchange(rest, input.from, count, out),
                Stage::Encrypted => self.encrypted(rest, input.from, out),
            };
            match step {
                Step::Took(len) => taken += len,
                Step::Needs(need) => return Ok(Progress::Needs { taken, need }),
                Step::Done => return Ok(Progress::Done),
            }
        }
    }

    fn gap(&mut self, missing: &Missing<'_>, _: Out<'_, Self>) -> AfterGap {
        if !matches!(missing.from.of(&self.sides), Stage::Encrypted) {
            return AfterGap::Stop;
        }
        // Nothing is missing of what is read, but the lengths that follow say nothing.
        self.guess.stop();
        AfterGap::Resume
    }

    fn heap_len(&self) -> usize {
        self.offer.as_ref().map_or(0, |(_, payload)| payload.len())
    }
}

impl SshParser {
    /// Parses one line of a side that has not sent its identification yet. `count` is the number of lines before. The
    /// first `seen_len` octets are known to contain no line end.
    fn line(
        &mut self,
        bytes: &[u8],
        seen_len: usize,
        from: Role,
        count: u8,
        out: Out<'_, Self>,
    ) -> Result<Step, Fault> {
        let window = bytes.get(..IDENTIFICATION_LEN_MAX).unwrap_or(bytes);
        let Some(end) = memchr(b'\n', window.get(seen_len..).unwrap_or_default()) else {
            return if window.len() == IDENTIFICATION_LEN_MAX {
                Err(Fault::new("line_too_long"))
            } else {
                Ok(Step::Needs(bytes.len() + 1))
            };
        };
        let end = seen_len + end;
        let line = bytes.get(..end).unwrap_or_default();
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let stage = from.of_mut(&mut self.sides);
        if !line.starts_with(b"SSH-") {
            // Section 4.2 allows lines before the identification for servers only.
            if from == Role::Client || count >= LINES_BEFORE_MAX {
                return Err(Fault::new("no_identification"));
            }
            *stage = Stage::Lines(count + 1);
            return Ok(Step::Took(end + 1));
        }
        let identification = Identification::parse(line, count).ok_or(Fault::new("bad_identification"))?;
        *stage = Stage::Packets(0);
        let is_version_2 = identification.is_version_2();
        out(Message::Identification(identification));
        self.is_version_1 |= !is_version_2;
        Ok(if is_version_2 { Step::Took(end + 1) } else { Step::Done })
    }

    /// Parses one packet of a side that has not sent KEXINIT yet. `count` is the number of packets before. No packet
    /// before KEXINIT is encrypted (RFC 4253 section 6).
    fn packet(&mut self, bytes: &[u8], from: Role, count: u8, out: Out<'_, Self>) -> Result<Step, Fault> {
        let (len, payload) = match split_packet(bytes)? {
            Split::Needs(need) => return Ok(Step::Needs(need)),
            Split::Packet(len, payload) => (len, payload),
        };
        match payload.split_first() {
            Some((&SSH_MSG_KEXINIT, rest)) => {
                self.kexinit(rest, from, out)?;
                *from.of_mut(&mut self.sides) = Stage::KeyExchange(0);
                Ok(Step::Took(len))
            }
            Some((&SSH_MSG_DISCONNECT, rest)) => {
                let disconnect = Disconnect::parse(rest).ok_or(Fault::new("bad_disconnect"))?;
                out(Message::Disconnect(disconnect));
                Ok(Step::Done)
            }
            // Section 7.1 requires KEXINIT first; ignore and debug messages are harmless.
            Some((2..=4, _)) if count < PACKETS_BEFORE_MAX => {
                *from.of_mut(&mut self.sides) = Stage::Packets(count + 1);
                Ok(Step::Took(len))
            }
            _ => Err(Fault::new("no_kexinit")),
        }
    }

    /// Parses one packet of a side behind its KEXINIT. Octets that are no such packet end the direction.
    fn key_exchange(&mut self, bytes: &[u8], from: Role, count: u8, out: Out<'_, Self>) -> Step {
        let (len, payload) = match split_packet(bytes) {
            Ok(Split::Needs(need)) => return Step::Needs(need),
            Ok(Split::Packet(len, payload)) => (len, payload),
            Err(_) => return Step::Done,
        };
        let stage = from.of_mut(&mut self.sides);
        match payload.split_first() {
            Some((&SSH_MSG_NEWKEYS, _)) => *stage = Stage::Encrypted,
            // Messages of the key exchange, and harmless ones.
            Some((kind @ (2..=4 | 30..=49), rest)) if count < PACKETS_BEFORE_MAX => {
                *stage = Stage::KeyExchange(count + 1);
                if from == Role::Server
                    && self.key_reply.take_if(|reply| *reply == *kind).is_some()
                    && let Some(key) = HostKey::parse(rest)
                {
                    out(Message::HostKey(key));
                }
            }
            _ => return Step::Done,
        }
        Step::Took(len)
    }

    /// Looks at the length of a segment. That the client sends something is all that is wanted of it.
    fn encrypted(&mut self, bytes: &[u8], from: Role, out: Out<'_, Self>) -> Step {
        if bytes.is_empty() {
            return Step::Needs(1);
        }
        if from == Role::Client {
            self.guess.client_sent();
            return Step::Done;
        }
        if self.guess.is_over() {
            return Step::Done;
        }
        let is_accepted = self.guess.server_sent(bytes.len());
        is_accepted
            .into_iter()
            .for_each(|is_accepted| out(Message::Authentication(Authentication { is_accepted })));
        if is_accepted == Some(true) { Step::Done } else { Step::Took(bytes.len()) }
    }

    fn kexinit(&mut self, payload: &[u8], from: Role, out: Out<'_, Self>) -> Result<(), Fault> {
        let own = KexInit::parse(payload, from).ok_or(Fault::new("bad_kexinit"))?;
        out(Message::KexInit(own.clone()));
        let Some((first, kept)) = self.offer.take() else {
            self.offer = Some((from, payload.into()));
            return Ok(());
        };
        if let Some(other) = KexInit::parse(&kept, first) {
            let (client, server) = if from == Role::Client { (&own, &other) } else { (&other, &own) };
            let negotiated = Negotiated::of(client, server);
            self.key_reply = negotiated.kex_algorithm.and_then(|method| key_reply(method.0));
            out(Message::Negotiated(negotiated));
        }
        Ok(())
    }
}

/// Returns the message number of the packet with the key of the server (RFC 4253 section 8, 4419 section 5, 5656 section
/// 4); `None` for methods without one, or with another form.
fn key_reply(method: &[u8]) -> Option<u8> {
    match method {
        [b'g', b's', b's', b'-', ..] | [b'r', b's', b'a', ..] => None,
        method if method.starts_with(b"diffie-hellman-group-exchange-") => Some(33),
        _ => Some(31),
    }
}

/// A packet at the start of octets.
enum Split<'a> {
    Needs(usize),
    /// Number of octets of the packet, and its payload.
    Packet(usize, &'a [u8]),
}

/// Splits off an unencrypted packet (RFC 4253 section 6).
fn split_packet(bytes: &[u8]) -> Result<Split<'_>, Fault> {
    let Some((len, rest)) = bytes.split_first_chunk() else { return Ok(Split::Needs(4)) };
    let len = u32::from_be_bytes(*len) as usize;
    if !(2..=PACKET_LEN_MAX - 4).contains(&len) {
        return Err(Fault::new("bad_packet_length"));
    }
    let Some(packet) = rest.get(..len) else { return Ok(Split::Needs(4 + len)) };
    let (padding_len, packet) = packet.split_first().ok_or(Fault::new("bad_packet"))?;
    let payload_len = packet.len().checked_sub(usize::from(*padding_len)).ok_or(Fault::new("bad_padding"))?;
    Ok(Split::Packet(4 + len, packet.get(..payload_len).unwrap_or_default()))
}
