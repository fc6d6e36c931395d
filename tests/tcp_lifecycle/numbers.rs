//! Sequence numbers: where a side begins, what is missing, what comes late.

use super::dialogue::run;
use super::{HANDSHAKE, after_handshake, tcp_counts};

/// Data, its acknowledgment, and one that covers ten octets more than were captured; so often.
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
        let steps: Vec<_> = steps.iter().map(|(step, wanted)| (step.as_str(), *wanted)).collect();
        let records = after_handshake(&steps);
        assert_eq!(records[0].history.to_string(), history, "{count} gaps");
    }
}

/// A hole before octets that were captured counts when it is acknowledged, and not again.
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
                    // Ten octets more, and what acknowledges them.
                    format!("> PA {} a5001 l10", seq + 30),
                    format!("< A 5001 a{}", seq + 40),
                ]
            })
            .collect();
        let steps: Vec<_> = steps.iter().map(|step| (step.as_str(), "")).collect();
        let records = after_handshake(&steps);
        // The letter of the gap stands before that of the acknowledgment which shows it.
        let letters = records[0].history.to_string();
        assert_eq!(letters.matches('G').count(), history.matches('G').count(), "{count}: {letters}");
    }
}

/// The server's octets after a handshake with several SYN-ACKs, of which the client confirms one.
fn with_syn_acks(seqs: &[u32], confirmed: u32) -> String {
    let mut steps = vec![("> S 100".to_owned(), "start to:syn_sent")];
    for (number, seq) in seqs.iter().enumerate() {
        let wanted = if number == 0 { "to:syn_received" } else { "" };
        steps.push((format!("< SA {seq} a101"), wanted));
    }
    let first = confirmed.wrapping_add(1);
    steps.push((format!("> PA 101 a{first} l27"), "to:established est:0"));
    steps.push((format!("< PA {first} a128 l40"), ""));
    steps.push((format!("> A 128 a{}", first.wrapping_add(40)), ""));
    let steps: Vec<_> = steps.iter().map(|(step, wanted)| (step.as_str(), *wanted)).collect();
    let records = run(&steps);
    assert_eq!(records.len(), 1);
    // The first one once more is a retransmission; the others are no part of the connection.
    let repeated_count = seqs[1..].iter().filter(|seq| **seq == seqs[0]).count() as u32;
    assert_eq!(tcp_counts(&records[0]), [[0; 3], [repeated_count, 0, 0]]);
    records[0].history.to_string()
}

#[test]
fn the_client_tells_which_syn_ack_begins_the_server_s_numbers() {
    let far = 3_000_000_000;
    assert_eq!(with_syn_acks(&[1000, far], far), "ShhDdA");
    assert_eq!(with_syn_acks(&[1000, far], 1000), "ShhDdA");
    assert_eq!(with_syn_acks(&[1000, 5000], 5000), "ShhDdA");
    assert_eq!(with_syn_acks(&[1000, 5000], 1000), "ShhDdA");
    assert_eq!(with_syn_acks(&[5000, 1000], 1000), "ShhDdA");
    assert_eq!(with_syn_acks(&[u32::MAX, 4000], 4000), "ShhDdA");
    // A stale one is repeated behind the right one, and a third one comes.
    assert_eq!(with_syn_acks(&[1000, far, 1000], far), "ShhhDdA");
    assert_eq!(with_syn_acks(&[1000, far, 2_000_000_000], far), "ShhhDdA");
}

#[test]
fn octets_tell_too_where_the_server_begins() {
    let syn_acks =
        [("> S 100", "start to:syn_sent"), ("< SA 1000 a101", "to:syn_received"), ("< SA 5000 a101", "")];
    // The client's acknowledgment was not captured.
    let octets = [("< PA 5001 a101 l40", "to:established est:?"), ("< PA 5041 a101 l40", "")];
    let records = run(&[&syn_acks[..], &octets].concat());
    assert_eq!((tcp_counts(&records[0])[1], records[0].history.to_string()), ([0; 3], "Shhd".to_owned()));
    // It was captured too early: the gap is told, but is none of the connection's any more.
    let records = run(&[
        ("> S 100", "start to:syn_sent"),
        ("< SA 1000 a101", "to:syn_received"),
        ("> A 101 a5001", "to:established est:0 !unseen"),
        ("< SA 5000 a101", ""),
        ("< PA 5001 a101 l40", ""),
        ("> A 101 a5041", ""),
    ]);
    assert_eq!(tcp_counts(&records[0]), [[0; 3], [0; 3]]);
    // What the server said stays where it is.
    let records =
        after_handshake(&[("< PA 5001 a1001 l10", ""), ("< SA 9000 a1001", ""), ("> A 1001 a5011", "")]);
    assert_eq!(records[0].history.to_string(), "ShAdh");
}

#[test]
fn octets_before_the_first_number_are_late_unless_they_were_acknowledged() {
    let records = run(&[
        ("> A 1000 a5001", "start to:established"),
        ("> PA 900 a5001 l100", ""),
        // The same once more, and half of it.
        ("> PA 900 a5001 l100", ""),
        ("> PA 950 a5001 l50", ""),
        // Still earlier ones.
        ("> PA 800 a5001 l100", ""),
    ]);
    assert_eq!(tcp_counts(&records[0])[0], [2, 2, 0]);
    let records = run(&[
        ("> A 1000 a5001", "start to:established"),
        ("< A 5001 a1000", ""),
        ("> PA 900 a5001 l100", ""),
    ]);
    assert_eq!(tcp_counts(&records[0])[0], [1, 0, 0]);
    // Of a connection that is known from its SYN on, nothing lies before it.
    let records = run(&[&HANDSHAKE[..], &[("> PA 991 a5001 l10", "")]].concat());
    assert_eq!(tcp_counts(&records[0])[0], [1, 0, 0]);
}
