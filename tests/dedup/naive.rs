//! A naive model of a window, which compares each frame with all frames that the window may store.

use flowgauge::base::{Frame, LinkType};
use flowgauge::dedup::{DedupStats, Verdict};

/// A stored frame.
#[derive(Clone)]
struct Seen {
    identity: Vec<u8>,
    time: u64,
    interface: u32,
}

/// Stores the last frames in a list, and compares each frame with all of them.
pub(crate) struct Model {
    seen: Vec<Seen>,
    frame_count_max: usize,
    window_ns: u64,
    only_between_interfaces: bool,
    pub(crate) stats: DedupStats,
}

impl Model {
    pub(crate) fn new(frame_count_max: usize, window_ns: u64, only_between_interfaces: bool) -> Self {
        let stats = DedupStats::default();
        Self { seen: Vec::new(), frame_count_max, window_ns, only_between_interfaces, stats }
    }

    pub(crate) fn check(&mut self, frame: &Frame<'_>, identity: Vec<u8>) -> Verdict {
        let (time, interface) = (frame.timestamp.as_nanos(), frame.interface);
        self.stats.frame_count += 1;
        let last = self.seen.iter().rev().find(|seen| seen.identity == identity);
        let is_in_time = last.is_some_and(|last| last.time.abs_diff(time) <= self.window_ns);
        let is_same = last.is_some_and(|last| last.interface == interface);
        let is_duplicate = is_in_time && !(self.only_between_interfaces && is_same);
        self.stats.same_interface_count += u64::from(is_in_time && !is_duplicate);
        if is_duplicate {
            self.stats.duplicate_count += 1;
            self.stats.duplicate_octet_count += u64::from(frame.wire_len);
        }
        if !is_duplicate || !self.only_between_interfaces {
            self.seen.push(Seen { identity, time, interface });
            if self.seen.len() > self.frame_count_max {
                self.seen.remove(0);
            }
        }
        if is_duplicate { Verdict::Duplicate } else { Verdict::First }
    }
}

/// Returns the captured octets, and the metadata that is compared.
pub(crate) fn exact(frame: &Frame<'_>) -> Vec<u8> {
    let LinkType(link_type) = frame.link_type;
    [&frame.wire_len.to_be_bytes()[..], &link_type.to_be_bytes(), frame.data].concat()
}
