//! The stage of sinks that need only flows.

use super::super::config::Config;
use super::super::sink::{NotInStage, Sink, SlotOf, Stage, sealed};
use crate::base::Packet;
use crate::base::{ConfigError, Resources};
use crate::tracker::{Flow, Interest};

/// The stage of sinks that need only flows: no layer runs above the tracker, and no flow uses memory for such a layer.
#[derive(Clone, Copy, Debug)]
pub enum Flows {}

impl Stage for Flows {
    type Message<'m> = NotInStage;
    type StreamEvent<'e> = NotInStage;
    type SessionEvent = NotInStage;
}

impl sealed::Stage for Flows {
    type PerFlow = ();
    type Engine = ();
    const INTEREST: Interest = Interest::RECORDS;
    const HAS_STREAMS: bool = false;
    const HAS_SESSIONS: bool = false;
    const NAME: &'static str = "flows";

    fn engine(_: &Config, _: &Resources) -> Result<(), ConfigError> {
        Ok(())
    }

    #[inline(always)]
    fn packet<K: Sink<Stage = Self> + ?Sized>(
        (): &mut (),
        _: &mut K,
        _: &mut Flow<'_, SlotOf<K>>,
        _: &Packet<'_>,
    ) {
    }
}

/// Sink that ignores all callbacks.
impl Sink for () {
    type State = ();
    type Stage = Flows;

    fn interest(&self) -> Interest {
        Interest::RECORDS
    }
}
