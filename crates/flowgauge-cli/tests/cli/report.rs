//! `flowgauge report`: the content of the page, and the page in a browser.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::folder::Folder;
use super::trace::Trace;
use super::{number, objects, records, run, run_with_input};

/// Returns the data of the table in a page.
fn table(html: &str) -> Value {
    let (_, rest) = html.split_once("<script type=\"application/json\" id=\"data\">").unwrap();
    serde_json::from_str(rest.split_once("</script>").unwrap().0).unwrap()
}

/// Returns the page for a capture.
fn page(capture: &str) -> String {
    let report = run(&["report", capture, "-o", "-", "-q"]);
    assert_eq!((report.status, report.err.as_str()), (0, ""), "{capture}");
    report.out
}

/// Indices of columns of the table.
const APPLICATION: usize = 7;
const OCTETS: [usize; 2] = [12, 13];
const ID: usize = 18;
const LINES: usize = 20;

/// A name that is markup, ends an element, changes the direction of text, and would be run.
const HOSTILE: &str = "<script>document.title='run'</script></script><!--<img src=x onerror=\"document.title='run'\">\u{202e}'\"&";

/// A capture of a request with a hostile name, and of other requests.
fn hostile() -> Vec<u8> {
    let mut trace = Trace::new();
    for index in 0..300_u64 {
        let name = if index == 7 { HOSTILE.to_owned() } else { format!("host{index}.example") };
        let body = "x".repeat(10 * index as usize);
        let request = format!("GET /{index} HTTP/1.1\r\nHost: {name}\r\n\r\n");
        let response = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        let ends = [([10, 0, 0, 1], 10_000 + index as u16), ([192, 0, 2, 1], 80)];
        trace.exchange(index * index * 13_000, ends, request.as_bytes(), response.as_bytes());
    }
    trace.file()
}

#[test]
fn the_table_has_the_flows_and_their_transactions() {
    for name in ["web", "dns", "mail", "transfer", "ssh"] {
        let capture = format!("{name}.pcap");
        let table = table(&page(&capture));
        let shown = table["flows"].as_array().unwrap();
        let flows = records(&[&capture, "--application", "always", "-q"]);
        assert_eq!(shown.len(), flows.len(), "{name}");
        let octets = |flow: &Value| OCTETS.map(|index| flow[index].as_u64().unwrap());
        let mut expected: Vec<_> = flows
            .iter()
            .map(|flow| {
                let mark = if flow["application_evidence"] == "port" { "?" } else { "" };
                let application = flow["application"].as_str().unwrap_or_default().to_owned() + mark;
                let octets = [number(flow, "octet_count"), number(flow, "reverse_octet_count")];
                (flow["community_id"].as_str().unwrap().to_owned(), application, octets)
            })
            .collect();
        let mut actual: Vec<_> = shown
            .iter()
            .map(|flow| {
                let application = flow[APPLICATION].as_str().unwrap_or_default().to_owned();
                (flow[ID].as_str().unwrap().to_owned(), application, octets(flow))
            })
            .collect();
        expected.sort();
        actual.sort();
        assert_eq!(actual, expected, "{name}");
        let largest_first = shown
            .windows(2)
            .all(|pair| octets(&pair[0]).iter().sum::<u64>() >= octets(&pair[1]).iter().sum::<u64>());
        assert!(largest_first, "{name}");

        let transactions = objects(&run(&["sessions", &capture, "--transactions", "-q"]).out);
        let line_count: usize = shown.iter().map(|flow| flow[LINES].as_array().unwrap().len()).sum();
        let omitted_count: u64 = shown.iter().map(|flow| flow[19].as_u64().unwrap()).sum();
        assert_eq!(line_count as u64 + omitted_count, transactions.len() as u64, "{name}");
    }
}

/// Of 70,000 flows, those with the most octets are in the table, and some of the rare kinds. The page is small.
#[test]
fn the_page_is_bounded() {
    let mut trace = Trace::new();
    for index in 0..70_000_u64 {
        let client = ([10, 0, (index >> 8) as u8, index as u8], 1024 + (index >> 4) as u16);
        let len = if index % 100 == 0 { 2000 } else { 1 + index % 7 };
        trace.exchange(index * 1000, [client, ([192, 0, 2, 1], 9)], "x".repeat(len as usize).as_bytes(), b"");
    }
    trace.exchange(0, [([10, 9, 9, 9], 40_000), ([192, 0, 2, 2], 80)], b"GET / HTTP/1.0\r\n\r\n", b"");
    let report = run_with_input(&["report", "-", "-o", "-", "-q"], &trace.file());
    assert_eq!((report.status, report.err.as_str()), (0, ""));
    assert!(report.out.len() < 1_500_000, "{}", report.out.len());
    let table = table(&report.out);
    let flows = table["flows"].as_array().unwrap();
    let sent: Vec<_> = flows.iter().map(|flow| flow[OCTETS[0]].as_u64().unwrap()).collect();
    assert_eq!(sent.iter().filter(|sent| **sent > 2000).count(), 700, "all large flows");
    assert!(flows.len() > 1000 && flows.len() <= 2000, "{}", flows.len());
    assert!(flows.iter().any(|flow| flow[APPLICATION] == "http"));
    assert!(report.out.contains(&format!("{} of 70001 flows", flows.len())));
}

#[test]
fn an_existing_file_and_a_bad_name_are_refused() {
    let folder = Folder::new();
    let out = folder.file("report.html", b"mine");
    let report = run(&["report", "dns.pcap", "-o", &out, "-q"]);
    assert_eq!(report.status, 1);
    assert!(report.err.contains("already exists; use --force to overwrite it"), "{}", report.err);
    assert_eq!(fs::read(&out).unwrap(), b"mine");
    let report = run(&["report", "dns.pcap", "-o", &out, "-q", "--force"]);
    assert_eq!((report.status, report.err.as_str(), report.out.as_str()), (0, "", ""));
    assert!(fs::read_to_string(&out).unwrap().starts_with("<!DOCTYPE html>"));
    let capture = folder.file("capture.pcap", &super::data("dns.pcap"));
    let report = run(&["report", &capture, "-o", &capture, "-q", "--force"]);
    assert!(report.status == 1 && report.err.contains("is an input"), "{}", report.err);
    assert_eq!(folder.names(), ["capture.pcap", "report.html"]);
}

/// Returns the text of an element in a page, without its markup.
fn unescaped(text: &str) -> String {
    let signs = [("&quot;", "\""), ("&#39;", "'"), ("&gt;", ">"), ("&lt;", "<"), ("&amp;", "&")];
    signs.iter().fold(text.to_owned(), |text, (escape, sign)| text.replace(escape, sign))
}

/// The numbers of the figures are those of the commands below them, also of a part of the capture.
#[test]
fn the_numbers_of_figures_are_those_of_their_commands() {
    for options in [&[][..], &["--filter", "tcp port 443"], &["--filter", "tcp", "--dedup"]] {
        let report = run(&[&["report", "web.pcap", "-o", "-", "-q"], options].concat());
        let figure = |title: &str| {
            let (_, rest) = report.out.split_once(&format!("<h3>{title}</h3>")).unwrap();
            let (content, rest) = rest.split_once("<figcaption><code>flowgauge ").unwrap();
            let (command, _) = rest.split_once("</code>").unwrap();
            let line = format!("exec \"$0\" {} -q --format ndjson", unescaped(command));
            let outcome = Command::new("sh")
                .args(["-c", &line, env!("CARGO_BIN_EXE_flowgauge")])
                .current_dir(super::repository().join("examples/data"))
                .output()
                .unwrap();
            assert!(outcome.status.success(), "{line}");
            (content.to_owned(), objects(&String::from_utf8(outcome.stdout).unwrap()))
        };
        let (bars, rows) = figure("Outcome of connections");
        assert!(!rows.is_empty());
        for row in rows {
            let (state, count) = (row["conn_state"].as_str().unwrap(), number(&row, "flow_count"));
            assert!(
                bars.contains(&format!("<title>{state} ")) && bars.contains(&format!(": {count}</title>")),
                "{bars}"
            );
        }
        let (table, rows) = figure("TCP health");
        let sum = |name: &str| {
            number(&rows[0], &format!("{name}_sum")) + number(&rows[0], &format!("reverse_{name}_sum"))
        };
        for (name, count) in [
            ("Connections", number(&rows[0], "flow_count")),
            ("Segments", sum("packet_count")),
            ("retransmitted", sum("retransmitted_count")),
            ("with a window of zero", sum("zero_window_count")),
        ] {
            let cells = format!("<td class=\"\">{name}</td><td class=\"number\">{count}</td>");
            assert!(table.contains(&cells), "{options:?} {name} {count}: {table}");
        }
    }
}

/// Each command that a page names succeeds, and writes something.
#[test]
fn each_command_of_a_page_runs() {
    for capture in ["web.pcap", "dns.pcap", "transfer.pcap"] {
        let html = page(capture);
        let commands: Vec<_> = html.split("<code>flowgauge ").skip(1).collect();
        assert!(commands.len() >= 9, "{}", commands.len());
        for command in commands {
            let (command, _) = command.split_once("</code>").unwrap();
            let command = unescaped(command);
            let line = format!("exec \"$0\" {command} -q");
            let outcome = Command::new("sh")
                .args(["-c", &line, env!("CARGO_BIN_EXE_flowgauge")])
                .current_dir(super::repository().join("examples/data"))
                .output()
                .unwrap();
            assert!(outcome.status.success() && !outcome.stdout.is_empty(), "{command}: {outcome:?}");
        }
    }
}

#[test]
fn nothing_of_the_traffic_is_markup() {
    let report = run_with_input(&["report", "-", "-o", "-", "-q"], &hostile());
    assert_eq!((report.status, report.err.as_str()), (0, ""));
    let html = &report.out;
    assert_eq!(html.matches("<script").count(), 2);
    assert_eq!(html.matches("</script").count(), 2);
    assert!(!html.contains("<img") && !html.contains("<!--") && !html.contains('\u{202e}'));
    assert!(!html.contains("http://") && !html.contains("https://"), "nothing is loaded");
}

/// A browser that is controlled through pipes.
struct Browser {
    child: super::process::Process,
    input: fs::File,
    output: BufReader<fs::File>,
    session: Option<String>,
    last: u64,
    /// Exceptions, messages of the console and entries of the log.
    problems: Vec<Value>,
    loaded_count: usize,
    _folder: Folder,
}

impl Browser {
    /// Starts Chromium with a page. `None` if it is not installed, which is printed.
    fn start(url: &str) -> Option<Self> {
        let is_installed = Command::new("chromium").arg("--version").stdout(Stdio::null()).status().is_ok();
        if !is_installed {
            let is_required = std::env::var("FLOWGAUGE_PROGRAMS").is_ok_and(|value| value == "required");
            assert!(!is_required, "chromium is not installed");
            eprintln!("skipped: chromium is not installed");
            return None;
        }
        let folder = Folder::new();
        let pipes = ["in", "out"].map(|name| folder.path(name));
        assert!(Command::new("mkfifo").args(&pipes).status().unwrap().success());
        let line = "exec chromium --headless --no-sandbox --disable-gpu --user-data-dir=\"$2\" --window-size=1200,900 \
                    --remote-debugging-pipe 3<\"$0\" 4>\"$1\"";
        let child = super::process::Process::start(
            Command::new("sh")
                .args(["-c", line, &pipes[0], &pipes[1], &folder.path("profile")])
                .stdout(Stdio::null())
                .stderr(Stdio::null()),
        );
        let input = fs::OpenOptions::new().write(true).open(&pipes[0]).unwrap();
        let output = BufReader::new(fs::File::open(&pipes[1]).unwrap());
        let (session, last, problems) = (None, 0, Vec::new());
        let mut browser =
            Self { child, input, output, session, last, problems, loaded_count: 0, _folder: folder };
        let target = browser.call("Target.createTarget", &json!({"url": "about:blank"}));
        let id = &target["targetId"];
        let attached = browser.call("Target.attachToTarget", &json!({"targetId": id, "flatten": true}));
        browser.session = attached["sessionId"].as_str().map(str::to_owned);
        for domain in ["Runtime", "Log", "Page"] {
            browser.call(&format!("{domain}.enable"), &json!({}));
        }
        browser.loaded_count = 0;
        browser.call("Page.navigate", &json!({"url": url}));
        while browser.loaded_count == 0 {
            let _ = browser.read();
        }
        Some(browser)
    }

    /// Reads a message; notes it if it is a problem.
    fn read(&mut self) -> Value {
        let mut message = Vec::new();
        self.output.read_until(0, &mut message).unwrap();
        assert_eq!(message.pop(), Some(0), "the browser ended");
        let message: Value = serde_json::from_slice(&message).unwrap();
        match message["method"].as_str() {
            Some("Runtime.exceptionThrown" | "Runtime.consoleAPICalled" | "Log.entryAdded") => {
                self.problems.push(message.clone());
            }
            Some("Page.loadEventFired") => self.loaded_count += 1,
            _ => {}
        }
        message
    }

    fn call(&mut self, method: &str, params: &Value) -> Value {
        self.last += 1;
        let mut request = json!({"id": self.last, "method": method, "params": params});
        if let Some(session) = &self.session {
            request["sessionId"] = json!(session);
        }
        let mut request = request.to_string().into_bytes();
        request.push(0);
        self.input.write_all(&request).unwrap();
        loop {
            let message = self.read();
            if message["id"] == self.last {
                assert!(message.get("error").is_none(), "{method}: {message}");
                return message["result"].clone();
            }
        }
    }

    fn evaluate(&mut self, expression: &str) -> Value {
        let params = json!({"expression": expression, "returnByValue": true});
        let result = self.call("Runtime.evaluate", &params);
        assert!(result.get("exceptionDetails").is_none(), "{expression}: {result}");
        result["result"]["value"].clone()
    }

    /// Presses a key, and types its text if it has one.
    fn key(&mut self, name: &str) {
        let text = if name.chars().count() == 1 { name } else { "" };
        let key = if name == "Enter" { "\r" } else { text };
        self.call("Input.dispatchKeyEvent", &json!({"type": "keyDown", "key": name, "text": key}));
        self.call("Input.dispatchKeyEvent", &json!({"type": "keyUp", "key": name}));
    }
}

#[test]
fn the_page_works_in_a_browser() {
    let folder = Folder::new();
    let capture = folder.file("capture.pcap", &hostile());
    let out = folder.path("report.html");
    let report = run(&["report", &capture, "-o", &out, "-q"]);
    assert_eq!((report.status, report.err.as_str()), (0, ""));
    let started = Instant::now();
    let Some(mut browser) = Browser::start(&format!("file://{out}")) else { return };
    assert!(started.elapsed() < Duration::from_secs(120));

    let rows = "document.querySelectorAll('#flows tbody tr[data-index]').length";
    let count = "document.getElementById('count').textContent";
    assert_eq!(browser.evaluate(rows), 200);
    assert_eq!(browser.evaluate(count), "300 of 300 flows, 200 shown");
    browser.evaluate("document.getElementById('more').click()");
    assert_eq!((browser.evaluate(rows), browser.evaluate(count)), (json!(300), json!("300 of 300 flows")));

    // The hostile name is text.
    browser.key("/");
    assert_eq!(browser.evaluate("document.activeElement.id"), "find");
    for letter in "script".chars() {
        browser.key(&letter.to_string());
    }
    assert_eq!((browser.evaluate(rows), browser.evaluate(count)), (json!(1), json!("1 of 300 flows")));
    let name = browser.evaluate("document.querySelector('#flows .name').textContent");
    assert_eq!(name, HOSTILE.replace('\u{202e}', "\\u202e"));
    assert_eq!(browser.evaluate("document.querySelectorAll('script, img').length"), 2);
    assert_ne!(browser.evaluate("document.title"), "run");

    // Escape clears the filter and moves to the table; arrows move, Enter shows the transactions.
    browser.key("Escape");
    assert_eq!(browser.evaluate(count), "300 of 300 flows, 200 shown");
    browser.key("ArrowDown");
    browser.key("ArrowDown");
    browser.key("ArrowUp");
    let focused = "[...document.querySelectorAll('#flows tbody tr')].indexOf(document.activeElement)";
    assert_eq!(browser.evaluate(focused), 1);
    browser.key("Enter");
    let details = browser.evaluate("document.querySelector('#flows tr.more').textContent");
    let details = details.as_str().unwrap();
    assert!(details.contains("http  http number=0") && details.contains("--community-id 1:"), "{details}");
    browser.key("Enter");
    assert_eq!(browser.evaluate("document.querySelectorAll('#flows tr.more').length"), 0);

    // Titles sort: the first click by the greatest number, the second by the least.
    let first = "document.querySelector('#flows tbody .name').textContent";
    let sort = "[...document.querySelectorAll('#flows th button')].find(b => b.textContent.startsWith('Received')).click()";
    browser.evaluate(sort);
    assert_eq!(browser.evaluate(first), "host299.example");
    let sorted =
        "[...document.querySelectorAll('#flows th')].map(t => t.ariaSort).filter(s => s !== 'none').join()";
    assert_eq!(browser.evaluate(sorted), "descending");
    browser.evaluate(sort);
    assert_eq!(
        (browser.evaluate(first), browser.evaluate(sorted)),
        (json!("host0.example"), json!("ascending"))
    );

    // A condition on a column.
    browser.evaluate("document.getElementById('find').value = 'name:host29 protocol:tcp'; document.getElementById('find').dispatchEvent(new Event('input'))");
    assert_eq!(browser.evaluate(count), "11 of 300 flows");

    let color = "getComputedStyle(document.body).backgroundColor";
    let before = browser.evaluate(color);
    browser.evaluate("document.getElementById('theme').click()");
    assert_ne!(browser.evaluate(color), before);
    assert_eq!(browser.problems, Vec::<Value>::new());
    browser.call("Browser.close", &json!({}));
    browser.child.end();
}
