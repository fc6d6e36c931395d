//! Tests of `flowgauge export-objects`.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use flate2::Compression;
use flate2::write::{GzEncoder, ZlibEncoder};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::trace::{Connection, Trace};
use super::{Folder, Run, command, data, number, objects, repository, run, run_with_input};

const CLIENT: ([u8; 4], u16) = ([10, 0, 0, 2], 40_000);
const SERVER: ([u8; 4], u16) = ([198, 51, 100, 80], 80);

/// Files of a folder by their names.
fn files(folder: &str) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(folder).unwrap().map(Result::unwrap);
    let files = entries.map(|entry| {
        assert!(entry.file_type().unwrap().is_file(), "{entry:?}");
        (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap())
    });
    files.collect()
}

fn sha256(octets: &[u8]) -> String {
    Sha256::digest(octets).iter().map(|octet| format!("{octet:02x}")).collect()
}

/// Checks that the files of a folder are those of the rows, and returns the rows with the content of their files.
fn read(out: &str, rows: &str) -> Vec<(Value, Vec<u8>)> {
    let all = files(out);
    let mut unnamed: Vec<_> = all.keys().cloned().collect();
    let mut objects = objects(rows);
    for row in &objects {
        let named = ["file", "pem_file"].map(|key| row[key].as_str());
        unnamed.retain(|name| !named.contains(&Some(name)));
    }
    assert!(unnamed.is_empty(), "{unnamed:?}");
    let with_octets = |row: Value| {
        let octets = all[row["file"].as_str().unwrap()].clone();
        assert_eq!(
            (number(&row, "len"), row["sha256"].as_str().unwrap()),
            (octets.len() as u64, &*sha256(&octets))
        );
        (row, octets)
    };
    objects.drain(..).map(with_octets).collect()
}

/// Objects of a capture on standard input.
fn exported(capture: &[u8], options: &[&str]) -> Vec<(Value, Vec<u8>)> {
    let folder = Folder::new();
    let out = folder.path("out");
    let run = run_with_input(&[&["export-objects", "-", "-q", "--out", &out], options].concat(), capture);
    assert_eq!((run.status, run.err.as_str()), (0, ""));
    read(&out, &run.out)
}

/// Objects of a sample capture.
fn exported_from(file: &str, options: &[&str]) -> Vec<(Value, Vec<u8>)> {
    let folder = Folder::new();
    let out = folder.path("made/by it");
    let run = run(&[&["export-objects", file, "-q", "--out", &out], options].concat());
    assert_eq!((run.status, run.err.as_str()), (0, ""), "{file}");
    read(&out, &run.out)
}

/// A response of HTTP with these fields and body.
fn response(fields: &str, body: &[u8]) -> Vec<u8> {
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n{fields}\r\n", body.len());
    [head.as_bytes(), body].concat()
}

/// A capture with a connection for each target and response.
fn downloads(all: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let mut trace = Trace::new();
    for (index, (target, response)) in all.iter().enumerate() {
        let request = format!("GET {target} HTTP/1.1\r\nHost: www.lab.example\r\n\r\n");
        let client = (CLIENT.0, CLIENT.1 + index as u16);
        trace.exchange(index as u64 * 1_000_000, [client, SERVER], request.as_bytes(), response);
    }
    trace.file()
}

/// The digests of files are those of `sessions --transactions --hashes`, which computes them elsewhere.
#[test]
fn objects_are_the_files_of_transactions() {
    for (file, kind, count) in
        [("web.pcap", "http", 12), ("transfer.pcap", "ftp,tftp", 8), ("dns.pcap", "http", 0)]
    {
        let found = exported_from(file, &["--kind", kind]);
        assert_eq!(found.len(), count, "{file}");
        let transactions = objects(&run(&["sessions", file, "-q", "-t", "--hashes"]).out);
        let expected = transactions.iter().filter(|row| row["kind"] == "file" && row["part"].is_null());
        let mut expected: Vec<_> = expected.collect();
        for (row, _) in &found {
            let same = |other: &&Value| {
                let is_file =
                    other["community_id"] == row["community_id"] && other["number"] == row["transaction"];
                is_file && other["role"] == row["role"]
            };
            let at = expected.iter().position(same).unwrap_or_else(|| panic!("{row}"));
            let other = expected.remove(at);
            for (key, of_file) in [
                ("is_complete", "is_complete"),
                ("len", "seen_len"),
                ("detected_type", "detected_type"),
                ("content_type", "content_type"),
                ("start", "start"),
            ] {
                assert_eq!(row[key], other[of_file], "{key}: {row}");
            }
            let is_complete = row["is_complete"] == true;
            assert_eq!(is_complete, other["sha256"].is_string());
            assert!(!is_complete || row["sha256"] == other["sha256"], "{row}");
        }
        assert!(expected.is_empty(), "{expected:?}");
    }
}

#[test]
fn rows_have_names_hosts_and_senders() {
    let web = exported_from("web.pcap", &["--kind", "http"]);
    let of = |name: &str| web.iter().find(|(row, _)| row["name"] == name).unwrap();
    let (page, octets) = of("page.html");
    assert_eq!(page["file"], "000002-page.html");
    for (key, value) in
        [("host", "web.example"), ("target", "/page.html"), ("role", "server"), ("protocol", "http")]
    {
        assert_eq!(page[key], value, "{page}");
    }
    assert_eq!((&page["status"], &page["source_port"]), (&200.into(), &80.into()));
    assert!(octets.starts_with(b"<!doctype html>") || octets.starts_with(b"<"), "{page}");
    // curl -T upload.bin
    let (upload, octets) = of("file.bin");
    assert_eq!(
        (&upload["role"], &upload["destination_port"], octets.len()),
        (&"client".into(), &80.into(), 60_000)
    );
    assert!(upload.get("status").is_none());
    // The client was killed.
    let (large, _) = of("large.bin");
    assert_eq!((&large["is_complete"], large.get("missing_len")), (&false.into(), None));

    let ftp = exported_from("transfer.pcap", &["-k", "ftp"]);
    let commands = ftp.iter().map(|(row, _)| (row["command"].as_str().unwrap(), row["name"].as_str()));
    let expected = [
        ("RETR", Some("random.bin")),
        ("RETR", Some("lines.txt")),
        ("LIST", None),
        ("RETR", Some("lines.txt")),
        ("RETR", Some("random.bin")),
        ("STOR", Some("tls.crt")),
        ("STOR", Some("small.bin")),
    ];
    assert_eq!(commands.collect::<Vec<_>>(), expected);
    // From examples/data/record.sh; the second transfer of random.bin begins at octet 20000.
    let lines: String = (1..=200).map(|n| format!("Line {n} of a file that nobody has to read.\n")).collect();
    assert!(ftp[1].1 == lines.as_bytes() && ftp[3].1 == lines.as_bytes());
    assert!(ftp[0].1[20_000..] == ftp[4].1);
    assert!(ftp[5].1.starts_with(b"-----BEGIN CERTIFICATE-----"));

    let tftp = exported_from("transfer.pcap", &["-k", "tftp"]);
    let [(row, octets)] = &tftp[..] else { panic!("{tftp:?}") };
    assert!(octets == lines.as_bytes());
    assert_eq!(
        (&row["name"], &row["role"], &row["is_complete"]),
        (&"lines.txt".into(), &"server".into(), &true.into())
    );

    let mail = exported_from("mail.pcap", &[]);
    assert!(mail.iter().all(|(row, octets)| {
        let is_message = octets.windows(9).any(|part| part == b"\nSubject:") && octets.ends_with(b"\r\n");
        row["file"].as_str().unwrap().ends_with("-A_message.eml") && row["name"] == "A message" && is_message
    }));
    assert_eq!(mail.len(), 2);
}

/// The same command writes the same files and rows.
#[test]
fn runs_are_equal() {
    for file in ["web.pcap", "mail.pcap", "transfer.pcap"] {
        assert_eq!(exported_from(file, &["--pem"]), exported_from(file, &["--pem"]), "{file}");
    }
}

#[test]
fn formats_have_the_same_objects() {
    let folder = Folder::new();
    let out = |name: &str, format: &str| {
        let run = run(&["export-objects", "web.pcap", "-q", "-f", format, "--out", &folder.path(name)]);
        assert_eq!((run.status, run.err.as_str()), (0, ""));
        run.out
    };
    let names: Vec<_> = objects(&out("ndjson", "ndjson"))
        .iter()
        .map(|row| row["file"].as_str().unwrap().to_owned())
        .collect();
    let csv = out("csv", "csv");
    let of_csv: Vec<_> = csv.lines().skip(1).map(|line| line.split(',').next().unwrap()).collect();
    assert_eq!(of_csv, names);
    let table = out("table", "table");
    let of_table: Vec<_> = table.lines().skip(1).map(|line| line.rsplit(' ').next().unwrap()).collect();
    assert_eq!(of_table, names);
    assert_eq!(files(&folder.path("csv")), files(&folder.path("table")));
    let refused =
        run(&["export-objects", "web.pcap", "-f", "table", "--time", "unix", "-o", &folder.path("x")]);
    assert_eq!(refused.status, 2);
}

/// Nothing of the name in the traffic leaves the folder, hides a file or reaches a terminal.
#[test]
fn hostile_names_are_harmless() {
    let names = [
        "../../etc/passwd",
        "..",
        "/etc/passwd",
        "..\\..\\boot.ini",
        "C:evil.exe",
        "CON",
        "-rf",
        ".bashrc",
        "a\u{1b}]0;x\u{7}b",
        "gpj.\u{202e}exe",
        "a%00b",
        "name;with $(shell) `text`",
        "\u{200b}",
    ];
    let long = "long".repeat(300);
    let names: Vec<&str> = names.into_iter().chain([long.as_str(), "same", "same", "SAME"]).collect();
    let disposition = |name: &str| format!("Content-Disposition: attachment; filename=\"{name}\"\r\n");
    let all: Vec<_> =
        names.iter().map(|name| ("/x", response(&disposition(name), name.as_bytes()))).collect();
    let of_target = [("/../../../etc/shadow", response("", b"1")), ("/a/..", response("", b"2"))];
    let capture = downloads(&[all, of_target.into()].concat());
    let found = exported(&capture, &[]);
    assert_eq!(found.len(), names.len() + 2);
    for (row, octets) in &found {
        let file = row["file"].as_str().unwrap();
        let (digits, name) = file.split_at(7);
        assert!(digits.ends_with('-') && digits[..6].parse::<u32>().is_ok(), "{file}");
        let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
        assert!(name.chars().all(is_plain) && file.len() <= 120 && !name.ends_with('.'), "{file}");
        assert!(!octets.is_empty() && row["is_complete"] == true, "{row}");
    }
    let table = run_with_input(
        &["export-objects", "-", "-q", "-f", "table", "-o", &Folder::new().path("x")],
        &capture,
    );
    assert!(table.out.chars().all(|letter| letter == '\n' || !letter.is_control()), "{}", table.out);
}

#[test]
fn existing_files_are_never_changed() {
    let folder = Folder::new();
    let capture = downloads(&[("/page.html", response("", b"<html>")), ("/b", response("", b"second"))]);
    let input = folder.file("input.pcap", &capture);
    let export = |out: &str| run(&["export-objects", &input, "-q", "--out", out]);
    let out = folder.path("out");
    assert_eq!(export(&out).status, 0);
    let before = files(&out);
    let refused = export(&out);
    assert_eq!(refused.status, 1);
    assert!(
        refused.err.contains("000001-page.html: already exists and is not overwritten"),
        "{}",
        refused.err
    );
    assert_eq!(files(&out), before);

    // The second file exists: the first one and its row are complete, and nothing else is left.
    let other = folder.path("other");
    fs::create_dir(&other).unwrap();
    folder.file("other/000002-b", b"precious");
    let refused = export(&other);
    assert_eq!((refused.status, objects(&refused.out).len()), (1, 1));
    let left: Vec<_> = files(&other).into_iter().collect();
    assert_eq!(
        left,
        [("000001-page.html".to_owned(), b"<html>".to_vec()), ("000002-b".to_owned(), b"precious".to_vec())]
    );

    #[cfg(unix)]
    {
        // Links out of the folder, to a device, and to nothing.
        use std::os::unix::fs::symlink;
        let outside = folder.file("outside", b"precious");
        for (index, target) in [outside.as_str(), "/dev/null", &folder.path("none")].into_iter().enumerate() {
            let out = folder.path(&format!("links{index}"));
            fs::create_dir(&out).unwrap();
            symlink(target, Path::new(&out).join("000001-page.html")).unwrap();
            let refused = export(&out);
            assert_eq!((refused.status, refused.out.as_str()), (1, ""), "{target}");
            assert!(refused.err.contains("already exists"), "{}", refused.err);
            assert_eq!(fs::read_dir(&out).unwrap().count(), 1, "{target}");
        }
        assert_eq!(fs::read(&outside).unwrap(), b"precious");
        assert!(!fs::exists(folder.path("none")).unwrap());
    }
    // A folder that cannot be created.
    let refused = export(&folder.path("input.pcap/x"));
    assert_eq!(refused.status, 1);
}

#[test]
fn limits_omit_objects_and_octets_and_are_reported() {
    let all: Vec<_> = (1..=9).map(|n| ("/x", response("", &[b'x'; 100].repeat(n)))).collect();
    let capture = downloads(&all);
    for (options, lens, complete_count, messages) in [
        (&["--max-count", "4"][..], &[100, 200, 300, 400][..], 4, &["5 objects omitted at a limit"][..]),
        (
            &["--max-size", "300"],
            &[100, 200, 300, 300, 300, 300, 300, 300, 300],
            3,
            &["6 objects truncated at a limit"],
        ),
        (&["--max-total", "1kB"], &[100, 200, 300, 400], 4, &["5 objects omitted at a limit"]),
        (
            &["--max-total", "1050"],
            &[100, 200, 300, 400, 50],
            4,
            &["4 objects omitted at a limit", "1 object truncated at a limit"],
        ),
    ] {
        let folder = Folder::new();
        let out = folder.path("out");
        let run =
            run_with_input(&[&["export-objects", "-", "-q", "--out", &out], options].concat(), &capture);
        assert_eq!(run.status, 1, "{options:?}");
        assert_eq!(run.err.lines().count(), messages.len(), "{}", run.err);
        assert!(messages.iter().all(|message| run.err.contains(message)), "{}", run.err);
        let found = read(&out, &run.out);
        assert_eq!(found.iter().map(|(row, _)| number(row, "len")).collect::<Vec<_>>(), lens, "{options:?}");
        for (row, octets) in &found {
            let omitted_len = row.get("omitted_len").map_or(0, |len| len.as_u64().unwrap());
            assert_eq!(row["is_complete"], omitted_len == 0, "{row}");
            assert!(octets.iter().all(|octet| *octet == b'x'));
        }
        assert_eq!(found.iter().filter(|(row, _)| row["is_complete"] == true).count(), complete_count);
    }
}

/// More objects arrive at the same time than files may be open.
#[test]
#[cfg(unix)]
fn the_number_of_open_files_is_bounded() {
    let count = 1000_u16;
    let mut trace = Trace::new();
    let mut connections: Vec<_> = (0..count)
        .map(|index| Connection { ends: [(CLIENT.0, 10_000 + index), SERVER], next: [1000, 9000] })
        .collect();
    let mut time = 0;
    let mut each = |trace: &mut Trace, from, flags, payload: &dyn Fn(usize) -> Vec<u8>| {
        for (index, connection) in connections.iter_mut().enumerate() {
            time += 1;
            trace.segment(time, connection, from, flags, &payload(index));
        }
    };
    each(&mut trace, 0, "S", &|_| Vec::new());
    each(&mut trace, 1, "SA", &|_| Vec::new());
    each(&mut trace, 0, "AP", &|_| b"GET /x HTTP/1.1\r\nHost: a\r\n\r\n".to_vec());
    each(&mut trace, 1, "AP", &|index| {
        format!("HTTP/1.1 200 OK\r\nContent-Length: 15\r\n\r\n{index:05}").into_bytes()
    });
    for part in ["a", "b"] {
        each(&mut trace, 1, "AP", &|index| format!("{part}{index:04}").into_bytes());
    }
    let folder = Folder::new();
    let (input, out) = (folder.file("many.pcap", &trace.file()), folder.path("out"));
    let script = "ulimit -n 200; exec \"$0\" export-objects \"$1\" -q --out \"$2\"";
    let program = env!("CARGO_BIN_EXE_flowgauge");
    let run: Run = Command::new("sh").args(["-c", script, program, &input, &out]).output().unwrap().into();
    assert_eq!((run.status, run.err.as_str()), (0, ""));
    let mut texts: Vec<_> =
        read(&out, &run.out).into_iter().map(|(_, octets)| String::from_utf8(octets).unwrap()).collect();
    texts.sort();
    let expected: Vec<_> = (0..count).map(|index| format!("{index:05}a{index:04}b{index:04}")).collect();
    assert_eq!(texts, expected);
}

/// The signal of a file that becomes too long is ignored, so that the write fails instead, as on a full disk.
#[test]
#[cfg(unix)]
fn a_failed_write_ends_the_run_and_leaves_no_part() {
    let body = vec![b'x'; 100_000];
    let capture = downloads(&[("/small", response("", b"small")), ("/large", response("", &body))]);
    let folder = Folder::new();
    let (input, out) = (folder.file("in.pcap", &capture), folder.path("out"));
    let script = "trap '' XFSZ; ulimit -f 16; exec \"$0\" export-objects \"$1\" -q --out \"$2\"";
    let program = env!("CARGO_BIN_EXE_flowgauge");
    let run: Run = Command::new("sh").args(["-c", script, program, &input, &out]).output().unwrap().into();
    assert_eq!(run.status, 1);
    assert!(run.err.contains("File too large") && run.err.lines().count() == 1, "{}", run.err);
    let left: Vec<_> = files(&out).into_iter().collect();
    assert_eq!(left, [("000001-small".to_owned(), b"small".to_vec())]);
}

#[test]
fn gaps_are_omitted_and_marked() {
    let mut trace = Trace::new();
    let mut connection = Connection { ends: [CLIENT, SERVER], next: [1000, 9000] };
    let head = b"HTTP/1.1 200 OK\r\nContent-Length: 30\r\n\r\n0123456789";
    trace.segment(0, &mut connection, 0, "S", b"");
    trace.segment(10, &mut connection, 1, "SA", b"");
    trace.segment(20, &mut connection, 0, "AP", b"GET /gap.txt HTTP/1.1\r\nHost: a\r\n\r\n");
    trace.segment(30, &mut connection, 1, "AP", head);
    // Ten octets were not captured, but are acknowledged.
    connection.next[1] += 10;
    trace.segment(100, &mut connection, 1, "AP", b"abcdefghij");
    trace.segment(200, &mut connection, 0, "A", b"");
    trace.segment(100_000, &mut connection, 1, "AF", b"");
    trace.segment(100_010, &mut connection, 0, "AF", b"");
    let found = exported(&trace.file(), &[]);
    let [(row, octets)] = &found[..] else { panic!("{found:?}") };
    assert_eq!(octets, b"0123456789abcdefghij");
    assert_eq!((number(row, "missing_len"), number(row, "gap_count")), (10, 1));
    assert_eq!((&row["is_complete"], &row["name"]), (&false.into(), &"gap.txt".into()));
}

/// A mail with lines that begin with dots, and one whose end was not captured.
#[test]
fn mails_are_written_without_the_dots_of_their_transport() {
    let envelope = "MAIL FROM:<a@b.example>\r\nRCPT TO:<c@d.example>\r\nDATA\r\n";
    let mut trace = Trace::new();
    let mut connection = Connection { ends: [CLIENT, (SERVER.0, 25)], next: [1000, 9000] };
    let mut time = 0;
    let mut turn = |from: usize, text: &str| {
        time += 1000;
        trace.segment(time, &mut connection, from, "AP", text.as_bytes());
    };
    turn(1, "220 d.example ESMTP\r\n");
    turn(0, "EHLO b.example\r\n");
    turn(1, "250-d.example\r\n250 PIPELINING\r\n");
    turn(0, envelope);
    turn(1, "250 ok\r\n250 ok\r\n354 go\r\n");
    turn(0, "Subject: dots\r\n\r\n..\r\n..two\r\n");
    turn(0, "end\r\n.\r\n");
    turn(1, "250 ok\r\n");
    turn(0, envelope);
    turn(1, "250 ok\r\n250 ok\r\n354 go\r\n");
    turn(0, "Subject: no end\r\n\r\nthe first line\r\n");
    let found = exported(&trace.file(), &["--kind", "mail"]);
    let [(whole, octets), (part, of_part)] = &found[..] else { panic!("{found:?}") };
    assert_eq!(octets, b"Subject: dots\r\n\r\n.\r\n.two\r\nend\r\n");
    assert_eq!((&whole["is_complete"], &whole["file"]), (&true.into(), &"000001-dots.eml".into()));
    assert_eq!(of_part, b"Subject: no end\r\n\r\nthe first line\r\n");
    assert_eq!((&part["is_complete"], &part["transaction"]), (&false.into(), &1.into()));
}

/// The same text in all codings, and bodies that must not be decoded.
#[test]
fn content_codings_are_decoded_on_request() {
    let text = "<!doctype html><p>some text</p>".repeat(100);
    let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
    gzip.write_all(text.as_bytes()).unwrap();
    let gzip = gzip.finish().unwrap();
    let mut zlib = ZlibEncoder::new(Vec::new(), Compression::best());
    zlib.write_all(text.as_bytes()).unwrap();
    let zlib = zlib.finish().unwrap();
    let zstd = zstd::stream::encode_all(text.as_bytes(), 3).unwrap();
    let mut bomb = GzEncoder::new(Vec::new(), Compression::best());
    (0..64).for_each(|_| bomb.write_all(&vec![0; 1 << 20]).unwrap());
    let bomb = bomb.finish().unwrap();
    let damaged = [&gzip[..gzip.len() - 4], b"xxxx"].concat();
    let coded = |name: &str, body: &[u8]| response(&format!("Content-Encoding: {name}\r\n"), body);
    let zstd_head_len = coded("zstd", &zstd).len() - zstd.len();
    let chunked = {
        let (first, second) = gzip.split_at(20);
        let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Encoding: gzip\r\n\r\n";
        let chunk = |octets: &[u8]| [format!("{:x}\r\n", octets.len()).as_bytes(), octets, b"\r\n"].concat();
        [head.as_bytes(), &chunk(first), &chunk(second), b"0\r\n\r\n"].concat()
    };
    let all = [
        ("/gzip", coded("gzip", &gzip), Some("decoded")),
        ("/chunked", chunked, Some("decoded")),
        ("/deflate", coded("deflate", &zlib), Some("decoded")),
        ("/zstd", coded("zstd", &zstd), Some("decoded")),
        ("/none", response("", text.as_bytes()), None),
        ("/identity", coded("identity", text.as_bytes()), None),
        ("/bomb", coded("gzip", &bomb), Some("limit")),
        ("/damaged", coded("gzip", &damaged), Some("invalid")),
        ("/wrong", coded("br", &gzip), Some("invalid")),
        ("/twice", coded("gzip, gzip", &gzip), Some("unsupported")),
        ("/empty", coded("gzip", b""), None),
        (
            "/void",
            coded("gzip", &GzEncoder::new(Vec::new(), Compression::best()).finish().unwrap()),
            Some("decoded"),
        ),
        ("/trailing", coded("gzip", &[&gzip[..], b"\0\0\0\0\0"].concat()), Some("trailing")),
        ("/untrailed", coded("gzip", &gzip[..gzip.len() - 8]), Some("cut")),
        ("/partial", coded("gzip", &gzip)[..120].to_vec(), Some("cut")),
        ("/block", coded("zstd", &zstd)[..zstd_head_len + zstd.len() - 1].to_vec(), Some("incomplete")),
        ("/head", coded("gzip", &gzip)[..80].to_vec(), Some("incomplete")),
    ];
    let downloads = downloads(&all.clone().map(|(target, response, _)| (target, response)));
    let as_sent = exported(&downloads, &[]);
    let decoded = exported(&downloads, &["--decode"]);
    // A body of no octets is no object.
    assert_eq!((as_sent.len(), decoded.len()), (all.len() - 1, all.len() - 1));
    for (target, _, result) in all.into_iter().filter(|(target, ..)| *target != "/empty") {
        let of =
            |all: &[(Value, Vec<u8>)]| all.iter().find(|(row, _)| row["target"] == target).unwrap().clone();
        let ((sent_row, sent), (row, octets)) = (of(&as_sent), of(&decoded));
        assert!(sent_row.get("decoding").is_none());
        assert_eq!(row.get("decoding").and_then(Value::as_str), result, "{row}");
        match result {
            Some("decoded") if target == "/void" => assert!(octets.is_empty()),
            Some("cut") => assert!(text.as_bytes().starts_with(&octets) && !octets.is_empty(), "{target}"),
            Some("decoded" | "trailing") | None => {
                assert!(octets == text.as_bytes(), "{target}");
                assert_eq!(row["detected_type"], "text/html");
            }
            Some(_) => assert!(octets == sent, "{target}"),
        }
        assert_eq!(
            sent_row["detected_type"] == "application/gzip",
            sent.starts_with(&[0x1f, 0x8b]),
            "{target}"
        );
    }
    let small = Folder::new();
    let run = run_with_input(
        &["export-objects", "-", "-q", "--decode", "--max-size", "3099", "-o", &small.path("out")],
        &downloads,
    );
    let results: Vec<_> = objects(&run.out).iter().map(|row| row["decoding"].clone()).collect();
    assert_eq!(results[..4], ["limit"; 4], "the text has 3100 octets");
}

/// The decoded octets are in proportion to those of the connection, not to the number of its bodies.
#[test]
fn many_bodies_do_not_decode_to_more_than_one() {
    let body = zstd::stream::encode_all(&vec![0; 1 << 20][..], 19).unwrap();
    let responses = response("Content-Encoding: zstd\r\n", &body).repeat(200);
    let requests = b"GET /x HTTP/1.1\r\nHost: h\r\n\r\n".repeat(200);
    let mut trace = Trace::new();
    trace.exchange(0, [CLIENT, SERVER], &requests, &responses);
    let capture = trace.file();
    let found = exported(&capture, &["--decode"]);
    assert_eq!(found.len(), 200);
    let len: usize = found.iter().map(|(_, octets)| octets.len()).sum();
    assert!(len <= 32 * capture.len() + (64 << 10), "{len} octets of {}", capture.len());
}

/// A part of a file in a response with these fields.
fn range(file: &[u8], range: std::ops::Range<usize>, fields: &str) -> Vec<u8> {
    let body = &file[range.clone()];
    let head = format!(
        "HTTP/1.1 206 Partial Content\r\nContent-Length: {}\r\nContent-Range: bytes {}-{}/{}\r\n{fields}\r\n",
        body.len(),
        range.start,
        range.end - 1,
        file.len()
    );
    [head.as_bytes(), body].concat()
}

/// The ranges of a file in any order, in several connections, overlapping and repeated, are one object. Without some of
/// them, it has gaps.
#[test]
fn ranges_of_a_file_are_joined() {
    let file: Vec<u8> =
        (0..50_000_u32).flat_map(|number| (number.wrapping_mul(2_654_435_761)).to_be_bytes()).collect();
    let file = &file[..100_000];
    let tag = "ETag: \"a\"\r\n";
    let part = |at: std::ops::Range<usize>| ("/dir/f.bin", range(file, at, tag));
    let bounds = [(0, 20_000), (20_000, 20_001), (20_001, 70_000), (70_000, 90_000), (90_000, 100_000)];
    for order in [[0, 1, 2, 3, 4], [4, 3, 2, 1, 0], [2, 0, 4, 1, 3]] {
        let mut all: Vec<_> = order.iter().map(|index| part(bounds[*index].0..bounds[*index].1)).collect();
        // Ranges within others, and across their bounds.
        all.insert(2, part(10_000..15_000));
        all.insert(3, part(15_000..80_000));
        let capture = downloads(&all);
        let found = exported(&capture, &[]);
        let [(row, octets)] = &found[..] else { panic!("{} objects", found.len()) };
        assert!(octets == file && row["is_complete"] == true && row["name"] == "f.bin", "{row}");
        assert_eq!((&row["range_start"], &row["complete_len"]), (&0.into(), &100_000.into()), "{row}");
        assert!(row.get("ranges").is_none() && row.get("missing_len").is_none() && row["status"] == 206);
        // The last one may complete the object before others repeat its octets.
        assert_eq!(exported(&capture, &["--no-join-ranges", "--join-ranges"]), found);
        let alone = exported(&capture, &["--no-join-ranges"]);
        assert_eq!(alone.len(), all.len());
        for (row, octets) in alone {
            let start = number(&row, "range_start") as usize;
            assert!(octets == file[start..start + octets.len()] && row["is_complete"] == true, "{row}");
        }
        let mut with_gaps = all.clone();
        with_gaps
            .retain(|(_, response)| *response != part(0..20_000).1 && *response != part(90_000..100_000).1);
        let found = exported(&downloads(&with_gaps), &[]);
        let [(row, octets)] = &found[..] else { panic!("{} objects", found.len()) };
        assert_eq!(octets, &file[10_000..90_000]);
        assert_eq!((&row["range_start"], &row["missing_len"]), (&10_000.into(), &20_000.into()), "{row}");
        assert_eq!((&row["ranges"], &row["gap_count"]), (&"10000-89999".into(), &2.into()), "{row}");
        assert_eq!(row["is_complete"], false);
    }
    let found = exported(&downloads(&[part(0..10), part(20..30)]), &[]);
    let [(row, octets)] = &found[..] else { panic!("{} objects", found.len()) };
    assert_eq!((&octets[..10], &octets[10..]), (&file[..10], &file[20..30]));
    assert_eq!((&row["ranges"], &row["missing_len"]), (&"0-9,20-29".into(), &99_980.into()), "{row}");
}

/// What differs is of different files, and a range that contradicts others is an object of its own.
#[test]
fn ranges_of_different_files_are_not_joined() {
    let (file, other) = (b"0123456789".repeat(4), b"abcdefghij".repeat(4));
    for (first, second) in [
        (("/a", range(&file, 0..20, "")), ("/b", range(&file, 20..40, ""))),
        (("/a", range(&file, 0..20, "ETag: \"1\"\r\n")), ("/a", range(&file, 20..40, "ETag: \"2\"\r\n"))),
        (
            ("/a", range(&file, 0..20, "Last-Modified: a\r\n")),
            ("/a", range(&file, 20..40, "Last-Modified: b\r\n")),
        ),
        (("/a", range(&file, 0..20, "")), ("/a", range(&file[..30], 20..30, ""))),
        (("/a", range(&file, 0..20, "")), ("/a", range(&other, 19..40, ""))),
    ] {
        let found = exported(&downloads(&[first, second]), &[]);
        let mut octets: Vec<_> = found.iter().map(|(_, octets)| octets.len()).collect();
        octets.sort_unstable();
        assert!(octets == [20, 20] || octets == [10, 20] || octets == [20, 21], "{found:?}");
    }
    // A joined file is decoded, of which the parts cannot be.
    let text = b"some text ".repeat(20);
    let coded = zstd::stream::encode_all(&text[..], 3).unwrap();
    let half = coded.len() / 2;
    let coding = "Content-Encoding: zstd\r\n";
    let parts = [("/a", range(&coded, half..coded.len(), coding)), ("/a", range(&coded, 0..half, coding))];
    let found = exported(&downloads(&parts), &["--decode"]);
    assert!(
        matches!(&found[..], [(row, octets)] if *octets == text && row["decoding"] == "decoded"),
        "{found:?}"
    );
    let found = exported(&downloads(&parts[..1]), &["--decode"]);
    assert!(
        matches!(&found[..], [(row, octets)] if row["decoding"] == "incomplete" && *octets == coded[half..])
    );
}

/// A response with parts of a file that has another length than its body.
fn partial(content_type: &str, body: &[u8], len: usize) -> Vec<u8> {
    let head = format!(
        "HTTP/1.1 206 Partial Content\r\nContent-Length: {len}\r\nContent-Type: {content_type}\r\nETag: \"a\"\r\n\r\n"
    );
    [head.as_bytes(), body].concat()
}

/// The body of type `multipart/byteranges` with these ranges of a file (RFC 9110 section 14.6).
fn parts(file: &[u8], ranges: &[std::ops::Range<usize>], boundary: &str) -> Vec<u8> {
    let mut body = Vec::new();
    for range in ranges {
        let head = format!(
            "\r\n--{boundary}\r\nContent-Type: text/x\r\nContent-Range: bytes {}-{}/{}\r\n\r\n",
            range.start,
            range.end - 1,
            file.len()
        );
        body.extend(head.as_bytes());
        body.extend(&file[range.clone()]);
    }
    body.extend(format!("\r\n--{boundary}--\r\n").as_bytes());
    body
}

/// Positions and octets of the parts of a body, which are searched for by the boundary.
fn split(body: &[u8], boundary: &str) -> Vec<(u64, Vec<u8>)> {
    let delimiter = format!("\r\n--{boundary}");
    let find = |octets: &[u8], text: &[u8]| octets.windows(text.len()).position(|window| window == text);
    let (mut rest, mut all) = (body, Vec::new());
    while let Some(at) = find(rest, delimiter.as_bytes()) {
        rest = &rest[at + delimiter.len()..];
        let part = &rest[..find(rest, delimiter.as_bytes()).unwrap_or(rest.len())];
        let Some(head_len) = find(part, b"\r\n\r\n") else { continue };
        let head = std::str::from_utf8(&part[..head_len]).unwrap();
        let start = head.split("bytes ").nth(1).unwrap().split('-').next().unwrap();
        all.push((start.parse().unwrap(), part[head_len + 4..].to_vec()));
    }
    all
}

/// The parts of a response are ranges, which are joined with those of other responses.
#[test]
fn parts_of_responses_are_ranges() {
    let mut file: Vec<u8> = (0..60_000_u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let longest =
        "0123456789abcdef'()+_,-./:=? ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmno?".get(..70).unwrap();
    // Octets that only resemble a delimiter.
    for (at, text) in [(100, "\r\n--\r\n--b"), (7000, "\r\n--boundar"), (40_000, "--boundary--\r\n")] {
        file[at..at + text.len()].copy_from_slice(text.as_bytes());
    }
    let ranges = [50_000..60_000, 100..101, 0..100, 101..20_000, 30_000..45_000];
    let missing = 20_000..30_000;
    for (boundary, in_field) in
        [("boundary", "boundary".to_owned()), (longest, format!("\"{longest}\"")), ("0", "0".to_owned())]
    {
        let content_type = format!("multipart/byteranges; boundary={in_field}");
        let body = parts(&file, &ranges, boundary);
        let response = partial(&content_type, &body, body.len());
        let mut expected = split(&body, boundary);
        assert_eq!(expected.len(), ranges.len());
        let capture = downloads(&[("/f.bin", response.clone())]);
        let found = exported(&capture, &["--no-join-ranges"]);
        for (row, octets) in &found {
            let at = expected.iter().position(|part| *part == (number(row, "range_start"), octets.clone()));
            expected.remove(at.unwrap_or_else(|| panic!("{row}")));
            assert!(row["is_complete"] == true && row["content_type"] == "text/x", "{row}");
            assert_eq!((&row["complete_len"], &row["status"]), (&60_000.into(), &206.into()));
        }
        assert!(expected.is_empty(), "{} parts are missing", expected.len());
        // Alone, they have gaps.
        let found = exported(&capture, &[]);
        let [(row, octets)] = &found[..] else { panic!("{} objects", found.len()) };
        assert_eq!(*octets, [&file[..20_000], &file[30_000..45_000], &file[50_000..]].concat());
        assert_eq!((&row["range_count"], &row["missing_len"]), (&5.into(), &15_000.into()), "{row}");
        assert_eq!(row["ranges"], "0-19999,30000-44999,50000-59999");
        // Another response has what is missing, and more.
        let others = [
            range(&file, missing.clone(), "ETag: \"a\"\r\n"),
            range(&file, 44_000..50_000, "ETag: \"a\"\r\n"),
        ];
        let [first, second] = others.map(|other| ("/f.bin", other));
        for all in [
            [first.clone(), ("/f.bin", response.clone()), second.clone()],
            [second, first, ("/f.bin", response.clone())],
        ] {
            let found = exported(&downloads(&all), &[]);
            let [(row, octets)] = &found[..] else { panic!("{} objects", found.len()) };
            assert!(*octets == file && row["is_complete"] == true && row["range_count"] == 7, "{row}");
        }
    }
}

/// A response that is cut has the parts before its end; one that is not well-formed is written as sent.
#[test]
fn parts_of_damaged_responses() {
    let file: Vec<u8> = (0..=255).cycle().take(3000).collect();
    let body = parts(&file, &[0..1000, 2000..3000], "b");
    let exported = |body: &[u8], len: usize| {
        let response = partial("multipart/byteranges; boundary=b", body, len);
        exported(&downloads(&[("/f", response)]), &[])
    };
    let found = exported(&body[..1600], body.len());
    let [(row, octets)] = &found[..] else { panic!("{} objects", found.len()) };
    let second = split(&body[..1600], "b").pop().unwrap().1;
    assert_eq!(*octets, [&file[..1000], &second].concat());
    assert_eq!(row["ranges"], format!("0-999,2000-{}", 1999 + second.len()), "{row}");
    assert_eq!(
        (number(row, "missing_len"), &row["is_complete"]),
        (2000 - second.len() as u64, &false.into())
    );
    let mut with_other_len = body.clone();
    with_other_len.remove(500);
    let many = parts(&file, &vec![0..1; 1025], "b");
    for body in [&body[..1600], &with_other_len, &body[5..], &many] {
        let found = exported(body, body.len());
        let [(row, octets)] = &found[..] else { panic!("{} objects", found.len()) };
        assert!(octets == body && row.get("range_start").is_none(), "{row}");
    }
    // Parts are objects in the limit on these.
    let folder = Folder::new();
    let out = folder.path("out");
    let capture = downloads(&[("/f", partial("multipart/byteranges; boundary=b", &body, body.len()))]);
    let run = run_with_input(
        &["export-objects", "-", "-q", "--no-join-ranges", "--max-count", "1", "-o", &out],
        &capture,
    );
    assert!(run.status == 1 && run.err.contains("1 object omitted"), "{}", run.err);
    assert!(matches!(&read(&out, &run.out)[..], [(_, octets)] if *octets == file[..1000]));
}

/// A response that is cut, and a range with the rest of it. Only a strong ETag shows that both are of one file.
#[test]
fn a_range_continues_a_response() {
    let file: Vec<u8> = (0..=255).cycle().take(50_000).collect();
    let whole = |fields: &str, len: usize| {
        let mut response = response(fields, &file);
        response.truncate(response.len() - file.len() + len);
        ("/f.bin", response)
    };
    let strong = "ETag: \"a\"\r\n";
    // The response to a request with If-Range repeats the ETag, not all other fields (RFC 9110 section 15.3.7).
    let first = whole(&format!("{strong}Last-Modified: then\r\nContent-Type: text/x\r\n"), 20_000);
    let rest = |from: usize, fields: &str| ("/f.bin", range(&file, from..50_000, fields));
    for all in [
        vec![first.clone(), rest(20_000, strong)],
        vec![first.clone(), rest(15_000, strong)],
        vec![rest(20_000, strong), first.clone()],
        vec![first.clone(), whole(strong, 30_000), rest(30_000, strong)],
    ] {
        let found = exported(&downloads(&all), &[]);
        let [(row, octets)] = &found[..] else { panic!("{} objects", found.len()) };
        assert!(*octets == file && row["is_complete"] == true && row["complete_len"] == 50_000, "{row}");
        assert_eq!(number(row, "range_count"), all.len() as u64);
    }
    // A gap between both is stated.
    let found = exported(&downloads(&[first.clone(), rest(40_000, strong)]), &[]);
    assert!(matches!(&found[..], [(row, _)] if row["ranges"] == "0-19999,40000-49999"), "{found:?}");
    // A range of the whole file that is cut is continued, too.
    let (_, mut cut) = rest(0, strong);
    cut.truncate(cut.len() - 10_000);
    let found = exported(&downloads(&[("/f.bin", cut), rest(40_000, strong)]), &[]);
    assert!(matches!(&found[..], [(_, octets)] if *octets == file));
    for fields in ["ETag: W/\"a\"\r\n", "Last-Modified: then\r\n", ""] {
        let found = exported(&downloads(&[whole(fields, 20_000), rest(20_000, fields)]), &[]);
        assert_eq!(found.len(), 2, "{fields}");
    }
    for other in [rest(20_000, "ETag: \"b\"\r\n"), rest(20_000, ""), ("/other", rest(20_000, strong).1)] {
        assert_eq!(exported(&downloads(&[first.clone(), other]), &[]).len(), 2);
    }
    // Alone, the response is what it is without joining.
    let capture = downloads(&[first]);
    assert_eq!(exported(&capture, &[]), exported(&capture, &["--no-join-ranges"]));
}

/// More entities than are kept, and more ranges than the row of one may list.
#[test]
fn ranges_are_bounded() {
    let file = vec![7; 1000];
    let names: Vec<_> = (0..300).map(|index| format!("/{index}")).collect();
    let all: Vec<_> = names.iter().map(|name| (name.as_str(), range(&file, 0..1, ""))).collect();
    assert_eq!(exported(&downloads(&all), &[]).len(), 300);
    let all: Vec<_> = (0..200).map(|index| ("/x", range(&file, 5 * index..5 * index + 1, ""))).collect();
    let found = exported(&downloads(&all), &[]);
    let [(row, octets)] = &found[..] else { panic!("{} objects", found.len()) };
    assert_eq!((octets.len(), number(row, "gap_count")), (200, 200));
    assert_eq!(row["ranges"].as_str().unwrap().split(',').count(), 64);
}

/// Each certificate is written once, with a row for each connection; openssl reads both forms.
#[test]
fn certificates_are_written_once_as_der_and_pem() {
    let folder = Folder::new();
    let out = folder.path("out");
    let run = run(&["export-objects", "web.pcap", "-q", "--kind", "certificate", "--pem", "--out", &out]);
    assert_eq!((run.status, run.err.as_str()), (0, ""));
    let found = read(&out, &run.out);
    let names: Vec<_> = files(&out).into_keys().collect();
    assert_eq!(names, ["000001-web.example.der", "000001-web.example.pem"]);
    let transactions =
        objects(&super::run(&["sessions", "web.pcap", "-q", "--transactions", "-p", "tls"]).out);
    let x509 = transactions.iter().filter(|row| row["kind"] == "x509");
    let digests = |rows: &mut dyn Iterator<Item = &Value>| {
        rows.map(|row| (row["community_id"].clone(), row["sha256"].clone())).collect::<Vec<_>>()
    };
    assert_eq!(digests(&mut found.iter().map(|(row, _)| row)), digests(&mut x509.into_iter()));
    assert_eq!(found.len(), 2);
    let Some(openssl) = program("openssl") else { return };
    let printed = |name: &str, form: &str| {
        let arguments = [
            "x509",
            "-in",
            &format!("{out}/{name}"),
            "-inform",
            form,
            "-noout",
            "-text",
            "-fingerprint",
            "-sha256",
        ];
        let output = Command::new(&openssl).args(arguments).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let der = printed(&names[0], "DER");
    assert_eq!(der, printed(&names[1], "PEM"));
    let fingerprint = der.lines().last().unwrap().split_once('=').unwrap().1.replace(':', "").to_lowercase();
    assert!(found.iter().all(|(row, _)| row["sha256"] == fingerprint));
}

#[test]
fn flows_are_selected() {
    let all = exported_from("web.pcap", &["--kind", "http"]);
    let id = all[0].0["community_id"].as_str().unwrap();
    let expected: Vec<_> =
        all.iter().filter(|(row, _)| row["community_id"] == id).map(|(_, octets)| octets).collect();
    let found = exported_from("web.pcap", &["--community-id", id]);
    assert_eq!(found.iter().map(|(_, octets)| octets).collect::<Vec<_>>(), expected);
    let found = exported_from("web.pcap", &["--filter", "ip6", "-k", "http"]);
    assert_eq!(
        found.len(),
        all.iter().filter(|(row, _)| row["source_address"].as_str().unwrap().contains(':')).count()
    );
    let refused = run(&["export-objects", "web.pcap", "--out", "x", "--kind", "icmp"]);
    assert_eq!(refused.status, 2);
}

/// Returns the path of a program; `None`, with a note, if it is not installed and not required.
fn program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|folder| folder.join(name)).find(|path| path.is_file());
    if found.is_none() {
        let is_required = std::env::var("FLOWGAUGE_PROGRAMS").is_ok_and(|value| value == "required");
        assert!(!is_required, "{name} is required, but not installed");
        println!("skipped: {name} is not installed");
    }
    found
}

/// Captures of the corpus in which tshark finds objects, and one of which it finds less than there is.
fn corpus(names: &[&str]) -> Vec<String> {
    let Some(root) = std::env::var_os("FLOWGAUGE_CORPUS").filter(|root| !root.is_empty()) else {
        println!("FLOWGAUGE_CORPUS is not set: only the captures of this repository");
        return Vec::new();
    };
    let path = |name: &&str| Path::new(&root).join("captures").join(name).to_str().unwrap().to_owned();
    names.iter().map(path).collect()
}

/// Objects that tshark exports, by their content.
fn exported_by_tshark(tshark: &Path, file: &str, kind: &str) -> Vec<Vec<u8>> {
    let folder = Folder::new();
    let out = folder.path("tshark");
    let arguments = ["-n", "-q", "-r", file, "--export-objects", &format!("{kind},{out}")];
    let output = Command::new(tshark)
        .args(arguments)
        .current_dir(repository().join("examples/data"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    if fs::exists(&out).unwrap() { files(&out).into_values().collect() } else { Vec::new() }
}

/// Each file that tshark exports is one of the objects.
#[test]
fn files_of_smb_are_those_of_tshark() {
    const CAPTURES: [(&str, usize); 6] = [
        ("zeek+zeek/testing/btest/Traces/smb/smb1", 1),
        ("zeek+zeek/testing/btest/Traces/smb/smb2readwrite", 2),
        ("OISF+suricata-verify/tests/smb-eicar-file/input", 1),
        ("OISF+suricata-verify/tests/smb-eicar-padding/smb1_eicar_andx_write_padding2", 1),
        ("arkime+arkime/tests/pcap/smb-smbclient", 1),
        ("OISF+suricata-verify/tests/smb2-frames-gap-payload-logging-02/smb2-peter-minus-p191-p192", 33),
    ];
    let Some(tshark) = program("tshark") else { return };
    let files = CAPTURES.map(|(name, ..)| format!("../../protocol-captures/{name}.pcap"));
    let files = corpus(&files.each_ref().map(String::as_str));
    for (file, (name, count)) in files.iter().zip(CAPTURES) {
        let of_tshark = exported_by_tshark(&tshark, file, "smb");
        let ours = exported_from(file, &["--kind", "smb"]);
        let found = of_tshark.iter().filter(|theirs| ours.iter().any(|(_, octets)| octets == *theirs));
        assert_eq!((of_tshark.len(), found.count()), (count, count), "{name}");
    }
}

/// Each complete body is one that tshark exports, which decodes gzip and deflate. Of bodies that are not complete, tshark
/// exports segments.
#[test]
fn bodies_are_those_of_tshark() {
    let Some(tshark) = program("tshark") else { return };
    let mut captures =
        corpus(&["nDPI/1kxun.pcap", "tcptrace/http.dmp", "arkime/80211http.pcap", "tcpflow/test1.pcap"]);
    captures.push("web.pcap".to_owned());
    let mut count = 0;
    for file in &captures {
        let mut of_tshark = exported_by_tshark(&tshark, file, "http");
        for (row, octets) in exported_from(file, &["--kind", "http", "--decode"]) {
            // tshark does not export what a program encrypted and called a coding.
            if row["is_complete"] != true || row["decoding"] == "unsupported" {
                continue;
            }
            let at = of_tshark
                .iter()
                .position(|other| *other == octets)
                .unwrap_or_else(|| panic!("{file}: {row}"));
            of_tshark.remove(at);
            count += 1;
        }
    }
    assert!(count >= if captures.len() > 1 { 190 } else { 11 }, "{count} bodies");
}

/// tshark omits the end of the last line of a mail, and does not remove dots.
#[test]
fn mails_are_those_of_tshark() {
    let Some(tshark) = program("tshark") else { return };
    let mut captures = corpus(&["nDPI/smtp.pcap"]);
    captures.push("mail.pcap".to_owned());
    for file in &captures {
        let of_tshark = exported_by_tshark(&tshark, file, "imf");
        let mails = exported_from(file, &["--kind", "mail"]);
        assert!(!mails.is_empty(), "{file}");
        for (row, octets) in mails {
            let content = octets.strip_suffix(b"\r\n").unwrap();
            assert!(of_tshark.iter().any(|other| other == content), "{file}: {row}");
        }
    }
}

/// The octets of each file of FTP are those that tshark follows in its connection.
#[test]
fn files_of_ftp_are_those_of_tshark() {
    let Some(tshark) = program("tshark") else { return };
    let mut captures = corpus(&["nDPI/ftp.pcap"]);
    captures.push("transfer.pcap".to_owned());
    for file in &captures {
        let found = exported_from(file, &["--kind", "ftp"]);
        assert!(found.len() >= 2, "{file}");
        for (row, octets) in found {
            let end = |which: &str| {
                let address = row[format!("{which}_address")].as_str().unwrap();
                let port = number(&row, &format!("{which}_port"));
                if address.contains(':') {
                    format!("[{address}]:{port}")
                } else {
                    format!("{address}:{port}")
                }
            };
            let follow = format!("follow,tcp,raw,{},{}", end("source"), end("destination"));
            let output = Command::new(&tshark)
                .args(["-n", "-q", "-r", file, "-z", &follow])
                .current_dir(repository().join("examples/data"))
                .output()
                .unwrap();
            let text = String::from_utf8(output.stdout).unwrap();
            let lines = text
                .lines()
                .map(str::trim)
                .filter(|line| line.len() % 2 == 0 && line.bytes().all(|c| c.is_ascii_hexdigit()));
            let hex: String = lines.collect();
            let expected: String = octets.iter().map(|octet| format!("{octet:02x}")).collect();
            assert!(hex == expected, "{file}: {row}");
        }
    }
}

#[test]
fn files_of_tftp_are_those_of_tshark() {
    let Some(tshark) = program("tshark") else { return };
    let of_tshark = exported_by_tshark(&tshark, "transfer.pcap", "tftp");
    let found = exported_from("transfer.pcap", &["--kind", "tftp"]);
    assert_eq!(found.into_iter().map(|(_, octets)| octets).collect::<Vec<_>>(), of_tshark);
    assert_eq!(of_tshark.len(), 1);
}

/// All captures of the corpus are read to their end, and each row has its file.
#[test]
fn every_capture_has_consistent_objects() {
    let Some(root) = std::env::var_os("FLOWGAUGE_CORPUS").filter(|root| !root.is_empty()) else {
        println!("skipped: FLOWGAUGE_CORPUS is not set");
        return;
    };
    let manifest = fs::read_to_string(Path::new(&root).join("MANIFEST.tsv")).expect("the list of the corpus");
    let paths =
        manifest.lines().filter_map(|line| line.split('\t').next()).map(|path| Path::new(&root).join(path));
    let (mut capture_count, mut object_count) = (0, 0);
    for path in paths.filter(|path| path.is_file()) {
        let folder = Folder::new();
        let out = folder.path("out");
        let run: Run = command()
            .args(["export-objects", "-q", "--decode", "--pem", "--out", &out])
            .arg(&path)
            .output()
            .unwrap()
            .into();
        // Some captures are damaged.
        assert!(run.status <= 1 && !run.err.contains("panicked"), "{}: {}", path.display(), run.err);
        capture_count += 1;
        object_count += if fs::exists(&out).unwrap() { read(&out, &run.out).len() } else { 0 };
    }
    assert!(capture_count > 100 && object_count > 4000, "{capture_count} captures, {object_count} objects");
}

#[test]
fn standard_input_is_an_input() {
    assert_eq!(exported(&data("mail.pcap"), &[]), exported_from("mail.pcap", &[]));
}
