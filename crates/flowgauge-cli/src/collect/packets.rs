//! Flows of the packets that exporters sampled.

use std::cell::RefCell;
use std::num::NonZeroUsize;
use std::rc::Rc;
use std::time::Duration;

use flowgauge::base::VlanIds;
use flowgauge::decode::extractor::Scope;
use flowgauge::ipfix::collector::{ObservationPoint, SampledPacket};
use flowgauge::pipeline::{BoxedSink, boxed};
use flowgauge::record::ExportedRecord;
use flowgauge::{
    Builder, ConfigError, EndReason, Flow, FlowRecord, Flows, FragmentHandling, Frame, Interest, KeyPolicy,
    Packet, Pipeline, Resources, Side, Sink, Timestamp,
};
use lru::LruCache;

/// Deviation of an exporter's clock beyond which the time of arrival is used instead.
const CLOCK_DEVIATION_MAX: Duration = Duration::from_secs(60);

/// Number of observation points that are remembered, for packets that a pipeline delays.
const POINT_COUNT_MAX: NonZeroUsize = NonZeroUsize::new(4096).unwrap();

/// A pipeline of sampled packets, in which the flows of each observation point are separate.
pub(super) struct SampledFlows {
    pipeline: Pipeline<BoxedSink<'static, Flows>>,
    collected: Rc<RefCell<Collect>>,
}

impl SampledFlows {
    pub(super) fn new(resources: &Resources, active_timeout: Option<Duration>) -> Result<Self, ConfigError> {
        let mut key_policy = KeyPolicy::DEFAULT;
        key_policy.scope = Scope::Interface;
        let builder: Builder = Pipeline::builder()
            .resources(resources.clone())
            .key_policy(key_policy)
            // The other fragments of a datagram were probably not sampled.
            .fragments(FragmentHandling::AsTheyCome);
        let builder = match active_timeout {
            Some(timeout) => builder.active_timeout(timeout),
            None => builder,
        };
        let collected = Collect { points: LruCache::new(POINT_COUNT_MAX), records: Vec::new() };
        let collected = Rc::new(RefCell::new(collected));
        Ok(Self { pipeline: builder.build(boxed(Rc::clone(&collected)))?, collected })
    }

    /// Tracks a packet whose message arrived at the time `now`, which is zero if it is not known.
    pub(super) fn packet(&mut self, packet: &SampledPacket<'_>, now: Timestamp) {
        let SampledPacket { frame, point, egress_interface, source_as, destination_as } = *packet;
        let is_near = now == Timestamp::ZERO
            || now.saturating_since(frame.timestamp) <= CLOCK_DEVIATION_MAX
                && frame.timestamp.saturating_since(now) <= CLOCK_DEVIATION_MAX;
        let timestamp = if is_near { frame.timestamp } else { now };
        let systems = [source_as, destination_as];
        let place = Place { point, egress_interface, timestamp, systems };
        self.collected.borrow_mut().points.put(frame.interface, place);
        self.pipeline.frame(&Frame { timestamp, ..frame });
    }

    /// Ends the flows that are due at the time `now`.
    pub(super) fn advance(&mut self, now: Timestamp) {
        self.pipeline.advance(now);
    }

    /// Ends all flows.
    pub(super) fn finish(&mut self) {
        self.pipeline.finish();
    }

    /// Removes the records made so far, and iterates over them.
    pub(super) fn records(&mut self) -> impl Iterator<Item = FlowRecord> {
        std::mem::take(&mut self.collected.borrow_mut().records).into_iter()
    }
}

/// Sink that keeps records until they are written.
struct Collect {
    /// Observation points of the latest packets by their numbers, which are the scopes of the flows.
    points: LruCache<u32, Place>,
    records: Vec<FlowRecord>,
}

/// Observation point of a packet, and the interface by which it left.
#[derive(Clone, Copy, Debug)]
struct Place {
    point: ObservationPoint,
    egress_interface: Option<u32>,
    timestamp: Timestamp,
    /// Autonomous systems of source and destination.
    systems: [Option<u32>; 2],
}

/// What the first packet of a flow states about it.
#[derive(Clone, Copy, Debug)]
struct Origin {
    place: Place,
    /// Side that sent the packet.
    side: Side,
}

impl Sink for Collect {
    type State = Option<Origin>;
    type Stage = Flows;

    fn interest(&self) -> Interest {
        Interest::PACKETS | Interest::RECORDS
    }

    fn packet(&mut self, flow: &mut Flow<'_, Self::State>, packet: &Packet<'_>) {
        if flow.state.is_none() {
            let place = self.points.get(&flow.view.key().scope()).copied();
            *flow.state = place.map(|mut place| {
                // The pipeline has delayed the packet, and another one has arrived.
                if place.timestamp != packet.timestamp {
                    place.systems = [None; 2];
                }
                Origin { place, side: packet.side }
            });
        }
    }

    fn record(&mut self, flow: &mut Flow<'_, Self::State>, reason: EndReason) {
        let mut record = flow.view.record(reason);
        // The number of the observation point has served its purpose.
        record.key = record.key.with_scope(0);
        if let Some(Origin { place: Place { point, egress_interface, systems, .. }, side }) = flow.state {
            record.interface = point.interface;
            record.sampling_interval = point.sampling_interval;
            let mut exported = ExportedRecord::default();
            exported.exporter_address = Some(point.exporter).filter(|address| !address.is_unspecified());
            exported.observation_domain = Some(point.domain);
            exported.egress_interface = *egress_interface;
            let [source, destination] = *systems;
            (exported.source_as, exported.destination_as) =
                if flow.view.initiator() == *side { (source, destination) } else { (destination, source) };
            record.exported = Some(Box::new(exported));
            if let Some(id) = point.vlan_id {
                for side in [&mut record.forward, &mut record.reverse] {
                    if side.vlan_ids.is_empty() && !side.counters.is_empty() {
                        side.vlan_ids = VlanIds::NONE.push(id);
                    }
                }
            }
        }
        self.records.push(record);
    }
}
