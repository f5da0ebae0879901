//! Looks for each kind of finding.
//!
//! Owns: thresholds and sentences. Refuses: guesses.

use memscope_wire::Category;

use crate::allocation::Model;
use crate::report::units::{bytes, grouped};
use crate::report::{device_text, named_devices, seconds};
use crate::timeline::State;

use super::evidence::Evidence;
use super::{
    Detail, Finding, Severity, graphs, growth, inputs, kept, lost, nothing, refusals, simulation, thresholds, untold,
};

/// Percent of live bytes without category that is worth a note, and a warning.
const UNKNOWN_SHARE: (f64, f64) = (10.0, 50.0);
/// Cached bytes are worth a finding from this share of reserved bytes and this size on.
const LARGE_CACHED: (f64, u64) = (25.0, 64 << 20);

/// All findings, the gravest first.
pub(crate) fn detect(evidence: &Evidence<'_>) -> Vec<Finding> {
    let model = evidence.model;
    let grew = inputs::detect(evidence);
    let mut findings = refusals::detect(evidence, &grew);
    findings.extend(recording(model));
    findings.extend(simulation::detect(model));
    findings.extend(kept::detect(model));
    findings.extend(doubts(model));
    findings.extend(untold::untold(model));
    findings.extend(unknown_share(evidence));
    findings.extend(graphs::detect(model));
    findings.extend(grew.into_iter().map(|(_, finding)| finding));
    findings.extend(evidence.places().filter_map(|place| growth::detect(evidence, place)));
    for device in named_devices(model) {
        findings.extend(thresholds::detect(evidence, device));
        findings.extend(large_cached(evidence, device));
    }
    findings.sort_by_key(|finding| finding.severity);
    findings
}

pub(super) fn finding(severity: Severity, message: String, advice: &str, detail: Detail) -> Finding {
    Finding { severity, message, advice: advice.to_owned(), detail }
}

/// How complete the recording is.
fn recording(model: &Model) -> Vec<Finding> {
    let sum =
        |value: fn(&crate::allocation::Process) -> u64| model.processes.iter().map(value).fold(0, u64::wrapping_add);
    let mut findings = Vec::new();
    if let Some((reason, advice)) = nothing::reason(model) {
        findings.push(finding(
            Severity::Warning,
            format!("nothing was captured: {reason}"),
            &advice,
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
    if model.doubts.stacks_in_part > 0 {
        let allocations = model.doubts.stacks_in_part;
        findings.push(finding(
            Severity::Warning,
            format!(
                "allocations of whose stack only the outer part is known: {}; there was no room for more",
                grouped(allocations)
            ),
            "the program has more different stacks than a process keeps: record a shorter part of it",
            Detail::StacksInPart { allocations },
        ));
    }
    findings.extend(lost::detect(model));
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
    findings
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
    let State { rows, time, .. } = evidence.devices.get(device)?.reserved?;
    let share = crate::report::units::share(rows.cached, rows.reserved);
    if share < LARGE_CACHED.0 || rows.cached < LARGE_CACHED.1 {
        return None;
    }
    let device = device_text(evidence.model, device);
    Some(finding(
        Severity::Note,
        format!("{share:.0} % of what the driver granted on {device} was cached and unused when most was reserved"),
        "look for sizes that change from step to step; round them, or let the allocator grow its segments",
        Detail::LargeCached {
            device,
            cached: rows.cached,
            reserved: rows.reserved,
            share,
            time_s: Some(seconds(time)),
        },
    ))
}
