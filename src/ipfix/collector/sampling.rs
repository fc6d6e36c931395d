//! Sampling of packets by exporters: intervals in records, and in the options records that describe samplers.

use super::field::unsigned;

/// Maximum number of samplers that are remembered for a domain.
const SAMPLER_COUNT_MAX: usize = 64;

/// Maximum number of selection sequences that are remembered for a domain.
const SEQUENCE_COUNT_MAX: usize = 64;

/// Maximum number of selectors of a selection sequence that is remembered.
pub(super) const SELECTOR_COUNT_MAX: usize = 4;

/// An information element about sampling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SamplingElement {
    /// Number of packets of which one is sampled (IPFIX 34 and 50).
    Interval,
    /// Identifier of the sampler or selector (IPFIX 48 and 302).
    Sampler,
    /// Identifier of a sequence of selectors (IPFIX 301).
    Sequence,
    /// Method of selection (IPFIX 304).
    Algorithm,
    /// Number or time of consecutive packets that are sampled (IPFIX 305 and 307).
    Sampled,
    /// Number or time of consecutive packets that are not sampled (IPFIX 306 and 308).
    Space,
    /// Number of packets that are sampled of a population (IPFIX 309).
    Size,
    /// Number of packets of a population (IPFIX 310).
    Population,
    /// Probability with which a packet is sampled, as a float of 64 bits (IPFIX 311).
    Probability,
}

impl SamplingElement {
    pub(super) const fn of_id(id: u16) -> Option<Self> {
        Some(match id {
            34 | 50 => Self::Interval,
            48 | 302 => Self::Sampler,
            301 => Self::Sequence,
            304 => Self::Algorithm,
            305 | 307 => Self::Sampled,
            306 | 308 => Self::Space,
            309 => Self::Size,
            310 => Self::Population,
            311 => Self::Probability,
            _ => return None,
        })
    }
}

/// Values of the elements about sampling in one record.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sampling {
    interval: Option<u64>,
    pub(super) sampler: Option<u64>,
    pub(super) sequence: Option<u64>,
    algorithm: Option<u64>,
    sampled: Option<u64>,
    space: Option<u64>,
    size: Option<u64>,
    population: Option<u64>,
    probability: Option<f64>,
}

impl Sampling {
    /// Sets the value of an element; returns `None` for a length that it cannot have.
    pub(super) fn set(&mut self, element: SamplingElement, octets: &[u8]) -> Option<()> {
        if element == SamplingElement::Probability {
            self.probability = Some(f64::from_be_bytes(octets.try_into().ok()?));
            return Some(());
        }
        let value = Some(unsigned(octets)?);
        match element {
            SamplingElement::Interval => self.interval = value,
            SamplingElement::Sampler => self.sampler = value,
            SamplingElement::Sequence => self.sequence = value,
            SamplingElement::Algorithm => self.algorithm = value,
            SamplingElement::Sampled => self.sampled = value,
            SamplingElement::Space => self.space = value,
            SamplingElement::Size => self.size = value,
            SamplingElement::Population => self.population = value,
            SamplingElement::Probability => {}
        }
        Some(())
    }

    /// Returns the sampler to which the record refers, or which it describes.
    pub(super) fn sampler(&self, interface: Option<u64>) -> Sampler {
        match (self.sampler, interface) {
            (Some(id), _) => Sampler::Id(id),
            (None, Some(interface)) => Sampler::Interface(interface),
            (None, None) => Sampler::Any,
        }
    }

    /// Returns the number of packets of which one is sampled, rounded; `None` if the record does not state it.
    pub(super) fn interval(&self) -> Option<u32> {
        /// The largest method of the IANA registry "PSAMP Parameters" that samples; the others are filters.
        const SAMPLING_ALGORITHM_MAX: u64 = 4;
        if self.algorithm.is_some_and(|algorithm| algorithm > SAMPLING_ALGORITHM_MAX) {
            return None;
        }
        let ratio = |of: Option<u64>, part: Option<u64>| {
            let (of, part) = (of?, part.filter(|part| *part > 0)?);
            Some(of as f64 / part as f64)
        };
        let with_space =
            || self.sampled.zip(self.space).map(|(sampled, space)| sampled.saturating_add(space));
        let interval = self
            .interval
            .map(|interval| interval as f64)
            .or_else(|| self.probability.map(|probability| 1.0 / probability))
            .or_else(|| ratio(self.population, self.size))
            .or_else(|| ratio(with_space(), self.sampled))?;
        (1.0..=f64::from(u32::MAX)).contains(&interval.round()).then(|| interval.round() as u32)
    }
}

/// Identity of a sampler in a domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sampler {
    /// The only sampler of the domain.
    Any,
    Interface(u64),
    Id(u64),
}

/// The selectors of a packet's path through an exporter (RFC 5476 section 6.5.1).
#[derive(Clone, Copy, Debug)]
pub(super) struct Sequence {
    pub(super) id: u64,
    /// Identifiers of the selectors, of which the first `selector_count` are valid.
    pub(super) selectors: [u64; SELECTOR_COUNT_MAX],
    pub(super) selector_count: usize,
}

impl Sequence {
    fn selectors(&self) -> &[u64] {
        self.selectors.get(..self.selector_count).unwrap_or_default()
    }
}

/// Intervals of the samplers of a domain, from options records.
#[derive(Debug, Default)]
pub(super) struct Samplers {
    intervals: Vec<(Sampler, u32)>,
    sequences: Vec<Sequence>,
}

impl Samplers {
    /// Returns the memory of the intervals in bytes.
    pub(super) const fn bytes(&self) -> usize {
        self.intervals.capacity() * size_of::<(Sampler, u32)>()
            + self.sequences.capacity() * size_of::<Sequence>()
    }

    /// Sets the interval of a sampler. Forgets the oldest one if there are too many.
    pub(super) fn define(&mut self, sampler: Sampler, interval: u32) {
        if let Some((_, known)) = self.intervals.iter_mut().find(|(known, _)| *known == sampler) {
            *known = interval;
            return;
        }
        if self.intervals.len() >= SAMPLER_COUNT_MAX {
            self.intervals.remove(0);
        }
        self.intervals.push((sampler, interval));
    }

    /// Sets the selectors of a sequence. Forgets the oldest one if there are too many.
    pub(super) fn define_sequence(&mut self, sequence: Sequence) {
        if let Some(known) = self.sequences.iter_mut().find(|known| known.id == sequence.id) {
            *known = sequence;
            return;
        }
        if self.sequences.len() >= SEQUENCE_COUNT_MAX {
            self.sequences.remove(0);
        }
        self.sequences.push(sequence);
    }

    fn find(&self, sampler: Sampler) -> Option<u32> {
        self.intervals.iter().find(|(known, _)| *known == sampler).map(|(_, interval)| *interval)
    }

    /// Returns the interval of a sequence: its selectors work one after another, and those that filter do not sample.
    #[cold]
    fn interval_of_sequence(&self, id: u64) -> Option<u32> {
        let sequence = self.sequences.iter().find(|sequence| sequence.id == id)?;
        let intervals = sequence.selectors().iter().filter_map(|id| self.find(Sampler::Id(*id)));
        intervals.reduce(u32::saturating_mul)
    }

    /// Returns the interval that applies to a record with these values, seen at an interface: its own one, or that of
    /// its sampler.
    #[inline]
    pub(super) fn interval(&self, sampling: &Sampling, interface: u32) -> Option<u32> {
        if let own @ Some(_) = sampling.interval() {
            return own;
        }
        if self.intervals.is_empty() {
            return None;
        }
        let own = sampling.sampler.and_then(|id| self.find(Sampler::Id(id)));
        let of_sequence = || sampling.sequence.and_then(|id| self.interval_of_sequence(id));
        // A record that names no sampler can only be of the single one.
        let single = || match *self.intervals {
            [(Sampler::Id(_), interval)] if sampling.sampler.is_none() => Some(interval),
            _ => None,
        };
        own.or_else(of_sequence)
            .or_else(|| self.find(Sampler::Interface(interface.into())))
            .or_else(|| self.find(Sampler::Any))
            .or_else(single)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sampling(values: &[(u16, &[u8])]) -> Sampling {
        let mut sampling = Sampling::default();
        for (id, octets) in values {
            let element = SamplingElement::of_id(*id).expect("an element about sampling");
            sampling.set(element, octets).expect("a valid length");
        }
        sampling
    }

    #[test]
    fn each_method_has_an_interval() {
        for (values, expected) in [
            (&[(34, &[0, 0, 3, 0xe8][..])][..], Some(1000)),
            (&[(305, &[1]), (306, &[99])], Some(100)),
            (&[(305, &[4]), (306, &[6])], Some(3)),
            (&[(309, &[2]), (310, &[0, 200])], Some(100)),
            (&[(311, &0.01_f64.to_be_bytes())], Some(100)),
            (&[(311, &0_f64.to_be_bytes())], None),
            (&[(311, &f64::NAN.to_be_bytes())], None),
            (&[(309, &[0]), (310, &[9])], None),
            (&[(34, &[0])], None),
            (&[(34, &[1])], Some(1)),
            // Property match filtering selects packets, but does not sample.
            (&[(304, &[5]), (34, &[9])], None),
            (&[(304, &[3]), (309, &[1]), (310, &[10])], Some(10)),
            (&[(48, &[7])], None),
        ] {
            assert_eq!(sampling(values).interval(), expected, "{values:?}");
        }
    }

    #[test]
    fn records_refer_to_samplers_of_their_domain() {
        let mut samplers = Samplers::default();
        assert_eq!(samplers.interval(&Sampling::default(), 1), None);
        samplers.define(Sampler::Id(3), 30);
        assert_eq!(samplers.interval(&Sampling::default(), 1), Some(30), "the only sampler");
        assert_eq!(samplers.interval(&sampling(&[(302, &[4])]), 1), None, "another sampler");
        samplers.define(Sampler::Any, 10);
        samplers.define(Sampler::Interface(2), 20);
        samplers.define(Sampler::Id(3), 30);
        assert_eq!(samplers.interval(&Sampling::default(), 1), Some(10));
        assert_eq!(samplers.interval(&Sampling::default(), 2), Some(20));
        assert_eq!(samplers.interval(&sampling(&[(302, &[3])]), 2), Some(30));
        assert_eq!(samplers.interval(&sampling(&[(302, &[4])]), 1), Some(10));
        assert_eq!(samplers.interval(&sampling(&[(34, &[5])]), 2), Some(5), "its own interval");
        samplers.define(Sampler::Id(3), 33);
        for id in 100..200 {
            samplers.define(Sampler::Id(id), 1);
        }
        assert!(samplers.intervals.len() == SAMPLER_COUNT_MAX && samplers.bytes() < 4096);
        for id in 0..200 {
            samplers.define_sequence(Sequence { id, selectors: [id; 4], selector_count: 4 });
        }
        assert!(samplers.sequences.len() == SEQUENCE_COUNT_MAX && samplers.bytes() < 12 << 10);
    }
}
