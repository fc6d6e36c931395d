//! Writes the seeds of all targets to `fuzz/corpus`. Captures that are named as arguments give further seeds.

use std::io;
use std::path::{Path, PathBuf};

use flowgauge_fuzz::seeds;

fn main() -> io::Result<()> {
    let mut captures = seeds::captures();
    captures.extend(std::env::args_os().skip(1).map(PathBuf::from));
    let seeds = seeds::make(&captures)?;
    seeds.write(&Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus"))?;
    for (target, count) in seeds.counts() {
        println!("{target}: {count}");
    }
    Ok(())
}
