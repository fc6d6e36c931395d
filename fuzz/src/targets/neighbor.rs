//! Operations on a neighbor table, compared with a naive model, and arbitrary octets as a frame, which change nothing
//! while no request is outstanding.
use flowgauge::base::Timestamp;
use flowgauge::tap::{NeighborConfig, NeighborTable};

#[path = "../../../tests/neighbor/frames.rs"]
mod frames;
#[path = "../../../tests/neighbor/naive.rs"]
mod naive;

pub fn run(data: &[u8]) {
    let Some((setup, rest)) = data.split_first() else { return };
    let operations: Vec<[u8; 8]> =
        rest.chunks_exact(8).filter_map(|chunk| chunk.first_chunk().copied()).collect();
    naive::run(*setup, &operations);

    let mut table = NeighborTable::new(NeighborConfig::new(naive::OWN)).expect("a valid station address");
    for own in naive::local() {
        table.add_local(own).expect("a valid host address");
    }
    table.process(rest, Timestamp::ZERO);
    table.check_invariants();
    assert!(table.is_empty());
}
