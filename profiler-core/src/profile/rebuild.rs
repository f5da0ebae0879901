//! A model from a profile: what was recorded, as far as the tables tell, so that everything that asks a model can ask a profile.
//!
//! Owns: which column is which fact. Refuses: figures: they are made from the model, and equal the manifest's.

use memscope_wire::log::Refusal;
use memscope_wire::{Object, Origin};
use parquet::errors::ParquetError;

use crate::allocation::{Allocation, Device, Model, Names, Process, Scopes, StackNode, Stacks, Unused, flag};
use crate::allocation::{MAX_NUMBER, canonical};
use crate::error::Result;
use crate::findings::{Detail, ELSEWHERE, Finding, GIVEN_UP, reads_of};
use crate::journal::entry::{Calibration, Nanoseconds, ProcessIndex, ProcessInfo, SessionEnd};
use crate::report::nanoseconds;
use crate::timeline::Lifetime;

use super::archive::Slice;
use super::order::Order;
use super::read::Profile;
use super::reading::Reading;
use super::rows::Rows;
use super::scan::each_group;
use super::table::Table;

impl Profile {
    /// The whole session as a model. Takes about 110 bytes of memory an allocation, and 200 MB while it is made.
    ///
    /// # Errors
    /// When the tables are damaged.
    pub fn model(&self) -> Result<Model> {
        self.model_counted(&Reading::default())
    }

    /// The same; `reading` counts the allocations meanwhile. When all are read, about a third of the work is left.
    ///
    /// # Errors
    /// When the tables are damaged.
    pub fn model_counted(&self, reading: &Reading) -> Result<Model> {
        let mut model = Model::new();
        model.session = self.session().clone();
        self.names_and_scopes(&mut model)?;
        model.stacks = self.stacks(&mut model.names)?;
        self.devices_of(&mut model)?;
        self.processes_of(&mut model)?;
        let lifetimes = self.allocations_of(&mut model, reading)?;
        let marks = self.markers_of(&mut model)?;
        self.telemetry_of(&mut model)?;
        let carried = self.summed(&lifetimes, &model)?;
        let base = carried.as_ref().map_or(0, |(carried, _)| carried.walk.walked.order);
        let order = Order::of(&lifetimes, &marks, base);
        self.guard("allocations", || order?.put_into(&mut model))?;
        drop(lifetimes);
        self.facts_of_report(&mut model);
        if let Some((carried, forgotten)) = carried {
            model.forgotten = forgotten;
            model.forgotten_rows = forgotten.allocations + forgotten.blocks;
            model.carried = Some(Box::new(carried));
            self.forgotten_of_processes(&mut model);
        }
        settle(&mut model);
        Ok(model)
    }

    /// What was found out about the session.
    pub fn findings(&self) -> Vec<Finding> {
        self.manifest.report.findings.clone()
    }

    fn names_and_scopes(&self, model: &mut Model) -> Result<()> {
        let table = self.table("names")?;
        let texts = self.guard("names", || table.texts("text"))?;
        model.names = Names::of(texts.into_iter().map(Option::unwrap_or_default));
        let table = self.table("scopes")?;
        model.scopes = self.guard("scopes", || {
            let (parents, names) = (table.numbers("parent")?, table.numbers("name")?);
            let number = |value: Option<u64>| value.unwrap_or_default() as u32;
            Ok(Scopes::of(parents.into_iter().map(number).zip(names.into_iter().map(number))))
        })?;
        Ok(())
    }

    /// The tree of stacks; only nowhere in profiles that do not have it.
    pub(super) fn stacks(&self, names: &mut Names) -> Result<Stacks> {
        if !self.has_table("stacks") {
            return Ok(Stacks::default());
        }
        let table = self.table("stacks")?;
        self.guard("stacks", || {
            let (parents, lines) = (table.numbers("parent")?, table.numbers("line")?);
            let (files, functions) = (table.texts("file")?, table.texts("function")?);
            let number = |value: Option<u64>| value.unwrap_or_default() as u32;
            let mut name = |text: Option<String>| names.number_of(&text.unwrap_or_default());
            let nodes = parents.into_iter().zip(lines).zip(files.into_iter().zip(functions));
            Ok(Stacks::of(nodes.map(|((parent, line), (file, function))| StackNode {
                parent: number(parent),
                file: name(file),
                line: number(line),
                function: name(function),
            })))
        })
    }

    fn devices_of(&self, model: &mut Model) -> Result<()> {
        let table = self.table("devices")?;
        let (ids, ordinals, capacities) = self
            .guard("devices", || Ok((table.numbers("id")?, table.numbers("ordinal")?, table.numbers("capacity")?)))?;
        let rows = self.devices()?;
        let positions = ids.iter().flatten().copied().filter(|id| *id < u64::from(Allocation::NO_DEVICE));
        let count = positions.max().map_or(0, |last| last as usize + 1);
        // A position without a row was a device that turned out to be another one.
        let first = rows.iter().find(|row| (row.id as usize) < count).map(|row| row.id as u16);
        model.devices = vec![Device { alias: first, ..Device::default() }; count];
        for (row, device) in rows.iter().enumerate() {
            let Some(place) = model.devices.get_mut(device.id as usize) else { continue };
            let uuid = Some(canonical(&device.uuid)).filter(|_| !device.uuid.starts_with("unknown-"));
            *place = Device {
                ordinal: ordinals.get(row).copied().flatten().unwrap_or_default() as u32,
                capacity: capacities.get(row).copied().flatten(),
                uuid: uuid.clone(),
                ..Device::default()
            };
            model.device_by_uuid.extend(uuid.map(|uuid| (uuid, device.id as u16)));
        }
        Ok(())
    }

    fn processes_of(&self, model: &mut Model) -> Result<()> {
        let table = self.table("processes")?;
        let start = model.session.start_monotonic_ns;
        let known = model.devices.len();
        model.processes = self.guard("processes", || {
            let numbers = |name: &str| table.numbers(name);
            let (pids, parents, starts) = (numbers("pid")?, numbers("parent_pid")?, numbers("start_time")?);
            let (execs, ranks) = (numbers("exec_count")?, numbers("rank")?);
            let (executables, commands) = (table.texts("executable")?, table.texts("command")?);
            let (exits, lasts) = (table.added_numbers("exit_ns")?, table.added_numbers("last_ns")?);
            let devices = table.added_texts("devices")?;
            let (sizes, locals) = (table.added_numbers("world_size")?, table.added_numbers("local_rank")?);
            let names = table.added_texts("name")?;
            let (begins, closed) = (table.added_numbers("begin_ns")?, table.added_numbers("closed_ns")?);
            let at = |column: &[Option<u64>], row: usize| column.get(row).copied().flatten();
            let text = |column: &[Option<String>], row: usize| column.get(row).cloned().flatten().unwrap_or_default();
            let process = |row: usize| {
                let index = ProcessIndex(row as u32);
                let mut process = Process::new(index);
                process.info = ProcessInfo {
                    process: index,
                    pid: at(&pids, row).unwrap_or_default() as u32,
                    parent_pid: at(&parents, row).unwrap_or_default() as u32,
                    start_time: at(&starts, row).unwrap_or_default(),
                    exec_count: at(&execs, row).unwrap_or_default() as u32,
                    began_ns: at(&begins, row).map(|begin| begin.saturating_add(start)),
                    rank: at(&ranks, row).map(|rank| rank as u32),
                    world_size: at(&sizes, row).map(|size| size as u32),
                    local_rank: at(&locals, row).map(|rank| rank as u32),
                    name: names.get(row).cloned().flatten(),
                    executable: text(&executables, row),
                    command: serde_json::from_str(&text(&commands, row)).unwrap_or_default(),
                };
                // Ticks are nanoseconds since the session began.
                process.calibration =
                    Some(Calibration { first_ticks: 0, first_ns: start, last_ticks: 0, last_ns: start });
                process.exit = at(&exits, row).map(Nanoseconds);
                process.counters.closed_ns = at(&closed, row).map(|closed| closed.saturating_add(start));
                process.ticks = at(&lasts, row);
                let devices: Vec<u16> = serde_json::from_str(&text(&devices, row)).unwrap_or_default();
                process.devices = (0..).zip(devices.into_iter().filter(|at| usize::from(*at) < known)).collect();
                process
            };
            Ok((0..pids.len()).map(process).collect())
        })?;
        model.process_by_index = (0..model.processes.len()).map(|row| (ProcessIndex(row as u32), row)).collect();
        Ok(())
    }

    /// Returns where in the order of changes each allocation begins and ends.
    fn allocations_of(&self, model: &mut Model, reading: &Reading) -> Result<Vec<Lifetime>> {
        let slice = self.slice("allocations")?;
        let table = self.guard("allocations", || Table::open(slice.clone()))?;
        let (groups, processes) = (table.groups(), model.processes.len());
        let claimed: usize = (0..groups).map(|group| table.group_rows(group)).sum();
        drop(table);
        let mut lifetimes: Vec<Lifetime> = Vec::new();
        let read = |table: &Table<Slice>, group| {
            let rows = Rows::read(table, group, processes)?;
            reading.add(rows.allocations.len() as u64);
            Ok(rows)
        };
        let take = |mut rows: Rows| {
            let total = model.allocations.len() + rows.allocations.len();
            if total > MAX_NUMBER {
                return Err(ParquetError::General(format!("it claims {total} rows")));
            }
            let streams: Vec<u32> = rows.streams.iter().map(|value| model.streams.position(*value)).collect();
            let steps: Vec<u32> = rows.steps.iter().map(|value| model.steps.position(*value) + 1).collect();
            for row in &mut rows.allocations {
                row.stream = streams[row.stream as usize];
                row.step = row.step.checked_sub(1).map_or(0, |step| steps[step as usize]);
            }
            if model.allocations.is_empty() {
                // What is claimed is only believed as far as memory goes.
                drop(model.allocations.try_reserve_exact(claimed.min(MAX_NUMBER)));
                drop(lifetimes.try_reserve_exact(claimed.min(MAX_NUMBER)));
            }
            model.allocations.append(&mut rows.allocations);
            lifetimes.append(&mut rows.lifetimes);
            Ok(())
        };
        self.guard("allocations", || each_group(slice, groups, read, take))?;
        Ok(lifetimes)
    }

    /// What only the report tells.
    fn facts_of_report(&self, model: &mut Model) {
        let report = &self.manifest.report;
        // Seconds as written hold nanoseconds exactly for 52 days.
        let time = Nanoseconds((report.duration_s * 1e9).round() as u64);
        let (exit_status, outlived) = (report.exit_status, report.outlived.clone());
        model.end = Some(SessionEnd { time, exit_status, outlived, ..SessionEnd::default() });
        for (process, said) in model.processes.iter_mut().zip(&report.processes) {
            process.counters.dropped = said.dropped_events;
            process.counters.ended = said.ended;
            for said in &said.objects {
                let kind = Object::ALL.into_iter().find(|kind| kind.name() == said.object).unwrap_or(Object::Other);
                let count = &mut process.object_counts[kind as usize];
                (count.made, count.most) = (said.made, said.most);
            }
        }
        for finding in &report.findings {
            let doubts = &mut model.doubts;
            match &finding.detail {
                Detail::FreeOfUnknown { frees, block_frees } => {
                    (doubts.free_of_unknown, doubts.block_free_of_unknown) = (*frees, *block_frees);
                }
                Detail::FreeRefused { frees } => doubts.refused_frees = *frees,
                Detail::TagOfUnknown { tags } => doubts.tag_of_unknown = *tags,
                Detail::MapOfUnknown { mappings } => doubts.map_of_unknown = *mappings,
                Detail::OutsideBlocks { blocks } => doubts.outside_blocks = *blocks,
                Detail::DroppedEvents { events, gone_s, processes } => {
                    doubts.over_limit = events.saturating_sub(report.dropped_events);
                    let start = model.session.start_monotonic_ns;
                    let first = model.processes.iter_mut().find(|process| process.counters.dropped > 0);
                    let gone_ns = gone_s.map(|gone| start.saturating_add(nanoseconds(gone).0));
                    first.into_iter().for_each(|process| process.counters.unread_ns = gone_ns);
                    let unread = (*processes > 0).then(|| (Refusal::Unread.name().to_owned(), *processes));
                    model.end.iter_mut().for_each(|end| end.refusals.extend(unread.clone()));
                }
                Detail::JournalTruncated { reason } => model.truncated = Some(reason.clone()),
                Detail::UntoldSizes { computed, unknown } => {
                    (doubts.computed_sizes, doubts.unknown_sizes) = (*computed, *unknown);
                }
                Detail::StacksInPart { allocations } => doubts.stacks_in_part = *allocations,
                Detail::NothingCaptured { reason } => model.nothing = Some((reason.clone(), finding.advice.clone())),
                Detail::NotFollowed { what } => model.notices.push(what.clone()),
                // Also where the program has tagged all that its framework made.
                Detail::CacheGivenBack { pid, .. } => {
                    let those = model.processes.iter_mut().filter(|process| process.info.pid == *pid);
                    those.for_each(|process| process.followed = true);
                }
                Detail::UnusedGraphs { pid, passes, bytes, scope, line } => {
                    let unused = Unused {
                        passes: *passes,
                        bytes: *bytes,
                        scope: scope.as_ref().map_or(0, |scope| {
                            node_of(model.scopes.len(), scope, |node| model.scopes.path(node, &model.names))
                        }),
                        stack: line.as_ref().map_or(0, |line| {
                            node_of(model.stacks.len(), line, |node| model.stacks.text(node, &model.names))
                        }),
                    };
                    let those = model.processes.iter_mut().filter(|process| process.info.pid == *pid);
                    those.take(1).for_each(|process| process.passes.put(unused));
                }
                Detail::Simulated { libraries, .. } => model.simulation.not_computed = *libraries,
                Detail::NotSimulated { functions, .. } => {
                    let named = functions.iter().map(|missed| (model.names.number_of(&missed.function), missed.calls));
                    model.simulation.missed = named.collect();
                }
                Detail::DeviceReads { last, .. } => {
                    model.simulation.reads = reads_of(&finding.detail, &mut model.names);
                    let last = last.as_ref().filter(|last| *last != ELSEWHERE);
                    model.simulation.last = last.map_or(0, |last| model.names.number_of(last));
                }
                // Sums over processes: the first one stands for all.
                Detail::UncommittedSlots { slots, missing } => {
                    if let Some(first) = model.processes.first_mut() {
                        (first.counters.uncommitted, first.missing_slots) = (*slots, *missing);
                    }
                }
                Detail::Faults { faults } => {
                    if let Some(first) = model.processes.first_mut() {
                        first.counters.faults = *faults;
                    }
                }
                _ => {}
            }
        }
    }
}

/// The first node of a tree of so many with this text; the outermost where there is none.
fn node_of(nodes: usize, text: &str, of: impl Fn(u32) -> String) -> u32 {
    (1..nodes as u32).find(|node| of(*node) == text).unwrap_or_default()
}

/// What follows from all facts together.
fn settle(model: &mut Model) {
    let allocations = std::mem::take(&mut model.allocations);
    let mut last: Vec<Option<u64>> =
        model.markers.iter().fold(vec![None; model.processes.len()], |mut last, marker| {
            let last_of = &mut last[marker.process as usize];
            *last_of = Some(last_of.unwrap_or_default().max(marker.ticks));
            last
        });
    for marker in &model.markers {
        let gave_up = marker.failure().is_some_and(|failure| model.names.text(failure.function) == GIVEN_UP);
        model.processes[marker.process as usize].followed |= gave_up;
    }
    let mut named_last = None;
    for allocation in &allocations {
        let process = &mut model.processes[allocation.process as usize];
        let by_hook = matches!(allocation.origin, Origin::Hooked | Origin::Inferred);
        process.followed |= allocation.is(flag::BLOCK) && by_hook;
        let place = (allocation.process, allocation.device);
        if named_last != Some(place) {
            // Profiles of the first version do not say it: what a process was seen to use.
            let named = || process.devices.values().any(|at| *at == allocation.device);
            if usize::from(allocation.device) < model.devices.len() && !named() {
                process.devices.insert(process.devices.len() as u32, allocation.device);
            }
            named_last = Some(place);
        }
        let end = if allocation.is(flag::DEAD) { allocation.death_ticks } else { allocation.birth_ticks };
        if allocation.is(flag::DEAD | flag::AT_EXIT) && process.counters.ended {
            process.exit.get_or_insert(Nanoseconds(end));
        }
        let last_of = &mut last[allocation.process as usize];
        *last_of = Some(last_of.unwrap_or_default().max(end));
        if allocation.is(flag::DEAD) {
            model.doubts.note_end(allocation);
        } else {
            model.enter(allocation);
        }
    }
    model.allocations = allocations;
    for (process, last) in model.processes.iter_mut().zip(last) {
        process.ticks = process.ticks.or(last);
    }
}
