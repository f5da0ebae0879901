//! A step that needed more memory because it was given more.
//!
//! Owns: when the inputs of a step explain its memory. Refuses: ordinary noise, and steps of which the inputs are not known.
//!
//! What a step is given is there when it begins. Which step it is: the one in which memory ran out, else the one with the most live
//! memory. It is held against all that ended before it and began with known inputs.

use std::cmp::Reverse;

use memscope_wire::Category;

use crate::report::units::{bytes, times};
use crate::report::{ByCategory, HOST, Place, seconds};
use crate::timeline::{DeviceFigures, State, StepFigures};

use super::detect::finding;
use super::evidence::Evidence;
use super::growth::what_grew;
use super::refusals::OUT_OF_MEMORY;
use super::{Detail, Finding, InputsGrew, Severity};

/// Fewest steps before it: of one alone nobody knows what is ordinary.
const FEWEST_BEFORE: usize = 2;
/// A batch counts as larger from this share of the largest before on: batches of texts differ from step to step.
const LARGER: f64 = 1.25;
/// Where memory did not run out, it must have grown by this share.
const GREW: f64 = 1.1;

/// Of each place in which there is one.
pub(super) fn detect(evidence: &Evidence<'_>) -> Vec<(Place, Finding)> {
    evidence.places().filter_map(|place| Some((place, of_place(evidence, place)?))).collect()
}

/// The step, where there is one.
fn of_place(evidence: &Evidence<'_>, place: Place) -> Option<Finding> {
    let figures = evidence.figures(place)?;
    let at = refused(evidence, place, figures).or_else(|| largest(figures))?;
    let inputs = begun_with(figures, at.step)?;
    let before = (0..at.step).filter_map(|step| Some((step, figures.steps[step].end?, begun_with(figures, step)?)));
    let before: Vec<(usize, u64)> = before.map(|(step, _, inputs)| (step, inputs)).collect();
    let (_, most) = before.iter().copied().max_by_key(|(step, inputs)| (*inputs, *step))?;
    let is_larger = |inputs: u64| inputs as f64 >= LARGER * most as f64;
    if before.len() < FEWEST_BEFORE || most == 0 || !is_larger(inputs) {
        return None;
    }
    // A batch may be there before its step begins: then it is in the last moments of the step before.
    let own = |step: &StepFigures| !is_larger(step.peak.rows.live[Category::Inputs as usize]);
    let fitted = figures.steps[..at.step].iter().filter(|step| step.end.is_some() && own(step));
    let fitted = fitted.max_by_key(|step| (step.peak.rows.live_bytes(), step.number))?;
    let (needed, was) = (at.state.rows.live_bytes().saturating_add(at.requested), fitted.peak.rows.live_bytes());
    let grew = if at.requested > 0 { needed > was } else { needed as f64 >= GREW * was as f64 };
    if !grew {
        return None;
    }
    let named = what_grew(evidence, place, (fitted.peak.order, at.state.order));
    let begin = |step: &StepFigures| figures.steps.iter().rfind(|before| before.begin < step.begin)?.end;
    let most_of = |step: &StepFigures, until: u32, inputs: u64| {
        let begun = begin(step).map_or(0, |state| state.order);
        let mut most = evidence.most_within(place, (begun, until));
        // A batch may be there before its step begins, and so in the step before.
        most[Category::Inputs as usize] = inputs;
        ByCategory::from_numbers(most)
    };
    let running = &figures.steps[at.step];
    let until = if at.requested > 0 { at.state.order } else { running.end.map_or(at.state.order, |end| end.order) };
    Some(sentence(InputsGrew {
        device: place.text(evidence.model),
        step: running.number,
        time_s: seconds(at.state.time),
        ran_out: at.requested > 0,
        inputs,
        inputs_before: most,
        live: at.state.rows.live_bytes(),
        requested: at.requested,
        by_category: most_of(running, until, inputs),
        fitted_step: fitted.number,
        fitted_live: was,
        fitted_by_category: most_of(fitted, fitted.end?.order, most),
        name: named.as_ref().map(|grown| grown.name.clone()),
        name_bytes: named.as_ref().map_or(0, |grown| grown.bytes),
        line: named.and_then(|grown| grown.line),
    }))
}

/// A moment of a step.
struct Moment {
    /// Its position.
    step: usize,
    state: State,
    /// Asked for in vain; 0 where memory did not run out.
    requested: u64,
}

/// Input bytes when a step began: the step before has ended then.
fn begun_with(figures: &DeviceFigures, step: usize) -> Option<u64> {
    let before = figures.steps.get(step.checked_sub(1)?)?;
    before.end.filter(|_| !before.with_process).map(|state| state.rows.live[Category::Inputs as usize])
}

/// Where memory ran out with most that lives.
fn refused(evidence: &Evidence<'_>, place: Place, figures: &DeviceFigures) -> Option<Moment> {
    let model = evidence.model;
    let refused = evidence.markers.iter().filter_map(|moment| {
        let marker = &model.markers[moment.marker as usize];
        let failure = marker.failure().filter(|failure| super::reaches(model, marker.process, failure))?;
        let here = failure.result == OUT_OF_MEMORY && place == Place::Device(model.resolve(failure.device) as usize);
        let number = model.steps.value(failure.step.checked_sub(1).filter(|_| here)?);
        let step = figures.step_at(number, moment.time)?;
        Some(Moment { step, state: *moment.state.as_deref()?, requested: failure.requested })
    });
    refused.max_by_key(|moment| moment.state.rows.live_bytes())
}

fn largest(figures: &DeviceFigures) -> Option<Moment> {
    let state = figures.live?;
    let step = figures.step_at(state.step?, state.time)?;
    Some(Moment { step, state, requested: 0 })
}

fn sentence(grew: InputsGrew) -> Finding {
    let what = match grew.ran_out {
        true => "memory ran out in it".to_owned(),
        false => format!("it needs most: {} after {}", bytes(grew.live), bytes(grew.fitted_live)),
    };
    let message = format!(
        "the inputs of step {}{} are {} the largest before ({} after {}), and {what}",
        grew.step,
        if grew.device == HOST { String::new() } else { format!(" on {}", grew.device) },
        times(grew.inputs, grew.inputs_before),
        bytes(grew.inputs),
        bytes(grew.inputs_before),
    );
    let severity = if grew.ran_out { Severity::Warning } else { Severity::Note };
    let advice = "look at the batch size and the length of sequences or size of images that this step was given: cap them, or split \
                  such a batch";
    finding(severity, message, advice, Detail::InputsGrew(Box::new(grew)))
}

/// What stands below the sentence.
pub(super) fn particulars(grew: &InputsGrew) -> Vec<String> {
    let pairs = grew.by_category.named().into_iter().zip(grew.fitted_by_category.named());
    let grown = |(_, now, was): &(&str, u64, u64)| *now as f64 >= GREW * *was as f64 && now > was;
    let mut grown: Vec<(&str, u64, u64)> =
        pairs.map(|((name, now), (_, was))| (name, now, was)).filter(grown).collect();
    grown.sort_by_key(|(_, now, was)| Reverse(now - was));
    let part = |(name, now, was): &(&str, u64, u64)| match was {
        0 => format!("{name} {} after none", bytes(*now)),
        was => format!("{name} {} ({} after {})", times(*now, *was), bytes(*now), bytes(*was)),
    };
    let mut sentences = Vec::new();
    if !grown.is_empty() {
        let parts: Vec<String> = grown.iter().map(part).collect();
        let until = if grew.ran_out { " until then" } else { "" };
        sentences.push(format!("Largest in it{until}, against step {}: {}.", grew.fitted_step, parts.join(", ")));
    }
    if let Some(name) = &grew.name {
        let line = grew.line.as_ref().map_or(String::new(), |line| format!(", made at {line}"));
        sentences.push(format!("Most of the growth is {name}, {}{line}.", bytes(grew.name_bytes)));
    }
    if grew.ran_out {
        sentences.push(format!(
            "With the {} asked for it would have been {} live; step {} needed at most {}.",
            bytes(grew.requested),
            bytes(grew.live.saturating_add(grew.requested)),
            grew.fitted_step,
            bytes(grew.fitted_live)
        ));
    }
    sentences
}
