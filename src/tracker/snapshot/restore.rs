//! Reads the open flows of a tracker from a checkpoint.

use std::io::Read;

use super::super::class::{LISTS, UNLISTED};
use super::super::config::TrackerConfig;
use super::super::extras::Extra;
use super::super::flow::{FlowBits, FlowId, NOT_STARTED};
use super::super::proven::Proven;
use super::super::recency::Epoch;
use super::super::table::Full;
use super::super::tracker::Tracker;
use super::super::view::FlowView;
use super::SnapshotInfo;
use super::flow::{self, Saved};
use super::order::{ACTIVE, Header};
use crate::base::{FlowKey, Resources, Timestamp};
use crate::checkpoint::{Error, Invalid, Kind, Reader, State, number};
use crate::codec::{self, Prefix};

/// The first block of a tracker.
struct Head {
    now_ns: u64,
    flow_count: u64,
    has_active: bool,
    key_policy: String,
    proven: Proven,
}

impl Head {
    fn read<R: Read>(reader: &Reader<R>) -> Result<Self, Error> {
        let (kind, block) = reader.current();
        if kind != Kind::Tracker {
            return Err(reader.invalid(Invalid::new("no tracker")));
        }
        let mut fields = codec::Reader::new(block);
        let mut head = || -> Result<Self, Invalid> {
            Ok(Self {
                now_ns: fields.be()?,
                flow_count: fields.be()?,
                has_active: fields.bool()?,
                key_policy: fields.prefixed_str(Prefix::U16)?.to_owned(),
                proven: Proven::load(&mut fields)?,
            })
        };
        head().map_err(|invalid| reader.invalid(invalid))
    }

    fn into_info(self) -> SnapshotInfo {
        let Self { now_ns, flow_count, key_policy, .. } = self;
        SnapshotInfo { flow_count, now: Timestamp::from_nanos(now_ns), key_policy }
    }
}

/// Reads all flows of a checkpoint one by one, without a tracker: `each` is called with each flow, and the octets of
/// the state that was saved with it. Memory is constant.
///
/// ```
/// use flowgauge::base::EndReason;
/// use flowgauge::checkpoint::{Reader, Writer};
/// use flowgauge::tracker::{self, Tracker};
///
/// let tracker = Tracker::<()>::default();
/// let mut writer = Writer::new(Vec::new())?;
/// tracker.snapshot().write(&mut writer)?;
/// let file = writer.finish()?;
/// let info = tracker::read_flows(&mut Reader::new(&file[..])?, |flow, _| {
///     println!("{}", flow.record(EndReason::ForcedEnd));
/// })?;
/// assert_eq!(info.flow_count, 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// The [`Error`] of a checkpoint that cannot be read. Flows before the damaged block were passed to `each`.
pub fn read_flows<R: Read>(
    reader: &mut Reader<R>,
    mut each: impl FnMut(&FlowView<'_>, &[u8]),
) -> Result<SnapshotInfo, Error> {
    if reader.current().0 == Kind::Pipeline {
        reader.advance()?;
    }
    let head = Head::read(reader)?;
    let mut count = 0;
    reader.advance()?;
    while reader.current().0 == Kind::Flows {
        let mut fields = codec::Reader::new(reader.current().1);
        while !fields.is_empty() {
            let (saved, state) =
                next_flow(&mut fields, head.now_ns).map_err(|invalid| reader.invalid(invalid))?;
            let Saved { hot, cold, extra } = &saved;
            let (slot, clock_ns) = (count as u32, hot.last_ns);
            count += 1;
            let view = FlowView {
                slot,
                bits: hot.bits,
                hot,
                cold,
                extra: extra.as_deref(),
                clock_ns,
                application: None,
            };
            each(&view, state);
        }
        reader.advance()?;
    }
    if count != head.flow_count {
        return Err(reader.invalid(Invalid::new("another number of flows than stated")));
    }
    while reader.current().0 == Kind::Order {
        reader.advance()?;
    }
    end(reader)?;
    Ok(head.into_info())
}

fn end<R: Read>(reader: &Reader<R>) -> Result<(), Error> {
    match reader.current().0 {
        Kind::End => Ok(()),
        _ => Err(reader.invalid(Invalid::new("blocks in another order"))),
    }
}

/// Reads a flow and the octets of its state.
fn next_flow<'b>(fields: &mut codec::Reader<'b>, now_ns: u64) -> Result<(Saved, &'b [u8]), Invalid> {
    let saved = flow::read(fields, now_ns)?;
    Ok((saved, fields.prefixed(Prefix::U32)?))
}

impl<S: State + Default> Tracker<S> {
    /// Creates a tracker that continues the open flows of a checkpoint, which was written with [`Tracker::snapshot`].
    ///
    /// Timeouts, classes and limits are those of `config` and `resources`, and need not be those of the first tracker. The
    /// counters begin at zero, except for [`restored_count`](super::super::TrackerStats::restored_count); flows have new
    /// identifiers.
    ///
    /// # Errors
    ///
    /// The [`Error`] of a checkpoint that cannot be read, of another key policy, or of flows that exceed the limits.
    pub fn restore<R: Read>(
        config: TrackerConfig,
        resources: &Resources,
        reader: &mut Reader<R>,
    ) -> Result<Self, Error> {
        let mut tracker = Self::new(config, resources)?;
        if reader.current().0 == Kind::Pipeline {
            reader.advance()?;
        }
        tracker.load(reader, |tracker, id, fields| {
            if let Some((_, state)) = tracker.get_mut(id) {
                *state = S::load(fields)?;
            }
            Ok(())
        })?;
        end(reader)?;
        Ok(tracker)
    }
}

impl<S: Default> Tracker<S> {
    /// Adds the flows of a checkpoint to this tracker, which has no flows yet, up to the end of the checkpoint. `load`
    /// reads the state of a flow.
    pub(crate) fn load<R: Read>(
        &mut self,
        reader: &mut Reader<R>,
        mut load: impl FnMut(&mut Self, FlowId, &mut codec::Reader<'_>) -> Result<(), Invalid>,
    ) -> Result<(), Error> {
        let mut head = Head::read(reader)?;
        let current = format!("{:?}", self.config.key_policy);
        if head.key_policy != current {
            return Err(Error::OtherPipeline { setting: "key policy", saved: head.key_policy, current });
        }
        self.now_ns = head.now_ns;
        self.proven = std::mem::take(&mut head.proven);
        self.add_flows(reader, &head, (|_: &FlowKey| true, |_| ()), &mut load)?;
        if self.len() as u64 != head.flow_count {
            return Err(reader.invalid(Invalid::new("another number of flows than stated")));
        }
        let mut listed = Listed { in_lists: 0, epochs: [None; LISTS] };
        while reader.current().0 == Kind::Order {
            self.add_order(&mut listed, reader.current().1).map_err(|invalid| reader.invalid(invalid))?;
            reader.advance()?;
        }
        if listed.in_lists != self.table.live_count() {
            return Err(reader.invalid(Invalid::new("a flow that is in no list")));
        }
        for (list, epoch) in self.lists.0.iter_mut().zip(listed.epochs) {
            if let Some(epoch) = epoch {
                list.set_epoch(epoch);
            }
        }
        if self.active_ns != u64::MAX && !head.has_active {
            self.add_active();
        }
        self.stats.restored_count = head.flow_count;
        self.stats.open_count_max = head.flow_count;
        let due_ns = self.next_deadline().map_or(u64::MAX, Timestamp::as_nanos);
        self.sweep_by(due_ns);
        Ok(())
    }

    /// Adds those flows of a checkpoint, up to its end, that `wants` accepts, to the open flows of this tracker, which has
    /// none with the same key. `load` reads the state of a flow. Lists are sorted by the last packets of flows.
    pub(crate) fn absorb<R: Read>(
        &mut self,
        reader: &mut Reader<R>,
        wants: impl Fn(&FlowKey) -> bool,
        mut load: impl FnMut(&mut Self, FlowId, &mut codec::Reader<'_>) -> Result<(), Invalid>,
    ) -> Result<(), Error> {
        let head = Head::read(reader)?;
        self.now_ns = self.now_ns.max(head.now_ns);
        let known_count = self.len();
        let mut slots = Vec::new();
        self.add_flows(reader, &head, (wants, |slot| slots.push(slot)), &mut load)?;
        let mut active: Vec<_> = Vec::new();
        if self.active_ns != u64::MAX {
            let known = self.table.slots().filter_map(|slot| Some((self.active.began_ns(slot)?, slot)));
            active.extend(known);
        }
        while reader.current().0 == Kind::Order {
            let began =
                active_of(reader.current().1, head.now_ns).map_err(|invalid| reader.invalid(invalid))?;
            let slot_of = |rank: u32| slots.get(rank as usize).copied().flatten();
            active.extend(began.into_iter().filter_map(|(began_ns, rank)| Some((began_ns, slot_of(rank)?))));
            reader.advance()?;
        }
        active.sort_unstable();
        if self.active_ns != u64::MAX {
            active.iter().for_each(|(began_ns, slot)| self.active.add(*slot, *began_ns));
        }
        let mut slots: Vec<_> = self.table.slots().collect();
        slots.sort_unstable_by_key(|slot| (self.table.hot(*slot).last_ns, *slot));
        for slot in slots {
            let is_answered = self.table.hot(slot).is_answered();
            self.relist(slot, self.class_of(slot).list(is_answered));
        }
        self.stats.restored_count += (self.len() - known_count) as u64;
        self.stats.open_count_max = self.stats.open_count_max.max(self.len() as u64);
        let due_ns = self.next_deadline().map_or(u64::MAX, Timestamp::as_nanos);
        self.sweep_by(due_ns);
        Ok(())
    }

    /// Adds those flows of a checkpoint that `wants` accepts to the table. `added` is called for each flow of the checkpoint
    /// with its slot, or `None` if it is not wanted.
    fn add_flows<R: Read>(
        &mut self,
        reader: &mut Reader<R>,
        head: &Head,
        (wants, mut added): (impl Fn(&FlowKey) -> bool, impl FnMut(Option<u32>)),
        load: &mut impl FnMut(&mut Self, FlowId, &mut codec::Reader<'_>) -> Result<(), Invalid>,
    ) -> Result<(), Error> {
        reader.advance()?;
        while reader.current().0 == Kind::Flows {
            let mut fields = codec::Reader::new(reader.current().1);
            while !fields.is_empty() {
                let (saved, state) =
                    next_flow(&mut fields, head.now_ns).map_err(|invalid| reader.invalid(invalid))?;
                if !wants(&saved.hot.key) {
                    added(None);
                    continue;
                }
                let slot = self.add_saved(saved).map_err(|refused| match refused {
                    Refused::Invalid(invalid) => reader.invalid(invalid),
                    Refused::Full => Error::TooManyFlows { flow_count: head.flow_count },
                })?;
                added(Some(slot));
                let mut state = codec::Reader::new(state);
                load(self, self.table.view(slot).id(), &mut state)
                    .map_err(|invalid| reader.invalid(invalid))?;
                if !state.is_empty() {
                    return Err(reader.invalid(Invalid::new("the state of another kind of flow")));
                }
            }
            reader.advance()?;
        }
        Ok(())
    }

    /// Adds a flow to the table, which is in no recency list yet. Returns its slot.
    fn add_saved(&mut self, Saved { hot, cold, extra }: Saved) -> Result<u32, Refused> {
        let hash = self.table.hash(&hot.key);
        if self.table.find(hash, &hot.key).is_some() {
            return Err(Refused::Invalid(Invalid::new("two flows with the same key")));
        }
        let slot = self.table.insert(hash, hot.key, hot.last_ns, cold).map_err(|full| match full {
            Full::Count | Full::Budget | Full::Index(_) => Refused::Full,
        })?;
        *self.table.hot_mut(slot) = hot;
        if let Some(extra) = extra {
            self.add_extra(slot, *extra);
        }
        let has_extra = self.table.view(slot).extra.is_some();
        let hot = self.table.hot_mut(slot);
        let has_lag = hot.bits.has(FlowBits::LAG) && has_extra;
        hot.bits.set(FlowBits::LAG, has_lag);
        Ok(slot)
    }

    /// Stores the additional state of a flow as far as the limits permit.
    fn add_extra(&mut self, slot: u32, extra: Extra) {
        let (hot, _, extras) = self.table.parts(slot);
        let Some(own) = extras.of(hot) else {
            self.stats.extra_refused_count += 1;
            return;
        };
        let encapsulation = extra.encapsulation;
        *own = Extra { encapsulation: None, ..extra };
        let Some(saved) = encapsulation else { return };
        let is_kept = extras.encapsulation_of(hot).is_some_and(|(record, account)| {
            let copies = [&saved.encapsulation, &saved.reverse_encapsulation].map(|headers| {
                if headers.is_empty() { Some(headers.clone()) } else { account.copy(headers.headers()) }
            });
            let [Some(encapsulation), Some(reverse_encapsulation)] = copies else { return false };
            *record = crate::record::EncapsulationRecord { encapsulation, reverse_encapsulation, ..*saved };
            true
        });
        self.stats.encapsulation_refused_count += u64::from(!is_kept);
    }

    /// Adds the flows of a part of a list, oldest first.
    fn add_order(&mut self, listed: &mut Listed, block: &[u8]) -> Result<(), Invalid> {
        let mut fields = codec::Reader::new(block);
        let Header { list, epoch, count } = Header::read(&mut fields)?;
        for _ in 0..count {
            let slot: u32 = number(&mut fields)?;
            if slot >= self.table.entry_count() {
                return Err(Invalid::new("a list with a flow that is not there"));
            }
            if list == ACTIVE {
                let age_ns = fields.varint()?;
                let began_ns =
                    self.now_ns.checked_sub(age_ns).ok_or(Invalid::new("a record after the clock"))?;
                if self.active_ns != u64::MAX {
                    self.active.add(slot, began_ns);
                }
            } else {
                self.add_to_list(slot)?;
                listed.in_lists += 1;
            }
        }
        if let Some(own) = listed.epochs.get_mut(usize::from(list)) {
            *own = Some(epoch);
        }
        if fields.is_empty() { Ok(()) } else { Err(Invalid::new("a list that is longer than stated")) }
    }

    /// Adds a flow to the recency list of its class, as the most recent one.
    fn add_to_list(&mut self, slot: u32) -> Result<(), Invalid> {
        let hot = self.table.hot(slot);
        if hot.list != UNLISTED {
            return Err(Invalid::new("a flow that is in two lists"));
        }
        let is_answered = hot.is_answered();
        let list = self.class_of(slot).list(is_answered);
        self.table.hot_mut(slot).list = list;
        self.lists.of(list).restore(self.table.cold_mut(), slot);
        Ok(())
    }

    /// Begins the active timeouts of all flows with packets in their current record.
    fn add_active(&mut self) {
        let start_ns = |tracker: &Self, slot| tracker.table.cold().at(slot).start_ns;
        let mut slots: Vec<_> =
            self.table.slots().filter(|slot| start_ns(self, *slot) != NOT_STARTED).collect();
        slots.sort_unstable_by_key(|slot| (start_ns(self, *slot), self.table.hot(*slot).key));
        for slot in slots {
            self.active.add(slot, start_ns(self, slot).min(self.now_ns));
        }
    }
}

/// Returns the beginnings of current records in a part of the list of active timeouts, and the index of each flow in the
/// checkpoint; nothing of another list.
fn active_of(block: &[u8], now_ns: u64) -> Result<Vec<(u64, u32)>, Invalid> {
    let mut fields = codec::Reader::new(block);
    let Header { list, count, .. } = Header::read(&mut fields)?;
    if list != ACTIVE {
        return Ok(Vec::new());
    }
    let mut entry = || -> Result<_, Invalid> {
        let rank = number(&mut fields)?;
        let began_ns =
            now_ns.checked_sub(fields.varint()?).ok_or(Invalid::new("a record after the clock"))?;
        Ok((began_ns, rank))
    };
    (0..count).map(|_| entry()).collect()
}

/// The flows of the lists that were read.
struct Listed {
    in_lists: u32,
    epochs: [Option<Epoch>; LISTS],
}

/// Why a flow of a checkpoint is not in the table.
enum Refused {
    Invalid(Invalid),
    Full,
}
