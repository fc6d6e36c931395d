//! Decoding of information elements to fields of a record.

use std::collections::HashMap;
use std::net::IpAddr;

use super::family::Family;
use super::field::{Specifier, unsigned};
use super::own_elements::OwnElements;
use super::sampling::SamplingElement;
use super::times::{AbsoluteUnit, DataContext, Moment, Related, TimeUnit, set_time};
use crate::base::{ApplicationName, Encapsulation, EndReason, OuterFlow, Timestamp, VlanIds};
use crate::ipfix::{REVERSE_ENTERPRISE_NUMBER, UNKNOWN_APPLICATION, VARIABLE_LEN, iana};
use crate::record::{
    Draft, EXPORTED, FieldSet, FlowDirection, FlowRecord, SETTERS, Setter, SideRecord, field_index, field_set,
};
use crate::row::{InformationElement, Table as _};

/// Direction that an element describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    Forward,
    Reverse,
}

impl Direction {
    const fn side(self, draft: &mut Draft) -> &mut SideRecord {
        match self {
            Self::Forward => &mut draft.record.forward,
            Self::Reverse => &mut draft.record.reverse,
        }
    }

    /// Returns the one of two values that belongs to the direction.
    pub(super) fn select<T>(self, forward: T, reverse: T) -> T {
        match self {
            Self::Forward => forward,
            Self::Reverse => reverse,
        }
    }
}

type Set<T> = fn(&mut Draft, T) -> Option<()>;

/// Effect of an information element on a record.
#[derive(Clone, Copy, Debug)]
pub(super) enum Action {
    /// The element is not known, or another one of the template has the same meaning.
    Skip,
    /// Sets the field with an index in the schema.
    Unsigned(usize, Set<u64>),
    Ipv4(usize, Set<IpAddr>),
    Ipv6(usize, Set<IpAddr>),
    /// Sets an address of either version; zero is no address.
    AddressIfSet(usize, Set<IpAddr>),
    Mac(usize, Set<[u8; 6]>),
    Text(usize, fn(&mut Draft, &str) -> Option<()>),
    Encapsulation(usize, Set<Encapsulation>),
    OuterFlow(usize, Set<OuterFlow>),
    ApplicationName,
    EndReason,
    /// Sets the outer VLAN id.
    VlanId(Direction),
    /// Sets the inner VLAN id.
    CustomerVlanId(Direction),
    /// Sets the DSCP from the octet that contains it.
    TrafficClass(Direction),
    /// Sets the minimum and the maximum TTL.
    Ttl(Direction),
    IcmpTypeCode,
    Time(Moment, TimeUnit),
    /// Time of an event, for records without other times.
    Observed(AbsoluteUnit),
    /// Time at which the exporter was started, in milliseconds since 1970.
    InitTime,
    /// Duration of the flow, in the given number of nanoseconds.
    Duration(u64),
    /// Interval of the sampling, or a value from which it follows.
    Sampling(SamplingElement),
}

impl Action {
    /// Returns the action for an element; [`Action::Skip`] for an unknown element, and for a length that its type cannot
    /// have.
    pub(super) fn new(specifier: Specifier, own_elements: &OwnElements) -> Self {
        let Specifier { enterprise_number, id, len } = specifier;
        let action = match enterprise_number {
            0 => Self::special(id, Direction::Forward)
                .or_else(|| Self::of_element(InformationElement::Iana(id), id)),
            REVERSE_ENTERPRISE_NUMBER => Self::special(id, Direction::Reverse)
                .or_else(|| Self::of_element(InformationElement::Reverse(id), id)),
            _ => own_elements.field(specifier).and_then(|field| Self::of_field(field, false)),
        };
        action.filter(|action| action.permits_len(len)).unwrap_or(Self::Skip)
    }

    /// Returns the action for an element of the schema.
    fn of_element(element: InformationElement, id: u16) -> Option<Self> {
        let (element, is_ipv6) = match (element, id) {
            (InformationElement::Iana(_), iana::SOURCE_IPV6_ADDRESS) => (InformationElement::Iana(8), true),
            (InformationElement::Iana(_), iana::DESTINATION_IPV6_ADDRESS) => {
                (InformationElement::Iana(12), true)
            }
            _ => (element, false),
        };
        let index = FlowRecord::COLUMNS.iter().position(|column| column.ipfix == Some(element))?;
        Self::of_field(index, is_ipv6)
    }

    fn of_field(index: usize, is_ipv6: bool) -> Option<Self> {
        Some(match SETTERS.get(index)? {
            Setter::Unsigned(set) => Self::Unsigned(index, *set),
            Setter::Address(set) if EXPORTED.contains(index) => Self::AddressIfSet(index, *set),
            Setter::Address(set) if is_ipv6 => Self::Ipv6(index, *set),
            Setter::Address(set) => Self::Ipv4(index, *set),
            Setter::Mac(set) => Self::Mac(index, *set),
            Setter::Text(set) => Self::Text(index, *set),
            Setter::Encapsulation(set) => Self::Encapsulation(index, *set),
            Setter::OuterFlow(set) => Self::OuterFlow(index, *set),
            Setter::VlanIds(_) | Setter::Derived => return None,
        })
    }

    /// Returns the action for an element whose encoding differs from its field, or that is not in the schema.
    fn special(id: u16, direction: Direction) -> Option<Self> {
        use Moment::{End, Start};
        let field = |index| Self::of_field(index, false);
        if let Some(action) = match id {
            5 => Some(Self::TrafficClass(direction)),
            58 | 243 => Some(Self::VlanId(direction)),
            iana::DOT1Q_CUSTOMER_VLAN_ID => Some(Self::CustomerVlanId(direction)),
            192 => Some(Self::Ttl(direction)),
            171 => field(direction.select(
                const { field_index("egress_octet_count") },
                const { field_index("reverse_egress_octet_count") },
            )),
            172 => field(direction.select(
                const { field_index("egress_packet_count") },
                const { field_index("reverse_egress_packet_count") },
            )),
            // Totals since the flow began; redundant if the template also has the counts of the record.
            85 => field(direction.select(
                const { field_index("ip_octet_count") },
                const { field_index("reverse_ip_octet_count") },
            )),
            86 => field(direction.select(
                const { field_index("packet_count") },
                const { field_index("reverse_packet_count") },
            )),
            _ => None,
        } {
            return Some(action);
        }
        if direction == Direction::Reverse {
            return None;
        }
        if let Some(element) = SamplingElement::of_id(id) {
            return Some(Self::Sampling(element));
        }
        match id {
            21 => Some(Self::Time(End, TimeUnit::Uptime)),
            22 => Some(Self::Time(Start, TimeUnit::Uptime)),
            32 | 139 => Some(Self::IcmpTypeCode),
            iana::FLOW_DIRECTION => {
                Some(Self::Unsigned(const { field_index("flow_direction") }, |draft, value| {
                    draft.exported().flow_direction = Some(FlowDirection::from_number(value)?);
                    Some(())
                }))
            }
            iana::EXPORTER_IPV6_ADDRESS => field(const { field_index("exporter_address") }),
            // Those above 40,000 are of early versions of Cisco's NSEL, in NetFlow version 9 only.
            iana::POST_NAT_SOURCE_IPV6_ADDRESS | 40_001 => {
                field(const { field_index("post_nat_source_address") })
            }
            iana::POST_NAT_DESTINATION_IPV6_ADDRESS | 40_002 => {
                field(const { field_index("post_nat_destination_address") })
            }
            40_003 => field(const { field_index("post_nat_source_port") }),
            40_004 => field(const { field_index("post_nat_destination_port") }),
            40_005 => field(const { field_index("firewall_event") }),
            322 => Some(Self::Observed(AbsoluteUnit::Seconds)),
            323 => Some(Self::Observed(AbsoluteUnit::Milliseconds)),
            324 => Some(Self::Observed(AbsoluteUnit::NtpMicroseconds)),
            325 => Some(Self::Observed(AbsoluteUnit::NtpNanoseconds)),
            iana::APPLICATION_NAME => Some(Self::ApplicationName),
            iana::FLOW_END_REASON => Some(Self::EndReason),
            150 => Some(Self::Time(Start, TimeUnit::Absolute(AbsoluteUnit::Seconds))),
            151 => Some(Self::Time(End, TimeUnit::Absolute(AbsoluteUnit::Seconds))),
            iana::FLOW_START_MILLISECONDS => {
                Some(Self::Time(Start, TimeUnit::Absolute(AbsoluteUnit::Milliseconds)))
            }
            iana::FLOW_END_MILLISECONDS => {
                Some(Self::Time(End, TimeUnit::Absolute(AbsoluteUnit::Milliseconds)))
            }
            154 => Some(Self::Time(Start, TimeUnit::Absolute(AbsoluteUnit::NtpMicroseconds))),
            155 => Some(Self::Time(End, TimeUnit::Absolute(AbsoluteUnit::NtpMicroseconds))),
            iana::FLOW_START_NANOSECONDS => {
                Some(Self::Time(Start, TimeUnit::Absolute(AbsoluteUnit::NtpNanoseconds)))
            }
            iana::FLOW_END_NANOSECONDS => {
                Some(Self::Time(End, TimeUnit::Absolute(AbsoluteUnit::NtpNanoseconds)))
            }
            158 => Some(Self::Time(Start, TimeUnit::MicrosecondsBeforeExport)),
            159 => Some(Self::Time(End, TimeUnit::MicrosecondsBeforeExport)),
            iana::SYSTEM_INIT_TIME_MILLISECONDS => Some(Self::InitTime),
            161 => Some(Self::Duration(1_000_000)),
            162 => Some(Self::Duration(1_000)),
            178 => field(const { field_index("icmp_type") }),
            179 => field(const { field_index("icmp_code") }),
            // The octets of initiator and responder are those of the transport payload.
            231 => field(const { field_index("payload_octet_count") }),
            232 => field(const { field_index("reverse_payload_octet_count") }),
            298 => field(const { field_index("packet_count") }),
            299 => field(const { field_index("reverse_packet_count") }),
            _ => None,
        }
    }

    const fn permits_len(self, len: u16) -> bool {
        match self {
            Self::Skip
            | Self::Text(..)
            | Self::Encapsulation(..)
            | Self::OuterFlow(..)
            | Self::ApplicationName => true,
            Self::Ipv4(..) => len == 4,
            Self::Ipv6(..) => len == 16,
            Self::AddressIfSet(..) => matches!(len, 4 | 16),
            Self::Mac(..) => len == 6,
            Self::Time(
                _,
                TimeUnit::Absolute(AbsoluteUnit::NtpMicroseconds | AbsoluteUnit::NtpNanoseconds),
            )
            | Self::Observed(AbsoluteUnit::NtpMicroseconds | AbsoluteUnit::NtpNanoseconds) => len == 8,
            Self::IcmpTypeCode => len == 2,
            _ => len != VARIABLE_LEN && matches!(len, 1..=8),
        }
    }

    /// Replaces the actions of elements of the other version of IP by [`Action::Skip`] if the template has elements of
    /// this one for the same fields. Linear in the number of elements.
    pub(super) fn remove_other_family(actions: &mut [Self], specifiers: &[Specifier], family: Family) {
        let of_family = |specifier: &Specifier| Family::of_element(specifier).map(|found| found == family);
        let fields =
            actions.iter().zip(specifiers).filter(|(_, specifier)| of_family(specifier) == Some(true));
        let fields = fields.fold(FieldSet::EMPTY, |set, (action, _)| set.union(action.fields()));
        for (action, specifier) in actions.iter_mut().zip(specifiers) {
            let is_other = of_family(specifier) == Some(false);
            if is_other && action.fields().intersection(fields) != FieldSet::EMPTY {
                *action = Self::Skip;
            }
        }
    }

    /// Replaces actions by [`Action::Skip`] if another element of the template sets the same field more precisely, or
    /// equally precisely and before. Linear in the number of elements.
    pub(super) fn remove_redundant(actions: &mut [Self], specifiers: &[Specifier]) {
        /// A field, and whether the element has the inner VLAN id.
        type Target = (FieldSet, bool);
        let target = |action: &Self| (action.fields(), matches!(action, Self::CustomerVlanId(_)));
        let mut best: HashMap<Target, (u8, usize)> = HashMap::new();
        for (index, (action, specifier)) in actions.iter().zip(specifiers).enumerate() {
            let precision = action.precision(specifier.id);
            let known = best.entry(target(action)).or_insert((precision, index));
            if precision > known.0 {
                *known = (precision, index);
            }
        }
        for (index, action) in actions.iter_mut().enumerate() {
            // Of two addresses of different versions, each record has one.
            let sets_fields = action.fields() != FieldSet::EMPTY && !matches!(action, Self::AddressIfSet(..));
            if sets_fields && best.get(&target(action)).is_some_and(|(_, kept)| *kept != index) {
                *action = Self::Skip;
            }
        }
    }

    /// Replaces the times of events by [`Action::Skip`] if the template has other times for the beginning and the end.
    pub(super) fn remove_observed(actions: &mut [Self]) {
        let is_observed = |action: &Self| matches!(action, Self::Observed(_));
        let has = |is_wanted: fn(&Self) -> bool| actions.iter().any(is_wanted);
        let has_start = has(|action| matches!(action, Self::Time(Moment::Start, _)));
        let has_end = has(|action| matches!(action, Self::Time(Moment::End, _) | Self::Duration(_)));
        if has_start && has_end {
            actions.iter_mut().filter(|action| is_observed(action)).for_each(|action| *action = Self::Skip);
        }
    }

    /// Returns the rank of an element among those that set the same field.
    const fn precision(self, id: u16) -> u8 {
        match self {
            Self::Time(_, TimeUnit::Uptime) => 0,
            Self::Time(_, TimeUnit::Absolute(AbsoluteUnit::Seconds)) => 1,
            Self::Time(_, TimeUnit::Absolute(AbsoluteUnit::Milliseconds)) => 2,
            Self::Time(_, TimeUnit::Absolute(AbsoluteUnit::NtpNanoseconds)) => 4,
            Self::Time(..) => 3,
            _ => match id {
                // Totals, counts without a defined layer, the octet of the DSCP, and the VLAN id of NetFlow.
                85 | 86 | 171 | 172 | 298 | 299 | 5 | 58 => 0,
                _ => 1,
            },
        }
    }

    /// Returns the fields that the action sets.
    pub(super) fn fields(self) -> FieldSet {
        match self {
            Self::Skip | Self::InitTime | Self::Duration(_) | Self::Sampling(_) => FieldSet::EMPTY,
            Self::Observed(_) => const { field_set(&["start", "end"]) },
            Self::Unsigned(index, _)
            | Self::Ipv4(index, _)
            | Self::Ipv6(index, _)
            | Self::AddressIfSet(index, _)
            | Self::Mac(index, _)
            | Self::Text(index, _)
            | Self::Encapsulation(index, _)
            | Self::OuterFlow(index, _) => FieldSet::EMPTY.with(index),
            Self::ApplicationName => const { field_set(&["application"]) },
            Self::EndReason => const { field_set(&["flow_end_reason"]) },
            Self::VlanId(direction) | Self::CustomerVlanId(direction) => direction
                .select(const { field_set(&["vlan_ids"]) }, const { field_set(&["reverse_vlan_ids"]) }),
            Self::TrafficClass(direction) => {
                direction.select(const { field_set(&["dscp"]) }, const { field_set(&["reverse_dscp"]) })
            }
            Self::Ttl(Direction::Forward) => const { field_set(&["ttl_min", "ttl_max"]) },
            Self::Ttl(Direction::Reverse) => const { field_set(&["reverse_ttl_min", "reverse_ttl_max"]) },
            Self::IcmpTypeCode => const { field_set(&["icmp_type", "icmp_code"]) },
            Self::Time(Moment::Start, _) => const { field_set(&["start"]) },
            Self::Time(Moment::End, _) => const { field_set(&["end"]) },
        }
    }

    /// Returns whether the action needs other fields of the record.
    pub(super) const fn is_relative(self) -> bool {
        matches!(self, Self::Duration(_) | Self::InitTime | Self::Time(_, TimeUnit::Uptime))
    }

    /// Applies the action to a record; returns `None` for a value that its field cannot have.
    // By reference: the compiler would otherwise copy the action for each field.
    #[inline(always)]
    pub(super) fn apply(
        &self,
        octets: &[u8],
        draft: &mut Draft,
        related: &mut Related,
        context: &DataContext<'_>,
    ) -> Option<()> {
        match *self {
            Self::Skip => {}
            Self::Unsigned(_, set) => set(draft, unsigned(octets)?)?,
            Self::Ipv4(_, set) => set(draft, IpAddr::from(<[u8; 4]>::try_from(octets).ok()?))?,
            Self::Ipv6(_, set) => set(draft, IpAddr::from(<[u8; 16]>::try_from(octets).ok()?))?,
            Self::Mac(_, set) => set(draft, octets.try_into().ok()?)?,
            Self::Time(moment, unit) => {
                set_time(moment, unit, unsigned(octets)?, draft, &mut related.times, context)
            }
            _ => self.apply_rare(octets, draft, related)?,
        }
        Some(())
    }

    fn apply_rare(self, octets: &[u8], draft: &mut Draft, related: &mut Related) -> Option<()> {
        let record = &mut draft.record;
        match self {
            Self::Text(_, set) => match text(octets)? {
                "" => {}
                text => set(draft, text)?,
            },
            Self::Encapsulation(_, set) => set(draft, Encapsulation::parse(text(octets)?)?)?,
            Self::OuterFlow(_, set) => set(draft, OuterFlow::parse(text(octets)?)?)?,
            Self::ApplicationName => draft.application.0 = application_name(text(octets)?)?,
            Self::EndReason => record.flow_end_reason = EndReason::from_number(unsigned(octets)?)?,
            Self::VlanId(direction) => {
                let outer = VlanIds::NONE.push(unsigned(octets)? as u16);
                let ids = &mut direction.side(draft).vlan_ids;
                *ids = ids.iter().fold(outer, VlanIds::push);
            }
            Self::CustomerVlanId(direction) => {
                let ids = &mut direction.side(draft).vlan_ids;
                *ids = ids.push(unsigned(octets)? as u16);
            }
            Self::TrafficClass(direction) => {
                direction.side(draft).dscp = Some(u8::try_from(unsigned(octets)?).ok()? >> 2);
            }
            Self::Ttl(direction) => {
                let ttl = unsigned(octets)?.try_into().ok()?;
                direction.side(draft).hop_limits = Some((ttl, ttl));
            }
            Self::AddressIfSet(_, set) => {
                let address = match octets.try_into().map(<[u8; 4]>::into) {
                    Ok(address) => address,
                    Err(_) => IpAddr::from(<[u8; 16]>::try_from(octets).ok()?),
                };
                if !address.is_unspecified() {
                    set(draft, address)?;
                }
            }
            Self::Observed(unit) => {
                let time = unit.time(unsigned(octets)?);
                if record.start == Timestamp::ZERO {
                    record.start = time;
                }
                if record.end == Timestamp::ZERO {
                    record.end = time;
                }
            }
            Self::IcmpTypeCode => record.icmp = Some(<[u8; 2]>::try_from(octets).ok()?.into()),
            Self::InitTime => related.times.init_time_ms = unsigned(octets),
            Self::Duration(unit_ns) => {
                related.times.duration_ns = Some(unsigned(octets)?.saturating_mul(unit_ns));
            }
            Self::Sampling(element) => related.sampling.set(element, octets)?,
            _ => {}
        }
        Some(())
    }
}

/// Returns the text in a field, without the NULs that may fill it.
fn text(octets: &[u8]) -> Option<&str> {
    std::str::from_utf8(octets).ok().map(|text| text.trim_end_matches('\0'))
}

/// Returns the name of an application in lower case; `Some(None)` if the exporter did not identify it.
fn application_name(name: &str) -> Option<Option<ApplicationName>> {
    if name.is_empty() || name == UNKNOWN_APPLICATION {
        return Some(None);
    }
    let mut lower = [0; ApplicationName::LEN_MAX];
    let lower = lower.get_mut(..name.len())?;
    lower.copy_from_slice(name.as_bytes());
    lower.make_ascii_lowercase();
    let name = std::str::from_utf8(lower).ok().filter(|name| *name != UNKNOWN_APPLICATION);
    name.map_or(Some(None), |name| ApplicationName::new(name).map(Some))
}
