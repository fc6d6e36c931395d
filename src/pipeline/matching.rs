//! Filters of flows and records.

use crate::base::VlanIds;
use crate::filter::{Filter, Subject};
use crate::record::FlowRecord;
use crate::tracker::FlowView;

impl Filter {
    /// Returns whether a flow matches the filter. The source in the filter is the initiator of the flow, and `vlan` matches
    /// the ids of both directions.
    #[must_use]
    pub fn matches_flow(&self, flow: &FlowView<'_>) -> bool {
        let source = flow.initiator();
        self.matches_sides(
            Subject::new(flow.key(), source),
            [source, source.other()].map(|side| flow.vlan_ids(side)),
        )
    }

    /// Returns whether a record matches the filter, as its flow [does](Self::matches_flow). Fields that are not
    /// [known](FlowRecord::known) match no value.
    ///
    /// ```
    /// use flowgauge::{FileSource, Filter, records};
    ///
    /// let filter: Filter = "dst port 443".parse()?;
    /// let mut count = 0;
    /// for record in records(FileSource::open("examples/data/web.pcap")?) {
    ///     count += u32::from(filter.matches_record(&record?));
    /// }
    /// assert_eq!(count, 7);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn matches_record(&self, record: &FlowRecord) -> bool {
        let vlan_ids = [record.forward.vlan_ids, record.reverse.vlan_ids];
        self.matches_sides(Subject::new(&record.key, record.initiator), vlan_ids)
    }

    fn matches_sides(&self, subject: Subject<'_>, [vlan_ids, reverse_vlan_ids]: [VlanIds; 2]) -> bool {
        self.matches(&subject.with_vlan_ids(vlan_ids).with_reverse_vlan_ids(reverse_vlan_ids))
    }
}
