//! Prints the record of each flow of a capture.
//!
//! cargo run --example print_records -- examples/data/web.pcap

fn main() -> Result<(), flowgauge::Error> {
    let path = std::env::args().nth(1).expect("usage: print_records FILE");
    for record in flowgauge::records(flowgauge::FileSource::open(path)?) {
        println!("{}", record?);
    }
    Ok(())
}
