//! Scripts for whole pipelines, and single frames, from the frames of a capture.

use std::collections::{HashMap, HashSet};

use flowgauge::base::{FlowKey, Frame, FrameBatch};
use flowgauge::decode::extractor::Extractor;

use super::store::Seeds;
use crate::targets::frames::LINK_TYPES;
use crate::targets::input::put_octets;
use crate::targets::rig::SETUP_LEN;
use crate::targets::script::RAW;

/// Targets that run scripts.
pub(super) const SCRIPTED: [&str; 4] = ["sessions", "streams", "flows", "shards"];

/// Maximum numbers of octets and of frames of a script.
const SCRIPT_LEN_MAX: usize = 12_000;
const SCRIPT_FRAME_COUNT_MAX: usize = 60;

/// Maximum numbers of flows of a capture that become scripts, and of frames that become separate seeds.
const FLOW_COUNT_MAX: usize = 60;
const FRAME_COUNT_MAX: usize = 150;

fn link(frame: &Frame<'_>) -> Option<u8> {
    LINK_TYPES.iter().position(|link_type| *link_type == frame.link_type).map(|number| number as u8)
}

/// Adds a frame to a script if its link type has a number. `wait` is in tenths of milliseconds.
fn put_frame(script: &mut Vec<u8>, frame: &Frame<'_>, wait: u8) {
    if let Some(link) = link(frame) {
        script.extend([RAW, link, wait]);
        put_octets(script, frame.data);
    }
}

/// Adds scripts of the flows of a capture, a script of the start of the capture, and its distinct frames.
pub(super) fn add(seeds: &mut Seeds, frames: &FrameBatch) {
    let extractor = Extractor::default();
    let mut order = Vec::new();
    let mut flows: HashMap<FlowKey, (Vec<u8>, usize)> = HashMap::new();
    let mut beginning = vec![0; SETUP_LEN];
    let mut shapes = HashSet::new();
    for frame in frames.iter() {
        if beginning.len() + frame.data.len() < SCRIPT_LEN_MAX {
            put_frame(&mut beginning, &frame, 5);
        }
        if let Ok(packet) = extractor.extract(&frame) {
            let (script, frame_count) = flows.entry(packet.key).or_insert_with(|| {
                order.push(packet.key);
                (vec![0; SETUP_LEN], 0)
            });
            if script.len() + frame.data.len() < SCRIPT_LEN_MAX && *frame_count < SCRIPT_FRAME_COUNT_MAX {
                *frame_count += 1;
                put_frame(script, &frame, 5);
            }
        }
        // Frames have different shapes if their first octets other than addresses differ.
        let shape = (frame.data.get(12..24).map(<[u8]>::to_vec), frame.data.len().min(200) / 16);
        if shapes.len() < FRAME_COUNT_MAX && frame.data.len() < 2000 && shapes.insert(shape) {
            add_frame(seeds, &frame);
        }
    }
    seeds.add_all(&SCRIPTED, &beginning);
    for key in order.iter().take(FLOW_COUNT_MAX) {
        seeds.add_all(&SCRIPTED, &flows[key].0);
    }
}

/// Adds a frame as a seed of the targets that read single frames.
pub(super) fn add_frame(seeds: &mut Seeds, frame: &Frame<'_>) {
    let Some(link) = link(frame) else { return };
    // The table of link types of the extractor begins with the same two.
    if link == 0 {
        seeds.add("extractor", [&[link, 0, 0, 0][..], frame.data].concat());
        seeds.add("headers", [&[0][..], frame.data].concat());
        seeds.add("translate", [&[22, 5, 0, 6, 0][..], frame.data].concat());
        seeds.add("neighbor", [&[0][..], frame.data].concat());
    }
}
