//! Sinks that call closures.

use std::marker::PhantomData;

use super::sink::{Sink, Stage};
use super::stage::{Flows, Sessions};
use crate::base::EndReason;
use crate::record::FlowRecord;
use crate::session::{MessageMeta, Protocols, SessionEvent};
use crate::tracker::{Flow, FlowView, Interest};

/// A sink that calls a function with the record of each flow that ends, and at each active timeout.
///
/// ```
/// use flowgauge::{FileSource, Pipeline, Records, RunOptions};
///
/// let mut octet_count = 0;
/// let sink = Records::new(|record| octet_count += record.octet_count());
/// let mut source = FileSource::open("examples/data/web.pcap")?;
/// Pipeline::builder().build(sink)?.run(&mut source, &RunOptions::default())?;
/// assert!(octet_count > 1_000_000);
/// # Ok::<(), flowgauge::Error>(())
/// ```
pub struct Records<F, G = Flows> {
    call: F,
    stage: PhantomData<fn() -> G>,
}

impl<F: FnMut(FlowRecord)> Records<F> {
    /// Creates a sink that calls the function `call` with each record.
    #[must_use]
    pub const fn new(call: F) -> Self {
        Self { call, stage: PhantomData }
    }

    /// Changes the stage of the sink: with [`Sessions`], records name the application protocol.
    #[must_use]
    pub fn with_stage<G: Stage>(self) -> Records<F, G> {
        Records { call: self.call, stage: PhantomData }
    }
}

impl<F: FnMut(FlowRecord), G: Stage> Sink for Records<F, G> {
    type State = ();
    type Stage = G;

    fn interest(&self) -> Interest {
        Interest::RECORDS
    }

    fn record(&mut self, flow: &mut Flow<'_, ()>, reason: EndReason) {
        (self.call)(flow.view.record(reason));
    }
}

impl<F, G> std::fmt::Debug for Records<F, G> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Records").finish_non_exhaustive()
    }
}

/// A sink that calls a function with each message of an application protocol; created by [`on_message`].
pub struct OnMessage<P, F, E = fn(&FlowView<'_>, &SessionEvent)> {
    call: F,
    event: E,
    protocols: PhantomData<fn() -> P>,
}

/// Returns a sink that calls a function with each message of a set of parsers.
///
/// A flow whose messages are more than its octets justify loses some
/// ([`Protocol::with_message_len_min`](crate::session::Protocol::with_message_len_min)): [`OnMessage::on_event`] receives the
/// first as [`SessionEvent::Suppressed`], and [`Summary::suppressed_message_count`](super::Summary::suppressed_message_count) is
/// the number of all.
///
/// ```
/// # #[cfg(feature = "protocols")] {
/// use flowgauge::{FileSource, Pipeline, RunOptions, Standard, on_message};
///
/// let sink = on_message::<Standard>(|flow, meta, message| {
///     println!("{} {} {message:?}", flow.key(), meta.protocol.name());
/// });
/// let mut source = FileSource::open("examples/data/dns.pcap")?;
/// Pipeline::builder().build(sink)?.run(&mut source, &RunOptions::default())?;
/// # }
/// # Ok::<(), flowgauge::Error>(())
/// ```
pub const fn on_message<P: Protocols>(
    call: impl for<'m> FnMut(&FlowView<'_>, &MessageMeta, &P::Message<'m>),
) -> OnMessage<P, impl for<'m> FnMut(&FlowView<'_>, &MessageMeta, &P::Message<'m>)> {
    OnMessage { call, event: |_, _| (), protocols: PhantomData }
}

impl<P, F, E> OnMessage<P, F, E> {
    /// Adds a function that is called when a protocol is recognized, when a parser stops with a fault, and when the messages of
    /// a flow begin to be suppressed.
    ///
    /// ```
    /// # #[cfg(feature = "protocols")] {
    /// use flowgauge::{FileSource, Pipeline, RunOptions, SessionEvent, Standard, on_message};
    ///
    /// let mut stopped_count = 0;
    /// let sink = on_message::<Standard>(|_, _, _| ()).on_event(|flow, event| {
    ///     if let SessionEvent::Stopped { meta, fault, .. } = event {
    ///         eprintln!("{}: {} stopped: {fault}", flow.key(), meta.protocol.name());
    ///         stopped_count += 1;
    ///     }
    /// });
    /// let mut source = FileSource::open("examples/data/lossy.pcap")?;
    /// let summary = Pipeline::builder().build(sink)?.run(&mut source, &RunOptions::default())?;
    /// let faults = summary.stats.sessions.faults.iter();
    /// assert_eq!(faults.map(|(_, _, count)| count).sum::<u64>(), stopped_count);
    /// # }
    /// # Ok::<(), flowgauge::Error>(())
    /// ```
    pub fn on_event<T: FnMut(&FlowView<'_>, &SessionEvent)>(self, event: T) -> OnMessage<P, F, T> {
        OnMessage { call: self.call, event, protocols: PhantomData }
    }
}

impl<P, F, E> Sink for OnMessage<P, F, E>
where
    P: Protocols,
    F: for<'m> FnMut(&FlowView<'_>, &MessageMeta, &P::Message<'m>),
    E: FnMut(&FlowView<'_>, &SessionEvent),
{
    type State = ();
    type Stage = Sessions<P>;

    fn interest(&self) -> Interest {
        Interest::RECORDS
    }

    fn message(&mut self, flow: &mut Flow<'_, ()>, meta: &MessageMeta, message: &P::Message<'_>) {
        (self.call)(&flow.view, meta, message);
    }

    fn session(&mut self, flow: &mut Flow<'_, ()>, event: &SessionEvent) {
        (self.event)(&flow.view, event);
    }
}

impl<P, F, E> std::fmt::Debug for OnMessage<P, F, E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OnMessage").finish_non_exhaustive()
    }
}
