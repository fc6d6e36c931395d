//! The features of a flow as a row.

use super::cic::Cic;
use super::flow::{Counted, FlowFeatures};
use super::nfstream::Nfstream;
use super::sequence::{Entropy, FirstOctets, Histograms, Splt};
use super::set::FeatureSet;
use super::tcp::TcpRow;
use crate::record::FlowRecord;
use crate::row::{Column, Row, RowType, TableInfo, Visitor};

/// The features of a flow record as a row, which has the columns of all features. With the record, it is one row:
/// `(&FlowRecord, Features)`. [`FeatureSet::columns`] returns the columns of those that were counted; the others have no
/// meaning.
#[derive(Clone, Copy, Debug)]
pub struct Features<'a> {
    record: &'a FlowRecord,
    flow: &'a FlowFeatures,
    number: Option<u64>,
    label: Option<&'a str>,
}

impl<'a> Features<'a> {
    /// Creates the row of features of a record, and of its number in the output.
    #[must_use]
    pub const fn new(record: &'a FlowRecord, flow: &'a FlowFeatures, number: Option<u64>) -> Self {
        Self { record, flow, number, label: None }
    }

    /// Returns the row with a label of the flow, which is a column of CICFlowMeter.
    #[must_use]
    pub const fn labeled(mut self, label: Option<&'a str>) -> Self {
        self.label = label;
        self
    }

    /// Returns the tables of all features.
    #[must_use]
    pub const fn tables() -> [TableInfo; 7] {
        [
            TableInfo::of::<Cic<'static>>(),
            TableInfo::of::<Nfstream<'static>>(),
            TableInfo::of::<Splt<'static>>(),
            TableInfo::of::<Histograms<'static>>(),
            TableInfo::of::<Entropy<'static>>(),
            TableInfo::of::<FirstOctets<'static>>(),
            TableInfo::of::<TcpRow<'static>>(),
        ]
    }
}

impl FeatureSet {
    /// Returns the columns of the features in the set, in the order of the row.
    #[must_use]
    pub fn columns(&self) -> Vec<&'static Column> {
        let is_chosen = [
            self.cic,
            self.nfstream.is_some(),
            self.splt.is_some(),
            self.histogram,
            self.entropy.is_some(),
            self.payload.is_some(),
            self.tcp,
        ];
        let tables = Features::tables().into_iter().zip(is_chosen).filter(|(_, is_chosen)| *is_chosen);
        tables.flat_map(|(table, _)| table.columns).collect()
    }
}

impl RowType for Features<'_> {
    fn columns() -> Vec<&'static Column> {
        Self::tables().iter().flat_map(|table| table.columns).collect()
    }
}

impl Row for Features<'_> {
    fn own_columns(&self) -> Vec<&'static Column> {
        Self::columns()
    }

    fn visit(&self, visitor: &mut (impl Visitor + ?Sized)) {
        let none;
        let counted = match self.flow.counted() {
            Some(counted) => counted,
            None => {
                none = Counted::none();
                &none
            }
        };
        let initiator = self.record.initiator;
        Cic::new(self.record, counted, self.label).visit(visitor);
        Nfstream::new(self.record, counted, self.number).visit(visitor);
        Splt { steps: &counted.steps, initiator }.visit(visitor);
        Histograms::new(counted, initiator).visit(visitor);
        Entropy(FirstOctets::new(counted, initiator)).visit(visitor);
        FirstOctets::new(counted, initiator).visit(visitor);
        TcpRow::new(self.record, counted.tcp.as_deref(), counted.last_ns).visit(visitor);
    }
}
