//! Frames checked by a duplicate window, compared with a naive model: in exact mode, each verdict and each count equals
//! that of the model. In the other mode, a frame that differs only in fields that a mirror port changes is a duplicate.
#[path = "../../../tests/dedup/naive.rs"]
mod naive;

use std::time::Duration;

use arbitrary::{Arbitrary, Result, Unstructured};
use flowgauge::base::{Budget, Frame, Limits, LinkType, Resources, Timestamp};
use flowgauge::dedup::{DedupConfig, Mode, Window};
use naive::Model;

use super::input::{Octets, items, structured};

#[derive(Arbitrary, Debug)]
struct Step<'a> {
    /// Distance to an earlier frame that is repeated instead of the octets.
    again: Option<u8>,
    octets: Octets<'a>,
    link: u8,
    interface: bool,
    wire_len: u8,
    time: i8,
}

const LINKS: [LinkType; 8] = [
    LinkType::ETHERNET,
    LinkType::ETHERNET,
    LinkType::LINUX_SLL,
    LinkType::LINUX_SLL2,
    LinkType::NULL,
    LinkType::RAW,
    LinkType::PPP,
    LinkType::IEEE802_11,
];

#[derive(Arbitrary, Debug)]
struct Input<'a> {
    ignores: bool,
    between: bool,
    verifies: bool,
    frame_count_max: u16,
    bytes_max: Option<u8>,
    budget: Option<u16>,
    #[arbitrary(with = steps)]
    steps: Vec<Step<'a>>,
}

fn steps<'a>(u: &mut Unstructured<'a>) -> Result<Vec<Step<'a>>> {
    items(u, 300)
}

pub fn run(data: &[u8]) {
    let Some(input) = structured::<Input<'_>>(data) else { return };
    let mut config = DedupConfig::default();
    config.window = Duration::from_nanos(100);
    let mut limits = Limits::DEFAULT;
    (config.verifies, config.only_between_interfaces) = (input.verifies, input.between);
    limits.dedup_frame_count_max = 1 + u32::from(input.frame_count_max % 1024);
    if let Some(bytes) = input.bytes_max {
        limits.dedup_bytes_max = bytes.into();
    }
    let mut resources = Resources::new(limits).with_seeds([1, 2, 3, 4]);
    if let Some(bytes) = input.budget {
        resources.budget = Budget::new(26_000 + u64::from(bytes));
    }
    if input.ignores {
        config.mode = Mode::IgnoreMirrorChanges;
    }
    let has_model =
        !input.ignores && input.budget.is_none() && (!input.verifies || input.bytes_max.is_none());
    let mut model = Model::new(limits.dedup_frame_count_max as usize, 100, input.between);
    let budget = resources.budget.clone();
    let mut window = Window::new(config, &resources).expect("a budget that is sufficient for a window");
    let mut now = 1000_i64;
    let mut seen: Vec<(&[u8], u8)> = Vec::new();
    for step in &input.steps {
        now = (now + i64::from(step.time)).max(0);
        let earlier = step.again.and_then(|back| seen.iter().rev().nth(back.into())).copied();
        let (data, link) = earlier.unwrap_or((step.octets.0, step.link));
        seen.push((data, link));
        let frame = Frame {
            timestamp: Timestamp::from_nanos(now as u64),
            link_type: LINKS[usize::from(link) % LINKS.len()],
            data,
            wire_len: data.len() as u32 + u32::from(step.wire_len / 128),
            interface: step.interface.into(),
        };
        let verdict = window.check(&frame);
        if has_model {
            assert_eq!(verdict, model.check(&frame, naive::exact(&frame)));
            assert_eq!(window.stats(), &model.stats);
        }
        if input.ignores && !input.verifies && !input.between && frame.link_type == LinkType::ETHERNET {
            mirrored(&mut window, &frame);
        }
        window.check_invariants();
        assert_eq!(window.stats().mismatch_count, 0);
    }
    assert_eq!(budget.held(), window.held_bytes());
}

/// Checks the same frame with other MAC addresses and a VLAN tag, if it has an EtherType and not a length.
fn mirrored(window: &mut Window, frame: &Frame<'_>) {
    if frame.data.len() < 14 {
        return;
    }
    let data = [&[0xa5; 12][..], &[0x81, 0, 0, 7], &frame.data[12..]].concat();
    let copy = Frame { data: &data, wire_len: data.len() as u32, ..*frame };
    // A truncated tag is not a tag, so that all octets are compared.
    let is_truncated = {
        let mut at = 12;
        loop {
            match data.get(at..at + 2) {
                Some([0x81 | 0x91, 0] | [0x88, 0xa8]) => at += 4,
                other => break other.is_none(),
            }
        }
    };
    if !is_truncated {
        assert!(window.check(&copy).is_duplicate(), "{frame:?}");
    }
}
