//! Rows of the table of allocations as a model has them.
//!
//! Owns: which column is which fact. Refuses: numbers that a model gives: they are told beside.

use memscope_wire::{Category, MemoryKind, Origin};
use parquet::errors::{ParquetError, Result as TableResult};

use crate::allocation::{Allocation, AllocationId, Container, flag};

use super::archive::Slice;
use super::table::Table;

/// Rows of one group, and what a model numbers in its own way.
pub(super) struct Rows {
    pub allocations: Vec<Allocation>,
    pub births: Vec<u64>,
    pub deaths: Vec<Option<u64>>,
    pub streams: Vec<u64>,
    pub steps: Vec<Option<u64>>,
}

impl Rows {
    /// Reads one group: a column after the other, so that only one of them is in memory besides the rows.
    pub fn read(table: &Table<Slice>, group: usize, processes: usize) -> TableResult<Rows> {
        let births = table.column(group, "birth_order")?.all_numbers();
        let deaths = table.column(group, "death_order")?.numbers();
        let mut allocations = vec![Allocation::vacant(); births.len()];
        let mut whole = |name: &str, set: fn(&mut Allocation, u64)| {
            let values = table.column(group, name)?.all_numbers();
            allocations.iter_mut().zip(values).for_each(|(row, value)| set(row, value));
            Ok::<_, ParquetError>(())
        };
        whole("birth_ns", |row, time| row.birth_ticks = time)?;
        whole("address", |row, address| row.address = address)?;
        whole("bytes", |row, bytes| row.bytes = bytes)?;
        // The ledger subtracts: a file that says otherwise must not make it overflow.
        whole("requested", |row, bytes| row.requested = bytes.min(row.bytes))?;
        whole("category", |row, number| row.category = Category::from_number(number as u8))?;
        whole("origin", |row, number| row.origin = Origin::from_number(number as u8))?;
        whole("memory", |row, number| row.memory = MemoryKind::from_number(number as u8))?;
        whole("process", |row, process| row.process = u32::try_from(process).unwrap_or(u32::MAX))?;
        whole("phase", |row, name| row.phase = name as u32)?;
        whole("scope", |row, node| row.scope = node as u32)?;
        whole("name", |row, name| row.name = name as u32)?;
        whole("function", |row, name| row.function = name as u32)?;
        whole("thread", |row, thread| row.thread = thread as u32)?;
        whole("flags", |row, flags| row.flags = flags as u8 & !flag::DEAD)?;
        let stacks = table.added_column(group, "stack")?;
        allocations.iter_mut().zip(stacks).for_each(|(row, stack)| row.stack = stack.unwrap_or_default() as u32);
        let mut optional = |name: &str, set: fn(&mut Allocation, Option<u64>)| {
            let values = table.column(group, name)?.numbers();
            allocations.iter_mut().zip(values).for_each(|(row, value)| set(row, value));
            Ok::<_, ParquetError>(())
        };
        optional("death_ns", |row, time| row.death_ticks = time.unwrap_or_default())?;
        optional("device", |row, device| row.device = device.map_or(Allocation::NO_DEVICE, |device| device as u16))?;
        optional("container", |row, at| row.container = at.and_then(|at| Container::new(AllocationId(at as u32))))?;
        for (row, death) in allocations.iter_mut().zip(&deaths) {
            row.flags |= if death.is_some() { flag::DEAD } else { 0 };
            if row.process as usize >= processes {
                let what = format!("a row names process {}, and there are {processes}", row.process);
                return Err(ParquetError::General(what));
            }
        }
        let streams = table.column(group, "stream")?.all_numbers();
        let steps = table.column(group, "step")?.numbers();
        Ok(Rows { allocations, births, deaths, streams, steps })
    }
}
