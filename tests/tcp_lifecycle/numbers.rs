//! Sequence numbers: the first number of a side, gaps, and late segments.

use super::dialogue::run;
use super::{HANDSHAKE, after_handshake, tcp_counts};

/// Returns repeated steps: data, its acknowledgment, and an acknowledgment of ten more octets that were not captured.
fn gaps(count: u32) -> Vec<(String, &'static str)> {
    (0..count)
        .flat_map(|number| {
            let seq = 1001 + 20 * number;
            [
                (format!("> PA {seq} a5001 l10"), ""),
                (format!("< A 5001 a{}", seq + 10), ""),
                (format!("< A 5001 a{}", seq + 20), "!unseen"),
            ]
        })
        .collect()
}

#[test]
fn each_gap_is_counted_once() {
    for (count, history) in
        [(1, "ShADaG"), (5, "ShADaG"), (9, "ShADaG"), (10, "ShADaGG"), (99, "ShADaGG"), (100, "ShADaGGG")]
    {
        let steps = gaps(count);
        let steps: Vec<_> = steps.iter().map(|(step, expected)| (step.as_str(), *expected)).collect();
        let records = after_handshake(&steps);
        assert_eq!(records[0].history.to_string(), history, "{count} gaps");
    }
}

/// A gap before captured octets counts when it is acknowledged, and only then.
#[test]
fn a_gap_between_octets_is_counted_once() {
    for (count, history) in [(9, "ShADGa"), (10, "ShADGaG")] {
        let steps: Vec<_> = (0..count)
            .flat_map(|number| {
                let seq = 1001 + 40 * number;
                [
                    format!("> PA {seq} a5001 l10"),
                    format!("> PA {} a5001 l10", seq + 20),
                    format!("< A 5001 a{}", seq + 30),
                    // Ten more octets and their acknowledgment.
                    format!("> PA {} a5001 l10", seq + 30),
                    format!("< A 5001 a{}", seq + 40),
                ]
            })
            .collect();
        let steps: Vec<_> = steps.iter().map(|step| (step.as_str(), "")).collect();
        let records = after_handshake(&steps);
        // The letter of the gap precedes that of the acknowledgment that reveals it.
        let letters = records[0].history.to_string();
        assert_eq!(letters.matches('G').count(), history.matches('G').count(), "{count}: {letters}");
    }
}

/// Returns the history of a connection with several SYN-ACKs. The client confirms one of them, and the server sends
/// data.
fn with_syn_acks(seqs: &[u32], confirmed: u32) -> String {
    let mut steps = vec![("> S 100".to_owned(), "start to:syn_sent")];
    for (number, seq) in seqs.iter().enumerate() {
        let expected = if number == 0 { "to:syn_received" } else { "" };
        steps.push((format!("< SA {seq} a101"), expected));
    }
    let first = confirmed.wrapping_add(1);
    steps.push((format!("> PA 101 a{first} l27"), "to:established est:0"));
    steps.push((format!("< PA {first} a128 l40"), ""));
    steps.push((format!("> A 128 a{}", first.wrapping_add(40)), ""));
    let steps: Vec<_> = steps.iter().map(|(step, expected)| (step.as_str(), *expected)).collect();
    let records = run(&steps);
    assert_eq!(records.len(), 1);
    // A repetition of the first one is a retransmission; the others do not belong to the connection.
    let repeated_count = seqs[1..].iter().filter(|seq| **seq == seqs[0]).count() as u32;
    assert_eq!(tcp_counts(&records[0]), [[0; 3], [repeated_count, 0, 0]]);
    records[0].history.to_string()
}

#[test]
fn the_client_confirms_the_syn_ack_with_the_server_s_first_number() {
    let distant = 3_000_000_000;
    assert_eq!(with_syn_acks(&[1000, distant], distant), "ShhDdA");
    assert_eq!(with_syn_acks(&[1000, distant], 1000), "ShhDdA");
    assert_eq!(with_syn_acks(&[1000, 5000], 5000), "ShhDdA");
    assert_eq!(with_syn_acks(&[1000, 5000], 1000), "ShhDdA");
    assert_eq!(with_syn_acks(&[5000, 1000], 1000), "ShhDdA");
    assert_eq!(with_syn_acks(&[u32::MAX, 4000], 4000), "ShhDdA");
    // A stale SYN-ACK is repeated after the confirmed one; then a third number follows.
    assert_eq!(with_syn_acks(&[1000, distant, 1000], distant), "ShhhDdA");
    assert_eq!(with_syn_acks(&[1000, distant, 2_000_000_000], distant), "ShhhDdA");
}

#[test]
fn the_server_s_octets_confirm_its_first_number_too() {
    let syn_acks =
        [("> S 100", "start to:syn_sent"), ("< SA 1000 a101", "to:syn_received"), ("< SA 5000 a101", "")];
    // The client's acknowledgment was not captured.
    let octets = [("< PA 5001 a101 l40", "to:established est:?"), ("< PA 5041 a101 l40", "")];
    let records = run(&[&syn_acks[..], &octets].concat());
    assert_eq!((tcp_counts(&records[0])[1], records[0].history.to_string()), ([0; 3], "Shhd".to_owned()));
    // It was captured before the SYN-ACK: a gap is reported, but does not remain in the connection's counts.
    let records = run(&[
        ("> S 100", "start to:syn_sent"),
        ("< SA 1000 a101", "to:syn_received"),
        ("> A 101 a5001", "to:established est:0 !unseen"),
        ("< SA 5000 a101", ""),
        ("< PA 5001 a101 l40", ""),
        ("> A 101 a5041", ""),
    ]);
    assert_eq!(tcp_counts(&records[0]), [[0; 3], [0; 3]]);
    // Octets that the server has already sent keep their numbers.
    let records =
        after_handshake(&[("< PA 5001 a1001 l10", ""), ("< SA 9000 a1001", ""), ("> A 1001 a5011", "")]);
    assert_eq!(records[0].history.to_string(), "ShAdh");
}

#[test]
fn octets_before_the_first_number_are_out_of_order_unless_they_were_acknowledged() {
    let records = run(&[
        ("> A 1000 a5001", "start to:established"),
        ("> PA 900 a5001 l100", ""),
        // A retransmission of all and of half of the octets.
        ("> PA 900 a5001 l100", ""),
        ("> PA 950 a5001 l50", ""),
        // Even earlier octets.
        ("> PA 800 a5001 l100", ""),
    ]);
    assert_eq!(tcp_counts(&records[0])[0], [2, 2, 0]);
    let records = run(&[
        ("> A 1000 a5001", "start to:established"),
        ("< A 5001 a1000", ""),
        ("> PA 900 a5001 l100", ""),
    ]);
    assert_eq!(tcp_counts(&records[0])[0], [1, 0, 0]);
    // A connection with a captured SYN has no octets before the SYN.
    let records = run(&[&HANDSHAKE[..], &[("> PA 991 a5001 l10", "")]].concat());
    assert_eq!(tcp_counts(&records[0])[0], [1, 0, 0]);
}
