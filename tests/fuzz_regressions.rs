//! Fuzz inputs that once failed, replayed through the bodies of the fuzz targets without a fuzzer.
//!
//! `fuzz/regressions` has a folder per target. Targets that compare with other crates are replayed by a test of the
//! fuzz package, and by a test next to the parser that was corrected.

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
fn inputs_that_once_failed_pass() {
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

/// Simple inputs of several lengths, so that the test suite runs every target, including those without regressions.
#[test]
fn simple_inputs_pass() {
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
