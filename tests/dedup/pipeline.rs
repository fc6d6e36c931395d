//! A window in the pipeline: dropped frames are counted, and belong to no flow.

use etherparse::PacketBuilder;
use flowgauge::base::{Account, Frame, FrameBatch, Limits, Timestamp};
use flowgauge::dedup::DedupConfig;
use flowgauge::pipeline::{Pipeline, Records};

/// Returns a datagram from a port.
fn datagram(port: u16) -> Vec<u8> {
    let mut frame = Vec::new();
    let step = PacketBuilder::ethernet2([2; 6], [4; 6]).ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64);
    step.udp(port, 53).write(&mut frame, b"question").expect("a valid packet");
    frame
}

#[test]
fn duplicates_are_counted_and_belong_to_no_flow() {
    let [one, other] = [datagram(1), datagram(2)];
    let junk = [0; 60];
    let frame = |micros, data, interface| Frame {
        interface,
        ..Frame::ethernet(
            Timestamp::from_nanos(1 << 50).saturating_add(std::time::Duration::from_micros(micros)),
            data,
        )
    };
    let frames = [
        frame(0, &one[..], 0),
        frame(1, &one, 1),
        frame(2, &other, 0),
        frame(3, &junk, 0),
        frame(4, &junk, 1),
        frame(5, &one, 0),
        frame(5000, &one, 0),
    ];
    let octet_count: u64 = frames.iter().map(|frame| u64::from(frame.wire_len)).sum();
    for (is_on, only_between, dropped_count, packet_count) in
        [(false, false, 0, 5), (true, false, 3, 3), (true, true, 2, 4)]
    {
        let mut config = DedupConfig::default();
        config.only_between_interfaces = only_between;
        let builder = Pipeline::builder();
        let builder = if is_on { builder.dedup(config) } else { builder };
        let mut counts = Vec::new();
        for in_batch in [false, true] {
            let mut packets = 0;
            let sink = Records::new(|record| packets += record.packet_count());
            let mut pipeline = builder.build(sink).expect("a valid configuration");
            if in_batch {
                let mut batch = FrameBatch::new();
                frames.iter().for_each(|frame| batch.push(frame));
                let _ = pipeline.batch(&batch);
            } else {
                frames.iter().for_each(|frame| pipeline.frame(frame));
            }
            pipeline.finish();
            let stats = pipeline.stats();
            drop(pipeline);
            assert_eq!((stats.frame_count, stats.octet_count), (7, octet_count));
            assert_eq!(stats.dedup.duplicate_count, dropped_count);
            assert_eq!(stats.dedup.frame_count, if is_on { 7 } else { 0 });
            assert_eq!(stats.frame_count, packet_count + dropped_count + stats.skipped.total());
            assert_eq!((packets, stats.tracker.packet_count), (packet_count, packet_count));
            counts.push(format!("{stats:?}"));
        }
        assert_eq!(counts[0], counts[1], "batches and single frames");
    }
}

#[test]
fn a_configuration_error_names_the_layer() {
    let mut limits = Limits::DEFAULT;
    limits.dedup_frame_count_max = 0;
    let builder = Pipeline::builder().limits(limits).dedup(DedupConfig::default());
    let error = builder.build(()).expect_err("a window without frames");
    assert_eq!((error.layer, error.field), ("dedup", "dedup_frame_count_max"));
    // A pipeline that cannot be built releases the memory of its layers.
    assert_eq!(builder.budget().held(), 0);
    let builder = Pipeline::builder().dedup(DedupConfig::default()).dedup(DedupConfig::default());
    let pipeline = builder.build(()).expect("a valid configuration");
    assert!(builder.budget().held_by(Account::Dedup) > 0);
    drop(pipeline);
    assert_eq!(builder.budget().held(), 0);
}
