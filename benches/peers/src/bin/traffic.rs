//! Writes a trace of only short or only long flows.

use std::env;
use std::error::Error;
use std::fs::File;
use std::io::{BufWriter, Write as _};

use flowgauge_peers::traffic::Kind;

fn main() -> Result<(), Box<dyn Error>> {
    const USAGE: &str = "usage: traffic short|long OUT.pcap";
    let arguments: Vec<_> = env::args().skip(1).collect();
    let [kind, path] = &arguments[..] else { return Err(USAGE.into()) };
    let kind = match kind.as_str() {
        "short" => Kind::Short,
        "long" => Kind::Long,
        _ => return Err(USAGE.into()),
    };
    let mut file = BufWriter::new(File::create(path)?);
    let packet_count = kind.write(&mut file)?;
    file.flush()?;
    println!("{packet_count} packets");
    Ok(())
}
