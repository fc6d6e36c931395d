//! Processes frames that asynchronous tasks send, on a tokio runtime; docs/async.md explains the parts.
//!
//! cargo run --example async_frames -- examples/data/web.pcap

use flowgauge::{FileSource, FlowRecord, FrameBatch, Pipeline, Records, Source};
use std::time::Duration;
use tokio::sync::mpsc;

/// Time after which timeouts are processed although no frame has arrived.
const IDLE: Duration = Duration::from_millis(100);

/// Tracks the flows of the batches until all senders are gone.
async fn track(mut batches: mpsc::Receiver<FrameBatch>) -> Result<(), flowgauge::Error> {
    let print = |record: FlowRecord| println!("{} {} packets", record.key, record.packet_count());
    let mut pipeline = Pipeline::builder().build(Records::new(print))?;
    loop {
        match tokio::time::timeout(IDLE, batches.recv()).await {
            Ok(Some(batch)) => {
                let _ = pipeline.batch(&batch);
            }
            Ok(None) => break,
            Err(_) => pipeline.advance(pipeline.now().saturating_add(IDLE)),
        }
    }
    pipeline.finish();
    Ok(())
}

/// Reads a capture, and waits while the queue is full.
fn read(path: &str, queue: &mpsc::Sender<FrameBatch>) -> Result<(), flowgauge::Error> {
    let mut source = FileSource::open(path)?;
    loop {
        let mut batch = FrameBatch::new();
        if source.next_batch(&mut batch)?.is_end() || queue.blocking_send(batch).is_err() {
            return Ok(());
        }
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("usage: async_frames FILE")?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_time().build()?;
    runtime.block_on(async {
        let (queue, batches) = mpsc::channel(16);
        let reader = tokio::task::spawn_blocking(move || read(&path, &queue));
        track(batches).await?;
        reader.await??;
        Ok(())
    })
}
