//! Whether the steps that were to be kept were marked at all.
//!
//! Owns: this finding. Refuses: to judge a session that still runs: its steps may come.

use crate::allocation::Model;
use crate::keep::Keep;
use crate::report::units::grouped;

use super::detect::finding;
use super::{Detail, Finding, Severity};

/// Steps were asked for, and none of them was marked.
pub(super) fn detect(model: &Model) -> Option<Finding> {
    let keep @ Keep::Steps(..) = model.session.keep? else { return None };
    let marked = || model.steps.values().iter().copied();
    if model.end.is_none() || model.processes.is_empty() || marked().any(|step| keep.wants(step)) {
        return None;
    }
    let (first, last) = (marked().min(), marked().max());
    let (what, advice) = match first.zip(last) {
        None => (
            "no step was marked".to_owned(),
            "mark steps with memscope_step of memscope.h or step of the Rust client, as optimizers of PyTorch do by themselves; \
             or keep the end of the run, as in --keep last:10m",
        ),
        Some((first, last)) if first == last => {
            (format!("the one step that was marked is {}", grouped(first)), "ask for a step that the program marks")
        }
        Some((first, last)) => (
            format!("the steps that were marked are {} to {}", grouped(first), grouped(last)),
            "ask for steps that the program marks",
        ),
    };
    let (severity, outcome) = match model.kept() {
        Some(_) => (Severity::Warning, "no step is kept"),
        None => (Severity::Note, "all is kept, since the run was short"),
    };
    let asked = keep.to_string();
    let message = format!("none of {asked} was there to be kept: {what}; {outcome}");
    Some(finding(severity, message, advice, Detail::StepsNotMarked { asked, first, last }))
}
