//! What was refused: out of memory, as the program met it.
//!
//! Owns: which refusals reached the program, the circumstances of one, its sentence and its advice. Refuses: to show each of a
//! thousand.
//!
//! PyTorch's allocator asks the driver first; when that refuses, it gives its cache back and asks again. Only when it gives up
//! does the program get an error, which is then recorded for itself. So of a process whose tensors are followed, the driver's
//! own refusals of device memory count for nothing here. Any other program meets the driver's refusals itself, and so does
//! whoever asks for pools, pinned or managed memory; but PyTorch's cudaMallocAsync backend asks twice, and meets the second.

use std::collections::BTreeMap;

use memscope_wire::MemoryKind;

use crate::allocation::{Failure, Model, Sites, flag};
use crate::journal::entry::Nanoseconds;
use crate::report::units::{bytes, times};
use crate::report::{ByCategory, Group, Groups, Place, device_text, seconds};
use crate::timeline::{MarkerMoment, State};

use super::detect::finding;
use super::evidence::Evidence;
use super::holder::ByHolder;
use super::holes::Holes;
use super::{Detail, Finding, Largest, Oom, Severity, graphs, growth, inputs};

/// CUDA_ERROR_OUT_OF_MEMORY.
pub(crate) const OUT_OF_MEMORY: i32 = 2;

/// PyTorch's function by which it says that it has given up.
pub(crate) const GIVEN_UP: &str = "c10::reportOutOfMemoryToProfiler";

/// Refusals of one process on one device.
#[derive(Default)]
struct Refused<'a> {
    /// That reached the program: how many, and the one that met the most live memory, of equal ones the last. Programs catch
    /// one, free, and go on: a later, smaller one must not hide it.
    reached: u64,
    fullest: Option<(&'a MarkerMoment, &'a Failure)>,
    /// The driver's, of PyTorch, and when the last one was.
    of_cache: u64,
    last: Nanoseconds,
}

/// Findings about all of a session; `grew` has the steps that were given more ([`inputs`]).
pub(super) fn detect(evidence: &Evidence<'_>, grew: &[(Place, Finding)]) -> Vec<Finding> {
    let model = evidence.model;
    let mut memory: BTreeMap<(u32, u16), Refused<'_>> = BTreeMap::new();
    let mut others: BTreeMap<(u32, i32), (u64, u64, Nanoseconds)> = BTreeMap::new();
    for moment in evidence.markers {
        let marker = &model.markers[moment.marker as usize];
        let Some(failure) = marker.failure() else { continue };
        if failure.result != OUT_OF_MEMORY {
            let other = others.entry((failure.function, failure.result)).or_default();
            *other = (other.0 + 1, failure.requested, moment.time);
            continue;
        }
        let refused = memory.entry((marker.process, model.resolve(failure.device))).or_default();
        if !reaches(model, marker.process, failure) {
            (refused.of_cache, refused.last) = (refused.of_cache + 1, moment.time);
            continue;
        }
        refused.reached += 1;
        let live = |moment: &MarkerMoment| moment.state.as_ref().map(|state| state.rows.live_bytes());
        if refused.fullest.is_none_or(|(most, _)| live(moment) >= live(most)) {
            refused.fullest = Some((moment, failure));
        }
    }
    let ooms = memory.iter().map(|((process, device), refused)| match refused.fullest {
        Some((moment, failure)) => oom(evidence, (*process, refused.reached), (moment, failure), grew),
        None => recovered(model, *process, *device as usize, refused),
    });
    let others = others.into_iter().map(|((function, result), (times, requested, last))| {
        let function = model.names.text(function);
        finding(
            Severity::Warning,
            format!("allocations that the driver refused, not for want of memory: {times} by {function}, with result {result}"),
            "look up the result code in CUresult; the arguments of the call are probably wrong",
            Detail::AllocationRefused { function, result, times, requested, time_s: Some(seconds(last)) },
        )
    });
    ooms.chain(others).collect()
}

/// Of each out-of-memory that reached the program after this position: the position, and the finding that it would be alone.
/// With `patient`, only those before the first of which more may be said in a moment: a framework's line, and whether its
/// allocator gets over it, as long as nothing was seen of that.
pub(crate) fn reached_after(evidence: &Evidence<'_>, order: u32, patient: bool) -> Vec<(u32, Finding)> {
    let model = evidence.model;
    let (mut found, mut grew) = (Vec::new(), None);
    for moment in evidence.markers.iter().filter(|moment| moment.order > order) {
        let marker = &model.markers[moment.marker as usize];
        let reached = marker.failure().filter(|failure| reaches(model, marker.process, failure));
        let Some(failure) = reached else { continue };
        let process = &model.processes[marker.process as usize];
        if patient && failure.line == 0 && (process.framework || process.followed) {
            break;
        }
        let grew = grew.get_or_insert_with(|| inputs::detect(evidence));
        found.push((moment.order, oom(evidence, (marker.process, 1), (moment, failure), grew)));
    }
    found
}

/// True when PyTorch has raised an error for this.
fn has_given_up(model: &Model, failure: &Failure) -> bool {
    model.names.text(failure.function) == GIVEN_UP
}

/// True when memory was out and the program gets an error for it: the framework's word decides where its allocator asks for memory that it caches.
pub(crate) fn reaches(model: &Model, process: u32, failure: &Failure) -> bool {
    let of_cache = failure.memory == MemoryKind::Device && model.processes[process as usize].followed;
    let reaches = (!of_cache && !failure.asked_again) || has_given_up(model, failure);
    reaches && failure.result == OUT_OF_MEMORY
}

/// The circumstances of one, and how many bytes the program had kept from earlier steps.
fn facts(evidence: &Evidence<'_>, process: u32, refusals: u64, moment: &MarkerMoment, failure: &Failure) -> (Oom, u64) {
    let model = evidence.model;
    let device = model.resolve(failure.device) as usize;
    let some = |text: String| Some(text).filter(|text| !text.is_empty());
    let state = moment.state.as_deref().copied().unwrap_or_default();
    let told = failure.total > 0;
    let holes = Holes::at(evidence, process, device, state.order);
    let sample = evidence.devices.get(device).and_then(|figures| figures.sample_near(&state)).map(|sample| sample.rows);
    let used = failure.total.saturating_sub(failure.free);
    let (largest_groups, held) = groups_and_holders(evidence, device, &state);
    let oom = Oom {
        device: device_text(model, device),
        pid: model.processes[process as usize].info.pid,
        function: model.names.text(failure.function),
        requested: failure.requested,
        segment: has_given_up(model, failure).then(|| segment(evidence, process, moment, failure)).flatten(),
        free: told.then_some(failure.free),
        total: told.then_some(failure.total),
        refusals,
        time_s: seconds(moment.time),
        step: failure.step.checked_sub(1).map(|position| model.steps.value(position)),
        phase: some(model.names.text(failure.phase)),
        scope: some(model.scopes.path(failure.scope, &model.names)),
        line: some(model.names.text(failure.line)),
        reserved: state.rows.reserved,
        live: state.rows.live_bytes(),
        by_category: ByCategory::from_numbers(state.rows.live),
        largest: Largest::of(model, &state.rows.live, evidence.outlived_at(device, state.order)),
        cached: state.rows.cached,
        free_pieces: holes.count,
        largest_free_piece: holes.largest,
        outside: (told && used >= state.rows.reserved).then(|| used - state.rows.reserved),
        other_processes: sample.and_then(|rows| rows.other_processes),
        largest_groups,
    };
    (oom, held.kept_bytes())
}

/// What PyTorch asked the driver for when it was refused this: the driver's last refusal of the same memory, unless the driver has
/// granted some since, which was then another request's.
fn segment(evidence: &Evidence<'_>, process: u32, moment: &MarkerMoment, failure: &Failure) -> Option<u64> {
    let model = evidence.model;
    let device = model.resolve(failure.device);
    let before = evidence.markers.iter().filter(|before| before.order < moment.order);
    let refusals = before.filter_map(|before| {
        let marker = &model.markers[before.marker as usize];
        let refused = marker.failure().filter(|refused| {
            let here = marker.process == process && model.resolve(refused.device) == device;
            here && refused.memory == MemoryKind::Device && refused.result == OUT_OF_MEMORY
        })?;
        Some((before.order, refused))
    });
    let (order, refused) = refusals.max_by_key(|(order, _)| *order)?;
    let granted = model.allocations.iter().zip(evidence.lifetimes).any(|(allocation, life)| {
        let since = life.birth > order && life.birth < moment.order;
        since
            && allocation.process == process
            && !allocation.is(flag::BLOCK)
            && model.resolve(allocation.device) == device
    });
    (!granted && !has_given_up(model, refused)).then_some(refused.requested)
}

fn groups_and_holders(evidence: &Evidence<'_>, device: usize, state: &State) -> (Vec<Group>, ByHolder) {
    let (mut groups, mut holders) = (Groups::default(), ByHolder::default());
    let sites = Sites::of(&evidence.model.stacks, &evidence.model.names);
    for (allocation, outlived) in evidence.outlived_at(device, state.order) {
        let labels = (allocation.name, allocation.scope, allocation.function);
        groups.add(labels, allocation.category, allocation.requested);
        let held = (allocation.category, allocation.requested);
        groups.made_at(labels, held, sites.site(allocation.stack));
        groups.held(allocation, outlived);
        holders.enter(allocation, outlived);
    }
    (groups.largest(evidence.model), holders)
}

fn oom(
    evidence: &Evidence<'_>,
    (process, refusals): (u32, u64),
    (moment, failure): (&MarkerMoment, &Failure),
    grew: &[(Place, Finding)],
) -> Finding {
    let (oom, kept) = facts(evidence, process, refusals, moment, failure);
    let mut message =
        format!("out of memory on {}: {} asked for {}", oom.device, who(&oom.function), bytes(oom.requested));
    if let Some(segment) = oom.larger_segment() {
        message.push_str(&format!(" (a segment of {} from the driver)", bytes(segment)));
    }
    if let (Some(free), Some(total)) = (oom.free, oom.total) {
        message.push_str(&format!(", {} of {} were free", bytes(free), bytes(total)));
    }
    let largest = oom.by_category.named().into_iter().max_by_key(|(_, bytes)| *bytes).filter(|(_, bytes)| *bytes > 0);
    if let Some((category, most)) = largest {
        message.push_str(&format!("; {} were live, most of it {category} ({})", bytes(oom.live), bytes(most)));
    }
    let device = evidence.model.resolve(failure.device) as usize;
    let told = of_earlier_steps(kept, &oom)
        .or_else(|| graphs::advice(evidence, process, moment.order, &oom))
        .or_else(|| of_larger_inputs(grew, device, &oom));
    let advice = told.unwrap_or_else(|| advice(&oom, largest.map(|(category, _)| category)).to_owned());
    finding(Severity::Error, message, &advice, Detail::Oom(Box::new(oom)))
}

/// What to do where most activations are of steps that have ended. Only where these are more than what is cached: else whole pieces
/// would have helped more.
fn of_earlier_steps(kept: u64, oom: &Oom) -> Option<String> {
    let most = kept > oom.cached && kept > oom.by_category.activations.saturating_sub(kept);
    most.then(|| format!("{}; {} of activations have outlived whole steps", growth::ADVICE, bytes(kept)))
}

/// What to do where the step in which memory ran out was given more than those before, and needed more than what is cached.
fn of_larger_inputs(grew: &[(Place, Finding)], device: usize, oom: &Oom) -> Option<String> {
    let (_, found) = grew.iter().find(|(place, _)| *place == Place::Device(device))?;
    let Detail::InputsGrew(grew) = &found.detail else { return None };
    let more = oom.live.saturating_add(oom.requested).saturating_sub(grew.fitted_live);
    let here = grew.ran_out && Some(grew.step) == oom.step && more > oom.cached;
    let inputs = times(grew.inputs, grew.inputs_before);
    here.then(|| format!("{}; its inputs are {inputs} the largest before", found.advice))
}

/// Who asked, in words.
fn who(function: &str) -> &str {
    if function == GIVEN_UP { "PyTorch" } else { function }
}

fn advice(oom: &Oom, largest: Option<&str>) -> &'static str {
    let enough = oom.larger_segment().unwrap_or(oom.requested).saturating_sub(oom.free.unwrap_or(0));
    match largest {
        _ if oom.cached >= oom.requested && oom.function == GIVEN_UP => {
            "set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True, and keep sizes alike from step to step: the cache has enough, \
             in pieces that are too small"
        }
        _ if oom.cached >= oom.requested => "free cached memory before this point, or reduce fragmentation",
        _ if oom.other_processes.is_some_and(|others| others > 0 && others >= enough) => {
            "end the other processes on this device: without them the request would have been met"
        }
        Some("activations") => "use a smaller batch, checkpoint activations, or train in a shorter format",
        Some("optimizer") => "use an optimizer with less state, or spread its state over devices",
        Some("weights" | "gradients") => "use a shorter format, or spread the model over devices",
        Some("unknown") if oom.function == GIVEN_UP => {
            "look at what the program keeps outside its modules: the largest groups have no category"
        }
        Some("unknown") => "tag the program's allocations to see what holds the memory",
        _ => "see the largest groups, and free what is not needed at this point",
    }
}

/// The driver refused, and PyTorch did not.
fn recovered(model: &Model, process: u32, device: usize, refused: &Refused<'_>) -> Finding {
    let (refusals, last) = (refused.of_cache, refused.last);
    let (pid, device) = (model.processes[process as usize].info.pid, device_text(model, device));
    finding(
        Severity::Warning,
        format!(
            "the driver refused PyTorch memory on {device} {refusals} times, and PyTorch went on: it gave its cache back and asked again"
        ),
        "lower the peak a little, or keep sizes alike from step to step: each time costs a pause of the device",
        Detail::CacheGivenBack { device, pid, refusals, time_s: Some(seconds(last)) },
    )
}
