//! Transactions that are open at a checkpoint continue.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use flowgauge::base::FrameBatch;
use flowgauge::checkpoint::{Reader, Writer};
use flowgauge::export::{Style, write_json};
use flowgauge::row::Union;
use flowgauge::tracker::FlowView;
use flowgauge::transaction::{Transaction, TransactionConfig, TransactionHead};
use flowgauge::{Pipeline, Sessions, Sink, Standard, TransactionSink, Transactions};
use serde_json::Value;

use super::{captures, divisions, feed, frames, parallel};

/// Corrects the checksums of all blocks of a checkpoint.
fn mend(file: &mut [u8]) {
    let mut offset = 12;
    while let Some((header, rest)) = file.get_mut(offset..).and_then(|block| block.split_at_mut_checked(9)) {
        let len = u32::from_be_bytes(header[1..5].try_into().unwrap()) as usize;
        let Some(content) = rest.get(..len) else { return };
        let mut crc = crc32fast::Hasher::new();
        crc.update(&(offset as u64).to_be_bytes());
        crc.update(&header[..1]);
        crc.update(&(len as u64).to_be_bytes());
        crc.update(content);
        header[5..].copy_from_slice(&crc.finalize().to_be_bytes());
        offset += 9 + len;
    }
}

/// Collects transactions: their rows, and all that is known of them.
#[derive(Clone, Default)]
struct Collected(Rc<RefCell<Vec<(Value, String)>>>);

impl Sink for Collected {
    type State = ();
    type Stage = Sessions<Standard>;
}

impl TransactionSink for Collected {
    fn transaction(&mut self, flow: &FlowView<'_>, (): &mut (), transaction: &Transaction) {
        let row = transaction.content.row();
        let head = TransactionHead::new(flow, flow.community_id(), transaction, row.table);
        let mut line = Vec::new();
        write_json(&mut line, &(head, row), Style::default());
        let row = serde_json::from_slice(&line).unwrap();
        self.0.borrow_mut().push((row, format!("{transaction:?}")));
    }
}

fn sink(collected: &Collected) -> Transactions<Collected> {
    let mut config = TransactionConfig::default();
    config.has_hashes = true;
    Transactions::new(collected.clone()).config(config)
}

/// Returns the transactions of one pass.
fn whole(frames: &FrameBatch) -> Vec<(Value, String)> {
    let collected = Collected::default();
    let mut pipeline = Pipeline::builder().build(sink(&collected)).unwrap();
    feed(&mut pipeline, frames.iter());
    pipeline.finish();
    drop(pipeline);
    collected.0.take()
}

/// Returns the transactions before a division, and a checkpoint of those that are open.
fn checkpoint(frames: &FrameBatch, division: usize) -> (Collected, Vec<u8>) {
    let collected = Collected::default();
    let mut pipeline = Pipeline::builder().build(sink(&collected)).unwrap();
    feed(&mut pipeline, (0..division).filter_map(|place| frames.get(place)));
    let mut writer = Writer::new(Vec::new()).unwrap();
    pipeline.sink_mut().attach(&mut writer).unwrap();
    pipeline.checkpoint(&mut writer).unwrap();
    (collected, writer.finish().unwrap())
}

/// Returns the transactions of a run that is divided by a checkpoint; `None` if fragments of a datagram waited for others.
fn divided(frames: &FrameBatch, division: usize) -> Option<Vec<(Value, String)>> {
    let (collected, file) = checkpoint(frames, division);
    let mut reader = Reader::new(&file[..]).unwrap();
    let mut sink = sink(&collected);
    sink.restore(&reader).unwrap();
    let mut pipeline = Pipeline::builder().restore(&mut reader, sink).unwrap();
    pipeline.check_invariants();
    feed(&mut pipeline, (division..frames.len()).filter_map(|place| frames.get(place)));
    pipeline.finish();
    let is_comparable = pipeline.stats().unsaved.datagram_count == 0;
    drop(pipeline);
    is_comparable.then(|| collected.0.take())
}

/// Returns the columns in which transactions differ, with the protocol.
fn differences(whole: &[(Value, String)], divided: &[(Value, String)]) -> Vec<String> {
    let protocol = |row: &Value| row.get("protocol").unwrap().as_str().unwrap().to_owned();
    if whole.len() != divided.len() {
        let names = whole.iter().chain(divided).map(|(row, _)| protocol(row));
        let names: std::collections::BTreeSet<_> = names.collect();
        return vec![format!("number of transactions, {} and {} {names:?}", whole.len(), divided.len())];
    }
    let mut columns = Vec::new();
    for ((whole, whole_text), (divided, divided_text)) in whole.iter().zip(divided) {
        let (Value::Object(one), Value::Object(other)) = (whole, divided) else { panic!("objects") };
        let names: std::collections::BTreeSet<_> = one.keys().chain(other.keys()).collect();
        let differing = names.into_iter().filter(|name| one.get(*name) != other.get(*name));
        let before = columns.len();
        columns.extend(differing.map(|name| format!("{}: {name}", protocol(whole))));
        if before == columns.len() && whole_text != divided_text {
            columns.push(format!("{}: other", protocol(whole)));
        }
    }
    columns
}

/// Minimum share of divisions with the transactions of one pass, in percent.
const EQUAL_SHARE_MIN: usize = 96;

#[test]
fn transactions_continue_with_the_columns_of_one_pass() {
    let (mut equal_count, mut unsaved_count, mut different_count) = (0, 0, 0);
    let mut columns: BTreeMap<String, usize> = BTreeMap::new();
    let found = parallel::map(&captures::captures(), |path| {
        let frames = frames(path);
        let whole = whole(&frames);
        let compare = |division| divided(&frames, division).map(|divided| differences(&whole, &divided));
        divisions(frames.len()).into_iter().map(compare).collect::<Vec<_>>()
    });
    for found in found.into_iter().flatten() {
        let Some(found) = found else {
            unsaved_count += 1;
            continue;
        };
        equal_count += usize::from(found.is_empty());
        different_count += usize::from(!found.is_empty());
        found.into_iter().for_each(|column| *columns.entry(column).or_default() += 1);
    }
    println!(
        "{equal_count} equal, {different_count} different, {unsaved_count} within a datagram: {columns:#?}"
    );
    assert!(equal_count > 300);
    assert!(100 * equal_count >= EQUAL_SHARE_MIN * (equal_count + different_count), "{columns:#?}");
}

/// Number of changed octets of each checkpoint.
const CHANGE_COUNT: usize = 300;

#[test]
fn changed_states_of_parsers_and_transactions_are_refused_or_continue() {
    let mut restored_count = 0;
    for path in captures::own_captures() {
        let frames = frames(&path);
        let half = frames.len() / 2;
        let (_, file) = checkpoint(&frames, half);
        let mut random = 0x2545_f491_4f6c_dd1d_u64;
        for _ in 0..CHANGE_COUNT {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            let mut changed = file.clone();
            let place = random as usize % changed.len();
            changed[place] = match random >> 61 {
                0..3 => 0xff,
                3 => 0,
                4 => 1,
                _ => (random >> 32) as u8,
            };
            mend(&mut changed);
            let collected = Collected::default();
            let Ok(mut reader) = Reader::new(&changed[..]) else { continue };
            let mut sink = sink(&collected);
            if sink.restore(&reader).is_err() {
                continue;
            }
            let Ok(mut pipeline) = Pipeline::builder().restore(&mut reader, sink) else { continue };
            restored_count += 1;
            pipeline.check_invariants();
            feed(&mut pipeline, (half..frames.len()).take(300).filter_map(|place| frames.get(place)));
            // What was restored can be saved again.
            pipeline.checkpoint(&mut Writer::new(Vec::new()).unwrap()).unwrap();
            pipeline.finish();
            pipeline.check_invariants();
        }
    }
    println!("{restored_count} restored");
    assert!(restored_count > 100);
}
