//! Frames for the layers below sessions, with the same total length as every other input.

use std::net::Ipv4Addr;

use super::feed::INPUT_LEN;
use crate::cases::{TCP_FLAGS, TCP_SEQ, set_seq, tcp};

pub(crate) const SYN: u8 = 2;
pub(crate) const RST: u8 = 4;
pub(crate) const ACK: u8 = 16;

/// Frames with [`INPUT_LEN`] octets in total. Further frames are dropped.
#[derive(Default)]
pub(crate) struct Frames {
    pub(crate) frames: Vec<Vec<u8>>,
    len: usize,
}

impl Frames {
    /// Fills the input with the frames that a closure creates.
    pub(crate) fn filled(mut make: impl FnMut(u32) -> Vec<u8>) -> Self {
        let mut all = Self::default();
        for number in 0.. {
            all.push(make(number));
            if all.len == INPUT_LEN {
                break;
            }
        }
        all
    }

    fn push(&mut self, mut frame: Vec<u8>) {
        let left = INPUT_LEN - self.len;
        if frame.len() > left {
            // The rest pads the previous frame, as links do.
            self.frames.last_mut().expect("a frame").extend(vec![0; left]);
            self.len = INPUT_LEN;
            return;
        }
        if left - frame.len() < 60 {
            frame.resize(left, 0);
        }
        self.len += frame.len();
        self.frames.push(frame);
    }

    /// Leaks the frames, because the process ends after the bench.
    pub(crate) fn leaked(self) -> Vec<&'static [u8]> {
        assert_eq!(self.len, INPUT_LEN, "inputs are equally long");
        self.frames.into_iter().map(|frame| &*frame.leak()).collect()
    }
}

/// A segment with given sequence and acknowledgment numbers and control bits.
pub(crate) fn segment(
    (source, destination): ((Ipv4Addr, u16), (Ipv4Addr, u16)),
    flags: u8,
    (seq, ack): (u32, u32),
    payload: &[u8],
) -> Vec<u8> {
    let mut frame = tcp(source, destination, payload);
    set_seq(&mut frame, seq);
    frame[TCP_SEQ + 4..TCP_SEQ + 8].copy_from_slice(&ack.to_be_bytes());
    frame[TCP_FLAGS] = flags;
    frame
}
