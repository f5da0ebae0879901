//! Memory that grows from step to step.
//!
//! Owns: when growth is steady, and what grew. Refuses: to call it a leak. The first step is left out: a program makes its
//! optimizer state and caches there. So is one that ended with its process: a program may give back memory there.

use std::cmp::Reverse;
use std::collections::HashMap;

use memscope_wire::Category;

use crate::allocation::{Allocation, Sites, Stacks};
use crate::report::{HOST, Place, pattern};
use crate::timeline::{DeviceFigures, State};

use super::evidence::Evidence;
use super::{Detail, Finding, Growth, Severity};

/// Fewest steps in a row that must grow.
const FEWEST_STEPS: usize = 4;
/// Growth below this many bytes a step is not worth a finding: a few scalars kept for a log.
const SMALLEST: u64 = 1024;

/// What to do about it.
pub(super) const ADVICE: &str =
    "look for what keeps tensors across steps, such as a list of losses that still hold their graph";

/// Growth on one device, or of host memory, if there is any.
pub(super) fn detect(evidence: &Evidence<'_>, place: Place) -> Option<Finding> {
    let figures = evidence.figures(place)?;
    let steps = figures.steps.iter().skip(1).filter(|step| !step.with_process);
    let mut ends = steps.filter_map(|step| Some((step.number, step.end?))).rev();
    let last = ends.next()?;
    let (mut first, mut steps) = (last, 0);
    // Back to the first step that did not grow: of a long session this is near.
    for earlier in ends {
        if first.1.rows.live_bytes() <= earlier.1.rows.live_bytes() {
            break;
        }
        (first, steps) = (earlier, steps + 1);
    }
    if steps < FEWEST_STEPS {
        return None;
    }
    let bytes_per_step = (last.1.rows.live_bytes() - first.1.rows.live_bytes()) / steps as u64;
    if bytes_per_step < SMALLEST {
        return None;
    }
    let grown = |category: &Category| {
        let at = |state: &State| i128::from(state.rows.live[*category as usize]);
        at(&last.1) - at(&first.1)
    };
    let category = Category::ALL.into_iter().max_by_key(grown).unwrap_or_default();
    let named = what_grew(evidence, place, (first.1.order, last.1.order));
    let growth = Growth {
        device: place.text(evidence.model),
        bytes_per_step,
        steps: steps as u64,
        first_step: first.0,
        last_step: last.0,
        category: category.name().to_owned(),
        name_bytes_per_step: named.as_ref().map_or(0, |grown| grown.bytes / steps as u64),
        name: named.as_ref().map(|grown| grown.name.clone()),
        line: named.and_then(|grown| grown.line),
        steps_to_capacity: steps_to_capacity(evidence, place, figures, bytes_per_step),
    };
    Some(finding(growth))
}

fn finding(growth: Growth) -> Finding {
    use crate::report::units::{bytes, count};
    let memory = match growth.device == HOST {
        true => "live host memory".to_owned(),
        false => format!("live memory on {}", growth.device),
    };
    let mut message = format!(
        "{memory} grows by {} a step, over {} steps; most of it is {}",
        bytes(growth.bytes_per_step),
        growth.steps,
        growth.category
    );
    if let Some(name) = &growth.name {
        message.push_str(&format!(", and {name} grows by {} a step", bytes(growth.name_bytes_per_step)));
        message.extend(growth.line.iter().map(|line| format!(", made at {line}")));
    }
    if let Some(steps) = growth.steps_to_capacity {
        message.push_str(&match steps {
            0 => "; the device has no room for one more step".to_owned(),
            steps => format!("; the device is full after about {}", count(steps, "more step", "more steps")),
        });
    }
    Finding {
        severity: Severity::Warning,
        message,
        advice: ADVICE.into(),
        detail: Detail::StepGrowth(Box::new(growth)),
    }
}

/// What holds more at a later moment than at an earlier one.
pub(super) struct Grown {
    /// Its name; without one its scope. `*` for the numbers of layers that are alike.
    pub name: String,
    /// By so many bytes.
    pub bytes: u64,
    /// The program's line that made most of that, where that was recorded.
    pub line: Option<String>,
}

/// A name, or 0 and a scope.
type Key = (u32, u32);

/// What has grown most between two moments.
pub(super) fn what_grew(evidence: &Evidence<'_>, place: Place, (first, last): (u32, u32)) -> Option<Grown> {
    let model = evidence.model;
    // By name; without one by scope.
    let key = |allocation: &Allocation| match allocation.name {
        0 => (0, allocation.scope),
        name => (name, 0),
    };
    let mut grown: HashMap<Key, i128> = HashMap::new();
    for (order, sign) in [(first, -1), (last, 1)] {
        for (allocation, _) in evidence.live_in(place, order) {
            *grown.entry(key(allocation)).or_default() += sign * i128::from(allocation.requested);
        }
    }
    let text = |(name, scope): Key| match name {
        0 => model.scopes.path(scope, &model.names),
        name => model.names.text(name),
    };
    // Layers that are alike grow together.
    let mut alike: HashMap<(bool, String), (i128, Vec<Key>)> = HashMap::new();
    for (key, bytes) in grown {
        let (sum, keys) = alike.entry((key.0 != 0, pattern(&text(key)))).or_default();
        *sum += bytes;
        keys.push(key);
    }
    let most = alike.into_iter().max_by(|(one, (less, _)), (other, (more, _))| less.cmp(more).then(other.cmp(one)));
    let ((_, pattern), (bytes, keys)) = most.filter(|(_, (bytes, _))| *bytes > 0)?;
    let text = if let [key] = keys[..] { text(key) } else { pattern };
    let line = || {
        let sites = Sites::of(&model.stacks, &model.names);
        let mut made: HashMap<u32, i128> = HashMap::new();
        for (order, sign) in [(first, -1), (last, 1)] {
            for (allocation, _) in evidence.live_in(place, order).filter(|(one, _)| keys.contains(&key(one))) {
                *made.entry(sites.site(allocation.stack)).or_default() += sign * i128::from(allocation.requested);
            }
        }
        let (site, _) = made.into_iter().max_by_key(|(site, bytes)| (*bytes, Reverse(*site)))?;
        Some(model.stacks.text(site, &model.names)).filter(|_| site != Stacks::NOWHERE)
    };
    let line = if model.stacks.is_empty() { None } else { line() };
    Some(Grown { name: text, bytes: bytes as u64, line }).filter(|grown| !grown.name.is_empty())
}

fn steps_to_capacity(
    evidence: &Evidence<'_>,
    place: Place,
    figures: &DeviceFigures,
    bytes_per_step: u64,
) -> Option<u64> {
    let Place::Device(device) = place else { return None };
    let used = figures.device_used.map(|used| used.bytes).or(figures.reserved.map(|state| state.rows.reserved))?;
    Some(evidence.model.devices[device].capacity?.saturating_sub(used) / bytes_per_step)
}
