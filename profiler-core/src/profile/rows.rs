//! Rows of the table of allocations as a model has them.
//!
//! Owns: which column is which fact. Refuses: numbers that a model gives: steps and streams are told beside.

use memscope_wire::{Category, MemoryKind, Origin};
use parquet::errors::{ParquetError, Result as TableResult};

use crate::allocation::{Allocation, AllocationId, Container, flag};
use crate::timeline::{ALIVE, Lifetime};

use super::archive::Slice;
use super::table::Table;

/// Rows of one group, and what a model numbers in its own way.
pub(super) struct Rows {
    /// [`Allocation::stream`] and [`Allocation::step`] are positions in the lists below; the step plus 1, 0 for none.
    pub allocations: Vec<Allocation>,
    pub lifetimes: Vec<Lifetime>,
    pub streams: Vec<u64>,
    pub steps: Vec<u64>,
}

impl Rows {
    /// Reads one group: a column after the other, so that only one of them is in memory besides the rows.
    pub fn read(table: &Table<Slice>, group: usize, processes: usize) -> TableResult<Rows> {
        let mut lifetimes: Vec<Lifetime> = Vec::new();
        let births = table.column(group, "birth_order")?;
        births.each(|birth| lifetimes.push(Lifetime { birth: birth.unwrap_or_default() as u32, death: ALIVE }));
        let mut allocations = vec![Allocation::vacant(); lifetimes.len()];
        let mut dying = allocations.iter_mut().zip(&mut lifetimes);
        table.column(group, "death_order")?.each(|death| {
            if let (Some((row, lifetime)), Some(death)) = (dying.next(), death) {
                lifetime.death = death as u32;
                row.flags = flag::DEAD;
            }
        });
        let mut fill = Filling { table, group, rows: &mut allocations };
        fill.with("birth_ns", |row, time| row.birth_ticks = time.unwrap_or_default())?;
        fill.with("death_ns", |row, time| row.death_ticks = time.unwrap_or_default())?;
        fill.with("address", |row, address| row.address = address.unwrap_or_default())?;
        fill.with("bytes", |row, bytes| row.bytes = bytes.unwrap_or_default())?;
        // The ledger subtracts: a file that says otherwise must not make it overflow.
        fill.with("requested", |row, bytes| row.requested = bytes.unwrap_or_default().min(row.bytes))?;
        fill.with("category", |row, number| row.category = Category::from_number(number.unwrap_or_default() as u8))?;
        fill.with("origin", |row, number| row.origin = Origin::from_number(number.unwrap_or_default() as u8))?;
        fill.with("memory", |row, number| row.memory = MemoryKind::from_number(number.unwrap_or_default() as u8))?;
        fill.with("process", |row, at| row.process = at.map_or(0, |at| u32::try_from(at).unwrap_or(u32::MAX)))?;
        fill.with("device", |row, at| row.device = at.map_or(Allocation::NO_DEVICE, |at| at as u16))?;
        fill.with("container", |row, at| row.container = at.and_then(|at| Container::new(AllocationId(at as u32))))?;
        fill.with("phase", |row, name| row.phase = name.unwrap_or_default() as u32)?;
        fill.with("scope", |row, node| row.scope = node.unwrap_or_default() as u32)?;
        fill.with("name", |row, name| row.name = name.unwrap_or_default() as u32)?;
        fill.with("function", |row, name| row.function = name.unwrap_or_default() as u32)?;
        fill.with("thread", |row, thread| row.thread = thread.unwrap_or_default() as u32)?;
        fill.with("flags", |row, flags| row.flags |= flags.unwrap_or_default() as u16 & !flag::DEAD)?;
        if table.has("stack") {
            fill.with("stack", |row, stack| row.stack = stack.unwrap_or_default() as u32)?;
        }
        let mut streams = Distinct::default();
        fill.with("stream", |row, stream| row.stream = streams.position(stream.unwrap_or_default()))?;
        let mut steps = Distinct::default();
        fill.with("step", |row, step| row.step = step.map_or(0, |step| steps.position(step) + 1))?;
        if let Some(row) = allocations.iter().find(|row| row.process as usize >= processes) {
            let what = format!("a row names process {}, and there are {processes}", row.process);
            return Err(ParquetError::General(what));
        }
        Ok(Rows { allocations, lifetimes, streams: streams.values, steps: steps.values })
    }
}

/// Rows that are filled column by column.
struct Filling<'t> {
    table: &'t Table<Slice>,
    group: usize,
    rows: &'t mut [Allocation],
}

impl Filling<'_> {
    fn with(&mut self, name: &str, mut set: impl FnMut(&mut Allocation, Option<u64>)) -> TableResult<()> {
        let mut rows = self.rows.iter_mut();
        self.table.column(self.group, name)?.each(|value| {
            if let Some(row) = rows.next() {
                set(row, value);
            }
        });
        Ok(())
    }
}

/// Different values in the order in which they first come; neighbours usually have the same.
#[derive(Default)]
struct Distinct {
    values: Vec<u64>,
    positions: std::collections::HashMap<u64, u32>,
    last: Option<(u64, u32)>,
}

impl Distinct {
    fn position(&mut self, value: u64) -> u32 {
        if let Some((_, position)) = self.last.filter(|(last, _)| *last == value) {
            return position;
        }
        let next = self.values.len() as u32;
        let position = *self.positions.entry(value).or_insert(next);
        if position == next {
            self.values.push(value);
        }
        self.last = Some((value, position));
        position
    }
}
