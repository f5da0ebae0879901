//! What was live at one moment, from the rows of a profile.
//!
//! Owns: reading only the row groups and columns that matter, on two threads. Refuses: to keep the rows.

use std::sync::mpsc::{Receiver, sync_channel};

use memscope_wire::{Category, MemoryKind, Origin};
use parquet::errors::{ParquetError, Result as TableResult};

use crate::allocation::{Allocation, Names, Sites, Stacks, flag};
use crate::error::Result;
use crate::journal::entry::Nanoseconds;
use crate::report::{HOST, Held, Moment, Snapshot, Tops, Words};
use crate::timeline::State;

use super::archive::Slice;
use super::decoder::survive;
use super::read::{Profile, StepRow};
use super::table::Table;

/// Threads that scan; more gain little, since row groups are large.
pub(super) const THREADS: usize = 2;

/// A moment in the rows' terms.
#[derive(Clone, Copy)]
enum When {
    /// Right after the change at this position.
    Order(u32),
    /// Right after the last change at or before this time.
    Time(Nanoseconds),
}

impl When {
    /// Columns of birth and death that tell whether a row is live.
    const fn columns(self) -> (&'static str, &'static str) {
        match self {
            When::Order(_) => ("birth_order", "death_order"),
            When::Time(_) => ("birth_ns", "death_ns"),
        }
    }

    const fn value(self) -> u64 {
        match self {
            When::Order(order) => order as u64,
            When::Time(time) => time.0,
        }
    }
}

/// A live row: what the ledger needs, and what the lists of the largest need.
pub(super) struct Live {
    pub allocation: Allocation,
    pub held: Held,
}

/// Whose memory is meant.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// A device's id.
    Device(u32),
    Host,
}

impl Place {
    fn has(self, row: &Live) -> bool {
        match self {
            Place::Device(device) => u32::from(row.allocation.device) == device && !row.allocation.memory.on_host(),
            Place::Host => row.allocation.memory.on_host(),
        }
    }
}

impl Profile {
    /// The peaks of a step, on a device and of host memory.
    pub(super) fn snapshots_of_step(
        &self,
        device: Option<&StepRow>,
        host: Option<&StepRow>,
    ) -> Result<(Option<Snapshot>, Option<Snapshot>)> {
        let words = ProfileWords::load(self)?;
        let peak = |step: &StepRow, place| self.snapshot_of_step(step, place, &words);
        let device = device.map(|step| peak(step, Place::Device(step.device))).transpose()?;
        Ok((device, host.map(|step| peak(step, Place::Host)).transpose()?))
    }

    fn snapshot_of_step(&self, step: &StepRow, place: Place, words: &ProfileWords) -> Result<Snapshot> {
        let rows = self.live(When::Order(step.peak_order))?;
        let mut state = State {
            order: step.peak_order,
            time: step.peak_time,
            step: Some(step.number),
            phase: step.peak_phase,
            ..State::default()
        };
        let mut scope = None;
        for row in rows.iter().filter(|row| place.has(row)) {
            state.enter(&row.allocation);
            if row.held.birth == step.peak_order && row.counts() {
                scope = Some(words.scope(row.held.scope)).filter(|scope| !scope.is_empty());
            }
        }
        let texts = (words.name(state.phase), scope);
        self.detail(place, state, texts, &rows, words)
    }

    /// The device that held most at a time, and host memory.
    pub(super) fn snapshots_at(&self, time: Nanoseconds) -> Result<(Option<Snapshot>, Option<Snapshot>)> {
        let rows = self.live(When::Time(time))?;
        let words = ProfileWords::load(self)?;
        let state = |place: Place| {
            let steps = match place {
                Place::Device(_) => &self.steps,
                Place::Host => &self.host_steps,
            };
            let here = |step: &&StepRow| place == Place::Host || place == Place::Device(step.device);
            let begun = steps.iter().filter(here).filter(|step| step.begin <= time);
            let step = begun.max_by_key(|step| step.begin).map(|step| step.number);
            let mut state = State { time, step, ..State::default() };
            rows.iter().filter(|row| place.has(row)).for_each(|row| state.enter(&row.allocation));
            state
        };
        let states = self.devices()?.into_iter().map(|device| (device.id, state(Place::Device(device.id))));
        let largest = states.max_by_key(|(id, state)| (state.rows.live_bytes(), std::cmp::Reverse(*id)));
        let phase = self.phase_at(time)?;
        let detail = |place, state| self.detail(place, state, (phase.clone(), None), &rows, &words);
        let device = largest.map(|(device, state)| detail(Place::Device(device), state)).transpose()?;
        let host = self.summary().host.moment.is_some().then(|| detail(Place::Host, state(Place::Host))).transpose()?;
        Ok((device, host))
    }

    /// The phase that began last at or before a time, in whatever process.
    fn phase_at(&self, time: Nanoseconds) -> Result<String> {
        let table = self.table("markers")?;
        self.guard("markers", || {
            let (times, phases) = (table.numbers("time_ns")?, table.texts("phase")?);
            let begun =
                times.into_iter().zip(phases).take_while(|(begin, _)| begin.is_some_and(|begin| begin <= time.0));
            Ok(begun.filter_map(|(_, phase)| phase).last().unwrap_or_default())
        })
    }

    fn detail(
        &self,
        place: Place,
        state: State,
        (phase, scope): (String, Option<String>),
        rows: &[Live],
        words: &ProfileWords,
    ) -> Result<Snapshot> {
        let mut tops = Tops::default();
        for row in rows.iter().filter(|row| place.has(row) && row.counts()) {
            tops.add(Held { site: words.sites.site(row.held.site), ..row.held });
        }
        let (device, sample) = match place {
            Place::Host => (HOST.to_owned(), None),
            Place::Device(device) => {
                let uuid = self.devices()?.into_iter().find(|row| row.id == device).map(|row| row.uuid);
                (uuid.unwrap_or_default(), self.sample_near(device, &state)?)
            }
        };
        Ok(Moment { device, state, phase, scope, sample }.snapshot(&tops, words))
    }

    /// All rows that are live at a moment, in the order of births.
    fn live(&self, when: When) -> Result<Vec<Live>> {
        let slice = self.slice("allocations")?;
        let groups = self.guard("allocations", || Ok(Table::open(slice.clone())?.groups()))?;
        let parts = in_groups(slice, groups, |table, group| live_in_group(table, group, when));
        let parts = self.guard("allocations", || parts)?;
        Ok(parts.into_iter().flatten().collect())
    }
}

impl Live {
    /// True for what the live bytes of a device, or of host memory, count.
    fn counts(&self) -> bool {
        self.allocation.is_leaf() && (self.allocation.on_device() || self.allocation.memory.on_host())
    }
}

/// Runs `read` for each row group, on [`THREADS`] threads; results in the order of the groups.
pub(super) fn in_groups<T: Send>(
    slice: Slice,
    groups: usize,
    read: impl Fn(&Table<Slice>, usize) -> TableResult<T> + Sync,
) -> TableResult<Vec<T>> {
    let mut parts = Vec::new();
    each_group(slice, groups, read, |part| {
        parts.push(part);
        Ok(())
    })?;
    Ok(parts)
}

/// The same, and takes each result as soon as those before it are taken: no more than [`THREADS`] wait.
pub(super) fn each_group<T: Send>(
    slice: Slice,
    groups: usize,
    read: impl Fn(&Table<Slice>, usize) -> TableResult<T> + Sync,
    mut take: impl FnMut(T) -> TableResult<()>,
) -> TableResult<()> {
    let threads = THREADS.min(groups);
    std::thread::scope(|scope| {
        let begin = |first: usize| {
            let (send, receive) = sync_channel::<TableResult<T>>(0);
            let (slice, read) = (slice.clone(), &read);
            scope.spawn(move || {
                let decoded = survive(|| {
                    let table = Table::open(slice)?;
                    for group in (first..groups).step_by(threads) {
                        // Nobody takes it any more: another part could not be read.
                        if send.send(Ok(read(&table, group)?)).is_err() {
                            break;
                        }
                    }
                    Ok(())
                });
                let result = decoded.unwrap_or_else(|| Err(ParquetError::General("it cannot be decoded".into())));
                if let Err(error) = result {
                    drop(send.send(Err(error)));
                }
            });
            receive
        };
        let parts: Vec<Receiver<TableResult<T>>> = (0..threads).map(begin).collect();
        for group in 0..groups {
            let part = parts[group % threads].recv();
            take(part.map_err(|_| ParquetError::General("it cannot be decoded".into()))??)?;
        }
        Ok(())
    })
}

fn live_in_group(table: &Table<Slice>, group: usize, when: When) -> TableResult<Vec<Live>> {
    let (birth, death) = when.columns();
    let births = table.column(group, birth)?.all_numbers();
    // Rows are in the order of births.
    let end = births.partition_point(|birth| *birth <= when.value());
    if end == 0 {
        return Ok(Vec::new());
    }
    let deaths = table.column(group, death)?.numbers();
    let live: Vec<usize> = (0..end)
        .filter(|row| deaths.get(*row).is_some_and(|death| death.is_none_or(|death| death > when.value())))
        .collect();
    if live.is_empty() {
        return Ok(Vec::new());
    }
    let pick = |name: &str| {
        let all = table.column(group, name)?.numbers();
        Ok::<Vec<Option<u64>>, ParquetError>(live.iter().map(|row| all.get(*row).copied().flatten()).collect())
    };
    let pick_added = |name: &str| if table.has(name) { pick(name) } else { Ok(vec![None; live.len()]) };
    let columns = Columns {
        birth: pick("birth_order")?,
        time: pick("birth_ns")?,
        address: pick("address")?,
        bytes: pick("bytes")?,
        requested: pick("requested")?,
        category: pick("category")?,
        origin: pick("origin")?,
        memory: pick("memory")?,
        process: pick("process")?,
        device: pick("device")?,
        step: pick("step")?,
        scope: pick("scope")?,
        stack: pick_added("stack")?,
        name: pick("name")?,
        function: pick("function")?,
        flags: pick("flags")?,
    };
    Ok((0..live.len()).map(|row| columns.row(row)).collect())
}

/// The picked values of one row group.
struct Columns {
    birth: Vec<Option<u64>>,
    time: Vec<Option<u64>>,
    address: Vec<Option<u64>>,
    bytes: Vec<Option<u64>>,
    requested: Vec<Option<u64>>,
    category: Vec<Option<u64>>,
    origin: Vec<Option<u64>>,
    memory: Vec<Option<u64>>,
    process: Vec<Option<u64>>,
    device: Vec<Option<u64>>,
    step: Vec<Option<u64>>,
    scope: Vec<Option<u64>>,
    stack: Vec<Option<u64>>,
    name: Vec<Option<u64>>,
    function: Vec<Option<u64>>,
    flags: Vec<Option<u64>>,
}

impl Columns {
    fn row(&self, row: usize) -> Live {
        let value = |column: &[Option<u64>]| column[row].unwrap_or_default();
        let held = Held {
            birth: value(&self.birth) as u32,
            time: Nanoseconds(value(&self.time)),
            address: value(&self.address),
            requested: value(&self.requested),
            category: Category::from_number(value(&self.category) as u8),
            origin: Origin::from_number(value(&self.origin) as u8),
            name: value(&self.name) as u32,
            scope: value(&self.scope) as u32,
            function: value(&self.function) as u32,
            site: value(&self.stack) as u32,
            step: self.step[row],
            process: value(&self.process) as u32,
        };
        let allocation = Allocation {
            bytes: value(&self.bytes),
            // The ledger subtracts: a file that says otherwise must not make it overflow.
            requested: held.requested.min(value(&self.bytes)),
            category: held.category,
            memory: MemoryKind::from_number(value(&self.memory) as u8),
            device: self.device[row].map_or(Allocation::NO_DEVICE, |device| device as u16),
            flags: value(&self.flags) as u16 & !flag::DEAD,
            ..Allocation::vacant()
        };
        Live { allocation, held }
    }
}

/// The texts of a profile.
pub(super) struct ProfileWords {
    names: Vec<Option<String>>,
    scopes: Vec<Option<String>>,
    pids: Vec<Option<u64>>,
    stacks: Stacks,
    /// The names of files and functions in the tree of stacks.
    in_stacks: Names,
    sites: Sites,
}

impl ProfileWords {
    fn load(profile: &Profile) -> Result<ProfileWords> {
        let texts = |table: &'static str, column: &str| {
            let open = profile.table(table)?;
            profile.guard(table, || open.texts(column))
        };
        let processes = profile.table("processes")?;
        let mut in_stacks = Names::new();
        let stacks = profile.stacks(&mut in_stacks)?;
        Ok(ProfileWords {
            sites: Sites::of(&stacks, &in_stacks),
            stacks,
            in_stacks,
            names: texts("names", "text")?,
            scopes: texts("scopes", "path")?,
            pids: profile.guard("processes", || processes.numbers("pid"))?,
        })
    }
}

impl Words for ProfileWords {
    fn name(&self, number: u32) -> String {
        self.names.get(number as usize).cloned().flatten().unwrap_or_default()
    }

    fn scope(&self, node: u32) -> String {
        self.scopes.get(node as usize).cloned().flatten().unwrap_or_default()
    }

    fn line(&self, node: u32) -> String {
        self.stacks.text(node, &self.in_stacks)
    }

    fn pid(&self, process: u32) -> u32 {
        self.pids.get(process as usize).copied().flatten().unwrap_or_default() as u32
    }
}
