//! Collectors that receive what `flowgauge flows --format ipfix` exports.

use std::fs;
use std::net::IpAddr;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use super::folder::Folder;
use super::{Directions, Process, export, flows, free_port, program, wait_for, wait_for_port};

/// Captures that are exported. None has two flows with the same addresses and ports.
const CAPTURES: [&str; 4] = ["web.pcap", "dns.pcap", "ssh.pcap", "vlan.pcapng"];

fn start(command: &mut Command, folder: &Folder, port: u16) -> Process {
    let log = fs::File::create(folder.path("log")).unwrap();
    let process = Process::start(command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log));
    wait_for_port(port);
    process
}

fn address(record: &Value, names: &[&str]) -> IpAddr {
    let text = names.iter().find_map(|name| record[*name].as_str());
    text.unwrap_or_else(|| panic!("an address in {record}")).parse().unwrap()
}

/// Starts nfcapd, exports a capture to it, and returns the records that nfdump prints.
fn nfcapd(nfcapd: &Path, name: &str, options: &[&str]) -> Vec<Value> {
    let (folder, port) = (Folder::new(), free_port());
    let files = folder.path("files");
    fs::create_dir(&files).unwrap();
    let mut command = Command::new(nfcapd);
    command.args(["-b", "127.0.0.1", "-p", &port.to_string(), "-w", &files, "-t", "300", "-B", "8000000"]);
    let mut collector = start(&mut command, &folder, port);
    export(name, port, options);
    // The datagrams are in the buffer of the socket, which nfcapd reads before it handles the signal.
    std::thread::sleep(std::time::Duration::from_millis(1500));
    collector.signal("TERM");
    assert_eq!(collector.end(), Some(0));
    let log = fs::read_to_string(folder.path("log")).unwrap();
    // nfcapd does not count type records, which RFC 7011 section 3.1 includes in the sequence numbers.
    let has_type_records = options.contains(&"--enterprise-number");
    assert!(log.contains("Bad Packets: 0"), "{log}");
    assert!(has_type_records || log.contains("Sequence Errors: 0"), "{log}");
    let output = Command::new("nfdump").args(["-R", &files, "-o", "json"]).output().unwrap();
    serde_json::from_slice::<Vec<Value>>(&output.stdout).unwrap()
}

#[test]
fn nfcapd_receives_uniflows() {
    let Some(path) = program("nfcapd") else { return };
    for name in CAPTURES {
        let mut found = Directions::default();
        for record in nfcapd(&path, name, &["--uniflow", "--milliseconds"]) {
            let number = |name: &str| record[name].as_u64().unwrap_or_default();
            let source = address(&record, &["src4_addr", "src6_addr"]);
            let destination = address(&record, &["dst4_addr", "dst6_addr"]);
            let (source_port, destination_port) = (number("src_port") as u16, number("dst_port") as u16);
            let direction = (number("proto") as u8, source, source_port, destination, destination_port);
            found.add(direction, (number("in_packets"), number("in_bytes")));
        }
        assert_eq!(found, Directions::of_ndjson(&flows(name)), "{name}");
    }
}

#[test]
fn nfcapd_receives_biflows() {
    let Some(path) = program("nfcapd") else { return };
    for name in CAPTURES {
        let records = nfcapd(&path, name, &["--for", "nfcapd", "--enterprise-number", "32473"]);
        let mut found = Directions::default();
        for record in &records {
            let number = |name: &str| record[name].as_u64().unwrap_or_default();
            let source = (address(record, &["src4_addr", "src6_addr"]), number("src_port") as u16);
            let destination = (address(record, &["dst4_addr", "dst6_addr"]), number("dst_port") as u16);
            let protocol = number("proto") as u8;
            let forward = (protocol, source.0, source.1, destination.0, destination.1);
            let reverse = (protocol, destination.0, destination.1, source.0, source.1);
            found.add(forward, (number("in_packets"), number("in_bytes")));
            found.add(reverse, (number("out_packets"), number("out_bytes")));
        }
        let flows = flows(name);
        assert_eq!(found, Directions::of_ndjson(&flows), "{name}");
        assert_eq!(records.len(), flows.split(|octet| *octet == b'\n').count() - 1);
    }
}

#[test]
fn nfacctd_receives_uniflows() {
    let Some(path) = program("nfacctd") else { return };
    for name in CAPTURES {
        let (folder, port) = (Folder::new(), free_port());
        let output = folder.path("flows");
        let config = folder.file(
            "nfacctd.conf",
            format!(
                "daemonize: false\nnfacctd_ip: 127.0.0.1\nnfacctd_port: {port}\nplugins: print[p]\n\
                 aggregate[p]: src_host, dst_host, src_port, dst_port, proto\nprint_output[p]: json\n\
                 print_output_file[p]: {output}\nprint_output_file_append[p]: true\nprint_refresh_time[p]: 60\n\
                 print_num_protos[p]: true\nplugin_buffer_size: 1024000\nplugin_pipe_size: 10240000\n"
            )
            .as_bytes(),
        );
        let mut collector = start(Command::new(&path).args(["-f", &config]), &folder, port);
        let log = || fs::read_to_string(folder.path("log")).unwrap();
        wait_for("nfacctd", || log().contains("waiting for NetFlow/IPFIX data"));
        std::thread::sleep(std::time::Duration::from_millis(1500));
        export(name, port, &["--for", "nfacctd"]);
        std::thread::sleep(std::time::Duration::from_millis(1500));
        collector.signal("INT");
        collector.end();
        let mut found = Directions::default();
        for line in
            fs::read_to_string(&output).unwrap_or_else(|_| panic!("output of nfacctd: {}", log())).lines()
        {
            let record: Value = serde_json::from_str(line).unwrap();
            let number = |name: &str| match &record[name] {
                Value::String(text) => text.parse().unwrap(),
                value => value.as_u64().unwrap(),
            };
            let (source, destination) = (address(&record, &["ip_src"]), address(&record, &["ip_dst"]));
            let ports = (number("port_src") as u16, number("port_dst") as u16);
            let direction = (number("ip_proto") as u8, source, ports.0, destination, ports.1);
            found.add(direction, (number("packets"), number("bytes")));
        }
        let expected = Directions::of_ndjson(&flows(name)).without_record_counts();
        assert_eq!(found.without_record_counts(), expected, "{name}");
    }
}

#[test]
fn goflow2_receives_uniflows() {
    let Some(path) = program("goflow2") else { return };
    for name in CAPTURES {
        let (folder, port) = (Folder::new(), free_port());
        let output = folder.path("flows");
        // With several workers, a datagram may be decoded before the template in the one before it.
        let listen = format!("netflow://127.0.0.1:{port}?workers=1");
        let mut command = Command::new(&path);
        command.args([
            "-listen",
            &listen,
            "-addr",
            "127.0.0.1:0",
            "-format",
            "json",
            "-transport.file",
            &output,
        ]);
        let mut collector = start(&mut command, &folder, port);
        export(name, port, &["--for", "goflow2"]);
        let expected = Directions::of_ndjson(&flows(name));
        let record_count: u64 = expected.0.values().map(|totals| totals.record_count).sum();
        let lines = || fs::read_to_string(&output).unwrap_or_default().lines().count() as u64;
        wait_for("the records in the output of goflow2", || lines() >= record_count);
        collector.signal("TERM");
        collector.end();
        let mut found = Directions::default();
        for line in fs::read_to_string(&output).unwrap().lines() {
            let record: Value = serde_json::from_str(line).unwrap();
            let number = |name: &str| record[name].as_u64().unwrap_or_default();
            let protocol = match record["proto"].as_str().unwrap() {
                "TCP" => 6,
                "UDP" => 17,
                "ICMP" => 1,
                "IPv6-ICMP" => 58,
                other => panic!("protocol {other}"),
            };
            let (source, destination) = (address(&record, &["src_addr"]), address(&record, &["dst_addr"]));
            let ports = (number("src_port") as u16, number("dst_port") as u16);
            found
                .add((protocol, source, ports.0, destination, ports.1), (number("packets"), number("bytes")));
        }
        assert_eq!(found, expected, "{name}");
    }
}
