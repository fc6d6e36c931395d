//! Dialogues for the targets of parsers: from the streams and datagrams of captures, and from recorded dialogues of the
//! tests.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::path::Path;
use std::{fs, io};

use flowgauge::base::{FlowKey, FrameBatch, IpProtocol, Side};
use flowgauge::decode::extractor::{Extractor, Transport};
use flowgauge::pipeline::{Pipeline, Sessions, Sink, Streams};
use flowgauge::protocols::Standard;
use flowgauge::reassembler::StreamEvent;
use flowgauge::session::{Role, SessionEvent};
use flowgauge::tracker::{Flow, Interest};

use super::store::Seeds;
use crate::targets::cases::CASES;
use crate::targets::cases::dialogues::turn;
use crate::targets::dialogue::put_step;
use crate::targets::input::put_octets;
use crate::targets::rig::Setup;
use crate::targets::session_quic::{CRYPTO, DATAGRAM};
use crate::targets::session_standard::{DATAGRAMS, OF_KIT, PORTS};

/// Maximum number of octets of a dialogue.
const DIALOGUE_LEN_MAX: usize = 10_000;

/// Maximum number of dialogues of one protocol from one capture.
const PER_PROTOCOL_MAX: usize = 12;

/// Sender and payload of each turn, in order.
type Turns = Vec<(Role, Vec<u8>)>;

fn dialogue(head: [u8; 2], turns: &Turns) -> Vec<u8> {
    let mut seed = head.to_vec();
    for (from, octets) in turns {
        let left = DIALOGUE_LEN_MAX.saturating_sub(seed.len());
        put_step(&mut seed, *from, &octets[..octets.len().min(left)]);
    }
    seed
}

/// Protocols of flows by their keys.
#[derive(Default)]
struct Names(HashMap<FlowKey, &'static str>);

impl Sink for Names {
    type State = ();
    type Stage = Sessions<Standard>;

    fn interest(&self) -> Interest {
        Interest::RECORDS
    }

    fn session(&mut self, flow: &mut Flow<'_, ()>, event: &SessionEvent) {
        if let SessionEvent::Recognized { protocol, .. } = event {
            self.0.entry(*flow.view.key()).or_insert(protocol.name());
        }
    }
}

/// Payload of streams by the keys of their flows.
#[derive(Default)]
struct StreamTurns {
    order: Vec<(FlowKey, Side)>,
    turns: HashMap<FlowKey, Turns>,
}

impl Sink for StreamTurns {
    type State = ();
    type Stage = Streams;

    fn interest(&self) -> Interest {
        Interest::RECORDS
    }

    fn stream(&mut self, flow: &mut Flow<'_, ()>, side: Side, event: &StreamEvent<'_>) -> ControlFlow<()> {
        let StreamEvent::Chunk(chunk) = event else { return ControlFlow::Continue(()) };
        let (key, initiator) = (*flow.view.key(), flow.view.initiator());
        let turns = self.turns.entry(key).or_insert_with(|| {
            self.order.push((key, initiator));
            Vec::new()
        });
        let from = if side == initiator { Role::Client } else { Role::Server };
        match turns.last_mut() {
            Some((last, octets)) if *last == from => octets.extend_from_slice(chunk.bytes),
            _ => turns.push((from, chunk.bytes.to_vec())),
        }
        ControlFlow::Continue(())
    }
}

/// Returns the target of a parser by the name of the protocol.
fn target(name: &str) -> Option<&'static str> {
    Some(match name {
        "http" => "session_http1",
        "http2" => "session_http2",
        "tls" | "dtls" => "session_tls",
        "dns" | "mdns" | "llmnr" => "session_dns",
        "ssh" => "session_ssh",
        "smtp" => "session_smtp",
        "ftp" => "session_ftp",
        _ => return None,
    })
}

/// Runs all frames through a pipeline and returns the sink.
fn run_all<K: Sink>(mut pipeline: Pipeline<K>, frames: &FrameBatch) -> K {
    let _ = pipeline.batch(frames);
    pipeline.finish();
    pipeline.into_sink()
}

/// Adds the dialogues of a capture.
pub(super) fn add(seeds: &mut Seeds, frames: &FrameBatch) {
    let setup = Setup::default();
    let budget = setup.budget();
    let pipeline = setup.session_pipeline(&budget, Names::default());
    let names = run_all(pipeline.expect("the default budget is sufficient"), frames);
    let pipeline = setup.stream_pipeline(&budget, StreamTurns::default());
    let streams = run_all(pipeline.expect("the default budget is sufficient"), frames);

    let mut counts: HashMap<&str, usize> = HashMap::new();
    let mut is_wanted = |name: &'static str| {
        let count = counts.entry(name).or_default();
        *count += 1;
        *count <= PER_PROTOCOL_MAX
    };
    for (key, initiator) in &streams.order {
        let name = names.0.get(key).copied().unwrap_or("unknown");
        if is_wanted(name) {
            let turns = &streams.turns[key];
            if let Some(target) = target(name) {
                seeds.add(target, dialogue([7, 0], turns));
            }
            match name {
                "http" => add_heads(seeds, turns),
                "tls" => add_handshakes(seeds, turns),
                _ => {}
            }
            let port = port_choice(key.port(initiator.other()).unwrap_or_default());
            seeds.add("session_standard", dialogue([7, port], turns));
        }
    }
    for (key, initiator, turns) in datagrams(frames) {
        let name = names.0.get(&key).copied().unwrap_or("unknown");
        if !is_wanted(name) {
            continue;
        }
        match name {
            "quic" => {
                let seed = quic(seeds, &turns);
                seeds.add("session_quic", seed);
            }
            "dns" => {
                seeds.add("session_dns", dialogue([0, 0x20], &turns));
                turns.iter().for_each(|(_, message)| seeds.add("dns_message", message.clone()));
            }
            "mdns" => seeds.add("session_dns", dialogue([0, 0x60], &turns)),
            "llmnr" => seeds.add("session_dns", dialogue([0, 0xa0], &turns)),
            "dtls" => seeds.add("session_tls", dialogue([0, 0x80], &turns)),
            _ => {}
        }
        let port = port_choice(key.port(initiator.other()).unwrap_or_default());
        seeds.add("session_standard", dialogue([0, port | DATAGRAMS], &turns));
    }
}

/// Adds the heads of HTTP/1 in a dialogue, each with the following octets.
fn add_heads(seeds: &mut Seeds, turns: &Turns) {
    for (from, octets) in turns.iter().take(6) {
        let octets = &octets[..octets.len().min(4000)];
        seeds.add("http1_head", [&[from.index() as u8][..], octets].concat());
    }
}

/// Adds the unencrypted hello messages and certificates of a dialogue of TLS.
fn add_handshakes(seeds: &mut Seeds, turns: &Turns) {
    for (_, octets) in turns {
        // The content of the handshake records of a turn.
        let (mut handshake, mut rest) = (Vec::new(), octets.as_slice());
        while let [22, _, _, high, low, behind @ ..] = rest {
            let (content, behind) =
                behind.split_at(usize::from(u16::from_be_bytes([*high, *low])).min(behind.len()));
            handshake.extend_from_slice(content);
            rest = behind;
        }
        let mut rest = handshake.as_slice();
        while let [kind, high, middle, low, behind @ ..] = rest {
            let len = u32::from_be_bytes([0, *high, *middle, *low]) as usize;
            let (body, behind) = behind.split_at(len.min(behind.len()));
            match kind {
                1 => seeds.add("client_hello", [&[0][..], body].concat()),
                2 => seeds.add("client_hello", [&[1][..], body].concat()),
                11 => add_certificates(seeds, body),
                _ => {}
            }
            rest = behind;
        }
    }
}

/// Adds the certificates of a message of TLS 1.2: a length of three octets, then each certificate after its length of
/// three octets.
fn add_certificates(seeds: &mut Seeds, body: &[u8]) {
    let mut rest = body.get(3..).unwrap_or_default();
    while let [high, middle, low, behind @ ..] = rest {
        let len = u32::from_be_bytes([0, *high, *middle, *low]) as usize;
        let (certificate, behind) = behind.split_at(len.min(behind.len()));
        seeds.add("certificate", certificate.to_vec());
        rest = behind;
    }
}

fn port_choice(port: u16) -> u8 {
    PORTS.iter().position(|known| *known == port).unwrap_or(PORTS.len() - 1) as u8
}

fn quic(seeds: &mut Seeds, turns: &Turns) -> Vec<u8> {
    let mut seed = vec![0];
    for (from, octets) in turns {
        seeds.add("quic_header", [&[2 * from.index() as u8][..], octets].concat());
        if seed.len() + octets.len() < DIALOGUE_LEN_MAX {
            seed.push(DATAGRAM[from.index()]);
            put_octets(&mut seed, octets);
        }
    }
    seed
}

/// Returns the datagrams of the UDP flows of a capture. The first sender is the client.
fn datagrams(frames: &FrameBatch) -> Vec<(FlowKey, Side, Turns)> {
    let mut places: HashMap<FlowKey, usize> = HashMap::new();
    let mut flows: Vec<(FlowKey, Side, Turns)> = Vec::new();
    for frame in frames.iter() {
        let Ok(packet) = Extractor::default().extract(&frame) else { continue };
        if packet.key.protocol() != IpProtocol::UDP || packet.transport != Transport::Udp {
            continue;
        }
        let position = *places.entry(packet.key).or_insert_with(|| {
            flows.push((packet.key, packet.side, Vec::new()));
            flows.len() - 1
        });
        let (_, client, turns) = &mut flows[position];
        let from = if packet.side == *client { Role::Client } else { Role::Server };
        turns.push((from, packet.payload().to_vec()));
    }
    flows
}

/// Adds the cases of the kit.
pub(super) fn add_cases(seeds: &mut Seeds) {
    for (place, cases) in CASES.iter().enumerate() {
        let transport = if cases.is_stream { 0 } else { DATAGRAMS };
        for turns in &cases.dialogues {
            seeds.add("session_standard", dialogue([7, place as u8 | OF_KIT | transport], turns));
        }
    }
}

/// Adds the recorded dialogues of TLS and DTLS of the tests: lines of `C` or `S` and hexadecimal digits.
pub(super) fn add_recorded(seeds: &mut Seeds) -> io::Result<()> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/session/tls");
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_none_or(|extension| extension != "txt") {
            continue;
        }
        let turns: Turns = fs::read_to_string(&path)?.lines().filter_map(turn).collect();
        let is_datagrams = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("dtls"));
        seeds.add("session_tls", dialogue([7, if is_datagrams { 0x80 } else { 0 }], &turns));
        if !is_datagrams {
            add_handshakes(seeds, &turns);
        }
        let transport = if is_datagrams { DATAGRAMS } else { 0 };
        seeds.add("session_standard", dialogue([7, port_choice(443) | transport], &turns));
        // The first handshake message without the header of its record, as in QUIC.
        if let Some((_, octets)) = turns.first().filter(|_| !is_datagrams) {
            let mut seed = vec![0, CRYPTO[0], 0, 0];
            put_octets(&mut seed, octets.get(5..).unwrap_or_default());
            seeds.add("session_quic", seed);
        }
    }
    Ok(())
}
