//! The view of `flowgauge live` on a terminal: rates, and the flows, hosts and protocols with the most traffic.

mod controls;
mod draw;
mod messages;
mod model;
mod name;
mod order;
mod selected;
mod sink;
#[cfg(test)]
mod tests;
mod traffic;

use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use std::time::{Duration, Instant};

use flowgauge::base::FrameBatch;
use flowgauge::source::Next;
use flowgauge::{Builder, Filter, Pipeline, PipelineStats, Resources, Source};
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyEventKind};

use crate::console::{Console, Failure};
use crate::interrupt;
use crate::joined::Named;
use controls::{Change, Controls};
use draw::{Surroundings, draw};
use model::{Model, REFRESH_INTERVAL, Report};
use sink::ViewSink;

/// Time between two checks for keys while frames arrive.
const KEY_INTERVAL: Duration = Duration::from_millis(50);

/// Settings of a view.
pub(super) struct View<'a> {
    /// Name of the origin of the frames.
    pub(super) origin: &'a str,
    /// Resources of the pipeline, whose memory the view shows.
    pub(super) resources: &'a Resources,
    /// Selects the flows that are shown.
    pub(super) filter: Option<&'a Filter>,
}

impl View<'_> {
    /// Shows the view until q, Ctrl-C or the end of the source. Returns the counters of the run.
    pub(super) fn run<G: Named>(
        &self,
        builder: &Builder,
        source: &mut dyn Source,
        console: &mut Console,
    ) -> Result<PipelineStats, Failure> {
        let model = Rc::new(RefCell::new(Model::new(self.filter.cloned())));
        let mut pipeline = builder.build(ViewSink::<G>::new(Rc::clone(&model)))?;
        let terminal = ratatui::try_init().map_err(|error| Failure::Other(format!("terminal: {error}")))?;
        let controls = Controls::default();
        let mut screen = Screen { view: self, terminal, model, controls };
        let outcome = screen.run(&mut pipeline, source);
        ratatui::restore();
        match outcome {
            Ok(()) => {}
            Err(Problem::Source(error)) => console.problem(error),
            Err(Problem::Terminal(error)) => return Err(Failure::Other(format!("terminal: {error}"))),
        }
        pipeline.finish();
        Ok(pipeline.stats())
    }
}

/// Reason that the view ended early.
enum Problem {
    Source(flowgauge::source::Error),
    Terminal(io::Error),
}

impl From<io::Error> for Problem {
    fn from(error: io::Error) -> Self {
        Self::Terminal(error)
    }
}

/// The terminal, its content and the state of its keys.
struct Screen<'a> {
    view: &'a View<'a>,
    terminal: DefaultTerminal,
    model: Rc<RefCell<Model>>,
    controls: Controls,
}

impl Screen<'_> {
    fn run<G: Named>(
        &mut self,
        pipeline: &mut Pipeline<ViewSink<G>>,
        source: &mut dyn Source,
    ) -> Result<(), Problem> {
        let stop = interrupt::stop();
        let mut batch = FrameBatch::new();
        let (mut next_keys, mut refreshed_at) = (Instant::now(), Instant::now());
        let mut next_refresh = refreshed_at + REFRESH_INTERVAL;
        self.draw(source)?;
        while !stop.is_stopped() {
            match source.next_batch(&mut batch).map_err(Problem::Source)? {
                // The sink never ends a run.
                Next::Frames => drop(pipeline.batch(&batch)),
                Next::Idle(now) => pipeline.advance(now),
                Next::End(_) => return Ok(()),
            }
            let now = Instant::now();
            let mut change = None;
            if now >= next_keys {
                next_keys = now + KEY_INTERVAL;
                change = self.keys()?;
            }
            if change == Some(Change::Quit) {
                return Ok(());
            }
            if now >= next_refresh {
                // The delay of a refresh does not accumulate, unless the next one is due already.
                next_refresh = (next_refresh + REFRESH_INTERVAL).max(now + REFRESH_INTERVAL / 2);
                let report = Report {
                    interval: now - refreshed_at,
                    source: source.stats(),
                    stats: pipeline.stats(),
                    flow_count: pipeline.flow_count(),
                    budget_bytes: self.view.resources.budget.held(),
                };
                refreshed_at = now;
                self.refresh(pipeline, Some(report));
                self.draw(source)?;
            } else if let Some(change) = change {
                if change == Change::Rows {
                    self.refresh(pipeline, None);
                }
                self.draw(source)?;
            }
        }
        Ok(())
    }

    /// Processes all keys that were pressed. Returns the greatest change; `None` if the terminal need not be drawn.
    fn keys(&mut self) -> Result<Option<Change>, Problem> {
        let mut change = None;
        while event::poll(Duration::ZERO)? {
            let new = match event::read()? {
                Event::Key(key) if key.kind == KeyEventKind::Press => {
                    self.controls.key(key, &mut self.model.borrow_mut())
                }
                _ => Change::Drawing,
            };
            change = change.max(Some(new));
        }
        Ok(change)
    }

    fn refresh<G: Named>(&self, pipeline: &Pipeline<ViewSink<G>>, report: Option<Report>) {
        self.model.borrow_mut().refresh(pipeline.now(), report, pipeline.flows());
    }

    fn draw(&mut self, source: &dyn Source) -> Result<(), Problem> {
        let (model, controls) = (self.model.borrow(), &self.controls);
        let message = source.warnings().last().map(ToString::to_string).unwrap_or_default();
        let surroundings = Surroundings { origin: self.view.origin, message: &message };
        self.terminal.draw(|frame| draw(frame, &model, controls, &surroundings))?;
        Ok(())
    }
}
