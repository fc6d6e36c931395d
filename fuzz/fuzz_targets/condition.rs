#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| flowgauge_fuzz::run("condition", data));
