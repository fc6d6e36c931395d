//! Names that the cache of DNS answers gives, against those that the client requests in TLS, QUIC and HTTP.

use std::collections::HashMap;
use std::net::IpAddr;
use std::num::NonZeroUsize;

use flowgauge::protocols::{NameCache, ServerName, dns};
use flowgauge::{
    EndReason, FileSource, Flow, Interest, Message, MessageMeta, Pipeline, RunOptions, Sessions, Sink,
    Standard,
};

use crate::corpus;

/// Compares, for each flow, the name of the cache with the one in its content, which the cache does not see.
struct Compare {
    names: NameCache,
    /// Every answer so far, without a bound: client and address, and all names that were answered.
    answers: HashMap<(IpAddr, IpAddr), Vec<String>>,
    result: Result,
}

#[derive(Debug, Default)]
struct Result {
    /// Flows whose name in the content an answer to the client gave before.
    given: u64,
    recovered: u64,
    /// Flows with a name of the cache that is not the one in their content.
    wrong: Vec<(String, String)>,
    found: u64,
}

#[derive(Debug, Default)]
struct State {
    found: Option<ServerName>,
    given: Vec<String>,
    is_compared: bool,
}

impl Sink for Compare {
    type State = State;
    type Stage = Sessions<Standard>;

    fn interest(&self) -> Interest {
        Interest::STARTS | Interest::RECORDS
    }

    fn started(&mut self, flow: &mut Flow<'_, State>) {
        let view = &flow.view;
        let [client, server] =
            [view.initiator(), view.initiator().other()].map(|side| view.key().address(side));
        flow.state.found = self.names.find(client, server, view.start());
        flow.state.given = self.answers.get(&(client, server)).cloned().unwrap_or_default();
    }

    fn message(&mut self, flow: &mut Flow<'_, State>, meta: &MessageMeta, message: &Message<'_>) {
        let client = flow.view.key().address(meta.side.other());
        self.names.learn(client, meta.timestamp, message);
        if let Message::Dns(dns::Message::Response(response)) = message
            && let Some(question) = response.questions().next()
        {
            for address in response.answers().filter_map(|record| record.data.address()) {
                let name = question.name.to_string().to_lowercase();
                self.answers.entry((client, address)).or_default().push(name);
            }
        }
        let Some(expected) = ServerName::of(message) else { return };
        if std::mem::replace(&mut flow.state.is_compared, true) {
            return;
        }
        let found = flow.state.found.as_ref().map(|found| &found.name);
        let is_given = flow.state.given.iter().any(|name| **name == *expected.name);
        self.result.given += u64::from(is_given);
        self.result.found += u64::from(found.is_some());
        match found {
            Some(found) if *found == expected.name => self.result.recovered += 1,
            Some(found) => self.result.wrong.push((found.to_string(), expected.name.to_string())),
            None => {}
        }
    }

    fn record(&mut self, _: &mut Flow<'_, State>, _: EndReason) {}
}

#[test]
fn names_of_dns_are_those_that_clients_request() {
    let Some(captures) = corpus::captures() else { return };
    let mut total = Result::default();
    for capture in captures {
        let sink = Compare {
            names: NameCache::new(NonZeroUsize::new(1000).expect("a thousand")),
            answers: HashMap::new(),
            result: Result::default(),
        };
        let mut pipeline = Pipeline::builder().build(sink).expect("defaults");
        // A damaged capture is read up to its damage.
        let _ =
            pipeline.run(&mut FileSource::open(capture.path()).expect("a capture"), &RunOptions::default());
        let Compare { result, .. } = pipeline.into_sink();
        for (found, expected) in &result.wrong {
            println!("{}: {found} instead of {expected}", capture.name);
        }
        total.given += result.given;
        total.recovered += result.recovered;
        total.found += result.found;
        total.wrong.extend(result.wrong);
    }
    println!(
        "names that DNS gave: {}, recovered: {}, of {} flows with a name of DNS wrong: {}",
        total.given,
        total.recovered,
        total.found,
        total.wrong.len()
    );
    assert!(total.given > 100);
    assert!(total.recovered * 100 >= 80 * total.given, "{} of {}", total.recovered, total.given);
    assert!(total.wrong.len() as u64 * 100 <= total.found, "{} of {}", total.wrong.len(), total.found);
}
