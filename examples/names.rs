//! Prints the server names in TLS ClientHello messages and the questions of DNS queries.
//!
//! cargo run --example names --features protocols -- examples/data/web.pcap

use flowgauge::{FileSource, Message, Pipeline, RunOptions, Standard, dns, on_message, tls};

fn main() -> Result<(), flowgauge::Error> {
    let path = std::env::args().nth(1).expect("usage: names FILE");
    let sink = on_message::<Standard>(|flow, _, message| match message {
        Message::Tls(tls::Message::ClientHello(hello)) => {
            hello.server_name().iter().for_each(|name| println!("{} {name}", flow.key()));
        }
        Message::Dns(dns::Message::Query(query)) => {
            query.questions().for_each(|question| println!("{} {}", flow.key(), question.name));
        }
        _ => {}
    });
    Pipeline::builder().build(sink)?.run(&mut FileSource::open(path)?, &RunOptions::default())?;
    Ok(())
}
