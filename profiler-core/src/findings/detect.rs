//! Looks for each kind of finding.
//!
//! Owns: thresholds and sentences. Refuses: guesses.

use std::collections::BTreeMap;

use memscope_wire::Category;

use crate::allocation::{Failure, Model};
use crate::report::units::{bytes, grouped, simulated};
use crate::report::{ByCategory, Group, Groups, device_text, named_devices, seconds};
use crate::timeline::{MarkerMoment, State};

use super::evidence::Evidence;
use super::{Detail, Finding, Oom, Severity, growth};

/// CUDA_ERROR_OUT_OF_MEMORY.
const OUT_OF_MEMORY: i32 = 2;
/// Percent of live bytes without category that is worth a note, and a warning.
const UNKNOWN_SHARE: (f64, f64) = (10.0, 50.0);
/// Cached bytes are worth a finding from this share of reserved bytes and this size on.
const LARGE_CACHED: (f64, u64) = (25.0, 64 << 20);

/// All findings, the gravest first.
pub(crate) fn detect(evidence: &Evidence<'_>) -> Vec<Finding> {
    let model = evidence.model;
    let mut findings = refusals(evidence);
    findings.extend(recording(model));
    findings.extend(doubts(model));
    findings.extend(unknown_share(evidence));
    for device in named_devices(model) {
        findings.extend(growth::detect(evidence, device));
        findings.extend(large_cached(evidence, device));
    }
    findings.sort_by_key(|finding| finding.severity);
    findings
}

fn finding(severity: Severity, message: String, advice: &str, detail: Detail) -> Finding {
    Finding { severity, message, advice: advice.to_owned(), detail }
}

/// What the driver refused: of each process and device the out-of-memory that met the most live memory (of equal ones the
/// last), other results by function. Programs catch one, free, and go on: a later, smaller one must not hide it.
fn refusals(evidence: &Evidence<'_>) -> Vec<Finding> {
    let model = evidence.model;
    let mut memory: BTreeMap<(u32, u16), (u64, &MarkerMoment, &Failure)> = BTreeMap::new();
    let mut others: BTreeMap<(u32, i32), (u64, u64)> = BTreeMap::new();
    for moment in evidence.markers {
        let marker = &model.markers[moment.marker as usize];
        let Some(failure) = marker.failure() else { continue };
        if failure.result == OUT_OF_MEMORY {
            let live = |moment: &MarkerMoment| moment.state.as_ref().map(|state| state.rows.live_bytes());
            let most = memory.entry((marker.process, model.resolve(failure.device))).or_insert((0, moment, failure));
            most.0 += 1;
            if live(moment) >= live(most.1) {
                (most.1, most.2) = (moment, failure);
            }
        } else {
            let other = others.entry((failure.function, failure.result)).or_default();
            *other = (other.0 + 1, failure.requested);
        }
    }
    let ooms = memory.into_iter().map(|((process, device), (refusals, moment, failure))| {
        let pid = model.processes[process as usize].info.pid;
        oom(oom_facts(evidence, (pid, device as usize, refusals), moment, failure))
    });
    let others = others.into_iter().map(|((function, result), (times, requested))| {
        let function = model.names.text(function);
        finding(
            Severity::Warning,
            format!("allocations that the driver refused, not for want of memory: {times} by {function}, with result {result}"),
            "look up the result code in CUresult; the arguments of the call are probably wrong",
            Detail::AllocationRefused { function, result, times, requested },
        )
    });
    ooms.chain(others).collect()
}

fn oom_facts(
    evidence: &Evidence<'_>,
    (pid, device, refusals): (u32, usize, u64),
    moment: &MarkerMoment,
    failure: &Failure,
) -> Oom {
    let model = evidence.model;
    let some = |text: String| Some(text).filter(|text| !text.is_empty());
    let state = moment.state.as_deref().copied().unwrap_or_default();
    let told = failure.total > 0;
    Oom {
        device: device_text(model, device),
        pid,
        function: model.names.text(failure.function),
        requested: failure.requested,
        free: told.then_some(failure.free),
        total: told.then_some(failure.total),
        refusals,
        time_s: seconds(moment.time),
        step: failure.step.checked_sub(1).map(|position| model.steps.value(position)),
        phase: some(model.names.text(failure.phase)),
        scope: some(model.scopes.path(failure.scope, &model.names)),
        reserved: state.rows.reserved,
        live: state.rows.live_bytes(),
        by_category: ByCategory::from_numbers(state.rows.live),
        cached: state.rows.cached,
        largest_groups: largest_groups(evidence, device, &state),
    }
}

fn largest_groups(evidence: &Evidence<'_>, device: usize, state: &State) -> Vec<Group> {
    let mut groups = Groups::default();
    for (allocation, _) in evidence.live_at(device, state.order) {
        let labels = (allocation.name, allocation.scope, allocation.function);
        groups.add(labels, allocation.category, allocation.requested);
    }
    groups.largest(evidence.model)
}

fn oom(oom: Oom) -> Finding {
    let mut message = format!("out of memory on {}: {} asked for {}", oom.device, oom.function, bytes(oom.requested));
    if let (Some(free), Some(total)) = (oom.free, oom.total) {
        message.push_str(&format!(", {} of {} were free", bytes(free), bytes(total)));
    }
    let largest = oom.by_category.named().into_iter().max_by_key(|(_, bytes)| *bytes).filter(|(_, bytes)| *bytes > 0);
    if let Some((category, most)) = largest {
        message.push_str(&format!("; {} were live, most of it {category} ({})", bytes(oom.live), bytes(most)));
    }
    let advice = match largest {
        _ if oom.cached >= oom.requested => "free cached memory before this point, or reduce fragmentation",
        Some(("activations", _)) => "use a smaller batch, checkpoint activations, or train in a shorter format",
        Some(("optimizer", _)) => "use an optimizer with less state, or spread its state over devices",
        Some(("weights" | "gradients", _)) => "use a shorter format, or spread the model over devices",
        Some(("unknown", _)) => "tag the program's allocations to see what holds the memory",
        _ => "see the largest groups, and free what is not needed at this point",
    };
    finding(Severity::Error, message, advice, Detail::Oom(Box::new(oom)))
}

/// How complete the recording is.
fn recording(model: &Model) -> Vec<Finding> {
    let sum =
        |value: fn(&crate::allocation::Process) -> u64| model.processes.iter().map(value).fold(0, u64::wrapping_add);
    let mut findings = Vec::new();
    if let Some(reason) = nothing_captured(model) {
        findings.push(finding(
            Severity::Warning,
            format!("nothing was captured: {reason}"),
            "run `memscope doctor -- PROGRAM` to see whether memscope's library can be loaded into it",
            Detail::NothingCaptured { reason },
        ));
    }
    if let Some(reason) = &model.truncated {
        findings.push(finding(
            Severity::Warning,
            format!("the journal breaks off: {reason}"),
            "read the figures as those of the session up to that point",
            Detail::JournalTruncated { reason: reason.clone() },
        ));
    }
    findings.extend(model.notices.iter().map(|what| {
        finding(
            Severity::Warning,
            what.clone(),
            "expect categories and scopes to be missing; report it with the version of the framework",
            Detail::NotFollowed { what: what.clone() },
        )
    }));
    let dropped = sum(|process| process.counters.dropped).wrapping_add(model.doubts.over_limit);
    if dropped > 0 {
        findings.push(finding(
            Severity::Warning,
            format!("events that were not recorded: {}; figures may be wrong", grouped(dropped)),
            "give memscope more room in shared memory, or record a shorter part of the program",
            Detail::DroppedEvents { events: dropped },
        ));
    }
    let slots = sum(|process| process.counters.uncommitted.max(process.empty_slots));
    let missing = sum(|process| process.missing_slots);
    if slots > 0 || missing > 0 {
        findings.push(finding(
            Severity::Note,
            format!("records begun and never finished: {}; never read: {}", grouped(slots), grouped(missing)),
            "expect this after a kill; otherwise report it as a defect of memscope",
            Detail::UncommittedSlots { slots, missing },
        ));
    }
    let faults = sum(|process| process.counters.faults);
    if faults > 0 {
        findings.push(finding(
            Severity::Warning,
            format!("faults of the recorder in the program: {}", grouped(faults)),
            "report it as a defect of memscope, with the output of `memscope doctor`",
            Detail::Faults { faults },
        ));
    }
    if let Some(device) = &model.session.simulated {
        let compute = model.session.compute;
        let skipped = if compute { "" } else { ", and kernels and copies were skipped" };
        findings.push(finding(
            Severity::Note,
            format!("the devices were simulated ({}){skipped}", simulated(device)),
            "do not use checkpoints or losses of this run",
            Detail::Simulated { device: device.clone(), compute },
        ));
    }
    findings
}

fn nothing_captured(model: &Model) -> Option<String> {
    if model.seen() > 0 || model.markers.iter().any(|marker| marker.failure().is_some()) {
        return None;
    }
    // What was seen before the launch says more than what is missing after it.
    if let (Some(obstacle), true) = (&model.session.obstacle, model.processes.is_empty()) {
        return Some(obstacle.clone());
    }
    let reason = if model.processes.is_empty() {
        "no process of the program called the CUDA driver, or memscope's library could not be loaded into it"
    } else if model.devices.is_empty() {
        "the program made no recorded call of the CUDA driver"
    } else {
        "the program found a device and allocated nothing on it"
    };
    Some(reason.to_owned())
}

/// What the model met and could not account for.
fn doubts(model: &Model) -> Vec<Finding> {
    let doubts = &model.doubts;
    let (missed, missed_bytes) = (doubts.missed_frees, doubts.missed_bytes);
    let frees = doubts.free_of_unknown + doubts.block_free_of_unknown;
    let before = "start the program under memscope from its beginning; otherwise report it as a defect of memscope";
    let mut findings = Vec::new();
    let mut add = |count: u64, severity, text: &str, advice, detail| {
        if count > 0 {
            findings.push(finding(severity, format!("{text}: {}", grouped(count)), advice, detail));
        }
    };
    add(
        missed,
        Severity::Warning,
        "allocations whose address was given again while they were live, so that their free was not seen",
        "expect this after dropped events; otherwise memory was freed through a function that memscope does not record",
        Detail::MissedFree { allocations: missed, bytes: missed_bytes },
    );
    add(
        frees,
        Severity::Note,
        "frees of addresses that memscope did not see allocated",
        before,
        Detail::FreeOfUnknown { frees: doubts.free_of_unknown, block_frees: doubts.block_free_of_unknown },
    );
    add(
        doubts.refused_frees,
        Severity::Note,
        "frees that the driver refused",
        "look for memory that the program frees twice, or in the wrong context",
        Detail::FreeRefused { frees: doubts.refused_frees },
    );
    add(
        doubts.tag_of_unknown,
        Severity::Note,
        "tags of addresses that were not live",
        "tag memory after its allocation and before its free",
        Detail::TagOfUnknown { tags: doubts.tag_of_unknown },
    );
    add(
        doubts.map_of_unknown,
        Severity::Note,
        "mappings of memory that memscope did not see created",
        "expect this of memory that another process shares; it counts there",
        Detail::MapOfUnknown { mappings: doubts.map_of_unknown },
    );
    add(
        doubts.outside_blocks,
        Severity::Note,
        "blocks in no known allocation, and so in no ledger",
        before,
        Detail::OutsideBlocks { blocks: doubts.outside_blocks },
    );
    findings
}

fn unknown_share(evidence: &Evidence<'_>) -> Option<Finding> {
    let peak = evidence.peak?;
    let (unknown, live) = (peak.live[Category::Unknown as usize], peak.live_bytes());
    let share = crate::report::units::share(unknown, live);
    let severity = match share {
        share if share >= UNKNOWN_SHARE.1 => Severity::Warning,
        share if share >= UNKNOWN_SHARE.0 => Severity::Note,
        _ => return None,
    };
    Some(finding(
        severity,
        format!("{share:.0} % of the live bytes at the peak have no category ({})", bytes(unknown)),
        "tag them through the C API (memscope.h) or the Rust client, or use a framework that memscope hooks",
        Detail::UnknownShare { bytes: unknown, live, share },
    ))
}

fn large_cached(evidence: &Evidence<'_>, device: usize) -> Option<Finding> {
    let rows = evidence.devices.get(device)?.reserved?.rows;
    let share = crate::report::units::share(rows.cached, rows.reserved);
    if share < LARGE_CACHED.0 || rows.cached < LARGE_CACHED.1 {
        return None;
    }
    let device = device_text(evidence.model, device);
    Some(finding(
        Severity::Note,
        format!("{share:.0} % of what the driver granted on {device} was cached and unused when most was reserved"),
        "look for sizes that change from step to step; round them, or let the allocator grow its segments",
        Detail::LargeCached { device, cached: rows.cached, reserved: rows.reserved, share },
    ))
}
