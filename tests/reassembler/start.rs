//! Where a stream begins, if more than one SYN claims to tell, and with keep-alives.

use flowgauge::base::TcpFlags;

use super::cases::{Rig, rig};

const FAR: u32 = 3_000_000_000;
const SYN_ACK: TcpFlags = TcpFlags(TcpFlags::SYN.0 | TcpFlags::ACK.0);

/// A stream behind SYN-ACKs with these numbers.
fn behind(seqs: &[u32]) -> Rig {
    let mut rig = rig();
    for seq in seqs {
        rig.send(*seq, SYN_ACK, "", 0);
    }
    rig
}

#[test]
fn the_acknowledgment_decides_which_syn_begins_the_stream() {
    for (seqs, confirmed) in [
        (&[1000, FAR][..], FAR),
        (&[1000, FAR], 1000),
        (&[1000, 5000], 5000),
        (&[1000, 5000], 1000),
        (&[5000, 1000], 1000),
        (&[u32::MAX, 4000], 4000),
        // A stale one is repeated.
        (&[1000, FAR, 1000], FAR),
        (&[1000, FAR, FAR, 1000, 1000], FAR),
        // Of three, the one in the middle.
        (&[1000, FAR, 2_000_000_000], FAR),
    ] {
        let first = confirmed.wrapping_add(1);
        let mut rig = behind(seqs);
        rig.acked(first)
            .data(first, "abc")
            .acked(first.wrapping_add(3))
            .after_ms(20)
            .data(first.wrapping_add(3), "d");
        rig.sweep().finish().gives(&["0:abc", "3:d"]);
        assert_eq!(rig.reassembler.stats().stray_count, 0);
    }
}

#[test]
fn segments_after_a_syn_also_decide_which_syn_begins_the_stream() {
    // Octets, or a segment without any, before an acknowledgment was seen.
    behind(&[1000, FAR]).data(FAR + 1, "abc").data(FAR + 4, "d").finish().gives(&["0:abc", "3:d"]);
    behind(&[1000, 5000]).data(5001, "abc").finish().gives(&["0:abc"]);
    behind(&[1000, 5000]).data(5001, "").data(5004, "d").data(5001, "abc").gives(&["0:abc", "3:d"]);
    behind(&[1000, 5000]).data(1001, "abc").data(1004, "d").gives(&["0:abc", "3:d"]);
    // The first octets come late: they are only near one of the two.
    behind(&[1000, FAR]).data(FAR + 4, "d").data(FAR + 1, "abc").gives(&["0:abc", "3:d"]);
    // What was delivered stays: another SYN is no beginning any more.
    let mut rig = behind(&[1000]);
    rig.data(1001, "abc").send(5000, SYN_ACK, "", 0).acked(1004).data(1004, "d").gives(&["0:abc", "3:d"]);
}

#[test]
fn the_acknowledgment_may_precede_the_syn_that_it_confirms() {
    behind(&[1000])
        .acked(5001)
        .send(5000, SYN_ACK, "", 0)
        .data(5001, "abc")
        .after_ms(20)
        .sweep()
        .gives(&["0:abc"]);
    behind(&[1000]).acked(FAR + 1).send(FAR, SYN_ACK, "", 0).data(FAR + 1, "abc").gives(&["0:abc"]);
    // The second SYN was not captured at all: octets at the number that was acknowledged are as good.
    behind(&[1000]).acked(FAR + 1).data(FAR + 1, "abc").gives(&["0:abc"]);
    // A gap it is if the grace is over.
    behind(&[1000]).acked(5001).after_ms(10).sweep().gives(&["0:gap 4000 acknowledged"]);
}

#[test]
fn buffered_segments_move_with_the_beginning_of_the_stream() {
    // Held as 4003 octets ahead of the first SYN, it is the second part of what begins at the other.
    behind(&[1000, 5000]).data(5004, "d").acked(5001).data(5001, "abc").gives(&["0:abc", "3:d"]);
    behind(&[5000, 1000]).data(5004, "x").acked(1001).data(1001, "abc").finish().gives(&[
        "0:abc",
        "3:gap 4000 end_of_stream",
        "4003:x",
    ]);
    // It is next at once.
    let mut rig = behind(&[1000]);
    rig.data(5001, "abc").send(5000, SYN_ACK, "", 0).gives(&[]);
    rig.acked(5001).gives(&["0:abc"]);
    // What lies before the new beginning is none of it, but for what reaches beyond it.
    let mut rig = behind(&[1000]);
    rig.data(4000, "xyz").data(4999, "xyabc").send(5000, SYN_ACK, "", 0).acked(5001).gives(&["0:abc"]);
    rig.finish().gives(&[]);
    // A FIN of the other beginning is none.
    let mut rig = behind(&[1000]);
    rig.fin(1500, "")
        .send(5000, SYN_ACK, "", 0)
        .acked(5001)
        .data(5001, "abc")
        .fin(5004, "")
        .gives(&["0:abc", "3:fin"]);
    // Farther than a window away, nothing of it can be meant.
    behind(&[1000])
        .data(1100, "x")
        .send(FAR, SYN_ACK, "", 0)
        .acked(FAR + 1)
        .data(FAR + 1, "a")
        .finish()
        .gives(&["0:a"]);
}

#[test]
fn octets_in_an_unconfirmed_syn_are_discarded() {
    let mut rig = rig();
    rig.send(1000, SYN_ACK, "", 0).send(5000, SYN_ACK, "xyz", 0).acked(1001).data(1001, "abc").finish();
    rig.gives(&["0:abc"]);
}

#[test]
fn a_keep_alive_of_a_mid_stream_connection_does_not_begin_a_stream() {
    let pushed = TcpFlags::ACK | TcpFlags::PSH;
    // Repeated, and answered; then something is said.
    let mut rig = rig();
    rig.data(499, "x").acked(500).data(499, "x").acked(500).sweep().finish().gives(&[]);
    rig.data(499, "x").acked(500).data(499, "x").send(500, pushed, "abc", 0).gives(&["0:abc"]);
    // The number is known from a segment without octets.
    super::cases::rig().data(500, "").send(499, pushed, "x", 0).send(500, pushed, "abc", 0).gives(&["0:abc"]);
    // What begins with the octet itself had it in earnest: a probe of a window that was closed.
    super::cases::rig().data(499, "x").send(499, pushed, "xabc", 0).gives(&["0:xabc"]);
    // One octet that is pushed, or ends the stream, is data.
    super::cases::rig().send(499, pushed, "x", 0).send(500, pushed, "abc", 0).gives(&["0:x", "1:abc"]);
    super::cases::rig().fin(499, "x").gives(&["0:x", "1:fin"]);
}
