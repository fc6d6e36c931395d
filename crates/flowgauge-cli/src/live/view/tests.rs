//! The view of captures of this repository, and of generated frames.

use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use etherparse::PacketBuilder;
use flowgauge::base::{Frame, FrameBatch};
use flowgauge::source::{Next, SourceStats};
use flowgauge::{FileSource, Pipeline, Sessions, Source as _, Standard, Timestamp};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::style::Modifier;

use super::controls::{Change, Controls};
use super::draw::{Surroundings, draw};
use super::model::{Model, Report};
use super::order::{Order, Tab};
use super::sink::ViewSink;

type Stage = Sessions<Standard>;

/// A view with a pipeline.
struct Scene {
    pipeline: Pipeline<ViewSink<Stage>>,
    model: Rc<RefCell<Model>>,
    controls: Controls,
    source: SourceStats,
}

impl Scene {
    fn new() -> Self {
        let model = Rc::new(RefCell::new(Model::new(None)));
        let pipeline = Pipeline::builder().build(ViewSink::new(Rc::clone(&model))).unwrap();
        Self { pipeline, model, controls: Controls::default(), source: SourceStats::default() }
    }

    /// Reads a capture in one interval of a second.
    fn of(name: &str) -> Self {
        let mut scene = Self::new();
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/data").join(name);
        let mut source = FileSource::open(path).unwrap();
        let mut batch = FrameBatch::new();
        while source.next_batch(&mut batch).unwrap() == Next::Frames {
            let _ = scene.pipeline.batch(&batch);
        }
        scene.end_interval();
        scene
    }

    fn end_interval(&mut self) {
        let report = Report {
            interval: Duration::from_secs(1),
            source: self.source,
            stats: self.pipeline.stats(),
            flow_count: self.pipeline.flow_count(),
            budget_bytes: 1 << 20,
        };
        self.refresh(Some(report));
    }

    fn refresh(&self, report: Option<Report>) {
        self.model.borrow_mut().refresh(self.pipeline.now(), report, self.pipeline.flows());
    }

    fn press(&mut self, code: KeyCode) -> Change {
        self.press_with(code, KeyModifiers::NONE)
    }

    fn press_with(&mut self, code: KeyCode, modifiers: KeyModifiers) -> Change {
        let change = self.controls.key(KeyEvent::new(code, modifiers), &mut self.model.borrow_mut());
        if change == Change::Rows {
            self.refresh(None);
        }
        change
    }

    fn enter(&mut self, text: &str) {
        for letter in text.chars() {
            self.press(KeyCode::Char(letter));
        }
        self.press(KeyCode::Enter);
    }

    fn buffer(&self, width: u16, height: u16) -> Buffer {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        let surroundings = Surroundings { origin: "eth0", message: "" };
        let model = self.model.borrow();
        terminal.draw(|frame| draw(frame, &model, &self.controls, &surroundings)).unwrap();
        terminal.backend().buffer().clone()
    }

    fn lines(&self, width: u16, height: u16) -> Vec<String> {
        let buffer = self.buffer(width, height);
        let line = |y| {
            let symbols = (0..width).map(|x| buffer[(x, y)].symbol());
            symbols.collect::<String>().trim_end().to_owned()
        };
        (0..height).map(line).collect()
    }

    /// Returns the title and the rows of the table.
    fn table(&self, width: u16, height: u16) -> Vec<String> {
        let lines = self.lines(width, height);
        let titles = ["SOURCE", "HOST", "PROTOCOL  "];
        let start = lines.iter().position(|line| titles.iter().any(|title| line.contains(title))).unwrap();
        let rows = &lines[start..lines.len() - 1];
        rows.iter().take_while(|line| !line.is_empty()).cloned().collect()
    }

    fn send(&mut self, nanos: u64, frame: &[u8]) {
        self.pipeline.frame(&Frame::ethernet(Timestamp::from_nanos(nanos), frame));
    }
}

/// Sizes of terminals for which the view is made.
const SIZES: [(u16, u16); 4] = [(40, 12), (80, 24), (100, 30), (160, 50)];

/// Returns a frame of a TCP connection from port 40000 of 192.0.2.1 to port 80 of 192.0.2.2.
fn segment(seq: u32, is_syn: bool, payload: &[u8]) -> Vec<u8> {
    let builder = PacketBuilder::ethernet2([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2])
        .ipv4([192, 0, 2, 1], [192, 0, 2, 2], 64)
        .tcp(40_000, 80, seq, 1024);
    let builder = if is_syn { builder.syn() } else { builder.ack(1).psh() };
    let mut frame = Vec::new();
    builder.write(&mut frame, payload).unwrap();
    frame
}

/// Returns a query of DNS for an address.
fn query(id: u16) -> Vec<u8> {
    let mut message = id.to_be_bytes().to_vec();
    message.extend([1, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
    message.extend(b"\x03www\x07example\0\0\x01\0\x01");
    let builder = PacketBuilder::ethernet2([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2])
        .ipv4([192, 0, 2, 1], [192, 0, 2, 2], 64)
        .udp(40_000, 53);
    let mut frame = Vec::new();
    builder.write(&mut frame, &message).unwrap();
    frame
}

#[test]
fn all_parts_fit_the_terminal() {
    let scene = Scene::of("web.pcap");
    for (width, height) in SIZES {
        let lines = scene.lines(width, height);
        assert!(lines[0].starts_with("flowgauge live: eth0") && lines[0].ends_with("1s"), "{lines:#?}");
        assert!(lines[1].starts_with("Out ") && lines[1].contains("bit/s"), "{lines:#?}");
        assert!(lines[2].starts_with("In ") && lines[2].contains("packets/s"), "{lines:#?}");
        assert_eq!(lines[2].contains("1286 packets"), width >= 80, "{lines:#?}");
        assert_eq!(lines[3], "Drops none");
        assert_eq!(lines.iter().any(|line| line.contains("┤") && line.contains("bit/s")), height >= 24);
        let footer = lines.last().unwrap();
        assert!(footer.starts_with("sorted by rate") && footer.ends_with("? help  q quit"), "{footer}");
        let table = scene.table(width, height);
        assert!(table.len() >= 6 && table[1].contains("10.77.0."), "{table:#?}");
        // Numbers are at the right end of the line.
        assert_eq!(table[0].chars().count(), usize::from(width), "{}", table[0]);
        assert_eq!(table[0].contains("SERVER NAME"), width >= 80);
        assert_eq!(table[0].contains("RTT"), width >= 160);
    }
    // A terminal that is too small for anything is no failure.
    for (width, height) in [(1, 1), (3, 2), (12, 4), (500, 3)] {
        scene.lines(width, height);
    }
}

#[test]
fn rows_have_the_facts_of_flows() {
    let mut scene = Scene::of("web.pcap");
    scene.model.borrow_mut().order = Order::Octets;
    scene.refresh(None);
    let table = scene.table(160, 50);
    let titles = [
        "PROTO",
        "SOURCE",
        "DESTINATION",
        "SERVER NAME",
        "STATE",
        "OUT bps",
        "IN bps",
        "OUT pps",
        "IN pps",
        "RTT",
        "AGE",
        "OCTETS▼",
        "PACKETS",
    ];
    let mut rest = &*table[0];
    for title in titles {
        rest = rest.split_once(title).unwrap_or_else(|| panic!("{title}: {table:#?}")).1;
    }
    // The flow with the most octets of the capture.
    let row: Vec<_> = table[1].split_whitespace().collect();
    assert_eq!(row[..5], ["tls", "10.77.0.2:60260", "10.77.0.1:443", "web.example", "SF"]);
    assert_eq!(row[11..], ["184.4k", "158"]);
    let (out, back): (f64, f64) = (row[7].parse().unwrap(), row[8].parse().unwrap());
    assert_eq!(out + back, 158.0, "all packets were in this second");
    assert!(row[9].ends_with("us") && row[10].ends_with('s'), "{row:?}");
    // The next second has no traffic.
    scene.end_interval();
    let row: Vec<_> = scene.table(160, 50)[1].split_whitespace().map(str::to_owned).collect();
    assert_eq!(row[5..9], ["0", "0", "0", "0"]);
    assert_eq!(row[11], "184.4k");
    assert!(scene.lines(80, 24)[1].starts_with("Out   0 bit/s  0 packets/s"));
}

#[test]
fn rates_are_those_of_initiators_and_responders() {
    let scene = Scene::of("web.pcap");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/data/web.pcap");
    let records: Vec<_> = flowgauge::records(FileSource::open(path).unwrap()).map(Result::unwrap).collect();
    let sum = |of: fn(&flowgauge::FlowRecord) -> u64| records.iter().map(of).sum::<u64>();
    let recent = scene.model.borrow().sum.activity.recent;
    assert_eq!(recent.sent.octet_count, sum(|record| record.forward.counters.octet_count));
    assert_eq!(recent.received.octet_count, sum(|record| record.reverse.counters.octet_count));
    assert_eq!(recent.received.packet_count, sum(|record| record.reverse.counters.packet_count));
}

#[test]
fn the_order_is_visible_and_can_be_reversed() {
    let mut scene = Scene::of("web.pcap");
    for (name, title) in [
        ("rate", "OUT▼bps"),
        ("rate out", "OUT▼bps"),
        ("rate in", "IN▼bps"),
        ("octets", "OCTETS▼"),
        ("packets", "PACKETS▼"),
        ("RTT", "RTT▼"),
        ("age", "AGE▼"),
    ] {
        // The column of the order is shown in any width, except that both directions become one.
        for (width, height) in SIZES {
            let lines = scene.lines(width, height);
            let sorted = format!("sorted by {name} ");
            assert!(lines.last().unwrap().starts_with(&sorted), "{lines:#?}");
            let title = if width == 40 && name == "rate" { "BIT/S▼" } else { title };
            assert!(scene.table(width, height)[0].contains(title), "{lines:#?}");
        }
        assert_eq!(scene.press(KeyCode::Char('s')), Change::Rows);
    }
    assert_eq!(scene.model.borrow().order, Order::Rate);
    let octets = |scene: &Scene| -> Vec<u64> {
        let model = scene.model.borrow();
        model
            .flows
            .iter()
            .map(|row| row.record.forward.counters.octet_count + row.record.reverse.counters.octet_count)
            .collect()
    };
    let first = octets(&scene);
    assert!(first.is_sorted_by(|a, b| a >= b), "{first:?}");
    scene.press(KeyCode::Char('r'));
    assert!(octets(&scene).is_sorted());
    let lines = scene.lines(80, 24);
    assert!(lines[23].starts_with("sorted by rate, least first"), "{lines:#?}");
    assert!(scene.table(80, 24)[0].contains("OUT▲bps"));
    // Hosts have neither a handshake nor an age.
    scene.model.borrow_mut().order = Order::Rtt;
    scene.press(KeyCode::Tab);
    assert!(scene.lines(80, 24)[23].starts_with("sorted by rate, "));
}

#[test]
fn hosts_and_protocols_have_the_traffic_of_all_flows_and_open_their_flows() {
    let mut scene = Scene::of("web.pcap");
    scene.press(KeyCode::Tab);
    let hosts = scene.table(80, 24);
    assert!(hosts[0].contains("HOST") && hosts[1].contains("10.77.0."), "{hosts:#?}");
    // What a host sent, its peers received.
    let model = scene.model.borrow();
    let sum = |of: fn(&super::traffic::Traffic) -> u64| {
        model.totals.iter().map(|row| of(&row.activity.total)).sum::<u64>()
    };
    assert_eq!(sum(|traffic| traffic.sent.octet_count), sum(|traffic| traffic.received.octet_count));
    drop(model);
    scene.press(KeyCode::Tab);
    let protocols = scene.table(120, 24);
    let counted: u64 = protocols[1..]
        .iter()
        .map(|line| line.split_whitespace().last().unwrap().parse::<u64>().unwrap())
        .sum();
    // Two packets of the capture are ARP.
    assert_eq!(counted, 1284, "{protocols:#?}");
    let index = protocols.iter().position(|line| line.contains("tcp/tls")).unwrap() - 1;
    scene.model.borrow_mut().mark(Some(index));
    scene.press(KeyCode::Enter);
    let lines = scene.lines(100, 30);
    let tabs = lines.iter().find(|line| line.contains("[Flows]")).unwrap();
    assert!(tabs.ends_with("where protocol = 'tcp' and application = 'tls'"), "{tabs}");
    assert!(scene.table(100, 30)[1..].iter().all(|row| row.starts_with(" tls")), "{lines:#?}");
    scene.press(KeyCode::Esc);
    assert!(!scene.lines(100, 30).concat().contains("where protocol"));
    assert_eq!(scene.model.borrow().tab, Tab::Protocols, "back to the table of protocols");
    // All rows of hosts and protocols are conditions.
    for tab in [Tab::Hosts, Tab::Protocols] {
        scene.model.borrow_mut().select_tab(tab);
        scene.refresh(None);
        let count = scene.model.borrow().totals.len();
        for index in 0..count {
            scene.model.borrow_mut().select_tab(tab);
            scene.refresh(None);
            scene.model.borrow_mut().mark(Some(index));
            scene.press(KeyCode::Enter);
            assert!(!scene.model.borrow().flows.is_empty(), "{tab:?} {index}");
        }
    }
}

#[test]
fn a_condition_selects_flows_and_its_problem_is_at_its_position() {
    let mut scene = Scene::of("web.pcap");
    let packets = scene.lines(80, 24)[2].clone();
    scene.press(KeyCode::Char('/'));
    assert!(scene.lines(80, 24)[23].starts_with("where: _"));
    scene.enter("destination_port = 8080 and octet_cont > 1");
    let lines = scene.lines(80, 24);
    assert_eq!(lines[22], "where: destination_port = 8080 and octet_cont > 1_  Enter applies, Esc cancels");
    let mark = "^ column 29: `octet_cont` is not a column; did you mean `octet_count`?";
    assert_eq!(lines[23], format!("{mark:>80}"), "moved to the left, so that it is complete");
    let wide = scene.lines(160, 50);
    assert_eq!(wide[49].find('^'), wide[48].find("octet_cont"), "{}", wide[49]);
    assert!(scene.lines(40, 12)[10].starts_with("where: "));
    scene.press_with(KeyCode::Char('u'), KeyModifiers::CONTROL);
    scene.enter("destination_port = 8080");
    let table = scene.table(80, 24);
    assert_eq!(table.len(), 3, "{table:#?}");
    assert!(table[1].contains(":8080") && table[2].contains(":8080"), "{table:#?}");
    let lines = scene.lines(80, 24);
    assert!(lines[9].contains("2 of 27 where destination_port = 8080"), "{lines:#?}");
    assert_eq!(lines[2], packets, "all packets are counted");
    // The condition can be continued; Esc keeps it.
    scene.press(KeyCode::Char('/'));
    assert!(scene.lines(80, 24)[23].starts_with("where: destination_port = 8080_"));
    scene.press(KeyCode::Esc);
    assert_eq!(scene.table(80, 24).len(), 3);
    scene.press(KeyCode::Esc);
    assert!(scene.table(80, 24).len() > 3);
    scene.press(KeyCode::Char('/'));
    scene.enter("server_name = 'web6.example' and application = 'tls'");
    let table = scene.table(80, 24);
    assert!(table.len() > 1 && table[1..].iter().all(|row| row.contains("web6.example")), "{table:#?}");
    // An empty condition selects all.
    scene.press(KeyCode::Char('/'));
    scene.press_with(KeyCode::Char('u'), KeyModifiers::CONTROL);
    scene.press(KeyCode::Enter);
    assert!(scene.model.borrow().condition.is_none());
}

#[test]
fn a_long_condition_is_edited_at_its_end() {
    let mut scene = Scene::of("web.pcap");
    scene.press(KeyCode::Char('/'));
    let long = format!("{}x > 5", "packet_count > 1 and ".repeat(10));
    scene.enter(&long);
    let lines = scene.lines(80, 24);
    assert!(lines[22].starts_with("where: ") && lines[22].ends_with("and x > 5_"), "{lines:#?}");
    assert_eq!(lines[22].chars().count(), 80);
    assert!(lines[23].contains("^ column 211: `x` is not a column"), "{lines:#?}");
}

#[test]
fn a_flow_is_shown_with_its_facts_and_messages() {
    let mut scene = Scene::of("web.pcap");
    scene.press(KeyCode::Char('/'));
    scene.enter("application = 'http' and destination_port = 80");
    scene.press(KeyCode::Down);
    assert!(scene.table(80, 24)[1].starts_with('>'));
    scene.press(KeyCode::Enter);
    for (width, height) in SIZES {
        let lines = scene.lines(width, height);
        assert!(lines[1].starts_with("Flow   http  10.77.0.2:"), "{lines:#?}");
        assert!(lines.iter().any(|line| line.starts_with("Out ")), "{lines:#?}");
        assert!(
            lines.iter().any(|line| line.starts_with("── ") && line.contains(" messages ")),
            "{lines:#?}"
        );
        assert!(lines.iter().any(|line| line.contains("→ 10.77.0.1:80")), "{lines:#?}");
    }
    let lines = scene.lines(100, 30);
    for text in [
        "closed by both ends",
        "history ShA",
        "initiator by syn",
        "→ request",
        "← response",
        "1:",
        "method=GET",
    ] {
        assert!(lines.iter().any(|line| line.contains(text)), "{text}: {lines:#?}");
    }
    // The flow remains when it has ended.
    scene.pipeline.finish();
    scene.end_interval();
    let lines = scene.lines(100, 30);
    assert!(lines.iter().any(|line| line.contains("ended (closed)")), "{lines:#?}");
    scene.press(KeyCode::Esc);
    assert!(scene.model.borrow().shown.is_none());
    let lines = scene.lines(80, 24);
    assert!(lines[9].starts_with("[Flows]") && lines[11].is_empty(), "{lines:#?}");
}

#[test]
fn messages_of_a_flow_are_updated_and_bounded() {
    let mut scene = Scene::new();
    let mut sent = 0;
    let mut send = |scene: &mut Scene, count: u16| {
        for _ in 0..count {
            sent += 1;
            scene.send(u64::from(sent) * 1000, &query(sent));
        }
    };
    let shown_count =
        |scene: &Scene| scene.model.borrow().shown.as_ref().map_or(0, |shown| shown.lines.iter().len());
    send(&mut scene, 60);
    scene.end_interval();
    scene.press(KeyCode::Enter);
    // Further messages of the interval are not kept.
    assert_eq!(shown_count(&scene), 50);
    send(&mut scene, 3);
    assert_eq!(shown_count(&scene), 53);
    let lines = scene.lines(80, 24);
    assert!(lines.iter().any(|line| line.contains("→ query id=63 ")), "{lines:#?}");
    for _ in 0..6 {
        scene.end_interval();
        send(&mut scene, 60);
    }
    assert_eq!(shown_count(&scene), 200);
    // Earlier messages are above.
    scene.press(KeyCode::PageUp);
    let lines = scene.lines(80, 24);
    assert!(lines.iter().any(|line| line.starts_with("── 200 messages, 10 more below")), "{lines:#?}");
    for _ in 0..30 {
        scene.press(KeyCode::PageUp);
    }
    assert!(scene.lines(80, 24).iter().any(|line| line.contains(", 199 more below")));
    scene.press(KeyCode::End);
    assert!(scene.lines(80, 24).iter().any(|line| line.starts_with("── 200 messages ─")));
}

#[test]
fn names_and_messages_cannot_control_the_terminal() {
    let mut scene = Scene::new();
    let host = "\u{202e}eli\u{200b}ve.日本語.example";
    let request = format!("GET /\u{9b}31m HTTP/1.1\r\nHost: {host}\r\nUser-Agent: a\u{1b}[2Jb\r\n\r\n");
    scene.send(1000, &segment(1, true, &[]));
    scene.send(2000, &segment(2, false, request.as_bytes()));
    scene.end_interval();
    let table = scene.table(160, 30);
    assert!(table[1].contains("\\u202eeli\\u200bve"), "{table:#?}");
    let wide = scene.buffer(160, 50);
    scene.press(KeyCode::Enter);
    let shown = scene.buffer(160, 50);
    for buffer in [wide, shown] {
        for cell in &buffer.content {
            let is_harmless =
                |letter: char| !letter.is_control() && letter != '\u{202e}' && letter != '\u{200b}';
            assert!(cell.symbol().chars().all(is_harmless), "{:?}", cell.symbol());
        }
    }
    let text = scene.lines(160, 50).concat();
    assert!(text.contains("\\u202eeli\\u200bve") && text.contains("a\\u001b[2Jb"), "{text}");
}

#[test]
fn drops_are_marked_above_a_share() {
    let mut scene = Scene::of("web.pcap");
    let style = |scene: &Scene| scene.buffer(100, 30)[(8, 3)].modifier;
    scene.source.kernel_drop_count = 1;
    scene.end_interval();
    // One of one packets in this second.
    assert!(scene.lines(100, 30)[3].starts_with("Drops <0.1 % !!  1 of 1287 packets, last second 100.0 %"));
    assert!(style(&scene).contains(Modifier::REVERSED));
    let drop_marks = |scene: &Scene| scene.lines(100, 30)[4].matches('!').count();
    assert_eq!(drop_marks(&scene), 1);
    scene.end_interval();
    assert_eq!(
        scene.lines(100, 30)[3],
        "Drops <0.1 %  1 of 1287 packets, last second 0 %  (kernel 1, interface 0)"
    );
    assert!(!style(&scene).contains(Modifier::REVERSED));
    (scene.source.kernel_drop_count, scene.source.interface_drop_count) = (1214, 100);
    scene.end_interval();
    assert_eq!(
        scene.lines(100, 30)[3],
        "Drops 50.5 % !!  1314 of 2600 packets, last second 100.0 %  (kernel 1214, interface 100)"
    );
    assert_eq!(scene.lines(40, 12)[3], "Drops 50.5 % !!, last second 100.0 %");
    assert_eq!(drop_marks(&scene), 2);
}

#[test]
fn the_chart_has_scales_of_rate_and_time() {
    let scene = Scene::of("web.pcap");
    let octets = scene.pipeline.stats().octet_count;
    assert!((1_250_000..2_500_000).contains(&octets), "{octets}");
    let lines = scene.lines(80, 24);
    assert_eq!(lines[4], " 20 Mbit/s┤");
    assert_eq!(lines[6].chars().take(11).collect::<String>(), " 10 Mbit/s┤");
    assert!(lines[6].ends_with('▅') || lines[7].ends_with('█'), "{lines:#?}");
    assert!(
        lines[8].starts_with("        0 └─") && lines[8].ends_with("30 s───────────────────────────now"),
        "{lines:#?}"
    );
}

#[test]
fn the_mark_follows_its_flow() {
    let mut scene = Scene::of("web.pcap");
    scene.press(KeyCode::Down);
    scene.press(KeyCode::Char('j'));
    let marked = |scene: &Scene| {
        let model = scene.model.borrow();
        model.marked_index().map(|index| (index, model.flows[index].id))
    };
    let (index, id) = marked(&scene).unwrap();
    assert_eq!(index, 1);
    scene.press(KeyCode::Char('r'));
    let (index, same) = marked(&scene).unwrap();
    assert!(index > 1 && same == id);
    // A row below the last visible one is scrolled into view.
    scene.press(KeyCode::End);
    let table = scene.table(80, 24);
    assert!(table.last().unwrap().starts_with('>') && table.len() == 13, "{table:#?}");
    scene.press(KeyCode::Home);
    scene.press(KeyCode::Up);
    assert!(scene.table(80, 24)[1].starts_with('>'));
    scene.press(KeyCode::Esc);
    assert_eq!(marked(&scene), None);
}

#[test]
fn a_pause_keeps_the_rows_and_the_counts_continue() {
    let mut scene = Scene::of("web.pcap");
    let before = scene.table(80, 24);
    scene.press(KeyCode::Char('p'));
    scene.end_interval();
    let lines = scene.lines(80, 24);
    assert!(lines[0].contains("PAUSED") && lines[23].contains("p resume"), "{lines:#?}");
    assert_eq!(scene.table(80, 24)[1], before[1]);
    assert!(lines[1].starts_with("Out   0 bit/s"));
    scene.press(KeyCode::Char(' '));
    scene.end_interval();
    assert_ne!(scene.table(80, 24), before);
}

#[test]
fn records_of_active_timeouts_do_not_count_again() {
    let model = Rc::new(RefCell::new(Model::new(None)));
    let builder = Pipeline::builder().active_timeout(Duration::from_secs(1));
    let mut pipeline = builder.build(ViewSink::<Stage>::new(Rc::clone(&model))).unwrap();
    for second in 0..5 {
        let frame = segment(1 + second, second == 0, &[]);
        pipeline.frame(&Frame::ethernet(Timestamp::from_parts(1000 + u64::from(second) * 2, 0), &frame));
        model.borrow_mut().refresh(pipeline.now(), None, pipeline.flows());
    }
    pipeline.finish();
    assert_eq!(model.borrow().sum.activity.total.sent.packet_count, 5);
}

#[test]
fn the_help_lists_the_keys_and_any_key_closes_it() {
    let mut scene = Scene::of("web.pcap");
    scene.press(KeyCode::Char('?'));
    let lines = scene.lines(80, 24);
    for text in ["Enter", "--where", "q Ctrl-C", "OUT IN", "Drops"] {
        assert!(lines.iter().any(|line| line.contains(text)), "{text}: {lines:#?}");
    }
    assert!(scene.lines(40, 12)[1..11].iter().any(|line| line.contains("q Ctrl-C")));
    assert_eq!(scene.press(KeyCode::Char('q')), Change::Drawing);
    assert!(scene.lines(80, 24)[1].starts_with("Out "));
    assert_eq!(scene.press(KeyCode::Char('q')), Change::Quit);
    scene.press(KeyCode::Char('/'));
    assert_eq!(scene.press_with(KeyCode::Char('c'), KeyModifiers::CONTROL), Change::Quit);
}
