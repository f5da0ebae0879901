//! Thresholds of a device's use that were passed.
//!
//! Owns: their sentences, and what held most then. Refuses: to decide when one is passed (`timeline`).

use std::collections::HashMap;

use crate::journal::entry::Threshold;
use crate::report::units::{bytes, share};
use crate::report::{ByCategory, device_text, named_devices, seconds};
use crate::timeline::{Passing, Passings};

use super::detect::finding;
use super::evidence::Evidence;
use super::{Detail, Finding, Largest, Severity, ThresholdPassed};

/// Findings about all of a session: of each threshold the first time.
pub(super) fn detect(evidence: &Evidence<'_>, device: usize) -> Vec<Finding> {
    let passings = evidence.devices.get(device).map(|figures| figures.passings.as_slice()).unwrap_or_default();
    let first = |passings: &Passings| {
        let passed = facts(evidence, device, passings, passings.first.first()?);
        let again = if passed.times > 1 {
            format!("; passed {} times, this is the first", passed.times)
        } else {
            String::new()
        };
        Some(told(passed, &again))
    };
    passings.iter().filter_map(first).collect()
}

/// Of each threshold that was passed more often than was told, the last time; it is told then.
pub(crate) fn passed_after(evidence: &Evidence<'_>, told_until: &mut HashMap<(usize, Threshold), u64>) -> Vec<Finding> {
    let mut found = Vec::new();
    for device in named_devices(evidence.model) {
        for passings in evidence.devices.get(device).into_iter().flat_map(|figures| &figures.passings) {
            let until = told_until.entry((device, passings.threshold)).or_default();
            // Few are kept; of more, the last one stands for all.
            while *until < passings.times {
                let kept = passings.first.get(*until as usize);
                *until = if kept.is_some() { *until + 1 } else { passings.times };
                let Some(passing) = kept.or(passings.last.as_ref()) else { continue };
                found.push(told(ThresholdPassed { times: *until, ..facts(evidence, device, passings, passing) }, ""));
            }
        }
    }
    found
}

fn facts(evidence: &Evidence<'_>, device: usize, passings: &Passings, passing: &Passing) -> ThresholdPassed {
    let (model, state) = (evidence.model, &passing.state);
    ThresholdPassed {
        device: device_text(model, device),
        threshold: passings.threshold.to_string(),
        limit: passings.limit,
        used: passing.used,
        total: passings.total,
        times: passings.times,
        time_s: seconds(state.time),
        step: state.step,
        phase: Some(model.names.text(state.phase)).filter(|phase| !phase.is_empty()),
        reserved: state.rows.reserved,
        live: state.rows.live_bytes(),
        by_category: ByCategory::from_numbers(state.rows.live),
        largest: Largest::of(model, &state.rows.live, evidence.outlived_at(device, state.order)),
    }
}

fn told(passed: ThresholdPassed, again: &str) -> Finding {
    let of = passed
        .total
        .map_or_else(String::new, |total| format!(" of {} ({:.0} %)", bytes(total), share(passed.used, total)));
    finding(
        Severity::Warning,
        format!("more than {} of {} were used: {}{of}{again}", passed.threshold, passed.device, bytes(passed.used)),
        "look at this moment, and lower the peak before the device is full",
        Detail::ThresholdPassed(Box::new(passed)),
    )
}

/// When it was, who had it, and what held most of it.
pub(super) fn particulars(passed: &ThresholdPassed) -> Vec<String> {
    let step = passed.step.map_or("before the first step".to_owned(), |step| format!("step {step}"));
    let phase = passed.phase.as_ref().map_or(String::new(), |phase| format!(", phase {phase}"));
    let outside = passed.used.saturating_sub(passed.reserved);
    let mut told = vec![format!("It was at {}, {step}{phase}.", crate::report::units::time(passed.time_s))];
    told.push(format!(
        "Granted to this session: {}, of which {} were live; outside of it: {}.",
        bytes(passed.reserved),
        bytes(passed.live),
        bytes(outside)
    ));
    told.extend(passed.largest.as_ref().map(Largest::sentence));
    told
}
