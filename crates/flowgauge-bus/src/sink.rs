//! A sink that publishes the events of a pipeline.

use std::marker::PhantomData;

use flowgauge::export::{Style, write_json};
use flowgauge::tracker::{Anomaly, Flow, FlowAnomaly, FlowEvent, FlowView, Interest};
use flowgauge::{EndReason, Flows, Sink, Stage};

use crate::event::Line;
use crate::publisher::Publisher;
use crate::topic::Topic;

/// Sink that publishes flow records and anomalies: `flow.start`, `flow.update`, `flow.end` and `anomaly.…`.
///
/// Events without subscribers are only counted. The stage `G` determines whether records contain the application
/// protocol.
///
/// ```
/// use flowgauge::{FileSource, Pipeline, RunOptions};
/// use flowgauge_bus::{PublishSink, Publisher};
///
/// let publisher = Publisher::bind("inproc://sink")?;
/// let sink = PublishSink::new(publisher.clone()).with_keys(true);
/// let mut source = FileSource::open("../../examples/data/web.pcap")?;
/// Pipeline::builder().build(sink)?.run(&mut source, &RunOptions::default())?;
/// assert_eq!(publisher.stats().published_count, publisher.stats().unsubscribed_count);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct PublishSink<G = Flows> {
    publisher: Publisher,
    has_keys: bool,
    generation: u64,
    wants: Wants,
    line: Vec<u8>,
    stage: PhantomData<fn() -> G>,
}

/// Events for which there are subscribers.
#[derive(Clone, Copy, Debug, Default)]
struct Wants {
    start: bool,
    update: bool,
    end: bool,
    anomaly: bool,
}

impl PublishSink {
    /// Creates a sink that publishes through a publisher.
    #[must_use]
    pub fn new(publisher: Publisher) -> Self {
        Self {
            publisher,
            has_keys: false,
            generation: 0,
            wants: Wants::default(),
            line: Vec::new(),
            stage: PhantomData,
        }
    }
}

impl<G> PublishSink<G> {
    /// Appends IP protocol and port of the responder to the topics, such as `flow.end.tcp.443`.
    #[must_use]
    pub fn with_keys(mut self, has_keys: bool) -> Self {
        self.has_keys = has_keys;
        self
    }

    /// Changes the stage of the sink.
    #[must_use]
    pub fn with_stage<H: Stage>(self) -> PublishSink<H> {
        let Self { publisher, has_keys, generation, wants, line, .. } = self;
        PublishSink { publisher, has_keys, generation, wants, line, stage: PhantomData }
    }

    /// Returns the publisher.
    #[must_use]
    pub const fn publisher(&self) -> &Publisher {
        &self.publisher
    }

    /// Returns the topic for a flow.
    fn topic(&self, topic: Topic, view: &FlowView<'_>) -> Topic {
        if self.has_keys { topic.with_key(view.key(), view.initiator()) } else { topic }
    }

    fn wants(&mut self) -> Wants {
        let generation = self.publisher.generation();
        if self.generation != generation {
            self.generation = generation;
            let anomalies = Topic::new("anomaly.");
            self.wants = Wants {
                start: self.publisher.is_wanted(&Topic::FLOW_START),
                update: self.publisher.is_wanted(&Topic::FLOW_UPDATE),
                end: self.publisher.is_wanted(&Topic::FLOW_END),
                anomaly: anomalies.is_ok_and(|topic| self.publisher.is_wanted(&topic)),
            };
        }
        self.wants
    }

    fn publish(&mut self, topic: Topic, view: &FlowView<'_>, reason: EndReason, is_wanted: bool) {
        let topic = self.topic(topic, view);
        if is_wanted {
            self.publisher.publish(&topic, &view.record(reason));
        } else {
            self.publisher.skip(&topic);
        }
    }

    fn publish_anomaly(&mut self, anomaly: Anomaly, view: &FlowView<'_>) {
        let name = Topic::anomaly(anomaly);
        let topic = self.topic(name, view);
        self.line.clear();
        write_json(&mut self.line, &FlowAnomaly(view, anomaly), Style::default());
        self.publisher.publish(&topic, &Line(&self.line));
    }
}

impl<G: Stage> Sink for PublishSink<G> {
    type State = ();
    type Stage = G;

    fn interest(&self) -> Interest {
        Interest::STARTS | Interest::EVENTS
    }

    fn started(&mut self, flow: &mut Flow<'_, ()>) {
        let is_wanted = self.wants().start;
        self.publish(Topic::FLOW_START, &flow.view, EndReason::ActiveTimeout, is_wanted);
    }

    fn event(&mut self, flow: &mut Flow<'_, ()>, event: &FlowEvent) {
        if let FlowEvent::Anomaly(anomaly) = event
            && self.wants().anomaly
        {
            self.publish_anomaly(*anomaly, &flow.view);
        }
    }

    fn record(&mut self, flow: &mut Flow<'_, ()>, reason: EndReason) {
        let wants = self.wants();
        let (topic, is_wanted) = match reason {
            EndReason::ActiveTimeout => (Topic::FLOW_UPDATE, wants.update),
            _ => (Topic::FLOW_END, wants.end),
        };
        self.publish(topic, &flow.view, reason, is_wanted);
    }
}
