//! Sequence numbers of exporters.

use super::CollectorStats;

/// Number of records by which a message may be late. A sequence number further in the past is a restart.
const REORDERING_MAX: u32 = 65_536;

/// Number of records that can be lost at a time. A sequence number further ahead is a restart with another number.
const LOSS_MAX: u32 = 1 << 24;

/// Sequence numbers of an observation domain.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sequence {
    /// Sequence number of the next message, if it is known.
    next: Option<u32>,
}

impl Sequence {
    /// Checks the sequence number of a message with a number of records.
    pub(super) fn check(&mut self, number: u32, record_count: u32, stats: &mut CollectorStats) {
        let following = number.wrapping_add(record_count);
        if let Some(next) = self.next {
            let ahead = number.wrapping_sub(next);
            let behind = next.wrapping_sub(number);
            if ahead == 0 {
                // The next message.
            } else if ahead <= LOSS_MAX {
                stats.lost_count += u64::from(ahead);
            } else if behind <= REORDERING_MAX && number != 0 {
                stats.reordered_message_count += 1;
                // The later message remains the latest one.
                return;
            } else {
                stats.restart_count += 1;
            }
        }
        self.next = Some(following);
    }

    /// Checks the sequence number of a message whose number of records is not known if a template is missing. The
    /// next message then sets the sequence number.
    pub(super) fn check_or_resume(
        &mut self,
        number: u32,
        record_count: Option<u32>,
        stats: &mut CollectorStats,
    ) {
        self.check(number, record_count.unwrap_or_default(), stats);
        if record_count.is_none() {
            self.next = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(messages: &[(u32, u32)]) -> (u64, u64, u64) {
        let (mut sequence, mut stats) = (Sequence::default(), CollectorStats::default());
        for (number, record_count) in messages {
            sequence.check(*number, *record_count, &mut stats);
        }
        (stats.lost_count, stats.reordered_message_count, stats.restart_count)
    }

    #[test]
    fn losses_reordering_and_restarts_are_distinguished() {
        assert_eq!(check(&[(0, 10), (10, 5), (15, 1)]), (0, 0, 0));
        assert_eq!(check(&[(7, 10), (20, 5)]), (3, 0, 0), "the first message sets the number");
        assert_eq!(check(&[(u32::MAX, 2), (1, 1), (2, 1)]), (0, 0, 0), "numbers wrap");
        assert_eq!(check(&[(10, 10), (30, 10), (20, 10), (40, 1)]), (10, 1, 0));
        assert_eq!(check(&[(500, 10), (0, 10), (10, 10)]), (0, 0, 1));
        assert_eq!(check(&[(500_000, 10), (30, 10), (40, 10)]), (0, 0, 1));
        assert_eq!(check(&[(0, 10), (LOSS_MAX + 10, 10), (LOSS_MAX + 20, 10)]), (LOSS_MAX.into(), 0, 0));
        assert_eq!(check(&[(0, 10), (LOSS_MAX + 11, 10), (LOSS_MAX + 21, 10)]), (0, 0, 1));
    }
}
