//! Duplicate detection with a window of 256 frames and one millisecond.

use std::hint::black_box;
use std::time::Duration;

use flowgauge::base::{Frame, Limits, Resources, Timestamp};
use flowgauge::dedup::{DedupConfig, Window};
use flowscope::{Dedup, PacketView};

use super::{FLOWGAUGE, FLOWSCOPE, MakeRow};
use crate::cases::{CLIENT, SERVER, set_seq, tcp};
use crate::gopacket::Gopacket;
use crate::interleave::{Contender, Row};

const FRAME_COUNT: u32 = 1024;

const WINDOW: Duration = Duration::from_millis(1);

pub(super) fn rows() -> Vec<MakeRow> {
    [("unique_64", 64, 1), ("unique_1500", 1500, 1), ("duplicate_1500", 1500, 2)]
        .map(|(id, len, times)| -> MakeRow {
            let make = move |_: Option<&Gopacket>| {
                Row::new(vec![ours(Frames::new(len, times)), flowscope_contender(Frames::new(len, times))])
            };
            (format!("dedup/{id}"), Box::new(make))
        })
        .into()
}

/// Distinct frames in turn, each repeated `times` times, 2 microseconds apart. A round is longer than the window.
struct Frames {
    frames: Vec<Vec<u8>>,
    times: u64,
    count: u64,
    duplicate_count: u64,
}

impl Frames {
    fn new(len: usize, times: u64) -> Self {
        let frame = |number| {
            let mut frame = tcp((CLIENT, 40_000), (SERVER, 443), &vec![0x5a; len - 54]);
            set_seq(&mut frame, number);
            frame
        };
        Self { frames: (0..FRAME_COUNT).map(frame).collect(), times, count: 0, duplicate_count: 0 }
    }

    #[inline]
    fn next(&mut self) -> (u64, &[u8]) {
        let position = (self.count / self.times) as usize % self.frames.len();
        self.count += 1;
        (1_000_000_000 + 2000 * self.count, black_box(&self.frames[position]))
    }

    fn check(&self, done: u64) {
        let expected = if self.times == 1 { 0 } else { done / 2 };
        assert_eq!((self.count, self.duplicate_count), (done, expected));
    }
}

fn ours(frames: Frames) -> Contender {
    let mut config = DedupConfig::default();
    config.window = WINDOW;
    let mut limits = Limits::DEFAULT;
    limits.dedup_frame_count_max = 256;
    let window = Window::new(config, &Resources::new(limits)).expect("a valid configuration");
    let step = |(frames, window): &mut (Frames, Window)| {
        let (nanos, data) = frames.next();
        let verdict = window.check(&Frame::ethernet(Timestamp::from_nanos(nanos), data));
        frames.duplicate_count += u64::from(verdict.is_duplicate());
    };
    Contender::new(FLOWGAUGE, (frames, window), step, |(frames, _), done| frames.check(done))
}

fn flowscope_contender(frames: Frames) -> Contender {
    let step = |(frames, dedup): &mut (Frames, Dedup)| {
        let (nanos, data) = frames.next();
        let time = flowscope::Timestamp::new((nanos / 1_000_000_000) as u32, (nanos % 1_000_000_000) as u32);
        let is_kept = dedup.keep(PacketView::new(data, time));
        frames.duplicate_count += u64::from(!is_kept);
    };
    let state = (frames, Dedup::new(WINDOW, 256));
    Contender::new(FLOWSCOPE, state, step, |(frames, _), done| frames.check(done))
}
