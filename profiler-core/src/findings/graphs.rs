//! Forward passes whose activations were kept for a backward pass that never came: an evaluation without `no_grad`.
//!
//! Owns: the sentence, and the advice where such passes are why memory ran out. Refuses: the rule itself, which is of the trace
//! ([`crate::allocation`]), and single passes.

use memscope_wire::Category;

use crate::allocation::{Model, Role, Sites, Stacks, Unused};
use crate::report::device_text;
use crate::report::units::{bytes, count};
use crate::timeline::MarkerMoment;

use super::detect::finding;
use super::evidence::Evidence;
use super::{Detail, Finding, Oom, Severity};

/// What such passes are put under.
const NO_GRAD: &str = "torch.no_grad() or torch.inference_mode()";
/// So many backward passes must have come before it is known how many forward passes go before one.
const FEWEST_BACKWARDS: u64 = 2;

/// One a process.
pub(super) fn detect(model: &Model) -> Vec<Finding> {
    let unused = model.processes.iter().map(|process| (process.info.pid, process.passes.unused()));
    unused.filter(|(_, unused)| unused.passes > 0).map(|(pid, unused)| sentence(model, pid, unused)).collect()
}

fn sentence(model: &Model, pid: u32, unused: Unused) -> Finding {
    let scope = Some(model.scopes.path(unused.scope, &model.names)).filter(|path| !path.is_empty());
    let line = (unused.stack != Stacks::NOWHERE)
        .then(|| model.stacks.text(Sites::of(&model.stacks, &model.names).site(unused.stack), &model.names));
    let passes = count(unused.passes, "forward pass", "forward passes");
    let mut message = format!("activations were kept for a backward pass that never came: by {passes}");
    message.extend(scope.as_ref().map(|scope| format!(" of {scope}")));
    message.push_str(&format!(", up to {} in each", bytes(unused.bytes)));
    message.extend(line.as_ref().map(|line| format!("; called at {line}")));
    let advice = format!("put what is not trained with, as an evaluation, under {NO_GRAD}: it then keeps none of them");
    let detail = Detail::UnusedGraphs { pid, passes: unused.passes, bytes: unused.bytes, scope, line };
    finding(Severity::Warning, message, &advice, detail)
}

/// What a process's forward and backward passes had come to at a moment.
#[derive(Default)]
struct Row {
    /// Forward passes since the last backward pass, and where the first and the last of them began.
    forwards: u64,
    begun: (u32, u32),
    /// Most of them that a backward pass came for at once, and how often one came.
    most: u64,
    backwards: u64,
}

impl Row {
    fn at(evidence: &Evidence<'_>, process: u32, order: u32) -> Row {
        let model = evidence.model;
        let before = |moment: &&MarkerMoment| moment.order < order;
        let mut row = Row::default();
        for moment in evidence.markers.iter().filter(before) {
            let marker = &model.markers[moment.marker as usize];
            let Some(phase) = marker.phase().filter(|_| marker.process == process) else { continue };
            match Role::named(&model.names.text(phase)) {
                Role::Forward => {
                    row.begun = (if row.forwards == 0 { moment.order } else { row.begun.0 }, moment.order);
                    row.forwards += 1;
                }
                Role::Backward if row.forwards > 0 => {
                    row = Row { most: row.most.max(row.forwards), backwards: row.backwards + 1, ..Row::default() };
                }
                Role::Optimizer => row.forwards = 0,
                _ => {}
            }
        }
        row
    }
}

/// What to do where memory ran out in a forward pass of more in a row than ever went before a backward pass, and what those before it
/// keep is most of the activations and more than what is cached.
pub(super) fn advice(evidence: &Evidence<'_>, process: u32, order: u32, oom: &Oom) -> Option<String> {
    let model = evidence.model;
    let row = Row::at(evidence, process, order);
    let usual = row.backwards >= FEWEST_BACKWARDS && model.processes[process as usize].followed;
    if !usual || row.forwards <= row.most.max(1) {
        return None;
    }
    let device = model.devices.iter().enumerate().position(|(device, _)| device_text(model, device) == oom.device)?;
    let kept = evidence.live_at(device, order).filter(|(allocation, life)| {
        let made = row.begun.0 < life.birth && life.birth < row.begun.1;
        made && allocation.process == process && allocation.category == Category::Activations
    });
    let kept: u64 = kept.map(|(allocation, _)| allocation.requested).sum();
    let most = kept > oom.cached && kept > oom.by_category.activations.saturating_sub(kept);
    most.then(|| {
        format!(
            "put what is not trained with, as an evaluation, under {NO_GRAD}: {} in a row keep {} for a backward pass that has not \
             come, and before there were never more than {}",
            count(row.forwards - 1, "forward pass", "forward passes"),
            bytes(kept),
            row.most
        )
    })
}
