//! Writes the open flows of a tracker to a checkpoint.

use std::io::{self, Write};

use super::super::active_list::ActiveList;
use super::super::flow::FlowId;
use super::super::recency::{Epoch, Linked, List, NONE};
use super::super::slab::Slab;
use super::super::tracker::Tracker;
use super::Snapshot;
use super::flow;
use super::order::{ACTIVE, Header, ORDER_BLOCK_COUNT};
use crate::checkpoint::{BLOCK_LEN, Invalid, Kind, State, StateWriter, Writer};
use crate::codec::Prefix;

impl<S: State> Snapshot<'_, S> {
    /// Writes the flows and the caller's state of each. Allocates a block and four octets per flow.
    ///
    /// # Errors
    ///
    /// The error of the writer; one of the kind [`InvalidData`](io::ErrorKind::InvalidData) if a state cannot be saved.
    pub fn write<W: Write>(&self, writer: &mut Writer<W>) -> io::Result<()> {
        self.tracker.save(writer, |_, state, out| state.save(out))
    }
}

fn invalid_data(invalid: Invalid) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, invalid)
}

impl<S> Tracker<S> {
    /// Writes the open flows; `save` writes the state of each flow.
    pub(crate) fn save<W: Write>(
        &self,
        writer: &mut Writer<W>,
        mut save: impl FnMut(FlowId, &S, &mut StateWriter<'_>) -> Result<(), Invalid>,
    ) -> io::Result<()> {
        let mut block = Vec::with_capacity(BLOCK_LEN + 4096);
        self.write_tracker(&mut StateWriter::growing(&mut block)).map_err(invalid_data)?;
        writer.block(Kind::Tracker, &block)?;
        block.clear();
        let mut ranks = vec![NONE; self.table.entry_count() as usize];
        for (flow_index, slot) in self.table.slots().enumerate() {
            if let Some(rank) = ranks.get_mut(slot as usize) {
                *rank = flow_index as u32;
            }
            self.write_flow(slot, &mut StateWriter::growing(&mut block), &mut save).map_err(invalid_data)?;
            if block.len() >= BLOCK_LEN {
                writer.block(Kind::Flows, &block)?;
                block.clear();
            }
        }
        if !block.is_empty() {
            writer.block(Kind::Flows, &block)?;
            block.clear();
        }
        let mut orders = Orders { writer, block, ranks };
        for (number, list) in self.lists.0.iter().enumerate() {
            orders.write(number as u8, list, self.table.cold(), |_| None)?;
        }
        let ActiveList { entries, list } = &self.active;
        orders.write(ACTIVE, list, entries, |slot| {
            self.active.began_ns(slot).map(|began_ns| self.now_ns.saturating_sub(began_ns))
        })
    }

    fn write_tracker(&self, out: &mut StateWriter<'_>) -> Result<(), Invalid> {
        out.be(self.now_ns)?;
        out.be(self.len() as u64)?;
        out.bool(self.active_ns != u64::MAX)?;
        out.prefixed(Prefix::U16, format!("{:?}", self.config.key_policy))?;
        self.proven.save(out)
    }

    fn write_flow(
        &self,
        slot: u32,
        out: &mut StateWriter<'_>,
        save: &mut impl FnMut(FlowId, &S, &mut StateWriter<'_>) -> Result<(), Invalid>,
    ) -> Result<(), Invalid> {
        let view = self.table.view(slot);
        flow::write(out, (view.hot, view.cold, view.extra), self.now_ns)?;
        let len = out.reserve::<u32>()?;
        let start = out.len();
        save(view.id(), self.table.state(slot), out)?;
        out.fill(len, (out.len() - start) as u32);
        Ok(())
    }
}

/// Writes lists of flows.
struct Orders<'w, W> {
    writer: &'w mut Writer<W>,
    block: Vec<u8>,
    /// Index in the checkpoint of the flow in each slot.
    ranks: Vec<u32>,
}

impl<W: Write> Orders<'_, W> {
    /// Writes a list from its oldest entry to its newest one, and what `detail` returns for each.
    fn write<T: Linked>(
        &mut self,
        number: u8,
        list: &List,
        slab: &Slab<T>,
        detail: impl Fn(u32) -> Option<u64>,
    ) -> io::Result<()> {
        let mut next = list.oldest();
        let mut rest = list.len() as usize;
        while rest > 0 {
            let count = rest.min(ORDER_BLOCK_COUNT);
            rest -= count;
            self.block.clear();
            let mut out = StateWriter::growing(&mut self.block);
            let epoch: Epoch = list.epoch_state();
            Header { list: number, epoch, count: count as u32 }.write(&mut out).map_err(invalid_data)?;
            for _ in 0..count {
                let Some(slot) = next else { break };
                let rank = self.ranks.get(slot as usize).copied().unwrap_or(NONE);
                out.varint(rank.into()).map_err(io::Error::other)?;
                if let Some(detail) = detail(slot) {
                    out.varint(detail).map_err(io::Error::other)?;
                }
                next = Some(slab.at(slot).links().newer).filter(|slot| *slot != NONE);
            }
            self.writer.block(Kind::Order, &self.block)?;
        }
        Ok(())
    }
}
