//! Any octets are a checkpoint or an error, and whatever is restored keeps all invariants.
//!
//! The checksums of the input are corrected first, so that changes of its content reach the layers.
use std::cell::Cell;

use flowgauge::base::FrameBatch;
use flowgauge::checkpoint::{Reader, State, Writer};
use flowgauge::pipeline::read_checkpoint;
use flowgauge::transaction::TransactionConfig;
use flowgauge::{
    FileSource, Flows, Next, Pipeline, Records, Sessions, Sink, Source, Stage, Standard, Streams,
    on_transaction,
};

/// Frames that follow each checkpoint.
static CAPTURE: &[u8] = include_bytes!("../../../examples/data/web.pcap");

/// Number of frames that follow each checkpoint.
const FRAME_COUNT: usize = 200;

const HEADER_LEN: usize = 12;
const BLOCK_HEADER_LEN: usize = 9;

/// Corrects the checksums of all whole blocks.
pub fn mend(file: &mut [u8]) {
    let mut offset = HEADER_LEN;
    while let Some(block) = file.get_mut(offset..).filter(|block| block.len() >= BLOCK_HEADER_LEN) {
        let (header, content) = block.split_at_mut(BLOCK_HEADER_LEN);
        let len = u32::from_be_bytes([header[1], header[2], header[3], header[4]]) as usize;
        let Some(content) = content.get(..len) else { return };
        let mut crc = crc32fast::Hasher::new();
        crc.update(&(offset as u64).to_be_bytes());
        crc.update(&header[..1]);
        crc.update(&(len as u64).to_be_bytes());
        crc.update(content);
        header[5..9].copy_from_slice(&crc.finalize().to_be_bytes());
        offset += BLOCK_HEADER_LEN + len;
    }
}

fn restore<G: Stage>(file: &[u8], frames: &FrameBatch) {
    let record_count = Cell::new(0);
    let sink = Records::new(|_| record_count.set(record_count.get() + 1)).with_stage::<G>();
    let Ok(reader) = Reader::new(file) else { return };
    let Some(counts) = run_restored(reader, sink, frames) else { return };
    assert!(record_count.get() <= 2 * counts.flow_count + counts.active_timeout_count);
}

/// Restores the open transactions of each flow, too.
fn restore_transactions(file: &[u8], frames: &FrameBatch) {
    let sink = on_transaction(|view, transaction| {
        std::hint::black_box((view.community_id(), format!("{transaction:?}")));
    });
    let mut config = TransactionConfig::default();
    config.has_hashes = true;
    let mut sink = sink.config(config);
    let Ok(reader) = Reader::new(file) else { return };
    if sink.restore(&reader).is_ok() {
        run_restored(reader, sink, frames);
    }
}

/// Numbers of flows and of records.
struct Counts {
    flow_count: u64,
    active_timeout_count: u64,
}

/// Continues a checkpoint with frames; `None` if it is refused.
fn run_restored<K: Sink<State: State>>(
    mut reader: Reader<&[u8]>,
    sink: K,
    frames: &FrameBatch,
) -> Option<Counts> {
    let builder = Pipeline::builder().active_timeout(std::time::Duration::from_secs(60)).encapsulation(true);
    let mut pipeline = builder.restore(&mut reader, sink).ok()?;
    pipeline.check_invariants();
    let flow_count = pipeline.flow_count() as u64;
    // What was restored can be saved again.
    let mut writer = Writer::new(Vec::new()).expect("a vector");
    pipeline.checkpoint(&mut writer).expect("a vector");
    let again = writer.finish().expect("a vector");
    let mut read_count = 0;
    let info = read_checkpoint(&mut Reader::new(&again[..]).expect("a checkpoint"), |view| {
        std::hint::black_box(view.record(flowgauge::EndReason::ForcedEnd));
        read_count += 1;
    });
    assert_eq!(info.expect("a checkpoint").tracker.flow_count, flow_count);
    assert_eq!(read_count, flow_count);
    for frame in frames.iter() {
        pipeline.frame(&frame);
    }
    pipeline.check_invariants();
    pipeline.finish();
    pipeline.check_invariants();
    let stats = pipeline.stats().tracker;
    assert_eq!(stats.restored_count, flow_count);
    assert_eq!(pipeline.flow_count(), 0);
    let flow_count = stats.started_count + flow_count;
    Some(Counts { flow_count, active_timeout_count: stats.active_timeout_count })
}

pub fn run(data: &[u8]) {
    let mut file = data.to_vec();
    mend(&mut file);
    let (mut frames, mut batch) = (FrameBatch::new(), FrameBatch::new());
    let mut source = FileSource::from_reader(std::io::Cursor::new(CAPTURE)).expect("a capture");
    while matches!(source.next_batch(&mut batch), Ok(Next::Frames)) && frames.len() < FRAME_COUNT {
        batch.iter().take(FRAME_COUNT - frames.len()).for_each(|frame| frames.push(&frame));
    }
    restore::<Flows>(&file, &frames);
    restore::<Streams>(&file, &frames);
    restore::<Sessions<Standard>>(&file, &frames);
    restore_transactions(&file, &frames);
}
