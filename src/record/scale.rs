//! Estimates of the counts of all packets from those of sampled ones.

use super::flow_record::FlowRecord;
use super::schema::field_set;

impl FlowRecord {
    /// Multiplies the counts of packets and octets by the sampling interval, once: they become estimates of those of all
    /// packets, and [`counter_scale`](Self::counter_scale) marks them as such. Saturates at the maximum of a counter.
    pub fn scale(&mut self) {
        let Some(factor) =
            self.sampling_interval.filter(|factor| *factor > 1 && self.counter_scale.is_none())
        else {
            return;
        };
        self.counter_scale = Some(factor);
        self.known = self.known.union(field_set(&["counter_scale"]));
        for side in [&mut self.forward, &mut self.reverse] {
            side.counters.scale(factor.into());
        }
        if let Some(encapsulation) = &mut self.encapsulation {
            for count in [&mut encapsulation.carried_packet_count, &mut encapsulation.carried_octet_count] {
                *count = count.saturating_mul(factor.into());
            }
        }
        if let Some(exported) = &mut self.exported {
            exported.scale(factor.into());
        }
    }
}
