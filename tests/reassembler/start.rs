//! Beginning of a stream with more than one SYN, and with keep-alives.

use flowgauge::base::TcpFlags;

use super::cases::{Rig, rig};

const FAR: u32 = 3_000_000_000;
const SYN_ACK: TcpFlags = TcpFlags(TcpFlags::SYN.0 | TcpFlags::ACK.0);

/// Creates a stream that received SYN-ACKs with these sequence numbers.
fn after_syn_acks(seqs: &[u32]) -> Rig {
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
        // A stale SYN is retransmitted.
        (&[1000, FAR, 1000], FAR),
        (&[1000, FAR, FAR, 1000, 1000], FAR),
        // The second of three SYNs.
        (&[1000, FAR, 2_000_000_000], FAR),
    ] {
        let first = confirmed.wrapping_add(1);
        let mut rig = after_syn_acks(seqs);
        rig.acked(first)
            .data(first, "abc")
            .acked(first.wrapping_add(3))
            .after_ms(20)
            .data(first.wrapping_add(3), "d");
        rig.sweep().finish().emits(&["0:abc", "3:d"]);
        assert_eq!(rig.reassembler.stats().stray_count, 0);
    }
}

#[test]
fn segments_after_a_syn_also_decide_which_syn_begins_the_stream() {
    // Data, or a segment without data, arrives before any acknowledgment.
    after_syn_acks(&[1000, FAR]).data(FAR + 1, "abc").data(FAR + 4, "d").finish().emits(&["0:abc", "3:d"]);
    after_syn_acks(&[1000, 5000]).data(5001, "abc").finish().emits(&["0:abc"]);
    after_syn_acks(&[1000, 5000]).data(5001, "").data(5004, "d").data(5001, "abc").emits(&["0:abc", "3:d"]);
    after_syn_acks(&[1000, 5000]).data(1001, "abc").data(1004, "d").emits(&["0:abc", "3:d"]);
    // The first octets arrive late: their sequence numbers are close to only one of the two SYNs.
    after_syn_acks(&[1000, FAR]).data(FAR + 4, "d").data(FAR + 1, "abc").emits(&["0:abc", "3:d"]);
    // After delivery, another SYN does not change the beginning.
    let mut rig = after_syn_acks(&[1000]);
    rig.data(1001, "abc").send(5000, SYN_ACK, "", 0).acked(1004).data(1004, "d").emits(&["0:abc", "3:d"]);
}

#[test]
fn the_acknowledgment_may_precede_the_syn_that_it_confirms() {
    after_syn_acks(&[1000])
        .acked(5001)
        .send(5000, SYN_ACK, "", 0)
        .data(5001, "abc")
        .after_ms(20)
        .sweep()
        .emits(&["0:abc"]);
    after_syn_acks(&[1000]).acked(FAR + 1).send(FAR, SYN_ACK, "", 0).data(FAR + 1, "abc").emits(&["0:abc"]);
    // The second SYN was not captured: data at the acknowledged sequence number confirms the beginning as well.
    after_syn_acks(&[1000]).acked(FAR + 1).data(FAR + 1, "abc").emits(&["0:abc"]);
    // If nothing follows, the acknowledged octets are a gap.
    after_syn_acks(&[1000]).acked(5001).after_ms(50).sweep().emits(&["0:gap 4000 acknowledged"]);
}

#[test]
fn buffered_segments_move_with_the_beginning_of_the_stream() {
    // A segment buffered 4003 octets after the first SYN becomes the second part of the stream that begins at the other
    // SYN.
    after_syn_acks(&[1000, 5000]).data(5004, "d").acked(5001).data(5001, "abc").emits(&["0:abc", "3:d"]);
    after_syn_acks(&[5000, 1000]).data(5004, "x").acked(1001).data(1001, "abc").finish().emits(&[
        "0:abc",
        "3:gap 4000 end_of_stream",
        "4003:x",
    ]);
    // The buffered segment can be delivered at once.
    let mut rig = after_syn_acks(&[1000]);
    rig.data(5001, "abc").send(5000, SYN_ACK, "", 0).emits(&[]);
    rig.acked(5001).emits(&["0:abc"]);
    // Octets before the new beginning are discarded; octets of the same segment after it are kept.
    let mut rig = after_syn_acks(&[1000]);
    rig.data(4000, "xyz").data(4999, "xyabc").send(5000, SYN_ACK, "", 0).acked(5001).emits(&["0:abc"]);
    rig.finish().emits(&[]);
    // A FIN relative to the other beginning is discarded.
    let mut rig = after_syn_acks(&[1000]);
    rig.fin(1500, "")
        .send(5000, SYN_ACK, "", 0)
        .acked(5001)
        .data(5001, "abc")
        .fin(5004, "")
        .emits(&["0:abc", "3:fin"]);
    // Segments farther away than a window cannot belong to the stream.
    after_syn_acks(&[1000])
        .data(1100, "x")
        .send(FAR, SYN_ACK, "", 0)
        .acked(FAR + 1)
        .data(FAR + 1, "a")
        .finish()
        .emits(&["0:a"]);
}

#[test]
fn octets_in_an_unconfirmed_syn_are_discarded() {
    let mut rig = rig();
    rig.send(1000, SYN_ACK, "", 0).send(5000, SYN_ACK, "xyz", 0).acked(1001).data(1001, "abc").finish();
    rig.emits(&["0:abc"]);
}

#[test]
fn a_keep_alive_of_a_mid_stream_connection_does_not_begin_a_stream() {
    let pushed = TcpFlags::ACK | TcpFlags::PSH;
    // The keep-alive is repeated and answered; then data follows.
    let mut rig = rig();
    rig.data(499, "x").acked(500).data(499, "x").acked(500).sweep().finish().emits(&[]);
    rig.data(499, "x").acked(500).data(499, "x").send(500, pushed, "abc", 0).emits(&["0:abc"]);
    // The sequence number is known from a segment without octets.
    super::cases::rig().data(500, "").send(499, pushed, "x", 0).send(500, pushed, "abc", 0).emits(&["0:abc"]);
    // If a segment begins with the same octet, the octet was data: a probe of a closed window.
    super::cases::rig().data(499, "x").send(499, pushed, "xabc", 0).emits(&["0:xabc"]);
    // A single octet with PSH or FIN is data.
    super::cases::rig().send(499, pushed, "x", 0).send(500, pushed, "abc", 0).emits(&["0:x", "1:abc"]);
    super::cases::rig().fin(499, "x").emits(&["0:x", "1:fin"]);
}
