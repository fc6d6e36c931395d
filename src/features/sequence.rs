//! The first packets and octets of a flow, and histograms.

use std::time::Duration;

use super::flow::{Counted, Histogram, LENGTH_BIN_COUNT, Octets, Step, TIME_BIN_COUNT};
use crate::base::Side;
use crate::row::{List, ListOf};

/// The first packets of a flow.
pub(super) struct Splt<'a> {
    pub(super) steps: &'a [Step],
    pub(super) initiator: Side,
}

impl Splt<'_> {
    fn directions(&self) -> impl Iterator<Item = u8> + Clone {
        let initiator = self.initiator;
        self.steps.iter().map(move |step| u8::from(step.side != initiator))
    }

    fn lengths(&self) -> impl Iterator<Item = u32> + Clone {
        self.steps.iter().map(|step| step.payload_len)
    }

    fn intervals(&self) -> impl Iterator<Item = Duration> + Clone {
        self.steps.iter().map(|step| Duration::from_nanos(step.interval_ns))
    }
}

crate::table! {
    /// Directions, lengths and times of the first packets of a flow.
    impl['a] "splt" for Splt<'a> as row {
        /// For each of the first packets: 0 from the initiator, 1 from the responder.
        "splt_direction": ListOf<u8> => List(row.directions());
        /// Payload of each of the first packets.
        "splt_length": ListOf<u32> [octets] => List(row.lengths());
        /// Time since the packet before, of each of the first packets; zero for the first one.
        "splt_interval": ListOf<Duration> => List(row.intervals());
    }
}

/// Returns what was counted of the initiator and of the responder.
fn by_direction<T>(sides: Option<&[T; 2]>, initiator: Side) -> (Option<&T>, Option<&T>) {
    let (a, b) = sides.map(|[a, b]| (a, b)).unzip();
    if initiator == Side::A { (a, b) } else { (b, a) }
}

/// Histograms of the packets of each side.
pub(super) struct Histograms<'a> {
    forward: Option<&'a Histogram>,
    backward: Option<&'a Histogram>,
}

impl<'a> Histograms<'a> {
    pub(super) fn new(counted: &'a Counted, initiator: Side) -> Self {
        let (forward, backward) = by_direction(counted.histograms.as_deref(), initiator);
        Self { forward, backward }
    }
}

crate::table! {
    /// Logarithmic histograms of a flow.
    impl['a] "histogram" for Histograms<'a> as row {
        /// Packets of the initiator by payload: none, then 1, 2 to 3, 4 to 7 octets and so on, with twice the width each.
        "histogram_length": Option<List<[u32; LENGTH_BIN_COUNT]>> [packets] = row.forward.map(|bins| List(bins.lengths));
        /// Packets of the initiator by the time since the one before: less than 1 µs, 1 µs, 2 to 3 µs, 4 to 7 µs and so on.
        "histogram_interval": Option<List<[u32; TIME_BIN_COUNT]>> [packets] = row.forward.map(|bins| List(bins.times));
        /// Packets of the responder by payload.
        "reverse_histogram_length": Option<List<[u32; LENGTH_BIN_COUNT]>> [packets] = row.backward.map(|bins| List(bins.lengths));
        /// Packets of the responder by the time since the one before.
        "reverse_histogram_interval": Option<List<[u32; TIME_BIN_COUNT]>> [packets] = row.backward.map(|bins| List(bins.times));
    }
}

/// The first octets of each side.
pub(super) struct FirstOctets<'a> {
    forward: Option<&'a Octets>,
    backward: Option<&'a Octets>,
}

impl<'a> FirstOctets<'a> {
    pub(super) fn new(counted: &'a Counted, initiator: Side) -> Self {
        let (forward, backward) = by_direction(counted.octets.as_deref(), initiator);
        Self { forward, backward }
    }
}

fn distribution(octets: Option<&Octets>) -> Option<List<&[u32]>> {
    octets.map(|octets| octets.distribution.as_slice()).filter(|counts| !counts.is_empty()).map(List)
}

/// Distribution of the first octets of each side.
pub(super) struct Entropy<'a>(pub(super) FirstOctets<'a>);

crate::table! {
    /// Entropy and distribution of the first octets of payload.
    impl['a] "entropy" for Entropy<'a> as row {
        /// Entropy of the first octets of the initiator in bits per octet, 0 to 8.
        "entropy": Option<f64> = row.0.forward.and_then(Octets::entropy);
        /// How often each of the 256 octets occurs in the first octets of the initiator.
        "octet_distribution": Option<List<&'a [u32]>> = distribution(row.0.forward);
        /// Entropy of the first octets of the responder in bits per octet, 0 to 8.
        "reverse_entropy": Option<f64> = row.0.backward.and_then(Octets::entropy);
        /// How often each of the 256 octets occurs in the first octets of the responder.
        "reverse_octet_distribution": Option<List<&'a [u32]>> = distribution(row.0.backward);
    }
}

crate::table! {
    /// The first octets of payload of each side, in the order of packets.
    impl['a] "payload" for FirstOctets<'a> as row {
        /// First octets of payload of the initiator.
        "payload": Option<&'a [u8]> = row.forward.map(|octets| octets.first.as_slice());
        /// First octets of payload of the responder.
        "reverse_payload": Option<&'a [u8]> = row.backward.map(|octets| octets.first.as_slice());
    }
}
