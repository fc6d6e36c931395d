//! A bound on output in proportion to input, so that no input causes output that fills a disk or a network.

/// Octets of output that each octet of input permits.
pub(crate) const OUTPUT_PER_OCTET: u64 = 16;

/// Octets of output that a command may write in addition.
const RESERVE: u64 = 1 << 20;

/// Bound on the output of a command. Each source of output, such as a flow or a message of an exporter, is bounded by
/// its own input, so that it cannot use up what others may write; all of them share the reserve.
#[derive(Debug)]
pub(crate) struct Bound {
    reserve: u64,
}

impl Bound {
    pub(crate) const fn new() -> Self {
        Self { reserve: RESERVE }
    }

    /// Returns whether a source that has received `received_len` octets may write a line of `len` octets.
    /// `spent` is the part of the source's own bound that its output has used.
    pub(crate) fn permits(&mut self, spent: &mut u64, received_len: u64, len: usize) -> bool {
        let own = received_len.saturating_mul(OUTPUT_PER_OCTET);
        let after = spent.saturating_add(len as u64);
        let excess = after.saturating_sub(own);
        if excess > self.reserve {
            return false;
        }
        self.reserve -= excess;
        *spent = after.min(own);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_is_at_most_sixteen_times_the_input_and_the_reserve() {
        let mut bound = Bound::new();
        let (mut received, mut written) = (0, 0);
        for source in 0..1000 {
            let mut spent = 0;
            for line in 1..=100 {
                received += 10;
                let len = 1000 + source % 7;
                if bound.permits(&mut spent, line * 10, len) {
                    written += len as u64;
                }
                assert!(written <= received * OUTPUT_PER_OCTET + RESERVE, "{written} for {received}");
            }
        }
        assert!(written > 1000 * 100 * 10 * 15, "{written}");
        // A source that stays in proportion is not affected by others.
        let mut spent = 0;
        assert!((1..100).all(|line| bound.permits(&mut spent, line * 100, 1600)));
    }

    #[test]
    fn extreme_values_do_not_overflow() {
        let mut bound = Bound::new();
        let mut spent = u64::MAX;
        assert!(bound.permits(&mut spent, u64::MAX, usize::MAX));
        assert!(!bound.permits(&mut 0, 0, usize::MAX));
    }
}
