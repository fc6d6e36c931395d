//! Pieces of files: whichever protocol transfers a file, its pieces follow each other, and its end has their length.

use std::collections::HashMap;
use std::path::Path;

use flowgauge::protocols::{Message, smtp};
use flowgauge::session::PieceContent;
use flowgauge::{FileSource, Pipeline, RunOptions, Standard, on_message};

use super::corpus;

/// Counts the files of a capture by protocol.
fn check(path: &Path, counts: &mut HashMap<&'static str, usize>) {
    // The number of octets so far of each file that has not ended.
    let mut lens = HashMap::new();
    let sink = on_message::<Standard>(|view, meta, message| {
        let Some(piece) = message.piece() else {
            assert!(!message.is_content() || meta.protocol.name().ends_with("tls"), "{message:?}");
            return;
        };
        assert_eq!(message.is_content(), piece.is_content());
        let is_mail_end = matches!(message, Message::Smtp(smtp::Message::Mail(_)));
        let place = (*view.key(), view.start(), meta.protocol.name(), meta.from.index(), piece.file);
        let what = format!("{}: {place:?}: {} octets before {message:?}", path.display(), piece.offset);
        match piece.content {
            PieceContent::Octets(octets) => {
                let len = lens.entry(place).or_insert(0);
                assert!(*len == piece.offset && !octets.is_empty(), "{len} octets, {what}");
                *len += octets.len() as u64;
            }
            PieceContent::Gap(missing_len) => {
                let len = lens.entry(place).or_insert(0);
                assert_eq!(*len, piece.offset, "{what}");
                *len += missing_len;
            }
            PieceContent::End { .. } => {
                // A reply of the server ends a mail.
                let place = if is_mail_end { (place.0, place.1, place.2, 0, place.4) } else { place };
                assert_eq!(lens.remove(&place).unwrap_or_default(), piece.offset, "{what}");
                *counts.entry(meta.protocol.name()).or_default() += usize::from(piece.offset > 0);
            }
        }
    });
    let mut source = FileSource::open(path).expect("a readable capture");
    let mut pipeline = Pipeline::builder().build(sink).expect("a valid configuration");
    pipeline
        .run(&mut source, &RunOptions::default())
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}

#[test]
fn pieces_of_files_follow_each_other() {
    let mut counts = HashMap::new();
    for name in ["web", "mail", "transfer"] {
        let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/data");
        check(&data.join(format!("{name}.pcap")), &mut counts);
    }
    assert!(["http", "smtp", "ftp_data"].iter().all(|name| counts.contains_key(name)), "{counts:?}");
    let Some(captures) = corpus::captures() else { return };
    captures.iter().for_each(|capture| check(&capture.path(), &mut counts));
    let root = corpus::root().expect("the corpus");
    for name in [
        "zeek+zeek/testing/btest/Traces/smb/smb2readwrite",
        "OISF+suricata-verify/tests/smb-length-5786/input",
    ] {
        check(&root.join(format!("../protocol-captures/{name}.pcap")), &mut counts);
    }
    println!("{counts:?}");
    let all = ["http", "http2", "smb", "smtp", "ftp_data", "tftp"];
    assert!(all.iter().all(|name| counts.contains_key(name)) && counts["http"] > 4000, "{counts:?}");
}
