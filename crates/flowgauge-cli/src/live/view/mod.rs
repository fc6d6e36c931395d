//! The view of `flowgauge live` on a terminal: rates, and the flows, hosts and protocols with the most traffic.

mod draw;
mod model;
mod sink;

use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use std::time::{Duration, Instant};

use flowgauge::base::FrameBatch;
use flowgauge::source::Next;
use flowgauge::{Builder, Filter, Pipeline, PipelineStats, Resources, Source, Stage};
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use crate::console::{Console, Failure};
use crate::interrupt;
use draw::{Footer, draw};
use model::{Model, Report};
use sink::ViewSink;

/// Time between two refreshes of the content.
const REFRESH_INTERVAL: Duration = Duration::from_secs(1);

/// Time between two checks for keys while frames arrive.
const KEY_INTERVAL: Duration = Duration::from_millis(50);

/// Settings of a view.
pub(super) struct View<'a> {
    /// Name of the origin of the frames.
    pub(super) origin: &'a str,
    /// Resources of the pipeline, whose memory the view shows.
    pub(super) resources: &'a Resources,
    /// Selects the flows that are shown at first.
    pub(super) filter: Option<&'a Filter>,
}

impl View<'_> {
    /// Shows the view until q, Ctrl-C or the end of the source. Returns the counters of the run.
    pub(super) fn run<G: Stage>(
        &self,
        builder: &Builder,
        source: &mut dyn Source,
        console: &mut Console,
    ) -> Result<PipelineStats, Failure> {
        let model = Rc::new(RefCell::new(Model::new(self.filter.cloned())));
        let mut pipeline = builder.build(ViewSink::<G>::new(Rc::clone(&model)))?;
        let terminal = ratatui::try_init().map_err(|error| Failure::Other(format!("terminal: {error}")))?;
        let mut screen = Screen { view: self, terminal, model, input: None, refreshed_at: Instant::now() };
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

/// The terminal and the state of its keys.
struct Screen<'a> {
    view: &'a View<'a>,
    terminal: DefaultTerminal,
    model: Rc<RefCell<Model>>,
    /// The filter expression that is being entered, and its error.
    input: Option<(String, Option<String>)>,
    refreshed_at: Instant,
}

impl Screen<'_> {
    fn run<G: Stage>(
        &mut self,
        pipeline: &mut Pipeline<ViewSink<G>>,
        source: &mut dyn Source,
    ) -> Result<(), Problem> {
        let stop = interrupt::stop();
        let mut batch = FrameBatch::new();
        let mut next_keys = Instant::now();
        self.refresh(pipeline, source)?;
        while !stop.is_stopped() {
            match source.next_batch(&mut batch).map_err(Problem::Source)? {
                // The sink never ends a run.
                Next::Frames => drop(pipeline.batch(&batch)),
                Next::Idle(now) => pipeline.advance(now),
                Next::End => return Ok(()),
            }
            let now = Instant::now();
            let mut is_changed = false;
            if now >= next_keys {
                next_keys = now + KEY_INTERVAL;
                while event::poll(Duration::ZERO)? {
                    is_changed = true;
                    if let Event::Key(key) = event::read()?
                        && key.kind == KeyEventKind::Press
                        && self.key(key)
                    {
                        return Ok(());
                    }
                }
            }
            if now - self.refreshed_at >= REFRESH_INTERVAL {
                self.refresh(pipeline, source)?;
            } else if is_changed {
                self.draw(source)?;
            }
        }
        Ok(())
    }

    fn refresh<G: Stage>(
        &mut self,
        pipeline: &mut Pipeline<ViewSink<G>>,
        source: &dyn Source,
    ) -> Result<(), Problem> {
        let report = Report {
            interval: self.refreshed_at.elapsed(),
            source: source.stats(),
            stats: pipeline.stats(),
            flow_count: pipeline.flow_count(),
            budget_bytes: self.view.resources.budget.held(),
        };
        self.refreshed_at = Instant::now();
        self.model.borrow_mut().refresh(report, pipeline.flows());
        self.draw(source)
    }

    fn draw(&mut self, source: &dyn Source) -> Result<(), Problem> {
        let model = self.model.borrow();
        let message = source.warnings().last().map(ToString::to_string).unwrap_or_default();
        let footer = match &self.input {
            None => Footer::Keys,
            Some((text, error)) => Footer::Input(text, error.as_deref()),
        };
        self.terminal.draw(|frame| draw(frame, &model, self.view.origin, &message, &footer))?;
        Ok(())
    }

    /// Processes a key. Returns whether the view ends.
    fn key(&mut self, key: KeyEvent) -> bool {
        let model = &mut *self.model.borrow_mut();
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            return key.code == KeyCode::Char('c');
        }
        let Some((text, error)) = &mut self.input else {
            match key.code {
                KeyCode::Char('q') => return true,
                KeyCode::Char('p' | ' ') => model.is_paused = !model.is_paused,
                KeyCode::Char('s') => model.order = model.order.next(),
                KeyCode::Char('/') => self.input = Some((String::new(), None)),
                KeyCode::Esc => model.filter = None,
                KeyCode::Tab => {
                    model.tab = model.tab.next();
                    model.rows.clear();
                }
                _ => {}
            }
            return false;
        };
        match key.code {
            KeyCode::Esc => self.input = None,
            KeyCode::Backspace => {
                text.pop();
                *error = None;
            }
            KeyCode::Char(character) => {
                text.push(character);
                *error = None;
            }
            KeyCode::Enter if text.trim().is_empty() => {
                model.filter = None;
                self.input = None;
            }
            KeyCode::Enter => match Filter::parse(text) {
                Ok(filter) => {
                    model.filter = Some(filter);
                    self.input = None;
                }
                Err(problem) => *error = Some(problem.to_string()),
            },
            _ => {}
        }
        false
    }
}
