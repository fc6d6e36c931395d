//! Rows on their way to the receiver of batches.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use arrow_array::RecordBatch;
use arrow_schema::ArrowError;
use flowgauge::StopHandle;
use flowgauge::row::{Row, TableInfo};
use flowgauge_condition::RowFilter;

use super::config::ScanConfig;
use crate::batch::{BatchBuilder, Places};

/// Number of rows of the first batch, and the factor by which the next one may be longer.
const FIRST_COUNT: usize = 256;
const GROWTH: usize = 4;

/// The receiver of batches.
pub(super) type Receive<'a> = &'a mut (dyn FnMut(RecordBatch) -> ControlFlow<()> + Send);

/// Collects rows, and passes on batches until the receiver, the limit or the stop handle ends the scan.
pub(super) struct Batches<'a> {
    builder: BatchBuilder,
    /// The places of the columns of each table that had a row.
    places: Vec<(&'static str, Places)>,
    /// Conditions on rows.
    filter: RowFilter,
    receive: Receive<'a>,
    stop: StopHandle,
    /// Number of rows of the next batch. The first batch is small, so that it arrives early.
    due_count: usize,
    /// Number of rows that are still wanted.
    left_count: u64,
    /// Time after which rows are passed on, and the time of the first of them.
    interval: Option<Duration>,
    first: Option<Instant>,
    is_over: bool,
    fault: Option<ArrowError>,
}

impl<'a> Batches<'a> {
    pub(super) fn new(
        builder: BatchBuilder,
        config: &ScanConfig,
        stop: StopHandle,
        receive: Receive<'a>,
    ) -> Self {
        let left_count = config.limit.unwrap_or(u64::MAX);
        let is_over = left_count == 0;
        Self {
            builder,
            places: Vec::new(),
            filter: config.conditions.clone(),
            receive,
            stop,
            due_count: FIRST_COUNT,
            left_count,
            interval: config.interval,
            first: None,
            is_over,
            fault: None,
        }
    }

    /// Returns whether no more rows are wanted.
    pub(super) fn is_over(&self) -> bool {
        self.is_over || self.stop.is_stopped()
    }

    /// Passes on rows that have waited for the interval. Returns [`ControlFlow::Break`] if no more rows are wanted.
    pub(super) fn flow(&mut self) -> ControlFlow<()> {
        if let Some(interval) = self.interval
            && self.first.is_some_and(|first| first.elapsed() >= interval)
            && !self.is_over()
        {
            self.pass_on();
        }
        if self.is_over() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    /// Appends a row of the type of the builder.
    #[inline]
    pub(super) fn push(&mut self, row: &impl Row) {
        if !self.is_over() && self.filter.matches(row) {
            self.builder.push(row);
            self.pushed();
        }
    }

    /// Appends a row of one of the tables.
    pub(super) fn push_of(&mut self, table: &'static TableInfo, row: &impl Row) {
        if self.is_over() {
            return;
        }
        let index = match self.places.iter().position(|(name, _)| *name == table.name) {
            Some(index) => index,
            None => {
                self.places.push((table.name, self.builder.places(table.kind(), row.own_columns())));
                self.places.len() - 1
            }
        };
        if let Some((_, places)) = self.places.get(index)
            && self.filter.matches_named(row, || self.builder.names(places))
        {
            self.builder.push_at(row, places);
            self.pushed();
        }
    }

    #[inline]
    fn pushed(&mut self) {
        if self.interval.is_some() && self.first.is_none() {
            self.first = Some(Instant::now());
        }
        self.left_count -= 1;
        if self.left_count == 0 || self.builder.row_count() >= self.due_count || self.builder.is_full() {
            self.pass_on();
        }
    }

    /// Passes the rows since the last batch to the receiver.
    fn pass_on(&mut self) {
        self.first = None;
        if self.builder.row_count() > 0 {
            self.due_count = self.due_count.saturating_mul(GROWTH);
            match self.builder.finish() {
                Ok(batch) => self.is_over |= (self.receive)(batch).is_break(),
                Err(fault) => {
                    self.fault.get_or_insert(fault);
                    self.is_over = true;
                }
            }
        }
        self.is_over |= self.left_count == 0;
    }

    /// Passes on the last rows.
    pub(super) fn finish(mut self) -> Result<(), ArrowError> {
        if !self.is_over() {
            self.pass_on();
        }
        self.fault.map_or(Ok(()), Err)
    }
}
