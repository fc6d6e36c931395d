//! Commands never overwrite existing files without `--force`, and never their inputs, under any name.

use std::fs;
use std::path::Path;

use super::{Folder, data, records, run};

/// Names of all files in a folder, including hidden files.
fn names(folder: &Folder) -> Vec<String> {
    let entries = fs::read_dir(&folder.0).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[cfg(unix)]
#[test]
fn an_input_is_never_overwritten_under_any_name() {
    use std::os::unix::fs::symlink;
    let folder = Folder::new();
    let input = folder.file("in.pcap", &data("web.pcap"));
    fs::hard_link(&input, folder.path("hard.pcap")).unwrap();
    symlink("in.pcap", folder.path("soft.pcap")).unwrap();
    for out in ["in.pcap", "hard.pcap", "soft.pcap", "./hard.pcap"] {
        let out = folder.path(out);
        for filter in ["port 8080", "dst port 8080"] {
            let run = run(&["slice", &input, "--filter", filter, "-w", &out, "--force"]);
            assert_eq!(run.status, 1, "{out}");
            assert!(run.err.contains("is an input and cannot also be an output"), "{}", run.err);
        }
    }
    // The same applies to files in an output folder: the index and a stream.
    for name in ["index.ndjson", "000001-a"] {
        let streams = folder.path("streams");
        fs::create_dir(&streams).unwrap();
        fs::hard_link(&input, Path::new(&streams).join(name)).unwrap();
        let run = run(&["streams", &input, "--out", &streams, "--name", "{number}-{side}", "--force"]);
        assert_eq!(run.status, 1, "{name}");
        assert!(run.err.contains(&format!("{name}: is an input")), "{}", run.err);
        fs::remove_dir_all(&streams).unwrap();
    }
    assert_eq!(fs::read(&input).unwrap(), data("web.pcap"));
    assert_eq!(names(&folder), ["hard.pcap", "in.pcap", "soft.pcap"]);
}

#[cfg(unix)]
#[test]
fn a_symbolic_link_is_replaced_and_not_followed() {
    use std::os::unix::fs::symlink;
    let folder = Folder::new();
    let precious = folder.file("precious", b"precious");
    let is_link = |path: &str| fs::symlink_metadata(path).unwrap().is_symlink();
    // One link to a file, and one without a target.
    for target in ["precious", "nowhere"] {
        let out = folder.path(&format!("{target}.pcapng"));
        symlink(target, &out).unwrap();
        let args = ["slice", "web.pcap", "--filter", "port 8080", "-w", &out, "-q"];
        let refused = run(&args);
        assert!(
            refused.status == 1 && refused.err.contains("use --force to overwrite it"),
            "{}",
            refused.err
        );
        assert!(is_link(&out));
        let forced = run(&[&args[..], &["--force"]].concat());
        assert_eq!((forced.status, is_link(&out)), (0, false), "{}", forced.err);
        assert_eq!(records(&[&out]).len(), 2);
    }
    let streams = folder.path("streams");
    fs::create_dir(&streams).unwrap();
    for name in ["index.ndjson", "000001-a"] {
        symlink("../precious", Path::new(&streams).join(name)).unwrap();
    }
    let args = ["streams", "lossy.pcap", "--out", &streams, "--name", "{number}-{side}", "-q"];
    assert_eq!(run(&args).status, 1);
    assert_eq!(run(&[&args[..], &["--force"]].concat()).status, 0);
    assert!(["index.ndjson", "000001-a"].iter().all(|name| !is_link(&format!("{streams}/{name}"))));
    let manual = folder.path("manual");
    fs::create_dir(&manual).unwrap();
    symlink("../precious", Path::new(&manual).join("flowgauge-flows.1")).unwrap();
    assert_eq!(run(&["man", "--out", &manual]).status, 0);
    assert!(fs::read_to_string(Path::new(&manual).join("flowgauge-flows.1")).unwrap().contains(".TH"));
    assert_eq!(fs::read(&precious).unwrap(), b"precious");
    assert!(!Path::new(&folder.path("nowhere")).exists());
}

#[test]
fn a_file_is_replaced_only_when_complete_and_no_temporary_file_remains() {
    let folder = Folder::new();
    let out = folder.file("out.pcapng", b"precious");
    // The truncated capture still yields the packets before the truncation.
    let truncated = folder.file("truncated.pcap", &data("web.pcap")[..5000]);
    let run_on = |input: &str, filter: &str| {
        run(&["slice", input, "--filter", filter, "-w", &out, "--force", "-q"]).status
    };
    assert_eq!(run_on("web.pcap", "port 9"), 1);
    assert_eq!(fs::read(&out).unwrap(), b"precious");
    assert_eq!(run_on(&truncated, "tcp"), 1);
    assert!(!records(&[&out]).is_empty());
    assert_eq!(run_on("web.pcap", "port 8080"), 0);
    assert_eq!(records(&[&out]).len(), 2);
    let long = folder.path(&format!("{}.pcapng", "n".repeat(240)));
    assert_eq!(run(&["slice", "web.pcap", "--filter", "port 8080", "-w", &long, "-q"]).status, 0);
    let directory =
        run(&["slice", "web.pcap", "--filter", "port 8080", "-w", folder.0.to_str().unwrap(), "--force"]);
    assert!(directory.status == 1 && directory.err.contains("is a directory"), "{}", directory.err);
    assert_eq!(names(&folder).len(), 3, "{:?}", names(&folder));
}

/// Devices and named pipes are not replaced by a temporary file. A full device is an error.
#[cfg(target_os = "linux")]
#[test]
fn pipes_and_devices_are_written_in_place() {
    use std::io::Read as _;
    let folder = Folder::new();
    let null = run(&["slice", "web.pcap", "--filter", "port 8080", "-w", "/dev/null", "-q"]);
    assert_eq!((null.status, null.err.as_str()), (0, ""));
    let full = run(&["slice", "web.pcap", "--filter", "tcp", "-w", "/dev/full", "-q"]);
    assert!(full.status == 1 && full.err.contains("/dev/full: "), "{}", full.err);
    let pipe = folder.path("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let reader = std::thread::spawn({
        let pipe = pipe.clone();
        move || {
            let mut octets = Vec::new();
            fs::File::open(pipe).unwrap().read_to_end(&mut octets).unwrap();
            octets
        }
    });
    assert_eq!(run(&["slice", "web.pcap", "--filter", "port 8080", "-w", &pipe, "-q"]).status, 0);
    let copy = folder.file("copy.pcapng", &reader.join().unwrap());
    assert_eq!(records(&[&copy]).len(), 2);
    assert_eq!(names(&folder), ["copy.pcapng", "pipe"]);
}

#[cfg(unix)]
#[test]
fn an_input_given_as_standard_input_is_not_overwritten() {
    let folder = Folder::new();
    let own = folder.file("own.pcap", &data("web.pcap"));
    let run: super::Run = super::command()
        .args(["slice", "-", "--filter", "port 8080", "-w", &own, "--force"])
        .stdin(fs::File::open(&own).unwrap())
        .output()
        .unwrap()
        .into();
    assert!(run.status == 1 && run.err.contains("is an input"), "{}", run.err);
    assert_eq!(fs::read(&own).unwrap(), data("web.pcap"));
}
