//! Checkpoints that are damaged, incomplete, newer, or of another pipeline are refused with what is wrong.

use flowgauge::checkpoint::{Error, Reader, Writer};
use flowgauge::{Flows, KeyPolicy, Pipeline, Records, Sessions, Standard};

use super::{captures, feed, frames};

/// Returns a checkpoint of open flows, with an attachment.
fn checkpoint() -> Vec<u8> {
    let sink = Records::new(drop).with_stage::<Sessions<Standard>>();
    let mut pipeline = Pipeline::builder().build(sink).unwrap();
    feed(&mut pipeline, frames(&captures::root().join("examples/data/web.pcap")).iter());
    let mut writer = Writer::new(Vec::new()).unwrap();
    writer.attach("position", b"1286").unwrap();
    pipeline.checkpoint(&mut writer).unwrap();
    writer.finish().unwrap()
}

/// Restores a pipeline, and returns the number of its flows.
fn restore(file: &[u8]) -> Result<usize, Error> {
    let sink = Records::new(drop).with_stage::<Sessions<Standard>>();
    let mut reader = Reader::new(file)?;
    let pipeline = Pipeline::builder().restore(&mut reader, sink)?;
    pipeline.check_invariants();
    assert_eq!(reader.offset(), file.len() as u64);
    Ok(pipeline.flow_count())
}

#[test]
fn every_changed_octet_and_every_length_is_refused() {
    let file = checkpoint();
    assert!(restore(&file).unwrap() > 5);
    for place in 0..file.len() {
        let mut changed = file.clone();
        changed[place] ^= 0x10;
        let error = restore(&changed).unwrap_err();
        assert!(!matches!(error, Error::TooManyFlows { .. } | Error::Invalid { .. }), "{place}: {error}");
        let error = restore(&file[..place]).unwrap_err();
        assert!(matches!(error, Error::Truncated { .. } | Error::NoCheckpoint), "{place}: {error}");
    }
    let error = restore(&[&file[..], b"x"].concat()).unwrap_err();
    assert!(matches!(error, Error::Invalid { .. }), "{error}");
}

/// Returns the offsets of the blocks of a checkpoint.
fn blocks(file: &[u8]) -> Vec<usize> {
    let (mut blocks, mut offset) = (Vec::new(), 12);
    while offset < file.len() {
        blocks.push(offset);
        let len = file[offset + 1..offset + 5].try_into().unwrap();
        offset += 9 + u32::from_be_bytes(len) as usize;
    }
    blocks.push(offset);
    blocks
}

#[test]
fn missing_and_swapped_blocks_are_refused() {
    let file = checkpoint();
    let blocks = blocks(&file);
    assert!(blocks.len() >= 6, "{blocks:?}");
    for pair in blocks.windows(2) {
        let without = [&file[..pair[0]], &file[pair[1]..]].concat();
        assert!(restore(&without).is_err());
    }
    for three in blocks.windows(3) {
        let [first, second, end] = three.try_into().unwrap();
        let swapped = [&file[..first], &file[second..end], &file[first..second], &file[end..]].concat();
        assert!(restore(&swapped).is_err());
    }
}

#[test]
fn another_version_is_refused_by_its_number_and_the_known_one() {
    let file = checkpoint();
    let own = u16::from_be_bytes([file[8], file[9]]);
    // Each value of both octets, which changes no other field of the header.
    for (place, value) in [8, 9].into_iter().flat_map(|place| (0..=255).map(move |value| (place, value))) {
        let mut changed = file.clone();
        changed[place] = value;
        let version = u16::from_be_bytes([changed[8], changed[9]]);
        let outcome = restore(&changed).map(drop);
        match version.cmp(&own) {
            std::cmp::Ordering::Equal => outcome.unwrap(),
            // Version 0 was never written.
            std::cmp::Ordering::Less => assert!(version > 0 || outcome.is_err()),
            std::cmp::Ordering::Greater => {
                let error = outcome.unwrap_err();
                assert!(matches!(error, Error::NewerVersion(found) if found == version), "{error}");
                let text = error.to_string();
                assert!(text.contains(&format!("of format version {version}, ")), "{text}");
                assert!(text.contains(&format!("reads versions up to {own}; ")), "{text}");
            }
        }
    }
}

#[test]
fn another_pipeline_is_refused_with_the_setting() {
    let file = checkpoint();
    let mut reader = Reader::new(&file[..]).unwrap();
    assert_eq!(reader.attachment("position"), Some(&b"1286"[..]));
    assert_eq!(reader.attachment("other"), None);
    let flows = Records::new(drop).with_stage::<Flows>();
    let error = Pipeline::builder().restore(&mut reader, flows).map(drop).unwrap_err();
    assert!(matches!(error, Error::OtherPipeline { setting: "stage", .. }), "{error}");
    let sessions = || Records::new(drop).with_stage::<Sessions<Standard>>();
    let builder = Pipeline::builder().key_policy(KeyPolicy::default().vlan_ids(true));
    let error = builder.restore(&mut Reader::new(&file[..]).unwrap(), sessions()).map(drop).unwrap_err();
    assert!(matches!(error, Error::OtherPipeline { setting: "key policy", .. }), "{error}");
    let builder = Pipeline::builder().limit(|limits| limits.flow_count_max = 3);
    let error = builder.restore(&mut Reader::new(&file[..]).unwrap(), sessions()).map(drop).unwrap_err();
    assert!(matches!(error, Error::TooManyFlows { .. }), "{error}");
}

#[test]
fn text_is_no_checkpoint() {
    for text in [&b""[..], b"flow", b"source_address,destination_address\n"] {
        assert!(matches!(restore(text), Err(Error::NoCheckpoint)));
    }
}
