//! Checkpoints of a pipeline, and pipelines that continue from one.

use std::io::{self, Read, Write};

use super::builder::Builder;
use super::pipeline::Pipeline;
use super::sink::sealed::Stage as _;
use super::sink::{EngineOf, Sink, SlotOf};
use super::stats::Unsaved;
use crate::base::FlowKey;
use crate::checkpoint::{Error, Invalid, Kind, Reader, State, StateWriter, Writer};
use crate::codec::{self, Prefix};
use crate::tracker::{Flow, FlowId, FlowView, SnapshotInfo, Tracker, read_flows};

impl<K: Sink> Pipeline<K>
where
    K::State: State,
{
    /// Writes all open flows to a checkpoint, from which [`Builder::restore`] continues them. Nothing changes; to be
    /// called between two batches, for example after [`feed`](Self::feed).
    ///
    /// Saved are keys, counters, times, TCP state, direction, history, encapsulation, application, the order of eviction,
    /// the caller's state, the positions of streams, the clock, and a frame that waits for the time check. A run that
    /// continues from a checkpoint therefore gives the same records as one that was not interrupted, except for what is
    /// not saved:
    ///
    /// - Fragments that wait for the rest of their datagram, and hashes of frames in the window of duplicates. Their
    ///   numbers are [saved](super::Unsaved).
    /// - Octets of a stream after a hole. The stream continues after a [gap] with the reason [`Checkpoint`]. Octets that wait
    ///   for those of the other direction are saved, and delivered at once.
    /// - The state of parsers without [`Parser::save`](crate::session::Parser::save), such as that of HTTP/2. They continue
    ///   as after a gap with this reason: a message that a checkpoint divides is not parsed. Protocols that cannot continue
    ///   in the middle of a stream are not parsed any further; flows keep the application that was recognized.
    /// - What a sink keeps for all flows together, which is to be [attached](Writer::attach), as
    ///   `Transactions::attach` does.
    ///
    /// Takes time linear in the number of flows, below a second for a million of them, and four octets of memory a flow.
    ///
    /// # Errors
    ///
    /// The error of the writer; one of the kind [`InvalidData`](io::ErrorKind::InvalidData) if a state of the caller cannot
    /// be saved.
    ///
    /// [gap]: crate::reassembler::StreamEvent::Gap
    /// [`Checkpoint`]: crate::reassembler::GapReason::Checkpoint
    pub fn checkpoint<W: Write>(&self, writer: &mut Writer<W>) -> io::Result<()> {
        let mut block = Vec::new();
        let mut out = StateWriter::growing(&mut block);
        out.prefixed(Prefix::U8, K::Stage::NAME)
            .map_err(Invalid::from)
            .and_then(|()| self.core.save(&mut out))
            .and_then(|()| K::Stage::save_engine(&self.engine, &mut out))
            .map_err(|invalid| io::Error::new(io::ErrorKind::InvalidData, invalid))?;
        writer.block(Kind::Pipeline, &block)?;
        let engine = &self.engine;
        self.core.tracker().save(writer, |_, slot, out| {
            let len = out.reserve::<u32>()?;
            let start = out.len();
            slot.state.save(out)?;
            let state_len = (out.len() - start) as u32;
            out.fill(len, state_len);
            K::Stage::save(engine, &slot.stage, out)
        })
    }
}

impl Builder {
    /// Builds a pipeline that continues the open flows of a checkpoint, which [`Pipeline::checkpoint`] wrote.
    ///
    /// Timeouts, limits, filters and the sink may be others than in the first pipeline; the key policy and the stage must
    /// be the same. Counters begin at zero, except for
    /// [`restored_count`](crate::tracker::TrackerStats::restored_count), and flows have new identifiers. The sink is called
    /// at once with the gaps of streams, and with the events of parsers that cannot continue. [`Sink::started`] is not
    /// called again for these flows.
    ///
    /// # Errors
    ///
    /// The [`Error`] of a checkpoint that cannot be read, of another pipeline, of flows that exceed the limits, or of an
    /// invalid configuration.
    pub fn restore<K: Sink, R: Read>(&self, reader: &mut Reader<R>, sink: K) -> Result<Pipeline<K>, Error>
    where
        K::State: State,
    {
        let mut pipeline = self.build(sink)?;
        pipeline.load(reader)?;
        Ok(pipeline)
    }
}

impl<K: Sink> Pipeline<K>
where
    K::State: State,
{
    fn load<R: Read>(&mut self, reader: &mut Reader<R>) -> Result<(), Error> {
        let (kind, block) = reader.current();
        if kind != Kind::Pipeline {
            return Err(reader.invalid(Invalid::new("no pipeline")));
        }
        let mut fields = codec::Reader::new(block);
        let stage = fields.prefixed_str(Prefix::U8).map_err(|error| reader.invalid(error.into()))?;
        if stage != K::Stage::NAME {
            let (saved, current) = (stage.to_owned(), K::Stage::NAME.to_owned());
            return Err(Error::OtherPipeline { setting: "stage", saved, current });
        }
        self.core
            .load(&mut fields)
            .and_then(|()| K::Stage::load_engine(&mut self.engine, &mut fields))
            .map_err(|invalid| reader.invalid(invalid))?;
        reader.advance()?;
        let Self { core, engine, sink, .. } = self;
        core.tracker_mut()
            .load(reader, |tracker, id, fields| load_flow::<K>(tracker, (engine, sink), id, fields))?;
        core.tracker_mut().wake_by(K::Stage::next_due_ns(engine));
        Ok(())
    }

    /// Adds those flows of a checkpoint of another pipeline that `wants` accepts. The rest of the checkpoint is not read.
    pub(super) fn absorb<R: Read>(
        &mut self,
        reader: &mut Reader<R>,
        wants: impl Fn(&FlowKey) -> bool,
    ) -> Result<(), Error> {
        reader.advance()?;
        let Self { core, engine, sink, .. } = self;
        core.tracker_mut().absorb(reader, wants, |tracker, id, fields| {
            load_flow::<K>(tracker, (engine, sink), id, fields)
        })?;
        core.tracker_mut().wake_by(K::Stage::next_due_ns(engine));
        Ok(())
    }
}

/// Reads the state of a flow.
fn load_flow<K: Sink>(
    tracker: &mut Tracker<SlotOf<K>>,
    (engine, sink): (&mut EngineOf<K>, &mut K),
    id: FlowId,
    fields: &mut codec::Reader<'_>,
) -> Result<(), Invalid>
where
    K::State: State,
{
    let mut state = fields.section(Prefix::U32)?;
    let Some((view, slot)) = tracker.get_mut(id) else { return Ok(()) };
    slot.state = K::State::load(&mut state)?;
    if !state.is_empty() {
        return Err(Invalid::new("the state of another kind of flow"));
    }
    sink.restored(&mut slot.state);
    let mut flow = Flow::new(slot, view);
    K::Stage::load(engine, sink, &mut flow, fields)?;
    if flow.is_muted() {
        tracker.mute(id);
    }
    Ok(())
}

/// What a checkpoint states about the pipeline that it was written from.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CheckpointInfo {
    /// Name of the [`Stage`](super::Stage): `flows`, `streams` or `sessions`.
    pub stage: String,
    /// What was not saved.
    pub unsaved: Unsaved,
    /// Number of flows, clock, and settings.
    pub tracker: SnapshotInfo,
}

/// Reads all flows of a checkpoint one by one, without a pipeline: `each` is called with each flow. Memory is constant.
///
/// # Errors
///
/// The [`Error`] of a checkpoint that cannot be read. Flows before the damaged block were passed to `each`.
pub fn read_checkpoint<R: Read>(
    reader: &mut Reader<R>,
    mut each: impl FnMut(&FlowView<'_>),
) -> Result<CheckpointInfo, Error> {
    let (kind, block) = reader.current();
    if kind != Kind::Pipeline {
        return Err(reader.invalid(Invalid::new("no pipeline")));
    }
    let mut fields = codec::Reader::new(block);
    let mut head = || -> Result<_, Invalid> {
        let stage = fields.prefixed_str(Prefix::U8)?.to_owned();
        Ok((stage, Unsaved::load(&mut fields)?))
    };
    let (stage, unsaved) = head().map_err(|invalid| reader.invalid(invalid))?;
    let tracker = read_flows(reader, |view, _| each(view))?;
    Ok(CheckpointInfo { stage, unsaved, tracker })
}
