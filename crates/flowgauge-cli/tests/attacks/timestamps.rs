//! Timestamps at the ends of their range.

use super::packets::{block, section, udp};
use super::run;

#[test]
fn extreme_timestamps_lose_no_packet() {
    let resolution = |value: u8| [9, 0, 1, 0, value, 0, 0, 0];
    let times = [0, u64::MAX, 1 << 63, u64::MAX - 1, 1, 1_000_000_000_000_000, 0, u64::MAX].repeat(100);
    for options in
        [Vec::new(), resolution(9).to_vec(), resolution(0x80 | 63).to_vec(), resolution(0).to_vec()]
    {
        let mut capture = section(&options);
        for (at, time) in times.iter().enumerate() {
            let frame = udp((1000 + at as u16 % 300, 99), b"x");
            let len = frame.len() as u32;
            let fields = [0, (time >> 32) as u32, *time as u32, len, len];
            let mut body: Vec<u8> = fields.into_iter().flat_map(u32::to_le_bytes).collect();
            body.extend(frame);
            capture.extend(block(6, &body));
        }
        for more in [&[][..], &["--shards", "4"], &["--active-timeout", "1s"], &["--max-flows", "10"]] {
            let args = [&["flows", "--format", "ndjson", "input"], more].concat();
            let (out, err, _) = run(&args, &capture);
            let packet_count: u64 = String::from_utf8(out)
                .unwrap()
                .lines()
                .map(|line| {
                    let record: serde_json::Value = serde_json::from_str(line).unwrap();
                    let count = |name: &str| record[name].as_u64().unwrap();
                    count("packet_count") + count("reverse_packet_count")
                })
                .sum();
            assert_eq!(packet_count, times.len() as u64, "{args:?}: {err}");
        }
    }
}
