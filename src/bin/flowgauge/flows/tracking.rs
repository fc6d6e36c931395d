//! Flows with or without the names of what is spoken: whichever is asked for, the rest costs nothing.

use flowgauge::base::{Application, EndReason, FrameBatch, Timestamp};
use flowgauge::filter::Filter;
use flowgauge::pipeline::{ConfigError, Pipeline, PipelineStats, SessionPipeline, SessionSink};
use flowgauge::session::{About, Message, SessionEvent, Standard};
use flowgauge::tracker::{Flow, FlowEvent, FlowSink, FlowView, Interest, TrackerConfig};

use super::pipeline;
use crate::args::{Applications, FlowsArgs, Format};
use crate::sessions::layers;

/// What takes records as flows end. It becomes a sink of either pipeline.
pub(super) trait Take {
    fn take(&mut self, view: &FlowView<'_>, reason: EndReason, application: Option<Application>);
}

/// A [`Take`] as the sink of a pipeline.
pub(super) struct Taking<T>(pub(super) T);

impl<T: Take> FlowSink<()> for Taking<T> {
    fn interest(&self) -> Interest {
        Interest::ENDS
    }

    fn event(&mut self, flow: &mut Flow<'_, ()>, event: &FlowEvent) {
        if *event == FlowEvent::ActiveTimeout {
            self.0.take(&flow.view, EndReason::ActiveTimeout, None);
        }
    }

    fn ended(&mut self, view: &FlowView<'_>, reason: EndReason, (): ()) {
        self.0.take(view, reason, None);
    }
}

impl<T: Take> FlowSink<Option<Application>> for Taking<T> {
    fn interest(&self) -> Interest {
        Interest::ENDS
    }

    fn event(&mut self, flow: &mut Flow<'_, Option<Application>>, event: &FlowEvent) {
        if *event == FlowEvent::ActiveTimeout {
            self.0.take(&flow.view, EndReason::ActiveTimeout, *flow.state);
        }
    }

    fn ended(&mut self, view: &FlowView<'_>, reason: EndReason, application: Option<Application>) {
        self.0.take(view, reason, application);
    }
}

impl<T: Take> SessionSink<Standard, Option<Application>> for Taking<T> {
    fn message(&mut self, _: &mut Flow<'_, Option<Application>>, _: &About, _: Message<'_>) {}

    fn session(&mut self, flow: &mut Flow<'_, Option<Application>>, event: &SessionEvent) {
        *flow.state = flow.state.or(event.application());
    }
}

/// A pipeline that names what is spoken.
pub(super) type NamedPipeline = SessionPipeline<Standard, Option<Application>>;

/// Whether names are asked for.
pub(super) fn is_naming(args: &FlowsArgs) -> bool {
    match args.application {
        Applications::Always => true,
        Applications::Never => false,
        Applications::Auto => args.format != Format::Table,
    }
}

/// A pipeline that names, as asked for.
pub(super) fn named(
    args: &FlowsArgs,
    filter: Option<&Filter>,
    config: &TrackerConfig,
) -> Result<NamedPipeline, ConfigError> {
    let (streams, mut sessions) = layers(config);
    sessions.is_naming_only = true;
    Ok(pipeline(args, filter, config)?.with_streams(streams)?.with_sessions(&sessions))
}

/// Either pipeline.
pub(super) enum Tracking {
    Plain(Box<Pipeline<()>>),
    Named(Box<NamedPipeline>),
}

impl Tracking {
    pub(super) fn new(
        args: &FlowsArgs,
        filter: Option<&Filter>,
        config: &TrackerConfig,
    ) -> Result<Self, ConfigError> {
        Ok(if is_naming(args) {
            Self::Named(Box::new(named(args, filter, config)?))
        } else {
            Self::Plain(Box::new(pipeline(args, filter, config)?))
        })
    }

    pub(super) fn batch<T: Take>(&mut self, batch: &FrameBatch, sink: &mut Taking<T>) {
        match self {
            Self::Plain(pipeline) => pipeline.batch(batch, sink),
            Self::Named(pipeline) => pipeline.batch(batch, sink),
        }
    }

    #[cfg_attr(not(feature = "live"), allow(dead_code, reason = "files need no sweeps"))]
    pub(super) fn advance<T: Take>(&mut self, now: Timestamp, sink: &mut Taking<T>) {
        match self {
            Self::Plain(pipeline) => pipeline.advance(now, sink),
            Self::Named(pipeline) => pipeline.advance(now, sink),
        }
    }

    pub(super) fn finish<T: Take>(&mut self, sink: &mut Taking<T>) {
        match self {
            Self::Plain(pipeline) => pipeline.finish(sink),
            Self::Named(pipeline) => pipeline.finish(sink),
        }
    }

    pub(super) fn stats(&self) -> PipelineStats {
        match self {
            Self::Plain(pipeline) => pipeline.stats(),
            Self::Named(pipeline) => pipeline.stats(),
        }
    }
}
