//! Octets as DNS: no panic, messages that do not depend on how a stream is split, and no memory held at the end. What can be read
//! of a message can be shown, within a bound.
#![no_main]

use std::ops::ControlFlow;

use flowgauge::base::{FlowKey, IpProtocol, Side, Timestamp};
use flowgauge::reassembler::{Chunk, Gap, GapReason};
use flowgauge::session::dns::{
    DnsParser, Item, LLMNR, LlmnrParser, MDNS, MdnsParser, Message, NAME_LEN_MAX, PROTOCOL,
};
use flowgauge::session::{About, Driver, EndKind, Receiver, Role, Session, SessionEvent, Whose};
use libfuzzer_sys::fuzz_target;

flowgauge::protocols! {
    /// The three.
    #[derive(Debug)]
    pub enum Set;
    /// What they say.
    #[derive(Debug)]
    pub enum Said;
    parsers {
        Dns: DnsParser = &PROTOCOL,
        Mdns: MdnsParser = &MDNS,
        Llmnr: LlmnrParser = &LLMNR,
    }
    recognised {}
}

#[derive(Default)]
struct Heard(Vec<String>);

impl Receiver<Set> for Heard {
    fn message(&mut self, about: &About, message: Said<'_>) {
        let (Said::Dns(message) | Said::Mdns(message) | Said::Llmnr(message)) = message;
        let from = about.from.name();
        let (Message::Query(message) | Message::Response(message)) = message else {
            if let Message::Unanswered(lost) = message {
                self.0.push(format!("{from} {} {} {:?}", lost.id, lost.transaction, lost.reason));
            }
            return;
        };
        let mut text = format!("{from} {:?} {:?}", message.header, message.transaction);
        for item in message.items() {
            let (Item::Question(_) | Item::Record(..)) = &item;
            if let Item::Record(_, record) = &item {
                assert!(record.name.wire_len() <= NAME_LEN_MAX);
                let shown = record.data.to_string();
                assert!(shown.len() <= 64 * record.data.octets().len() + 8 * NAME_LEN_MAX);
                assert_eq!(record.data, record.data);
            }
            text.push_str(&format!("{item:?}"));
        }
        if let Some(edns) = message.edns() {
            text.extend(edns.options().map(|option| option.to_string()));
        }
        text.push_str(&format!("{:?} {}", message.stop(), message.rcode()));
        self.0.push(text);
    }

    fn event(&mut self, event: &SessionEvent) {
        match event {
            SessionEvent::Recognised { protocol, .. } => self.0.push(protocol.to_string()),
            SessionEvent::Stopped { fault, .. } => self.0.push(fault.to_string()),
            _ => {}
        }
    }
}

/// Turns: who speaks and whether octets are lost, two octets of length, then octets.
fn turns(mut data: &[u8]) -> impl Iterator<Item = (u8, &[u8])> {
    std::iter::from_fn(move || {
        let ([how, high, low], rest) = data.split_first_chunk::<3>()?;
        let len = usize::from(u16::from_be_bytes([*high, *low])).min(rest.len());
        let (octets, rest) = rest.split_at(len);
        data = rest;
        Some((*how, octets))
    })
}

fn hear(port: u16, data: &[u8], is_tcp: bool, mut piece_len: impl FnMut() -> usize) -> Vec<String> {
    let protocol = if is_tcp { IpProtocol::TCP } else { IpProtocol::UDP };
    let end = |last: u8, port| (std::net::IpAddr::from([10, 0, 0, last]), port);
    let (key, client) = FlowKey::new(protocol, end(1, 40_000), end(2, port));
    let (mut driver, mut session, mut heard) =
        (Driver::<Set>::default(), Session::default(), Heard::default());
    let (mut offsets, mut wants) = ([0_u64; 2], [true; 2]);
    let whose = |seconds: u64| Whose::new(&key, client, Timestamp::from_nanos(seconds * 1_000_000_000));
    for (count, (how, octets)) in (0_u64..).zip(turns(data).take(64)) {
        let from = if how & 1 == 0 { Role::Client } else { Role::Server };
        let side: Side = if from == Role::Client { client } else { client.other() };
        let (place, whose) = (from.index(), whose(count));
        if !is_tcp {
            driver.datagram(
                &mut session,
                &whose,
                side,
                (octets, octets.len() + usize::from(how >> 4)),
                &mut heard,
            );
            continue;
        }
        let lost = u64::from(how >> 1 & 0x1F);
        if how & 0x80 != 0 && lost > 0 && wants[place] {
            let gap = Gap::new(offsets[place], lost, GapReason::Deadline);
            wants[place] =
                driver.gap(&mut session, &whose, side, &gap, &mut heard) == ControlFlow::Continue(());
            offsets[place] += lost;
        }
        let mut rest = octets;
        while !rest.is_empty() {
            let (piece, after) = rest.split_at(piece_len().clamp(1, rest.len()));
            if wants[place] {
                let chunk = Chunk::new(offsets[place], piece);
                let flow = driver.chunk(&mut session, &whose, side, &chunk, &mut heard);
                wants[place] = flow == ControlFlow::Continue(());
            }
            offsets[place] += piece.len() as u64;
            rest = after;
        }
    }
    driver.finish(&mut session, &whose(100), EndKind::Flow, &mut heard);
    assert_eq!(driver.stats().held_bytes, 0);
    heard.0
}

fuzz_target!(|data: &[u8]| {
    let Some(([how, step], data)) = data.split_first_chunk::<2>() else { return };
    let port = [53, 5353, 5355, 9][usize::from(*how >> 1 & 3)];
    let is_tcp = how & 1 == 0;
    let whole = hear(port, data, is_tcp, || usize::MAX);
    // While probes are undecided a chunk more or less is what they may see, so that pieces may tell more or nothing elsewhere.
    if is_tcp && matches!(port, 53) && whole.first().is_some() {
        let piece_len = usize::from(*step % 64) + 64;
        let pieces = hear(port, data, true, || piece_len);
        if pieces.first() == whole.first() {
            assert_eq!(pieces, whole);
        }
    }
});
