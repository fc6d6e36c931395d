//! Counts the flows of a capture.
//!
//! cargo run --example count_flows -- examples/data/web.pcap

fn main() -> Result<(), flowgauge::Error> {
    let path = std::env::args().nth(1).expect("usage: count_flows FILE");
    let records = flowgauge::records(flowgauge::FileSource::open(path)?);
    println!("{}", records.filter(Result::is_ok).count());
    Ok(())
}
