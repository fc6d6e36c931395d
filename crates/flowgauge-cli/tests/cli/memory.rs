//! Tests of memory budgets, of zstd windows and of the messages about values beyond a limit.

use super::{Folder, comparable_records, data, objects, records, run};

/// A zstd frame of raw blocks with a given window descriptor (RFC 8878 section 3.1.1).
fn zstd(window: u8, content: &[u8]) -> Vec<u8> {
    let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0, window];
    let mut chunks = content.chunks(1000).peekable();
    while let Some(chunk) = chunks.next() {
        let header = (chunk.len() as u32) << 3 | u32::from(chunks.peek().is_none());
        frame.extend(&header.to_le_bytes()[..3]);
        frame.extend(chunk);
    }
    frame
}

#[test]
fn every_command_accepts_a_memory_budget() {
    let folder = Folder::new();
    let (out, streams) = (folder.path("out.pcapng"), folder.path("streams"));
    let expected = comparable_records(&records(&["web.pcap"]));
    for args in [
        &["flows", "web.pcap", "--format", "ndjson"][..],
        &["flows", "web.pcap", "--format", "ndjson", "--shards", "2"],
        &["slice", "web.pcap", "--filter", "", "-w", &out, "--force"],
        &["streams", "web.pcap", "--out", &streams, "--force"],
        &["sessions", "web.pcap"],
    ] {
        let run_with = |memory| run(&[args, &["--memory", memory]].concat());
        let run = run_with("4MiB");
        assert_eq!(run.status, 0, "{args:?}: {}", run.err);
        if args[0] == "flows" {
            assert_eq!(comparable_records(&objects(&run.out)), expected, "{args:?}");
        }
        // A budget that is too small for the initial flow table.
        let run = run_with("10kB");
        assert!(
            run.status == 2 && run.err.contains("--memory: the memory limit is too small: "),
            "{args:?}: {}",
            run.err
        );
        for bad in ["", "0", "many", "-1", "10XB", "99999999999GiB"] {
            assert_eq!(run_with(bad).status, 2, "{bad:?}");
        }
    }
    for size in ["4194304", "4194304B", "4194kB", "4096 KiB", "1GB", "1GiB"] {
        assert_eq!(run(&["flows", "web.pcap", "-q", "--memory", size]).status, 0, "{size}");
    }
}

#[test]
fn a_budget_limits_flows_and_the_summary_reports_evictions() {
    let folder = Folder::new();
    let mut capture = data("web.pcap")[..24].to_vec();
    for number in 0..20_000_u32 {
        let [_, a, b, c] = number.to_be_bytes();
        let builder = etherparse::PacketBuilder::ethernet2([2; 6], [4; 6]);
        let mut frame = Vec::new();
        builder.ipv4([10, a, b, c], [192, 0, 2, 1], 64).udp(1000, 53).write(&mut frame, &[]).unwrap();
        let len = frame.len() as u32;
        let words = [1_700_000_000, number, len, len];
        capture.extend(words.into_iter().flat_map(u32::to_le_bytes));
        capture.extend(frame);
    }
    let file = folder.file("flood.pcap", &capture);
    let all = run(&["flows", &file]);
    assert!(all.status == 0 && !all.err.contains("evicted early"), "{}", all.err);
    let few = run(&["flows", &file, "--memory", "2MiB"]);
    assert!(
        few.status == 0 && few.err.contains("evicted early (limit of --max-flows or --memory)"),
        "{}",
        few.err
    );
    assert_eq!(few.out.lines().count(), all.out.lines().count());
    // --max-flows raises the memory limit only if --memory is not given.
    let reported = run(&["flows", &file, "--memory", "2MiB", "--max-flows", "1000000"]);
    assert!(reported.err.contains("evicted early"), "{}", reported.err);
}

#[test]
fn a_zstd_window_beyond_the_limit_is_not_reported_as_damage() {
    let folder = Folder::new();
    let expected = records(&["web.pcap"]).len();
    // Windows of 8 MiB, 9 MiB and 128 MiB.
    let [fits, above, far] = [0x68, 0x69, 0x88]
        .map(|window| folder.file(&format!("{window:x}.zst"), &zstd(window, &data("web.pcap"))));
    assert_eq!(records(&[&fits]).len(), expected);
    for (file, window) in [(&above, "9437184"), (&far, "134217728")] {
        let refused = run(&["flows", file]);
        assert_eq!((refused.status, refused.err.lines().count()), (1, 1), "{}", refused.err);
        let words = format!(
            "needs a zstd window of {window} bytes, but the limit is 8388608 bytes; to read the file, use --zstd-window {window}"
        );
        assert!(refused.err.contains(&words) && !refused.err.contains("damaged"), "{}", refused.err);
        // The other files are still read.
        let beside = run(&["flows", file, "dns.pcap", "--format", "ndjson"]);
        assert_eq!((beside.status, objects(&beside.out).len()), (1, records(&["dns.pcap"]).len()));
        assert_eq!(records(&[file, "--zstd-window", "128MiB"]).len(), expected);
    }
    assert_eq!(run(&["flows", &fits, "--zstd-window", "4MiB"]).status, 1);
    // A window within the limit on windows, but beyond the part of the budget reserved for captures.
    let beyond_budget = run(&["flows", &far, "--zstd-window", "128MiB", "--memory", "64MiB"]);
    assert!(
        beyond_budget.status == 1
            && beyond_budget
                .err
                .contains("the limit for all captures together is 16777216 bytes, a quarter of --memory"),
        "{}",
        beyond_budget.err
    );
    // A window beyond the limit in the middle of a file: the content before it is read.
    let content = data("web.pcap");
    let both = [zstd(0x10, &content[..20_000]), zstd(0x88, &content[20_000..])].concat();
    let both = folder.file("both.zst", &both);
    let run = run(&["flows", &both, "--format", "ndjson"]);
    assert!(run.status == 1 && run.err.contains("134217728"), "{}", run.err);
    assert!(!objects(&run.out).is_empty());
}

/// An error in one file is reported in one line and the other files are read, with one thread and with several.
#[test]
fn an_error_while_reading_affects_one_file_only() {
    let folder = Folder::new();
    let content = data("web.pcap");
    let broken = [zstd(0x10, &content[..20_000]), zstd(0x88, &content[20_000..])].concat();
    let broken = folder.file("broken.zst", &broken);
    let expected = comparable_records(&records(&["dns.pcap"]));
    for more in [&[][..], &["--shards", "2"], &["--top", "1000", "--shards", "2"], &["--top", "1000"]] {
        let run = run(&[&["flows", &broken, "dns.pcap", "--format", "ndjson"], more].concat());
        assert_eq!(run.status, 1);
        let problems: Vec<_> = run.err.lines().filter(|line| line.starts_with("flowgauge: ")).collect();
        assert!(matches!(problems[..], [problem] if problem.contains("--zstd-window")), "{}", run.err);
        assert!(run.err.contains(" packets ("), "no summary: {}", run.err);
        let found = comparable_records(&objects(&run.out));
        assert!(expected.iter().all(|record| found.contains(record)), "{more:?}");
        assert!(found.len() > expected.len(), "{more:?}");
    }
}

#[test]
fn invalid_settings_are_reported_in_one_line_with_the_option() {
    let folder = Folder::new();
    let (out, streams) = (folder.path("out.pcapng"), folder.path("streams"));
    for command in [
        &["flows", "web.pcap"][..],
        &["flows", "web.pcap", "--format", "csv", "--shards", "2"],
        &["slice", "web.pcap", "--filter", "tcp", "-w", &out],
        &["streams", "web.pcap", "--out", &streams],
        &["streams", "web.pcap", "--out", &streams, "--filter", "tcp dst port 80"],
        &["sessions", "web.pcap", "--format", "table"],
    ] {
        for (option, words) in [
            (&["--memory", "10kB"][..], "--memory: the memory limit is too small: the layer "),
            (&["--memory", "10kB", "--dedup"], "--memory: the memory limit is too small: the layer "),
            (
                &["--max-flows", "4294967295"],
                "--max-flows: tracker: flow_count_max must be from 1 to 2147483648",
            ),
        ] {
            let run = run(&[command, option].concat());
            assert_eq!((run.status, run.out.as_str()), (2, ""), "{command:?} {option:?}");
            assert!(run.err.starts_with(&format!("flowgauge: {words}")), "{}", run.err);
            assert_eq!(run.err.lines().count(), 1, "{}", run.err);
        }
    }
    // Enough for one pipeline, but not for 200.
    let many = run(&["flows", "web.pcap", "--format", "csv", "--shards", "200", "--memory", "1MiB"]);
    assert_eq!((many.status, many.out.as_str(), many.err.lines().count()), (2, "", 1), "{}", many.err);
    assert!(many.err.contains("--memory: the memory limit is too small: "), "{}", many.err);
    let both = run(&["flows", "web.pcap", "--shards", "2", "--tunnels", "both"]);
    assert_eq!(both.err, "flowgauge: --tunnels both cannot be combined with --shards\n");
    assert_eq!(folder.names(), [""; 0]);
}
