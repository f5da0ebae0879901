//! Memory that grows from step to step.
//!
//! Owns: when growth is steady, and what grew. Refuses: to call it a leak. The first step is left out: a program makes its
//! optimizer state and caches there. So is one that ended with its process: a program may give back memory there.

use std::collections::HashMap;

use memscope_wire::Category;

use crate::allocation::Model;
use crate::report::device_text;
use crate::timeline::{DeviceFigures, State};

use super::evidence::Evidence;
use super::{Detail, Finding, Growth, Severity};

/// Fewest steps in a row that must grow.
const FEWEST_STEPS: usize = 4;
/// Growth below this many bytes a step is not worth a finding: a few scalars kept for a log.
const SMALLEST: u64 = 1024;

/// Growth on one device, if there is any.
pub(super) fn detect(evidence: &Evidence<'_>, device: usize) -> Option<Finding> {
    let model = evidence.model;
    let figures = *evidence.devices.get(device)?;
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
    let name = name_that_grew(evidence, device, (first.1.order, last.1.order));
    let growth = Growth {
        device: device_text(model, device),
        bytes_per_step,
        steps: steps as u64,
        first_step: first.0,
        last_step: last.0,
        category: category.name().to_owned(),
        name_bytes_per_step: name.as_ref().map_or(0, |(_, bytes)| bytes / steps as u64),
        name: name.map(|(name, _)| name),
        steps_to_capacity: steps_to_capacity(model, device, figures, bytes_per_step),
    };
    Some(finding(growth))
}

fn finding(growth: Growth) -> Finding {
    use crate::report::units::{bytes, count};
    let mut message = format!(
        "live memory on {} grows by {} a step, over {} steps; most of it is {}",
        growth.device,
        bytes(growth.bytes_per_step),
        growth.steps,
        growth.category
    );
    if let Some(name) = &growth.name {
        message.push_str(&format!(", and {name} grows by {} a step", bytes(growth.name_bytes_per_step)));
    }
    if let Some(steps) = growth.steps_to_capacity {
        message.push_str(&format!("; the device is full after about {}", count(steps, "more step", "more steps")));
    }
    Finding {
        severity: Severity::Warning,
        message,
        advice: "look for what keeps tensors across steps, such as a list of losses that still hold their graph".into(),
        detail: Detail::StepGrowth(Box::new(growth)),
    }
}

fn name_that_grew(evidence: &Evidence<'_>, device: usize, (first, last): (u32, u32)) -> Option<(String, u64)> {
    let model = evidence.model;
    let mut grown: HashMap<(u32, u32), i128> = HashMap::new();
    for (order, sign) in [(first, -1), (last, 1)] {
        for (allocation, _) in evidence.live_at(device, order) {
            // By name; without one by scope.
            let key = if allocation.name != 0 { (allocation.name, 0) } else { (0, allocation.scope) };
            *grown.entry(key).or_default() += sign * i128::from(allocation.requested);
        }
    }
    let ((name, scope), bytes) = grown
        .into_iter()
        .max_by_key(|(key, bytes)| (*bytes, std::cmp::Reverse(*key)))
        .filter(|(_, bytes)| *bytes > 0)?;
    let text = if name != 0 { model.names.text(name) } else { model.scopes.path(scope, &model.names) };
    Some((text, bytes as u64)).filter(|(text, _)| !text.is_empty())
}

fn steps_to_capacity(model: &Model, device: usize, figures: &DeviceFigures, bytes_per_step: u64) -> Option<u64> {
    let used = figures.device_used.map(|used| used.bytes).or(figures.reserved.map(|state| state.rows.reserved))?;
    Some(model.devices[device].capacity?.saturating_sub(used) / bytes_per_step)
}
