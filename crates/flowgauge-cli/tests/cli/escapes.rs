//! Content of captures and file names reaches neither the terminal as control sequences nor a log as additional lines.

use etherparse::PacketBuilder;
use flowgauge::base::{Frame, LinkType, Timestamp};
use flowgauge::source::PcapngWriter;

use super::{Folder, objects, run};

/// Control characters of ASCII and of ISO 6429 and bidirectional text controls, each followed by its argument.
const CONTROLS: &str = "a\u{7f}\u{9b}31mred\u{9d}0;owned\u{9c}\u{202e}gpj.exe\u{2066}\u{61c}\u{2028}b";

/// A capture with the text in the target, the host and the user agent of a request, in an SSH banner and in a DNS name.
fn capture() -> Vec<u8> {
    let mut writer = PcapngWriter::new(Vec::new()).unwrap();
    let mut nanos = 1_700_000_000_000_000_000;
    let mut write = |frame: &[u8]| {
        nanos += 1_000_000;
        let frame =
            Frame { link_type: LinkType::ETHERNET, ..Frame::ethernet(Timestamp::from_nanos(nanos), frame) };
        writer.write(&frame, &[]).unwrap();
    };
    let request = format!("GET /{CONTROLS} HTTP/1.1\r\nHost: {CONTROLS}\r\nUser-Agent: {CONTROLS}\r\n\r\n");
    let banner = format!("SSH-2.0-{CONTROLS}\r\n");
    for (client_port, server_port, payload_text) in [(40_000, 80, request), (40_001, 22, banner)] {
        let tcp = |is_client: bool, seq, ack: Option<u32>, is_syn: bool, payload: &[u8]| {
            let (source, target) = if is_client { (1, 2) } else { (2, 1) };
            let (from, to) = if is_client { (client_port, server_port) } else { (server_port, client_port) };
            let mut builder = PacketBuilder::ethernet2([source; 6], [target; 6])
                .ipv4([10, 0, 0, source], [10, 0, 0, target], 64)
                .tcp(from, to, seq, 60_000);
            if is_syn {
                builder = builder.syn();
            }
            if let Some(ack) = ack {
                builder = builder.ack(ack);
            }
            let mut frame = Vec::new();
            builder.write(&mut frame, payload).unwrap();
            frame
        };
        write(&tcp(true, 100, None, true, b""));
        write(&tcp(false, 500, Some(101), true, b""));
        write(&tcp(true, 101, Some(501), false, b""));
        write(&tcp(true, 101, Some(501), false, payload_text.as_bytes()));
    }
    let label = "x\u{9b}2J\u{202e}".as_bytes();
    let question =
        [&[0, 7, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0][..], &[label.len() as u8], label, &[0, 0, 1, 0, 1]].concat();
    let mut frame = Vec::new();
    let builder =
        PacketBuilder::ethernet2([1; 6], [2; 6]).ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64).udp(5000, 53);
    builder.write(&mut frame, &question).unwrap();
    write(&frame);
    writer.finish().unwrap()
}

/// Returns whether a text contains a control character other than a line feed.
fn has_control(text: &str) -> bool {
    text.chars().any(|letter| {
        (letter.is_control() && letter != '\n')
            || matches!(letter, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    })
}

#[test]
fn output_has_no_control_characters_and_json_decodes_to_the_sent_text() {
    assert!(has_control(CONTROLS));
    let folder = Folder::new();
    let file = folder.file("nasty.pcapng", &capture());
    for args in [
        &["sessions", &file][..],
        &["sessions", &file, "--format", "table"],
        &["sessions", &file, "--credentials"],
        &["flows", &file, "--format", "ndjson"],
        &["flows", &file, "--format", "csv"],
        &["flows", &file, "--application", "always"],
    ] {
        let run = run(args);
        assert_eq!(run.status, 0, "{args:?}: {}", run.err);
        assert!(run.out.lines().count() >= 3, "{args:?}: {}", run.out);
        assert!(!has_control(&run.out) && !has_control(&run.err), "{args:?}: {}", run.out.escape_debug());
    }
    let messages = run(&["sessions", &file]).out;
    assert!(
        messages.contains("\\u007f\\u009b31mred\\u009d0;owned\\u009c\\u202egpj.exe\\u2066\\u061c\\u2028b")
    );
    let request = objects(&messages)
        .into_iter()
        .find(|message| message["message"] == "request")
        .expect("no request was reported");
    assert!(request.to_string().contains(CONTROLS), "{request}");
    let table = run(&["sessions", &file, "--format", "table"]).out;
    assert!(table.contains("\\u009b31mred"), "{table}");
}

#[cfg(unix)]
#[test]
fn file_names_with_line_feeds_stay_on_one_line_of_a_message() {
    let folder = Folder::new();
    let name = "a\u{1b}[31m\u{9b}2J\u{202e}\nflowgauge: all is well";
    let missing = folder.path(name);
    let run_on = |path: &str| run(&["flows", path, "-q"]);
    let text = folder.file(&format!("{name}.txt"), b"text");
    let truncated = folder.file(&format!("{name}.pcap"), &super::data("web.pcap")[..500]);
    for path in [&missing, &text, &truncated] {
        let run = run_on(path);
        assert_eq!((run.status, run.err.lines().count()), (1, 1), "{}", run.err);
        assert!(!has_control(&run.err), "{}", run.err.escape_debug());
        assert!(run.err.contains("a\\u001b[31m\\u009b2J\\u202e\\nflowgauge: all is well"), "{}", run.err);
    }
    for out in [&missing, &text] {
        let run = run(&["slice", "web.pcap", "--filter", "port 8080", "-w", &format!("{out}/x")]);
        assert!(
            run.status == 1 && run.err.lines().count() == 1 && !has_control(&run.err),
            "{}",
            run.err.escape_debug()
        );
    }
    let once = super::run_with_input(&["slice", "-", "--filter", "dst port 80", "-w", &missing], b"");
    assert!(once.status == 2 && !has_control(&once.err), "{}", once.err.escape_debug());
}
