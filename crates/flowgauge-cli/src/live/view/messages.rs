//! The latest messages of application protocols, as lines.

use std::collections::VecDeque;

use flowgauge::row::{TableRow, Union as _};
use flowgauge::{FlowId, Message, MessageMeta, Side, Timestamp};

use crate::values::push_values;

/// Maximum number of octets of the lines that are kept for all flows together.
const OCTET_COUNT_MAX: usize = 4 << 20;

/// Maximum number of octets of a line; the rest is omitted.
const LINE_LEN_MAX: usize = 1000;

/// Octets of memory that a line needs besides its text.
const LINE_OVERHEAD: usize = size_of::<Line>();

/// Maximum number of messages per interval that become lines, which bounds the time for them.
const COUNT_PER_INTERVAL_MAX: u32 = 10_000;

/// The same for one flow, so that a flow with many messages does not replace those of all others.
const COUNT_PER_FLOW_MAX: u16 = 50;

/// Maximum number of lines of the flow that is shown.
const SHOWN_COUNT_MAX: usize = 200;

/// A message.
#[derive(Clone, Debug)]
pub(super) struct Line {
    pub(super) flow: FlowId,
    pub(super) timestamp: Timestamp,
    /// The side that sent the message.
    pub(super) side: Side,
    /// Kind and fields, without characters that control the terminal.
    pub(super) text: Box<str>,
}

/// Number of messages of a flow that were kept in an interval.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Share {
    interval: u32,
    count: u16,
}

/// The latest messages of all flows. Memory and the number of messages per interval are bounded.
#[derive(Debug, Default)]
pub(super) struct Messages {
    lines: VecDeque<Line>,
    octet_count: usize,
    interval: u32,
    count: u32,
}

impl Messages {
    /// Begins a new interval.
    pub(super) const fn end_interval(&mut self) {
        self.interval = self.interval.wrapping_add(1);
        self.count = 0;
    }

    /// Keeps a message of a flow, unless it only marks content, or there were too many. Returns its line.
    pub(super) fn add(
        &mut self,
        flow: FlowId,
        share: &mut Share,
        meta: &MessageMeta,
        message: &Message<'_>,
    ) -> Option<&Line> {
        if message.is_content() || message.is_plain_end() {
            return None;
        }
        if share.interval != self.interval {
            *share = Share { interval: self.interval, count: 0 };
        }
        if self.count >= COUNT_PER_INTERVAL_MAX || share.count >= COUNT_PER_FLOW_MAX {
            return None;
        }
        self.count += 1;
        share.count += 1;
        let text = text(message.row());
        let line = Line { flow, timestamp: meta.timestamp, side: meta.side, text };
        self.octet_count += line.text.len() + LINE_OVERHEAD;
        self.lines.push_back(line);
        while self.octet_count > OCTET_COUNT_MAX {
            let Some(oldest) = self.lines.pop_front() else { break };
            self.octet_count -= oldest.text.len() + LINE_OVERHEAD;
        }
        self.lines.back()
    }

    /// Returns the latest messages of a flow.
    pub(super) fn of(&self, flow: FlowId) -> Lines {
        let of_flow = self.lines.iter().rev().filter(|line| line.flow == flow);
        let mut lines: VecDeque<_> = of_flow.take(SHOWN_COUNT_MAX).cloned().collect();
        lines.make_contiguous().reverse();
        Lines(lines)
    }
}

/// The latest messages of a flow, the latest one last.
#[derive(Debug, Default)]
pub(super) struct Lines(VecDeque<Line>);

impl Lines {
    pub(super) fn push(&mut self, line: Line) {
        if self.0.len() >= SHOWN_COUNT_MAX {
            self.0.pop_front();
        }
        self.0.push_back(line);
    }

    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = &Line> + ExactSizeIterator {
        self.0.iter()
    }
}

/// Describes a message in a line.
fn text(row: TableRow<'_>) -> Box<str> {
    let mut text = row.table.kind().to_owned();
    push_values(&mut text, row, false);
    if let Some((end, _)) = text.char_indices().find(|(index, _)| *index >= LINE_LEN_MAX) {
        text.truncate(end);
        text.push('…');
    }
    text.into_boxed_str()
}

#[cfg(test)]
mod tests {
    use etherparse::PacketBuilder;
    use flowgauge::base::Frame;
    use flowgauge::{Flow, Interest, Pipeline, Sessions, Sink, Standard};

    use super::*;

    #[derive(Default)]
    struct Keeping(Messages);

    impl Sink for Keeping {
        type State = Share;
        type Stage = Sessions<Standard>;

        fn interest(&self) -> Interest {
            Interest::RECORDS
        }

        fn message(&mut self, flow: &mut Flow<'_, Share>, meta: &MessageMeta, message: &Message<'_>) {
            self.0.add(flow.view.id(), flow.state, meta, message);
        }
    }

    /// Returns a query of DNS for a name of 100 letters from one of many ports and addresses.
    fn query(number: u32) -> Vec<u8> {
        let mut message = vec![0, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
        message.extend([&[50][..], &[b'a'; 50], &[50], &[b'b'; 50], b"\0\0\x01\0\x01"].concat());
        let [_, high, middle, low] = number.to_be_bytes();
        let builder = PacketBuilder::ethernet2([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2])
            .ipv4([10, high, middle, low], [192, 0, 2, 2], 64)
            .udp(40_000, 53);
        let mut frame = Vec::new();
        builder.write(&mut frame, &message).unwrap();
        frame
    }

    #[test]
    fn memory_and_the_number_per_interval_are_bounded() {
        let mut pipeline = Pipeline::builder().build(Keeping::default()).unwrap();
        let mut number = 0;
        for _ in 0..3 {
            pipeline.sink_mut().0.end_interval();
            for _ in 0..10_100 {
                number += 1;
                pipeline.frame(&Frame::ethernet(Timestamp::from_nanos(u64::from(number)), &query(number)));
            }
            let messages = &pipeline.sink().0;
            assert_eq!(messages.count, COUNT_PER_INTERVAL_MAX);
        }
        let messages = &pipeline.sink().0;
        let sum: usize = messages.lines.iter().map(|line| line.text.len() + LINE_OVERHEAD).sum();
        assert_eq!(sum, messages.octet_count);
        assert!((OCTET_COUNT_MAX - 1000..=OCTET_COUNT_MAX).contains(&sum), "{sum}");
        // The oldest ones were removed.
        let last = messages.lines.back().map(|line| line.timestamp.as_nanos());
        assert_eq!(last, Some(2 * 10_100 + u64::from(COUNT_PER_INTERVAL_MAX)));
        assert!(messages.lines.front().is_some_and(|line| line.timestamp.as_nanos() > 1));
    }
}
