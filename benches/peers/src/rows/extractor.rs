//! Extraction of the five-tuple of a frame.

use std::hint::black_box;

use flowgauge::base::{Frame, Timestamp};
use flowgauge::decode::extractor::{Extractor, Packet};
use flowscope::FlowExtractor;
use flowscope::extract::FiveTuple;

use super::{FLOWGAUGE, FLOWSCOPE, MakeRow};
use crate::cases::{CLIENT, SERVER, tcp, udp};
use crate::gopacket::Gopacket;
use crate::interleave::{Contender, Row};

pub(super) fn rows() -> Vec<MakeRow> {
    let tcp_frame = tcp((CLIENT, 40_000), (SERVER, 443), &[0; 18]);
    let udp_frame = udp((CLIENT, 40_000), (SERVER, 53), &[0; 5]);
    [("five_tuple_ipv4_tcp", tcp_frame, true), ("five_tuple_ipv4_udp", udp_frame, false)]
        .map(|(id, frame, is_tcp)| -> MakeRow {
            let make = move |gopacket: Option<&Gopacket>| {
                let mut contenders = vec![ours(frame.clone()), flowscope_contender(frame.clone())];
                if let (Some(gopacket), true) = (gopacket, is_tcp) {
                    contenders.push(gopacket.contender("extract", &[frame], 0));
                }
                Row::new(contenders)
            };
            (format!("extractor/{id}"), Box::new(make))
        })
        .into()
}

fn ours(frame: Vec<u8>) -> Contender {
    let step = |(frame, extractor, count): &mut (Vec<u8>, Extractor, u64)| {
        let frame = Frame::ethernet(Timestamp::ZERO, black_box(frame));
        let mut packet = Packet::EMPTY;
        *count += u64::from(extractor.extract_into(&frame, &mut packet).is_ok());
        black_box(&packet);
    };
    let state = (frame, Extractor::default(), 0);
    Contender::new(FLOWGAUGE, state, step, |(_, _, count), done| assert_eq!(*count, done))
}

fn flowscope_contender(frame: Vec<u8>) -> Contender {
    let step = |(frame, extractor, count): &mut (Vec<u8>, FiveTuple, u64)| {
        let view = flowscope::PacketView::new(black_box(frame), flowscope::Timestamp::default());
        *count += u64::from(black_box(extractor.extract(view)).is_some());
    };
    let state = (frame, FiveTuple::bidirectional(), 0);
    Contender::new(FLOWSCOPE, state, step, |(_, _, count), done| assert_eq!(*count, done))
}
