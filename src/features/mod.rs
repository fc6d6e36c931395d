//! Statistical features of flows, computed only on request.
//!
//! A sink that keeps [`FlowFeatures`] in its state of a flow counts each packet there, and writes `(&record,
//! Features::new(..))` as a row when a record is due. Counting allocates once per flow; the memory of a flow has a constant
//! bound for a [`FeatureSet`]. Sums are exact integers.

mod cic;
mod flow;
mod moments;
mod nfstream;
mod row;
mod sequence;
mod set;
mod tcp;

pub use flow::FlowFeatures;
pub use row::Features;
pub use set::{CicErrors, FeatureSet, Length, Moment, UnknownFeature, UnknownMoment};
