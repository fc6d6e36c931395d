//! Open transactions, whose requests are never answered, on thousands of flows: allocated memory stays below the budget
//! plus a constant, and each transaction is delivered.

use etherparse::PacketBuilder;
use flowgauge::base::{Account, Budget, EndReason, Frame, Resources, Timestamp};
use flowgauge::pipeline::{Pipeline, Sessions, Sink, TransactionSink, Transactions};
use flowgauge::protocols::{Message, Standard, dns, ftp, http1};
use flowgauge::session::MessageMeta;
use flowgauge::tracker::{Flow, FlowView, Interest};
use flowgauge::transaction::{Lack, Transaction};

use super::heap::{held_now, peak_since};
use super::{FIXED, run_alone};

const LIMIT: usize = 8 << 20;

/// Counts requests, transactions, those that a limit ended, and flows.
#[derive(Default)]
struct Count {
    request_count: usize,
    transaction_count: usize,
    limited_count: usize,
    flow_count: usize,
}

impl Sink for Count {
    type State = ();
    type Stage = Sessions<Standard>;

    fn interest(&self) -> Interest {
        Interest::RECORDS
    }

    fn message(&mut self, _: &mut Flow<'_, ()>, _: &MessageMeta, message: &Message<'_>) {
        self.request_count += usize::from(matches!(
            message,
            Message::Http1(http1::Message::Request(_))
                | Message::Dns(dns::Message::Query(_))
                | Message::Ftp(ftp::Message::Command(_))
        ));
    }

    fn ended(&mut self, _: &FlowView<'_>, _: EndReason, (): ()) {
        self.flow_count += 1;
    }
}

impl TransactionSink for Count {
    fn transaction(&mut self, _: &FlowView<'_>, (): &mut (), transaction: &Transaction) {
        self.transaction_count += 1;
        self.limited_count += usize::from(transaction.lacks() == Some(Lack::Limit));
    }
}

/// A pipeline that receives frames.
struct Attack {
    pipeline: Pipeline<Transactions<Count>>,
    budget: Budget,
    nanos: u64,
    before: usize,
}

impl Attack {
    fn new() -> Self {
        let before = held_now();
        let budget = Budget::new(LIMIT as u64);
        let builder = Pipeline::builder().resources(Resources::default().with_budget(budget.clone()));
        let pipeline = builder.build(Transactions::new(Count::default())).expect("a valid configuration");
        Self { pipeline, budget, nanos: 0, before }
    }

    fn frame(&mut self, data: &[u8]) {
        self.nanos += 1000;
        self.pipeline.frame(&Frame::ethernet(Timestamp::from_nanos(self.nanos), data));
    }

    /// Opens a connection to a port, and sends octets of the client in segments.
    fn client(&mut self, number: u32, port: u16, segments: &[&[u8]]) {
        let [_, a, b, c] = number.to_be_bytes();
        let mut seq = 1;
        for (is_syn, octets) in
            std::iter::once((true, &[][..])).chain(segments.iter().map(|segment| (false, *segment)))
        {
            let builder = PacketBuilder::ethernet2([2; 6], [4; 6])
                .ipv4([10, a, b, c], [192, 0, 2, 1], 64)
                .tcp(40_000, port, seq, 1000);
            let builder = if is_syn { builder.syn() } else { builder.ack(1) };
            let mut frame = Vec::new();
            builder.write(&mut frame, octets).unwrap();
            seq += octets.len() as u32 + u32::from(is_syn);
            self.frame(&frame);
        }
    }

    /// Opens a connection whose server sends a greeting, and sends octets of the client.
    fn greeted(&mut self, number: u32, port: u16, greeting: &[u8], octets: &[u8]) {
        self.client(number, port, &[]);
        let [_, a, b, c] = number.to_be_bytes();
        for (seq, is_syn, octets) in [(0, true, &[][..]), (1, false, greeting)] {
            let builder = PacketBuilder::ethernet2([4; 6], [2; 6])
                .ipv4([192, 0, 2, 1], [10, a, b, c], 64)
                .tcp(port, 40_000, seq, 1000)
                .ack(2);
            let builder = if is_syn { builder.syn() } else { builder };
            let mut frame = Vec::new();
            builder.write(&mut frame, octets).unwrap();
            self.frame(&frame);
        }
        let builder = PacketBuilder::ethernet2([2; 6], [4; 6])
            .ipv4([10, a, b, c], [192, 0, 2, 1], 64)
            .tcp(40_000, port, 2, 1000)
            .ack(1 + greeting.len() as u32);
        let mut frame = Vec::new();
        builder.write(&mut frame, octets).unwrap();
        self.frame(&frame);
    }

    fn datagram(&mut self, number: u32, port: u16, octets: &[u8]) {
        let [_, a, b, c] = number.to_be_bytes();
        let builder = PacketBuilder::ethernet2([2; 6], [4; 6]).ipv4([10, a, b, c], [192, 0, 2, 1], 64);
        let mut frame = Vec::new();
        builder.udp(40_000, port).write(&mut frame, octets).unwrap();
        self.frame(&frame);
    }

    /// Ends the flows, and checks the promise, and that a transaction was delivered for each request. Returns the counts.
    fn finish(mut self, name: &str) -> Count {
        let peak = peak_since(self.before);
        let charged = self.budget.held_by(Account::Sinks);
        println!("{name}: peak {peak}, charged {} for transactions, {} in all", charged, self.budget.peak());
        self.pipeline.check_invariants();
        assert!(peak <= LIMIT + FIXED, "{name}: {peak}");
        self.pipeline.finish();
        assert!(peak_since(self.before) <= LIMIT + FIXED, "{name}: at the end");
        let sink = self.pipeline.into_sink().into_inner();
        assert_eq!(self.budget.held(), 0);
        let Count { request_count, transaction_count, limited_count, .. } = sink;
        println!(
            "{request_count} requests, {transaction_count} transactions, {limited_count} of them limited"
        );
        // Parts of a mail are transactions, and the mail is none without its end.
        assert!(request_count == 0 || transaction_count == request_count, "{name}");
        sink
    }
}

#[test]
fn requests_without_responses_are_charged_and_delivered() {
    let _guard = run_alone();
    let request = b"GET / HTTP/1.1\r\nHost:a\r\n\r\n";
    let pipelined = request.repeat(50);
    let long = [b"GET /".to_vec(), vec![b'x'; 1300], b" HTTP/1.1\r\nHost: a\r\n\r\n".to_vec()].concat();
    for (name, segments, flow_count) in [
        ("one request", vec![&request[..]], 10_000),
        ("pipelined requests", vec![&pipelined[..]; 2], 200),
        ("long requests", vec![&long[..]; 20], 500),
    ] {
        let mut attack = Attack::new();
        (0..flow_count).for_each(|number| attack.client(number, 80, &segments));
        let count = attack.finish(name);
        assert_eq!(count.flow_count, flow_count as usize);
        let expected_count = flow_count as usize * segments.len() / 2;
        assert!(count.transaction_count > expected_count && count.limited_count > 0, "{name}");
    }
}

#[test]
fn queries_and_commands_without_answers_are_charged_and_delivered() {
    let _guard = run_alone();
    let mut query = vec![0, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    for label in ["a-name-that-nobody-answers", "example", "org"] {
        query.push(label.len() as u8);
        query.extend(label.as_bytes());
    }
    query.extend([0, 0, 1, 0, 1]);
    let mut attack = Attack::new();
    (0..30_000).for_each(|number| attack.datagram(number, 53, &query));
    let count = attack.finish("queries of DNS");
    assert!(count.transaction_count > 10_000 && count.limited_count > 0);

    let commands = b"USER somebody\r\nPASS secret\r\nRETR a-file-that-does-not-arrive\r\n".repeat(10);
    let mut attack = Attack::new();
    (0..800).for_each(|number| attack.greeted(number, 21, b"220 FTP server\r\n", &commands));
    let count = attack.finish("commands of FTP");
    assert!(count.transaction_count > 10_000 && count.limited_count > 0, "{}", count.transaction_count);

    let header = format!("Subject: {}\r\nTo: {}\r\n", "s".repeat(600), "a@example.org, ".repeat(40));
    let mail = format!("EHLO a\r\nMAIL FROM:<a@b>\r\nRCPT TO:<c@d>\r\nDATA\r\n{header}");
    let mut attack = Attack::new();
    (0..3000).for_each(|number| attack.greeted(number, 25, b"220 ESMTP\r\n", mail.as_bytes()));
    attack.finish("mails over SMTP");
}
