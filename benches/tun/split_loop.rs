//! The loops of tun-rs that `run.sh` compares: super-packets split and merged by tun-rs, or packets one by one. One
//! blocking thread per direction, without flow tracking.
//!
//! ```text
//! tun_split_loop LEFT RIGHT [--offload | --whole] [--seconds N]
//! ```

use std::error::Error;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use tun_rs::{DeviceBuilder, GROTable, IDEAL_BATCH_SIZE, SyncDevice, VIRTIO_NET_HDR_LEN};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let has = |name: &str| arguments.iter().any(|argument| argument == name);
    let [left, right, ..] = &*arguments else {
        return Err("usage: tun_split_loop LEFT RIGHT [--offload | --whole] [--seconds N]".into());
    };
    let seconds = arguments.iter().skip_while(|argument| *argument != "--seconds").nth(1);
    let seconds: u64 = seconds.map_or(Ok(10), |text| text.parse())?;
    let (is_split, passes_unchanged) = (has("--offload"), has("--whole"));
    let open = |name: &str| {
        let builder = DeviceBuilder::new().name(name).inherit_enable_state();
        builder
            .with(|settings| {
                settings.offload(is_split || passes_unchanged);
            })
            .build_sync()
            .map(Arc::new)
    };
    let (left, right) = (open(left)?, open(right)?);
    println!("ready");
    for (from, to) in [(&left, &right), (&right, &left)] {
        let (from, to) = (Arc::clone(from), Arc::clone(to));
        thread::spawn(move || {
            let result = match is_split {
                true => split_and_merge(&from, &to),
                false => one_by_one(&from, &to),
            };
            eprintln!("a loop ended: {result:?}");
        });
    }
    thread::sleep(Duration::from_secs(seconds));
    // The threads may wait in a read, which the end of the process interrupts.
    std::process::exit(0);
}

fn split_and_merge(from: &SyncDevice, to: &SyncDevice) -> std::io::Result<()> {
    const BUFFER_LEN: usize = VIRTIO_NET_HDR_LEN + 1500;
    let mut original = vec![0; VIRTIO_NET_HDR_LEN + 65535];
    // Merged packets grow to 64 KiB.
    let buffer = |_| bytes::BytesMut::with_capacity(VIRTIO_NET_HDR_LEN + 65536);
    let mut buffers: Vec<_> = (0..IDEAL_BATCH_SIZE).map(buffer).collect();
    let mut sizes = vec![0; IDEAL_BATCH_SIZE];
    let mut table = GROTable::default();
    loop {
        buffers.iter_mut().filter(|buffer| buffer.len() != BUFFER_LEN).for_each(|buffer| {
            buffer.resize(BUFFER_LEN, 0);
        });
        let count = from.recv_multiple(&mut original, &mut buffers, &mut sizes, VIRTIO_NET_HDR_LEN)?;
        for (buffer, size) in buffers.iter_mut().zip(&sizes).take(count) {
            buffer.truncate(VIRTIO_NET_HDR_LEN + size);
        }
        // Packets that the device does not accept are dropped.
        let _ = to.send_multiple(&mut table, &mut buffers[..count], VIRTIO_NET_HDR_LEN);
    }
}

fn one_by_one(from: &SyncDevice, to: &SyncDevice) -> std::io::Result<()> {
    let mut buffer = vec![0; VIRTIO_NET_HDR_LEN + 65536];
    loop {
        let len = from.recv(&mut buffer)?;
        // A packet that the device does not accept is dropped.
        let _ = to.send(&buffer[..len]);
    }
}
