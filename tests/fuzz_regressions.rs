//! Inputs of the fuzz targets that failed once, replayed through the bodies of the targets; no fuzzer is needed.
//!
//! `fuzz/regressions` has a folder per target. Targets that compare with crates of the fuzz package are replayed by its
//! own test, and by a test beside the parser that was corrected.

#![cfg(all(feature = "compression", feature = "protocols", feature = "serde"))]

use std::fs;
use std::path::Path;

#[path = "../fuzz/src/targets/mod.rs"]
#[allow(
    dead_code,
    unreachable_pub,
    missing_debug_implementations,
    reason = "it is public in the fuzz package"
)]
mod targets;

#[test]
fn inputs_that_failed_once_pass() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/regressions");
    let mut input_count = 0;
    for (name, body) in targets::ALL {
        let Ok(folder) = fs::read_dir(root.join(name)) else { continue };
        for entry in folder {
            let path = entry.expect("a readable folder").path();
            println!("{}", path.display());
            body(&fs::read(&path).expect("a readable file"));
            input_count += 1;
        }
    }
    assert!(input_count > 0, "there are regressions to replay");
}

/// Octets of each length, so that every target runs in the test suite whether it ever failed or not.
#[test]
fn plain_inputs_pass() {
    for (name, body) in targets::ALL {
        println!("{name}");
        for len in [0, 1, 2, 20, 200] {
            for octet in [0, 1, 0x7f, 0xff] {
                body(&vec![octet; len]);
            }
            body(&(0..len).map(|number| (number * 7) as u8).collect::<Vec<_>>());
        }
    }
}
