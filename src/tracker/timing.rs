//! The times of the handshake and the close of a connection, in twelve octets that every flow has.

/// Times of a TCP flow. During the handshake: the tracker's clock at the last SYN, in 64 bits, and the lag of its
/// timestamp behind the clock, in 32 bits. Afterwards: the round-trip time of the
/// handshake, and the time from the close by both ends to the last packet, in 48 bits each: up to 78 hours.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timing([u32; 3]);

/// Greatest value of 48 bits; as a round-trip time, it stands for a handshake that was not seen completely.
const MOST: u64 = (1 << 48) - 1;

/// Value for the lag of a SYN that is stored elsewhere, because it is long.
const LONG_LAG: u32 = u32::MAX;

/// Returns whether the lag of a SYN in nanoseconds does not fit into [`Timing`]: over four seconds. It is stored in the
/// additional state of the flow, which exists for every late packet.
pub(super) const fn is_long(lag_ns: u64) -> bool {
    lag_ns >= LONG_LAG as u64
}

impl Timing {
    /// Creates the times of a flow during the handshake from the timestamp of a SYN and the tracker's clock at that
    /// SYN, in nanoseconds.
    pub(super) const fn of_syn(own_ns: u64, now_ns: u64) -> Self {
        let lag_ns = now_ns.saturating_sub(own_ns);
        let lag_ns = if is_long(lag_ns) { LONG_LAG } else { lag_ns as u32 };
        Self([now_ns as u32, (now_ns >> 32) as u32, lag_ns])
    }

    /// Returns the words of the times, for a checkpoint.
    pub(super) const fn words(self) -> [u32; 3] {
        self.0
    }

    /// Returns the times with the words that [`words`](Self::words) returned.
    pub(super) const fn from_words(words: [u32; 3]) -> Self {
        Self(words)
    }

    /// Returns the tracker's clock at the last SYN, in nanoseconds; valid only during the handshake.
    pub(super) const fn syn_ns(self) -> u64 {
        self.0[0] as u64 | (self.0[1] as u64) << 32
    }

    /// Returns the time in nanoseconds from the last SYN to a packet with the timestamp `own_ns`. Uses the timestamps
    /// of both packets, because the tracker's clock does not advance while packets arrive late. `long_lag_ns` is the
    /// lag of the SYN if it [is long](is_long).
    pub(super) const fn since_syn_ns(self, own_ns: u64, long_lag_ns: Option<u64>) -> Option<u64> {
        let lag_ns = match (self.0[2], long_lag_ns) {
            (LONG_LAG, None) => return None,
            (LONG_LAG, Some(lag_ns)) => lag_ns,
            (lag_ns, _) => lag_ns as u64,
        };
        own_ns.checked_sub(self.syn_ns().saturating_sub(lag_ns))
    }

    /// Ends the handshake, and stores its round-trip time in nanoseconds if all of the handshake was seen.
    pub(super) const fn end_handshake(&mut self, rtt_ns: Option<u64>) {
        let rtt_ns = match rtt_ns {
            Some(rtt_ns) if rtt_ns < MOST => rtt_ns,
            _ => MOST,
        };
        self.0 = [rtt_ns as u32, (rtt_ns >> 32) as u32, 0];
    }

    /// Returns the round-trip time in nanoseconds of a handshake that has ended; `None` if it was not seen completely.
    pub(super) const fn rtt_ns(self) -> Option<u64> {
        match self.syn_ns() & MOST {
            MOST => None,
            rtt_ns => Some(rtt_ns),
        }
    }

    /// Returns the time in nanoseconds from the packet by which both ends had closed to the last packet, if the
    /// handshake has ended and both ends have closed.
    pub(super) const fn since_close_ns(self) -> u64 {
        (self.0[1] >> 16) as u64 | (self.0[2] as u64) << 16
    }

    /// Adds the time in nanoseconds between two packets that follow the close by both ends.
    pub(super) const fn pass_after_close(&mut self, passed_ns: u64) {
        let sum_ns = self.since_close_ns().saturating_add(passed_ns);
        let since_ns = if sum_ns < MOST { sum_ns } else { MOST };
        self.0[1] = self.0[1] & 0xffff | (since_ns as u32) << 16;
        self.0[2] = (since_ns >> 16) as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_syn_has_its_own_time_before_the_clock() {
        let timing = Timing::of_syn(1_000_000_000_007, 1_000_000_000_010);
        let since_ns = timing.since_syn_ns(1_000_000_000_009, None);
        assert_eq!((timing.syn_ns(), since_ns), (1_000_000_000_010, Some(2)));
        assert_eq!(timing.since_syn_ns(1_000_000_000_006, None), None);
        assert_eq!(Timing::of_syn(u64::MAX, u64::MAX).since_syn_ns(u64::MAX, None), Some(0));
        for lag_ns in [1, LONG_LAG as u64 - 1, LONG_LAG as u64, 5_000_000_000] {
            let timing = Timing::of_syn(7, 7 + lag_ns);
            let long_lag_ns = is_long(lag_ns).then_some(lag_ns);
            assert_eq!(timing.since_syn_ns(10, long_lag_ns), Some(3), "{lag_ns}");
        }
        assert_eq!(Timing::of_syn(0, 5_000_000_000).since_syn_ns(5_000_000_000, None), None);
    }

    #[test]
    fn round_trip_time_and_time_since_close_are_independent() {
        for rtt_ns in [Some(0), Some(1), Some(0x1234_5678_9abc), Some(MOST - 1), None] {
            let mut timing = Timing::of_syn(u64::MAX, u64::MAX);
            timing.end_handshake(rtt_ns);
            assert_eq!((timing.rtt_ns(), timing.since_close_ns()), (rtt_ns, 0));
            let mut since_ns = 0;
            for passed_ns in [1, 0xffff, 0x10_0000, 0x1234_5678_9abc] {
                timing.pass_after_close(passed_ns);
                since_ns += passed_ns;
                assert_eq!((timing.rtt_ns(), timing.since_close_ns()), (rtt_ns, since_ns));
            }
            timing.pass_after_close(u64::MAX);
            assert_eq!((timing.rtt_ns(), timing.since_close_ns()), (rtt_ns, MOST));
        }
        let mut timing = Timing::of_syn(0, 0);
        timing.end_handshake(Some(u64::MAX));
        assert_eq!(timing.rtt_ns(), None);
    }
}
