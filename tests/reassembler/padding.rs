//! Zeros of a minimal frame that may be padding: each way in which they are confirmed or contradicted.

use flowgauge::base::{SeqNum, TcpFlags, Timestamp};
use flowgauge::reassembler::{Reassembler, ReassemblerConfig, Segment, Stream, StreamEvent};

const ZEROS: &[u8] = &[0; 6];
const PUSH: TcpFlags = TcpFlags(TcpFlags::ACK.0 | TcpFlags::PSH.0);

/// A segment: sequence number, control bits, octets and the length of its frame; or an acknowledgment by the receiver.
#[derive(Clone, Copy)]
enum Step<'a> {
    Send(u32, TcpFlags, &'a [u8], u32),
    Ack(u32),
}

use Step::{Ack, Send};

/// Returns the octets of a stream after a SYN with number 0 and these steps, and the conflicts as offset and length.
fn stream(config: ReassemblerConfig, steps: &[Step<'_>]) -> (Vec<u8>, Vec<(u64, u64)>) {
    let (mut reassembler, mut stream) =
        (Reassembler::new(config, &flowgauge::base::Resources::default()).unwrap(), Stream::default());
    let (mut octets, mut conflicts) = (Vec::new(), Vec::new());
    let mut out = |event: StreamEvent<'_>| match event {
        StreamEvent::Chunk(chunk) => {
            assert_eq!(chunk.offset, octets.len() as u64);
            octets.extend_from_slice(chunk.bytes);
        }
        StreamEvent::Conflict(conflict) => conflicts.push((conflict.offset, conflict.len)),
        StreamEvent::Gap(gap) => panic!("{gap:?}"),
        _ => {}
    };
    let syn = Segment::new(SeqNum(0), TcpFlags::SYN, b"", Timestamp::ZERO);
    reassembler.segment(&mut stream, 7, &syn, &mut out);
    for step in steps {
        match *step {
            Send(seq, flags, bytes, frame_len) => {
                let segment =
                    Segment::new(SeqNum(seq), flags, bytes, Timestamp::ZERO).with_frame_len(frame_len);
                reassembler.segment(&mut stream, 7, &segment, &mut out);
            }
            Ack(ack) => {
                let segment =
                    Segment::new(SeqNum(9), TcpFlags::ACK, b"", Timestamp::ZERO).with_ack(SeqNum(ack));
                reassembler.acknowledgment(&mut stream, 7, &segment, &mut out);
            }
        }
        reassembler.check_invariants();
    }
    reassembler.finish(&mut stream, &mut out);
    assert_eq!(reassembler.stats().conflict_count, conflicts.len() as u64);
    (octets, conflicts)
}

#[test]
fn zeros_of_a_minimal_frame_are_padding_if_the_next_octets_contradict_them() {
    let with_zeros = |text: &[u8]| [ZEROS, text].concat();
    // A frame of 64 octets has a VLAN tag that was added after the padding, or its checksum.
    for (compared_len, frame_len) in [(0, 60), (4096, 60), (0, 64), (4096, 64)] {
        let padding = Send(1, TcpFlags::ACK, ZEROS, frame_len);
        let config = || {
            let mut config = ReassemblerConfig::default();
            config.compared_len = compared_len;
            config
        };
        let check = |steps: &[Step<'_>], octets: &[u8], conflicts: &[(u64, u64)]| {
            let found = stream(config(), steps);
            assert_eq!(
                (found.0.as_slice(), found.1.as_slice()),
                (octets, conflicts),
                "{compared_len} {frame_len}"
            );
        };
        // Contradicted, also after several frames with padding; the receiver acknowledges only what it has.
        let request = Send(1, PUSH, b"GET / HTTP", 64);
        check(&[padding, request], b"GET / HTTP", &[(0, 6)]);
        check(&[padding, padding, Ack(1), padding, request], b"GET / HTTP", &[(0, 6)]);
        let again = Send(11, TcpFlags::ACK, ZEROS, frame_len);
        check(
            &[padding, request, again, Ack(11), Send(11, PUSH, b"more", 60)],
            b"GET / HTTPmore",
            &[(0, 6), (10, 4)],
        );
        // Confirmed: by what follows, a repetition, an acknowledgment, or the end of the flow.
        check(&[padding, Send(7, PUSH, b"text", 60)], &with_zeros(b"text"), &[]);
        check(&[padding, Send(1, PUSH, &with_zeros(b"text"), 70)], &with_zeros(b"text"), &[]);
        check(&[padding, Ack(7), Send(7, PUSH, b"text", 60)], &with_zeros(b"text"), &[]);
        check(&[padding], ZEROS, &[]);
        check(&[padding, Send(7, TcpFlags(TcpFlags::ACK.0 | TcpFlags::FIN.0), b"", 54)], ZEROS, &[]);
        check(&[padding, Send(1, TcpFlags(TcpFlags::ACK.0 | TcpFlags::FIN.0), b"", 54)], b"", &[]);
    }
    // Octets that cannot be padding are delivered, and stay.
    for octets in [
        Send(1, PUSH, ZEROS, 60),
        Send(1, PUSH, ZEROS, 64),
        Send(1, TcpFlags::ACK, ZEROS, 61),
        Send(1, TcpFlags::ACK, ZEROS, 63),
        Send(1, TcpFlags::ACK, ZEROS, 65),
        Send(1, TcpFlags::ACK, b"\0\0\0\0\0\x01", 60),
        Send(1, TcpFlags::ACK, &[0; 7], 60),
    ] {
        let Send(_, _, bytes, _) = octets else { unreachable!() };
        let (found, _) = stream(ReassemblerConfig::default(), &[octets, Send(1, PUSH, b"GET / HTTP", 64)]);
        assert_eq!(&found[..bytes.len()], bytes);
    }
}
